import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { runOperationJob } from '#test/support/jobs.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
afterEach(() => harness.setTime(null))

const listed = async (query: string) => {
  const answer = await admin.get(`/events?${query}`)
  expect(answer.status, answer.text).toBe(200)
  return answer.body as { data: any[]; pagination: { next_cursor: string | null; total: null } }
}
const namesOf = async (query: string) => (await listed(query)).data.map(({ event_name }) => event_name)
const post = (body: object) => admin.post('/events', body)

describe('the log', () => {
  test('newest first, page by page, without one coming twice, also within a microsecond', async () => {
    const { id } = await project.user()
    const events = Array.from({ length: 25 }, (_, n) => ({
      app_user_id: id,
      event_name: 'paged',
      properties: { n },
      occurred_at: `2026-11-20T10:00:00.00000${Math.floor(n / 5)}Z`,
    }))
    expect((await post({ events, historical: true })).status).toBe(201)
    const seen: number[] = []
    let cursor: string | null = null
    do {
      const { data, pagination } = await listed(`event_name=paged&limit=10${cursor ? `&cursor=${cursor}` : ''}`)
      seen.push(...data.map(({ properties }) => properties.n))
      expect(pagination.total).toBeNull()
      cursor = pagination.next_cursor
    } while (cursor)
    expect(seen).toHaveLength(25)
    expect(seen.map((n) => Math.floor(n / 5))).toEqual([4, 3, 2, 1, 0].flatMap((n) => Array(5).fill(n)))
    expect(new Set(seen).size).toBe(25)
    expect((await listed('event_name=paged&limit=25')).pagination.next_cursor).toBeNull()
    expect((await listed('event_name=paged&limit=24')).pagination.next_cursor).toEqual(expect.any(String))
    expect((await listed('event_name=paged&limit=9999')).data).toHaveLength(25)
    expect((await listed('event_name=paged')).data[0]).toEqual({
      id: expect.any(String),
      app_user_id: id,
      event_name: 'paged',
      properties: { n: expect.any(Number) },
      occurred_at: '2026-11-20T10:00:00.000Z',
      source: 'server',
      session_id: null,
      received_at: expect.any(String),
      is_historical: true,
      clock_adjusted: false,
      schema_violation: false,
    })
  })

  test('by user, name, time, source and filter, each and together', async () => {
    const [one, two] = [await project.user(), await project.user()]
    await one.post('/client/events', { event_name: 'bought', properties: { cart: { total: 50 } } })
    await post({ app_user_id: two.id, event_name: 'bought', properties: { cart: { total: 10 } } })
    await post({ app_user_id: two.id, event_name: 'old', occurred_at: '2026-01-02T00:00:00Z', historical: true })
    const where = (column: string, op: string, value: unknown) =>
      `where=${encodeURIComponent(JSON.stringify({ column, op, value }))}`
    expect(await namesOf(`user_id=${one.id}`)).toEqual(['bought'])
    expect(await namesOf(`user_id=${two.id}`)).toEqual(['bought', 'old'])
    expect(await namesOf(`user_id=${two.id}&event_name=old`)).toEqual(['old'])
    expect(await namesOf(`user_id=${two.id}&until=2026-01-02T00:00:00Z`)).toEqual([])
    expect(await namesOf(`user_id=${two.id}&since=2026-01-02T00:00:00Z&until=2026-01-02T00:00:00.001Z`)).toEqual([
      'old',
    ])
    expect(await namesOf('until=2026-01-03')).toEqual(['old'])
    expect(await namesOf('source=client&event_name=bought')).toHaveLength(1)
    expect(await namesOf(`event_name=bought&${where('cart.total', 'gt', 20)}`)).toHaveLength(1)
    expect(await namesOf(`event_name=bought&${where('cart.total', 'gt', 50)}`)).toEqual([])
    expect(await namesOf(`user_id=${randomUUID()}`)).toEqual([])
  })

  test('hides system events unless they are asked for', async () => {
    const user = await project.user()
    await user.post('/client/events', { event_name: 'shown' })
    expect(await namesOf(`user_id=${user.id}`)).toEqual(['shown'])
    expect((await namesOf(`user_id=${user.id}&include_system=true`)).sort()).toEqual([
      'shown',
      'svc.user.created',
      'svc.user.signed_in',
    ])
    expect(await namesOf(`user_id=${user.id}&source=system`)).toHaveLength(2)
    expect(await namesOf(`user_id=${user.id}&event_name=svc.user.created`)).toEqual(['svc.user.created'])
  })

  test('a filter that fits nearly nothing looks at ten thousand events a page, and goes on', async () => {
    const { id } = await project.user()
    await project.sql(
      `insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
       select internal.new_id(), $1, 'rare', jsonb_build_object('n', n), now() - n * interval '1 second', now(), 'client'
         from generate_series(1, 10500) n`,
      [id],
    )
    const query = `event_name=rare&where=${encodeURIComponent('{"column":"n","op":"gte","value":10400}')}&limit=30`
    const first = await listed(query)
    expect(first.data).toEqual([])
    const second = await listed(`${query}&cursor=${first.pagination.next_cursor}`)
    expect(second.data.map(({ properties }) => properties.n)).toEqual(Array.from({ length: 30 }, (_, n) => 10400 + n))
    expect((await listed(`event_name=rare&limit=30`)).data).toHaveLength(30)
  })

  test.each([
    ['cursor', 'cursor=abc'],
    ['cursor', `cursor=${Buffer.from(`1 ${randomUUID()}x`).toString('base64url')}`],
    ['cursor', 'cursor=%F0%9F%98%80'],
    ['since', 'since=yesterday'],
    ['until', 'until=2026-13-01'],
    ['user_id', 'user_id=me'],
    ['source', 'source=other'],
    ['where', 'where={'],
    ['where', 'where=[]'],
    ['where', `where=${encodeURIComponent('{"column":"a","op":"is","value":1}')}`],
    ['where', `where=${encodeURIComponent('{"column":"a\\u0000","op":"eq","value":1}')}`],
    ['include_system', 'include_system=yes'],
    ['limit', 'limit=0'],
  ])('a bad %s is refused: %s', async (field, query) => {
    expectRefusal(await admin.get(`/events?${query}`), 400, 'INVALID_INPUT', field)
  })

  test('shows a project its own events only', async () => {
    const other = await harness.project()
    const user = await other.user()
    const { data } = await user.post('/client/events', { event_name: 'elsewhere' })
    expect(await namesOf('event_name=elsewhere')).toEqual([])
    expectRefusal(await admin.get(`/events/${data.event.id}`), 404, 'NOT_FOUND')
  })
})

