import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type Answer, startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

afterEach(() => harness.setTime(null))

const stored = async (id: string) =>
  (
    await project.sql('select *, tableoid::regclass::text as partition from app.engagement_events where id = $1', [id])
  )[0]
const countOf = async (userId: string) =>
  Number(
    (
      await project.sql("select count(*) from app.engagement_events where app_user_id = $1 and source <> 'system'", [
        userId,
      ])
    )[0].count,
  )
const counters = (userId: string) =>
  project.sql(
    `select event_name, day::text, count::int from app.user_event_counters where app_user_id = $1 and event_name !~ '^svc' order by event_name, day`,
    [userId],
  )

/** The field that it names, and the reason in the words of its message. */
const expectField = (answer: Answer, status: number, code: string, field: string) => {
  expectRefusal(answer, status, code, field)
  expect(answer.error?.message).toContain(answer.error?.details.reason)
}

describe('one event', () => {
  test('is stored whole and answered as it is stored', async () => {
    const user = await project.user()
    const sent = {
      id: randomUUID(),
      event_name: 'lesson_done',
      properties: { lesson: 3, tags: ['a', null], deep: { to: true } },
      session_id: randomUUID(),
      occurred_at: new Date(Date.now() - 3_600_000).toISOString(),
    }
    const answer = await user.post('/client/events', sent)
    expect(answer.status).toBe(201)
    expect(answer.data).toEqual({ event: { ...sent, app_user_id: user.id, source: 'client' }, effects: {} })
    expect(await stored(sent.id)).toMatchObject({
      app_user_id: user.id,
      event_name: 'lesson_done',
      properties: sent.properties,
      session_id: sent.session_id,
      occurred_at: new Date(sent.occurred_at),
      source: 'client',
      is_historical: false,
      clock_adjusted: false,
    })
    expect(await counters(user.id)).toEqual([
      { event_name: 'lesson_done', day: sent.occurred_at.slice(0, 10), count: 1 },
    ])
  })

  test('needs only a name; the rest has defaults', async () => {
    harness.setTime('2026-11-22T10:00:00.123Z')
    const user = await project.user()
    const { status, data } = await user.post('/client/events', { event_name: 'opened' })
    expect(status).toBe(201)
    expect(data.event).toEqual({
      id: expect.stringMatching(uuid),
      app_user_id: user.id,
      event_name: 'opened',
      properties: {},
      occurred_at: '2026-11-22T10:00:00.123Z',
      source: 'client',
      session_id: null,
    })
  })

  test.each([['event'], ['name']])('the alias %s is understood', async (alias) => {
    const user = await project.user()
    expect((await user.post('/client/events', { [alias]: 'opened' })).data.event.event_name).toBe('opened')
    const both = await user.post('/client/events', { [alias]: 'other', event_name: 'opened' })
    expect(both.data.event.event_name).toBe('opened')
  })

  test('null is as absent; unknown fields are ignored; numbers keep all their digits', async () => {
    const user = await project.user()
    const nulls = {
      id: null,
      properties: null,
      occurred_at: null,
      session_id: null,
      app_user_id: null,
      historical: null,
    }
    expect((await user.post('/client/events', { event_name: 'opened', ...nulls, other: 1 })).status).toBe(201)
    const exact = await user.post('/client/events', '{"event_name":"paid","properties":{"n":12345678901234567890.5}}')
    expect(exact.text).toContain('12345678901234567890.5')
  })

  const name255 = '\u{1F600}'.repeat(255)
  test.each([
    ['255 code points', { event_name: name255 }],
    ['inner white space', { event_name: 'a b\tc' }],
    ['a name like ours but for the dot', { event_name: 'svc_started' }],
    ['an id in capitals, of any version', { id: 'ABCDEF01-2345-0789-0BCD-EF0123456789' }],
    ['32 KB', { properties: { a: 'x'.repeat(32_768 - 8) } }],
    ['32 KB in UTF-8', { properties: { a: 'é'.repeat((32_768 - 8) / 2) } }],
    ['depth 8', { properties: { a: { b: [{ c: { d: [{ e: {} }] } }] } } }],
    ['many brackets, none deep', { properties: { list: Array.from({ length: 20 }, () => [{}]) } }],
    ['29 days ago', { occurred_at: new Date(Date.now() - 29 * 86_400_000).toISOString() }],
  ])('takes %s', async (_name, fields) => {
    const user = await project.user()
    expect((await user.post('/client/events', { event_name: 'opened', ...fields })).status).toBe(201)
  })

  test.each([
    ['no name', { event_name: undefined }, 'event_name'],
    ['a number as name', { event_name: 5 }, 'event_name'],
    ['an empty name', { event_name: '' }, 'event_name'],
    ['256 code points', { event_name: `${name255}a` }, 'event_name'],
    ['a space before', { event_name: ' a' }, 'event_name'],
    ['a line break after', { event_name: 'a\n' }, 'event_name'],
    ['white space that is not ASCII', { event_name: 'a\u3000' }, 'event_name'],
    ['a list as properties', { properties: [] }, 'properties'],
    ['a text as properties', { properties: '{}' }, 'properties'],
    ['more than 32 KB', { properties: { a: 'x'.repeat(32_768 - 7) } }, 'properties'],
    ['more than 32 KB in UTF-8', { properties: { a: 'é'.repeat(16_381) } }, 'properties'],
    ['depth 9', { properties: { a: { b: [{ c: { d: [{ e: { f: [] } }] } }] } } }, 'properties'],
    ['an id that is no uuid', { id: 'abc' }, 'id'],
    ['an id without dashes', { id: randomUUID().replaceAll('-', '') }, 'id'],
    ['an id with a dash too many', { id: '12345678-1234-1234-1234-1234-5678901' }, 'id'],
    ['a number as id', { id: 5 }, 'id'],
    ['a session that is no uuid', { session_id: 'abc' }, 'session_id'],
    ['historical that is not a boolean', { historical: 'yes' }, 'historical'],
    ['a number as time', { occurred_at: 1_700_000_000 }, 'occurred_at'],
    ['a time in words', { occurred_at: 'yesterday' }, 'occurred_at'],
    ['an empty time', { occurred_at: '' }, 'occurred_at'],
    ['a month 13', { occurred_at: '2026-13-01' }, 'occurred_at'],
    ['a 29th of February in a common year', { occurred_at: '2026-02-29T10:00:00Z' }, 'occurred_at'],
    ['a 31st of April', { occurred_at: '2026-04-31' }, 'occurred_at'],
    ['hour 24', { occurred_at: '2026-11-20T24:00:00Z' }, 'occurred_at'],
    ['an offset beyond the world', { occurred_at: '2026-11-20T10:00:00+16:00' }, 'occurred_at'],
    ['year 0', { occurred_at: '0000-01-01' }, 'occurred_at'],
    ['infinity', { occurred_at: 'infinity' }, 'occurred_at'],
  ])('refuses %s', async (_name, fields, field) => {
    const user = await project.user()
    expectField(await user.post('/client/events', { event_name: 'opened', ...fields }), 400, 'VALIDATION_ERROR', field)
    expect(await countOf(user.id)).toBe(0)
  })

  test('names that begin with svc. are ours, also for a server key', async () => {
    const user = await project.user()
    for (const caller of [user, project.onBehalfOf(user.id)]) {
      const answer = await caller.post('/client/events', { event_name: 'svc.streak.started' })
      expectField(answer, 400, 'RESERVED_EVENT_NAME', 'event_name')
    }
  })

  test('a body that is no JSON object', async () => {
    const user = await project.user()
    const unstorable = [
      '{"event_name":"a\\u0000"}',
      '{"event_name":"\\ud800"}',
      '{"event_name":"a","properties":{"n":1e999999}}',
    ]
    for (const body of ['{', '[]', '"a"', 'null', ...unstorable])
      expectRefusal(await user.post('/client/events', body), 400, 'INVALID_BODY')
    expectField(await user.post('/client/events', {}), 400, 'VALIDATION_ERROR', 'event_name')
    const plain = await user.post('/client/events', 'event_name=a', { 'content-type': 'text/plain' })
    expectRefusal(plain, 415, 'UNSUPPORTED_MEDIA_TYPE')
    expectRefusal(await user.post('/client/events', { event_name: 'x'.repeat(1_048_576) }), 413, 'PAYLOAD_TOO_LARGE')
  })

  test('SQL that bypasses the functions is refused as well, and raises nothing else', async () => {
    const user = await project.user()
    const claims = { 'app.caller': 'user', 'app.user_id': user.id }
    const deep = `${'{"a":'.repeat(3_000)}1${'}'.repeat(3_000)}`
    for (const body of ['{"event_name":"a\\u0000"}', '{"event_name":"a","properties":{"b":"\\udfff"}}', '[1]', deep]) {
      await expect(project.as('app_user', claims, 'select api.events_post($1::json)', [body])).rejects.toMatchObject({
        code: 'TR000',
      })
    }
  })
})

