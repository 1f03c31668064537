import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { contentOf, segmentOf } from '#test/support/content.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const start = '2026-12-01T10:00:00.000Z'
const harness = await startHarness()
harness.setTime(start)
const project = await harness.project()
const { admin, app } = project
const user = await project.user()
const { create, save, publish, unpublish, get, schema, clear } = contentOf(project)
afterEach(async () => {
  harness.setTime(start)
  await user.patch('/client/users/me', { properties: { locale: null } })
  await clear()
})

/** Languages with their fields, all published but those that are drafts. */
const entry = async (key: string, languages: Record<string, object>, more: object = {}, drafts: string[] = []) => {
  const [home = 'en', ...others] = Object.keys(languages)
  await create(key, languages[home], { default_locale: home, ...more })
  for (const locale of others) await save(key, locale, languages[locale] ?? {})
  for (const locale of [home, ...others]) if (!drafts.includes(locale)) await publish(key, locale)
}
const read = async (query = '', headers: Record<string, string> = {}, by = app) => {
  const { status, data } = await by.get(`/client/content/e${query}`, headers)
  return status === 200 ? [data.locale, data.fallback, data.fields] : status
}
const keysOf = async (by = app, query = '') => {
  const { body } = await by.get(`/client/content${query}`)
  expect(body.total).toBe(body.data.length)
  return body.data.map(({ key }: any) => key)
}

describe('the language', () => {
  test('is the one asked for, a parent of it, or the default; drafts are passed over', async () => {
    await entry('e', { en: { a: 'en' }, 'zh-Hant': { a: 'hant' }, zh: { a: 'zh' }, de: { a: 'draft' } }, {}, ['de'])
    expect(await read('?locale=zh-Hant')).toEqual(['zh-Hant', false, { a: 'hant' }])
    expect(await read('?locale=ZH-hant-tw')).toEqual(['zh-Hant', true, { a: 'hant' }])
    expect(await read('?locale=zh-Hant-x-private')).toEqual(['zh-Hant', true, { a: 'hant' }])
    await unpublish('e', 'zh-Hant')
    expect(await read('?locale=zh-Hant-TW')).toEqual(['zh', true, { a: 'zh' }])
    expect(await read('?locale=zh-Hans')).toEqual(['zh', true, { a: 'zh' }])
    expect(await read('?locale=de')).toEqual(['en', true, { a: 'en' }])
    expect(await read('?locale=de-CH')).toEqual(['en', true, { a: 'en' }])
    expect(await read('?locale=en')).toEqual(['en', false, { a: 'en' }])
    expect(await read()).toEqual(['en', false, { a: 'en' }])
    await unpublish('e')
    expect(await read()).toBe(404)
    expect(await read('?locale=fr')).toBe(404)
    expect(await read('?locale=zh')).toEqual(['zh', false, { a: 'zh' }])
    for (const bad of ['en_US', '', 'x', '%00'])
      expectRefusal(await app.get(`/client/content/e?locale=${bad}`), 400, 'INVALID_INPUT', 'locale')
    expectRefusal(await app.get('/client/content?locale=en_US'), 400, 'INVALID_INPUT', 'locale')
  })

  test('comes from the parameter, else the user property, else Accept-Language', async () => {
    await entry('e', { en: { a: 'en' }, de: { a: 'de' }, fr: { a: 'fr' }, pt: { a: 'pt' } })
    const header = { 'accept-language': 'fr' }
    expect(await read('', header, user)).toEqual(['fr', false, { a: 'fr' }])
    await user.patch('/client/users/me', { properties: { locale: 'de-at' } })
    expect(await read('', header, user)).toEqual(['de', true, { a: 'de' }])
    expect(await read('?locale=pt', header, user)).toEqual(['pt', false, { a: 'pt' }])
    expect(await read('', header, project.onBehalfOf(user.id))).toEqual(['de', true, { a: 'de' }])
    // the property of somebody else is not asked
    expect(await read('', header)).toEqual(['fr', false, { a: 'fr' }])
    for (const none of ['en_US', 7, { de: 1 }, '']) {
      await user.patch('/client/users/me', { properties: { locale: none } })
      expect(await read('', header, user)).toEqual(['fr', false, { a: 'fr' }])
    }
    expect(await read('', {}, user)).toEqual(['en', false, { a: 'en' }])
  })

  test.each([
    ['fr;q=0.5, de', 'de', false],
    ['it, fr', 'fr', true],
    ['de-CH, fr', 'de', true],
    ['it-CH, de;q=0.4, fr;q=0.8', 'fr', true],
    ['de;q=0, fr;q=0.1', 'fr', false],
    ['*, de;q=0.1', 'de', false],
    ['*', 'en', false],
    ['de;q=2, fr', 'fr', false],
    ['de_DE, fr', 'fr', false],
    [';;,,=, de ; q=0.3 ,', 'de', false],
    ['DE', 'de', false],
    ['', 'en', false],
    ['it', 'en', true],
    [`${'xx, '.repeat(99)}de`, 'de', true],
  ])('of Accept-Language %j is %s', async (header, locale, fallback) => {
    await entry('e', { en: { a: 'en' }, de: { a: 'de' }, fr: { a: 'fr' } })
    expect(await read('', { 'accept-language': header })).toEqual([locale, fallback, { a: locale }])
  })
})

