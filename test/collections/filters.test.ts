import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { define } from '#test/support/collection_rows.ts'
import { type Filter, type Json, type Leaf, leaf, truthOf } from '#test/support/filters.ts'
import { startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'

vi.setConfig({ testTimeout: 180_000 })

/** Filters over HTTP against an oracle in this process, and against internal.filter_matches row by row. */
const harness = await startHarness()
const project = await harness.project()
const user = await project.user()

type Type =
  | 'text'
  | 'integer'
  | 'bigint'
  | 'numeric'
  | 'double'
  | 'boolean'
  | 'date'
  | 'timestamptz'
  | 'uuid'
  | 'jsonb'
  | 'text[]'
  | 'integer[]'
const text = fc.string({
  unit: fc.constantFrom('a', 'A', 'b', 'Z', '%', '_', '\\', 'é', '😀', '"', "'", '{', ','),
  maxLength: 3,
})
const integer = fc.integer({ min: -2, max: 3 })
const uuids = [
  '00000000-0000-4000-8000-000000000001',
  'ffffffff-0000-4000-8000-000000000002',
  'aaaaaaaa-0000-4000-8000-000000000003',
]
const values: Record<Type, fc.Arbitrary<Json>> = {
  text,
  integer,
  bigint: fc.constantFrom(-1, 0, 1, 2 ** 40),
  numeric: fc.constantFrom(0, 0.1, -1.5, 10),
  double: fc.constantFrom(0, 0.1, -1.5, 1e-7, 1e21),
  boolean: fc.boolean(),
  date: fc.constantFrom('2026-01-01', '2026-12-31', '1999-02-28'),
  timestamptz: fc.constantFrom('2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.001Z', '1999-12-31T23:59:59.999Z'),
  uuid: fc.constantFrom(...uuids),
  jsonb: fc.oneof(
    text,
    integer,
    fc.boolean(),
    fc.array(integer, { maxLength: 2 }),
    fc.record({ a: integer }),
    fc.record({ a: fc.array(text, { maxLength: 2 }) }),
  ) as fc.Arbitrary<Json>,
  'text[]': fc.array(fc.oneof(text, fc.constant(null)), { maxLength: 3 }),
  'integer[]': fc.array(fc.oneof(integer, fc.constant(null)), { maxLength: 3 }),
}
const types = Object.keys(values) as Type[]
const elementOf = (type: Type) => values[type.replace('[]', '') as Type]

const leafOf = (column: string, type: Type): fc.Arbitrary<Leaf> => {
  const tests = fc.constantFrom('is_null', 'is_not_null').map((op) => leaf(op, undefined, column))
  const withNull = fc.oneof({ arbitrary: values[type], weight: 6 }, { arbitrary: fc.constant(null), weight: 1 })
  const equal = fc.tuple(fc.constantFrom('eq', 'ne'), withNull).map(([op, value]) => leaf(op, value, column))
  const listed = fc
    .tuple(fc.constantFrom('in', 'not_in'), fc.array(withNull, { maxLength: 3 }))
    .map(([op, value]) => leaf(op, value, column))
  const ordered = fc
    .tuple(fc.constantFrom('gt', 'gte', 'lt', 'lte'), values[type])
    .map(([op, value]) => leaf(op, value, column))
  if (type === 'jsonb') {
    const scalars = fc.oneof(text, integer) as fc.Arbitrary<Json>
    return fc.oneof(
      tests,
      equal,
      listed,
      fc.tuple(fc.constantFrom('gt', 'lte'), scalars).map(([op, value]) => leaf(op, value, column)),
      values.jsonb.map((value) => leaf('contains', value, column)),
      fc
        .tuple(fc.constantFrom('contained_by', 'overlaps'), fc.array(integer, { maxLength: 3 }))
        .map(([op, value]) => leaf(op, value, column)),
      fc.tuple(fc.constantFrom('eq', 'gt', 'ne'), integer).map(([op, value]) => leaf(op, value, `${column}.a`)),
    )
  }
  if (type.endsWith('[]')) {
    return fc.oneof(
      tests,
      equal,
      fc
        .tuple(fc.constantFrom('contains', 'contained_by', 'containedBy', 'overlaps'), values[type])
        .map(([op, value]) => leaf(op, value, column)),
      elementOf(type).map((value) => leaf('contains', value, column)),
    )
  }
  const common = type === 'boolean' ? [tests, equal, listed] : [tests, equal, listed, ordered]
  if (type !== 'text') return fc.oneof(...common)
  return fc.oneof(
    ...common,
    fc.tuple(fc.constantFrom('like', 'ilike'), text).map(([op, value]) => leaf(op, value, column)),
  )
}

type Column = { name: string; type: Type }
const schemaArbitrary = fc
  .array(fc.constantFrom(...types), { minLength: 2, maxLength: 6 })
  .map((chosen) => chosen.map((type, n): Column => ({ name: `c${n}`, type })))

const caseOf = (columns: readonly Column[]) => {
  const anyLeaf = fc.oneof(...columns.map(({ name, type }) => leafOf(name, type)))
  const { tree } = fc.letrec<{ tree: Filter }>((tie) => {
    const parts = fc.array(tie('tree'), { maxLength: 3 })
    return {
      tree: fc.oneof(
        { maxDepth: 3 },
        { arbitrary: anyLeaf as fc.Arbitrary<Filter>, weight: 4 },
        { arbitrary: fc.record({ and: parts }), weight: 1 },
        { arbitrary: fc.record({ or: parts }), weight: 1 },
        { arbitrary: fc.record({ not: tie('tree') }), weight: 1 },
      ),
    }
  })
  const row = fc.record(
    Object.fromEntries(
      columns.map(({ name, type }) => [
        name,
        fc.oneof({ arbitrary: values[type], weight: 5 }, { arbitrary: fc.constant(null), weight: 1 }),
      ]),
    ),
  )
  return fc.record({
    rows: fc.array(row, { minLength: 5, maxLength: 12 }),
    filters: fc.array(tree, { minLength: 20, maxLength: 20 }),
  })
}

let made = 0

test('random filters on random rows of random schemas are what the grammar says, here and row by row', async () => {
  let matched = 0
  await fc.assert(
    fc.asyncProperty(
      schemaArbitrary.chain((columns) => caseOf(columns).map((rest) => ({ columns, ...rest }))),
      async ({ columns, rows, filters }) => {
        made += 1
        const name = `random${made}`
        const path = await define(project, { name, columns: columns.map((column) => ({ ...column })) })
        const inserted = await user.post(`${path}/batch`, { rows })
        expect(inserted.error).toBeUndefined()
        for (const filter of filters) {
          const found = await user.post(`${path}/find`, { filter, limit: 1000 })
          expect(found.error, JSON.stringify(filter)).toBeUndefined()
          const ids = found.data.map((row: any) => row.id).sort()
          const expected = inserted.data.filter((row: any) => truthOf(filter, row) === true).map((row: any) => row.id)
          matched += expected.length
          expect(ids, JSON.stringify({ filter, rows })).toEqual([...expected].sort())
          const matches = await project.sql(
            `select r ->> 'id' as id from json_array_elements($2) as r where internal.filter_matches($1, r) order by 1`,
            [JSON.stringify(filter), JSON.stringify(inserted.data)],
          )
          expect(
            matches.map((row) => row.id),
            JSON.stringify({ filter, rows }),
          ).toEqual(ids)
          expect(
            (await user.get(`${path}/count?filter=${encodeURIComponent(JSON.stringify(filter))}`)).data.count,
          ).toBe(ids.length)
        }
      },
    ),
    { numRuns: sized(8, 25), endOnFailure: true },
  )
  expect(matched).toBeGreaterThan(sized(30, 100))
})

describe('what a filter does wrong', async () => {
  const path = await define(project, {
    name: 'wrong',
    columns: [
      { name: 'title', type: 'text' },
      { name: 'n', type: 'integer' },
      { name: 'tags', type: 'text[]' },
      { name: 'meta', type: 'jsonb' },
      { name: 'ok', type: 'boolean' },
      { name: 'at', type: 'timestamptz' },
    ],
  })
  const nested = (depth: number): Filter => (depth === 0 ? leaf('eq', 1, 'n') : { and: [nested(depth - 1)] })
  const many = (count: number): Filter => ({ or: Array.from({ length: count }, () => leaf('eq', 1, 'n')) })
  const cases: [string, unknown, string][] = [
    ['not an object', 'x', ''],
    ['an array', [], ''],
    ['nothing known', {}, ''],
    ['a stray key', { and: [], x: 1 }, ''],
    ['no such operator', leaf('regex', 'x', 'title'), 'op'],
    ['a wrong kind of value', leaf('eq', 'x', 'n'), 'value'],
    ['a fraction for a whole number', leaf('eq', 1.5, 'n'), 'value'],
    ['out of range', leaf('gt', 2 ** 40, 'n'), 'value'],
    ['no date', leaf('gt', '2026-02-31T00:00:00Z', 'at'), 'value'],
    ['a word that Postgres takes for a time', leaf('gt', 'now', 'at'), 'value'],
    ['a list where one is wanted', leaf('eq', ['x'], 'title'), 'value'],
    ['one where a list is wanted', leaf('in', 'x', 'title'), 'value'],
    ['a list of wrong things', { and: [leaf('in', ['x', 1], 'title')] }, 'and[0].value'],
    ['an operator that does not suit', { not: leaf('like', 'x', 'n') }, 'not.op'],
    ['an order of booleans', leaf('gt', 'true', 'ok'), 'op'],
    ['a text in an array operator', leaf('contains', 1, 'tags'), 'value'],
    ['very many wildcards', leaf('like', '%'.repeat(101), 'title'), 'value'],
    ['depth 9', nested(9), 'and[0].and[0].and[0].and[0].and[0].and[0].and[0].and[0]'],
    ['51 conditions', many(51), 'or[50]'],
  ]
  test.each(cases)('%s: 400 INVALID_BODY with details.path', async (_name, filter, place) => {
    for (const attempt of [1, 2]) {
      const answer = await user.post(`${path}/find`, { filter })
      expect(answer, `attempt ${attempt}`).toMatchObject({
        status: 400,
        error: { code: 'INVALID_BODY', details: { path: place } },
      })
    }
    const counted = await user.get(`${path}/count?filter=${encodeURIComponent(JSON.stringify(filter))}`)
    expect(counted).toMatchObject({ status: 400, error: { code: 'INVALID_BODY' } })
  })

  test('is refused also by a statement that was kept from a good value', async () => {
    const good = await user.post(`${path}/find`, { filter: leaf('lt', 1, 'n') })
    expect(good.status).toBe(200)
    const bad = await user.post(`${path}/find`, { filter: leaf('lt', 2 ** 33, 'n') })
    expect(bad).toMatchObject({ status: 400, error: { code: 'INVALID_BODY', details: { path: 'value' } } })
    expect((await user.post(`${path}/find`, { filter: leaf('gt', '2026-02-20T00:00:00Z', 'at') })).status).toBe(200)
    expect(
      (await user.post(`${path}/find`, { filter: leaf('gt', '2026-02-31T00:00:00Z', 'at') })).error?.details.path,
    ).toBe('value')
  })

  test('a filter has at most 5000 elements in all, also where a smaller one of its form was compiled before', async () => {
    const lists = (count: number) => ({
      and: Array.from({ length: 5 }, () => ({ column: 'title', op: 'in', value: Array(count).fill('a') })),
    })
    expect((await user.post(`${path}/find`, { filter: lists(900) })).status).toBe(200)
    const refused = await user.post(`${path}/find`, { filter: lists(1000) })
    expect(refused).toMatchObject({ status: 400, error: { code: 'INVALID_BODY' } })
    expect(refused.error?.message).toContain('5000')
  })

  test('lists of JSON mean what they mean one by one, also inside, and are looked up in a hash table', async () => {
    const values = [null, 'a', 'A', '1', 1, 1.5, 0, true, false, [], [1], { a: 1 }, { a: null }, '']
    const name = 'listed'
    await define(project, { name, read_policy: 'public', columns: [{ name: 'meta', type: 'jsonb' }] })
    await project.sql(`insert into collections.listed (user_id, meta) select $1, m from unnest($2::jsonb[]) m`, [
      user.id,
      [...values.map((at) => JSON.stringify({ at })), '{}', null],
    ])
    const lists = [[], ['a'], [1], [1.0, '1'], [true, 'a', [1]], [null], ['a', null], [[1], { a: 1 }, []], values]
    const long = [...Array.from({ length: 900 }, (_, n) => `x${n}`), 'a', 1]
    for (const list of [...lists, long])
      for (const op of ['in', 'not_in'])
        for (const filter of [leaf(op, list, 'meta.at'), { not: leaf(op, list, 'meta.at') }]) {
          const found = await user.post(`/client/collections/${name}/find`, { filter, select: ['id'] })
          const [wanted] = await project.sql(
            `select count(*)::int as count from collections.${name} where internal.filter_truth($1, jsonb_build_object('meta', meta))`,
            [JSON.stringify(filter)],
          )
          expect(found.data, `${op} ${JSON.stringify(list)}`).toHaveLength(wanted.count)
        }
    const asUser = (text: string, values: unknown[]) => project.as('app_user', { 'app.user_id': user.id }, text, values)
    const [{ compiled }] = (await asUser(`select internal.collection_compile('count', $1, $2, 'raw') as compiled`, [
      name,
      JSON.stringify({ filter: leaf('in', long, 'meta.at') }),
    ])) as [{ compiled: { text: string } }]
    const plan = await asUser(`explain (costs off) ${compiled.text}`, [JSON.stringify(long)])
    expect(JSON.stringify(plan)).toContain('hashed SubPlan')
  })

  test('lists have at most 1000 elements and a search 200 characters, in bodies and in query strings', async () => {
    const list = (count: number) => Array.from({ length: count }, () => 'a')
    for (const column of ['title', 'meta', 'tags'])
      for (const op of column === 'tags' ? ['contains', 'contained_by', 'containedBy', 'overlaps'] : ['in', 'not_in']) {
        expect((await user.post(`${path}/find`, { filter: leaf(op, list(1000), column) })).error).toBeUndefined()
        for (const [where, answer] of [
          ['value', await user.post(`${path}/find`, { filter: leaf(op, list(1001), column) })],
          [
            'not.and[0].value',
            await user.post(`${path}/find`, { filter: { not: { and: [leaf(op, list(1001), column)] } } }),
          ],
          ['value', await user.get(`${path}?${column}[${op}]=${list(1001).join(',')}`)],
        ] as const)
          expect(answer, `${column} ${op}`).toMatchObject({
            status: 400,
            error: { code: 'INVALID_BODY', details: { path: expect.stringContaining(where) } },
          })
      }
    for (const fuzzy of [false, true]) {
      const find = (q: string) => user.post(`${path}/find`, { search: { q, columns: ['title'], fuzzy } })
      expect((await find('🌱'.repeat(200))).error).toBeUndefined()
      for (const q of ['🌱'.repeat(201), 'x'.repeat(500_000)])
        expect(await find(q)).toMatchObject({
          status: 400,
          error: { code: 'INVALID_BODY', details: { path: 'search.q' } },
        })
    }
    const byUrl = await user.get(`${path}?q=${'x'.repeat(201)}&q_columns=title`)
    expect(byUrl).toMatchObject({ status: 400, error: { code: 'INVALID_BODY', details: { path: 'search.q' } } })
  })

  test('8 levels and 50 conditions are fine, and so is a pattern that ends in a backslash', async () => {
    for (const filter of [
      nested(8),
      many(50),
      leaf('like', 'x\\', 'title'),
      leaf('ilike', '\\\\\\', 'title'),
      leaf('like', '%'.repeat(100), 'title'),
    ]) {
      expect((await user.post(`${path}/find`, { filter })).error).toBeUndefined()
    }
  })

  test('unknown columns are 400 INVALID_COLUMN wherever they stand', async () => {
    for (const column of ['nope', 'n; drop table x', '"n"', 'tableoid', 'title.deep', 'meta2.a']) {
      const bodies = [
        { filter: leaf('eq', 1, column) },
        { filter: { and: [{ not: leaf('is_null', undefined, column) }] } },
        { select: [column] },
        { order: [{ column }] },
        { search: { q: 'x', columns: [column] } },
      ]
      for (const body of bodies) {
        const answer = await user.post(`${path}/find`, body)
        expect(answer, JSON.stringify(body)).toMatchObject({
          status: 400,
          error: { code: 'INVALID_COLUMN', details: { column } },
        })
      }
    }
    expect((await user.post(`${path}/find`, { include: ['nope'] })).error?.code).toBe('INVALID_COLUMN')
    expect((await user.post(`${path}/find`, { order: [{ column: 'tags' }] })).error?.code).toBe('INVALID_COLUMN')
    expect((await user.post(`${path}/find`, { search: { q: 'x', columns: ['n'] } })).error?.code).toBe('INVALID_COLUMN')
  })

  test('dots lead into JSON', async () => {
    await user.post(path, { title: 'json', meta: { plan: { tier: 'pro' }, n: 5 } })
    for (const filter of [
      leaf('eq', 'pro', 'meta.plan.tier'),
      leaf('gte', 5, 'meta.n'),
      leaf('is_null', undefined, 'meta.none'),
      leaf('contains', { n: 5 }, 'meta'),
    ]) {
      const found = await user.post(`${path}/find`, { filter: { and: [leaf('eq', 'json', 'title'), filter] } })
      expect(found.data, JSON.stringify(filter)).toHaveLength(1)
    }
  })
})
