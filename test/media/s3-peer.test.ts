// An S3 server that none of us wrote. S3_PEER_URL names one, in the form of STORAGE_URL, with a bucket for tests; without it these tests are skipped.
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createS3Storage } from '#server/media/s3.ts'
import { startHarness } from '#test/support/harness.ts'
import { commit, put, register, setTier, upload } from '#test/support/media.ts'
import { testStorage } from '#test/support/media_storage.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const peer = process.env['S3_PEER_URL'] ?? ''

if (peer) testStorage('a foreign S3 server', () => createS3Storage(peer, () => new Date()))

describe.skipIf(!peer)('over a foreign S3 server', async () => {
  const harness = peer ? await startHarness({ env: { STORAGE_URL: peer, LOG_LEVEL: 'silent' } }) : null
  const opened = async () => {
    if (!harness) throw new Error('skipped')
    const project = await harness.project()
    await setTier(harness, project, 'pro')
    return { project, user: await project.user() }
  }

  test('a file goes there and comes from there, whole, in ranges, and as the asset says', async () => {
    const { user } = await opened()
    const bytes = randomBytes(3_000_000)
    const asset = await upload(user, bytes, { mime_type: 'image/png', filename: 'photo ü.png' })
    expect(asset.size_bytes).toBe(bytes.length)
    const got = await fetch(asset.storage_url)
    expect(Buffer.from(await got.arrayBuffer()).equals(bytes)).toBe(true)
    expect(got.headers.get('content-type')).toBe('image/png')
    const part = await fetch(asset.storage_url, { headers: { range: 'bytes=1000-1999' } })
    expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 1000-1999/${bytes.length}`])
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(1000, 2000))).toBe(true)
    const head = await fetch(asset.storage_url, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(bytes.length)])
    expect((await user.delete(`/client/media/${asset.id}`)).status).toBe(200)
    expect((await fetch(got.url)).status).toBe(404)
  })

  test('its own checks of a signed URL hold: an altered one, another key, method, secret or time', async () => {
    const { user } = await opened()
    const asset = await upload(user, 'hello', { mime_type: 'text/plain', size_bytes: 5 })
    const redirect = await fetch(asset.storage_url, { redirect: 'manual' })
    const location = String(redirect.headers.get('location'))
    const at = location.indexOf('X-Amz-Signature=') + 16
    const altered = location.slice(0, at) + (location[at] === 'a' ? 'b' : 'a') + location.slice(at + 1)
    const { id, uploadUrl } = await register(user)
    for (const [url, method] of [
      [altered, 'GET'],
      [location.replace('X-Amz-Expires=', 'X-Amz-Expires=9'), 'GET'],
      [location.replace(asset.id, randomUUID()), 'GET'],
      [location, 'DELETE'],
      [uploadUrl.replace(id, randomUUID()), 'PUT'],
      [uploadUrl, 'GET'],
    ] as const) {
      const more = method === 'PUT' ? { body: 'hello', headers: { 'content-type': 'text/plain' } } : {}
      expect((await fetch(url, { method, ...more })).status, `${method} ${url}`).toBe(403)
    }
    expect((await put(uploadUrl, 'hello', 'text/html')).status).toBe(403)
    expect((await put(uploadUrl, 'hello!')).status).toBe(403)
    expectRefusal(await commit(user, id), 409, 'UPLOAD_NOT_FOUND')
    expect((await put(uploadUrl, 'hello')).status).toBe(200)
    const first = (await commit(user, id)).data
    // the URL lives on, and changes nothing any more
    expect((await put(uploadUrl, 'HELLO')).status).toBe(200)
    expect((await commit(user, id)).data.size_bytes).toBe(5)
    expect(await (await fetch(first.storage_url)).text()).toBe('hello')
    const wrong = createS3Storage(peer.replace(/:([^:@/]+)@/, ':wrong@'), () => new Date())
    const name = { projectId: randomUUID(), assetId: randomUUID(), object: 'a' }
    await expect(wrong.stat(name)).rejects.toThrow()
    await wrong.close()
  })
})
