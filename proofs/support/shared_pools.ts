import { setTimeout as sleep } from 'node:timers/promises'
import sharp from 'sharp'
import { ask } from '#test/support/process.ts'
import { address, type User } from '../../bench/support/installation.ts'

/** A project with somebody who develops it and somebody who uses it. */
export type Tenant = {
  readonly developer: Readonly<Record<string, string>>
  readonly projectId: string
  readonly user: User
}

/** What the tenant that takes nothing waited for its answers, and which were refused. */
export type Waits = { readonly longest: number; readonly answers: number; readonly refused: number }

/** Asks again and again, half a second apart, while another takes what it may. */
const waitsBeside = async (one: () => Promise<boolean>, greedy: () => Promise<void>): Promise<Waits> => {
  let isOver = false
  const working = greedy().finally(() => {
    isOver = true
  })
  const waits = { longest: 0, answers: 0, refused: 0 }
  await sleep(1000)
  while (!isOver) {
    const began = performance.now()
    if (!(await one())) waits.refused += 1
    waits.answers += 1
    waits.longest = Math.max(waits.longest, performance.now() - began)
    await sleep(500)
  }
  await working
  return waits
}

const query = ({ developer, projectId }: Tenant, text: string) =>
  ask(url, 'POST', `/v1/admin/projects/${projectId}/graphql`, { query: text }, { ...developer, ...address() }).catch(
    () => ({ status: 0, body: {} }),
  )
let url = ''

/** One project changes its collections, each of sixty columns, and has every schema made, while another reads its users. */
export const graphqlBeside = async (server: string, greedy: Tenant, other: Tenant, seconds: number): Promise<Waits> => {
  url = server
  for (const { projectId, developer } of [greedy, other])
    await ask(url, 'PATCH', `/v1/admin/projects/${projectId}`, { graphql_enabled: true }, developer)
  await query(other, '{ users { totalCount } }')
  const columns = Array.from({ length: 60 }, (_, n) => ({ name: `c${n}`, type: 'text' }))
  const until = performance.now() + seconds * 1000
  let made = 0
  const change = async () => {
    while (performance.now() < until) {
      const path = `/v1/admin/projects/${greedy.projectId}/collections`
      for (let n = 0; n < 4; n += 1)
        await ask(url, 'POST', path, { name: `wide_${made++}`, columns }, { ...greedy.developer, ...address() })
      await Promise.all(Array.from({ length: 4 }, () => query(greedy, '{ users { totalCount } }')))
    }
  }
  return waitsBeside(async () => (await query(other, '{ users { totalCount } }')).status === 200, change)
}

/** One user has the dearest variants of an image made, each of another size, while a user of another project has small ones made. */
export const imagesBeside = async (server: string, greedy: User, other: User, many: number): Promise<Waits> => {
  url = server
  const picture = await sharp({ create: { width: 64, height: 64, channels: 3, background: '#39c' } })
    .png()
    .toBuffer()
  const call = async (user: User, path: string, body: object) =>
    (await ask(url, 'POST', `/v1/client/media/${path}`, body, { ...user.headers, ...address() })).body
  const keyOf = async (user: User): Promise<string> => {
    const file = { filename: 'a.png', mime_type: 'image/png', size_bytes: picture.length }
    const registered = await call(user, 'upload', file)
    await fetch(registered.upload_url, {
      method: 'PUT',
      body: new Uint8Array(picture),
      headers: { 'content-type': 'image/png' },
    })
    const { id } = registered.data
    return (await call(user, 'commit', { upload_id: id, asset_id: id })).data.key
  }
  const urlOf = async (user: User, key: string, size: number, format: string): Promise<string> =>
    (await call(user, 'presign', { method: 'GET', key, w: size, h: size, format })).data.url
  const [dear, small] = [await keyOf(greedy), await keyOf(other)]
  const urls: string[] = []
  for (let n = 0; n < many; n += 1) urls.push(await urlOf(greedy, dear, 4096 - n, 'avif'))
  const all = async () => {
    const controller = new AbortController()
    setTimeout(() => controller.abort(), 60_000)
    await Promise.all(urls.map((one) => fetch(one, { signal: controller.signal }).catch(() => null)))
  }
  let size = 8
  return waitsBeside(async () => {
    size += 1
    return (await fetch(await urlOf(other, small, size, 'webp'))).status === 200
  }, all)
}