describe('fields', () => {
  test('that are absent or null come from the next published language; empty values are values', async () => {
    await entry('e', {
      en: { a: 'A', b: 'B', c: 'C', d: 'D', e: 'E', n: null },
      pt: { a: 'a', b: 'b', m: null, f: 'f' },
      'pt-BR': { a: null, b: '', c: 0, d: false, e: [] },
    })
    expect(await read('?locale=pt-BR')).toEqual(['pt-BR', true, { a: 'a', b: '', c: 0, d: false, e: [], f: 'f' }])
    await unpublish('e', 'pt')
    expect(await read('?locale=pt-BR')).toEqual(['pt-BR', true, { a: 'A', b: '', c: 0, d: false, e: [] }])
    // with nothing asked for it is told too, if a field was filled
    await entry('f', { de: { a: 1 }, en: { a: 2, b: 3 } }, { default_locale: 'de' })
    expect((await app.get('/client/content/f')).data).toMatchObject({ locale: 'de', fallback: false, fields: { a: 1 } })
    expect((await app.get('/client/content/f', { 'accept-language': 'en, de' })).data.fields).toEqual({ a: 2, b: 3 })
    expect((await app.get('/client/content/f', { 'accept-language': 'de, en' })).data).toMatchObject({
      ...{ locale: 'de', fallback: true, fields: { a: 1, b: 3 } },
    })
  })

  test('that were filled are stored nowhere, and come from published versions alone', async () => {
    await entry('e', { en: { a: 'A', b: 'B' }, de: { a: 'ä' } })
    await save('e', 'en', { a: 'new', b: 'unpublished', c: 'unpublished' })
    const before = await get('e')
    expect(await read('?locale=de')).toEqual(['de', true, { a: 'ä', b: 'B' }])
    await app.get('/client/content?locale=de')
    expect(await get('e')).toEqual(before)
    expect(before.locales.de.fields).toEqual({ a: 'ä' })
  })

  test('of a type that are not localized are those of the default language, and no fallback', async () => {
    await entry('e', { en: { price: 5, title: 'Book' }, de: { title: 'Buch', price: 6 } })
    await schema('article', [
      { name: 'title', type: 'text' },
      { name: 'price', type: 'number', localized: false },
    ])
    expect(await read('?locale=de')).toEqual(['de', false, { title: 'Buch', price: 5 }])
    await save('e', 'de', { title: 'Buch' })
    await publish('e', 'de')
    expect(await read('?locale=de')).toEqual(['de', false, { title: 'Buch', price: 5 }])
    await save('e', 'en', { price: 7, title: 'Book' })
    expect(await read('?locale=de')).toEqual(['de', false, { title: 'Buch', price: 5 }])
    await unpublish('e')
    expect(await read('?locale=de')).toEqual(['de', false, { title: 'Buch' }])
  })

  test('version and published_at are those of the language that is shown', async () => {
    await entry('e', { en: { a: 1, b: 2 } })
    harness.advance(60)
    await save('e', 'de', {})
    await save('e', 'de', { a: 'eins' })
    await publish('e', 'de')
    const { data } = await app.get('/client/content/e?locale=de-AT')
    const { id } = await get('e')
    expect(data).toEqual({
      ...{ id, key: 'e', content_type: 'article', locale: 'de', fallback: true, fields: { a: 'eins', b: 2 }, tags: [] },
      ...{ published_at: '2026-12-01T10:01:00.000Z', version: 2 },
    })
    expect((await app.get(`/client/content/${id}?locale=de-AT`)).data).toEqual(data)
    expectRefusal(await app.get(`/client/content/${randomUUID()}`), 404, 'NOT_FOUND')
  })
})

