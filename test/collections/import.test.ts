import { Readable } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { textOf } from '#server/collections/import_lines.ts'
import { startCollections } from '#test/support/definitions.ts'
import { sized } from '#test/support/sized.ts'
import { loadTasks } from '#workers/task.ts'

const { harness, project, define, insert } = await startCollections()
const user = await project.user()
const types = { ndjson: 'application/x-ndjson', csv: 'text/csv; charset=utf-8' }

const send = (name: string, file: string, format: keyof typeof types = 'ndjson', more: Record<string, string> = {}) =>
  project.admin.request('POST', `/collections/${name}/import?format=${format}`, file, {
    'content-type': types[format],
    ...more,
  })
const run = async (operation_id: string) => {
  const job = (await loadTasks()).jobs.find((one) => one.name === 'collections__import')
  await job?.run(harness.running.services, { operation_id })
  return (await project.admin.get(`/operations/${operation_id}`)).data
}
const imported = async (name: string, file: string, format: keyof typeof types = 'ndjson') => {
  const started = await send(name, file, format)
  expect([started.status, started.data], started.text).toEqual([
    202,
    { operation_id: expect.any(String), status: 'queued' },
  ])
  return run(started.data.operation_id)
}
const lines = (...rows: object[]) => rows.map((row) => JSON.stringify(row)).join('\n')
const values = (name: string, column: string) =>
  project
    .sql(`select "${column}" as v from collections.${name} order by created_at, id`)
    .then((rows) => rows.map((row) => row.v))
const staged = async () => (await project.sql('select count(*)::int as n from app.collection_imports'))[0].n

