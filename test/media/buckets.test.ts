import { createClient } from '@supabase/supabase-js'
import { beforeAll, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { setTier } from '#test/support/media.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Buckets as developers make and change them. */
const harness = await startHarness()
const project = await harness.project()
const other = await harness.project()
const { admin } = project
const storage = () => createClient(harness.url, project.serverKey).storage

beforeAll(async () => {
  await admin.patch('', { rest_enabled: true })
})

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
let n = 0
const made = async (fields: object = {}) => {
  n += 1
  const answer = await admin.post('/media/buckets', { name: `bucket-${n}`, ...fields })
  expect(answer.status, answer.text).toBe(201)
  return answer.data as { name: string }
}

describe('a bucket', () => {
  test('is made private and without limits, or as it is said', async () => {
    const { name } = await made()
    expect((await admin.get(`/media/buckets/${name}`)).data).toEqual({
      name,
      is_public: false,
      file_size_limit: null,
      allowed_mime_types: null,
      created_at: expect.stringMatching(iso),
      updated_at: expect.stringMatching(iso),
    })
    const limits = { is_public: true, file_size_limit: 10, allowed_mime_types: ['image/*', 'text/plain'] }
    const second = await made(limits)
    expect(second).toMatchObject(limits)
    // the same rules hold for who uploads with supabase-js
    const { error } = await storage()
      .from(second.name)
      .upload('a.txt', 'more than ten bytes', { contentType: 'text/plain' })
    expect(error).toMatchObject({ statusCode: '413' })
    const small = await storage().from(second.name).upload('a.txt', 'hello', { contentType: 'text/plain' })
    expect(small.error).toBeNull()
  })

  test.each([
    ['a name with a slash', { name: 'a/b' }, 400, 'INVALID_BUCKET_NAME'],
    ['a name that begins with a dot', { name: '.a' }, 400, 'INVALID_BUCKET_NAME'],
    ['a name that each project has', { name: 'media' }, 409, 'BUCKET_EXISTS'],
    ['a name that is a path of the program', { name: 'sign' }, 409, 'BUCKET_EXISTS'],
    ['no name', { name: undefined }, 400, 'VALIDATION_ERROR'],
    ['a limit of nothing', { file_size_limit: 0 }, 400, 'VALIDATION_ERROR'],
    ['a limit over 50 MB', { file_size_limit: 52_428_801 }, 400, 'VALIDATION_ERROR'],
    ['a type that is none', { allowed_mime_types: ['image'] }, 400, 'INVALID_INPUT'],
    ['a type that no file has', { allowed_mime_types: ['*/png'] }, 400, 'INVALID_INPUT'],
    ['101 types', { allowed_mime_types: Array.from({ length: 101 }, (_, i) => `a/${i}`) }, 400, 'VALIDATION_ERROR'],
  ])('is not made with %s', async (_, fields, status, code) => {
    const before = (await admin.get('/media/buckets')).body.total
    expectRefusal(await admin.post('/media/buckets', { name: 'unmade', ...fields }), status, code)
    expect((await admin.get('/media/buckets')).body.total).toBe(before)
  })

  test('has a name of its own', async () => {
    const { name } = await made()
    expectRefusal(await admin.post('/media/buckets', { name }), 409, 'BUCKET_EXISTS')
  })

  test('is changed by what is sent alone; a null lifts a limit', async () => {
    const { name } = await made({ file_size_limit: 10, allowed_mime_types: ['text/plain'] })
    const place = `/media/buckets/${name}`
    expect((await admin.patch(place, { is_public: true })).data).toMatchObject({
      is_public: true,
      file_size_limit: 10,
      allowed_mime_types: ['text/plain'],
    })
    expect((await admin.patch(place, { file_size_limit: null, allowed_mime_types: null })).data).toMatchObject({
      is_public: true,
      file_size_limit: null,
      allowed_mime_types: null,
    })
    expectRefusal(await admin.patch(place, { file_size_limit: -1 }), 400, 'VALIDATION_ERROR')
    expectRefusal(await admin.patch(place, { allowed_mime_types: ['image'] }), 400, 'INVALID_INPUT')
  })

  test('with files is emptied before it is deleted', async () => {
    const { name } = await made()
    for (const path of ['a.txt', 'b.txt']) {
      const { error } = await storage().from(name).upload(path, 'hello', { contentType: 'text/plain' })
      expect(error).toBeNull()
    }
    expectRefusal(await admin.delete(`/media/buckets/${name}`), 409, 'BUCKET_NOT_EMPTY')
    const emptied = await admin.post(`/media/buckets/${name}/empty`)
    expect(emptied).toMatchObject({ status: 202, data: { accepted: 2 } })
    await project.drain()
    expect((await storage().from(name).list()).data).toEqual([])
    expect((await admin.delete(`/media/buckets/${name}`)).status).toBe(200)
    expectRefusal(await admin.get(`/media/buckets/${name}`), 404, 'NOT_FOUND')
  })

  test('keeps a file that a catalog shows, and one whose upload is open in a free project', async () => {
    const { name } = await made()
    const files = storage().from(name)
    const shown = await files.upload('shown.txt', 'hello', { contentType: 'text/plain' })
    expect(shown.error).toBeNull()
    const [{ id }] = await project.sql('select id from app.media_assets where bucket = $1', [name])
    const catalog = await admin.post('/media/catalogs', { slug: name, name: 'Catalog', asset_ids: [id] })
    expect(catalog.status, catalog.text).toBe(201)
    expectRefusal(await admin.post(`/media/buckets/${name}/empty`), 409, 'ASSET_IN_USE')
    expect((await files.list()).data).toHaveLength(1)
    await admin.delete(`/media/catalogs/${name}`)
    expect((await admin.post(`/media/buckets/${name}/empty`)).data).toEqual({ accepted: 1 })
    // opened while the project paid
    await setTier(harness, project, 'pro')
    const user = await project.user()
    const key = `${user.id}/open.txt`
    const open = { bucket: name, key, method: 'PUT', content_type: 'text/plain' }
    expect((await user.post('/client/media/presign', open)).status).toBe(200)
    await setTier(harness, project, 'free')
    const refused = await admin.post(`/media/buckets/${name}/empty`)
    expectRefusal(refused, 409, 'UPLOAD_WINDOW_OPEN', { retry_after_seconds: expect.any(Number) })
  })

  test('is one of at most 200', async () => {
    const full = await harness.project()
    for (const name of ['a', 'b']) expect((await full.admin.post('/media/buckets', { name })).status).toBe(201)
    await full.sql(
      `insert into app.media_buckets (name, is_public) select 'filled-' || n, false from generate_series(1, 197) n`,
    )
    expect((await full.admin.post('/media/buckets', { name: 'last' })).status).toBe(201)
    expectRefusal(await full.admin.post('/media/buckets', { name: 'over' }), 409, 'LIMIT_REACHED', { limit: 200 })
    expect((await full.admin.get('/media/buckets?limit=1')).body.total).toBe(200)
  })

  test('that is not there, and those that each project has, are not changed', async () => {
    for (const name of ['nowhere', 'media', 'exports']) {
      const place = `/media/buckets/${name}`
      expectRefusal(await admin.get(place), 404, 'NOT_FOUND')
      expectRefusal(await admin.patch(place, { is_public: true }), 404, 'NOT_FOUND')
      expectRefusal(await admin.delete(place), 404, 'NOT_FOUND')
      expectRefusal(await admin.post(`${place}/empty`), 404, 'NOT_FOUND')
    }
  })

  test('is listed by name, in pages, without those that each project has', async () => {
    for (const name of ['b', 'a', 'c']) await other.admin.post('/media/buckets', { name })
    const page = await other.admin.get('/media/buckets?limit=2&offset=1')
    expect(page.body).toMatchObject({ total: 3, limit: 2, offset: 1 })
    expect(page.data.map(({ name }: { name: string }) => name)).toEqual(['b', 'c'])
  })

  test('is of its project, and its change is in the audit trail', async () => {
    const { name } = await made()
    expectRefusal(await other.admin.get(`/media/buckets/${name}`), 404, 'NOT_FOUND')
    expectRefusal(await other.developer.get(`/admin/projects/${project.id}/media/buckets`), 403, 'PROJECT_FORBIDDEN')
    await admin.delete(`/media/buckets/${name}`)
    const rows = await project.sql(
      `select e.actor ->> 'type' as by from app.audit_events e where e.changes::text like $1 order by e.position`,
      [`%"${name}"%`],
    )
    expect(rows.length).toBeGreaterThan(0)
    for (const { by } of rows) expect(by).toBe('developer')
  })
})
