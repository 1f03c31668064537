import { afterEach, describe, expect, test } from 'vitest'
import { define } from '#test/support/collection_rows.ts'
import { wordsFor } from '#test/support/definitions.ts'
import { startHarness } from '#test/support/harness.ts'
import { runOperationJob } from '#test/support/jobs.ts'

const harness = await startHarness()
const project = await harness.project()
const { tried } = wordsFor(project)
const user = await project.user()
const limit = 1_048_576
const columns = [
  { name: 'a', type: 'text' },
  { name: 'b', type: 'text' },
  { name: 'list', type: 'text[]' },
  { name: 'meta', type: 'jsonb' },
  { name: 'n', type: 'numeric' },
  { name: 'slug', type: 'text', unique: true },
]
const path = await define(project, { name: 'pages', columns })
/** The bytes of the own columns' JSON, as Postgres writes it. */
const bytesOf = async (id: string) =>
  (
    await project.sql(
      'select internal.collection_row_bytes(row_to_json(p)) as n from collections.pages p where id = $1',
      [id],
    )
  )[0].n
const refusal = { code: 'INVALID_BODY', details: { reason: 'a row has at most 1 MB', limit } }
const letters = (bytes: number) => 'x'.repeat(bytes)
const make = async (row: object) => {
  const made = await user.post(path, row)
  expect(made.error).toBeUndefined()
  return made.data as { id: string; updated_at: string }
}
afterEach(() => project.sql('delete from collections.pages'))

describe('a row has at most 1 MB', () => {
  // {"a":"..."} has eight bytes beside its letters, ,"b":"..." seven
  const half = 524_288

  test('whatever a change adds to it: at the limit, and one byte over', async () => {
    const { id } = await make({ a: letters(half) })
    const over = await user.patch(`${path}/${id}`, { b: letters(limit - half - 14) })
    expect([over.status, over.error]).toMatchObject([400, { ...refusal, details: { size: limit + 1 } }])
    expect(await project.sql('select b from collections.pages')).toEqual([{ b: null }])
    expect((await user.patch(`${path}/${id}`, { b: letters(limit - half - 15) })).status).toBe(200)
    expect(Number(await bytesOf(id))).toBe(limit)
    // it can be read, deleted and brought back, and given up whole, and not grow
    expect((await user.patch(`${path}/${id}`, { n: 1 })).error).toMatchObject(refusal)
    expect((await user.delete(`${path}/${id}`)).status).toBe(200)
    expect((await user.post(`${path}/${id}/restore`)).status).toBe(200)
    expect((await user.patch(`${path}/${id}`, { a: 'short', n: 1 })).status).toBe(200)
  })

  test('letters count as they are written, and values as they are, however well they are compressed', async () => {
    const { id } = await make({ a: 'ä'.repeat(half / 2), b: '"'.repeat(200_000) })
    expect(Number(await bytesOf(id))).toBe(half + 400_000 + 15)
    // {"a":...} is stored in a few kilobytes
    const [{ stored }] = await project.sql('select pg_column_size(p.*) as stored from collections.pages p')
    expect(stored).toBeLessThan(20_000)
    expect((await user.patch(`${path}/${id}`, { meta: [letters(limit - half - 400_000)] })).error).toMatchObject(
      refusal,
    )
    expect((await user.patch(`${path}/${id}`, { a: null, meta: [letters(limit - half)] })).status).toBe(200)
  })

  test('$append, $inc and values of an upsert', async () => {
    const { id } = await make({ list: [letters(half)], slug: 's' })
    const appended = (bytes: number) => user.patch(`${path}/${id}`, { $append: { list: [letters(bytes)] } })
    // {"list":["...","..."],"slug":"s"}
    const room = limit - half - '{"list":["",""],"slug":"s"}'.length
    expect((await appended(room + 1)).error).toMatchObject({ ...refusal, details: { size: limit + 1 } })
    expect((await appended(room)).status).toBe(200)
    expect(Number(await bytesOf(id))).toBe(limit)
    // "n":1 and a comma more
    expect((await user.patch(`${path}/${id}`, { $inc: { n: 1 } })).error).toMatchObject(refusal)
    expect((await user.patch(`${path}/${id}`, { $append: { list: ['x'] } })).error).toMatchObject(refusal)
    expect((await user.patch(`${path}/${id}`, { $remove: { list: [letters(room)] } })).status).toBe(200)
    const upsert = (bytes: number) =>
      user.post(`${path}?on_conflict=update&conflict_target=slug`, { slug: 's', b: letters(bytes) })
    // {"b":"...","list":["..."],"slug":"s"}
    const left = limit - half - '{"b":"","list":[""],"slug":"s"}'.length
    expect((await upsert(left + 1)).error).toMatchObject(refusal)
    expect(await upsert(left)).toMatchObject({ status: 200, data: { id } })
  })

  test('a transaction, whole: nothing of it stays', async () => {
    const { id } = await make({ a: letters(half) })
    const run = (bytes: number) =>
      user.post('/client/collections/transaction', {
        operations: [
          { op: 'insert', collection: 'pages', data: { slug: 'first' } },
          { op: 'update', collection: 'pages', id, data: { $append: { list: [letters(bytes)] } } },
        ],
      })
    const room = limit - half - '{"a":"","list":[""]}'.length
    expect((await run(room + 1)).error).toMatchObject({ ...refusal, details: { index: 1, size: limit + 1 } })
    expect(await project.sql('select slug from collections.pages')).toEqual([{ slug: null }])
    expect((await run(room)).status).toBe(200)
  })

  test('what is sent whole: JSON that is longer when it is written out', async () => {
    // [1,2] is written as [1, 2]
    const numbers = (count: number) => Array.from({ length: count }, () => 1)
    const room = limit - '{"meta":[1]}'.length
    expect((await user.post(path, { meta: numbers(1 + Math.floor(room / 3) + 1) })).error).toMatchObject(refusal)
    expect((await user.post(path, { meta: numbers(1 + Math.floor(room / 3)) })).status).toBe(201)
    const batch = (count: number) => user.post(`${path}/batch`, { rows: [{ n: 1 }, { meta: numbers(count) }] })
    expect((await batch(1 + Math.floor(room / 3) + 1)).error).toMatchObject(refusal)
    expect((await batch(1 + Math.floor(room / 3))).status).toBe(201)
    expect(await project.sql('select count(*)::int as n from collections.pages')).toEqual([{ n: 3 }])
  })

  test('numbers of a few letters that would be written out with thousands of digits', async () => {
    expect((await user.post(path, '{"meta":[1e999,-1E+999,1.5e-999]}')).status).toBe(201)
    for (const number of ['1e1000', '-1E+131071', '1.5e-0001000'])
      expect((await user.post(path, `{"meta":[${number}]}`)).error?.code).toBe('INVALID_JSON')
    expect((await user.post(path, '{"n":1e1000}')).error?.code).toBe('INVALID_JSON')
    expect((await user.post(path, '{"n":"1e1000"}')).error).toMatchObject({
      code: 'INVALID_BODY',
      details: { column: 'n' },
    })
    expect((await user.post(path, { a: 'a text of 1e1000', b: '\\"1e5000' })).status).toBe(201)
  })

  test('an import lists the lines that are too long, and stores the others', async () => {
    const lines = [{ a: 'x' }, { meta: Array.from({ length: 400_000 }, () => 1) }, { a: 'y' }]
    const started = await project.admin.request(
      'POST',
      '/collections/pages/import?format=ndjson',
      lines.map((line) => JSON.stringify({ user_id: user.id, ...line })).join('\n'),
      { 'content-type': 'application/x-ndjson' },
    )
    expect(started.status).toBe(202)
    const done = await runOperationJob(harness, project, 'collections__import', started.data.operation_id)
    expect(done).toMatchObject({
      result: {
        inserted: 2,
        failed: 1,
        errors: [{ line: 2, code: 'INVALID_BODY', message: 'The row would have more than 1 MB.' }],
      },
    })
  })

  test('also for whoever writes in SQL, and for what a trigger of theirs adds', async () => {
    const long = `insert into collections.pages (a, b) values (repeat('x', $1), repeat('x', $2))`
    expect(await tried('app_user', user.id, long, [half, limit - half - 14])).toBe('INVALID_BODY')
    expect(await tried('app_user', user.id, long, [half, limit - half - 15])).toEqual([])
    await project.sql(`
      create schema dba;
      create function dba.longer() returns trigger language plpgsql as $$ begin new.b := repeat('y', 1048576); return new; end $$;
      create trigger zz_longer before insert on collections.pages for each row execute function dba.longer()`)
    expect((await user.post(path, { a: letters(10) })).error).toMatchObject(refusal)
    await project.sql('drop trigger zz_longer on collections.pages; drop schema dba cascade')
  })
})

