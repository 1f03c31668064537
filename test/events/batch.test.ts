import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

const batch = (client: Client, events: unknown, more: object = {}) => client.post('/client/events', { events, ...more })
const opened = (count: number, fields: object = {}) =>
  Array.from({ length: count }, () => ({ event_name: 'opened', ...fields }))
const stored = async (userId: string) =>
  (
    await project.sql(
      `select event_name, occurred_at from app.engagement_events where app_user_id = $1 and source <> 'system' order by occurred_at`,
      [userId],
    )
  ).map((row) => row.event_name)
const rejected = (index: number, code: string) => ({
  index,
  status: 'rejected',
  code,
  message: expect.stringMatching(/^[a-z_]+: .+\.$/),
})

describe('a batch', () => {
  test('of good events is stored whole: 201 with one result an item, in order', async () => {
    const user = await project.user()
    const events = opened(3).map((event, index) => ({ ...event, id: randomUUID(), event_name: `e${index}` }))
    const { status, data } = await batch(user, events)
    expect(status).toBe(201)
    expect(data).toEqual({
      accepted: 3,
      duplicates: 0,
      rejected: 0,
      results: events.map(({ id }, index) => ({ index, id, status: 'accepted' })),
    })
    expect((await stored(user.id)).sort()).toEqual(['e0', 'e1', 'e2'])
  })

  test('with bad items among good ones stores the good ones and says what is wrong with the others', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const [user, other] = [await project.user(), await project.user()]
    const [taken, known, twice] = [randomUUID(), randomUUID(), randomUUID()]
    await other.post('/client/events', { id: taken, event_name: 'theirs' })
    await user.post('/client/events', { id: known, event_name: 'mine' })
    const { status, data } = await batch(user, [
      { event_name: 'good' },
      { event_name: ' bad' },
      'no object',
      null,
      { event_name: 'svc.streak.started' },
      { event_name: 'old', occurred_at: '2026-01-01' },
      { event_name: 'ahead', occurred_at: '2026-11-22' },
      { event_name: 'a', id: taken },
      { event_name: 'a', id: known },
      { event_name: 'twice', id: twice },
      { event_name: 'twice', id: twice.toUpperCase() },
      { id: 'x', event_name: 'a' },
      { id: known, event_name: '' },
    ])
    expect(status).toBe(201)
    const id = expect.any(String)
    expect(data).toEqual({
      accepted: 3,
      duplicates: 2,
      rejected: 8,
      results: [
        { index: 0, id, status: 'accepted' },
        rejected(1, 'VALIDATION_ERROR'),
        rejected(2, 'VALIDATION_ERROR'),
        rejected(3, 'VALIDATION_ERROR'),
        rejected(4, 'RESERVED_EVENT_NAME'),
        rejected(5, 'EVENT_TOO_OLD'),
        { index: 6, id, status: 'accepted', clock_adjusted: true },
        { ...rejected(7, 'EVENT_ID_CONFLICT'), id: taken },
        { index: 8, id: known, status: 'duplicate' },
        { index: 9, id: twice, status: 'accepted' },
        { index: 10, id: twice, status: 'duplicate' },
        rejected(11, 'VALIDATION_ERROR'),
        { ...rejected(12, 'VALIDATION_ERROR'), id: known },
      ],
    })
    expect((await stored(user.id)).sort()).toEqual(['ahead', 'good', 'mine', 'twice'])
  })

  test('of nothing but duplicates: 200; of duplicates and bad items: 200', async () => {
    const user = await project.user()
    const events = opened(5).map((event) => ({ ...event, id: randomUUID() }))
    expect((await batch(user, events)).status).toBe(201)
    const again = await batch(user, events)
    expect(again.status).toBe(200)
    expect(again.data).toMatchObject({ accepted: 0, duplicates: 5, rejected: 0 })
    const mixed = await batch(user, [...events, { event_name: '' }])
    expect([mixed.status, mixed.data.duplicates, mixed.data.rejected]).toEqual([200, 5, 1])
    expect(await stored(user.id)).toHaveLength(5)
  })

  test('of nothing but bad items: 400, with the results', async () => {
    const user = await project.user()
    const { status, error } = await batch(user, [{ event_name: '' }, { event_name: 'svc.a' }])
    expect([status, error?.code]).toEqual([400, 'VALIDATION_ERROR'])
    expect(error?.details).toMatchObject({ field: 'events', reason: expect.any(String) })
    expect(error?.details.results).toEqual([rejected(0, 'VALIDATION_ERROR'), rejected(1, 'RESERVED_EVENT_NAME')])
  })

  test.each([
    ['nothing', []],
    ['no list', {}],
    ['a text', 'opened'],
    ['null', null],
  ])('of %s: 400', async (_name, events) => {
    const { status, error } = await batch(await project.user(), events)
    expect([status, error?.code, error?.details.field]).toEqual([400, 'VALIDATION_ERROR', 'events'])
  })

  test('holds 500 events, of a server key 1000, and not one more', async () => {
    const user = await project.user()
    const server = project.onBehalfOf(user.id)
    expect((await batch(user, opened(500))).data.accepted).toBe(500)
    expect((await batch(server, opened(1000))).data.accepted).toBe(1000)
    for (const answer of [await batch(user, opened(501)), await batch(server, opened(1001))]) {
      expect([answer.status, answer.error?.code, answer.error?.details.field]).toEqual([
        400,
        'BATCH_TOO_LARGE',
        'events',
      ])
    }
    const counted = await project.sql(
      `select count::int from app.user_event_counters where app_user_id = $1 and event_name = 'opened'`,
      [user.id],
    )
    expect(counted.reduce((sum, row) => sum + row.count, 0)).toBe(1500)
  })

  test('of a server key may be about many users; each item names its own', async () => {
    const [one, two] = [await project.user(), await project.user()]
    const [id, gone] = [randomUUID(), randomUUID()]
    const { status, data } = await batch(project.server, [
      { event_name: 'a', app_user_id: one.id },
      { event_name: 'b', app_user_id: two.id, id },
      { event_name: 'c', app_user_id: gone },
      { event_name: 'd' },
      { event_name: 'e', app_user_id: one.id, id },
    ])
    expect(status).toBe(201)
    expect(data.results).toEqual([
      { index: 0, id: expect.any(String), status: 'accepted' },
      { index: 1, id, status: 'accepted' },
      rejected(2, 'USER_NOT_FOUND'),
      rejected(3, 'INVALID_INPUT'),
      { ...rejected(4, 'EVENT_ID_CONFLICT'), id },
    ])
    expect([await stored(one.id), await stored(two.id)]).toEqual([['a'], ['b']])
  })

  test('of a server key in which no item names a user: 400 INVALID_INPUT', async () => {
    const { status, error } = await batch(project.server, opened(2))
    expect([status, error?.code]).toEqual([400, 'INVALID_INPUT'])
  })

  test('of a server key on behalf of a user is about that user where an item names none', async () => {
    const [one, two] = [await project.user(), await project.user()]
    await batch(project.onBehalfOf(one.id), [{ event_name: 'a' }, { event_name: 'b', app_user_id: two.id }])
    expect([await stored(one.id), await stored(two.id)]).toEqual([['a'], ['b']])
  })

  test('of a client is about its own user, whomever the items name', async () => {
    const [one, two] = [await project.user(), await project.user()]
    await batch(one, [{ event_name: 'a', app_user_id: two.id }])
    expect([await stored(one.id), await stored(two.id)]).toEqual([['a'], []])
  })

  test('historical stands on the body and holds for all items', async () => {
    const user = await project.user()
    const server = project.onBehalfOf(user.id)
    const old = [
      { event_name: 'a', occurred_at: '2020-01-01' },
      { event_name: 'b', occurred_at: '2021-01-01' },
    ]
    expect((await batch(server, old)).error?.details.results[0].code).toBe('EVENT_TOO_OLD')
    expect((await batch(user, old, { historical: true })).error?.details.results[0].code).toBe('EVENT_TOO_OLD')
    const { status, data } = await batch(server, old, { historical: true })
    expect([status, data.accepted]).toEqual([201, 2])
    expect(
      await project.sql('select is_historical from app.engagement_events where app_user_id = $1 and source = $2', [
        user.id,
        'server',
      ]),
    ).toEqual([{ is_historical: true }, { is_historical: true }])
  })

  test('history begins in the year 2: an older item alone is refused, wherever the user is', async () => {
    const user = await project.user()
    const server = project.onBehalfOf(user.id)
    await user.patch('/client/users/me', { timezone: 'America/Los_Angeles' })
    for (const period of ['day', 'week', 'month'])
      await project.admin.post('/streaks', { key: `old_${period}`, name: 'Old', qualifying_event: 'dug up', period })
    const items = ['0001-01-01', '0001-12-31T23:59:59Z', '0002-01-01'].map((occurred_at) => ({
      event_name: 'dug up',
      occurred_at,
    }))
    const { status, data } = await batch(server, items, { historical: true })
    expect([status, data.results.map((result: any) => result.code)]).toEqual([
      201,
      ['VALIDATION_ERROR', 'VALIDATION_ERROR', undefined],
    ])
    expect(await stored(user.id)).toEqual(['dug up'])
  })
})