describe('when it occurred', () => {
  test.each([
    ['2026-11-20', '2026-11-20T00:00:00.000Z'],
    ['2026-11-20T09:30', '2026-11-20T09:30:00.000Z'],
    ['2026-11-20T09:30:15', '2026-11-20T09:30:15.000Z'],
    ['2026-11-20 09:30:15Z', '2026-11-20T09:30:15.000Z'],
    ['2026-11-20T09:30:15z', '2026-11-20T09:30:15.000Z'],
    ['2026-11-20T09:30:15.123456789Z', '2026-11-20T09:30:15.123Z'],
    ['2026-11-20T09:30:15.5+02:00', '2026-11-20T07:30:15.500Z'],
    ['2026-11-20T00:30-0530', '2026-11-20T06:00:00.000Z'],
    ['2024-02-29', undefined],
  ])('%s', async (occurred_at, expected) => {
    harness.setTime('2026-11-21T10:00:00Z')
    const user = await project.user()
    const { data, error } = await user.post('/client/events', { event_name: 'opened', occurred_at })
    if (expected) expect(data.event.occurred_at).toBe(expected)
    else expect(error?.code).toBe('EVENT_TOO_OLD')
  })

  test('is UTC when it names no zone, whatever the zone of the session', async () => {
    const [row] = await project.sql(
      `select internal.as_time('2026-11-20T09:30') = '2026-11-20T09:30Z' and internal.as_time('2026-11-20') = '2026-11-20T00:00Z' as right
         from set_config('timezone', 'Asia/Tokyo', true)`,
    )
    expect(row.right).toBe(true)
  })

  test('more than five minutes ahead becomes now, and says so', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const user = await project.user()
    const post = (occurred_at: string) => user.post('/client/events', { event_name: 'opened', occurred_at })
    const near = await post('2026-11-21T10:05:00.000Z')
    expect(near.data.event.occurred_at).toBe('2026-11-21T10:05:00.000Z')
    expect(near.data).not.toHaveProperty('clock_adjusted')
    const ahead = await post('2026-11-21T10:05:00.001Z')
    expect(ahead.data).toMatchObject({ clock_adjusted: true, event: { occurred_at: '2026-11-21T10:00:00.000Z' } })
    expect((await stored(ahead.data.event.id)).clock_adjusted).toBe(true)
  })

  test('30 days back and no further, but for history that a server key imports', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const user = await project.user()
    const server = project.onBehalfOf(user.id)
    const at = { event_name: 'opened', occurred_at: '2026-10-22T09:59:59.999Z' }
    expect((await user.post('/client/events', { ...at, occurred_at: '2026-10-22T10:00:00Z' })).status).toBe(201)
    expectField(await user.post('/client/events', at), 400, 'EVENT_TOO_OLD', 'occurred_at')
    expectRefusal(await user.post('/client/events', { ...at, historical: true }), 400, 'EVENT_TOO_OLD')
    expectRefusal(await server.post('/client/events', at), 400, 'EVENT_TOO_OLD')
    const imported = await server.post('/client/events', { ...at, occurred_at: '2019-02-03', historical: true })
    expect(imported.status).toBe(201)
    expect((await stored(imported.data.event.id)).is_historical).toBe(true)
    expect(await counters(user.id)).toContainEqual({ event_name: 'opened', day: '2019-02-03', count: 1 })
  })
})

