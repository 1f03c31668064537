import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { contentOf, segmentOf } from '#test/support/content.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const start = '2026-12-01T10:00:00.000Z'
const harness = await startHarness()
harness.setTime(start)
const project = await harness.project()
const { admin } = project
const { create, save, publish, get, list, clear } = contentOf(project)
afterEach(async () => {
  harness.setTime(start)
  await clear()
})

describe('an entry', () => {
  test('has the defaults that are told, and its fields are version 1, a draft', async () => {
    const made = await admin.post('/content', { key: 'Hello.World_1-a', content_type: 'article' })
    expect(made.status, made.text).toBe(201)
    const { id, created_at } = made.data
    expect(made.data).toEqual({
      id,
      key: 'Hello.World_1-a',
      content_type: 'article',
      default_locale: 'en',
      locales: {
        en: {
          status: 'draft',
          fields: {},
          version: 1,
          published_version: null,
          published_at: null,
          publish_at: null,
        },
      },
      tags: [],
      segment_id: null,
      starts_at: null,
      ends_at: null,
      sort_order: 0,
      version: 1,
      created_at,
      updated_at: created_at,
    })
    const segment_id = await segmentOf(project)
    const said = {
      tags: ['b', 'a'],
      segment_id,
      starts_at: '2026-01-01T00:00:00.000Z',
      ends_at: '2027-01-01T00:00:00.000Z',
      sort_order: -3,
    }
    const whole = await create('whole', { title: 'Hallo' }, { default_locale: 'PT-br', ...said })
    expect(whole).toMatchObject({
      default_locale: 'pt-BR',
      ...said,
      locales: { 'pt-BR': { fields: { title: 'Hallo' } } },
    })
    expect(await get(id)).toEqual(made.data)
    expect(await get('Hello.World_1-a')).toEqual(made.data)
    expectRefusal(await admin.get(`/content/${randomUUID()}`), 404, 'NOT_FOUND')
    expectRefusal(await admin.get('/content/none'), 404, 'NOT_FOUND')
    // a key may look like an id
    const twin = randomUUID()
    expect((await create(twin)).key).toBe(twin)
    expect((await get(twin)).key).toBe(twin)
  })

  test.each([
    ['key', { key: undefined }],
    ['key', { key: '' }],
    ['key', { key: 'a b' }],
    ['key', { key: 'a/b' }],
    ['key', { key: 'ä' }],
    ['key', { key: 'a'.repeat(65) }],
    ['content_type', { content_type: undefined }],
    ['content_type', { content_type: 'a b' }],
    ['content_type', { content_type: 'a'.repeat(65) }],
    ['fields', { fields: [] }],
    ['fields', { fields: 'x' }],
    ['fields', { fields: null }],
    ['fields', { fields: { '': 1 } }],
    ['fields', { fields: { ['x'.repeat(65)]: 1 } }],
    ['fields', { fields: { a: 'x'.repeat(262_144 - '{"a":""}'.length + 1) } }],
    ...[
      'en_US',
      '',
      'e',
      'en-',
      '-en',
      'deutschland',
      'en US',
      'de-DE-1',
      'en-u',
      'é',
      `en-${'abcde-'.repeat(20)}x`,
    ].map((default_locale) => ['default_locale', { default_locale }] as const),
    ['default_locale', { default_locale: null }],
  ] as [string, object][])('with a bad %s is refused: %j', async (field, more) => {
    const answer = await admin.post('/content', { key: 'bad', content_type: 'article', ...more })
    expectRefusal(answer, 400, 'VALIDATION_ERROR')
    expect(answer.error?.details.field.split('.')[0]).toBe(field)
    expect(await list('')).toEqual([])
  })

  const ofBoth: [string, object][] = [
    ['tags', { tags: 'a' }],
    ['tags', { tags: null }],
    ['tags', { tags: ['a', 'a'] }],
    ['tags', { tags: [''] }],
    ['tags', { tags: ['x'.repeat(65)] }],
    ['tags', { tags: [1] }],
    ['tags', { tags: Array.from({ length: 51 }, (_, n) => `t${n}`) }],
    ['segment_id', { segment_id: 'vip' }],
    ['segment_id', { segment_id: randomUUID() }],
    ['starts_at', { starts_at: 'tomorrow' }],
    ['ends_at', { ends_at: 7 }],
    ['ends_at', { starts_at: '2026-01-02T00:00:00Z', ends_at: '2026-01-02T00:00:00Z' }],
    ['ends_at', { starts_at: '2026-01-02T00:00:00Z', ends_at: '2026-01-01T00:00:00Z' }],
    ['sort_order', { sort_order: 1.5 }],
    ['sort_order', { sort_order: '1' }],
    ['sort_order', { sort_order: null }],
    ['sort_order', { sort_order: 2 ** 31 }],
    ['default_locale', { default_locale: 'en_US' }],
  ]
  test.each(ofBoth)('with a bad %s is refused, new or changed: %j', async (field, more) => {
    await create('good')
    for (const answer of [
      await admin.post('/content', { key: 'bad', content_type: 'article', ...more }),
      await admin.patch('/content/good', more),
    ]) {
      expectRefusal(answer, 400, 'VALIDATION_ERROR')
      expect(answer.error?.details.field.split('.')[0]).toBe(field)
    }
    expect((await get('good')).version).toBe(1)
  })

  test('takes what is as large as may be', async () => {
    const tags = Array.from({ length: 50 }, (_, n) => `${n}`.padEnd(64, 'ü'))
    const text = 'x'.repeat(262_144 - '{"a":"","b":[1,2,3]}'.length)
    const fields = { a: text, b: [1, 2, 3] }
    expect((await create('large', fields, { tags })).tags).toEqual(tags)
    expect((await get('large')).locales.en.fields).toEqual(fields)
    expectInvalid(await admin.put('/content/large/locales/en', { fields: { ...fields, a: `${text}x` } }), 'fields')
    expect((await save('large', 'en', { ['n'.repeat(64)]: 0 })).version).toBe(2)
  })

  test('PATCH changes what it may, counts only what differs, and leaves key, type and fields', async () => {
    await create('e', { title: 'Hi' }, { tags: ['x'], ends_at: '2027-01-01T00:00:00Z' })
    const sent = { tags: ['b', 'a'], sort_order: 4, starts_at: '2026-06-01T00:00:00.000Z' }
    const changed = await admin.patch('/content/e', {
      ...sent,
      ...{ ends_at: null, key: 'f', content_type: 'g', fields: { title: 'no' }, version: 9 },
    })
    expect(changed.status, changed.text).toBe(200)
    expect(changed.data).toMatchObject({ ...sent, ends_at: null, key: 'e', content_type: 'article', version: 2 })
    expect(changed.data.locales.en.fields).toEqual({ title: 'Hi' })
    expect((await admin.patch('/content/e', { ...sent, ends_at: null })).data).toEqual(changed.data)
    expect((await admin.patch('/content/e', {})).data).toEqual(changed.data)
    expectInvalid(await admin.patch('/content/e', { default_locale: 'de' }), 'default_locale')
    await save('e', 'de', {})
    expect((await admin.patch('/content/e', { default_locale: 'DE' })).data).toMatchObject({
      default_locale: 'de',
      version: 4,
    })
    expectRefusal(await admin.patch('/content/none', {}), 404, 'NOT_FOUND')
  })

  test('its version counts every change', async () => {
    await create('e')
    await save('e', 'de', {})
    await admin.patch('/content/e', { sort_order: 1 })
    await publish('e', 'de')
    await admin.post('/content/e/locales/de/unpublish')
    await admin.post('/content/e/rollback', { locale: 'en', version: 1 })
    expect((await get('e')).version).toBe(6)
    // what changes nothing is not counted
    await admin.post('/content/e/locales/de/unpublish')
    await publish('e', 'en')
    await publish('e', 'en')
    expect((await get('e')).version).toBe(7)
  })

  test('DELETE takes all of it, and the key is free again', async () => {
    await create('e', { a: 1 })
    await save('e', 'de', {})
    await admin.post('/content/e/preview-token')
    expect((await admin.delete('/content/e')).data).toEqual({ deleted: true })
    for (const table of ['content_entries', 'content_locales', 'content_versions', 'content_previews'])
      expect(await project.sql(`select 1 from app.${table}`), table).toEqual([])
    expectRefusal(await admin.delete('/content/e'), 404, 'NOT_FOUND')
    expect((await create('e')).version).toBe(1)
    expectRefusal(await admin.post('/content', { key: 'e', content_type: 'b' }), 409, 'CONFLICT')
  })

  test('the 10,001st is refused, also of two that race', async () => {
    await project.sql(`insert into app.content_entries (key, content_type, default_locale)
                       select 'n' || n, 'article', 'en' from generate_series(1, 9999) n`)
    const both = await Promise.all(['a', 'b'].map((key) => admin.post('/content', { key, content_type: 'article' })))
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
    expectRefusal(both.find(({ status }) => status === 409)!, 409, 'LIMIT_REACHED')
  })

  test('has at most 50 locales, whoever saves at once', async () => {
    await create('e')
    await Promise.all(Array.from({ length: 47 }, (_, n) => save('e', `en-x-a${n}`, {})))
    const raced = await Promise.all(
      ['de', 'fr', 'it', 'es'].map((locale) => admin.put(`/content/e/locales/${locale}`, { fields: {} })),
    )
    expect(raced.map(({ status }) => status).sort()).toEqual([200, 200, 409, 409])
    expectRefusal(raced.find(({ status }) => status === 409)!, 409, 'LIMIT_REACHED')
    // one that it has is saved as before
    await save('e', 'en', {})
  })
})

