import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import {
  type Case,
  caseArbitrary,
  type Filter,
  type Json,
  type Leaf,
  leaf,
  type Truth,
  truthOf,
  valueArbitrary,
} from '#test/support/filters.ts'
import { startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'

/** Filters as SQL, against the oracle and against the functions that evaluate the same filter on a row at hand. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 60_000 })

const harness = await startHarness()
const project = await harness.project()

let client: pg.Client
beforeAll(async () => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  client = new pg.Client({ connectionString: url.href })
  await client.connect()
  await client.query(`set search_path = ''`)
})
afterAll(() => client.end())

const one = async (text: string, values: readonly unknown[]) => {
  const { rows } = await client.query(text, [...values])
  return rows[0]?.value
}
const compiled = async ({ filter, row }: Case): Promise<Truth> => {
  const condition = await one(`select internal.filter_sql($1, '($2::jsonb)', '($1::jsonb)') as value`, [
    JSON.stringify(filter),
  ])
  return one(`select ($1::jsonb, $2::jsonb) is null, ${condition} as value`, [
    JSON.stringify(filter),
    JSON.stringify(row),
  ])
}

test('a compiled filter is true, false or unknown as the grammar says', async () => {
  const property = fc.asyncProperty(caseArbitrary, async (item) => {
    expect(await compiled(item)).toBe(truthOf(item.filter, item.row))
  })
  await fc.assert(property, { numRuns: sized(600, 5000) })
})

test.each<[Filter, Json, Truth]>([
  [leaf('eq', 1, 'a.b'), { 'a.b': 2, a: { b: 1 } }, false],
  [leaf('eq', null, 'a.b'), { 'a.b': null, a: { b: 1 } }, true],
  [leaf('eq', 1, 'a.0'), { a: [1] }, true],
  [leaf('gt', '10'), { a: '9' }, true],
  [leaf('gt', 10), { a: '9' }, null],
  [leaf('not_in', []), {}, true],
  [leaf('not_in', [null, 1]), { a: 2 }, null],
  [leaf('like', '%'.repeat(101)), { a: 'x' }, null],
  [leaf('like', 'a\\'), { a: 'a\\' }, true],
  [leaf('near', 1), { a: 1 }, null],
  [{ and: [] }, {}, true],
  [{ or: [] }, {}, false],
  [{ not: leaf('eq', 1) }, {}, null],
])('%j on %j is %j', async (filter, row, truth) => {
  expect(await compiled({ filter, row })).toBe(truth)
})

test('text of a filter never becomes SQL', async () => {
  const names = [`a' = 'a`, 'a"b', `'); drop table app.users; --`, '%s', '{0}', '{value}', '$1', '\\']
  for (const name of names)
    for (const op of ['eq', 'ne', 'in', 'like', 'gt', 'contains']) {
      const value = op === 'in' ? [name] : name
      const row = { [name]: op === 'contains' ? [name] : name }
      expect(await compiled({ filter: leaf(op, value, name), row }), `${name} ${op}`).toBe(
        truthOf(leaf(op, value, name), row),
      )
    }
})

test('numbers in paths that Postgres reads after a sign or white space select elements in every form', async () => {
  for (const place of ['1', '+1', ' 1', '\t+1', '-2', '01']) {
    const filter = leaf('eq', 'x', `a.${place}`)
    const row = { a: ['q', 'x', 'q'] }
    const truth = await one(
      'select internal.filter_truth($1::jsonb, $2::jsonb) as value',
      [filter, row].map((it) => JSON.stringify(it)),
    )
    expect(truth, place).toBe(true)
    expect(await compiled({ filter, row }), place).toBe(true)
    const contains = await one(`select internal.filter_contains_sql('r', $1::jsonb, 'p') as value`, [
      JSON.stringify(filter),
    ])
    expect(contains, place).toBeNull()
  }
  expect(await compiled({ filter: leaf('eq', 'x', '+1'), row: ['q', 'x'] })).toBe(true)
})

test('containment finds exactly the rows for which the comparison is true', async () => {
  const columns = fc.constantFrom('a', 'b', 'a.b', 'a.b.c', 'a.0', '0', 'a..b', 'é')
  const scalars = fc.constantFrom<Json>('x', '', 1, 1.5, true, false, null)
  const rows = fc.dictionary(
    fc.constantFrom('a', 'b', 'a.b', '0', 'é'),
    fc.oneof(
      scalars,
      fc.array(scalars, { maxLength: 2 }),
      fc.dictionary(fc.constantFrom('b', '0', ''), fc.oneof(scalars, fc.record({ c: scalars, b: scalars }))),
    ),
    { maxKeys: 3 },
  )
  const leaves: fc.Arbitrary<Leaf> = fc.oneof(
    fc.record({ column: columns, op: fc.constant('eq'), value: scalars }),
    fc.record({ column: columns, op: fc.constant('in'), value: fc.array(scalars, { maxLength: 3 }) }),
  )
  let served = 0
  const property = fc.asyncProperty(leaves, rows, async (filter, row) => {
    const condition = await one(
      `select internal.filter_contains_sql('($2::jsonb)', $1::jsonb, '($1::jsonb)') as value`,
      [JSON.stringify(filter)],
    )
    if (condition === null) return
    served += 1
    const found = await one(`select ${condition} as value`, [JSON.stringify(filter), JSON.stringify(row)])
    expect(found).toBe(truthOf(filter, row) === true)
  })
  await fc.assert(property, { numRuns: sized(600, 5000) })
  expect(served).toBeGreaterThan(100)
})

test('a typed expression compares as its value in JSON does', async () => {
  const ops = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'not_in', 'like', 'ilike', 'is_null', 'is_not_null']
  const kinds = { text: ['a', 'B', '', '10'], numeric: [0, 1, -1.5], boolean: [true, false] } as const
  const actual = fc.constantFrom(...Object.keys(kinds)).chain((kind) =>
    fc.record({
      kind: fc.constant(kind),
      value: fc.constantFrom<Json>(null, ...kinds[kind as keyof typeof kinds]),
    }),
  )
  const values = fc.oneof(
    valueArbitrary,
    fc.constantFrom<Json>('a', 'B', 1, true, null),
    fc.array(fc.constantFrom<Json>('a', '10', 1, 0, true, null), { maxLength: 3 }),
  )
  const property = fc.asyncProperty(
    actual,
    fc.constantFrom(...ops, 'contains', 'contained_by', 'overlaps'),
    values,
    async ({ kind, value: held }, op, value) => {
      const json = JSON.stringify(value)
      const condition = await one(
        `select internal.filter_compare_sql('($2::${kind})', '${kind}', $1, $2::jsonb, '($1::jsonb)') as value`,
        [op, json],
      )
      const truth = await one(`select ($1::jsonb, $2::${kind}) is null, ${condition} as value`, [json, held])
      expect(truth, `${kind} ${JSON.stringify(held)} ${op} ${json}`).toBe(
        truthOf({ column: 'a', op, value }, { a: held }),
      )
    },
  )
  await fc.assert(property, { numRuns: sized(600, 5000) })
})
