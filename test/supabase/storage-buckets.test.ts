import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { setTier } from '#test/support/media.ts'
import { codeOf, newBucket, storageOf, text, textOf } from '#test/support/supabase_storage.ts'

const harness = await startHarness()
const project = await harness.project()
await project.admin.patch('', { rest_enabled: true })
const [user, other] = [await project.user(), await project.user()]
const server = storageOf(harness, project)
const mine = storageOf(harness, project, user.sessionToken)

test('a server key makes, reads, changes and deletes buckets', async () => {
  expect(await server.createBucket('avatars', { public: true, fileSizeLimit: '20MB' })).toEqual({
    data: { name: 'avatars' },
    error: null,
  })
  expect((await server.getBucket('avatars')).data).toEqual({
    id: 'avatars',
    name: 'avatars',
    owner: '',
    type: 'STANDARD',
    public: true,
    file_size_limit: 20_000_000,
    allowed_mime_types: null,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  })
  const changed = await server.updateBucket('avatars', { public: false, allowedMimeTypes: ['Image/PNG', 'text/*'] })
  expect(changed).toEqual({ data: { message: 'Successfully updated' }, error: null })
  // what is not sent stays
  expect((await server.getBucket('avatars')).data).toMatchObject({
    public: false,
    file_size_limit: 20_000_000,
    allowed_mime_types: ['image/png', 'text/*'],
  })
  await server.updateBucket('avatars', { public: false, allowedMimeTypes: null, fileSizeLimit: null })
  expect((await server.getBucket('avatars')).data).toMatchObject({ file_size_limit: null, allowed_mime_types: null })
  expect((await server.listBuckets()).data?.map(({ name }) => name)).toEqual(['avatars', 'media'])
  const some = { limit: 1, offset: 1, sortColumn: 'name', sortOrder: 'desc', search: 'A' } as const
  expect((await server.listBuckets(some)).data?.map(({ name }) => name)).toEqual(['avatars'])
  expect((await server.listBuckets({ sortColumn: 'created_at' })).data?.map(({ name }) => name)).toEqual([
    'media',
    'avatars',
  ])
  expect((await server.deleteBucket('avatars')).data).toEqual({ message: 'Successfully deleted' })
  expect(codeOf((await server.getBucket('avatars')).error)).toBe('NoSuchBucket')
})

test('what is refused of a bucket', async () => {
  await newBucket(server)
  await server.createBucket('twice')
  const made = (name: string, more: object = {}) => server.createBucket(name, { public: false, ...more })
  const errors = [
    (await made('twice')).error,
    (await made('media')).error,
    (await made('public')).error,
    (await made('a/b')).error,
    (await made('.hidden')).error,
    (await made('x'.repeat(101))).error,
    (await made('big', { fileSizeLimit: '53MB' })).error,
    (await made('odd', { fileSizeLimit: 'much' })).error,
    (await made('odd', { allowedMimeTypes: ['all'] })).error,
    (await made('odd', { type: 'ANALYTICS' })).error,
    (await made('odd', { versioningStatus: 'ENABLED' })).error,
    (await server.updateBucket('nowhere', { public: true })).error,
    (await server.updateBucket('media', { public: true })).error,
    (await server.emptyBucket('media')).error,
    (await server.deleteBucket('media')).error,
    (await server.emptyBucket('nowhere')).error,
    (await server.deleteBucket('nowhere')).error,
    (await server.from('nowhere').list()).error,
    (await server.from('nowhere').listV2()).error,
    (await server.from('nowhere').upload('x', 'x', text)).error,
    (await server.from('nowhere').info('x')).error,
    (await server.from('nowhere').createSignedUploadUrl('x')).error,
  ]
  expect(errors.map(codeOf)).toEqual([
    'BucketAlreadyExists',
    'BucketAlreadyExists',
    'BucketAlreadyExists',
    'InvalidBucketName',
    'InvalidBucketName',
    'InvalidBucketName',
    'EntityTooLarge',
    'INVALID_INPUT',
    'INVALID_INPUT',
    'INVALID_INPUT',
    'INVALID_INPUT',
    'NoSuchBucket',
    'AccessDenied',
    'AccessDenied',
    'AccessDenied',
    'NoSuchBucket',
    'NoSuchBucket',
    'NoSuchBucket',
    'NoSuchBucket',
    'NoSuchBucket',
    'NoSuchBucket',
    'NoSuchBucket',
  ])
  expect(errors[0]).toMatchObject({ message: 'The resource already exists', statusCode: '409' })
  expect(errors[19]).toMatchObject({ message: 'Bucket not found', statusCode: '404' })
})

