import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
const path = (name: string) => `/events/definitions/${encodeURIComponent(name)}`
const define = (name: string, body: object) => admin.put(path(name), body)

describe('definitions', () => {
  test('are made, replaced whole, read, listed and taken away', async () => {
    const name = 'lesson done/ä'
    const made = await define(name, { description: 'A lesson', status: 'deprecated', sample_rate: 0.5 })
    expect(made.status).toBe(201)
    expect(made.data).toEqual({
      event_name: name,
      description: 'A lesson',
      status: 'deprecated',
      schema: null,
      sample_rate: 0.5,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    const replaced = await define(name, { schema: { type: 'object' } })
    expect(replaced.status).toBe(200)
    expect(replaced.data).toMatchObject({
      description: null,
      status: 'active',
      schema: { type: 'object' },
      sample_rate: 1,
    })
    expect((await admin.get(path(name))).data).toEqual(replaced.data)
    expect((await admin.get('/events/definitions')).body).toEqual({
      data: [replaced.data],
      total: 1,
      offset: 0,
      limit: 50,
    })
    expect((await admin.delete(path(name))).data).toEqual({ deleted: true })
    expectRefusal(await admin.delete(path(name)), 404, 'NOT_FOUND')
    expectRefusal(await admin.get(path(name)), 404, 'NOT_FOUND')
    expectRefusal(await admin.get('/events/definitions?offset=-1'), 400, 'INVALID_INPUT', 'offset')
    const [audited] = await project.sql(
      `select array_agg(action order by position) as actions from app.audit_events where target_type = 'event_definitions'`,
    )
    expect(audited.actions).toEqual(['create', 'update', 'delete'].map((what) => `event_definitions.${what}`))
  })

  test.each([
    ['status', { status: 'off' }],
    ['sample_rate', { sample_rate: 1.01 }],
    ['sample_rate', { sample_rate: -0.1 }],
    ['sample_rate', { sample_rate: '1' }],
    ['description', { description: 'x'.repeat(2001) }],
    ['schema', { schema: [] }],
    ['schema', { schema: { title: 'x'.repeat(32_768) } }],
    ['schema.pattern', { schema: { pattern: '^a' } }],
    ['schema.properties.a.format', { schema: { properties: { a: { format: 'email' } } } }],
    ['schema.anyOf[1].$ref', { schema: { anyOf: [true, { $ref: '#' }] } }],
    ['schema.items', { schema: { items: 3 } }],
    ['schema.type', { schema: { type: 'text' } }],
    ['schema.type', { schema: { type: [] } }],
    ['schema.minLength', { schema: { minLength: -1 } }],
    ['schema.required', { schema: { required: 'a' } }],
    ['schema.enum', { schema: { enum: {} } }],
    ['schema.oneOf', { schema: { oneOf: [] } }],
    ['schema.maximum', { schema: { maximum: '3' } }],
  ])('a bad %s is refused by name', async (field, body) => {
    expectRefusal(await define('bad', body), 400, 'VALIDATION_ERROR', field)
    expectRefusal(await admin.get(path('bad')), 404, 'NOT_FOUND')
  })

  test('names are those of events, and never ours', async () => {
    expect((await define('x'.repeat(255), {})).status).toBe(201)
    expectRefusal(await define('x'.repeat(256), {}), 400, 'VALIDATION_ERROR')
    expectRefusal(await define(' x', {}), 400, 'VALIDATION_ERROR')
    expectRefusal(await define('svc.user.created', { status: 'blocked' }), 400, 'RESERVED_EVENT_NAME')
    expectRefusal(await admin.put(path('x'), '[]'), 400, 'INVALID_BODY')
  })

  test('a thousand at most, also when many come at once', async () => {
    const full = await harness.project()
    await full.sql(`insert into app.event_definitions (event_name) select 'n' || n from generate_series(1, 997) n`)
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => full.admin.put(path(`more ${n}`), { status: 'active' })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 201, 409, 409, 409, 409, 409])
    expectRefusal(answers.find(({ status }) => status === 409)!, 409, 'LIMIT_REACHED')
    expect((await full.admin.put(path('n1'), { status: 'blocked' })).status).toBe(200)
  })
})

