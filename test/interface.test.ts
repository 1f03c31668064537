import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { loadAreas } from '#server/http/areas.ts'
import { administrator, endUser } from '#server/http/callers.ts'
import { answer, refusalsOf } from '#server/http/interface.ts'
import { complete, group, route, withoutOwn } from '#server/http/route.ts'
import { Uuid } from '#server/http/schemas.ts'
import { answerOf, enumerated } from '../scripts/docs/answers.ts'
import { interfaceText, refusalsIn } from '../scripts/docs/interface.ts'

describe('what a function refuses, from its comment', () => {
  const comments = new Map([
    [
      'api.direct',
      'Does it. Refuses 404 NOT_FOUND (a user), USER_NOT_FOUND, 409 LIMIT_REACHED (500 of them), 400 INVALID_INPUT. Locks IT.',
    ],
    ['api.of_another', 'Does it. Refuses as internal.shared and internal.deeper, and 403 FORBIDDEN.'],
    ['api.named', 'Does it: internal.shared.'],
    ['api.forwarded', 'internal.shared, for workers.'],
    ['api.mentions', 'What internal.shared does as well, with the status 404 of HTTP.'],
    ['internal.shared', 'Refuses 404 NOT_FOUND with details.hint. Granted to nobody.'],
    ['internal.deeper', 'Refuses 429 RATE_LIMITED, and as api.of_another.'],
  ])
  test.each([
    ['api.direct', { 404: ['NOT_FOUND', 'USER_NOT_FOUND'], 409: ['LIMIT_REACHED'], 400: ['INVALID_INPUT'] }],
    ['api.of_another', { 403: ['FORBIDDEN'], 404: ['NOT_FOUND'], 429: ['RATE_LIMITED'] }],
    ['api.named', { 404: ['NOT_FOUND'] }],
    ['api.forwarded', { 404: ['NOT_FOUND'] }],
    ['api.mentions', {}],
    ['api.unknown', {}],
  ])('%s', (name, refusals) => {
    expect(refusalsIn(comments, name)).toEqual(refusals)
  })

  test('is a line for each function that refuses something', () => {
    const text = interfaceText({
      control: { comments: new Map(), answers: [] },
      tenant: { comments, answers: [['row_json', { id: 'uuid' }]] },
    })
    expect(JSON.parse(text)).toMatchObject({
      control: { refusals: {}, answers: {} },
      tenant: { refusals: { named: { 404: ['NOT_FOUND'] } }, answers: { row_json: { id: 'uuid' } } },
    })
    expect(text.split('\n')).toContain('      "named": {"404":["NOT_FOUND"]},')
    expect(text).not.toContain('mentions')
  })
})

