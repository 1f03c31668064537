// Processes beside the server's own that all projects share: of GraphQL, for images, of PostgREST.
import { setTimeout as sleep } from 'node:timers/promises'
import sharp from 'sharp'
import { connectAdmin } from '#server/database/cluster.ts'
import { findPostgrest } from '#server/rest/binary.ts'
import type { User } from '../../../bench/support/installation.ts'
import {
  createProject,
  databaseOf,
  type Part,
  projectsOf,
  type Tenant,
  type World,
  waitsBeside,
  within,
} from './part.ts'

const query = ({ call }: World, { developer, projectId }: Tenant) =>
  call(developer, 'POST', `/v1/admin/projects/${projectId}/graphql`, { query: '{ users { totalCount } }' })

/** One project changes its collections, each of sixty columns, and has every schema made, while another reads its users. */
export const graphql: Part = {
  name: 'graphql',
  bound: '10 s',
  async run(world) {
    const [greedy, other] = [await world.tenant(), await world.tenant()]
    for (const { projectId, developer } of [greedy, other])
      await world.call(developer, 'PATCH', `/v1/admin/projects/${projectId}`, { graphql_enabled: true })
    await query(world, other)
    const columns = Array.from({ length: 60 }, (_, n) => ({ name: `c${n}`, type: 'text' }))
    const path = `/v1/admin/projects/${greedy.projectId}/collections`
    const end = performance.now() + (world.isShort ? 15_000 : 25_000)
    let made = 0
    const change = async () => {
      while (performance.now() < end) {
        for (let n = 0; n < 4; n += 1)
          await world.call(greedy.developer, 'POST', path, { name: `wide_${made++}`, columns })
        await Promise.all(Array.from({ length: 4 }, () => query(world, greedy)))
      }
    }
    const waits = await waitsBeside(async () => (await query(world, other)).status === 200, change)
    const text = `one project has ${made} wide collections made, and each schema with them: the last of another's ${waits.answers} queries`
    return { claims: [within(text, waits.longest, 10_000, waits.refused)] }
  },
}

/** One user has the dearest variants of an image made, each of another size, while a user of another project has small ones made. */
export const images: Part = {
  name: 'images',
  bound: '30 s',
  async run(world) {
    const many = world.isShort ? 20 : 40
    const [greedy, other] = [(await world.tenant()).user, (await world.tenant()).user]
    const picture = await sharp({ create: { width: 64, height: 64, channels: 3, background: '#39c' } })
      .png()
      .toBuffer()
    const call = async (user: User, path: string, body: object) =>
      (await world.call(user.headers, 'POST', `/v1/client/media/${path}`, body)).body
    const keyOf = async (user: User): Promise<string> => {
      const file = { filename: 'a.png', mime_type: 'image/png', size_bytes: picture.length }
      const registered = await call(user, 'upload', file)
      const headers = { 'content-type': 'image/png' }
      await fetch(registered.upload_url, { method: 'PUT', body: new Uint8Array(picture), headers })
      const { id } = registered.data
      return (await call(user, 'commit', { upload_id: id, asset_id: id })).data.key
    }
    const urlOf = async (user: User, key: string, size: number, format: string): Promise<string> =>
      (await call(user, 'presign', { bucket: 'media', method: 'GET', key, w: size, h: size, format })).data.url
    const [dear, small] = [await keyOf(greedy), await keyOf(other)]
    const urls: string[] = []
    for (let n = 0; n < many; n += 1) urls.push(await urlOf(greedy, dear, 4096 - n, 'avif'))
    const all = () => {
      const signal = AbortSignal.timeout(60_000)
      return Promise.all(urls.map((one) => fetch(one, { signal }).catch(() => null)))
    }
    let size = 8
    const waits = await waitsBeside(async () => {
      size += 1
      return (await fetch(await urlOf(other, small, size, 'webp'))).status === 200
    }, all)
    const text = `one user has ${many} of the dearest variants of an image made: the last of ${waits.answers} small ones of another project`
    return { claims: [within(text, waits.longest, 30_000, waits.refused)] }
  },
}

