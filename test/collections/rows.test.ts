import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { define, insertAll } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const user = await project.user()
const other = await project.user()
const everyType = await define(project, {
  name: 'everything',
  columns: [
    { name: 'a_text', type: 'text' },
    { name: 'an_integer', type: 'integer' },
    { name: 'a_bigint', type: 'bigint' },
    { name: 'a_numeric', type: 'numeric' },
    { name: 'a_double', type: 'double' },
    { name: 'a_boolean', type: 'boolean' },
    { name: 'a_uuid', type: 'uuid' },
    { name: 'a_date', type: 'date' },
    { name: 'a_time', type: 'timestamptz' },
    { name: 'a_json', type: 'jsonb' },
    { name: 'a_vector', type: 'vector', dimensions: 3 },
    { name: 'texts', type: 'text[]' },
    { name: 'integers', type: 'integer[]' },
    { name: 'bigints', type: 'bigint[]' },
    { name: 'numerics', type: 'numeric[]' },
    { name: 'booleans', type: 'boolean[]' },
    { name: 'uuids', type: 'uuid[]' },
  ],
})
const id = randomUUID()
const whole = {
  a_text: 'Äö "quoted" \\ 😀',
  an_integer: -2147483648,
  a_bigint: 9007199254740991,
  a_numeric: 12.5,
  a_double: 0.1,
  a_boolean: false,
  a_uuid: id,
  a_date: '2026-02-28',
  a_time: '2026-10-03T10:00:00.123Z',
  a_json: { a: [1, null, { b: 'c' }], 'x.y': true },
  a_vector: [1, -0.5, 0.25],
  texts: ['a', null, 'b,"c"\\', ''],
  integers: [1, -2],
  bigints: [1, 2],
  numerics: [0.5, 2],
  booleans: [true, false, null],
  uuids: [id],
}

test('times of the first and the last year that four digits write', async () => {
  for (const time of ['0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z'])
    expect((await user.post(everyType, { a_time: time })).data.a_time).toBe(time)
  expect((await user.post(everyType, { a_time: '9999-12-31' })).data.a_time).toBe('9999-12-31T00:00:00.000Z')
})

describe('a row', () => {
  test('of every type comes back as it was sent, and is read again as it was answered', async () => {
    const made = await user.post(everyType, whole)
    expect(made.status).toBe(201)
    expect(made.data).toMatchObject({ ...whole, user_id: user.id, deleted_at: null })
    expect(Object.keys(made.data).slice(0, 5)).toEqual(['id', 'user_id', 'created_at', 'updated_at', 'deleted_at'])
    expect(made.headers.get('etag')).toMatch(/^"[0-9a-f]+"$/)
    const read = await user.get(`${everyType}/${made.data.id}`)
    expect(read.status).toBe(200)
    expect(read.data).toEqual(made.data)
    expect(read.headers.get('etag')).toBe(made.headers.get('etag'))
  })

  test('is null where nothing was sent', async () => {
    const made = await user.post(everyType, {})
    expect(made.status).toBe(201)
    for (const column of Object.keys(whole)) expect(made.data[column]).toBeNull()
  })

  test('needs a column of the developer, where a user adds it', async () => {
    const path = await define(project, { name: 'bare' })
    const refused = await user.post(path, {})
    expect([refused.status, refused.error?.code], refused.text).toEqual([400, 'INVALID_BODY'])
    expect((await project.server.post(path, { user_id: user.id })).status).toBe(201)
    await project.admin.post('/collections/bare/columns', { name: 'a', type: 'text' })
    expect((await user.post(path, {})).status).toBe(201)
  })

  test('is found with find', async () => {
    const found = await user.post(`${everyType}/find`, { filter: { column: 'a_uuid', op: 'eq', value: id } })
    expect(found.error).toBeUndefined()
    expect(found.data).toHaveLength(1)
    expect(found.body.next_cursor).toBeNull()
    expect((await other.post(`${everyType}/find`, {})).data).toEqual([])
  })
})