describe('one event', () => {
  test('with what it caused: events of its transaction, and deliveries', async () => {
    await admin.post('/streaks', { key: 'caused', name: 'Caused', qualifying_event: 'causes' })
    const hook = await admin.post('/webhooks', { event_name: 'causes', target_url: 'https://1.1.1.1/' })
    const [user, other] = [await project.user(), await project.user()]
    const { data } = await post({
      events: [user, other].map(({ id }) => ({ event_name: 'causes', app_user_id: id })),
    })
    const answer = await admin.get(`/events/${data.results[0].id}`)
    expect(answer.status).toBe(200)
    expect(answer.data.effects).toEqual({
      events: [
        {
          id: expect.any(String),
          event_name: 'svc.streak.started',
          properties: expect.objectContaining({ key: 'caused', current_count: 1 }),
        },
      ],
      webhook_deliveries: [{ id: expect.any(String), webhook_id: hook.data.id, status: 'pending' }],
    })
    const later = await user.post('/client/events', { event_name: 'causes' })
    expect((await admin.get(`/events/${later.data.event.id}`)).data.effects).not.toHaveProperty('events')
    expectRefusal(await admin.get(`/events/${randomUUID()}`), 404, 'NOT_FOUND')
    expectRefusal(await admin.get('/events/x'), 400, 'INVALID_ID')
  })
})

