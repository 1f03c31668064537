import { randomUUID } from 'node:crypto'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { commit, put, register, storedOf, upload } from '#test/support/media.ts'
import { endPrograms } from '#test/support/process.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Files that anybody reads at a lasting address. */
const harness = await startHarness()
const project = await harness.project()
const { admin } = project
let user: User
let png: Buffer
afterAll(endPrograms)
beforeAll(async () => {
  user = await project.user()
  png = await sharp({ create: { width: 60, height: 40, channels: 3, background: '#08f' } })
    .png()
    .toBuffer()
})

const avatar = (more: object = {}) =>
  upload(user, png, { mime_type: 'image/png', filename: 'me.png', is_public: true, ...more })
const urlOf = (id: string, of = project.id) => `${harness.url}/m/${of}/${id}`
const statusOf = async (url: string) => (await fetch(url)).status

test('a file is public from its commit on, for anybody and for caches', async () => {
  const registered = await register(user, { is_public: true, filename: 'hello.txt' })
  const url = urlOf(registered.id)
  expect(await statusOf(url)).toBe(404)
  await put(registered.uploadUrl, 'hello')
  expect(await statusOf(url)).toBe(404)
  const { data } = await commit(user, registered.id)
  expect(data).toMatchObject({ is_public: true, public_url: url })
  const answer = await fetch(url, { headers: { origin: 'https://app.example.org' } })
  expect([answer.status, await answer.text()]).toEqual([200, 'hello'])
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'cache-control': 'public, max-age=300',
    'content-type': 'text/plain',
    'content-disposition': 'inline; filename="hello.txt"',
    'content-security-policy': expect.stringContaining("default-src 'none'"),
    'x-content-type-options': 'nosniff',
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
    etag: expect.stringMatching(/^"[0-9a-f]{24}"$/),
  })
  const etag = String(answer.headers.get('etag'))
  expect((await fetch(url, { headers: { 'if-none-match': etag } })).status).toBe(304)
  expect((await fetch(url, { headers: { range: 'bytes=1-2' } })).status).toBe(206)
  const head = await fetch(url, { method: 'HEAD' })
  expect([head.status, head.headers.get('content-length')]).toEqual([200, '5'])
  expect((await fetch(`${url}?v=2`)).status).toBe(200)
  // what could run is saved, in a sandbox
  const svg = await upload(user, '<svg/>', { mime_type: 'image/svg+xml', filename: 'x.svg', is_public: true })
  const shown = (await fetch(svg['public_url'])).headers
  expect([shown.get('content-disposition'), shown.get('content-security-policy')]).toEqual([
    'attachment; filename="x.svg"',
    expect.stringContaining('sandbox'),
  ])
})

test('nothing else is: files that were not made public, of other projects, and ids that are none', async () => {
  const { id, public_url, is_public } = await upload(user)
  expect([is_public, public_url]).toEqual([false, null])
  const shown = await avatar()
  const other = await harness.project()
  for (const url of [
    urlOf(id),
    urlOf(shown.id, other.id),
    urlOf(shown.id, randomUUID()),
    urlOf(randomUUID()),
    urlOf('x'),
    urlOf(`${shown.id}/`),
    `${harness.url}/m/x/${shown.id}`,
  ])
    expect(await statusOf(url), url).toBe(404)
  expectRefusal(
    await user.post('/client/media/upload', {
      filename: 'a',
      mime_type: 'text/plain',
      size_bytes: 1,
      is_public: 'yes',
    }),
    400,
    'INVALID_INPUT',
    'is_public',
  )
})

