import { createClient } from '@supabase/supabase-js'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { storedOf } from '#test/support/media.ts'
import { codeOf, newBucket, storageOf, text, textOf } from '#test/support/supabase_storage.ts'

const harness = await startHarness()
const project = await harness.project()
await project.admin.patch('', { rest_enabled: true })
const [user, other] = [await project.user(), await project.user()]
const server = storageOf(harness, project)
const mine = storageOf(harness, project, user.sessionToken)
const theirs = storageOf(harness, project, other.sessionToken)
const png = await sharp({ create: { width: 40, height: 20, channels: 3, background: '#fff' } })
  .png()
  .toBuffer()
const image = new Blob([new Uint8Array(png)], { type: 'image/png' })

test('anybody reads the files of a public bucket, without a key', async () => {
  const bucket = await newBucket(server, { public: true })
  const path = `${user.id}/ä b(1).txt`
  await mine.from(bucket.name).upload(path, 'hello', { contentType: 'text/plain;charset=UTF-8' })
  const { publicUrl } = bucket.server.getPublicUrl(path).data
  expect(publicUrl.startsWith(`${harness.url}/p/${project.id}/storage/v1/object/public/${bucket.name}/`)).toBe(true)
  const got = await fetch(publicUrl)
  expect(await got.text()).toBe('hello')
  expect(got.headers.get('cache-control')).toBe('public, max-age=300')
  expect(got.headers.get('content-type')).toBe('text/plain;charset=utf-8')
  const tag = got.headers.get('etag') ?? ''
  expect((await fetch(publicUrl, { headers: { 'if-none-match': tag } })).status).toBe(304)
  const part = await fetch(publicUrl, { headers: { range: 'bytes=1-2' } })
  expect([part.status, await part.text()]).toEqual([206, 'el'])
  expect((await fetch(publicUrl, { method: 'HEAD' })).headers.get('content-length')).toBe('5')
  const saved = await fetch(bucket.server.getPublicUrl(path, { download: 'o.txt', cacheNonce: '1' }).data.publicUrl)
  expect(saved.headers.get('content-disposition')).toBe('attachment; filename="o.txt"')
  // a signed-in user reads what anybody reads, and changes none of it
  expect(await textOf(theirs.from(bucket.name), path)).toBe('hello')
  expect((await theirs.from(bucket.name).remove([path])).error).toMatchObject({ code: 'NoSuchKey' })
  expect(codeOf((await theirs.from(bucket.name).move(path, `${other.id}/x.txt`)).error)).toBe('NoSuchKey')
  expect(await textOf(bucket.server, path)).toBe('hello')
  // withdrawn in any way it is gone at once
  await project.sql('update app.media_assets set blocked_at = now() where bucket = $1', [bucket.name])
  expect((await fetch(publicUrl)).status).toBe(404)
  await project.sql('update app.media_assets set blocked_at = null where bucket = $1', [bucket.name])
  await server.updateBucket(bucket.name, { public: false })
  expect(await (await fetch(publicUrl)).json()).toMatchObject({ code: 'NoSuchKey', statusCode: '404' })
  await project.admin.patch('', { rest_enabled: false })
  await server.updateBucket(bucket.name, { public: true })
  expect((await fetch(publicUrl)).status).toBe(403)
  await project.admin.patch('', { rest_enabled: true })
})

test('a public address names its project by its root', async () => {
  const bucket = await newBucket(server, { public: true })
  await bucket.server.upload('a.txt', 'hello', text)
  const plain = createClient(harness.url, project.clientKey).storage.from(bucket.name).getPublicUrl('a.txt').data
  const refused = await fetch(plain.publicUrl)
  expect([refused.status, codeOf(await refused.json())]).toEqual([404, 'PROJECT_NOT_NAMED'])
  expect(await (await fetch(plain.publicUrl, { headers: { apikey: project.clientKey } })).text()).toBe('hello')
  // a key of another project is refused under this root
  const foreign = await harness.project()
  await foreign.admin.patch('', { rest_enabled: true })
  const mixed = createClient(`${harness.url}/p/${project.id}`, foreign.serverKey).storage
  expect((await mixed.listBuckets()).error).toMatchObject({ statusCode: '401' })
  const nobody = `${harness.url}/p/${crypto.randomUUID()}/storage/v1/object/public/${bucket.name}/a.txt`
  expect((await fetch(nobody)).status).toBe(403)
  const elsewhere = await fetch(`${harness.url}/p/${foreign.id}/storage/v1/object/public/${bucket.name}/a.txt`)
  expect(codeOf(await elsewhere.json())).toBe('NoSuchBucket')
  expect((await fetch(`${harness.url}/p/${project.id}/v1/client/media`)).status).toBe(404)
})