describe('recording for users', () => {
  test('one, or a batch of a thousand, of any age when it is history', async () => {
    const { id } = await project.user()
    const single = await post({ app_user_id: id, event_name: 'admin_one', properties: { a: 1 } })
    expect([single.status, single.data.event.source]).toEqual([201, 'server'])
    const known = { id: single.data.event.id, app_user_id: id, event_name: 'admin_two' }
    expect((await post(known)).status).toBe(201)
    expect((await post(known)).status).toBe(200)
    const stranger = await project.user()
    expectRefusal(await post({ ...known, app_user_id: stranger.id }), 409, 'EVENT_ID_CONFLICT')
    const events = Array.from({ length: 1000 }, () => ({ app_user_id: id, event_name: 'many' }))
    expect((await post({ events })).data.accepted).toBe(1000)
    expectRefusal(await post({ events: [...events, events[0]] }), 400, 'BATCH_TOO_LARGE')
    const old = { app_user_id: id, event_name: 'ancient', occurred_at: '2020-01-01T00:00:00Z' }
    expectRefusal(await post(old), 400, 'EVENT_TOO_OLD')
    expect((await post({ ...old, historical: true })).status).toBe(201)
    const headers = { 'idempotency-key': 'k' }
    const body = { app_user_id: id, event_name: 'keyed' }
    expect((await admin.post('/events', body, headers)).status).toBe(201)
    const again = await admin.post('/events', body, headers)
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true'])
    expectRefusal(await admin.post('/events', { ...body, event_name: 'b' }, headers), 409, 'IDEMPOTENCY_CONFLICT')
  })

  test('needs a user that there is, and a name that is not ours', async () => {
    const { id } = await project.user()
    expectRefusal(await post({ event_name: 'nobody' }), 400, 'VALIDATION_ERROR', 'app_user_id')
    expectRefusal(await post({ event_name: 'nobody', app_user_id: 'x' }), 400, 'VALIDATION_ERROR', 'app_user_id')
    expectRefusal(await post({ event_name: 'nobody', app_user_id: randomUUID() }), 404, 'USER_NOT_FOUND', {
      field: 'app_user_id',
      reason: expect.any(String),
    })
    expectRefusal(await post({ event_name: 'svc.mine', app_user_id: id }), 400, 'RESERVED_EVENT_NAME', 'event_name')
    const batch = await post({ events: [{ event_name: 'a' }, { event_name: 'a', app_user_id: id }] })
    expect(batch.data.results.map(({ code }: any) => code)).toEqual(['VALIDATION_ERROR', undefined])
    expectRefusal(await admin.post('/events', '[]'), 400, 'INVALID_BODY')
  })
})

describe('names', () => {
  test('counts of a day and a month, users, first and last time, and property paths with types', async () => {
    const fresh = await harness.project()
    harness.setTime('2026-11-21T12:00:00Z')
    const [one, two] = [await fresh.user(), await fresh.user()]
    const at = (app_user_id: string, occurred_at: string, properties: object) => ({
      app_user_id,
      event_name: 'named',
      occurred_at,
      properties,
    })
    await fresh.admin.post('/events', {
      historical: true,
      events: [
        at(one.id, '2026-11-21T11:00:00Z', { cart: { total: 3, tags: ['a'] }, coupon: null }),
        at(one.id, '2026-11-20T13:00:00Z', { cart: { total: 'many' } }),
        at(two.id, '2026-11-01T00:00:00Z', { coupon: 'X' }),
        at(two.id, '2026-10-01T00:00:00Z', {}),
        { ...at(one.id, '2026-11-21T11:00:00Z', {}), event_name: 'another' },
      ],
    })
    const { body } = await fresh.admin.get('/events/names')
    expect(body).toMatchObject({ total: 2, offset: 0, limit: 50 })
    expect(body.data[1]).toEqual({
      event_name: 'named',
      count_24h: 2,
      count_30d: 3,
      users_30d: 2,
      is_estimated: false,
      first_seen: '2026-10-01T00:00:00.000Z',
      last_seen: '2026-11-21T11:00:00.000Z',
      status: 'active',
      properties: [
        { path: 'cart', types: ['object'], sample: null },
        { path: 'cart.tags', types: ['array'], sample: ['a'] },
        { path: 'cart.total', types: ['number', 'string'], sample: 3 },
        { path: 'coupon', types: ['null', 'string'], sample: 'X' },
      ],
    })
    const all = (await fresh.admin.get('/events/names?include_system=true')).body
    expect(all.data.map(({ event_name }: any) => event_name)).toEqual([
      'another',
      'named',
      'svc.user.created',
      'svc.user.signed_in',
    ])
    const paged = (await fresh.admin.get('/events/names?limit=1&offset=1')).body
    expect([paged.total, paged.data.map(({ event_name }: any) => event_name)]).toEqual([2, ['named']])
    expectRefusal(await admin.get('/events/names?limit=x'), 400, 'INVALID_INPUT', 'limit')
  })

  test('beyond ten thousand events of a name counts are estimates, and say so', async () => {
    const fresh = await harness.project()
    const { id } = await fresh.user()
    await fresh.sql(
      `insert into app.engagement_events (id, app_user_id, event_name, occurred_at, received_at, source)
       select internal.new_id(), $1, 'flood', now() - (n - 0.5) * interval '1 minute', now(), 'client' from generate_series(1, 12000) n`,
      [id],
    )
    await fresh.sql('analyze app.engagement_events')
    const { data } = await fresh.admin.get('/events/names')
    expect(data[0]).toMatchObject({ event_name: 'flood', is_estimated: true, users_30d: 1, count_24h: 1440 })
    expect(data[0].count_30d).toBeGreaterThan(11_000)
    expect(data[0].count_30d).toBeLessThan(13_000)
  })
})

