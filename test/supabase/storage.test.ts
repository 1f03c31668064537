import { createClient } from '@supabase/supabase-js'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { setTier, storedOf } from '#test/support/media.ts'

const harness = await startHarness()
const project = await harness.project()
await project.admin.patch('', { rest_enabled: true })
const user = await project.user()
const other = await project.user()

const bucketOf = (session: string | null, key = project.clientKey, name = 'media') =>
  createClient(harness.url, key, session ? { accessToken: async () => session } : {}).storage.from(name)
const files = bucketOf(user.sessionToken)
const own = `user/${user.id}`
const textOf = async (path: string, from = files) => (await from.download(path)).data?.text()
const codeOf = (error: unknown) => (error as { code?: string } | null)?.code
const text = { contentType: 'text/plain' }

test('a file goes up raw, and as the form that a Blob is, and comes down again', async () => {
  const raw = await files.upload(`${own}/notes/raw.txt`, 'hello', { contentType: 'text/plain;charset=UTF-8' })
  expect(raw).toEqual({
    error: null,
    data: { path: `${own}/notes/raw.txt`, id: expect.any(String), fullPath: `media/${own}/notes/raw.txt` },
  })
  expect(await textOf(`${own}/notes/raw.txt`)).toBe('hello')
  // the bytes of a form may be anything, also what looks like its end
  const bytes = Buffer.from(`a\r\n------x\r\n${'é'.repeat(70_000)}\r\n--`)
  const form = await files.upload(`${own}/form.bin`, new Blob([bytes], { type: 'application/octet-stream' }))
  expect(form.error).toBeNull()
  const { data } = await files.download(`${own}/form.bin`)
  expect(Buffer.from((await data?.arrayBuffer()) as ArrayBuffer).equals(bytes)).toBe(true)
  const stored = await project.sql('select size_bytes, mime_type, status from app.media_assets where key = $1', [
    `${own}/form.bin`,
  ])
  expect(stored).toEqual([
    { size_bytes: String(bytes.length), mime_type: 'application/octet-stream', status: 'committed' },
  ])
  expect((await files.exists(`${own}/form.bin`)).data).toBe(true)
  expect((await files.info(`${own}/form.bin`)).data).toMatchObject({ size: bytes.length, bucketId: 'media' })
})

test('a text keeps its charset, and a file has a version', async () => {
  const path = `${own}/charset.txt`
  expect((await files.upload(path, 'h\u00e9llo', { contentType: 'text/plain;charset=UTF-8' })).error).toBeNull()
  expect((await files.download(path)).data?.type).toBe('text/plain;charset=utf-8')
  const url = (await files.createSignedUrl(path, 60)).data?.signedUrl ?? ''
  expect((await fetch(url)).headers.get('content-type')).toMatch(/^text\/plain; ?charset=utf-8$/)
  const { data } = await files.info(path)
  expect(data).toMatchObject({ contentType: 'text/plain;charset=utf-8', version: expect.any(String) })
  expect(data?.etag).toBe(`"${data?.version}"`)
})

test('a file is replaced where that is asked for', async () => {
  const path = `${own}/twice.txt`
  expect((await files.upload(path, 'one', text)).error).toBeNull()
  const before = await storedOf(harness, project)
  expect(codeOf((await files.upload(path, 'two', text)).error)).toBe('KeyAlreadyExists')
  expect(await textOf(path)).toBe('one')
  expect((await files.upload(path, 'three', { ...text, upsert: true })).error).toBeNull()
  expect(await textOf(path)).toBe('three')
  expect((await files.update(path, 'fourth', text)).error).toBeNull()
  expect(await textOf(path)).toBe('fourth')
  // what was replaced is gone
  expect((await storedOf(harness, project)).length).toBe(before.length)
})

test('signed URLs are relative to the root of the REST access, and hold what they sign', async () => {
  const path = `${own}/ä b(1).txt`
  await files.upload(path, 'signed', text)
  const { data } = await files.createSignedUrl(path, 60)
  expect(data?.signedUrl.startsWith(`${harness.url}/storage/v1/object/sign/media/user/`)).toBe(true)
  const fetched = await fetch(data?.signedUrl as string)
  expect(await fetched.text()).toBe('signed')
  expect(fetched.headers.get('content-disposition')).toContain('inline')
  const saved = await files.createSignedUrl(path, 60, { download: 'other.txt' })
  expect((await fetch(saved.data?.signedUrl as string)).headers.get('content-disposition')).toBe(
    'attachment; filename="other.txt"',
  )
  await files.upload(`${own}/x.txt`, 'x', text)
  const url = data?.signedUrl ?? ''
  const moved = url.replace(/media\/.*\?/, `media/${own}/x.txt?`)
  expect((await fetch(moved)).status).toBe(403)
  expect((await fetch(url.replace(/.{8}$/, 'AAAAAAAA'))).status).toBe(403)
  const many = await files.createSignedUrls([path, `${own}/none.txt`, `user/${other.id}/x`], 60)
  expect(many.data?.map(({ error }) => error === null)).toEqual([true, false, false])
  expect(await (await fetch(many.data?.[0]?.signedUrl as string)).text()).toBe('signed')
  harness.setTime(new Date(harness.now().getTime() + 61_000).toISOString())
  expect((await fetch(data?.signedUrl as string)).status).toBe(403)
  harness.setTime(null)
})

