import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { createFileStorage } from '#server/media/files.ts'
import { createS3Storage, readStorageUrl } from '#server/media/s3.ts'
import { startHarness } from '#test/support/harness.ts'
import { commit, put, register, setTier, upload } from '#test/support/media.ts'
import { testStorage } from '#test/support/media_storage.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startS3 } from '#test/support/s3.ts'
import { loadTasks } from '#workers/task.ts'

const s3 = await startS3()
const harness = await startHarness({ env: { STORAGE_URL: s3.url, LOG_LEVEL: 'silent' } })
const project = await harness.project()
const paid = await harness.project()
await setTier(harness, paid, 'pro')
const { services } = harness.running
afterEach(() => {
  s3.isDown = false
})
afterAll(() => s3.stop())

const keysOf = (id: string) => [...s3.objects.keys()].filter((key) => key.includes(id))
const get = (url: string, headers: Record<string, string> = {}) => fetch(url, { headers })

testStorage('files', (folder) => createFileStorage(join(folder, 'media')))
testStorage('S3', () => createS3Storage(s3.url, () => new Date()))

describe('over S3', () => {
  test('a file goes to the storage and comes from it, by URLs that it verifies itself', async () => {
    const user = await project.user()
    const bytes = randomBytes(200_000)
    const asset = await upload(user, bytes, { mime_type: 'image/png', filename: 'photo ü.png' })
    expect(asset.size_bytes).toBe(bytes.length)
    expect(keysOf(asset.id)).toEqual([
      expect.stringMatching(new RegExp(`^media/${project.id}/objects/${asset.id}/[0-9a-f]{24}$`)),
    ])
    const redirect = await fetch(asset.storage_url, { redirect: 'manual' })
    expect([redirect.status, redirect.headers.get('location')]).toEqual([
      302,
      expect.stringContaining('X-Amz-Signature='),
    ])
    const got = await get(asset.storage_url)
    expect(Buffer.from(await got.arrayBuffer()).equals(bytes)).toBe(true)
    expect([got.headers.get('content-type'), got.headers.get('content-disposition')]).toEqual([
      'image/png',
      `inline; filename="photo _.png"; filename*=UTF-8''photo%20%C3%BC.png`,
    ])
    expect((await get(asset.storage_url, { range: 'bytes=0-9' })).status).toBe(206)
    const head = await fetch(asset.storage_url, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(bytes.length)])
    // our URL and the storage's: altered in one character
    const location = String(redirect.headers.get('location'))
    for (const url of [asset.storage_url, location]) {
      const at = url.indexOf('ignature=') + 12
      expect((await get(url.slice(0, at) + (url[at] === 'a' ? 'b' : 'a') + url.slice(at + 1))).status).toBe(403)
    }
    expect((await get(location.replace('image%2Fpng', 'text%2Fhtml'))).status).toBe(403)
    expect((await fetch(location, { method: 'DELETE' })).status).toBe(403)
    // the URL of the upload goes on being valid, for a free project too: it changes nothing, and the asset stays until it has expired
    expectRefusal(await user.delete(`/client/media/${asset.id}`), 409, 'UPLOAD_WINDOW_OPEN')
  })

  test('a public file comes from it by URLs of two minutes, which end when the file is withdrawn', async () => {
    const user = await project.user()
    const png = await sharp({ create: { width: 60, height: 40, channels: 3, background: '#08f' } })
      .png()
      .toBuffer()
    const asset = await upload(user, png, { mime_type: 'image/png', filename: 'me.png', is_public: true })
    for (const url of [asset['public_url'], `${asset['public_url']}?w=30&format=webp`]) {
      const redirect = await fetch(url, { redirect: 'manual' })
      await redirect.body?.cancel()
      expect([redirect.status, redirect.headers.get('cache-control')]).toEqual([302, 'public, max-age=60'])
      const location = String(redirect.headers.get('location'))
      // of the 120 seconds some may be over before the storage signs
      expect(location).toMatch(/X-Amz-Expires=1(1\d|20)\b/)
      const stored = await get(location)
      await stored.arrayBuffer()
      expect(stored.headers.get('cache-control')).toBe('public, max-age=60')
      expect((await fetch(url, { method: 'HEAD' })).status).toBe(200)
    }
    expect(Buffer.from(await (await get(asset['public_url'])).arrayBuffer()).equals(png)).toBe(true)
    const small = await get(`${asset['public_url']}?w=30&format=webp`)
    expect(small.headers.get('content-type')).toBe('image/webp')
    expect(await sharp(Buffer.from(await small.arrayBuffer())).metadata()).toMatchObject({ width: 30, height: 20 })
    expect((await project.admin.patch(`/media/${asset.id}`, { is_public: false })).status).toBe(200)
    for (const url of [asset['public_url'], `${asset['public_url']}?w=30&format=webp`])
      expect((await fetch(url, { redirect: 'manual' })).status).toBe(404)
  })

  test('type, size, method, key and time of an upload are signed', async () => {
    const user = await project.user()
    const { id, uploadUrl } = await register(user)
    expect((await put(uploadUrl, 'hello', 'text/html')).status).toBe(403)
    expect((await put(uploadUrl, 'hello!')).status).toBe(403)
    expect((await fetch(uploadUrl)).status).toBe(403)
    expect((await put(uploadUrl.replace(id, randomUUID()), 'hello')).status).toBe(403)
    expect((await put(uploadUrl.replace('X-Amz-Expires=', 'X-Amz-Expires=9'), 'hello')).status).toBe(403)
    expectRefusal(await commit(user, id), 409, 'UPLOAD_NOT_FOUND')
    expect((await put(uploadUrl, 'hello')).status).toBe(200)
    const first = (await commit(user, id)).data
    expect((await put(uploadUrl, 'HELLO')).status).toBe(200)
    expect((await commit(user, id)).data).toMatchObject({ size_bytes: 5 })
    expect(await (await get(first.storage_url)).text()).toBe('hello')
  })

  test('what is not as registered is refused at the commit', async () => {
    const user = await paid.user()
    const { id, uploadUrl } = await register(user, { size_bytes: undefined })
    expect((await put(uploadUrl, '')).status).toBe(200)
    expectRefusal(await commit(user, id), 409, 'UPLOAD_NOT_FOUND')
    expect((await put(uploadUrl, new Uint8Array(50 * 1048576 + 1))).status).toBe(200)
    expectRefusal(await commit(user, id), 400, 'INVALID_INPUT')
    const [key = ''] = keysOf(id)
    s3.objects.set(key, { bytes: Buffer.from('x'), type: 'text/html', at: new Date() })
    expectRefusal(await commit(user, id), 400, 'INVALID_INPUT')
    expectRefusal(await user.get(`/client/media/${id}`), 404, 'NOT_FOUND')
    expect((await put(uploadUrl, 'fine')).status).toBe(200)
    expect((await commit(user, id)).data.size_bytes).toBe(4)
    // deleted: an upload that comes late is removed by the cleanup
    expect((await user.delete(`/client/media/${id}`)).status).toBe(200)
    expect(keysOf(id)).toEqual([])
    expect((await put(uploadUrl, 'late')).status).toBe(200)
    expectRefusal(await commit(user, id), 404, 'NOT_FOUND')
    const [late = ''] = keysOf(id)
    s3.objects.set(late, { bytes: Buffer.from('late'), type: 'text/plain', at: new Date(Date.now() - 90_000_000) })
    const { jobs } = await loadTasks()
    await jobs.find(({ name }) => name === 'fleet__maintain')?.run(services, {})
    await paid.drain()
    expect(keysOf(id)).toEqual([])
  })

  test('presigned keys are replaced by a commit, and read by a URL of the storage', async () => {
    const user = await paid.user()
    const key = `user/${user.id}/a b/ü.txt`
    const presign = (method: string) =>
      user.post('/client/media/presign', { bucket: 'media', key, method, content_type: 'text/plain' })
    for (const text of ['one', 'two']) {
      const { data } = await presign('PUT')
      expect((await put(data.url, text)).status).toBe(200)
      expect((await commit(user, data.asset_id)).status).toBe(200)
      expect(keysOf(data.asset_id)).toHaveLength(1)
      const { url } = (await presign('GET')).data
      expect(await (await get(url)).text()).toBe(text)
    }
  })

  test('an outage is 503 at the commit, and bytes are removed when it is over', async () => {
    const user = await paid.user()
    const { id, uploadUrl } = await register(user)
    await put(uploadUrl, 'hello')
    s3.isDown = true
    expectRefusal(await commit(user, id), 503, 'UPLOAD_UNVERIFIED')
    s3.isDown = false
    expect((await commit(user, id)).status).toBe(200)
    s3.isDown = true
    expectRefusal(await user.delete(`/client/media/${id}`), 500, 'DELETE_FAILED')
    s3.isDown = false
    expect((await user.delete(`/client/media/${id}`)).status).toBe(200)
    expect(keysOf(id)).toEqual([])
  })

  test('this server takes no bytes itself', async () => {
    const link = {
      projectId: paid.id,
      key: 'user/x/a',
      assetId: randomUUID(),
      version: 'a'.repeat(24),
      mimeType: 'text/plain',
      sizeBytes: null,
    }
    const url = services.media.links.upload(link, new Date(Date.now() + 60_000))
    expect((await put(url, 'hello')).status).toBe(403)
  })

  test('a deleted project leaves nothing', async () => {
    const doomed = await harness.project()
    const { id } = await upload(await doomed.user())
    expect((await doomed.developer.delete(`/admin/projects/${doomed.id}`)).data.file_purge).toEqual({ locations: 1 })
    const { jobs } = await loadTasks()
    const [purge] = await harness.control('select id from app.file_purges where project_id = $1', [doomed.id])
    await jobs.find(({ name }) => name === 'files__purge')?.run(services, { purge_id: purge.id })
    expect(keysOf(id)).toEqual([])
  })
})

test('STORAGE_URL names the place, or the start says what is wrong', () => {
  expect(readStorageUrl('s3://K:a%2Fb@s3.example.com/my-bucket?region=eu-west-1')).toEqual({
    endpoint: 'https://s3.example.com',
    bucket: 'my-bucket',
    region: 'eu-west-1',
    accessKeyId: 'K',
    secretAccessKey: 'a/b',
  })
  expect(readStorageUrl('s3://K:S@127.0.0.1:9000/bucket?tls=off&path=/s3')).toMatchObject({
    endpoint: 'http://127.0.0.1:9000/s3',
    region: 'us-east-1',
  })
  for (const wrong of [
    '',
    'x',
    'https://K:S@h/b',
    's3://h/bucket',
    's3://K@h/bucket',
    's3://K:S@h',
    's3://K:S@h/a/b',
    's3://K:S@h/bucket?tls=no',
  ])
    expect(() => readStorageUrl(wrong), wrong).toThrow(/STORAGE_URL must be/)
})