describe('a language', () => {
  test('is made by saving, under its canonical tag, with the answer of the new version', async () => {
    await create('e')
    for (const [sent, kept] of [
      ['pt-br', 'pt-BR'],
      ['ZH-hant-tw', 'zh-Hant-TW'],
      ['EN-CA-X-CA-HANT', 'en-CA-x-ca-hant'],
      ['sl-rozaj-biske-1994', 'sl-rozaj-biske-1994'],
      ['DE-u-CO-phonebk', 'de-u-co-phonebk'],
      ['es-419', 'es-419'],
      ['X-Foo', 'x-foo'],
    ] as const) {
      const answer = await admin.put(`/content/e/locales/${sent}`, { fields: { a: sent } })
      expect(answer.status, answer.text).toBe(200)
      expect(answer.data).toEqual({
        locale: kept,
        version: 1,
        fields: { a: sent },
        author: { type: 'developer', id: project.developer.id },
        created_at: expect.any(String),
      })
    }
    expectInvalid(await admin.put('/content/e/locales/en_US', { fields: {} }), 'locale')
    for (const verb of ['publish', 'unpublish'])
      expectInvalid(await admin.post(`/content/e/locales/en_US/${verb}`), 'locale')
    expectInvalid(await admin.put('/content/e/locales/de', {}), 'fields')
    expectInvalid(await admin.put('/content/e/locales/de', { fields: [] }), 'fields')
    expectRefusal(await admin.put('/content/none/locales/de', { fields: {} }), 404, 'NOT_FOUND')
  })

  test('its versions are numbered without gaps, whoever saves at once, and the newest 50 are kept', async () => {
    await create('e', { n: 0 })
    await publish('e')
    await save('e', 'en', { n: 'scheduled' })
    await publish('e', 'en', { publish_at: '2099-01-01T00:00:00Z' })
    const saved = await Promise.all(Array.from({ length: 20 }, (_, n) => save('e', 'en', { n })))
    expect(saved.map(({ version }) => version).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, n) => n + 3),
    )
    for (let n = 0; n < 38; n++) await save('e', 'en', { n: 'same' })
    const { body } = await admin.get('/content/e/versions?limit=100')
    expect(body.total).toBe(52)
    expect(body.data.map(({ version }: any) => version)).toEqual([
      ...Array.from({ length: 50 }, (_, n) => 60 - n),
      ...[2, 1],
    ])
    expect(body.data.at(-1)).toMatchObject({ locale: 'en', fields: { n: 0 } })
    expect((await get('e')).locales.en).toMatchObject({ version: 60, published_version: 1, status: 'scheduled' })
    // once neither is published or scheduled, they go with the next save
    await admin.post('/content/e/locales/en/unpublish')
    await save('e', 'en', {})
    expect((await admin.get('/content/e/versions?limit=100')).body.data.at(-1).version).toBe(1)
    await admin.post('/content/e/locales/en/unpublish')
    await save('e', 'en', {})
    expect((await admin.get('/content/e/versions?limit=100')).body).toMatchObject({ total: 50 })
  })

  test('with a base version, is saved only where that is the newest, whoever saves at once', async () => {
    await create('e', { n: 1 })
    const put = (locale: string, n: number, base_version: unknown) =>
      admin.put(`/content/e/locales/${locale}`, { fields: { n }, base_version })
    expect((await put('en', 2, 1)).data).toMatchObject({ version: 2 })
    const late = await put('en', 3, 1)
    expectRefusal(late, 409, 'CONFLICT', 'base_version')
    expect(late.error?.details).toEqual({ field: 'base_version', version: 2 })
    expect((await get('e')).locales.en).toMatchObject({ version: 2, fields: { n: 2 } })
    // 0 is that of a language that is not there
    expectRefusal(await put('de', 1, 1), 409, 'CONFLICT', 'base_version')
    expectRefusal(await put('en', 1, 0), 409, 'CONFLICT', 'base_version')
    const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => put('DE', n, 0)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 9 }, () => 409)])
    expect((await put('de', 5, null)).data).toMatchObject({ version: 2 })
    for (const bad of [-1, 1.5, '1', 2_147_483_648]) expectInvalid(await put('en', 1, bad), 'base_version')
  })

  test('versions are a page of one language, of the default one where none is named', async () => {
    await create('e', { n: 1 }, { default_locale: 'de' })
    await save('e', 'de', { n: 2 })
    await save('e', 'fr', { n: 'fr' })
    const first = await admin.get('/content/e/versions?limit=1&offset=1')
    expect(first.body).toMatchObject({
      total: 2,
      offset: 1,
      limit: 1,
      data: [{ locale: 'de', version: 1, fields: { n: 1 } }],
    })
    expect((await admin.get('/content/e/versions?locale=FR')).data).toMatchObject([{ locale: 'fr', version: 1 }])
    expectRefusal(await admin.get('/content/e/versions?locale=it'), 404, 'NOT_FOUND')
    expectRefusal(await admin.get('/content/none/versions'), 404, 'NOT_FOUND')
    expectInvalid(await admin.get('/content/e/versions?locale=en_US'), 'locale')
  })
})