describe('ids', () => {
  test('a known id of the same user answers the stored event with 200, and nothing runs again', async () => {
    const user = await project.user()
    const sent = { id: randomUUID(), event_name: 'paid', properties: { n: 1 } }
    const first = await user.post('/client/events', sent)
    const again = await user.post('/client/events', { ...sent, event_name: 'other', properties: {} })
    expect([first.status, again.status]).toEqual([201, 200])
    expect(again.data).toEqual({ event: first.data.event, effects: {} })
    expect((await counters(user.id)).map((row) => row.count)).toEqual([1])
  })

  test('a known id of another user: 409, and nothing of the other is shown', async () => {
    const [one, two] = [await project.user(), await project.user()]
    const id = randomUUID()
    await one.post('/client/events', { id, event_name: 'secret' })
    const answer = await two.post('/client/events', { id, event_name: 'opened' })
    expectField(answer, 409, 'EVENT_ID_CONFLICT', 'id')
    expect(answer.text).not.toContain('secret')
    expect(answer.text).not.toContain(one.id)
  })

  test('are remembered for 90 days, and then forgotten', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const server = project.onBehalfOf((await project.user()).id)
    const sent = { id: randomUUID(), event_name: 'paid' }
    const forget = () =>
      project.as('app_worker', { 'app.clock': harness.now().toISOString() }, 'select api.tenant_purge()')
    const first = await server.post('/client/events', sent)
    harness.setTime('2027-03-01T09:59:00Z')
    await forget()
    const again = await server.post('/client/events', sent)
    expect([first.status, again.status, again.data.event]).toEqual([201, 200, first.data.event])
    harness.setTime('2027-03-01T10:01:00Z')
    await forget()
    expect((await server.post('/client/events', sent)).status).toBe(201)
  })

  test('twenty at once under one id store one event; of two users, one has it', async () => {
    const users = [await project.user(), await project.user()]
    const id = randomUUID()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => users[index % 2]!.post('/client/events', { id, event_name: 'paid' })),
    )
    const winner = answers.find(({ status }) => status === 201)
    const owner = users.findIndex((user) => user.id === winner?.data.event.app_user_id)
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    answers.forEach((answer, index) => {
      if (index % 2 === owner) expect([200, 201]).toContain(answer.status)
      else expectRefusal(answer, 409, 'EVENT_ID_CONFLICT')
    })
  })
})

