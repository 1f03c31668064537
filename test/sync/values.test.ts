import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { define, insertAll } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'
import { deviceOf, patch, put } from '#test/support/sync.ts'

const harness = await startHarness()
const project = await harness.project()
const columns = [
  { name: 'title', type: 'text', max_length: 1000 },
  { name: 'n', type: 'integer', default: 7, max: 100 },
  { name: 'big', type: 'bigint' },
  { name: 'price', type: 'numeric' },
  { name: 'ratio', type: 'double' },
  { name: 'done', type: 'boolean' },
  { name: 'ref', type: 'uuid' },
  { name: 'day', type: 'date' },
  { name: 'at', type: 'timestamptz' },
  { name: 'meta', type: 'jsonb' },
  { name: 'tags', type: 'text[]' },
  { name: 'ranks', type: 'integer[]' },
  { name: 'bigs', type: 'bigint[]' },
  { name: 'prices', type: 'numeric[]' },
  { name: 'flags', type: 'boolean[]' },
  { name: 'refs', type: 'uuid[]' },
  { name: 'spot', type: 'vector', dimensions: 2 },
]
const notes = await define(project, { name: 'notes', sync: true, columns })
const id = () => randomUUID()
const device = async () => {
  const user = await project.user()
  return { user, phone: deviceOf(project, user) }
}
const outcomes = (results: readonly any[]) => results.map(({ status, code }) => code ?? status)

test('a patch with a column that is not there changes nothing, whatever a patch before it had', async () => {
  const { user, phone } = await device()
  const [row] = await insertAll(user, notes, [{ title: 'a', n: 1 }])
  const { results } = await phone.push([
    patch('notes', row.id, { n: 2, title: 'b' }),
    patch('notes', row.id, { 'n title': 5 }),
    patch('notes', row.id, { 'n ti': 5, tle: 1 }),
  ])
  expect(outcomes(results)).toEqual(['applied', 'INVALID_COLUMN', 'INVALID_COLUMN'])
  expect((await user.get(`${notes}/${row.id}`)).data).toMatchObject({ n: 2, title: 'b' })
})

// every kind of JSON, and the edges of each pattern
const values: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e2,
  101,
  9_999_999_999,
  1e21,
  1e-7,
  '',
  ' ',
  'x',
  '1',
  '-1',
  '1.5',
  '1e5',
  ' 1',
  '1 ',
  '1\n',
  'true',
  'null',
  '9007199254740993',
  '9223372036854775808',
  '99999999999999999999',
  '1e999',
  '1e1000',
  '1'.repeat(1001),
  'NaN',
  'Infinity',
  '2026-01-01',
  '2026-02-30',
  '2026-1-1',
  '2026-01-01T00:00:00Z',
  '2026-01-01 00:00',
  '2026-01-01T25:00:00Z',
  '0000-01-01',
  '9999-12-31T23:59:59-12:00',
  'now',
  'today',
  'a1b2c3d4-0000-4000-8000-000000000000',
  'A1B2C3D4-0000-4000-8000-000000000000',
  '{a1b2c3d4-0000-4000-8000-000000000000}',
  'a1b2c3d4000040008000000000000000',
  [],
  [null],
  [1],
  [1, 2],
  ['1'],
  ['x', null],
  [true],
  [[1]],
  [[]],
  [{}],
  [1.5],
  ['a1b2c3d4-0000-4000-8000-000000000000'],
  [1, 'x'],
  [9_999_999_999],
  [1e300, 1e300],
  [null, 1],
  ['NaN'],
  {},
  { a: 1 },
  { $inc: 1 },
  'x'.repeat(1001),
  '{1,2}',
  '[1,2]',
]