test('a project has at most 200 buckets beside media', async () => {
  const full = await harness.project()
  await full.admin.patch('', { rest_enabled: true })
  await full.sql("insert into app.media_buckets (name) select 'b' || n from generate_series(1, 199) n")
  const of = storageOf(harness, full)
  const both = await Promise.all([of.createBucket('one'), of.createBucket('two')])
  expect(both.map(({ error }) => codeOf(error)).sort()).toEqual(['LIMIT_REACHED', undefined])
})

test('users see public buckets alone, and change none', async () => {
  const [open, closed] = [await newBucket(server, { public: true }), await newBucket(server)]
  const names = (await mine.listBuckets()).data?.map(({ name }) => name)
  expect(names).toContain(open.name)
  expect(names).toContain('media')
  expect(names).not.toContain(closed.name)
  expect((await mine.getBucket(open.name)).data?.public).toBe(true)
  expect(codeOf((await mine.getBucket(closed.name)).error)).toBe('NoSuchBucket')
  const refused = [
    (await mine.createBucket('theirs')).error,
    (await mine.updateBucket(open.name, { public: false })).error,
    (await mine.emptyBucket(open.name)).error,
    (await mine.deleteBucket(open.name)).error,
  ]
  expect(refused.map(codeOf)).toEqual(Array(4).fill('AccessDenied'))
  // also where nothing but the policies stands between
  const claims = { 'app.user_id': user.id, 'app.caller': 'user' }
  const seen = await project.as('app_user', claims, 'select name from app.media_buckets')
  expect(seen.map(({ name }: { name: string }) => name)).not.toContain(closed.name)
  await expect(project.as('app_user', claims, "insert into app.media_buckets (name) values ('x')")).rejects.toThrow()
})

test('users write in the folder of their id, in every bucket; server keys everywhere', async () => {
  const bucket = await newBucket(server)
  const of = mine.from(bucket.name)
  const theirs = storageOf(harness, project, other.sessionToken).from(bucket.name)
  expect((await of.upload(`${user.id}/a.txt`, 'mine', text)).error).toBeNull()
  const refused = [
    (await of.upload(`${other.id}/a.txt`, 'x', text)).error,
    (await of.upload('a.txt', 'x', text)).error,
    (await of.upload(`${user.id}`, 'x', text)).error,
    (await of.upload(`bucket/${user.id}/a.txt`, 'x', text)).error,
    (await theirs.upload(`${user.id}/a.txt`, 'x', { ...text, upsert: true })).error,
    (await theirs.createSignedUploadUrl(`${user.id}/b.txt`)).error,
  ]
  expect(refused.map(codeOf)).toEqual(Array(6).fill('AccessDenied'))
  // of somebody else's file nothing is said
  expect(codeOf((await theirs.info(`${user.id}/a.txt`)).error)).toBe('NoSuchKey')
  expect(codeOf((await theirs.createSignedUrl(`${user.id}/a.txt`, 60)).error)).toBe('NoSuchKey')
  expect((await theirs.remove([`${user.id}/a.txt`])).data).toEqual([])
  expect(await textOf(theirs, `${user.id}/a.txt`)).toBe('NoSuchKey')
  for (const path of ['logo.txt', `${user.id}/letter.txt`, 'rooms/1/x.txt'])
    expect((await bucket.server.upload(path, path, text)).error).toBeNull()
  expect(await textOf(of, `${user.id}/letter.txt`)).toBe(`${user.id}/letter.txt`)
  expect(await textOf(of, 'logo.txt')).toBe('NoSuchKey')
  expect((await of.list()).data?.map(({ name }) => name)).toEqual([user.id])
  expect((await bucket.server.list()).data?.map(({ name }) => name)).toEqual([user.id, 'logo.txt', 'rooms'].sort())
  expect((await of.listV2({ prefix: '' })).data?.objects.map(({ name }) => name)).toEqual([
    `${user.id}/a.txt`,
    `${user.id}/letter.txt`,
  ])
  expect((await theirs.list(user.id)).data).toEqual([])
  // they are files of media, with their users
  const rows = await project.sql('select key, uploaded_by from app.media_assets where bucket = $1 order by key', [
    bucket.name,
  ])
  const owners = new Map(rows.map(({ key, uploaded_by }: { key: string; uploaded_by: string }) => [key, uploaded_by]))
  expect(owners.get(`bucket/${bucket.name}/${user.id}/letter.txt`)).toBe(user.id)
  expect(owners.get(`bucket/${bucket.name}/logo.txt`)).toBeNull()
  const own = await user.get('/client/media')
  expect(own.data.map(({ key }: { key: string }) => key)).toContain(`bucket/${bucket.name}/${user.id}/a.txt`)
  // and the other list of media does not have them
  expect((await server.from('media').list()).data?.map(({ name }) => name) ?? []).not.toContain('bucket')
})