test('rollback saves the fields of a version as a new one, publishes nothing and touches no old row', async () => {
  await create('e', { n: 1 })
  await publish('e')
  await save('e', 'en', { n: 2 })
  const rows = () => project.sql('select * from app.content_versions where version < 3 order by version')
  const before = await rows()
  const answer = await admin.post('/content/e/rollback', { locale: 'EN', version: 1 })
  expect(answer.status, answer.text).toBe(200)
  expect(answer.data.locales.en).toMatchObject({
    status: 'published',
    fields: { n: 1 },
    version: 3,
    published_version: 1,
  })
  expect(await rows()).toEqual(before)
  for (const [locale, version] of [
    ['en', 4],
    ['de', 1],
  ])
    expectRefusal(await admin.post('/content/e/rollback', { locale, version }), 404, 'NOT_FOUND')
  expectInvalid(await admin.post('/content/e/rollback', { locale: 'en_US', version: 1 }), 'locale')
  expectInvalid(await admin.post('/content/e/rollback', { locale: 'en' }), 'version')
  expectInvalid(await admin.post('/content/e/rollback', { version: 1 }), 'locale')
  expectRefusal(await admin.post('/content/none/rollback', { locale: 'en', version: 1 }), 404, 'NOT_FOUND')
})

describe('the list', () => {
  test('is by sort_order, then newest first, then by id, page by page', async () => {
    await create('old')
    harness.advance(60)
    await create('new')
    await create('twin')
    await create('last', {}, { sort_order: 1 })
    await create('first', {}, { sort_order: -1 })
    expect(await list('')).toEqual(['first', 'twin', 'new', 'old', 'last'])
    const page = await admin.get('/content?limit=2&offset=1')
    expect(page.body).toMatchObject({ total: 5, offset: 1, limit: 2, data: [{ key: 'twin' }, { key: 'new' }] })
  })

  test('is filtered by type, tag, status, language and text', async () => {
    await create(
      'a',
      { title: 'Straße 100% sure', deep: [{ text: 'in_the "deep" C:\\Down' }] },
      { content_type: 'page', tags: ['x', 'y'] },
    )
    await create('b', { title: 'plain', secret: 7 }, { tags: ['y'] })
    await save('b', 'de', { title: 'Übung' })
    await publish('b', 'de')
    await save('a', 'fr', { title: 'gone' })
    await save('a', 'fr', { title: 'à venir' })
    await publish('a', 'fr', { publish_at: '2099-01-01T00:00:00Z' })
    for (const [query, keys] of [
      ['content_type=page', ['a']],
      ['content_type=none', []],
      ['tag=x', ['a']],
      ['tag=y', ['b', 'a']],
      ['tag=x%2Cy', []],
      ['status=draft', ['b', 'a']],
      ['status=published', ['b']],
      ['status=scheduled', ['a']],
      ['status=published&locale=en', []],
      ['status=published&locale=DE', ['b']],
      ['status=draft&locale=de', []],
      ['locale=fr', ['a']],
      ['search=STRASSE', []],
      ['search=stra%C3%9Fe', ['a']],
      ['search=100%25', ['a']],
      ['search=0%25s', []],
      ['search=in_the', ['a']],
      ['search=in-the', []],
      ['search=%22DEEP%22', ['a']],
      ['search=%22', ['a']],
      ['search=%5Cdown', ['a']],
      ['search=%5C%5C', []],
      ['search=%22%7D', []],
      ['search=%C3%9CBUNG', ['b']],
      ['search=gone', []],
      ['search=venir', ['a']],
      ['search=title', []],
      ['search=7', []],
      ['search=B', ['b']],
      ['search=plain&tag=x', []],
      // from one text to the next
      ['search=sure%01in', []],
      ['search=sure%20in', []],
    ] as const)
      expect(await list(query), query).toEqual(keys)
    expectRefusal(await admin.get('/content?status=live'), 400, 'INVALID_INPUT', 'status')
    expectRefusal(await admin.get('/content?locale=en_US'), 400, 'VALIDATION_ERROR', 'locale')
  })
})