test('images are changed on their way, for their readers and in public', async () => {
  const bucket = await newBucket(server, { public: true })
  await bucket.server.upload('i.png', image)
  await bucket.server.upload('t.txt', 'x', text)
  const sizeOf = async (blob: Blob | null) => sharp(Buffer.from(await (blob as Blob).arrayBuffer())).metadata()
  const small = await bucket.server.download('i.png', { transform: { width: 10, height: 10, quality: 50 } })
  expect(await sizeOf(small.data)).toMatchObject({ width: 10, height: 10, format: 'webp' })
  const kept = await bucket.server.download('i.png', { transform: { width: 8, format: 'origin' } })
  expect(await sizeOf(kept.data)).toMatchObject({ width: 8, format: 'png' })
  const { publicUrl } = bucket.server.getPublicUrl('i.png', { transform: { width: 12, resize: 'contain' } }).data
  const shown = await fetch(publicUrl)
  expect(shown.headers.get('cache-control')).toBe('public, max-age=300')
  expect(await sizeOf(await shown.blob())).toMatchObject({ width: 12 })
  const signed = await bucket.server.createSignedUrl('i.png', 60, { transform: { width: 9, quality: 40 } })
  expect(await sizeOf(await (await fetch(signed.data?.signedUrl ?? '')).blob())).toMatchObject({ width: 9 })
  const refused = [{ width: 0.5 }, { width: 5000 }, { quality: 10 }, { resize: 'fill' as const }]
  for (const transform of refused)
    expect(codeOf((await bucket.server.download('i.png', { transform })).error)).toBe('INVALID_INPUT')
  expect(codeOf((await bucket.server.download('t.txt', { transform: { width: 5 } })).error)).toBe('INVALID_INPUT')
})

test('metadata stays with a file, raw and in a form, until it is replaced', async () => {
  const bucket = await newBucket(server)
  const metadata = { custom: 'ä', n: { deep: [1, 2] } }
  await bucket.server.upload('raw.txt', 'x', { ...text, metadata })
  await bucket.server.upload('form.png', image, { metadata })
  for (const path of ['raw.txt', 'form.png']) expect((await bucket.server.info(path)).data?.metadata).toEqual(metadata)
  await bucket.server.update('raw.txt', 'y', { ...text, metadata: { other: true } })
  expect((await bucket.server.info('raw.txt')).data?.metadata).toEqual({ other: true })
  await bucket.server.update('raw.txt', 'z', text)
  expect((await bucket.server.info('raw.txt')).data?.metadata).toEqual({})
  for (const bad of [Buffer.from('[1]'), Buffer.from('{'), Buffer.from('{"a":"\\u0000"}')]) {
    const headers = { 'x-metadata': bad.toString('base64') }
    expect(codeOf((await bucket.server.upload('bad.txt', 'x', { ...text, headers })).error)).toBe('INVALID_INPUT')
  }
  expect((await bucket.server.info('form.png')).data).toMatchObject({ version: expect.any(String) })
})

test('somebody without credentials uploads once by a signed URL', async () => {
  const bucket = await newBucket(server)
  const of = mine.from(bucket.name)
  const path = `${user.id}/s.txt`
  const { data } = await of.createSignedUploadUrl(path)
  expect(data?.signedUrl).toContain(`/object/upload/sign/${bucket.name}/${path}?token=`)
  const token = data?.token ?? ''
  const stranger = createClient(harness.url, 'none').storage.from(bucket.name)
  expect((await stranger.uploadToSignedUrl(path, token, 'signed', { ...text, metadata: { a: 1 } })).data).toEqual({
    path,
    fullPath: `${bucket.name}/${path}`,
  })
  expect(await textOf(of, path)).toBe('signed')
  expect((await of.info(path)).data?.metadata).toEqual({ a: 1 })
  const again = (await stranger.uploadToSignedUrl(path, token, 'x', text)).error
  expect(again).toMatchObject({ message: 'The resource already exists', statusCode: '409' })
  // neither for another place, nor altered, nor with more than it was given for
  expect(codeOf((await stranger.uploadToSignedUrl(`${user.id}/o.txt`, token, 'x', text)).error)).toBe('AccessDenied')
  expect(codeOf((await stranger.uploadToSignedUrl(path, `${token}x`, 'x', text)).error)).toBe('AccessDenied')
  expect(codeOf((await stranger.uploadToSignedUrl(path, 'e30.x', 'x', text)).error)).toBe('AccessDenied')
  const upsert = { ...text, upsert: true }
  expect(codeOf((await stranger.uploadToSignedUrl(path, token, 'x', upsert)).error)).toBe('KeyAlreadyExists')
  expect(codeOf((await of.createSignedUploadUrl(path)).error)).toBe('KeyAlreadyExists')
  const replacing = await of.createSignedUploadUrl(path, { upsert: true })
  expect((await stranger.uploadToSignedUrl(path, replacing.data?.token ?? '', 'new', text)).error).toBeNull()
  expect(await textOf(of, path)).toBe('new')
  harness.setTime(new Date(harness.now().getTime() + 7_201_000).toISOString())
  const late = stranger.uploadToSignedUrl(path, replacing.data?.token ?? '', 'late', text)
  expect(codeOf((await late).error)).toBe('AccessDenied')
  harness.setTime(null)
})