describe('values that do not fit', () => {
  const wrong: [string, unknown][] = [
    ['a_text', 1],
    ['a_text', ['x']],
    ['an_integer', '1'],
    ['an_integer', 1.5],
    ['an_integer', 2147483648],
    ['a_bigint', '9223372036854775808'],
    ['a_bigint', '1x'],
    ['a_numeric', 'NaN'],
    ['a_numeric', 'Infinity'],
    ['a_numeric', ''],
    ['a_double', '1'],
    ['a_boolean', 'true'],
    ['a_boolean', 0],
    ['a_uuid', 'x'],
    ['a_uuid', `{${id}}`],
    ['a_date', '2026-02-30'],
    ['a_date', 'tomorrow'],
    ['a_date', '2026-10-03T10:00:00Z'],
    ['a_time', 'now'],
    ['a_time', 'infinity'],
    ['a_time', '2026-13-01T00:00:00Z'],
    ['a_time', '9999-12-31T23:59:59.999-15:00'],
    ['a_time', '9999-12-31T23:59:59-01'],
    ['a_time', '0001-01-01T00:00:00+0100'],
    ['a_vector', [1, 2]],
    ['a_vector', [1, 2, 'x']],
    ['a_vector', [1, 2, null]],
    ['a_vector', 'x'],
    ['texts', 'x'],
    ['texts', [['x']]],
    ['texts', [1]],
    ['integers', [1.5]],
    ['integers', [3000000000]],
    ['numerics', ['NaN']],
    ['uuids', ['x']],
  ]
  test.each(wrong)('%s: %j is 400 INVALID_BODY and names its column', async (column, value) => {
    const rowsBefore = await project.sql('select count(*) from collections.everything')
    // twice: the second time by a kept statement
    await user.post(everyType, { [column]: null })
    for (const attempt of [1, 2]) {
      const answer = await user.post(everyType, { [column]: value })
      expect(answer, `attempt ${attempt}`).toMatchObject({
        status: 400,
        error: { code: 'INVALID_BODY', details: { column } },
      })
      const batch = await user.post(`${everyType}/batch`, { rows: [{ a_text: 'fine' }, { [column]: value }] })
      expect(batch).toMatchObject({ status: 400, error: { code: 'INVALID_BODY', details: { column } } })
    }
    const [{ count }] = rowsBefore as [{ count: string }]
    expect(await project.sql('select count(*) from collections.everything')).toEqual([
      { count: String(Number(count) + 1) },
    ])
  })

  test('numbers that a double cannot hold are kept whole, and answered as strings', async () => {
    const body = `{"a_bigint": 9223372036854775807, "a_numeric": 0.12345678901234567890123, "bigints": ["9223372036854775807", 1]}`
    const made = await user.request('POST', everyType, body)
    expect(made.data).toMatchObject({
      a_bigint: '9223372036854775807',
      a_numeric: '0.12345678901234567890123',
      bigints: ['9223372036854775807', 1],
    })
    const filter = `{"filter": {"column": "a_bigint", "op": "eq", "value": 9223372036854775807}}`
    expect((await user.request('POST', `${everyType}/find`, filter)).data).toHaveLength(1)
    expect((await user.request('POST', everyType, '{"a_double": 1e400}')).error?.code).toBe('INVALID_BODY')
    const wide = await user.request('POST', everyType, '{"an_integer": 1e2, "a_numeric": 1.0e2}')
    expect(wide.data).toMatchObject({ an_integer: 100, a_numeric: 100 })
  })

  test('numbers of many digits are kept as they were written, also where JavaScript makes a whole one of them', async () => {
    const send = (text: string, column = 'a_numeric') => user.request('POST', everyType, `{"${column}": ${text}}`)
    for (const digits of ['1.0000000000000000001', '4503599627370497.25', `0.${'0'.repeat(330)}1`]) {
      expect((await send(digits)).data.a_numeric, digits).toBe(digits)
      expect((await send(`[${digits}]`, 'numerics')).data.numerics, digits).toEqual([digits])
      expect((await send(digits, 'a_json')).text, digits).toContain(`"a_json":${digits}`)
      const filter = `{"filter": {"column": "a_numeric", "op": "eq", "value": ${digits}}}`
      expect((await user.request('POST', `${everyType}/find`, filter)).data, digits).toHaveLength(1)
    }
    expect((await send('1e-400')).data.a_numeric).toBe(`0.${'0'.repeat(399)}1`)
    expect((await send('1.0000000000000000001', 'an_integer')).error?.details).toMatchObject({ column: 'an_integer' })
    // as long as a body may be
    const long = await send(`1.${'0'.repeat(900_000)}1`)
    expect(long).toMatchObject({ status: 400, error: { code: expect.stringMatching(/^INVALID_(BODY|JSON)$/) } })
    // a whole number is one, however it is written
    for (const [text, value] of [
      ['1.000000000000000000', 1],
      ['2.50e1', 25],
      ['1E+3', 1000],
      ['-0.0000000000000000000', 0],
      ['0e5', 0],
    ] as const) {
      expect((await send(text, 'an_integer')).data.an_integer, text).toBe(value)
    }
  })

  test('columns that are not there are 400 INVALID_COLUMN, server-managed ones are left out', async () => {
    for (const column of ['nope', 'tableoid', 'xmin', '"; drop table app.users; --', '$if', '__proto__']) {
      const answer = await user.request('POST', everyType, `{${JSON.stringify(column)}: 1}`)
      expect(answer, column).toMatchObject({ status: 400, error: { code: 'INVALID_COLUMN', details: { column } } })
    }
    const made = await user.post(everyType, {
      id: randomUUID(),
      user_id: other.id,
      created_at: '2000-01-01T00:00:00Z',
      updated_at: 5,
      deleted_at: '2000-01-01T00:00:00Z',
      a_text: 'mine',
    })
    expect(made.data).toMatchObject({ user_id: user.id, a_text: 'mine', deleted_at: null })
    expect(new Date(made.data.created_at).getFullYear()).toBeGreaterThan(2020)
  })

  test('bodies that are no object, or hold what no text can, are named', async () => {
    const cases: [string, string][] = [
      ['{', 'INVALID_JSON'],
      ['[]', 'INVALID_BODY'],
      ['"x"', 'INVALID_BODY'],
      ['{"a_text": "\\u0000"}', 'INVALID_JSON'],
      ['{"a_text": "\\ud800"}', 'INVALID_JSON'],
    ]
    for (const [body, code] of cases) {
      expect(await user.request('POST', everyType, body), body).toMatchObject({ status: 400, error: { code } })
    }
  })
})

