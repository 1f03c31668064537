import { randomBytes } from 'node:crypto'
import { createClient } from '@supabase/supabase-js'
import { afterAll, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { startS3 } from '#test/support/s3.ts'

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