describe('an address ends at once', () => {
  const withdrawn: Record<string, (file: { id: string; key: string }, of: User) => Promise<unknown>> = {
    'when it is withdrawn': ({ id }) => admin.patch(`/media/${id}`, { is_public: false }),
    'when its user deletes it': ({ id }, of) => of.delete(`/client/media/${id}`),
    'when an administrator deletes it': ({ id }) => admin.delete(`/media/${id}`),
    'when its user is deleted': (_, of) => admin.delete(`/users/${of.id}`),
    'when moderation hides it': async ({ id }) => {
      await admin.post('/moderation/rules', {
        name: 'Rule',
        rule_type: 'report_threshold',
        config: { count: 1, window_hours: 1, applies_to: ['media'] },
      })
      await user.post('/client/moderation/reports', { subject_type: 'media', subject_id: id, reason: 'spam' })
    },
  }
  test.each(Object.entries(withdrawn))('%s', async (_name, end) => {
    const owner = await project.user()
    const file = await upload(owner, png, { mime_type: 'image/png', is_public: true })
    const sized = `${file['public_url']}?w=10`
    expect([await statusOf(file['public_url']), await statusOf(sized)]).toEqual([200, 200])
    await end(file, owner)
    expect([await statusOf(file['public_url']), await statusOf(sized)]).toEqual([404, 404])
  })

  test('and comes back, when it is made public again or approved', async () => {
    const { id } = await upload(user)
    expect((await admin.patch(`/media/${id}`, { is_public: true })).data).toMatchObject({ public_url: urlOf(id) })
    expect(await statusOf(urlOf(id))).toBe(200)
    expect((await admin.patch(`/media/${id}`, { is_public: false })).data).toMatchObject({ public_url: null })
    expect(await statusOf(urlOf(id))).toBe(404)
    await admin.patch(`/media/${id}`, { alt_text: 'A file' })
    expect((await user.get(`/client/media/${id}`)).data.is_public).toBe(false)
  })

  test('when its project is paused, and with it', async () => {
    const other = await harness.project()
    const file = await upload(await other.user(), 'hello', { is_public: true })
    await harness.control('select internal.operator_project_pause($1, true)', [other.id])
    harness.running.services.projectCache.clear()
    expect(await statusOf(file['public_url'])).toBe(404)
    await harness.control('select internal.operator_project_pause($1, false)', [other.id])
    harness.running.services.projectCache.clear()
    expect(await statusOf(file['public_url'])).toBe(200)
  })
})

test('an image has any size, by the parameters of signed URLs', async () => {
  const file = await avatar()
  const answer = await fetch(`${file['public_url']}?w=30&h=30&fit=cover&format=jpeg`)
  expect([answer.status, answer.headers.get('content-type'), answer.headers.get('content-disposition')]).toEqual([
    200,
    'image/jpeg',
    'inline; filename="me.jpeg"',
  ])
  const { width, height, format } = await sharp(Buffer.from(await answer.arrayBuffer())).metadata()
  expect({ width, height, format }).toEqual({ width: 30, height: 30, format: 'jpeg' })
  expect((await fetch(`${file['public_url']}?w=30`)).headers.get('content-type')).toBe('image/webp')
  for (const [query, field] of [
    ['w=0', 'w'],
    ['w=4097', 'w'],
    ['h=1.5', 'h'],
    ['h=', 'h'],
    ['w=1&w=2', 'w'],
    ['fit=fill', 'fit'],
    ['format=gif', 'format'],
  ]) {
    const refused = await fetch(`${file['public_url']}?${query}`)
    const { error } = (await refused.json()) as any
    expect([refused.status, error.code, error.details.field], query).toEqual([400, 'INVALID_INPUT', field])
    expect(refused.headers.get('cache-control')).toBe('no-store')
  }
  const text = await upload(user, 'hello', { is_public: true })
  expect(await statusOf(`${text['public_url']}?w=10`)).toBe(400)
})

test('new bytes of a key are what the address shows', async () => {
  await harness.control('select internal.operator_project_set($1, $2)', [project.id, 'pro'])
  harness.running.services.projectCache.clear()
  const key = `user/${user.id}/again.txt`
  const sign = () =>
    user.post('/client/media/presign', { bucket: 'media', key, method: 'PUT', content_type: 'text/plain' })
  const first = (await sign()).data
  await put(first.url, 'one')
  await commit(user, first.asset_id)
  const { data } = await admin.patch(`/media/${first.asset_id}`, { is_public: true })
  expect(await (await fetch(data.public_url)).text()).toBe('one')
  await put((await sign()).data.url, 'other')
  expect(await (await fetch(data.public_url)).text()).toBe('one')
  await commit(user, first.asset_id)
  expect(await (await fetch(data.public_url)).text()).toBe('other')
})

test('strangers make few new sizes of a file, and read those that there are', async () => {
  const strict = await startHarness({ env: { GENERAL_RATE_LIMITS: 'on' } })
  const other = await strict.project()
  const file = await upload(await other.user(), png, { mime_type: 'image/png', is_public: true })
  const statuses: number[] = []
  for (let w = 1; w <= 20; w += 1) statuses.push(await statusOf(`${file['public_url']}?w=${w}`))
  expect(statuses.filter((status) => status === 200)).toHaveLength(16)
  expect(statuses.slice(16)).toEqual([429, 429, 429, 429])
  const limited = await fetch(`${file['public_url']}?w=99`)
  expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
  expect([await statusOf(`${file['public_url']}?w=1`), await statusOf(file['public_url'])]).toEqual([200, 200])
  expect((await storedOf(strict, other)).filter((name) => name.endsWith('.webp')).length).toBeLessThanOrEqual(17)
})
