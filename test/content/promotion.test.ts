import { expect, test } from 'vitest'
import { contentOf } from '#test/support/content.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { exportOf } from '#test/support/promotion.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
harness.setTime('2026-12-01T12:00:00Z')
const owner = await harness.developer()
const project = () => harness.project({ developer: owner })

const planOf = async (from: Project, to: Project, body: object = {}) =>
  (await from.admin.post('/promotion/plan', { target_project_id: to.id, kinds: ['segments', 'content'], ...body })).data
const promote = async (from: Project, to: Project, body: object = {}) => {
  const plan = await planOf(from, to, body)
  expect(plan.blocked).toEqual([])
  const done = await from.admin.post('/promotion/apply', { plan_hash: plan.plan_hash, confirm: plan.plan_hash })
  expect(done.status, done.text).toBe(202)
  return plan.ops.map(({ op, kind, key }: any) => `${op} ${kind} ${key}`)
}
const contentIn = async (of: Project) => (await exportOf(of)).definitions.content

test('entries are copied by key with their newest fields, published where they are; types come with them', async () => {
  const [from, to] = [await project(), await project()]
  const source = contentOf(from)
  const target = contentOf(to)
  const { data: segment } = await from.admin.post('/segments', { key: 'pros', name: 'Pros', rules: { and: [] } })
  const type = [{ name: 'title', type: 'text', required: true, localized: true }]
  await source.schema('article', type)
  await source.create('b', { title: 'B' }, { segment_id: segment.id, tags: ['x'], sort_order: 3 })
  await source.save('b', 'de', { title: 'old' })
  await source.publish('b', 'de')
  await source.save('b', 'de', { title: 'neu' })
  await source.save('b', 'fr', { title: 'F' })
  await source.publish('b', 'fr', { publish_at: '2027-01-01T00:00:00Z' })
  await source.create('a', { title: 'A' })
  expect(await contentIn(from)).toEqual({
    a: expect.objectContaining({ locales: { en: { fields: { title: 'A' }, status: 'draft' } } }),
    b: {
      ...{ content_type: 'article', default_locale: 'en', tags: ['x'], segment_id: 'pros', sort_order: 3 },
      ...{ starts_at: null, ends_at: null },
      locales: {
        en: { fields: { title: 'B' }, status: 'draft' },
        de: { fields: { title: 'neu' }, status: 'published' },
        fr: { fields: { title: 'F' }, status: 'draft' },
      },
    },
    'type/article': { fields: type },
  })
  expect(await promote(from, to)).toEqual([
    'create segments pros',
    'create content a',
    'create content b',
    'create content type/article',
  ])
  expect(await contentIn(to)).toEqual(await contentIn(from))
  const copied = await target.get('b')
  expect(copied.segment_id).not.toBe(segment.id)
  expect(copied.locales).toMatchObject({
    en: { status: 'draft', version: 1 },
    de: { status: 'published', version: 1, published_version: 1, fields: { title: 'neu' } },
    fr: { status: 'draft', publish_at: null },
  })
  expect((await planOf(from, to)).clean).toBe(true)

  // changes: fields, publication, type; a language that the target alone has stays
  await target.save('b', 'it', { title: 'I' })
  await source.unpublish('b', 'de')
  await source.save('b', 'en', { title: 'B2' })
  await source.schema('article', [])
  await from.admin.patch('/content/b', { sort_order: 4, segment_id: null })
  expect(await promote(from, to)).toEqual(['update content b', 'update content type/article'])
  const changed = await target.get('b')
  expect(changed).toMatchObject({ sort_order: 4, segment_id: null })
  expect(changed.locales).toMatchObject({
    en: { version: 2, fields: { title: 'B2' } },
    de: { status: 'draft', version: 1 },
    it: { fields: { title: 'I' } },
  })
  expect((await planOf(from, to)).clean).toBe(true)

  // deletions with prune alone
  await from.admin.delete('/content/a')
  expect((await planOf(from, to)).clean).toBe(true)
  expect(await promote(from, to, { prune: true, kinds: ['content'] })).toEqual(['delete content a'])
  expectRefusal(await to.admin.get('/content/a'), 404, 'NOT_FOUND')
  const trail = await to.sql(
    `select action, target_type from app.audit_events where action like 'content.%' order by position`,
  )
  expect(trail.map(({ action }) => action)).toEqual(
    expect.arrayContaining(['content.create', 'content.update', 'content.delete', 'content.type']),
  )
})

test('a type of content is fixed, and what a document says wrongly is told', async () => {
  const of = await project()
  await contentOf(of).create('a', { n: 1 })
  const imported = async (content: object, isDry = true) =>
    of.admin.post(`/promotion/import?dry_run=${isDry}`, { document: { version: 1, definitions: { content } } })
  expect((await imported({ a: { content_type: 'page' } })).data.blocked).toMatchObject([{ code: 'FIELD_FIXED' }])
  expect((await imported({ b: { content_type: 'page', segment_id: 'none' } })).data.blocked).toMatchObject([
    { code: 'REFERENCE_MISSING' },
  ])
  expectRefusal(await imported({ b: { unknown: 1 } }), 400, 'INVALID_BODY')
  for (const bad of [
    { 'a b': { content_type: 'page' } },
    { b: { content_type: 'a b' } },
    { b: {} },
    { b: { content_type: 'page', tags: [1] } },
    { b: { content_type: 'page', sort_order: 1.5 } },
    { b: { content_type: 'page', starts_at: 'soon' } },
    { b: { content_type: 'page', default_locale: 'en_US' } },
    { b: { content_type: 'page', locales: { en_US: { fields: {}, status: 'draft' } } } },
    { b: { content_type: 'page', locales: { en: {} } } },
    { b: { content_type: 'page', locales: { en: { fields: {} } } } },
    { b: { content_type: 'page', locales: { en: { fields: [], status: 'draft' } } } },
    { b: { content_type: 'page', locales: { en: 7 } } },
    { 'type/a b': { fields: [] } },
    { 'type/a': { fields: [{ name: 'a' }] } },
  ]) {
    const { data, text } = await imported(bad)
    expect(data?.blocked, text).toMatchObject([{ kind: 'content' }])
    expectRefusal(await imported(bad, false), 400, 'INVALID_BODY')
  }
  const good = await imported({ b: { content_type: 'page', default_locale: 'de' } }, false)
  expect(good.status, good.text).toBe(202)
  expect((await contentOf(of).get('b')).locales).toMatchObject({ de: { fields: {}, version: 1 } })
})
