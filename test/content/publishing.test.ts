import { afterEach, describe, expect, test } from 'vitest'
import { contentOf } from '#test/support/content.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const start = '2026-12-01T10:00:00.000Z'
const later = '2026-12-01T11:00:00.000Z'
const harness = await startHarness()
harness.setTime(start)
const project = await harness.project()
const { admin, app } = project
const { create, save, publish, unpublish, get, list, clear } = contentOf(project)
afterEach(async () => {
  harness.setTime(start)
  await clear()
})

const state = async (key = 'e', locale = 'en') => {
  const { fields: _fields, ...rest } = (await get(key)).locales[locale]
  return rest
}
const draft = { status: 'draft', published_version: null, published_at: null, publish_at: null }
const seen = async (key = 'e') => {
  const { status, data } = await app.get(`/client/content/${key}`)
  return status === 200 ? [data.version, data.published_at, data.fields] : status
}

describe('publishing', () => {
  test('shows the newest version, or the one that is named; later saves change what the developer sees alone', async () => {
    await create('e', { n: 1 })
    expect(await seen()).toBe(404)
    const answer = await admin.post('/content/e/locales/EN/publish')
    expect(answer.status, answer.text).toBe(200)
    expect(answer.data).toMatchObject({ key: 'e', version: 2 })
    expect(await state()).toEqual({
      ...draft,
      status: 'published',
      version: 1,
      published_version: 1,
      published_at: start,
    })
    harness.advance(60)
    await save('e', 'en', { n: 2 })
    expect(await state()).toMatchObject({ status: 'published', version: 2, published_version: 1, published_at: start })
    expect((await get('e')).locales.en.fields).toEqual({ n: 2 })
    expect(await seen()).toEqual([1, start, { n: 1 }])
    await publish('e')
    expect(await seen()).toEqual([2, '2026-12-01T10:01:00.000Z', { n: 2 }])
    await publish('e', 'en', { version: 1, publish_at: null })
    expect(await seen()).toEqual([1, '2026-12-01T10:01:00.000Z', { n: 1 }])
  })

  test('what is published changes nothing', async () => {
    await create('e')
    const first = await publish('e')
    harness.advance(60)
    expect(await publish('e')).toEqual(first)
    expect(await publish('e', 'en', { version: 1 })).toEqual(first)
    // a time that is past is at once
    expect(await publish('e', 'en', { publish_at: start })).toEqual(first)
  })

  test('an unknown language, version or entry is 404', async () => {
    await create('e')
    for (const path of ['e/locales/de', 'none/locales/en'])
      for (const verb of ['publish', 'unpublish'])
        expectRefusal(await admin.post(`/content/${path}/${verb}`), 404, 'NOT_FOUND')
    expectRefusal(await admin.post('/content/e/locales/en/publish', { version: 2 }), 404, 'NOT_FOUND')
    expectInvalid(await admin.post('/content/e/locales/en/publish', { version: 0 }), 'version')
    expectInvalid(await admin.post('/content/e/locales/en/publish', { publish_at: 'soon' }), 'publish_at')
  })

  test('unpublish withdraws, and a draft stays a draft', async () => {
    await create('e')
    const made = await get('e')
    expect(await unpublish('e')).toEqual(made)
    await publish('e')
    expect((await unpublish('e')).version).toBe(3)
    expect(await state()).toEqual({ ...draft, version: 1 })
    expect(await seen()).toBe(404)
  })

  test('twenty who publish at once publish once', async () => {
    await create('e')
    const answers = await Promise.all(Array.from({ length: 20 }, () => publish('e')))
    expect(new Set(answers.map(({ version }) => version))).toEqual(new Set([2]))
  })
})