test('an image is changed on its way', async () => {
  const png = await sharp({ create: { width: 40, height: 20, channels: 3, background: '#fff' } })
    .png()
    .toBuffer()
  await files.upload(`${own}/i.png`, new Blob([new Uint8Array(png)], { type: 'image/png' }))
  const { data } = await files.createSignedUrl(`${own}/i.png`, 60, { transform: { width: 10, height: 10 } })
  const changed = Buffer.from(await (await fetch(data?.signedUrl as string)).arrayBuffer())
  expect(await sharp(changed).metadata()).toMatchObject({ width: 10, height: 10 })
  await files.upload(`${own}/t.txt`, 'x', text)
  const refused = await files.createSignedUrl(`${own}/t.txt`, 60, { transform: { width: 10 } })
  expect(codeOf(refused.error)).toBe('INVALID_INPUT')
})

test('a folder is listed by name, in parts, and in both directions', async () => {
  const mine = await project.user()
  const of = bucketOf(mine.sessionToken)
  for (const name of ['b.txt', 'a.txt', 'c/1.txt', 'c/2/3.txt', 'c-d.txt', 'c0.txt']) {
    expect((await of.upload(`user/${mine.id}/l/${name}`, name, text)).error).toBeNull()
  }
  const names = async (folder: string, more = {}, from = of) =>
    (await from.list(folder, more)).data?.map(({ name, id }) => `${name}${id === null ? '/' : ''}`)
  const folder = `user/${mine.id}/l`
  const all = ['a.txt', 'b.txt', 'c-d.txt', 'c/', 'c0.txt']
  expect(await names(folder)).toEqual(all)
  expect(await names(`${folder}/`, { sortBy: { column: 'name', order: 'desc' } })).toEqual([...all].reverse())
  expect(await names(folder, { limit: 2, offset: 2 })).toEqual(['c-d.txt', 'c/'])
  expect(await names(folder, { search: 'c' })).toEqual(['c-d.txt', 'c/', 'c0.txt'])
  expect(await names(`${folder}/c`)).toEqual(['1.txt', '2/'])
  expect(await names('')).toEqual(['user/'])
  expect(await names('user')).toEqual([`${mine.id}/`])
  expect((await of.list(folder)).data?.[0]).toMatchObject({ metadata: { size: 5, mimetype: 'text/plain' } })
  // of somebody else, nothing
  expect(await names(folder, {}, files)).toEqual([])
  expect(await names(folder, {}, bucketOf(null, project.serverKey))).toEqual(all)
  const created = ['c/', 'b.txt', 'a.txt', 'c-d.txt', 'c0.txt']
  expect(await names(folder, { sortBy: { column: 'created_at', order: 'asc' } })).toEqual(created)
  expect(await names(folder, { sortBy: { column: 'updated_at', order: 'desc' }, limit: 2 })).toEqual(['c/', 'c0.txt'])
  expect(await names(folder, { sortBy: { column: 'created_at' }, offset: 3 })).toEqual(['c-d.txt', 'c0.txt'])
  expect(codeOf((await of.list(folder, { sortBy: { column: 'size' } })).error)).toBe('INVALID_INPUT')
  await project.sql('update app.media_assets set blocked_at = now() where key = $1', [`${folder}/a.txt`])
  expect(await names(folder)).toEqual(all.slice(1))
})

test('files are removed, with their bytes', async () => {
  const path = `${own}/gone.txt`
  const { data } = await files.upload(path, 'gone', text)
  const removed = await files.remove([path, `${own}/never.txt`])
  expect(removed.data).toMatchObject([{ name: path, id: data?.id, bucket_id: 'media' }])
  expect(codeOf((await files.info(path)).error)).toBe('NoSuchKey')
  expect((await files.exists(path)).data).toBe(false)
  expect((await storedOf(harness, project)).some((name) => name.includes(data?.id as string))).toBe(false)
  expect(codeOf((await files.remove([`user/${other.id}/x`])).error)).toBe('AccessDenied')
})