test('outside its time, and for users outside its segment, an entry is absent', async () => {
  const other = await project.user()
  const segment_id = await segmentOf(project, user.id)
  await entry('always', { en: {} })
  await entry('timed', { en: {} }, { starts_at: '2026-12-01T11:00:00Z', ends_at: '2026-12-01T12:00:00Z' })
  await entry('bound', { en: {} }, { segment_id })
  await entry('french', { fr: {} })
  await create('draft')
  const expectSeen = async (by: typeof app, keys: string[]) => {
    expect(await keysOf(by)).toEqual(keys)
    for (const key of ['always', 'timed', 'bound', 'draft'])
      expect((await by.get(`/client/content/${key}`)).status, key).toBe(keys.includes(key) ? 200 : 404)
  }
  await expectSeen(app, ['french', 'always'])
  await expectSeen(user, ['french', 'bound', 'always'])
  await expectSeen(other, ['french', 'always'])
  await expectSeen(project.onBehalfOf(user.id), ['french', 'bound', 'always'])
  await expectSeen(project.server, ['french', 'always'])
  harness.setTime('2026-12-01T10:59:59.999Z')
  await expectSeen(app, ['french', 'always'])
  harness.setTime('2026-12-01T11:00:00Z')
  await expectSeen(app, ['french', 'timed', 'always'])
  harness.setTime('2026-12-01T11:59:59.999Z')
  await expectSeen(app, ['french', 'timed', 'always'])
  harness.setTime('2026-12-01T12:00:00Z')
  await expectSeen(app, ['french', 'always'])
})

test('the list is by sort_order, then newest first, filtered by type and tag, page by page', async () => {
  await entry('a', { en: { n: 1 } }, { tags: ['x', 'y'], sort_order: 2 })
  harness.advance(60)
  await entry('b', { en: {} }, { tags: ['y'], content_type: 'page' })
  await entry('c', { en: {} }, { sort_order: -1 })
  await entry('d', { en: {}, de: { n: 'd' } })
  expect(await keysOf()).toEqual(['c', 'd', 'b', 'a'])
  expect(await keysOf(app, '?tag=y')).toEqual(['b', 'a'])
  expect(await keysOf(app, '?tag=y&content_type=page')).toEqual(['b'])
  expect(await keysOf(app, '?content_type=none')).toEqual([])
  const { body } = await app.get('/client/content?limit=2&offset=1&locale=de')
  expect(body).toMatchObject({ total: 4, limit: 2, offset: 1 })
  expect(body.data.map(({ key, locale, fallback }: any) => [key, locale, fallback])).toEqual([
    ['d', 'de', false],
    ['b', 'en', true],
  ])
  expect(body.data[0]).toEqual((await app.get('/client/content/d?locale=de')).data)
})