describe('a schedule', () => {
  test('takes effect by the clock, without a worker, in every read and filter', async () => {
    await create('e', { n: 1 })
    const answer = await publish('e', 'en', { publish_at: later })
    expect(answer.version).toBe(2)
    expect(await state()).toEqual({ ...draft, status: 'scheduled', version: 1, publish_at: later })
    // what is saved after it does not slip in
    await save('e', 'en', { n: 2 })
    harness.setTime('2026-12-01T10:59:59.999Z')
    expect(await seen()).toBe(404)
    expect([await list('status=scheduled'), await list('status=published')]).toEqual([['e'], []])
    harness.setTime(later)
    expect(await seen()).toEqual([1, later, { n: 1 }])
    expect((await app.get('/client/content')).body).toMatchObject({ total: 1, data: [{ published_at: later }] })
    expect([await list('status=scheduled'), await list('status=published')]).toEqual([[], ['e']])
    const published = { ...draft, status: 'published', version: 2, published_version: 1, published_at: later }
    expect(await state()).toEqual(published)
    expect((await project.sql('select publish_at from app.content_locales'))[0].publish_at).not.toBeNull()
    // the worker writes the same down
    const before = await get('e')
    harness.advance(30)
    await project.drain()
    expect((await project.sql('select publish_at from app.content_locales'))[0].publish_at).toBeNull()
    expect(await get('e')).toEqual(before)
    expect(await state()).toEqual(published)
  })

  test('over a published version leaves that one live until its time', async () => {
    await create('e', { n: 1 })
    await publish('e')
    await save('e', 'en', { n: 2 })
    await publish('e', 'en', { publish_at: later })
    expect(await state()).toEqual({
      status: 'scheduled',
      version: 2,
      published_version: 1,
      published_at: start,
      publish_at: later,
    })
    expect(await seen()).toEqual([1, start, { n: 1 }])
    harness.setTime(later)
    expect(await seen()).toEqual([2, later, { n: 2 }])
  })

  test('is replaced by another, and by publishing at once', async () => {
    await create('e', { n: 1 })
    await publish('e', 'en', { publish_at: later })
    await publish('e', 'en', { publish_at: '2026-12-01T12:00:00Z' })
    harness.setTime(later)
    await project.drain()
    expect(await seen()).toBe(404)
    expect((await publish('e', 'en', { publish_at: '2026-12-01T12:00:00Z' })).version).toBe(3)
    await save('e', 'en', { n: 2 })
    await publish('e')
    expect(await state()).toMatchObject({ status: 'published', published_version: 2, publish_at: null })
    harness.setTime('2026-12-01T12:00:01Z')
    await project.drain()
    expect(await seen()).toEqual([2, later, { n: 2 }])
  })

  test('is cancelled by unpublish: published again if a version is live, else a draft', async () => {
    await create('e', { n: 1 })
    await publish('e', 'en', { publish_at: later })
    await unpublish('e')
    expect(await state()).toEqual({ ...draft, version: 1 })
    await publish('e')
    await save('e', 'en', { n: 2 })
    await publish('e', 'en', { publish_at: later })
    await unpublish('e')
    expect(await state()).toMatchObject({ status: 'published', published_version: 1, publish_at: null })
    harness.setTime('2026-12-01T12:00:00Z')
    await project.drain()
    expect(await seen()).toEqual([1, start, { n: 1 }])
  })

  test('that is due counts as published for what follows, also before a worker comes', async () => {
    await create('e', { n: 1 })
    await publish('e', 'en', { publish_at: later })
    await save('e', 'en', { n: 2 })
    harness.setTime('2026-12-01T11:00:01Z')
    // the live version stays when another one is scheduled over it
    await publish('e', 'en', { publish_at: '2026-12-01T12:00:00Z' })
    expect(await state()).toMatchObject({ status: 'scheduled', published_version: 1, published_at: later })
    await unpublish('e')
    await unpublish('e')
    expect(await state()).toEqual({ ...draft, version: 2 })
    await project.drain()
    expect(await seen()).toBe(404)
  })

  test('of one language says nothing of another', async () => {
    await create('e', { n: 1 })
    await save('e', 'de', { n: 'eins' })
    await publish('e', 'de', { publish_at: later })
    expect([await state('e', 'en'), await state('e', 'de')]).toMatchObject([draft, { status: 'scheduled' }])
    harness.setTime(later)
    expect([await state('e', 'en'), await state('e', 'de')]).toMatchObject([draft, { status: 'published' }])
  })

  test('a thousand in the same second: all are seen at once', async () => {
    await project.sql(`
      with made as (
        insert into app.content_entries (key, content_type, default_locale)
        select 'n' || n, 'article', 'en' from generate_series(1, 1000) n returning id
      ), placed as (
        insert into app.content_locales (entry_id, locale, scheduled_version, publish_at)
        select id, 'en', 1, '${later}' from made returning entry_id
      )
      insert into app.content_versions (entry_id, locale, version, fields, author)
      select entry_id, 'en', 1, '{"n": 1}', '{"type": "system", "id": null}' from placed`)
    expect((await app.get('/client/content')).body.total).toBe(0)
    harness.setTime(later)
    expect((await app.get('/client/content')).body.total).toBe(1000)
    expect((await admin.get('/content?status=published')).body.total).toBe(1000)
  })
})