describe('rows come in', () => {
  test('by the thousand, exactly once, and what is staged goes', async () => {
    const name = await define({ columns: [{ name: 'n', type: 'integer', nullable: false }] })
    const started = await send(name, lines(...Array.from({ length: 1203 }, (_, n) => ({ user_id: user.id, n }))))
    // a worker that died after a part, and another that runs it again
    const { services } = harness.running
    const place = await services.fleet.placeOf(project.id)
    if (!place) throw new Error('the project is ready')
    const [{ id }] = (await project.sql('select id from app.collection_imports')) as [{ id: string }]
    const claims = { caller: 'developer', developerId: project.developer.id, projectId: project.id }
    await services.database.call(place, 'app_admin', claims, 'collection_import_part', { import_id: id })
    const done = await run(started.data.operation_id)
    expect(done).toMatchObject({
      type: 'collections.import',
      status: 'succeeded',
      progress: { done: 1203, total: 1203 },
      result: { collection: name, inserted: 1203, failed: 0, errors: [] },
    })
    const [there] = await project.sql(
      `select count(*)::int as n, count(distinct n)::int as of from collections.${name}`,
    )
    expect(there).toEqual({ n: 1203, of: 1203 })
    expect(await staged()).toBe(0)
    expect((await run(started.data.operation_id)).result.inserted).toBe(1203)
  })

  test('not at all once cancelled, and what was staged goes within days', async () => {
    const name = await define({ columns: [{ name: 'n', type: 'integer' }] })
    const { operation_id } = (await send(name, lines({ user_id: user.id, n: 1 }))).data
    expect((await project.admin.post(`/operations/${operation_id}/cancel`)).data.status).toBe('cancelled')
    expect((await run(operation_id)).status).toBe('cancelled')
    expect([await values(name, 'n'), await staged()]).toEqual([[], 1])
    const week = new Date(harness.now().getTime() + 8 * 86_400_000).toISOString()
    await project.as('app_worker', { 'app.clock': week }, 'select api.tenant_purge()')
    expect(await staged()).toBe(0)
  })

  test('those that can be; the others are named by line', async () => {
    const name = await define({
      columns: [
        { name: 'a', type: 'text', max_length: 3, unique: true },
        { name: 'n', type: 'integer', nullable: false, default: 7 },
      ],
    })
    const done = await imported(
      name,
      `${lines({ user_id: user.id, a: 'one' }, { user_id: user.id, a: 'four' }, { user_id: user.id, a: 'one' })}\n\n${lines(
        { a: 'x' },
        { user_id: user.id, a: 'y', n: null },
        { user_id: user.id, a: 'z', n: 'many' },
        { user_id: user.id, zzz: 1 },
        { user_id: user.id, a: 'two', n: 2, id: '00000000-0000-4000-8000-000000000000' },
      )}`,
    )
    expect(done.result).toMatchObject({ inserted: 2, failed: 6 })
    expect(done.result.errors.map((error: { line: number; code: string }) => [error.line, error.code])).toEqual([
      [2, 'INVALID_BODY'],
      [3, 'CONFLICT'],
      [5, 'INVALID_BODY'],
      [6, 'NOT_NULL_VIOLATION'],
      [7, 'INVALID_BODY'],
      [8, 'INVALID_COLUMN'],
    ])
    // what is left out has its default
    expect(await values(name, 'n')).toEqual([7, 2])
  })

  test('a hundred errors are listed, all are counted', async () => {
    const name = await define({ columns: [{ name: 'n', type: 'integer' }] })
    const done = await imported(name, lines(...Array.from({ length: 700 }, () => ({ user_id: user.id, n: 'x' }))))
    expect([done.result.inserted, done.result.failed, done.result.errors.length]).toEqual([0, 700, 100])
  })

  test('of a group', async () => {
    const name = await define({ owner_scope: 'group', columns: [{ name: 'a', type: 'text' }] })
    const group = (await user.post('/client/groups', { name: 'g', is_public: false })).data.id
    const open = (await user.post('/client/groups', { name: 'g' })).data.id
    const done = await imported(name, lines({ group_id: group, a: 'x' }, { group_id: open, a: 'y' }, { a: 'z' }))
    expect(done.result).toMatchObject({ inserted: 1, failed: 2 })
    expect(done.result.errors.map((error: { code: string }) => error.code)).toEqual([
      'GROUP_NOT_PRIVATE',
      'GROUP_CONTEXT_REQUIRED',
    ])
  })

  test.each(['ndjson', 'csv'] as const)('what %s exports comes back as it was', async (format) => {
    const columns = [
      { name: 't', type: 'text' },
      { name: 'b', type: 'bigint' },
      { name: 'n', type: 'numeric' },
      { name: 'x', type: 'double' },
      { name: 'y', type: 'boolean' },
      { name: 'at', type: 'timestamptz' },
      { name: 'day', type: 'date' },
      { name: 'j', type: 'jsonb' },
      { name: 'l', type: 'text[]' },
      { name: 'v', type: 'vector', dimensions: 2 },
    ]
    const [from, to] = [await define({ columns }), await define({ columns })]
    const [native] = await project.sql(`select to_regtype('extensions.vector') is not null as yes`)
    for (const t of ['=1+1', "'quoted'", 'a,"b"\r\nc', '-5', ' x ', 'ünï😀'])
      await insert(
        from,
        {
          t,
          b: '9007199254740993',
          n: '-0.10',
          x: 1e-7,
          y: true,
          at: '2026-01-02T03:04:05.678Z',
          day: '2026-01-02',
          j: '{"a": ["x", null]}',
          l: '{"a,b",null}',
          v: native.yes ? '[1,2]' : '{1,2}',
        },
        user,
      )
    await insert(from, {}, user)
    const file = (await project.admin.get(`/collections/${from}/export?format=${format}`)).text
    const done = await imported(to, file, format)
    expect(done.result).toMatchObject({ inserted: 7, failed: 0 })
    const list = columns.map((column) => `"${column.name}"::text`).join(', ')
    const all = (name: string) =>
      project.sql(`select user_id, ${list} from collections.${name} order by created_at, id`)
    const sorted = (rows: object[]) => rows.map((row) => JSON.stringify(row)).sort()
    expect(sorted(await all(to))).toEqual(sorted(await all(from)))
  })

  test.each(['ndjson', 'csv'] as const)('any values that %s exports come back as they were', async (format) => {
    const storable = (text: string) => text.isWellFormed() && !text.includes('\0')
    const texts = fc.oneof(
      fc.constantFrom(
        '',
        ' ',
        "'",
        "''",
        "'=x",
        "''=x",
        '=x',
        '＝x',
        "'＠x",
        '-1',
        '\tx',
        '\r',
        '\r\n',
        '"',
        '""',
        ',',
        'null',
        '123',
      ),
      fc.string().filter(storable),
      fc.string({ unit: 'grapheme' }).filter(storable),
    )
    const numbers = fc.oneof(
      fc.constantFrom(0, -0, 1e-7, 1e21, 5e-324, 0.1, '1.50', '-12345678901234567890.5', `1${'0'.repeat(400)}`),
      fc.integer(),
    )
    const nothing = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { freq: 5 })
    const values = {
      t: texts,
      i: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
      b: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
      n: numbers,
      x: fc.double({ noNaN: true, noDefaultInfinity: true }),
      y: fc.boolean(),
      at: fc
        .date({ min: new Date('0002-01-01'), max: new Date('9998-01-01'), noInvalidDate: true })
        .map((at) => at.toISOString()),
      day: fc
        .date({ min: new Date('0002-01-01'), max: new Date('9998-01-01'), noInvalidDate: true })
        .map((at) => at.toISOString().slice(0, 10)),
      u: fc.uuid(),
      j: fc.oneof(
        texts,
        numbers,
        fc.constantFrom('123', 'true', 'null', '[1]', '{"a":1}', '12345678901234567890', 'hello', '"x"'),
        fc.jsonValue().filter((value) => storable(JSON.stringify(value)) && !JSON.stringify(value).includes('\\u')),
      ),
      lt: fc.array(nothing(texts)),
      li: fc.array(nothing(fc.integer({ min: -1000, max: 1000 }))),
      lb: fc.array(nothing(fc.constantFrom('9007199254740993', 5, -1))),
      ln: fc.array(nothing(numbers)),
      ly: fc.array(nothing(fc.boolean())),
      lu: fc.array(nothing(fc.uuid())),
      v: fc.tuple(fc.integer({ min: -9, max: 9 }), fc.constantFrom(0.5, 1e-7)),
    }
    const kinds = {
      t: 'text',
      i: 'integer',
      b: 'bigint',
      n: 'numeric',
      x: 'double',
      y: 'boolean',
      at: 'timestamptz',
      day: 'date',
      u: 'uuid',
      j: 'jsonb',
      lt: 'text[]',
      li: 'integer[]',
      lb: 'bigint[]',
      ln: 'numeric[]',
      ly: 'boolean[]',
      lu: 'uuid[]',
      v: 'vector',
    }
    const columns = Object.entries(kinds).map(([name, type]) => ({
      name,
      type,
      ...(type === 'vector' ? { dimensions: 2 } : {}),
    }))
    const [from, to] = [await define({ columns }), await define({ columns })]
    const wanted = Object.fromEntries(
      Object.entries(values).map(([name, of]) => [name, nothing<unknown>(of as fc.Arbitrary<unknown>)]),
    )
    const rows = fc.sample(fc.record(wanted), { seed: Number(process.env['FUZZ_SEED'] ?? 7), numRuns: sized(60, 1000) })
    for (let at = 0; at < rows.length; at += 50)
      expect(
        (await user.post(`/client/collections/${from}/batch`, { rows: rows.slice(at, at + 50) })).error,
      ).toBeUndefined()
    const file = (await project.admin.get(`/collections/${from}/export?format=${format}`)).text
    const done = await imported(to, file, format)
    expect(done.result).toMatchObject({ inserted: rows.length, failed: 0 })
    const list = columns.map((column) => `"${column.name}"::text`).join(', ')
    const all = (name: string) => project.sql(`select ${list} from collections.${name} order by ${list}`)
    expect(await all(to)).toEqual(await all(from))
  })
})