test('the limits of a bucket hold on every way in', async () => {
  const bucket = await newBucket(server, { public: false, fileSizeLimit: '10b', allowedMimeTypes: ['text/plain'] })
  const [five, eleven] = ['12345', '12345678901']
  const large = (await bucket.server.upload('a.txt', eleven, text)).error
  expect(large).toMatchObject({
    statusCode: '413',
    code: 'EntityTooLarge',
    message: 'The object exceeded the maximum allowed size',
  })
  expect((await bucket.server.upload('a.json', five, { contentType: 'application/json' })).error).toMatchObject({
    statusCode: '415',
    code: 'InvalidMimeType',
    message: 'mime type application/json is not supported',
  })
  // with a charset it is the same type
  expect((await bucket.server.upload('a.txt', five, { contentType: 'text/plain;charset=utf-8' })).error).toBeNull()
  expect(codeOf((await bucket.server.update('a.txt', eleven, text)).error)).toBe('EntityTooLarge')
  const { data } = await bucket.server.createSignedUploadUrl('b.txt')
  const signed = bucket.server.uploadToSignedUrl('b.txt', data?.token ?? '', eleven, text)
  expect(codeOf((await signed).error)).toBe('EntityTooLarge')
  const elsewhere = await newBucket(server)
  await elsewhere.server.upload('long.txt', eleven, text)
  await elsewhere.server.upload('x.json', five, { contentType: 'application/json' })
  const into = { destinationBucket: bucket.name }
  expect(codeOf((await elsewhere.server.copy('long.txt', 'c.txt', into)).error)).toBe('EntityTooLarge')
  expect(codeOf((await elsewhere.server.move('long.txt', 'c.txt', into)).error)).toBe('EntityTooLarge')
  expect(codeOf((await elsewhere.server.move('x.json', 'c.txt', into)).error)).toBe('InvalidMimeType')
  await setTier(harness, project, 'pro')
  // our own signed URLs do not know the size before the file has come
  const asked = { bucket: bucket.name, key: `${user.id}/p.txt`, method: 'PUT', content_type: 'text/plain' }
  const presigned = await user.post('/client/media/presign', asked)
  expect(presigned.status, presigned.text).toBe(200)
  const { url, asset_id } = presigned.data
  await fetch(url, { method: 'PUT', body: eleven, headers: { 'content-type': 'text/plain' } })
  const committed = await user.post('/client/media/commit', { asset_id, upload_id: asset_id })
  expect(committed).toMatchObject({ status: 413, error: { code: 'PAYLOAD_TOO_LARGE', details: { limit: 10 } } })
  const json = await user.post('/client/media/presign', { ...asked, content_type: 'application/json' })
  expect(json).toMatchObject({ status: 400, error: { code: 'MIME_NOT_ALLOWED' } })
  // image/* and */* are any of them
  const images = await newBucket(server, { public: false, allowedMimeTypes: ['image/*'] })
  expect(codeOf((await images.server.upload('a.txt', five, text)).error)).toBe('InvalidMimeType')
  expect((await images.server.upload('a.png', five, { contentType: 'image/png' })).error).toBeNull()
})