/** One organization asks all of its projects through PostgREST, and no request of it ends; others have theirs started and ask. */
export const rest: Part = {
  name: 'rest',
  bound: '10 s',
  async run(world) {
    if (!findPostgrest(undefined)) return { claims: [], more: 'There is no PostgREST for this machine.' }
    const [greedy, ...others] = [await world.tenant(), await world.tenant(), await world.tenant()]
    const open = async (developer: Tenant['developer'], projectId: string) => {
      const path = `/v1/admin/projects/${projectId}`
      await world.call(developer, 'PATCH', path, { rest_enabled: true })
      const collection = { name: 'posts', read_policy: 'public', columns: [{ name: 'title', type: 'text' }] }
      await world.call(developer, 'POST', `${path}/collections`, collection)
    }
    const projects = await projectsOf(world, greedy, world.isShort ? 9 : 10)
    for (const { projectId } of projects) await open(greedy.developer, projectId)
    for (const { developer, projectId } of others) await open(developer, projectId)
    // a table that is locked stands for statements that last: each write answers when its time is over
    const holders = await Promise.all(
      projects.map(async ({ projectId }) => {
        const holder = await connectAdmin(world.installation.cluster, databaseOf(projectId))
        await holder.query('begin; lock table collections.posts in share mode')
        return holder
      }),
    )
    const read = async (headers: Readonly<Record<string, string>>) =>
      (await world.call(headers, 'GET', '/rest/v1/posts?select=id')).status
    const write = (headers: Readonly<Record<string, string>>) =>
      world.call({ ...headers, prefer: 'return=representation' }, 'POST', '/rest/v1/posts', { title: 'x' })
    const keys = await Promise.all(
      projects.map(async ({ projectId, key }) => {
        const { body } = await world.call(key, 'POST', '/v1/client/auth/anonymous', {})
        return {
          projectId,
          headers: { apikey: key['x-api-key'] ?? '', authorization: `Bearer ${body.data.session_token}` },
        }
      }),
    )
    const end = performance.now() + (world.isShort ? 15_000 : 20_000)
    const answers: Record<string, number> = {}
    const ask = async ({ headers }: (typeof keys)[number]) => {
      while (performance.now() < end) {
        const { status, body } = await write(headers)
        const answer = body.code ? `${status} ${body.code}` : String(status)
        answers[answer] = (answers[answer] ?? 0) + 1
        if (status === 503) await sleep(200)
      }
    }
    const all = () => Promise.all(keys.flatMap((one) => [ask(one), ask(one), ask(one)]))
    const headersOf = ({ user }: Tenant) => ({
      apikey: user.headers['x-api-key'] ?? '',
      authorization: user.headers['authorization'] ?? '',
    })
    const waits = await waitsBeside(async () => {
      const statuses = await Promise.all(others.map((one) => read(headersOf(one))))
      return statuses.every((status) => status === 200)
    }, all)
    for (const holder of holders) await holder.end()
    const seen = Object.entries(answers)
      .map(([status, n]) => `${n} times ${status}`)
      .join(', ')
    const text = `${projects.length} projects of one organization ask PostgREST without end, and are answered ${seen}: the last of ${waits.answers} requests of two others`
    return { claims: [within(text, waits.longest, 10_000, waits.refused)] }
  },
}

/** One account has as many databases made as it may, at once; another account one. */
export const databases: Part = {
  name: 'databases',
  bound: '15 s',
  async run(world) {
    const [greedy, other] = [await world.tenant(), await world.tenant()]
    const strangers = [await world.tenant(false), await world.tenant(false), await world.tenant(false)]
    const many = world.isShort ? 15 : 25
    const began = performance.now()
    let took = 0
    const greedily = async () => {
      await Promise.all([
        projectsOf(world, greedy, many),
        ...strangers.map((stranger) => projectsOf(world, stranger, 3)),
      ])
      took = performance.now() - began
    }
    let longest = 0
    await waitsBeside(async () => {
      longest = Math.max(longest, await createProject(world, other.developer))
      return true
    }, greedily)
    const text = `an account has ${many} databases made at once, and three that nobody has verified three each, which takes ${(took / 1000).toFixed(1)} s: the project of another`
    return { claims: [within(text, longest, 15_000)] }
  },
}