describe('a blocked event', () => {
  test('is refused alone, is an item code in a batch, and comes again when it is unblocked', async () => {
    const user = await project.user()
    await define('spam', { status: 'blocked' })
    expectRefusal(await user.post('/client/events', { event_name: 'spam' }), 400, 'EVENT_BLOCKED', 'event_name')
    expectRefusal(await admin.post('/events', { event_name: 'spam', app_user_id: user.id }), 400, 'EVENT_BLOCKED')
    const id = randomUUID()
    const batch = await user.post('/client/events', { events: [{ event_name: 'spam', id }, { event_name: 'fine' }] })
    expect(batch.data).toMatchObject({ accepted: 1, rejected: 1 })
    expect(batch.data.results[0]).toMatchObject({ id, status: 'rejected', code: 'EVENT_BLOCKED' })
    expectRefusal(await user.post('/client/events', { events: [{ event_name: 'spam' }] }), 400, 'VALIDATION_ERROR')
    expect(await project.sql(`select from app.user_event_counters where event_name = 'spam'`)).toEqual([])
    await define('spam', { status: 'deprecated' })
    expect((await user.post('/client/events', { event_name: 'spam', id })).status).toBe(201)
  })
})

describe('a schema', () => {
  const accepts = async (schema: unknown, value: unknown) => {
    const sql = 'select path, reason from internal.schema_problem($1)'
    expect(await project.sql(sql, [JSON.stringify(schema)])).toEqual([{ path: null, reason: null }])
    const rows = await project.sql('select internal.schema_accepts($1, $2) as yes', [
      JSON.stringify(schema),
      JSON.stringify(value),
    ])
    return rows[0].yes
  }

  test('that an event does not fit marks the event, which is stored and moves what it moves', async () => {
    const user = await project.user()
    await admin.post('/streaks', { key: 'shaped', name: 'Shaped', qualifying_event: 'shaped' })
    const schema = {
      type: 'object',
      required: ['lesson'],
      properties: { lesson: { type: 'integer', minimum: 1 } },
      additionalProperties: false,
    }
    await define('shaped', { schema })
    const bad = await user.post('/client/events', { event_name: 'shaped', properties: { lesson: '1' } })
    expect(bad.status).toBe(201)
    expect(bad.data).toMatchObject({ schema_violation: true, effects: { streaks: [{ change: 'started' }] } })
    const good = await user.post('/client/events', { event_name: 'shaped', properties: { lesson: 2 } })
    expect(good.data).not.toHaveProperty('schema_violation')
    const { data } = await user.post('/client/events', {
      events: [
        { event_name: 'shaped', properties: { lesson: 2 } },
        { event_name: 'shaped', properties: { lesson: 2, other: 1 } },
        { event_name: 'free', properties: { lesson: 'x' } },
      ],
    })
    expect(data.results.map(({ schema_violation }: any) => schema_violation)).toEqual([undefined, true, undefined])
    const { body } = await admin.get(`/events?user_id=${user.id}&event_name=shaped`)
    expect(body.data.map(({ schema_violation }: any) => schema_violation).sort()).toEqual([false, false, true, true])
  })

  test.each([
    [{ type: 'integer' }, [1, 1.0, -3, 1e3], [1.5, '1', null, true]],
    [{ type: ['string', 'null'] }, ['', null], [1, {}]],
    [{ const: { a: 1 } }, [{ a: 1 }], [{ a: 2 }, null]],
    [{ enum: ['a', 1, null] }, ['a', 1, null], ['b', '1']],
    [{ minimum: 1, exclusiveMaximum: 3 }, [1, 2.9, 'x'], [0.9, 3]],
    [{ maximum: 1, exclusiveMinimum: 0 }, [1, 0.1], [0, 1.1]],
    [{ minLength: 2, maxLength: 3 }, ['\u{1F600}\u{1F600}', 'abc', 5], ['\u{1F600}', 'abcd']],
    [{ minItems: 1, maxItems: 2, uniqueItems: true }, [[1], [1, 2], 'x'], [[], [1, 1], [1, 2, 3]]],
    [{ items: { type: 'string' } }, [['a'], [], 3], [['a', 1]]],
    [{ minProperties: 1, maxProperties: 1 }, [{ a: 1 }, []], [{}, { a: 1, b: 1 }]],
    [{ required: ['a'] }, [{ a: null }, 'x'], [{ b: 1 }]],
    [{ properties: { a: { type: 'number' } } }, [{}, { a: 1, b: 'x' }], [{ a: 'x' }]],
    [{ properties: { a: true }, additionalProperties: { type: 'number' } }, [{ a: 'x', b: 1 }], [{ b: 'x' }]],
    [{ properties: { a: true }, additionalProperties: false }, [{ a: 1 }], [{ a: 1, b: 1 }]],
    [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [0, 3]],
    [{ anyOf: [{ type: 'string' }, { minimum: 5 }] }, ['x', 5, null], [4]],
    [{ oneOf: [{ minimum: 1 }, { maximum: 3 }] }, [0, 4], [2, 'x']],
    [{ not: { type: 'string' } }, [1, null], ['x']],
    [false, [], [1, null, {}]],
    [{ title: 't', description: 'd', default: 1, examples: [2], $comment: 'c', deprecated: true }, [1, 'x'], []],
  ])('%j', async (schema, good, bad) => {
    for (const value of good) expect(await accepts(schema, value), JSON.stringify(value)).toBe(true)
    for (const value of bad) expect(await accepts(schema, value), JSON.stringify(value)).toBe(false)
  })

  test('nests 16 deep', async () => {
    const nest = (depth: number): object => (depth === 1 ? {} : { not: nest(depth - 1) })
    expect((await define('deep', { schema: nest(16) })).status).toBe(201)
    expectRefusal(await define('deep', { schema: nest(17) }), 400, 'VALIDATION_ERROR')
  })
})