describe('deleting', () => {
  const remove = async (query: string) => {
    const answer = await admin.delete(`/events?${query}`)
    expect([answer.status, answer.data.status], answer.text).toEqual([202, 'queued'])
    return runOperationJob(harness, project, 'events__delete', answer.data.operation_id)
  }

  test('takes the events of a user, of a name, or both, before a time; what they moved stays', async () => {
    const [one, two] = [await project.user(), await project.user()]
    const id = randomUUID()
    await post({ id, app_user_id: one.id, event_name: 'gone', properties: { secret: 1 } })
    await post({ app_user_id: one.id, event_name: 'kept' })
    await post({ app_user_id: two.id, event_name: 'gone' })
    await post({ app_user_id: two.id, event_name: 'gone', occurred_at: '2026-01-01T00:00:00Z', historical: true })
    const now = new Date().toISOString()
    expect(await remove('event_name=gone&before=2026-01-01T00:00:00Z')).toMatchObject({ result: { deleted: 0 } })
    expect(await remove('event_name=gone&before=2026-01-01T00:00:01Z')).toMatchObject({
      status: 'succeeded',
      progress: { done: 1, total: 1 },
      result: { deleted: 1 },
    })
    expect(await remove(`event_name=gone&user_id=${one.id}&before=${now}`)).toMatchObject({ result: { deleted: 1 } })
    expect(await namesOf('event_name=gone')).toEqual(['gone'])
    expect(await namesOf(`user_id=${one.id}`)).toEqual(['kept'])
    const counted = await project.sql(
      `select sum(count)::int as count from app.user_event_counters where app_user_id = $1 and event_name = 'gone'`,
      [one.id],
    )
    expect(counted).toEqual([{ count: 1 }])
    // its id is remembered: sent again it moves nothing, and is not stored
    const again = await post({ id, app_user_id: one.id, event_name: 'gone', properties: { secret: 1 } })
    expect([again.status, again.data.event.id, again.data.effects]).toEqual([200, id, {}])
    expect(await namesOf(`user_id=${one.id}`)).toEqual(['kept'])
    expect(await remove(`user_id=${one.id}&before=${new Date().toISOString()}`)).toMatchObject({ status: 'succeeded' })
    expect(await namesOf(`user_id=${one.id}&include_system=true`)).toEqual([])
  })

  test('goes in steps of five thousand, and a worker who takes over goes on', async () => {
    const { id } = await project.user()
    await project.sql(
      `insert into app.engagement_events (id, app_user_id, event_name, occurred_at, received_at, source)
       select internal.new_id(), $1, 'bulk', now() - interval '1 hour', now(), 'client' from generate_series(1, 5003) n`,
      [id],
    )
    const { data } = await admin.delete(`/events?event_name=bulk&before=${new Date().toISOString()}`)
    // what a worker did before it died
    const call = async (place: any, role: any, name: string, args: object) =>
      harness.running.services.database.call(place, role, { caller: 'worker' }, name, args as Record<string, unknown>)
    const { control, fleet } = harness.running.services
    await call(control, 'control_worker', 'operation_begin', { operation_id: data.operation_id })
    const before = new Date().toISOString()
    const step = { event_name: 'bulk', user_id: null, before, batch: 1000 }
    await call(await fleet.placeOf(project.id), 'app_worker', 'events_delete_step', step)
    const progress = { operation_id: data.operation_id, done: 1000, total: 5003 }
    await call(control, 'control_worker', 'operation_progress', progress)
    const ended = await runOperationJob(harness, project, 'events__delete', data.operation_id)
    expect(ended).toMatchObject({ progress: { done: 5003, total: 5003 }, result: { deleted: 5003 } })
    expect(await namesOf('event_name=bulk')).toEqual([])
  })

  test.each([
    ['event_name', 'before=2026-01-01'],
    ['before', 'event_name=x'],
    ['before', 'event_name=x&before=soon'],
    ['before', 'event_name=x&before=2099-01-01'],
    ['user_id', 'user_id=x&before=2026-01-01'],
  ])('without a good %s nothing is deleted: %s', async (field, query) => {
    expectRefusal(await admin.delete(`/events?${query}`), 400, 'INVALID_INPUT', field)
  })

  test('is written into the trail of audits, and nobody but a worker can do it', async () => {
    await admin.delete('/events?event_name=audited&before=2026-01-01')
    const rows = await harness.control(
      `select action, changes from app.audit_events where action = 'events.delete' and changes -> 'event_name' ->> 1 = 'audited'`,
    )
    expect(rows).toHaveLength(1)
    await expect(
      project.as('app_admin', { 'app.caller': 'developer' }, `select api.events_delete_step('x', null, now(), 1)`),
    ).rejects.toThrow(/permission denied/)
    await expect(
      project.as('app_worker', { 'app.caller': 'worker' }, `select api.events_delete_step(null, null, now(), 1)`),
    ).rejects.toThrow(/of a name or a user/)
  })
})

