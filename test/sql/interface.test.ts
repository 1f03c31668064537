import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { loadAreas } from '#server/http/areas.ts'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { answer, fieldsOf, fixedFieldsOf, refusalsOf } from '#server/http/interface.ts'
import { complete, group, route, withoutOwn } from '#server/http/route.ts'
import { Key, Uuid } from '#server/http/schemas.ts'
import { answerOf, enumerated } from '../../scripts/docs/answers.ts'
import { type Column, columnsOf, fieldOf } from '../../scripts/docs/definitions.ts'
import { interfaceText, refusalsIn } from '../../scripts/docs/interface.ts'

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
    const badge = {
      singular: 'badge',
      plural: 'badges',
      most: 5,
      fixed: {},
      fields: { name: null },
      required: [],
      defaults: { name: 'Best' },
    }
    const text = interfaceText({
      control: { comments: new Map(), defaults: [], answers: [], definitions: [] },
      tenant: {
        comments,
        defaults: [['named', { most: 5 }]],
        answers: [['row_json', { id: 'uuid' }]],
        definitions: [['badge', badge]],
      },
    })
    expect(JSON.parse(text)).toMatchObject({
      control: { refusals: {}, answers: {} },
      tenant: {
        refusals: { named: { 404: ['NOT_FOUND'] } },
        defaults: { named: { most: 5 } },
        answers: { row_json: { id: 'uuid' } },
        definitions: { badge },
      },
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
      "the catalog does not know the type of url. Say it where a route names the builder: answer('group_invite_json'",
    )
    expect(() => answer('group_json', { nobody: z.string() })).toThrow('internal.group_json has no nobody')
    expect(() => answer('nothing_json')).toThrow('has no answer of internal.nothing_json')
    expect(answer('api_key_json', { environment: z.string() }, 'control').shape).toHaveProperty('key_prefix')
  })
})

describe('what a developer sends of an entity, from the columns of its table', () => {
  const column = (name: string, type: string, checks: readonly string[], more: Partial<Column> = {}): Column => ({
    name,
    type,
    checks,
    is_needed: true,
    has_default: false,
    usual: null,
    is_changed: true,
    ...more,
  })
  const between1And200 = 'CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200)))'

  test.each([
    [column('name', 'text', [between1And200]), 'text 1..200'],
    [column('name', 'text', [between1And200, 'CHECK (internal.is_line(name))']), 'line 1..200'],
    [column('name', 'text', ['CHECK ((char_length(name) <= 200))'], { is_needed: false }), 'text ..200 | null'],
    [
      column('name', 'text', [
        "CHECK ((((char_length(name) >= 1) AND (char_length(name) <= 9)) AND (name !~ '^x'::text)))",
      ]),
      'text 1..9',
    ],
    [column('name', 'text', []), null],
    [column('key', 'text', ["CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text))"]), 'key'],
    [column('key', 'text', ["CHECK ((key ~ '^[A-Z]+$'::text))"]), null],
    [column('kind', 'text', ["CHECK ((kind = ANY (ARRAY['a'::text, 'b'::text])))"]), "'a' | 'b'"],
    [column('n', 'int4', ['CHECK (((n >= 0) AND (n <= 48)))']), 'integer 0..48'],
    [column('n', 'int8', ["CHECK (((n >= '-5'::integer) AND (n <= '1000000000000'::bigint)))"]), null],
    [column('n', 'int8', ["CHECK (((n >= 1) AND (n <= '1000000000000'::bigint)))"]), 'integer 1..1000000000000'],
    [column('n', 'int4', ['CHECK ((n >= 1))']), null],
    [column('n', 'int4', ['CHECK ((n <= 5))']), null],
    [column('on_', 'bool', []), 'boolean'],
    [column('at', 'timestamptz', [], { is_needed: false }), 'time | null'],
    [column('of', 'uuid', []), 'uuid'],
    [column('config', 'jsonb', ["CHECK ((jsonb_typeof(config) = 'object'::text))"]), 'object'],
    [column('config', 'jsonb', []), null],
    [column('rate', 'numeric', []), null],
  ])('%j', (of, field) => {
    expect(fieldOf(of)).toBe(field)
  })

  test('those that are set once, those that may be changed, and those that are needed', () => {
    expect(
      columnsOf([
        column('code', 'text', [], { is_changed: false }),
        column('name', 'text', [between1And200]),
        column('is_on', 'bool', [], { has_default: true }),
        column('until', 'timestamptz', [], { is_needed: false }),
      ]),
    ).toEqual({
      fixed: { code: null },
      fields: { name: 'text 1..200', is_on: 'boolean', until: 'time | null' },
      required: ['code', 'name'],
    })
  })

  test('are schemas that refuse as hand-written ones do', () => {
    const fields = fieldsOf('streak_definition', { event_filter: z.null(), timezone: z.null(), milestones: z.null() })
    const reasonOf = (name: string, value: unknown) => fields[name]?.safeParse(value).error?.issues[0]?.message
    expect(reasonOf('name', '')).toBe('must have 1 to 200 characters')
    expect(reasonOf('name', 'two\nlines')).toBe('must be one line of text')
    expect(reasonOf('description', 'x'.repeat(2001))).toBe('must have at most 2000 characters')
    expect(reasonOf('description', null)).toBeUndefined()
    expect(reasonOf('grace_hours', 48)).toBeUndefined()
    expect(reasonOf('grace_hours', 1.5)).toBe('must be a whole number of 0 to 48')
    expect(reasonOf('grace_hours', 49)).toBeDefined()
    expect(reasonOf('period', 'year')).toBe('must be day, week or month')
    expect(() => fieldsOf('streak_definition')).toThrow('the column event_filter has no check that bounds it')
    expect(() => fieldsOf('role', { key: z.string() })).toThrow('role has no key that may be changed')
    expect(() => fieldsOf('nothing')).toThrow('has no definition nothing; npm run docs writes it')
    expect(fixedFieldsOf('role')).toEqual({ key: Key })
  })

  test('make its five routes', () => {
    const routes = group('/admin/projects/:projectId/folders', administrator, definitions('media_folder', {}))
    expect(routes.map(({ method, path, summary }) => [method, path.slice(26), summary])).toEqual([
      ['POST', '/folders', 'Define a folder; at most 1000'],
      ['GET', '/folders', 'Folders, newest first'],
      ['GET', '/folders/:idOrKey', 'A folder'],
      ['PATCH', '/folders/:idOrKey', 'Change a folder'],
      ['DELETE', '/folders/:idOrKey', 'Delete a folder'],
    ])
    const [create, , , update] = routes
    expect(create?.body?.safeParse({}).success).toBe(false)
    expect(create?.body?.safeParse({ name: 'Pictures' }).success).toBe(true)
    expect(update?.body?.safeParse({}).success).toBe(true)
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
    const [list, found] = group('/client/things', { caller: endUser, codes: 'by area' }, [
      route('GET /', 'x', one),
      route('GET /:id', 'y', { ...one, caller: administrator, codes: 'by part' }),
    ])
    expect(list).toMatchObject({
      method: 'GET',
      path: '/client/things',
      caller: endUser,
      codes: 'by area',
      summary: 'x',
    })
    expect(found).toMatchObject({ path: '/client/things/:id', caller: administrator, codes: 'by part' })
    expect(group('', endUser, [route('GET /', 'x', one)])).toMatchObject([{ path: '/', caller: endUser }])
    expect(() => group('', endUser, [route('GET /', 'x', { replies: {} })])).toThrow('needs a call or a handler')
  })
})