describe('collections that are not there', () => {
  test('are 404 COLLECTION_NOT_FOUND on every route', async () => {
    const path = '/client/collections/nothing'
    const answers = [
      await user.post(path, { a: 1 }),
      await user.post(`${path}/batch`, { rows: [] }),
      await user.post(`${path}/find`),
      await user.get(path),
      await user.get(`${path}/count`),
      await user.post(`${path}/aggregate`, { aggregates: [{ fn: 'count', as: 'n' }] }),
      await user.post(`${path}/find-nearest`, { column: 'a', vector: [1] }),
      await user.get(`${path}/${id}`),
      await user.patch(`${path}/${id}`, { a: 1 }),
      await user.delete(`${path}/${id}`),
      await user.post(`${path}/${id}/restore`),
      await user.post('/client/collections/transaction', {
        operations: [{ op: 'insert', collection: 'nothing', data: {} }],
      }),
    ]
    for (const answer of answers) expect(answer).toMatchObject({ status: 404, error: { code: 'COLLECTION_NOT_FOUND' } })
    for (const odd of ["Robert');--", 'x%00', 'NOTHING', '__proto__', 'x'.repeat(300)]) {
      for (const answer of [
        await user.get(`/client/collections/${odd}`),
        await user.post(`/client/collections/${odd}`),
      ])
        expect(answer, odd).toMatchObject({ status: 404, error: { code: 'COLLECTION_NOT_FOUND' } })
    }
  })

  test('a malformed id names no row', async () => {
    for (const answer of [
      await user.get(`${everyType}/x`),
      await user.patch(`${everyType}/x`),
      await user.delete(`${everyType}/x`),
      await user.post(`${everyType}/x/restore`),
    ]) {
      expect(answer).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    }
  })
})

