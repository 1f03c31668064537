import { randomBytes } from 'node:crypto'
import { createClient } from '@supabase/supabase-js'
import { afterAll, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { startS3 } from '#test/support/s3.ts'
import { newBucket, storageOf } from '#test/support/supabase_storage.ts'

/** The access to storage where files lie in S3: the server passes an upload on to the URL that it signed. */
const s3 = await startS3()
afterAll(() => s3.stop())
const harness = await startHarness({ env: { STORAGE_URL: s3.url, LOG_LEVEL: 'silent' } })
const project = await harness.project()
await project.admin.patch('', { rest_enabled: true })
const user = await project.user()
const files = createClient(harness.url, project.clientKey, {
  accessToken: async () => user.sessionToken,
}).storage.from('media')
const own = `user/${user.id}`
const bytesOf = async (path: string) => {
  const { data, error } = await files.download(path)
  return data ? Buffer.from(await data.arrayBuffer()) : error
}

test('files go up raw and as a form, come down, are listed, signed, replaced and removed', async () => {
  const [raw, form] = [randomBytes(300_000), randomBytes(70_000)]
  const octets = { contentType: 'application/octet-stream' }
  expect((await files.upload(`${own}/raw.bin`, raw, octets)).error).toBeNull()
  expect((await files.upload(`${own}/form.bin`, new Blob([form], { type: 'image/png' }))).error).toBeNull()
  expect((await bytesOf(`${own}/raw.bin`)) as Buffer).toEqual(raw)
  expect((await bytesOf(`${own}/form.bin`)) as Buffer).toEqual(form)
  expect([...s3.objects.values()].map((kept) => kept.bytes.length).sort()).toEqual([300_000, 70_000])

  expect((await files.upload(`${own}/raw.bin`, form, { ...octets, upsert: true })).error).toBeNull()
  expect((await bytesOf(`${own}/raw.bin`)) as Buffer).toEqual(form)
  expect((await files.list(own)).data?.map(({ name }) => name)).toEqual(['form.bin', 'raw.bin'])
  const { data } = await files.createSignedUrl(`${own}/form.bin`, 60)
  expect(Buffer.from(await (await fetch(data?.signedUrl ?? '')).arrayBuffer())).toEqual(form)

  expect(await files.remove([`${own}/raw.bin`, `${own}/form.bin`])).toMatchObject({ error: null, data: [{}, {}] })
  expect(s3.objects.size).toBe(0)
})

test('a storage that is down refuses an upload, and the file is not there', async () => {
  s3.isDown = true
  const { error } = await files.upload(`${own}/lost.txt`, 'hello', { contentType: 'text/plain' })
  s3.isDown = false
  expect((error as { status?: number } | null)?.status).toBe(503)
  expect((await files.exists(`${own}/lost.txt`)).data).toBe(false)
  expect((await files.upload(`${own}/lost.txt`, 'hello', { contentType: 'text/plain' })).error).toBeNull()
  expect(String(await bytesOf(`${own}/lost.txt`))).toBe('hello')
})

test('buckets, public files, moves, copies and signed uploads are the same there', async () => {
  const server = storageOf(harness, project)
  const bucket = await newBucket(server, { public: true, fileSizeLimit: '1MB' })
  const of = storageOf(harness, project, user.sessionToken).from(bucket.name)
  const bytes = randomBytes(200_000)
  const octets = { contentType: 'application/octet-stream', metadata: { a: 1 } }
  const before = s3.objects.size
  expect((await of.upload(`${user.id}/a.bin`, bytes, octets)).error).toBeNull()
  const { publicUrl } = of.getPublicUrl(`${user.id}/a.bin`).data
  const sent = await fetch(publicUrl)
  expect(Buffer.from(await sent.arrayBuffer())).toEqual(bytes)
  const redirect = await fetch(publicUrl, { redirect: 'manual' })
  expect([redirect.status, redirect.headers.get('cache-control')]).toEqual([302, 'public, max-age=60'])
  expect((await of.move(`${user.id}/a.bin`, `${user.id}/b.bin`)).error).toBeNull()
  expect((await of.copy(`${user.id}/b.bin`, `${user.id}/c.bin`)).error).toBeNull()
  expect((await of.remove([`${user.id}/b.bin`])).error).toBeNull()
  const { data } = await of.download(`${user.id}/c.bin`)
  expect(Buffer.from((await data?.arrayBuffer()) as ArrayBuffer)).toEqual(bytes)
  expect((await of.info(`${user.id}/c.bin`)).data?.metadata).toEqual({ a: 1 })
  const signed = await of.createSignedUploadUrl(`${user.id}/d.bin`)
  const put = await of.uploadToSignedUrl(`${user.id}/d.bin`, signed.data?.token ?? '', bytes, octets)
  expect(put.error).toBeNull()
  const long = await of.upload(`${user.id}/e.bin`, randomBytes(1_000_001), octets)
  expect(long.error).toMatchObject({ statusCode: '413' })
  expect((await server.emptyBucket(bucket.name)).error).toBeNull()
  await project.drain()
  expect(s3.objects.size).toBe(before)
  expect((await server.deleteBucket(bucket.name)).error).toBeNull()
})
