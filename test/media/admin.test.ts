import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { put, register, setTier, storedOf, upload } from '#test/support/media.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const other = await harness.project()
const { admin } = project
const MB = 1048576

const uploadOfProject = async (text = 'hello', more: object = {}) => {
  const answer = await admin.post('/media/upload', {
    filename: 'banner.txt',
    mime_type: 'text/plain',
    size_bytes: text.length,
    ...more,
  })
  expect(answer.status, answer.text).toBe(201)
  expect((await put(answer.body.upload_url, text)).status).toBe(200)
  const got = await admin.get(`/media/${answer.data.id}`)
  expect(got.status, got.text).toBe(200)
  return got.data
}
const idsOf = (answer: { data: { id: string }[] }) => answer.data.map(({ id }) => id)

describe('files of the project', () => {
  test('have no owner; users do not see them, server keys and administrators do', async () => {
    const asset = await uploadOfProject()
    expect(asset).toMatchObject({ uploaded_by: null, status: 'committed', size_bytes: 5 })
    expect(asset.key).toMatch(new RegExp(`^project/\\d+_${asset.id}_banner\\.txt$`))
    const user = await project.user()
    expectRefusal(await user.get(`/client/media/${asset.id}`), 404, 'NOT_FOUND')
    expect((await project.server.get(`/client/media/${asset.id}`)).status).toBe(200)
    expectRefusal(await other.admin.get(`/media/${asset.id}`), 404, 'NOT_FOUND')
    expectRefusal(await other.developer.get(`/admin/projects/${project.id}/media`), 403, 'PROJECT_FORBIDDEN')
    expect(await (await fetch(asset.storage_url)).text()).toBe('hello')
    const { data } = await admin.get(`/audit-events?target_id=${asset.id}`)
    expect(data.map(({ action }: { action: string }) => action).sort()).toEqual(['media.create', 'media.update'])
    expect(JSON.stringify(data)).not.toMatch(/"object_version":\["[0-9a-f]/)
    expect((await admin.delete(`/media/${asset.id}`)).data).toEqual({ id: asset.id, deleted: true })
    expect((await storedOf(harness, project)).filter((name) => name.includes(asset.id))).toEqual([])
    expectRefusal(await admin.delete(`/media/${asset.id}`), 404, 'NOT_FOUND')
  })

  test('count against the budget, and have the bounds of uploads', async () => {
    const own = await harness.project()
    const post = (more: object = {}) =>
      own.admin.post('/media/upload', { filename: 'a', mime_type: 'text/plain', size_bytes: 50 * MB, ...more })
    expectRefusal(await post({ size_bytes: undefined }), 400, 'SIZE_REQUIRED')
    expectRefusal(await post({ mime_type: 'text/html' }), 400, 'MIME_NOT_ALLOWED')
    expectInvalid(await post({ size_bytes: 0 }), 'size_bytes')
    expectInvalid(await post({ filename: '' }), 'filename')
    for (let n = 0; n < 5; n += 1) expect((await post()).status).toBe(201)
    expectRefusal(await post({ size_bytes: 1 }), 402, 'FREE_TIER_LIMIT_REACHED')
  })

  test('are listed by user, type, folder, status and text', async () => {
    const own = await harness.project()
    const [anna, berta] = [await own.user(), await own.user()]
    const one = await upload(anna, 'one', { filename: 'Holiday 100%.txt' })
    const two = await upload(berta, 'two', { filename: 'holiday.png', mime_type: 'image/png' })
    const pending = await register(anna, { filename: 'holiday pending' })
    const list = (query: string) => own.admin.get(`/media?${query}`)
    expect((await list('')).body).toMatchObject({ total: 2, offset: 0, limit: 50 })
    expect(idsOf(await list(''))).toEqual([two.id, one.id])
    expect(idsOf(await list(`user_id=${anna.id}`))).toEqual([one.id])
    expect(idsOf(await list('mime_type=IMAGE/PNG'))).toEqual([two.id])
    expect(idsOf(await list('status=pending'))).toEqual([pending.id])
    expect(idsOf(await list('search=HOLIDAY'))).toEqual([two.id, one.id])
    expect(idsOf(await list('search=100%25'))).toEqual([one.id])
    expect(idsOf(await list('search=a_'))).toEqual([])
    expect(idsOf(await list('search=holiday&status=pending'))).toEqual([pending.id])
    expect(idsOf(await list(`search=holiday&user_id=${berta.id}&mime_type=image/png`))).toEqual([two.id])
    expect((await list('search=holiday&limit=1&offset=1')).body).toMatchObject({ total: 2, data: [{ id: one.id }] })
    expect(idsOf(await list(`folder_id=${randomUUID()}`))).toEqual([])
    for (const [query, field] of [
      ['status=deleted', 'status'],
      ['user_id=x', 'user_id'],
      ['folder_id=x', 'folder_id'],
      [`search=${'x'.repeat(201)}`, 'search'],
      ['limit=0', 'limit'],
    ] as const)
      expectRefusal(await list(query), 400, 'INVALID_INPUT', field)
  })

  test('are described: absent and null differ', async () => {
    const user = await project.user()
    const { id } = await upload(user)
    const patch = (body: object) => admin.patch(`/media/${id}`, body)
    expect((await patch({ alt_text: 'A text', metadata: { a: 12345678901234567890n.toString() } })).data).toMatchObject(
      {
        alt_text: 'A text',
        metadata: { a: '12345678901234567890' },
      },
    )
    expect((await patch({ alt_text: null })).data).toMatchObject({
      alt_text: null,
      metadata: { a: expect.any(String) },
    })
    expect((await patch({})).status).toBe(200)
    expectInvalid(await patch({ alt_text: 'x'.repeat(2001) }), 'alt_text')
    expectInvalid(await patch({ metadata: { a: 'x'.repeat(8200) } }), 'metadata')
    expectInvalid(await patch({ metadata: [] }), 'metadata')
    expectInvalid(await patch({ folder_id: 'x' }), 'folder_id')
    expectInvalid(await patch({ folder_id: randomUUID() }), 'folder_id', 'must be the id of a folder')
    expectRefusal(await admin.patch(`/media/${randomUUID()}`, {}), 404, 'NOT_FOUND')
    expectRefusal(await admin.patch('/media/x', {}), 400, 'INVALID_ID')
    const pending = await register(user)
    expectRefusal(await admin.patch(`/media/${pending.id}`, { alt_text: 'x' }), 404, 'NOT_FOUND')
    // numbers that a double would change, and what looks like a link, come back as they were sent
    const text = `{"metadata": {"n": 12345678901234567890.123, "s": "${'0'.repeat(32)}a|b|c|d"}}`
    const answer = await admin.request('PATCH', `/media/${id}`, text)
    expect(answer.text).toContain('12345678901234567890.123')
    expect(answer.data.metadata.s).toBe(`${'0'.repeat(32)}a|b|c|d`)
  })
})

describe('folders', () => {
  const folder = async (name = 'Folder') => (await admin.post('/media/folders', { name })).data
  test('hold files, and are deleted when they are empty', async () => {
    const { id } = await folder()
    const user = await project.user()
    const asset = await upload(user)
    expect((await admin.patch(`/media/${asset.id}`, { folder_id: id })).data.folder_id).toBe(id)
    expect(idsOf(await user.get(`/client/media?folder_id=${id}`))).toEqual([asset.id])
    expect(idsOf(await admin.get(`/media?folder_id=${id}`))).toEqual([asset.id])
    expectRefusal(await admin.delete(`/media/folders/${id}`), 409, 'FOLDER_NOT_EMPTY')
    await user.delete(`/client/media/${asset.id}`)
    expect((await admin.delete(`/media/folders/${id}`)).data).toEqual({ deleted: true })
    expectRefusal(await admin.delete(`/media/folders/${id}`), 404, 'NOT_FOUND')
  })

  test('a file goes into a folder or the folder goes, never both', async () => {
    const { id } = await folder('Race')
    const asset = await upload(await project.user())
    const [moved, deleted] = await meetingBehind(
      project.database,
      `select from app.media_folders where id = '${id}' for update`,
      () => [admin.patch(`/media/${asset.id}`, { folder_id: id }), admin.delete(`/media/folders/${id}`)],
    )
    const [{ folder_id }] = await project.sql('select folder_id from app.media_assets where id = $1', [asset.id])
    const isThere = (await project.sql('select from app.media_folders where id = $1', [id])).length === 1
    expect([moved?.status, deleted?.status, isThere, folder_id]).toEqual(
      moved?.status === 200 ? [200, 409, true, id] : [400, 200, false, null],
    )
  })
})

describe('catalogs', () => {
  let made = 0
  const define = async (asset_ids: string[], more: object = {}) => {
    made += 1
    const answer = await admin.post('/media/catalogs', { slug: `catalog-${made}`, name: 'Catalog', asset_ids, ...more })
    expect(answer.status, answer.text).toBe(201)
    return answer.data
  }
  const read = (slug: string, headers: Record<string, string> = {}) =>
    project.app.get(`/client/media/catalogs/${slug}`, headers)

  test('show their files in order to apps without a session', async () => {
    const assets = [
      await uploadOfProject('one'),
      await uploadOfProject('two'),
      await upload(await project.user(), 'three'),
    ]
    await admin.patch(`/media/${assets[0].id}`, { alt_text: 'One', metadata: { a: 1 } })
    const { slug } = await define([assets[2].id, assets[0].id, assets[1].id])
    const answer = await read(slug)
    expect(answer.data).toMatchObject({ slug, name: 'Catalog', updated_at: expect.any(String) })
    expect(answer.data.assets.map(({ id, position }: any) => [id, position])).toEqual([
      [assets[2].id, 0],
      [assets[0].id, 1],
      [assets[1].id, 2],
    ])
    expect(answer.data.assets[1]).toEqual({
      id: assets[0].id,
      filename: 'banner.txt',
      mime_type: 'text/plain',
      url: expect.any(String),
      thumbnail_url: null,
      alt_text: 'One',
      metadata: { a: 1 },
      position: 1,
    })
    expect(await (await fetch(answer.data.assets[0].url)).text()).toBe('three')
    expect(answer.headers.get('cache-control')).toBe('public, max-age=300')
    const etag = String(answer.headers.get('etag'))
    const same = await read(slug, { 'if-none-match': etag })
    expect([same.status, same.text, same.headers.get('etag')]).toEqual([304, '', etag])
    await admin.patch(`/media/catalogs/${slug}`, { name: 'Other' })
    expect((await read(slug, { 'if-none-match': etag })).status).toBe(200)
    // any key of the project is enough, and one is needed
    expect((await project.server.get(`/client/media/catalogs/${slug}`)).status).toBe(200)
    expectRefusal(await other.app.get(`/client/media/catalogs/${slug}`), 404, 'NOT_FOUND')
    expectRefusal(await harness.anyone.get(`/client/media/catalogs/${slug}`), 401, 'UNAUTHORIZED')
    await admin.patch(`/media/catalogs/${slug}`, { is_public: false })
    expectRefusal(await read(slug), 404, 'NOT_FOUND')
    expectRefusal(await read('none'), 404, 'NOT_FOUND')
    expectRefusal(await read('~ x'), 404, 'NOT_FOUND')
  })

  test('keep their files from being deleted, except with their user', async () => {
    const user = await project.user()
    const [asset, mine] = [await uploadOfProject(), await upload(user)]
    const { slug } = await define([asset.id, mine.id])
    expectRefusal(await admin.delete(`/media/${asset.id}`), 409, 'ASSET_IN_USE')
    expectRefusal(await user.delete(`/client/media/${mine.id}`), 409, 'ASSET_IN_USE')
    expectRefusal(await admin.delete('/storage/objects', { bucket: 'media', keys: [asset.key] }), 409, 'ASSET_IN_USE')
    expect((await admin.delete(`/users/${user.id}`)).status).toBe(200)
    expect((await read(slug)).data.assets.map(({ id, position }: any) => [id, position])).toEqual([[asset.id, 0]])
    expect((await admin.get(`/media/catalogs/${slug}`)).data.asset_ids).toEqual([asset.id])
    await admin.patch(`/media/catalogs/${slug}`, { asset_ids: [] })
    expect((await admin.delete(`/media/${asset.id}`)).status).toBe(200)
  })

  test('hold committed files of the project, each once', async () => {
    const asset = await uploadOfProject()
    const pending = await register(await project.user())
    const stranger = await upload(await other.user())
    for (const ids of [[asset.id, asset.id], [pending.id], [stranger.id], [randomUUID()], [asset.id, randomUUID()]])
      expectInvalid(await admin.post('/media/catalogs', { slug: 'x', name: 'X', asset_ids: ids }), 'asset_ids')
    expectInvalid(
      await admin.post('/media/catalogs', { slug: 'x', name: 'X', asset_ids: Array(501).fill(asset.id) }),
      'asset_ids',
    )
  })

  test('a file goes into a catalog or is deleted, never both', async () => {
    const asset = await uploadOfProject()
    const { slug } = await define([])
    const [added, deleted] = await meetingBehind(
      project.database,
      `select from app.media_assets where id = '${asset.id}' for update`,
      () => [admin.patch(`/media/catalogs/${slug}`, { asset_ids: [asset.id] }), admin.delete(`/media/${asset.id}`)],
    )
    const shown = (await read(slug)).data.assets.length
    expect([added?.status, deleted?.status, shown]).toEqual(added?.status === 200 ? [200, 409, 1] : [400, 200, 0])
  })
})

describe('storage', () => {
  test('buckets and usage', async () => {
    const own = await harness.project()
    expect((await own.admin.get('/storage/buckets')).data).toEqual([
      { name: 'media', max_object_bytes: 50 * MB },
      { name: 'functions', max_object_bytes: null },
      { name: 'sites', max_object_bytes: null },
      { name: 'exports', max_object_bytes: null },
    ])
    const user = await own.user()
    const { id } = await upload(user, 'hello')
    await register(user, { size_bytes: 7 })
    const usage = async () => (await own.admin.get('/storage/usage')).data
    const empty = ['functions', 'sites', 'exports'].map((bucket) => ({ bucket, bytes: 0, objects: 0 }))
    // pending bytes count against the budget, and not in usage
    expect(await usage()).toEqual({
      buckets: [{ bucket: 'media', bytes: 5, objects: 1 }, ...empty],
      registered_bytes: 12,
      limit_bytes: 250 * MB,
    })
    await user.delete(`/client/media/${id}`)
    await setTier(harness, own, 'pro')
    expect(await usage()).toEqual({
      buckets: [{ bucket: 'media', bytes: 0, objects: 0 }, ...empty],
      registered_bytes: 7,
      limit_bytes: null,
    })
  })

  test('objects are listed by cursor and prefix', async () => {
    const own = await harness.project()
    const [anna, berta] = [await own.user(), await own.user()]
    const assets = [await upload(anna, '1'), await upload(berta, '22'), await upload(anna, '333')]
    const list = (query: string) => own.admin.get(`/storage/objects?${query}`)
    const keys = (answer: { data: { key: string }[] }) => answer.data.map(({ key }) => key)
    const all = await list('bucket=media')
    expect(keys(all)).toEqual(assets.map(({ key }) => key).reverse())
    expect(all.data[0]).toEqual({
      key: assets[2]?.key,
      asset_id: assets[2]?.id,
      size_bytes: 3,
      mime_type: 'text/plain',
      created_at: expect.any(String),
    })
    for (const prefix of ['', `user/${anna.id}/`]) {
      const wanted = assets
        .map(({ key }) => key)
        .filter((key) => key.startsWith(prefix))
        .reverse()
      const found: string[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page = await list(`prefix=${prefix}&limit=1${cursor && `&cursor=${cursor}`}`)
        found.push(...keys(page))
        cursor = page.body.pagination.next_cursor
      }
      expect(found).toEqual(wanted)
    }
    expect(keys(await list('prefix=user/%25'))).toEqual([])
    expect(keys(await list('bucket=exports'))).toEqual([])
    expectRefusal(await list('bucket=none'), 404, 'BUCKET_NOT_FOUND')
    expectRefusal(await list('cursor=x'), 400, 'INVALID_INPUT', 'cursor')
  })

  test('objects are deleted by their keys, all or none', async () => {
    const user = await project.user()
    const [one, two, kept] = [await upload(user), await upload(user), await upload(user)]
    const remove = (body: object) => admin.delete('/storage/objects', body)
    const pending = await register(user)
    const [{ key: open }] = await project.sql('select key from app.media_assets where id = $1', [pending.id])
    // the upload URL of the last one is valid in a free project
    expectRefusal(await remove({ bucket: 'media', keys: [one.key, open] }), 409, 'UPLOAD_WINDOW_OPEN')
    expect((await user.get(`/client/media/${one.id}`)).status).toBe(200)
    const answer = await remove({ bucket: 'media', keys: [one.key, `${project.id}/${two.key}`, 'user/none/x'] })
    expect([answer.status, answer.data]).toEqual([202, { accepted: 2 }])
    await project.drain()
    const stored = await storedOf(harness, project)
    for (const { id } of [one, two]) expect(stored.filter((name) => name.includes(id))).toEqual([])
    expect(stored.filter((name) => name.includes(kept.id))).toHaveLength(1)
    expect((await remove({ bucket: 'sites', keys: ['x'] })).data).toEqual({ accepted: 0 })
    expectRefusal(await remove({ bucket: 'none', keys: ['x'] }), 404, 'BUCKET_NOT_FOUND')
    for (const keys of [[], Array(1001).fill('x'), [''], [5], 'x', undefined])
      expect([400, (await remove({ bucket: 'media', keys })).error?.code]).toEqual([400, 'VALIDATION_ERROR'])
  })

  test('a file that its user deletes at the same moment is passed over, as one that has gone is', async () => {
    const user = await project.user()
    const [gone, kept] = [await upload(user), await upload(user)]
    const [answer] = await meetingBehind(
      project.database,
      `delete from app.media_assets where id = '${gone.id}'`,
      () => [admin.delete('/storage/objects', { bucket: 'media', keys: [gone.key, kept.key] })],
    )
    expect([answer?.status, answer?.data]).toEqual([202, { accepted: 1 }])
    expect((await user.get(`/client/media/${kept.id}`)).status).toBe(404)
  })
})