test('what is refused, with the codes that clients know', async () => {
  const codes = [
    (await files.upload(`user/${other.id}/x.txt`, 'x', text)).error,
    (await files.upload(`${own}/x.html`, 'x', { contentType: 'text/html' })).error,
    (await files.upload('elsewhere/x.txt', 'x', text)).error,
    (await files.upload(`${own}/empty.txt`, '', text)).error,
    (await files.upload(`${own}/m.txt`, 'x', { ...text, metadata: { a: 'x'.repeat(9000) } })).error,
    (await files.upload(`${own}/m.txt`, new Blob(['x'], { type: 'text/plain' }), { metadata: { a: 'x'.repeat(9000) } }))
      .error,
    (await bucketOf(user.sessionToken, project.clientKey, 'avatars').upload('x.txt', 'x', text)).error,
    (await bucketOf(null).upload(`${own}/x.txt`, 'x', text)).error,
    (await files.download(`user/${other.id}/x.txt`)).error,
    (await files.move(`${own}/a`, `${own}/b`)).error,
    (await files.createSignedUrl(`${own}/x.txt`, 0)).error,
    (
      await files.createSignedUrls(
        Array.from({ length: 101 }, () => 'x'),
        60,
      )
    ).error,
  ].map(codeOf)
  expect(codes).toEqual([
    'AccessDenied',
    'InvalidMimeType',
    'INVALID_INPUT',
    'INVALID_INPUT',
    'INVALID_INPUT',
    'INVALID_INPUT',
    'NoSuchBucket',
    'UNAUTHORIZED',
    'AccessDenied',
    'NoSuchKey',
    'INVALID_INPUT',
    'INVALID_INPUT',
  ])
})

const raw = (path: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  fetch(`${harness.url}/storage/v1/object/media/${path}`, {
    method: 'POST',
    body,
    headers: { apikey: project.clientKey, authorization: `Bearer ${user.sessionToken}`, ...headers },
  })

test('forms that are none, and bodies that are too long', async () => {
  const form = { 'content-type': 'multipart/form-data; boundary=b' }
  const part = '--b\r\ncontent-disposition: form-data; name=""; filename="x"\r\ncontent-type: text/plain\r\n\r\n'
  const bodies = ['', 'x', '--b--\r\n', part, `${part}x\r\n--c--`, `--b\r\nx: y\r\n\r\n\r\n--b--`, '--b\r\n'.repeat(50)]
  for (const body of bodies) expect((await raw(`${own}/f.txt`, body, form)).status, body).toBe(400)
  expect((await raw(`${own}/f.txt`, `${part}\r\n--b--`, form)).status).toBe(400)
  expect((await raw(`${own}/f.txt`, `${part}x\r\n--b--`, { 'content-type': 'multipart/form-data' })).status).toBe(400)
  expect((await raw(`${own}/f.txt`, `${part}x\r\n--b--`, form)).status).toBe(200)
  expect(await textOf(`${own}/f.txt`)).toBe('x')
  const long = await raw(`${own}/long.bin`, new Uint8Array(52_428_801), { 'content-type': 'application/octet-stream' })
  expect(await long.json()).toMatchObject({ code: 'EntityTooLarge', statusCode: '413' })
  const json = await fetch(`${harness.url}/storage/v1/object/list/media`, {
    method: 'POST',
    body: '{',
    headers: { apikey: project.serverKey, 'content-type': 'application/json' },
  })
  expect(await json.json()).toMatchObject({ code: 'INVALID_INPUT', statusCode: '400' })
})

test('the budget of a free project holds, also where a larger file takes the place of a smaller one', async () => {
  const free = await harness.project()
  await free.admin.patch('', { rest_enabled: true })
  await setTier(harness, free, 'free')
  const someone = await free.user()
  const of = bucketOf(someone.sessionToken, free.clientKey)
  const path = `user/${someone.id}/a.txt`
  expect((await of.upload(path, '12345', text)).error).toBeNull()
  const used = 262_144_000 - 10
  await free.sql('insert into app.media_totals (registered_bytes, stored_bytes, objects) values ($1, 0, 0)', [used])
  expect((await of.upload(path, '1234567890', { ...text, upsert: true })).error).toBeNull()
  expect(codeOf((await of.upload(path, '12345678901', { ...text, upsert: true })).error)).toBe(
    'FREE_TIER_LIMIT_REACHED',
  )
  expect(codeOf((await of.upload(`user/${someone.id}/b.txt`, '1', text)).error)).toBe('FREE_TIER_LIMIT_REACHED')
  expect(await textOf(path, of)).toBe('1234567890')
  expect((await of.remove([path])).error).toBeNull()
  expect((await of.upload(`user/${someone.id}/b.txt`, '1', text)).error).toBeNull()
})

test('the access is closed together with that to rows, also for signed URLs', async () => {
  const closing = await harness.project()
  await closing.admin.patch('', { rest_enabled: true })
  const someone = await closing.user()
  const of = bucketOf(someone.sessionToken, closing.clientKey)
  const path = `user/${someone.id}/a.txt`
  expect((await of.upload(path, 'x', text)).error).toBeNull()
  const { data } = await of.createSignedUrl(path, 60)
  await closing.admin.patch('', { rest_enabled: false })
  expect(codeOf((await of.list(`user/${someone.id}`)).error)).toBe('REST_DISABLED')
  expect(await (await fetch(data?.signedUrl as string)).json()).toMatchObject({ code: 'REST_DISABLED' })
})