describe('a row that was too long before the rule came', () => {
  const old = async () => {
    await project.sql(
      'drop trigger collection_size on collections.pages; drop trigger collection_size_changed on collections.pages',
    )
    const { id } = await make({ a: letters(1_000_000), slug: 'old' })
    await project.sql(`update collections.pages set b = repeat('x', 1000000)`)
    await project.sql(`update app.collections set generator = 1 where name = 'pages'`)
    await project.sql('select internal.collections_regenerate(internal.collection_generator())')
    return id
  }

  test('may shrink, be deleted and change its owner, but not grow', async () => {
    const id = await old()
    expect((await user.patch(`${path}/${id}`, { n: 1 })).error).toMatchObject(refusal)
    expect((await user.patch(`${path}/${id}`, { slug: 'new' })).status).toBe(200)
    expect((await user.patch(`${path}/${id}`, { a: letters(999_999) })).status).toBe(200)
    const heir = await project.user()
    await project.sql('update collections.pages set user_id = $1', [heir.id])
    expect((await heir.delete(`${path}/${id}`)).status).toBe(200)
    expect((await user.post(path, { a: letters(500_000) })).status).toBe(201)
  })
})

test('a filter of as many elements as a body holds is refused by name, in the time that a request has', async () => {
  const many = Array(400_000).fill(1)
  for (const value of [many, [many], { a: many }]) {
    const { status, error } = await user.post(`${path}/find`, { filter: { column: 'meta', op: 'contains', value } })
    expect([status, error?.code]).toEqual([400, 'INVALID_BODY'])
  }
})
