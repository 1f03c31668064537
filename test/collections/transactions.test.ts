import { describe, expect, test } from 'vitest'
import { define } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const user = await project.user()
const other = await project.user()
const lists = await define(project, {
  name: 'lists',
  columns: [
    { name: 'title', type: 'text', unique: true },
    { name: 'n', type: 'integer' },
  ],
})
const entries = await define(project, {
  name: 'entries',
  columns: [
    { name: 'list_id', type: 'uuid', nullable: false, references: { collection: 'lists', on_delete: 'cascade' } },
    { name: 'body', type: 'text', max_length: 10 },
  ],
})
const run = (operations: unknown, headers = {}) => user.post('/client/collections/transaction', { operations }, headers)
const counts = async () => [
  (await user.get(`${lists}/count`)).data.count,
  (await user.get(`${entries}/count`)).data.count,
]

describe('a transaction', () => {
  test('writes several rows, and later operations know what earlier ones made', async () => {
    const answer = await run([
      { op: 'insert', collection: 'lists', data: { title: 'groceries', n: 1 }, as: 'list' },
      { op: 'insert', collection: 'entries', data: { list_id: { $ref: 'list.id' }, body: 'milk' }, as: 'milk' },
      { op: 'update', collection: 'lists', id: { $ref: 'list.id' }, $if: { n: 1 }, data: { $inc: { n: 2 } } },
      { op: 'upsert', collection: 'lists', data: { title: 'groceries', n: 9 }, conflict_target: ['title'] },
      { op: 'delete', collection: 'entries', id: { $ref: 'milk.id' } },
    ])
    expect(answer.error).toBeUndefined()
    expect(answer.status).toBe(200)
    const [list, milk, updated, upserted, deleted] = answer.data
    expect(list).toMatchObject({ title: 'groceries', user_id: user.id })
    expect(milk).toMatchObject({ list_id: list.id, body: 'milk' })
    expect(updated).toMatchObject({ id: list.id, n: 3 })
    expect(upserted).toMatchObject({ id: list.id, n: 9 })
    expect(deleted).toEqual({ id: milk.id, deleted: true })
    expect(await counts()).toEqual([1, 0])
  })

  test('is all or nothing: the first failure keeps its status and code, and names its index', async () => {
    const theirs = (await other.post(lists, { title: 'theirs' })).data
    const before = await counts()
    const good = { op: 'insert', collection: 'lists', data: { title: 'good' }, as: 'good' }
    const failures: [object, number, string][] = [
      [{ op: 'insert', collection: 'lists', data: { title: 'good' } }, 409, 'CONFLICT'],
      [{ op: 'insert', collection: 'lists', data: { nope: 1 } }, 400, 'INVALID_COLUMN'],
      [{ op: 'insert', collection: 'lists', data: { n: 'x' } }, 400, 'INVALID_BODY'],
      [{ op: 'insert', collection: 'lists', data: { n: 2147483648 } }, 400, 'INVALID_BODY'],
      [{ op: 'insert', collection: 'entries', data: { body: 'x' } }, 400, 'NOT_NULL_VIOLATION'],
      [
        { op: 'insert', collection: 'entries', data: { list_id: { $ref: 'good.id' }, body: 'x'.repeat(11) } },
        400,
        'INVALID_BODY',
      ],
      [{ op: 'insert', collection: 'entries', data: { list_id: theirs.id } }, 400, 'INVALID_BODY'],
      [{ op: 'insert', collection: 'entries', data: { list_id: { $ref: 'nobody.id' } } }, 400, 'INVALID_BODY'],
      [{ op: 'insert', collection: 'nothing', data: {} }, 404, 'COLLECTION_NOT_FOUND'],
      [{ op: 'update', collection: 'lists', id: theirs.id, data: { n: 1 } }, 404, 'NOT_FOUND'],
      [{ op: 'update', collection: 'lists', id: 'x', data: { n: 1 } }, 404, 'NOT_FOUND'],
      [{ op: 'delete', collection: 'lists', id: theirs.id }, 404, 'NOT_FOUND'],
      [{ op: 'update', collection: 'lists', id: { $ref: 'good.id' }, $if: { n: 7 }, data: { n: 1 } }, 409, 'CONFLICT'],
      [
        { op: 'upsert', collection: 'lists', data: { title: 'theirs', n: 1 }, conflict_target: ['title'] },
        409,
        'CONFLICT',
      ],
      [{ op: 'upsert', collection: 'lists', data: { title: 'x' } }, 400, 'INVALID_CONFLICT_TARGET'],
    ]
    for (const [bad, status, code] of failures) {
      const answer = await run([good, bad, { op: 'delete', collection: 'lists', id: 'never reached' }])
      expect(answer, JSON.stringify(bad)).toMatchObject({ status, error: { code, details: { index: 1 } } })
    }
    expect(await counts()).toEqual(before)
    expect((await other.get(`${lists}/${theirs.id}`)).data).toEqual(theirs)
  })

  test('deletes only what is as expected; $if has nothing to say of an insert', async () => {
    const [row] = (await run([{ op: 'insert', collection: 'lists', data: { title: 'expected', n: 1 } }])).data
    const mismatch = await run([{ op: 'delete', collection: 'lists', id: row.id, $if: { n: 2 } }])
    expect(mismatch).toMatchObject({
      status: 409,
      error: { code: 'CONFLICT', details: { index: 0, current: { id: row.id, n: 1 } } },
    })
    expect((await user.get(`${lists}/${row.id}`)).status).toBe(200)
    for (const operation of [
      { op: 'insert', data: { title: 'unexpected' } },
      { op: 'upsert', data: { title: 'unexpected' }, conflict_target: ['title'] },
    ]) {
      expect(await run([{ ...operation, collection: 'lists', $if: { n: 1 } }])).toMatchObject({
        status: 400,
        error: { code: 'INVALID_BODY', details: { index: 0, path: '$if' } },
      })
    }
    expect((await user.get(`${lists}/count?title=unexpected`)).data.count).toBe(0)
    expect((await run([{ op: 'delete', collection: 'lists', id: row.id, $if: { n: 1 } }])).data).toEqual([
      { id: row.id, deleted: true },
    ])
  })

  test('an idempotency_key in the data is one row, in one transaction and in two', async () => {
    const insert = { op: 'insert', collection: 'entries', data: { body: 'once', idempotency_key: 'tx' } }
    const list = { op: 'insert', collection: 'lists', data: { title: 'of keys' }, as: 'list' }
    const first = await run([list, { ...insert, data: { ...insert.data, list_id: { $ref: 'list.id' } } }])
    const made = first.data[1]
    const data = { ...insert.data, list_id: made.list_id }
    const again = await run([
      { ...insert, data },
      { ...insert, data },
    ])
    expect(again.data?.map((row: any) => row.id)).toEqual([made.id, made.id])
    await user.delete(`${entries}/${made.id}`)
    expect(await run([{ ...insert, data }])).toMatchObject({
      status: 409,
      error: { code: 'IDEMPOTENCY_REPLAY_GONE', details: { index: 0 } },
    })
  })

  test('has 1 to 100 operations of known kinds', async () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, n) => ({
        op: 'insert',
        collection: 'lists',
        data: { title: `many ${count} ${n}` },
      }))
    expect((await run(many(100))).data).toHaveLength(100)
    expect(await run(many(101))).toMatchObject({ status: 400, error: { code: 'BATCH_TOO_LARGE' } })
    for (const operations of [[], 'x', [1], [{ op: 'drop', collection: 'lists' }], [{ op: 'insert' }], undefined]) {
      expect(await run(operations), JSON.stringify(operations)).toMatchObject({
        status: 400,
        error: { code: 'INVALID_BODY' },
      })
    }
    expect((await user.request('POST', '/client/collections/transaction', '{')).error?.code).toBe('INVALID_JSON')
  })

  test('that meet crosswise are made again, and never shown a deadlock', async () => {
    const [a, b] = (
      await user.post(`${lists}/batch`, {
        rows: [
          { title: 'da', n: 0 },
          { title: 'db', n: 0 },
        ],
      })
    ).data
    const bump = (ids: string[]) =>
      run(ids.map((id) => ({ op: 'update', collection: 'lists', id, data: { $inc: { n: 1 } } })))
    const answers = await Promise.all(Array.from({ length: 16 }, (_, n) => bump(n % 2 ? [a.id, b.id] : [b.id, a.id])))
    expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 200))
    expect((await user.get(`${lists}/${a.id}`)).data.n).toBe(16)
    expect((await user.get(`${lists}/${b.id}`)).data.n).toBe(16)
  })

  test('that write the same unique values crosswise wait for each other', async () => {
    const upsert = (titles: string[], n: number) =>
      run(
        titles.map((title) => ({ op: 'upsert', collection: 'lists', data: { title, n }, conflict_target: ['title'] })),
      )
    for (const round of [1, 2]) {
      const [one, two] = [`one ${round}`, `two ${round}`]
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, n) => upsert(n % 2 ? [one, two] : [two, one], n)),
      )
      expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 200))
      const inserts = await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
          run(
            (n % 2 ? ['x', 'y'] : ['y', 'x']).map((letter) => ({
              op: 'insert',
              collection: 'lists',
              data: { title: `${letter} ${round}` },
            })),
          ),
        ),
      )
      expect(inserts.map((answer) => answer.status).sort()).toEqual([200, ...Array.from({ length: 15 }, () => 409)])
    }
  })
})