describe('rules of columns', () => {
  test('are refused by name: length, bounds, enum, null, reference, unique', async () => {
    const authors = await define(project, { name: 'writers', columns: [{ name: 'name', type: 'text' }] })
    const books = await define(project, {
      name: 'books',
      columns: [
        { name: 'title', type: 'text', nullable: false, max_length: 5, unique: true },
        { name: 'pages', type: 'integer', min: 1, max: 10 },
        { name: 'kind', type: 'text', enum: ['a', 'b'] },
        { name: 'writer_id', type: 'uuid', references: { collection: 'writers' } },
        { name: 'read', type: 'boolean', default: false },
      ],
    })
    const [mine] = await insertAll(user, authors, [{ name: 'me' }])
    const [theirs] = await insertAll(other, authors, [{ name: 'they' }])
    const made = await user.post(books, { title: 'one', writer_id: mine.id })
    expect(made.data).toMatchObject({ title: 'one', read: false, writer_id: mine.id })
    const wrong: [object, string, string][] = [
      [{ title: 'longer' }, 'INVALID_BODY', 'title'],
      [{ title: 'two', pages: 0 }, 'INVALID_BODY', 'pages'],
      [{ title: 'two', pages: 11 }, 'INVALID_BODY', 'pages'],
      [{ title: 'two', kind: 'c' }, 'INVALID_BODY', 'kind'],
      [{ title: 'two', writer_id: randomUUID() }, 'INVALID_BODY', 'writer_id'],
      // one that the writer may not read is not there
      [{ title: 'two', writer_id: theirs.id }, 'INVALID_BODY', 'writer_id'],
      [{ title: null }, 'NOT_NULL_VIOLATION', 'title'],
      [{}, 'NOT_NULL_VIOLATION', 'title'],
    ]
    for (const [body, code, column] of wrong) {
      expect(await user.post(books, body), JSON.stringify(body)).toMatchObject({
        status: 400,
        error: { code, details: { column } },
      })
      expect(await user.post(`${books}/batch`, { rows: [{ title: 'fine' }, body] })).toMatchObject({
        status: 400,
        error: { code, details: { column } },
      })
      if (Object.keys(body).length > 0) {
        expect(await user.patch(`${books}/${made.data.id}`, body)).toMatchObject({
          status: 400,
          error: { code, details: { column } },
        })
      }
    }
    expect(await user.post(books, { title: 'one' })).toMatchObject({
      status: 409,
      error: { code: 'CONFLICT', details: { columns: ['title'] } },
    })
    expect(await user.post(`${books}/batch`, { rows: [{ title: 'x' }, { title: 'x' }] })).toMatchObject({
      status: 409,
      error: { code: 'CONFLICT' },
    })
    expect((await user.get(`${books}/count`)).data).toEqual({ count: 1 })
  })

  test('a text too long for the index on its column is 400', async () => {
    const path = await define(project, { name: 'indexed', columns: [{ name: 'key', type: 'text', unique: true }] })
    const random = Array.from({ length: 400 }, () => randomUUID()).join('')
    expect(await user.post(path, { key: random })).toMatchObject({ status: 400, error: { code: 'INVALID_BODY' } })
    expect((await user.get(`${path}/count`)).data).toEqual({ count: 0 })
  })
})

describe('a batch', () => {
  test('of 500 sparse rows keeps its order and is all or nothing; 501 are too many', async () => {
    const path = await define(project, {
      name: 'bulk',
      columns: [
        { name: 'n', type: 'integer' },
        { name: 'label', type: 'text', default: 'none' },
      ],
    })
    const rows = Array.from({ length: 500 }, (_, n) => (n % 2 ? { n } : { n, label: `row ${n}` }))
    const made = await user.post(`${path}/batch`, { rows })
    expect(made.status).toBe(201)
    expect(made.data.map((row: any) => row.n)).toEqual(rows.map((row) => row.n))
    // absent columns are null even where there is a default
    expect(made.data[1]).toMatchObject({ n: 1, label: null, user_id: user.id })
    expect(await user.post(`${path}/batch`, { rows: [...rows, { n: 1 }] })).toMatchObject({
      status: 400,
      error: { code: 'BATCH_TOO_LARGE' },
    })
    expect(await user.post(`${path}/batch`, { rows: [] })).toMatchObject({ status: 201, data: [] })
    for (const bad of [undefined, null, {}, 'x', [1], [[]], [null]]) {
      expect(await user.post(`${path}/batch`, { rows: bad })).toMatchObject({
        status: 400,
        error: { code: 'INVALID_BODY' },
      })
    }
    expect((await user.get(`${path}/count`)).data).toEqual({ count: 500 })
  })
})