describe('the ETag', () => {
  const taken = async (path: string, headers: Record<string, string> = {}, by = app) => {
    const answer = await by.get(`/client/content${path}`, headers)
    return { ...answer, tag: answer.headers.get('etag') ?? '' }
  }

  test('answers 304 without a body, with the headers of caches', async () => {
    await entry('e', { en: { a: 1 } })
    for (const path of ['/e', '']) {
      const first = await taken(path)
      expect(first.headers.get('cache-control')).toBe('public, max-age=60')
      const vary = first.headers
        .get('vary')
        ?.split(', ')
        .map((name) => name.toLowerCase())
      expect(vary).toEqual(expect.arrayContaining(['authorization', 'x-on-behalf-of', 'accept-language', 'x-api-key']))
      const again = await taken(path, { 'if-none-match': first.tag })
      expect([again.status, again.text, again.tag]).toEqual([304, '', first.tag])
      expect(again.headers.get('cache-control')).toBe('public, max-age=60')
      expect((await taken(path, { 'if-none-match': `"x", W/${first.tag}` })).status).toBe(304)
      expect((await taken(path, { 'if-none-match': '"x"' })).status).toBe(200)
      expect((await taken(path, { 'if-none-match': '*' })).status).toBe(304)
      expect((await taken(path, {}, user)).headers.get('cache-control')).toBe('private, max-age=60')
    }
    expect((await taken('/none', { 'if-none-match': '*' })).status).toBe(404)
    await unpublish('e')
    expect((await taken('/e', { 'if-none-match': '*' })).status).toBe(404)
  })

  test('differs whenever the body does, and not with saves that nobody sees', async () => {
    await entry('e', { en: { a: 1, b: 2 }, de: { a: 'eins' } })
    await entry('g', { en: {} })
    const known = new Map<string, string>()
    const look = async () => {
      let isNew = false
      for (const [path, by] of [
        ['/e', app],
        ['/e?locale=de', app],
        ['/e?locale=fr', app],
        ['', app],
        ['?locale=de', app],
        ['', user],
      ] as const) {
        const { status, tag, text } = await taken(path, {}, by)
        if (status !== 200) continue
        const at = `${path} ${tag}`
        isNew ||= !known.has(at)
        expect(known.get(at) ?? text, at).toBe(text)
        known.set(at, text)
      }
      return isNew
    }
    expect(await look()).toBe(true)
    await save('e', 'en', { a: 3 })
    expect(await look()).toBe(false)
    const steps: (() => Promise<unknown>)[] = [
      () => publish('e'),
      () => admin.patch('/content/e', { tags: ['x'] }),
      () => admin.patch('/content/e', { default_locale: 'de' }),
      () => schema('article', [{ name: 'a', type: 'json', localized: false }]),
      () => save('e', 'en', {}).then(() => publish('e', 'en', { publish_at: '2026-12-01T11:00:00Z' })),
    ]
    for (const step of steps.slice(0, 4)) {
      await step()
      expect(await look()).toBe(true)
    }
    await steps[4]?.()
    expect(await look()).toBe(false)
    harness.setTime('2026-12-01T11:00:00Z')
    expect(await look()).toBe(true)
    // the worker changes nothing that is seen
    await project.drain()
    expect(await look()).toBe(false)
    await unpublish('e', 'de')
    expect(await look()).toBe(true)
  })
})

describe('a preview token', () => {
  test('shows the newest versions of one entry for an hour, whatever is published, timed or bound', async () => {
    const segment_id = await segmentOf(project)
    await create('e', { a: 1, b: 2 }, { segment_id, starts_at: '2027-01-01T00:00:00Z' })
    await save('e', 'de', { a: 'eins' })
    await publish('e', 'de')
    await save('e', 'de', { a: 'zwei' })
    await create('f')
    const made = await admin.post('/content/e/preview-token')
    expect(made.status, made.text).toBe(201)
    expect(made.data).toEqual({ token: expect.any(String), expires_in: 3600 })
    const { token } = made.data
    const shown = await app.get(`/client/content/e?locale=de&preview_token=${token}`)
    expect(shown.data).toMatchObject({
      locale: 'de',
      fallback: true,
      fields: { a: 'zwei', b: 2 },
      version: 2,
      published_at: start,
    })
    expect(shown.headers.get('cache-control')).toBe('no-store')
    expect(shown.headers.get('etag')).toBeNull()
    const english = await user.get(`/client/content/e?preview_token=${token}`)
    expect(english.data).toMatchObject({ locale: 'en', fallback: false, version: 1, published_at: null })
    for (const [path, bad] of [
      ['e', `${token}x`],
      ['e', ''],
      ['f', token],
      ['none', token],
    ])
      expectRefusal(await app.get(`/client/content/${path}?preview_token=${bad}`), 401, 'INVALID_TOKEN')
    const other = await harness.project()
    await contentOf(other).create('e')
    expectRefusal(await other.app.get(`/client/content/e?preview_token=${token}`), 401, 'INVALID_TOKEN')
    // lists take none
    expect((await app.get(`/client/content?preview_token=${token}`)).body.total).toBe(0)
    const [{ digest }] = await project.sql('select digest from app.content_previews')
    expect(String(digest)).not.toContain(token)
    harness.advance(3599)
    expect((await app.get(`/client/content/e?preview_token=${token}`)).status).toBe(200)
    harness.advance(1)
    expectRefusal(await app.get(`/client/content/e?preview_token=${token}`), 401, 'INVALID_TOKEN')
    const kept = async () => (await project.sql('select 1 from app.content_previews')).length
    const purge = (clock: string) =>
      project.as('app_worker', { 'app.clock': clock }, 'select internal.purge__content()')
    await purge('2026-12-01T11:00:00Z')
    expect(await kept()).toBe(1)
    await purge('2026-12-01T11:00:01Z')
    expect(await kept()).toBe(0)
    harness.setTime(start)
    expectRefusal(await admin.post('/content/none/preview-token'), 404, 'NOT_FOUND')
  })
})