describe('what is refused changes nothing', () => {
  const bad: [string, keyof typeof types, string, string][] = [
    ['broken JSON', 'ndjson', '{"a": 1}\n{"a": ', 'INVALID_BODY'],
    ['a list', 'ndjson', '[1]', 'INVALID_BODY'],
    ['U+0000', 'ndjson', '{"a": "\\u0000"}', 'INVALID_BODY'],
    ['a long line', 'ndjson', JSON.stringify({ a: 'x'.repeat(1_050_000) }), 'INVALID_BODY'],
    ['an unknown column', 'csv', 'user_id,zzz\n1,2', 'INVALID_COLUMN'],
    ['a column twice', 'csv', 'a,a\n1,2', 'INVALID_BODY'],
    ['a cell too many', 'csv', 'a\n1,2', 'INVALID_BODY'],
    ['an open quote', 'csv', 'a\n"1', 'INVALID_BODY'],
    ['a list that is none', 'csv', 'a,l\n1,[', 'INVALID_BODY'],
    ['a record of very many empty cells', 'csv', `a\n${','.repeat(1_050_000)}`, 'INVALID_BODY'],
    ['a long record', 'csv', `a\n"${'x'.repeat(1_050_000)}"`, 'INVALID_BODY'],
  ]
  test.each(bad)('%s', async (_what, format, file, code) => {
    const name = await define({
      columns: [
        { name: 'a', type: 'text' },
        { name: 'l', type: 'text[]' },
      ],
    })
    const refused = await send(name, file, format)
    expect([refused.status, refused.error?.code], refused.text).toEqual([400, code])
    expect(await staged()).toBe(0)
  })

  test('another type, format or size; bytes that are no text; a collection that is not there', async () => {
    const name = await define({ columns: [{ name: 'a', type: 'text' }] })
    const post = (body: string | Uint8Array<ArrayBuffer>, type: string, query = '') =>
      fetch(`${harness.url}/v1/admin/projects/${project.id}/collections/${name}/import${query}`, {
        method: 'POST',
        body,
        headers: { ...project.admin.headers, 'content-type': type },
      }).then(async (response) => [
        response.status,
        ((await response.json()) as { error: { code: string } }).error.code,
      ])
    expect(await post('{}', 'application/json')).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
    expect(await post('a', 'text/csv')).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
    expect(await post('a', 'text/plain')).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
    expect(await post('a', 'text/csv', '?format=xml')).toEqual([400, 'INVALID_INPUT'])
    expect(await post(new Uint8Array([0x7b, 0xff, 0xfe]), 'application/x-ndjson')).toEqual([400, 'INVALID_BODY'])
    expect(await post('\n'.repeat(50 * 1_048_576 + 1), 'application/x-ndjson')).toEqual([413, 'PAYLOAD_TOO_LARGE'])
    // a length that nobody announced
    const chunks = async () => {
      for await (const _ of textOf(Readable.from([Buffer.alloc(60), Buffer.alloc(60)]), 100));
    }
    await expect(chunks()).rejects.toMatchObject({ status: 413 })
    expect((await send('nowhere', '{}')).error?.code).toBe('COLLECTION_NOT_FOUND')
    // a file, where JSON is due
    expect(
      (await project.admin.request('POST', '/collections', 'a\n1', { 'content-type': 'text/csv' })).error?.code,
    ).toBe('UNSUPPORTED_MEDIA_TYPE')
    expect(await staged()).toBe(0)
  }, 180_000)

  test('a collection that goes meanwhile; what was half-sent is forgotten after a week', async () => {
    const name = await define({ columns: [{ name: 'a', type: 'text' }] })
    const started = await send(name, lines({ user_id: user.id, a: 'x' }))
    await project.admin.delete(`/collections/${name}?confirm=${name}`)
    expect(await run(started.data.operation_id)).toMatchObject({
      status: 'failed',
      failed_reason: 'The import was deleted with its collection, or has expired after 7 days.',
    })
    const other = await define({ columns: [{ name: 'a', type: 'text' }] })
    await project.sql(
      `insert into app.collection_imports (collection_id, created_at)
       select id, internal.now() - n * interval '1 day' from app.collections, unnest(array[6, 8]) n where name = $1`,
      [other],
    )
    // another import takes nothing from one that still waits for its worker
    await imported(other, lines({ user_id: user.id, a: 'x' }))
    expect(await staged()).toBe(2)
    await project.as('app_worker', {}, 'select api.tenant_purge()')
    expect(await staged()).toBe(1)
  })
})