test('a signed upload URL of a user who was deleted meanwhile is worth nothing', async () => {
  const bucket = await newBucket(server)
  const someone = await project.user()
  const path = `${someone.id}/s.txt`
  const of = storageOf(harness, project, someone.sessionToken).from(bucket.name)
  const { data } = await of.createSignedUploadUrl(path)
  await project.admin.delete(`/users/${someone.id}`)
  const sent = await bucket.server.uploadToSignedUrl(path, data?.token ?? '', 'x', text)
  expect((sent.error as { statusCode?: string } | null)?.statusCode).toMatch(/^40[0-9]$/)
  expect((await bucket.server.exists(path)).data).toBe(false)
})

test('a file is moved and copied, within a bucket and to another one', async () => {
  const [one, two] = [await newBucket(server), await newBucket(server)]
  const of = mine.from(one.name)
  const at = (name: string) => `${user.id}/${name}`
  await of.upload(at('a.txt'), 'hello', { ...text, metadata: { a: 1 } })
  const before = (await of.info(at('a.txt'))).data
  expect(await of.move(at('a.txt'), at('f/b.txt'))).toMatchObject({ data: { message: 'Successfully moved' } })
  expect(await textOf(of, at('a.txt'))).toBe('NoSuchKey')
  expect((await of.info(at('f/b.txt'))).data).toMatchObject({ id: before?.id, metadata: { a: 1 } })
  const away = { destinationBucket: two.name }
  expect((await of.move(at('f/b.txt'), at('c.txt'), away)).error).toBeNull()
  const into = mine.from(two.name)
  expect(await textOf(into, at('c.txt'))).toBe('hello')
  expect((await of.list(user.id)).data).toEqual([])
  expect((await into.copy(at('c.txt'), at('d.txt'), { destinationBucket: one.name })).data).toEqual({
    path: `${one.name}/${at('d.txt')}`,
  })
  expect((await into.copy(at('c.txt'), at('e.txt'), { copyMetadata: false })).error).toBeNull()
  expect((await of.info(at('d.txt'))).data).toMatchObject({ metadata: { a: 1 }, contentType: 'text/plain' })
  expect((await into.info(at('e.txt'))).data?.metadata).toEqual({})
  // from media, and back
  await mine.from('media').upload(`user/${user.id}/m.txt`, 'media', text)
  expect((await mine.from('media').move(`user/${user.id}/m.txt`, at('m.txt'), away)).error).toBeNull()
  expect((await into.move(at('m.txt'), `user/${user.id}/n.txt`, { destinationBucket: 'media' })).error).toBeNull()
  expect(await textOf(mine.from('media'), `user/${user.id}/n.txt`)).toBe('media')
  // the bytes of what is removed go, those of copies stay
  await into.remove([at('c.txt')])
  expect(await textOf(of, at('d.txt'))).toBe('hello')
  const refused = [
    (await of.move(at('none.txt'), at('x.txt'))).error,
    (await of.copy(at('none.txt'), at('x.txt'))).error,
    (await of.move(at('d.txt'), `${other.id}/x.txt`)).error,
    (await of.copy(at('d.txt'), `${other.id}/x.txt`)).error,
    (await of.move(at('d.txt'), 'x.txt')).error,
    (await theirs.from(one.name).move(at('d.txt'), `${other.id}/x.txt`)).error,
    (await theirs.from(one.name).copy(at('d.txt'), `${other.id}/x.txt`)).error,
    (await of.move(at('d.txt'), at('x.txt'), { destinationBucket: 'nowhere' })).error,
    (await of.move(at('d.txt'), at('e.txt'), away)).error,
    (await of.copy(at('d.txt'), at('e.txt'), away)).error,
    (await of.move(at('d.txt'), at('../x.txt'))).error,
  ]
  expect(refused.map(codeOf)).toEqual([
    'NoSuchKey',
    'NoSuchKey',
    'AccessDenied',
    'AccessDenied',
    'AccessDenied',
    'NoSuchKey',
    'NoSuchKey',
    'NoSuchBucket',
    'KeyAlreadyExists',
    'KeyAlreadyExists',
    'INVALID_INPUT',
  ])
  // moved by the server to a folder of another user it is theirs
  expect((await one.server.move(at('d.txt'), `${other.id}/given.txt`)).error).toBeNull()
  expect(await textOf(theirs.from(one.name), `${other.id}/given.txt`)).toBe('hello')
  expect(await textOf(of, `${other.id}/given.txt`)).toBe('NoSuchKey')
})