test('a search looks at the texts of the newest versions, and at nothing else', async () => {
  await create('a', { title: 'First', list: ['Ä', { deep: 'B' }], n: 1 })
  await save('a', 'de', { title: 'Erste' })
  await save('a', 'en', { title: 'Second' })
  await create('none', { n: 1 })
  const texts = () => project.sql('select locale, text from app.content_texts order by text')
  expect(await texts()).toEqual([
    { locale: 'en', text: '' },
    { locale: 'de', text: 'erste' },
    { locale: 'en', text: 'second' },
  ])
  await admin.post('/content/a/rollback', { locale: 'en', version: 1 })
  expect(await list('search=b')).toEqual(['a'])
  await admin.delete('/content/a')
  expect(await texts()).toEqual([{ locale: 'en', text: '' }])
})

test('other projects and keys see none of it, and the trail has every change', async () => {
  await create('e')
  await save('e', 'de', {})
  await publish('e', 'de')
  await admin.post('/content/e/locales/de/unpublish')
  await admin.post('/content/e/rollback', { locale: 'en', version: 1 })
  await admin.patch('/content/e', { sort_order: 3 })
  await admin.put('/content-types/article', { fields: [] })
  await admin.post('/content/e/preview-token')
  const other = await harness.project()
  expect((await other.admin.get('/content')).body.total).toBe(0)
  expectRefusal(await other.admin.get('/content/e'), 404, 'NOT_FOUND')
  expectRefusal(await other.admin.with({}).get('/content/e'), 404, 'NOT_FOUND')
  expectRefusal(
    await project.developer.with(other.developer.headers).get(`/admin/projects/${project.id}/content`),
    403,
    'PROJECT_FORBIDDEN',
  )
  await admin.delete('/content/e')
  const trail = await project.sql(
    `select action, changes from app.audit_events where action like 'content.%' order by position desc limit 9`,
  )
  expect(trail.reverse().map(({ action, changes }) => [action, changes])).toEqual([
    ['content.create', { key: 'e', content_type: 'article' }],
    ['content.save', { locale: 'de', version: 1 }],
    ['content.publish', { locale: 'de', version: 1, publish_at: null }],
    ['content.unpublish', { locale: 'de' }],
    ['content.rollback', { locale: 'en', version: 2, from: 1 }],
    ['content.update', { sort_order: [0, 3], version: [5, 6] }],
    ['content.type', { type: 'article', fields: [] }],
    ['content.preview', {}],
    ['content.delete', { key: 'e' }],
  ])
})

test('apps, users and servers reach no table', async () => {
  for (const role of ['app_anon', 'app_user', 'app_server'] as const)
    for (const table of ['content_entries', 'content_locales', 'content_versions', 'content_previews', 'content_types'])
      await expect(project.as(role, {}, `select 1 from app.${table}`), `${role} ${table}`).rejects.toThrow(/permission/)
  for (const statement of ['insert into app.content_types (type) values (1)', 'delete from app.content_versions'])
    await expect(project.as('app_admin', {}, statement)).rejects.toThrow(/permission/)
  await expect(project.as('app_admin', {}, 'select 1 from app.content_previews')).rejects.toThrow(/permission/)
})
