import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { contentOf } from '#test/support/content.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
const { create, save, publish, get, schema, clear } = contentOf(project)
afterEach(clear)

const put = (locale: string, fields: object) => admin.put(`/content/e/locales/${locale}`, { fields })
const post = (fields: object) => admin.post('/content', { key: 'new', content_type: 'article', fields })

test('a schema is set and replaced whole, with its defaults, and lifted by an empty list', async () => {
  const made = await schema('article', [{ name: 'title', type: 'text' }])
  expect(made).toEqual({
    type: 'article',
    fields: [{ name: 'title', type: 'text', required: false, localized: true }],
    created_at: expect.any(String),
    updated_at: expect.any(String),
  })
  const said = { name: 'A1_b', type: 'json', required: true, localized: false }
  expect(await schema('article', [said])).toMatchObject({ fields: [said], created_at: made.created_at })
  expectInvalid(await post({ title: 1 }), 'fields.title')
  // another type is not checked
  await create('other', { title: 1 }, { content_type: 'page' })
  expect((await schema('article', [])).fields).toEqual([])
  await create('e', { title: 1, more: 2 })
})

test.each([
  ['fields', undefined],
  ['fields', {}],
  ['fields', Array.from({ length: 101 }, (_, n) => ({ name: `f${n}`, type: 'text' }))],
  [
    'fields',
    [
      { name: 'a', type: 'text' },
      { name: 'a', type: 'json' },
    ],
  ],
  ['fields.0', ['a']],
  ['fields.0.name', [{ type: 'text' }]],
  ['fields.0.name', [{ name: '1a', type: 'text' }]],
  ['fields.0.name', [{ name: '_a', type: 'text' }]],
  ['fields.0.name', [{ name: 'a-b', type: 'text' }]],
  ['fields.0.name', [{ name: 'a'.repeat(65), type: 'text' }]],
  ['fields.0.type', [{ name: 'a', type: 'string' }]],
  ['fields.0.type', [{ name: 'a' }]],
  ['fields.0.required', [{ name: 'a', type: 'text', required: 'yes' }]],
  ['fields.0.localized', [{ name: 'a', type: 'text', localized: null }]],
])('a schema with bad %s is refused', async (field, fields) => {
  expectInvalid(await admin.put('/content-types/article', { fields }), field)
})

test('names of types are bounded, and so is their number', async () => {
  for (const type of ['a b', 'ä', 'a'.repeat(65)])
    expectInvalid(await admin.put(`/content-types/${encodeURIComponent(type)}`, { fields: [] }), 'type')
  const names = Array.from({ length: 100 }, (_, n) => ({ name: `f${n}`.padEnd(64, 'x'), type: 'text' }))
  expect((await schema('A.b_c-1'.padEnd(64, '1'), names)).fields).toHaveLength(100)
  await project.sql(`insert into app.content_types (type) select 't' || n from generate_series(1, 999) n`)
  expectRefusal(await admin.put('/content-types/one_more', { fields: [] }), 409, 'LIMIT_REACHED')
  await schema('t1', [])
})

test('a save is checked: unknown names, and values of another type', async () => {
  const [asset] = await project.sql(
    `insert into app.media_assets (key, filename, mime_type, source, object_version, status, size_bytes)
     values ('k', 'f', 'image/png', 'upload', 'v', 'committed', 1) returning id`,
  )
  const [gone] = await project.sql(
    `insert into app.media_assets (key, filename, mime_type, source, object_version, status, deleted_at)
     values ('k2', 'f', 'image/png', 'upload', 'v', 'deleted', now()) returning id`,
  )
  const other = await create('other')
  const types: Record<string, { good: unknown[]; bad: unknown[] }> = {
    text: { good: ['', 'a'], bad: [1, true, [], {}] },
    markdown: { good: ['# a'], bad: [1] },
    number: { good: [0, -1.5, 1e30], bad: ['1', true, [1]] },
    boolean: { good: [true, false], bad: ['true', 0] },
    date: {
      good: ['2026-02-28', '2026-02-28T09:30Z', '2026-02-28T09:30:00.123+02:00', '2026-02-28T09:30:00'],
      bad: ['2026-02-30', '28.02.2026', '2026-2-28', 'today', '2026-02-28T25:00Z', 20260228, '2026-02-28 or so', ''],
    },
    media: { good: [asset.id], bad: [gone.id, randomUUID(), 'k', 7] },
    reference: { good: [other.id, 'other', 'e'], bad: [randomUUID(), 'none', 7, {}] },
    json: { good: ['a', 1, [], { a: null }], bad: [] },
  }
  await create('e')
  await schema(
    'article',
    Object.keys(types).map((type) => ({ name: `a_${type}`, type })),
  )
  for (const [type, { good, bad }] of Object.entries(types)) {
    for (const value of [...good, null]) {
      const answer = await put('de', { [`a_${type}`]: value })
      expect(answer.status, `${type} ${JSON.stringify(value)} ${answer.text}`).toBe(200)
    }
    for (const value of bad) expectInvalid(await put('de', { [`a_${type}`]: value }), `fields.a_${type}`)
  }
  expectInvalid(await put('en', { b: null }), 'fields.b')
  expectInvalid(await post({ a_text: 1 }), 'fields.a_text')
  expect((await get('e')).locales.en.version).toBe(1)
})

test('required is asked of the default language alone; what is not localized is saved there alone', async () => {
  await create('e', { title: 'x' })
  await schema('article', [
    { name: 'title', type: 'text', required: true },
    { name: 'price', type: 'number', localized: false },
  ])
  for (const fields of [{}, { title: null }]) {
    expectInvalid(await put('en', fields), 'fields.title')
    expectInvalid(await post(fields), 'fields.title')
  }
  await save('e', 'en', { title: '', price: 3 })
  await save('e', 'de', {})
  await save('e', 'de', { price: null })
  expectInvalid(await put('de', { price: 3 }), 'fields.price')
})

test('what is stored stays and can be published; a rollback is a save', async () => {
  await create('e', { old: 1 })
  await schema('article', [{ name: 'title', type: 'text' }])
  expect((await get('e')).locales.en.fields).toEqual({ old: 1 })
  await publish('e')
  await save('e', 'en', { title: 'x' })
  expectInvalid(await admin.post('/content/e/rollback', { locale: 'en', version: 1 }), 'fields.old')
  await publish('e', 'en', { version: 1 })
  expect((await project.app.get('/client/content/e')).data.fields).toEqual({ old: 1 })
})

describe('the schemas of types', () => {
  test('are read by name, and listed', async () => {
    await schema('page', [{ name: 'title', type: 'text', required: true }])
    await schema('banner', [{ name: 'until', type: 'date', localized: false }])
    const page = await admin.get('/content-types/page')
    expect(page.data).toEqual({
      type: 'page',
      fields: [{ name: 'title', type: 'text', required: true, localized: true }],
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    const all = await admin.get('/content-types')
    expect(all.data.map(({ type }: { type: string }) => type)).toEqual(['banner', 'page'])
    expect((await admin.get('/content-types?offset=1&limit=1')).data).toEqual([page.data])
    expectRefusal(await admin.get('/content-types/other'), 404, 'NOT_FOUND')
    const stranger = await harness.project()
    expectRefusal(await stranger.admin.get('/content-types/page'), 404, 'NOT_FOUND')
    expect((await stranger.admin.get('/content-types')).data).toEqual([])
  })
})