test('of two moves or uploads to one key at once, one is done', async () => {
  const bucket = await newBucket(server)
  for (let round = 0; round < 4; round += 1) {
    const to = `${round}/to.txt`
    await bucket.server.upload(`${round}/a.txt`, 'a', text)
    await bucket.server.upload(`${round}/b.txt`, 'b', text)
    const done = await Promise.all([
      bucket.server.move(`${round}/a.txt`, to),
      bucket.server.move(`${round}/b.txt`, to),
      bucket.server.upload(to, 'c', text),
    ])
    const codes = done.map(({ error }) => codeOf(error)).filter((code) => code !== undefined)
    expect(codes).toEqual(['KeyAlreadyExists', 'KeyAlreadyExists'])
    const twice = await Promise.all([1, 2].map((n) => bucket.server.move(to, `${round}/${n}.txt`)))
    expect(twice.map(({ error }) => codeOf(error)).sort()).toEqual(['NoSuchKey', undefined])
  }
})

test('listV2 pages by name and by time, in folders and without', async () => {
  const bucket = await newBucket(server)
  const suffixes = ['zz', 'bb', 'cc', 'aa']
  for (const suffix of suffixes) await bucket.server.upload(`f/x-${suffix}`, 'x', text)
  await bucket.server.upload('f/deep/1', 'x', text)
  await bucket.server.upload('f/deep/2', 'x', text)
  const paged = async (options: object) => {
    const seen: string[] = []
    for (let cursor: string | undefined, pages = 0; pages < 9; pages += 1) {
      const { data, error } = await bucket.server.listV2({ limit: 2, ...options, ...(cursor ? { cursor } : {}) })
      expect(error).toBeNull()
      seen.push(...(data?.folders ?? []).map(({ name }) => name), ...(data?.objects ?? []).map(({ name }) => name))
      cursor = data?.nextCursor
      if (!data?.hasNext) return seen
    }
    throw new Error('no end')
  }
  const files = (order: string[]) => order.map((suffix) => `f/x-${suffix}`)
  const sorted = [...suffixes].sort()
  expect(await paged({ prefix: 'f/x' })).toEqual(files(sorted))
  expect(await paged({ prefix: 'f/', with_delimiter: true })).toEqual(['f/deep/', ...files(sorted)])
  expect(await paged({})).toEqual(['f/deep/1', 'f/deep/2', ...files(sorted)])
  expect(await paged({ with_delimiter: true })).toEqual(['f/'])
  const by = (column: string, order: string) => ({ prefix: 'f/', with_delimiter: true, sortBy: { column, order } })
  expect(await paged(by('name', 'desc'))).toEqual([...files([...sorted].reverse()), 'f/deep/'])
  expect(await paged(by('created_at', 'asc'))).toEqual(['f/deep/', ...files(suffixes)])
  expect(await paged(by('updated_at', 'desc'))).toEqual(['f/deep/', ...files([...suffixes].reverse())])
  const { data } = await bucket.server.listV2({ prefix: 'f/x-a' })
  expect(data?.objects[0]).toMatchObject({ key: 'f/x-aa', metadata: { size: 1 }, version: expect.any(String) })
  for (const cursor of ['x', Buffer.from('{}').toString('base64url'), Buffer.from('{"after":1}').toString('base64url')])
    expect(codeOf((await bucket.server.listV2({ cursor })).error)).toBe('INVALID_INPUT')
})

test('names sorted by time are read of a folder of bounded size', async () => {
  const bucket = await newBucket(server)
  await project.sql(
    `insert into app.media_assets (key, filename, mime_type, status, source, size_bytes, object_version, bucket)
     select 'bucket/' || $1 || '/many/' || n, n::text, 'text/plain', 'committed', 'presign', 1, 'v', $1
       from generate_series(1, 10001) n`,
    [bucket.name],
  )
  const sortBy = { column: 'created_at', order: 'asc' } as const
  expect(codeOf((await bucket.server.list('many', { sortBy })).error)).toBe('INVALID_INPUT')
  expect(codeOf((await bucket.server.listV2({ prefix: 'many/', sortBy })).error)).toBe('INVALID_INPUT')
  expect((await bucket.server.listV2({ prefix: 'many/1', sortBy })).data?.hasNext).toBe(true)
  expect((await bucket.server.list('many', { limit: 3 })).data).toHaveLength(3)
  expect((await server.emptyBucket(bucket.name)).error).toBeNull()
  expect((await server.deleteBucket(bucket.name)).error).toBeNull()
  expect((await storedOf(harness, project)).filter((name) => name.includes('received'))).toEqual([])
})
