import { describe, expect, test } from 'vitest'
import { define } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const user = await project.user()
const other = await project.user()

describe('aggregate', async () => {
  const path = await define(project, {
    name: 'sales',
    columns: [
      { name: 'shop', type: 'text' },
      { name: 'units', type: 'integer' },
      { name: 'big', type: 'bigint' },
      { name: 'price', type: 'numeric' },
      { name: 'ratio', type: 'double' },
      { name: 'at', type: 'timestamptz' },
      { name: 'day', type: 'date' },
      { name: 'open', type: 'boolean' },
      { name: 'meta', type: 'jsonb' },
      { name: 'code', type: 'uuid' },
    ],
  })
  await user.post(`${path}/batch`, {
    rows: [
      {
        shop: 'a',
        units: 2,
        big: '9007199254740992',
        price: 0.1,
        ratio: 0.5,
        at: '2026-03-29T00:30:00Z',
        day: '2026-03-29',
        open: true,
      },
      {
        shop: 'a',
        units: 4,
        big: 1,
        price: 0.2,
        ratio: 1.5,
        at: '2026-03-28T23:30:00Z',
        day: '2026-03-01',
        open: false,
      },
      { shop: 'b', units: null, big: null, price: 10, ratio: null, at: '2026-03-29T22:30:00Z', day: null, open: true },
      { shop: null, units: 1, price: null, at: null },
    ],
  })
  await other.post(path, { shop: 'a', units: 1000 })
  const run = async (body: object) => {
    const answer = await user.post(`${path}/aggregate`, body)
    expect(answer.error, JSON.stringify(body)).toBeUndefined()
    return answer.data
  }

  test("counts, adds, averages and finds extremes of the caller's rows", async () => {
    expect(
      await run({
        aggregates: [
          { fn: 'count', as: 'n' },
          { fn: 'count', column: 'units', as: 'known' },
          { fn: 'count_distinct', column: 'shop', as: 'shops' },
          { fn: 'sum', column: 'units', as: 'units' },
          { fn: 'sum', column: 'big', as: 'big' },
          { fn: 'sum', column: 'price', as: 'price' },
          { fn: 'avg', column: 'units', as: 'mean' },
          { fn: 'max', column: 'at', as: 'last' },
          { fn: 'min', column: 'shop', as: 'first' },
          { fn: 'max', column: 'day', as: 'day' },
        ],
      }),
    ).toEqual([
      {
        n: 4,
        known: 3,
        shops: 2,
        units: 7,
        big: '9007199254740993',
        price: 10.3,
        mean: 7 / 3,
        last: '2026-03-29T22:30:00.000Z',
        first: 'a',
        day: '2026-03-29',
      },
    ])
    expect(
      await run({
        filter: { column: 'shop', op: 'eq', value: 'zzz' },
        aggregates: [
          { fn: 'avg', column: 'units', as: 'mean' },
          { fn: 'count', as: 'n' },
        ],
      }),
    ).toEqual([{ mean: null, n: 0 }])
  })

  test('averages and sums answer whatever numbers somebody stored', async () => {
    const open = await define(project, {
      name: 'measures',
      read_policy: 'public',
      columns: [
        { name: 'kind', type: 'text' },
        { name: 'exact', type: 'numeric' },
        { name: 'rough', type: 'double' },
        { name: 'big', type: 'bigint' },
      ],
    })
    const put = (kind: string, rows: object[]) =>
      other
        .post(`${open}/batch`, { rows: rows.map((row) => ({ kind, ...row })) })
        .then(({ status }) => expect(status).toBe(201))
    await put(
      'huge',
      Array.from({ length: 3 }, () => ({ exact: `9${'9'.repeat(999)}`, rough: 1.7e308, big: '9223372036854775807' })),
    )
    await put('tiny', [{ exact: `0.${'0'.repeat(400)}1`, rough: 5e-324 }])
    await put('cancels', [
      { exact: '1e400', rough: 1.7e308 },
      { exact: '-1e400', rough: -1.7e308 },
      { exact: 3, rough: 3 },
    ])
    await put('plain', [
      { exact: 0.1, rough: 0.1, big: 1 },
      { exact: 0.2, rough: 0.25, big: 2 },
    ])
    const columns = ['exact', 'rough', 'big']
    const answer = await user.post(`${open}/aggregate`, {
      group_by: ['kind'],
      aggregates: columns.flatMap((column) => ['sum', 'avg'].map((fn) => ({ fn, column, as: `${fn}_${column}` }))),
    })
    expect(answer.status).toBe(200)
    const of = (kind: string) => answer.data.find((row: { kind: string }) => row.kind === kind)
    expect(of('plain')).toEqual({
      kind: 'plain',
      sum_exact: 0.3,
      avg_exact: 0.15,
      sum_rough: 0.35,
      avg_rough: 0.175,
      sum_big: 3,
      avg_big: 1.5,
    })
    expect(of('cancels')).toMatchObject({
      sum_exact: 3,
      avg_exact: 1,
      sum_rough: 3,
      avg_rough: 1,
      sum_big: null,
      avg_big: null,
    })
    expect(of('tiny')).toMatchObject({ sum_rough: 5e-324, avg_rough: 5e-324 })
    expect(Number(of('tiny').avg_exact)).toBe(0)
    expect(of('huge')).toMatchObject({
      sum_big: '27670116110564327421',
      avg_big: expect.stringMatching(/^9223372036854775807(\.0+)?$/),
    })
    expect(of('huge').sum_rough).toMatch(/^51\d{307}$/)
    expect(of('huge').avg_rough).toBe(1.7e308)
    expect(of('huge').avg_exact).toMatch(/^9{1000}(\.0+)?$/)
    const having = { column: 'sum_rough', op: 'gt', value: '1e308' }
    const kept = await user.post(`${open}/aggregate`, {
      group_by: ['kind'],
      aggregates: [{ fn: 'sum', column: 'rough', as: 'sum_rough' }],
      having,
    })
    expect(kept.data.map((row: { kind: string }) => row.kind)).toEqual(['huge'])
    const tooLong = await other.post(open, { exact: '9'.repeat(1001) })
    expect(tooLong).toMatchObject({ status: 400, error: { code: 'INVALID_BODY', details: { column: 'exact' } } })
  })

  test('groups, keeps groups by having, orders, limits', async () => {
    const aggregates = [
      { fn: 'count', as: 'n' },
      { fn: 'sum', column: 'units', as: 'units' },
    ]
    expect(await run({ group_by: ['shop'], aggregates })).toEqual([
      { shop: 'a', n: 2, units: 6 },
      { shop: 'b', n: 1, units: null },
      { shop: null, n: 1, units: 1 },
    ])
    expect(await run({ group_by: ['shop'], aggregates, having: { column: 'n', op: 'gt', value: 1 } })).toEqual([
      { shop: 'a', n: 2, units: 6 },
    ])
    expect(
      await run({
        group_by: ['shop'],
        aggregates,
        having: {
          or: [
            { column: 'units', op: 'is_null' },
            { column: 'shop', op: 'is_null' },
          ],
        },
        order: [{ column: 'units', direction: 'desc' }],
      }),
    ).toEqual([
      { shop: null, n: 1, units: 1 },
      { shop: 'b', n: 1, units: null },
    ])
    expect(await run({ group_by: ['open', 'shop'], aggregates: [{ fn: 'count', as: 'n' }], limit: 1 })).toEqual([
      { open: false, shop: 'a', n: 1 },
    ])
  })

  test('buckets times in a zone, also over a change of the clocks, and dates', async () => {
    const byDay = (timezone?: string) =>
      run({
        group_by: [{ column: 'at', bucket: 'day', ...(timezone ? { timezone } : {}) }],
        aggregates: [{ fn: 'count', as: 'n' }],
      })
    expect(await byDay()).toEqual([
      { at: '2026-03-28T00:00:00.000Z', n: 1 },
      { at: '2026-03-29T00:00:00.000Z', n: 2 },
      { at: null, n: 1 },
    ])
    // the night of the change: that day in Berlin begins at 23:00Z and the next at 22:00Z
    expect(await byDay('Europe/Berlin')).toEqual([
      { at: '2026-03-28T23:00:00.000Z', n: 2 },
      { at: '2026-03-29T22:00:00.000Z', n: 1 },
      { at: null, n: 1 },
    ])
    expect(
      await run({ group_by: [{ column: 'day', bucket: 'month' }], aggregates: [{ fn: 'count', as: 'n' }] }),
    ).toEqual([
      { day: '2026-03-01', n: 2 },
      { day: null, n: 2 },
    ])
    for (const bucket of ['hour', 'week', 'month', 'year'])
      expect(
        (await run({ group_by: [{ column: 'at', bucket }], aggregates: [{ fn: 'count', as: 'n' }] })).length,
      ).toBeGreaterThan(1)
  })

  test('refuses what it cannot add up, by name', async () => {
    const count = [{ fn: 'count', as: 'n' }]
    const wrong: [object, string][] = [
      [{}, 'INVALID_BODY'],
      [{ aggregates: [] }, 'INVALID_BODY'],
      [{ aggregates: Array.from({ length: 11 }, (_, n) => ({ fn: 'count', as: `n${n}` })) }, 'INVALID_BODY'],
      [{ aggregates: [{ fn: 'median', column: 'units', as: 'n' }] }, 'INVALID_BODY'],
      [{ aggregates: [{ fn: 'sum', as: 'n' }] }, 'INVALID_BODY'],
      [{ aggregates: [{ fn: 'count', as: 'n"; drop' }] }, 'INVALID_BODY'],
      [{ aggregates: [...count, ...count] }, 'INVALID_BODY'],
      [{ aggregates: [{ fn: 'count', as: 'shop' }], group_by: ['shop'] }, 'INVALID_BODY'],
      [{ aggregates: count, group_by: ['shop', 'shop'] }, 'INVALID_BODY'],
      [{ aggregates: count, order: Array.from({ length: 21 }, () => ({ column: 'n' })) }, 'INVALID_BODY'],
      [{ aggregates: [{ fn: 'sum', column: 'shop', as: 'n' }] }, 'INVALID_COLUMN'],
      [{ aggregates: [{ fn: 'max', column: 'open', as: 'n' }] }, 'INVALID_COLUMN'],
      [{ aggregates: [{ fn: 'max', column: 'code', as: 'n' }] }, 'INVALID_COLUMN'],
      [{ aggregates: [{ fn: 'avg', column: 'meta', as: 'n' }] }, 'INVALID_COLUMN'],
      [{ aggregates: [{ fn: 'sum', column: 'nope', as: 'n' }] }, 'INVALID_COLUMN'],
      [{ aggregates: count, group_by: ['nope'] }, 'INVALID_COLUMN'],
      [{ aggregates: count, group_by: [{ column: 'shop', bucket: 'day' }] }, 'INVALID_BODY'],
      [{ aggregates: count, group_by: [{ column: 'day', bucket: 'hour' }] }, 'INVALID_BODY'],
      [{ aggregates: count, group_by: [{ column: 'at', bucket: 'minute' }] }, 'INVALID_BODY'],
      [{ aggregates: count, group_by: [{ column: 'at', bucket: 'day', timezone: 'Mars/Olympus' }] }, 'INVALID_BODY'],
      [
        { aggregates: count, group_by: [{ column: 'at', bucket: 'day', timezone: "UTC'; drop table app.users; --" }] },
        'INVALID_BODY',
      ],
      [{ aggregates: count, group_by: [{ column: 'at', bucket: 'day', timezone: 'FOO+3' }] }, 'INVALID_BODY'],
      [{ aggregates: count, having: { column: 'units', op: 'gt', value: 1 } }, 'INVALID_COLUMN'],
      [{ aggregates: count, having: { column: 'n', op: 'gt', value: 'x' } }, 'INVALID_BODY'],
      [{ aggregates: count, order: [{ column: 'units' }] }, 'INVALID_COLUMN'],
      [{ aggregates: count, limit: 0 }, 'INVALID_BODY'],
      [{ aggregates: count, filter: { column: 'units', op: 'gt', value: 'x' } }, 'INVALID_BODY'],
    ]
    for (const [body, code] of wrong) {
      expect(await user.post(`${path}/aggregate`, body), JSON.stringify(body)).toMatchObject({
        status: 400,
        error: { code },
      })
      expect((await project.admin.post('/collections/sales/aggregate', body)).error?.code).toBe(code)
    }
    expect(
      (
        await user.post(`${path}/aggregate`, {
          aggregates: count,
          group_by: [{ column: 'at', bucket: 'day', timezone: 'Nowhere' }],
        })
      ).error?.details.path,
    ).toBe('group_by[0].timezone')
    expect((await user.request('POST', `${path}/aggregate`, '{')).error?.code).toBe('INVALID_JSON')
  })
})