describe('what a function answers, from its body and the columns of its rows', () => {
  const columns = new Map([
    [
      'app.things',
      new Map([
        ['id', 'uuid'],
        ['note', 'text | null'],
        ['state', "'on' | 'off'"],
        ['made_at', 'timestamptz'],
        ['ended_at', 'timestamptz | null'],
        ['tags', null],
      ]),
    ],
  ])
  const shapeOf = (body: string) => answerOf({ name: 'thing_json', body, rows: { t: 'app.things' } }, columns)
  const one = (value: string) => shapeOf(`select json_build_object('key', ${value})`)

  test.each([
    ['(thing_json.t).id', 'uuid'],
    ['(t).note', 'text | null'],
    ['t.state', "'on' | 'off'"],
    ['internal.iso((thing_json.t).made_at)', 'time'],
    ['internal.iso(t.ended_at)', 'time | null'],
    ["case when (t).state = 'on' then (t).id end", 'uuid | null'],
    ["case when (t).state = 'on' then (t).id else internal.other((t).id) end", null],
    ["json_build_object('id', (t).id, 'note', (t).note)", { id: 'uuid', note: 'text | null' }],
    ["json_build_object('id', (t).id)::jsonb || jsonb_build_object('b', (t).note)", null],
    ['(t).made_at', null],
    ['(t).tags', null],
    ['(t).unknown', null],
    ['(u).id', null],
    ["coalesce((t).note, 'it''s (none), ')", null],
    ['internal.iso(internal.now())', null],
  ])('%s', (value, shape) => {
    expect(one(value)).toEqual({ key: shape })
  })

  test('keys in their order, past texts, parentheses and comments', () => {
    const body = `
      select json_build_object(
        'id', (thing_json.t).id, -- the first, of two
        'text', internal.f('a, (b', (t).note),
        'last', (t).note)`
    expect(Object.entries(shapeOf(body) as object)).toEqual([
      ['id', 'uuid'],
      ['text', null],
      ['last', 'text | null'],
    ])
  })

  test('nothing of a function that reads tables, names keys by expressions, or has no row', () => {
    expect(shapeOf("select json_build_object('id', k.id) from app.things k")).toBeNull()
    expect(one("(t).id, (t).note, 'x'")).toBeNull()
    expect(shapeOf("select json_build_object('id', t.id)::jsonb || jsonb_build_object('b', 1)")).toBeNull()
    expect(answerOf({ name: 'f', body: "select json_build_object('id', 1)", rows: {} }, columns)).toBeNull()
  })

  test('the values of an enumeration, and of no other check', () => {
    expect(enumerated("CHECK ((state = ANY (ARRAY['on'::text, 'off'::text])))", 'state')).toEqual(['on', 'off'])
    expect(enumerated("CHECK ((state = ANY (ARRAY['on'::text, 'off'::text])))", 'kind')).toBeNull()
    expect(enumerated("CHECK (((state = ANY (ARRAY['on'::text])) OR (note IS NULL)))", 'state')).toBeNull()
  })

  test('is a schema that the routes name; they say what the catalog does not know', () => {
    const Group = answer('group_json')
    expect(Object.keys(Group.shape)).toEqual(expect.arrayContaining(['id', 'description', 'created_at']))
    const group = {
      id: '00000000-0000-4000-8000-000000000000',
      name: 'Early birds',
      description: null,
      avatar_url: null,
      is_public: true,
      max_members: 5,
      metadata: {},
      member_count: 1,
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:00.000Z',
    }
    expect(Group.parse(group)).toEqual(group)
    for (const [key, value] of [
      ['name', null],
      ['member_count', 1.5],
      ['created_at', '2026-01-01'],
      ['metadata', []],
      ['other', 1],
    ] as const)
      expect(() => Group.parse({ ...group, [key]: value }), key).toThrow()
    expect(answer('group_json', { name: z.literal('x') }).shape['name']?.safeParse('y').success).toBe(false)
    expect(() => answer('group_invite_json')).toThrow(
      'internal.group_invite_json: the catalog does not know the type of url',
    )
    expect(() => answer('group_json', { nobody: z.string() })).toThrow('internal.group_json has no nobody')
    expect(() => answer('nothing_json')).toThrow('internal.nothing_json builds no answer from rows')
    expect(answer('api_key_json', { environment: z.string() }, 'control').shape).toHaveProperty('key_prefix')
  })
})