describe('who posts', () => {
  test('nobody without a key, a session, or with a wrong one', async () => {
    const user = await project.user()
    const event = { event_name: 'opened' }
    expectRefusal(await harness.anyone.post('/client/events', event), 401, 'UNAUTHORIZED')
    expectRefusal(await project.app.post('/client/events', event), 401, 'UNAUTHORIZED')
    const expired = await (async () => {
      harness.advance(3601)
      return user.post('/client/events', event)
    })()
    expectRefusal(expired, 401, 'TOKEN_EXPIRED')
  })

  test('a client posts for its own user, whomever it names', async () => {
    const [one, two] = [await project.user(), await project.user()]
    const answer = await one.post('/client/events', { event_name: 'opened', app_user_id: two.id })
    expect(answer.data.event.app_user_id).toBe(one.id)
    const ignored = await one.post('/client/events', { event_name: 'opened' }, { 'x-on-behalf-of': two.id })
    expect(ignored.data.event.app_user_id).toBe(one.id)
  })

  test('a server key posts for the user that it names, in the header or in the event', async () => {
    const [one, two] = [await project.user(), await project.user()]
    const named = await project.server.post('/client/events', { event_name: 'opened', app_user_id: one.id })
    expect(named.data.event).toMatchObject({ app_user_id: one.id, source: 'server' })
    const header = await project.onBehalfOf(one.id).post('/client/events', { event_name: 'opened' })
    expect(header.data.event).toMatchObject({ app_user_id: one.id, source: 'server' })
    const id = randomUUID()
    const both = await project.onBehalfOf(one.id).post('/client/events', { id, event_name: 'a', app_user_id: two.id })
    const again = await project.onBehalfOf(one.id).post('/client/events', { id, event_name: 'a', app_user_id: two.id })
    expect([both.status, again.status]).toEqual([201, 200])
    expect(again.data.event).toEqual(both.data.event)
    expect(both.data.event.app_user_id).toBe(two.id)
  })

  test('a server key that names nobody, nobody known, or no uuid', async () => {
    const post = (fields: object) => project.server.post('/client/events', { event_name: 'opened', ...fields })
    expectField(await post({}), 400, 'INVALID_INPUT', 'app_user_id')
    expectField(await post({ app_user_id: randomUUID() }), 404, 'USER_NOT_FOUND', 'app_user_id')
    expectField(await post({ app_user_id: 'me' }), 400, 'VALIDATION_ERROR', 'app_user_id')
    const unknown = await project.onBehalfOf(randomUUID()).post('/client/events', { event_name: 'opened' })
    expectRefusal(unknown, 404, 'USER_NOT_FOUND')
  })
})