describe('find-nearest', async () => {
  const path = await define(project, {
    name: 'pictures',
    columns: [
      { name: 'name', type: 'text' },
      { name: 'embedding', type: 'vector', dimensions: 2 },
    ],
  })
  await user.post(`${path}/batch`, {
    rows: [
      { name: 'east', embedding: [1, 0] },
      { name: 'north', embedding: [0, 2] },
      { name: 'west', embedding: [-3, 0] },
      { name: 'zero', embedding: [0, 0] },
      { name: 'none' },
    ],
  })
  await other.post(path, { name: 'theirs', embedding: [1, 0] })
  const near = async (body: object) => {
    const answer = await user.post(`${path}/find-nearest`, { column: 'embedding', vector: [1, 0], ...body })
    expect(answer.error).toBeUndefined()
    return answer.data.map((row: any) => [row.name, Math.round(row._distance * 1000) / 1000])
  }

  test('orders by distance, in three metrics, among what the caller may read', async () => {
    expect(await near({})).toEqual([
      ['east', 0],
      ['north', 1],
      ['west', 2],
    ])
    expect(await near({ metric: 'l2' })).toEqual([
      ['east', 0],
      ['zero', 1],
      ['north', 2.236],
      ['west', 4],
    ])
    expect(await near({ metric: 'inner_product' })).toEqual([
      ['east', -1],
      ['north', 0],
      ['zero', 0],
      ['west', 3],
    ])
    expect(await near({ limit: 1 })).toEqual([['east', 0]])
    expect(await near({ max_distance: 1 })).toEqual([
      ['east', 0],
      ['north', 1],
    ])
    expect(await near({ filter: { column: 'name', op: 'ne', value: 'east' } })).toEqual([
      ['north', 1],
      ['west', 2],
    ])
    const chosen = await user.post(`${path}/find-nearest`, {
      column: 'embedding',
      vector: [1, 0],
      limit: 1,
      select: ['name'],
    })
    expect(chosen.data).toEqual([{ name: 'east', _distance: 0 }])
    const all = await project.admin.post('/collections/pictures/find-nearest', {
      column: 'embedding',
      vector: [1, 0],
      limit: 500,
    })
    expect(all.data.map((row: any) => row.name).sort()).toEqual(['east', 'north', 'theirs', 'west'])
  })

  test('refuses other vectors and columns by name', async () => {
    for (const client of [
      { post: (body: object) => user.post(`${path}/find-nearest`, body) },
      { post: (body: object) => project.admin.post('/collections/pictures/find-nearest', body) },
    ]) {
      expect(await client.post({ column: 'embedding', vector: [1, 2, 3] })).toMatchObject({
        status: 400,
        error: { code: 'INVALID_VECTOR', details: { expected: 2, got: 3 } },
      })
      const wrong: [object, string][] = [
        [{ column: 'name', vector: [1, 0] }, 'INVALID_COLUMN'],
        [{ column: 'nope', vector: [1, 0] }, 'INVALID_COLUMN'],
        [{ column: 'embedding' }, 'INVALID_BODY'],
        [{ column: 'embedding', vector: 'x' }, 'INVALID_BODY'],
        [{ column: 'embedding', vector: [1, 'x'] }, 'INVALID_BODY'],
        [{ column: 'embedding', vector: [1, null] }, 'INVALID_BODY'],
        [{ column: 'embedding', vector: [1, [2]] }, 'INVALID_BODY'],
        [{ column: 'embedding', vector: [1, 1e300] }, 'INVALID_BODY'],
        [{ column: 'embedding', vector: [1, 0], metric: 'hamming' }, 'INVALID_BODY'],
        [{ column: 'embedding', vector: [1, 0], limit: 0 }, 'INVALID_BODY'],
        [{ column: 'embedding', vector: [1, 0], select: ['nope'] }, 'INVALID_COLUMN'],
        [{ column: 'embedding', text: 'a cat' }, 'EMBEDDINGS_NOT_CONFIGURED'],
        [{ column: 'embedding', text: 'a cat', vector: [1, 0] }, 'INVALID_BODY'],
      ]
      for (const [body, code] of wrong)
        expect(await client.post(body), JSON.stringify(body)).toMatchObject({ status: 400, error: { code } })
    }
  })
})