describe('events of a day', () => {
  const daily = async (query: string) => (await project.admin.get(`/events/daily?${query}`)).data
  const values = (series: { value: number }[]) => series.map(({ value }) => value)

  test('stand on the day on which they occurred, with the users who had one', async () => {
    const [one, other] = [await project.user(), await project.user()]
    const at = (app_user_id: string, event_name: string, occurred_at: string) => ({
      app_user_id,
      event_name,
      occurred_at,
    })
    const events = [
      at(one.id, 'daily_a', '2026-03-01T00:00:00.000Z'),
      at(one.id, 'daily_a', '2026-03-01T23:59:59.999Z'),
      at(one.id, 'daily_b', '2026-03-01T12:00:00.000Z'),
      at(other.id, 'daily_a', '2026-03-01T12:00:00.000Z'),
      at(other.id, 'daily_b', '2026-03-03T12:00:00.000Z'),
    ]
    expect((await post({ events, historical: true })).status).toBe(201)
    expect(await daily('from=2026-03-01&to=2026-03-03')).toEqual({
      from: '2026-03-01',
      to: '2026-03-03',
      series: {
        events: [
          { date: '2026-03-01', value: 4 },
          { date: '2026-03-02', value: 0 },
          { date: '2026-03-03', value: 1 },
        ],
        active_users: [
          { date: '2026-03-01', value: 2 },
          { date: '2026-03-02', value: 0 },
          { date: '2026-03-03', value: 1 },
        ],
      },
    })
    const { series } = await daily('from=2026-03-01&to=2026-03-03&event_name=daily_b')
    expect([values(series.events), values(series.active_users)]).toEqual([
      [1, 0, 1],
      [1, 0, 1],
    ])
  })

  test('are those of the last 30 days when nothing is said; system events count by name only', async () => {
    // the time stands still, so that no midnight passes
    const now = new Date()
    harness.setTime(now)
    const day = (before: number) => new Date(now.getTime() - before * 86_400_000).toISOString().slice(0, 10)
    const { id } = await project.user()
    const today = async (query: string) => {
      const { from, to, series } = await daily(query)
      expect([from, to, series.events.length]).toEqual([day(29), day(0), 30])
      return [series.events.at(-1).value, series.active_users.at(-1).value]
    }
    const [events, users] = await today('')
    const created = await today('event_name=svc.user.created')
    expect(created[0]).toBeGreaterThan(0)
    expect((await post({ app_user_id: id, event_name: 'daily_now' })).status).toBe(201)
    expect(await today('')).toEqual([events + 1, users + 1])
    expect(await today('event_name=daily_now')).toEqual([1, 1])
    expect(await today('event_name=svc.user.created')).toEqual(created)
  })

  test.each([
    ['from=2026-03-02&to=2026-03-01', 'from'],
    ['from=2025-01-01&to=2026-02-05', 'from'],
    ['from=2026-02-30', 'from'],
    ['to=tomorrow', 'to'],
    ['from=0000-01-01', 'from'],
    ['to=0001-12-31', 'to'],
  ])('refuses %s', async (query, field) => {
    const answer = await admin.get(`/events/daily?${query}`)
    expectRefusal(answer, 400, 'INVALID_INPUT')
    expect(answer.error?.details.field).toBe(field)
  })

  test('400 days are as many as there may be, and are read by blocks', async () => {
    expect((await daily('from=2025-01-01&to=2026-02-04')).series.events).toHaveLength(400)
    await project.sql(
      `insert into app.user_event_counters (app_user_id, event_name, day, count)
       select $1, 'many ' || i, date '2020-01-01' + i / 50, 1 from generate_series(1, 40000) i`,
      [randomUUID()],
    )
    await project.sql('vacuum analyze app.user_event_counters')
    await project.sql(`select brin_summarize_new_values('app.user_event_counters_days')`)
    const plan = await project.sql(
      `explain (costs off) select c.day, sum(c.count) from app.user_event_counters c
        where c.day between '2020-02-01' and '2020-02-07' and c.event_name not like 'svc.%' group by c.day, c.app_user_id`,
    )
    expect(JSON.stringify(plan)).toContain('user_event_counters_days')
    await project.sql(`delete from app.user_event_counters where event_name like 'many %'`)
  })
})