test('a value that a put of many takes is one that its column takes, of every type', async () => {
  const types = await project.sql<{ name: string; type: string; fits: string }>(
    `select k.name, k.type, internal.sync_values_fit_sql('notes', array[k.name]) as fits
       from app.collection_columns k join app.collections c on c.id = k.collection_id where c.name = 'notes'`,
  )
  expect(types.length).toBeGreaterThan(10)
  const differing: unknown[] = []
  for (const { name, type, fits } of types) {
    const rows = fits.replace('$1::json', 'json_build_array(json_build_object($3::text, v.value))')
    const found = await project.sql(
      `select $2 as type, v.value::text, p.problem
         from jsonb_array_elements($1::jsonb) as v (value)
        cross join lateral (select internal.collection_value_problem($2, v.value) as problem) p
        cross join lateral (${rows}) as f (fits)
        where f.fits <> (v.value = 'null' or p.problem is null)`,
      [JSON.stringify(values), type, name],
    )
    differing.push(...found)
  }
  expect(differing).toEqual([])
})

test('the values that only a cast refuses are refused as alone', async () => {
  const { user, phone } = await device()
  const cases: [string, unknown][] = [
    ['n', 9_999_999_999],
    ['n', 101],
    ['big', '9999999999999999999'],
    ['ratio', 1e308],
    ['day', '2026-02-30'],
    ['at', '2026-01-01T25:00:00Z'],
    ['ranks', [9_999_999_999]],
    ['refs', ['a1b2c3d4-0000-4000-8000-000000000000']],
    ['spot', [1]],
    ['spot', [1e300, 1]],
    ['title', 'x'.repeat(1001)],
    ['meta', { a: 1 }],
  ]
  const fine = () => put('notes', id(), { title: 'fine' })
  for (const [name, value] of cases) {
    const { error } = await user.post(notes, { [name]: value })
    const { results } = await phone.push([
      put('notes', id(), { [name]: null }),
      put('notes', id(), { [name]: value }),
      fine(),
    ])
    expect([name, ...outcomes(results)]).toEqual([name, 'applied', error?.code ?? 'applied', 'applied'])
  }
})

test('columns that a collection does not have are refused alone and together', async () => {
  const { phone } = await device()
  for (const key of ['group_id', 'nope', 'idempotency_key', 'user_id', 'deleted_at', 'id', 'updated_at', '$inc', '']) {
    const one = () => put('notes', id(), { title: 'a', [key]: id() })
    const [single] = outcomes((await phone.push([one()])).results)
    expect([key, ...outcomes((await phone.push([one(), one()])).results)]).toEqual([key, single, single])
  }
})

test('odd times as base are refused as such', async () => {
  const { user, phone } = await device()
  const [row] = await insertAll(user, notes, [{ title: 'a' }])
  const times = [
    '0000-01-01T00:00:00Z',
    '2026-02-30T00:00:00Z',
    '2026-01-01T23:59:60Z',
    '9999-12-31T23:59:59-18:00',
    '2026-01-01',
    '-000001-01-01T00:00:00Z',
    '+275760-01-01T00:00:00Z',
    '2026-01-01T00:00:00.123456789Z',
    '2026-01-01T24:00:00Z',
  ]
  const { results } = await phone.push(
    times.map((base_updated_at) => patch('notes', row.id, { title: 'b' }, { base_updated_at })),
  )
  for (const [n, code] of outcomes(results).entries())
    expect([times[n], ['conflict', 'VALIDATION_ERROR'].includes(code), code]).toEqual([times[n], true, code])
})

test('values of many new rows are checked against the columns as they are, whatever fitted before', async () => {
  await define(project, { name: 'counts', sync: true, columns: [{ name: 'n', type: 'integer' }] })
  const { phone } = await device()
  const push = async (...values: readonly unknown[]) =>
    outcomes((await phone.push(values.map((n) => put('counts', id(), { n })))).results)
  expect(await push(1, 2)).toEqual(['applied', 'applied'])
  // of the same kinds, and of another
  expect(await push(1, 2.5)).toEqual(['applied', 'INVALID_BODY'])
  expect(await push(1, '2')).toEqual(['applied', 'INVALID_BODY'])
  expect((await project.admin.patch('/collections/counts/columns/n', { type: 'text' })).status).toBe(200)
  expect(await push(1, 2)).toEqual(['INVALID_BODY', 'INVALID_BODY'])
  expect(await push('1', '2')).toEqual(['applied', 'applied'])
})