test('limits: 100 groups and 10 neighbours by default, at most 1000 and 100', async () => {
  const path = await define(project, {
    name: 'many',
    columns: [
      { name: 'n', type: 'integer' },
      { name: 'at', type: 'vector', dimensions: 1 },
    ],
  })
  for (const from of [0, 500, 1000]) {
    const rows = Array.from({ length: from < 1000 ? 500 : 5 }, (_, n) => ({ n: from + n, at: [from + n] }))
    expect((await user.post(`${path}/batch`, { rows })).status).toBe(201)
  }
  const groups = async (limit?: number) =>
    (await user.post(`${path}/aggregate`, { group_by: ['n'], aggregates: [{ fn: 'count', as: 'c' }], limit })).data
      .length
  expect([await groups(), await groups(1000), await groups(1001), await groups(1e300)]).toEqual([100, 1000, 1000, 1000])
  const nearest = async (limit?: number) =>
    (await user.post(`${path}/find-nearest`, { column: 'at', vector: [3], metric: 'l2', limit })).data.map(
      (row: any) => row._distance,
    )
  expect(await nearest()).toEqual([0, 1, 1, 2, 2, 3, 3, 4, 5, 6])
  expect([(await nearest(100)).length, (await nearest(101)).length]).toEqual([100, 100])
})