describe('sample_rate', () => {
  test('thins the log, and nothing else: every event is counted, moves what it moves, and is known again', async () => {
    const user = await project.user()
    await admin.post('/streaks', { key: 'sampled', name: 'Sampled', qualifying_event: 'tick', min_count: 400 })
    await define('tick', { sample_rate: 0.25 })
    const events = Array.from({ length: 400 }, () => ({ event_name: 'tick', id: randomUUID() }))
    const first = await user.post('/client/events', { events, include_effects: true })
    expect(first.data).toMatchObject({ accepted: 400, effects: { streaks: [{ key: 'sampled', change: 'started' }] } })
    const kept = (await admin.get(`/events?user_id=${user.id}&event_name=tick&limit=200`)).body.data.length
    // three standard deviations around a hundred
    expect(kept).toBeGreaterThan(70)
    expect(kept).toBeLessThan(130)
    const [counted] = await project.sql(
      `select sum(count)::int as count from app.user_event_counters where app_user_id = $1 and event_name = 'tick'`,
      [user.id],
    )
    expect(counted.count).toBe(400)
    const again = await user.post('/client/events', { events })
    expect([again.status, again.data.duplicates]).toEqual([200, 400])
    // one that left the log is answered as it was sent
    await define('tick', { sample_rate: 0 })
    const id = randomUUID()
    expect((await user.post('/client/events', { event_name: 'tick', id })).status).toBe(201)
    expect((await user.post('/client/events', { event_name: 'tick', id })).data).toMatchObject({
      event: { id, event_name: 'tick' },
      effects: {},
    })
    expect((await admin.get(`/events/${id}`)).status).toBe(404)
  })
})