test('a bucket with files is emptied before it is deleted', async () => {
  const bucket = await newBucket(server)
  for (const n of [1, 2, 3]) await bucket.server.upload(`f/${n}.txt`, 'x', text)
  expect((await server.deleteBucket(bucket.name)).error).toMatchObject({ code: 'ResourceNotEmpty', statusCode: '409' })
  expect((await server.emptyBucket(bucket.name)).error).toBeNull()
  expect((await bucket.server.list('f')).data).toEqual([])
  expect((await server.deleteBucket(bucket.name)).error).toBeNull()
  await project.drain()
  expect(await project.sql('select 1 from app.media_removals')).toEqual([])
})

test('of an upload and the deletion of its bucket at once, one comes first', async () => {
  for (let round = 0; round < 5; round += 1) {
    const bucket = await newBucket(server)
    const [sent, deleted] = await Promise.all([
      bucket.server.upload('a.txt', 'x', text),
      server.deleteBucket(bucket.name),
    ])
    expect([undefined, 'NoSuchBucket']).toContain(codeOf(sent.error))
    expect(codeOf(deleted.error)).toBe(sent.error ? undefined : 'ResourceNotEmpty')
  }
})

test('files of buckets count in the budget, are exported, and go with their users', async () => {
  const free = await harness.project()
  await free.admin.patch('', { rest_enabled: true })
  await setTier(harness, free, 'free')
  const all = storageOf(harness, free)
  const bucket = await newBucket(all)
  const someone = await free.user()
  const of = storageOf(harness, free, someone.sessionToken).from(bucket.name)
  await free.sql('insert into app.media_totals (registered_bytes, stored_bytes, objects) values ($1, 0, 0)', [
    262_144_000 - 5,
  ])
  expect((await of.upload(`${someone.id}/a.txt`, '12345', text)).error).toBeNull()
  expect(codeOf((await bucket.server.upload('b.txt', '1', text)).error)).toBe('FREE_TIER_LIMIT_REACHED')
  expect(codeOf((await bucket.server.copy(`${someone.id}/a.txt`, 'c.txt')).error)).toBe('FREE_TIER_LIMIT_REACHED')
  const exported = await free.admin.get(`/users/${someone.id}/export`)
  expect(exported.text).toContain(`bucket/${bucket.name}/${someone.id}/a.txt`)
  await free.admin.delete(`/users/${someone.id}`)
  await free.drain()
  expect((await bucket.server.listV2()).data?.objects).toEqual([])
})

test('after a merge files of buckets are of the survivor, under their keys', async () => {
  const bucket = await newBucket(server)
  const [survivor, anonymous] = [await project.user(), await project.user()]
  const path = `${anonymous.id}/a.txt`
  const before = storageOf(harness, project, anonymous.sessionToken).from(bucket.name)
  expect((await before.upload(path, 'kept', text)).error).toBeNull()
  const merged = await survivor.post('/client/auth/merge', { from_session_token: anonymous.sessionToken })
  expect(merged.status, merged.text).toBe(200)
  const of = storageOf(harness, project, survivor.sessionToken).from(bucket.name)
  expect(await textOf(of, path)).toBe('kept')
  expect((await of.move(path, `${survivor.id}/a.txt`)).error).toBeNull()
  expect((await of.list(survivor.id)).data?.map(({ name }) => name)).toEqual(['a.txt'])
})