describe('what a declaration need not say', () => {
  const routeOf = (signature: Parameters<typeof route>[0], more: Parameters<typeof route>[2], by = endUser) =>
    complete(route(signature, 'x', more), by)
  const list = z.strictObject({ data: z.array(z.string()) })
  const one = z.strictObject({ data: z.string() })

  test.each([
    ['GET /client/things', { replies: { 200: list } }, 'LIST_FAILED'],
    ['GET /client/things', { replies: { 200: one } }, 'FETCH_FAILED'],
    ['POST /client/things', { replies: { 201: one } }, 'CREATE_FAILED'],
    ['POST /client/things', { replies: { 202: one } }, 'CREATE_FAILED'],
    ['POST /client/things', { replies: { 200: list }, readOnly: true }, 'FETCH_FAILED'],
    ['POST /client/things', { replies: { 200: one } }, 'UPDATE_FAILED'],
    ['PUT /client/things', { replies: { 201: one } }, 'UPDATE_FAILED'],
    ['DELETE /client/things', { replies: { 200: one } }, 'DELETE_FAILED'],
    ['GET /client/things', { replies: { 200: list }, failure: 'OTHER_FAILED' }, 'OTHER_FAILED'],
    ['GET /client/things', { replies: { 200: list }, failure: null }, null],
  ] as const)('the code of a 500: %s %j', (signature, more, failure) => {
    expect(routeOf(signature, { call: 'x', ...more }).failure).toBe(failure)
  })

  test('the ids of a path; a declared one wins, and the id of the project is of the credentials', () => {
    const text = z.string()
    const found = routeOf('GET /admin/projects/:projectId/things/:thingId/:id/:key/:otherId', {
      call: 'x',
      replies: {},
      params: { otherId: text },
    })
    expect(found.params).toEqual({ thingId: Uuid, id: Uuid, otherId: text })
    expect(routeOf('GET /client/things/:key', { call: 'x', replies: {} }).params).toBeUndefined()
  })

  test('the refusals of its function, and not those of all kinds of definitions', () => {
    expect(refusalsOf('tenant', 'streak_pause')).toMatchObject({ 404: ['STREAK_NOT_FOUND'] })
    const declared = { replies: {}, refusals: { 409: ['OTHER'] } }
    const found = routeOf('PUT /client/streaks/:idOrKey/pause', { ...declared, call: 'streak_pause' })
    expect(found.refusals).toMatchObject({ 404: ['STREAK_NOT_FOUND'] })
    expect(found.refusals[409]).toEqual(expect.arrayContaining(['PAUSE_OVERLAP', 'OTHER']))
    expect(found.own).toEqual({ 409: ['OTHER'] })
    expect(withoutOwn(found).refusals[409]).not.toContain('OTHER')
    const definition = { kind: 'streak_definition', verb: 'create' } as const
    const made = routeOf(
      'POST /admin/projects/:projectId/streaks',
      { ...declared, call: 'definition_create', definition },
      administrator,
    )
    expect(made.refusals).toEqual({ 409: ['OTHER'] })
    const handle = () => Promise.reject(new Error('x'))
    expect(routeOf('POST /client/things', { ...declared, handle }).refusals).toEqual({ 409: ['OTHER'] })
    const calling = routeOf('POST /client/things', { ...declared, handle, calls: ['streak_pause', 'group_show'] })
    expect(calling.refusals[404]).toEqual(expect.arrayContaining(['STREAK_NOT_FOUND', 'NOT_FOUND']))
    expect(calling.refusals[409]).toEqual(expect.arrayContaining(['PAUSE_OVERLAP', 'OTHER']))
    expect(withoutOwn(calling).refusals[409]).not.toContain('OTHER')
  })

  test('the functions that a handler names are there and refuse something', async () => {
    const unknown = (await loadAreas()).flatMap(({ routes }) =>
      routes.flatMap(({ calls = [], caller }) =>
        calls.filter((name) => Object.keys(refusalsOf(caller.reaches.kind, name)).length === 0),
      ),
    )
    expect(unknown).toEqual([])
  })

  test('a group gives its routes the path, the caller and what else it names; a route may name its own', () => {
    const one = { call: 'x', replies: {} }
    const [list, found] = group('/client/things', { caller: endUser, source: 'contract' }, [
      route('GET /', 'x', one),
      route('GET /:id', 'y', { ...one, caller: administrator, source: 'supplement' }),
    ])
    expect(list).toMatchObject({
      method: 'GET',
      path: '/client/things',
      caller: endUser,
      source: 'contract',
      summary: 'x',
    })
    expect(found).toMatchObject({ path: '/client/things/:id', caller: administrator, source: 'supplement' })
    expect(group('', endUser, [route('GET /', 'x', one)])).toMatchObject([{ path: '/', caller: endUser }])
    expect(() => group('', endUser, [route('GET /', 'x', { replies: {} })])).toThrow('needs a call or a handler')
  })
})