describe('effects', () => {
  test('include_effects that is not a boolean: 400', async () => {
    const { status, error } = await batch(await project.user(), opened(1), { include_effects: 'yes' })
    expect([status, error?.code, error?.details.field]).toEqual([400, 'VALIDATION_ERROR', 'include_effects'])
  })
})

test.each([
  ['no name', { event_name: undefined }],
  ['a name that is a number', { event_name: 5 }],
  ['an empty name', { event_name: '' }],
  ['a name too long', { event_name: 'x'.repeat(256) }],
  ['a name with white space at its end', { event_name: 'read ' }],
  ['a reserved name', { event_name: 'svc.read' }],
  ['an id that is no uuid', { id: 'x' }],
  ['properties that are a list', { properties: [] }],
  ['properties too large', { properties: { text: 'x'.repeat(33000) } }],
  ['properties too deep', { properties: { a: { b: { c: { d: { e: { f: { g: { h: { i: 1 } } } } } } } } } }],
  ['a session that is no uuid', { session_id: 'x' }],
  ['a time that is none', { occurred_at: 'yesterday' }],
  ['a time that is a number', { occurred_at: 5 }],
  ['a time before our era', { occurred_at: '0001-01-01T00:00:00Z' }],
  ['a time long ago', { occurred_at: '2020-01-01T00:00:00Z' }],
  ['a user that is no uuid', { app_user_id: 'x' }],
  ['no user', { app_user_id: undefined }],
  ['nobody', { app_user_id: randomUUID() }],
])('%s is refused alone for the same reason as among others', async (_what, fields) => {
  const { id } = await project.user()
  const good = { event_name: 'read', app_user_id: id }
  const bad = { ...good, ...fields }
  const { data } = await batch(project.server, [good, bad])
  const alone = await project.server.post('/client/events', bad)
  const { field, reason } = alone.error?.details ?? {}
  expect({ code: alone.error?.code, message: `${field}: ${reason}.` }).toEqual({
    code: data.results[1].code,
    message: data.results[1].message,
  })
})
