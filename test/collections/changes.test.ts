import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { define } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'

vi.setConfig({ testTimeout: 180_000 })
const harness = await startHarness()
const project = await harness.project()
const user = await project.user()

test('a definition that changes while queries run gives neither a 500 nor a wrong answer', async () => {
  const path = await define(project, { name: 'moving', columns: [{ name: 'a', type: 'integer' }] })
  const row = (await user.post(path, { a: 1 })).data
  let isOver = false
  const seen: Record<string, number> = {}
  const ask = async () => {
    while (!isOver) {
      for (const answer of [
        await user.post(`${path}/find`, { filter: { column: 'a', op: 'eq', value: 1 } }),
        await user.get(`${path}/${row.id}`),
        await user.patch(`${path}/${row.id}`, { a: 1 }),
        await user.post(path, { a: 2 }),
        await user.post(`${path}/find`, { filter: { column: 'b', op: 'is_null' }, limit: 1 }),
        await user.post(`${path}/batch`, { rows: [{ a: 3 }] }),
      ]) {
        const key = `${answer.status} ${answer.error?.code ?? ''}`
        seen[key] = (seen[key] ?? 0) + 1
        if (answer.status === 200 && answer.data?.id === row.id) {
          // whole as some version of the definition shows it, and its old value in it
          const columns = Object.keys(answer.data).slice(5)
          expect([['a'], ['a', 'b']]).toContainEqual(columns)
          expect(answer.data.a).toBe(1)
        }
      }
    }
  }
  const asking = Promise.all(Array.from({ length: 6 }, ask))
  for (let turn = 0; turn < 8; turn += 1) {
    const added = await project.admin.post('/collections/moving/columns', {
      name: 'b',
      type: turn % 2 ? 'text' : 'integer',
    })
    expect(added.status, added.text).toBe(201)
    // what is asked after a change is answered by it
    expect(Object.keys((await user.get(`${path}/${row.id}`)).data)).toContain('b')
    await new Promise((resolve) => setTimeout(resolve, 230))
    const dropped = await project.admin.delete('/collections/moving/columns/b?confirm=b')
    expect(dropped.status, dropped.text).toBe(200)
    expect(Object.keys((await user.get(`${path}/${row.id}`)).data)).not.toContain('b')
    await new Promise((resolve) => setTimeout(resolve, 230))
  }
  isOver = true
  await asking
  // a column that is gone for the moment is unknown, and nothing else is refused
  expect(
    Object.keys(seen).filter((key) => !/^(200 |201 |400 INVALID_COLUMN|503 TENANT_UNAVAILABLE)$/.test(key)),
  ).toEqual([])
  expect(seen['200 ']).toBeGreaterThan(50)
  expect((seen['503 TENANT_UNAVAILABLE'] ?? 0) / (seen['200 '] ?? 1)).toBeLessThan(0.05)
})

test('a type that grew takes larger values, and policies that change are met at once', async () => {
  const path = await define(project, { name: 'growing', columns: [{ name: 'n', type: 'integer' }] })
  const other = await project.user()
  const row = (await user.post(path, { n: 1 })).data
  expect((await user.post(path, { n: 2 ** 40 })).error?.code).toBe('INVALID_BODY')
  expect((await user.post(`${path}/find`, { filter: { column: 'n', op: 'gt', value: 0 } })).data).toHaveLength(1)
  expect((await project.admin.patch('/collections/growing/columns/n', { type: 'bigint' })).status).toBe(200)
  expect((await user.post(path, { n: 2 ** 40 })).data.n).toBe(2 ** 40)
  expect((await user.post(`${path}/find`, { filter: { column: 'n', op: 'gt', value: 2 ** 39 } })).data).toHaveLength(1)
  expect((await other.get(`${path}/${row.id}`)).status).toBe(404)
  expect((await project.admin.patch('/collections/growing', { read_policy: 'public' })).status).toBe(200)
  expect((await other.get(`${path}/${row.id}`)).status).toBe(200)
  expect((await project.admin.patch('/collections/growing/columns/n', { name: 'm' })).status).toBe(200)
  expect((await user.post(path, { n: 1 })).error?.code).toBe('INVALID_COLUMN')
  expect((await user.get(`${path}/${row.id}`)).data.m).toBe(1)
  expect((await project.admin.delete('/collections/growing?confirm=growing')).status).toBe(200)
  expect((await user.get(`${path}/${row.id}`)).error?.code).toBe('COLLECTION_NOT_FOUND')
  await define(project, { name: 'growing', columns: [{ name: 'other', type: 'text' }] })
  expect((await user.post(path, { other: 'x' })).status).toBe(201)
})

test('what is included changes too: no answer is made of a column that it has lost', async () => {
  const authors = await define(project, { name: 'authors', columns: [{ name: 'nick', type: 'text' }] })
  const books = await define(project, {
    name: 'books',
    columns: [{ name: 'author_id', type: 'uuid', references: { collection: 'authors' } }],
  })
  const pages = await define(project, {
    name: 'pages',
    columns: [
      { name: 'book_id', type: 'uuid', references: { collection: 'books' } },
      { name: 'n', type: 'integer' },
    ],
  })
  const author = (await user.post(authors, { nick: 'x' })).data
  const book = (await user.post(books, { author_id: author.id })).data
  await user.post(pages, { book_id: book.id, n: 1 })
  const down = async () =>
    (await user.post(`${authors}/find`, { include: ['books.pages'] })).data?.[0].books[0].pages[0]
  const up = async () => (await user.post(`${pages}/find`, { include: ['book.author'] })).data?.[0].book.author
  expect([await down(), await up()]).toMatchObject([{ n: 1 }, { nick: 'x' }])
  const changed = async (method: string, path: string, body?: unknown) =>
    expect((await project.admin.request(method, `/collections/${path}`, body)).status).toBeLessThan(300)
  await changed('POST', 'pages/columns', { name: 'body', type: 'text' })
  await changed('POST', 'authors/columns', { name: 'age', type: 'integer' })
  expect([await down(), await up()]).toMatchObject([{ body: null }, { age: null }])
  await changed('PATCH', 'pages/columns/n', { name: 'number' })
  await changed('PATCH', 'authors/columns/nick', { name: 'name' })
  expect([await down(), await up()]).toMatchObject([{ number: 1 }, { name: 'x' }])
  await changed('DELETE', 'pages/columns/body?confirm=body')
  expect(Object.keys(await down())).not.toContain('body')
  await changed('DELETE', 'pages?confirm=pages')
  expect((await user.post(`${authors}/find`, { include: ['books.pages'] })).error?.code).toBe('INVALID_COLUMN')
})

test('a cursor of a column that is another now is none of this query', async () => {
  const path = await define(project, { name: 'turned', columns: [{ name: 'k', type: 'text' }] })
  for (const k of ['a', 'b']) await user.post(path, { k })
  const page = { limit: 1, order: [{ column: 'k' }] }
  const { next_cursor } = (await user.post(`${path}/find`, page)).body
  await project.admin.delete('/collections/turned/columns/k?confirm=k')
  await project.admin.post('/collections/turned/columns', { name: 'k', type: 'integer' })
  expect(await user.post(`${path}/find`, { ...page, cursor: next_cursor })).toMatchObject({
    status: 400,
    error: { code: 'INVALID_BODY', details: { path: 'cursor' } },
  })
})

test('strings that would break out of a statement stay strings, wherever they stand', async () => {
  const path = await define(project, {
    name: 'target',
    columns: [
      { name: 'a', type: 'text' },
      { name: 'tags', type: 'text[]' },
    ],
  })
  const evil = [
    "'; drop table collections.target; --",
    '"; drop table x; --',
    '$1',
    '$$',
    '\\',
    "\\'",
    '%s',
    '%I',
    '%',
    '{}',
    '{"a"}',
    'NULL',
    'null',
    '"',
    ',',
    '){',
    'e\\x',
    '\u2019',
    "' or true --",
    'a\nb',
  ]
  const word = fc.oneof(
    fc.constantFrom(...evil),
    fc.string({ unit: 'grapheme', maxLength: 8 }).filter((text) => !text.includes('\0')),
  )
  await fc.assert(
    fc.asyncProperty(word, word, async (one, two) => {
      const made = await user.post(path, { a: one, tags: [one, two] }, { 'idempotency-key': randomUUID() })
      expect(made.data).toMatchObject({ a: one, tags: [one, two] })
      for (const filter of [
        { column: 'a', op: 'eq', value: one },
        { column: 'a', op: 'in', value: [one, two] },
        { column: 'tags', op: 'contains', value: [two] },
        { column: 'tags', op: 'overlaps', value: [one] },
      ]) {
        const found = await user.post(`${path}/find`, { filter, limit: 1000 })
        expect(
          found.data.map((row: any) => row.id),
          JSON.stringify(filter),
        ).toContain(made.data.id)
      }
      const searched = await user.post(`${path}/find`, { search: { q: one, columns: ['a'] }, limit: 1000 })
      expect(searched.data.map((row: any) => row.id)).toContain(made.data.id)
      expect(
        (await user.patch(`${path}/${made.data.id}`, { $if: { a: one }, $append: { tags: [one] } })).data.tags,
      ).toEqual([one, two, one])
      if (/^[a-z][a-z0-9_]*$/.test(one)) return
      for (const answer of [
        await user.post(path, { [one]: 1 }),
        await user.post(`${path}/batch`, { rows: [{ [one]: 1 }] }),
        await user.patch(`${path}/${made.data.id}`, { $unset: [one] }),
        await user.post(`${path}/find`, { filter: { column: one || 'x y', op: 'is_null' } }),
        await user.post(`${path}/find`, { order: [{ column: one }] }),
        await user.post(`${path}/find`, { select: [one] }),
        await user.post(`${path}/find`, { include: [one] }),
        await user.post(`${path}/aggregate`, { group_by: [one], aggregates: [{ fn: 'count', as: 'n' }] }),
        await user.post(`${path}/find-nearest`, { column: one, vector: [1] }),
      ]) {
        expect(answer.status, answer.text).toBe(400)
        expect(['INVALID_COLUMN', 'INVALID_BODY']).toContain(answer.error?.code)
      }
      expect(
        (await user.get(`/client/collections/${encodeURIComponent(one || 'x')}/count`)).status,
      ).toBeGreaterThanOrEqual(400)
    }),
    { numRuns: sized(12, 40) },
  )
  expect((await user.get(`${path}/count`)).status).toBe(200)
})

// behind a transaction pooler statements have no names
test.skipIf(process.env['DATABASE_STATEMENTS'] === 'unnamed')(
  'a connection keeps a bounded number of statements, whatever callers ask',
  async () => {
    const path = await define(project, {
      name: 'shapes',
      columns: Array.from({ length: 8 }, (_, n) => ({ name: `c${n}`, type: 'integer' })),
    })
    await user.post(path, { c0: 1 })
    for (let shape = 0; shape < 260; shape += 1) {
      const parts = Array.from({ length: 8 }, (_, n) => ({
        column: `c${n}`,
        op: (shape >> n) & 1 ? 'is_null' : 'ne',
        ...((shape >> n) & 1 ? {} : { value: 5 }),
      }))
      expect(
        (await user.post(`${path}/find`, { filter: { or: shape < 256 ? parts : [parts[0]] }, limit: 3 })).status,
      ).toBe(200)
    }
    // the same connection answers: it is the only idle one of this login
    const { running } = harness
    const { projectCache, database } = running.services
    const place = (await projectCache.byProject(project.id))?.place
    if (!place) throw new Error('no place')
    const { row } = await database.execute(place, 'app_user', {}, () => ({
      name: '',
      text: 'select count(*)::text from pg_prepared_statements',
      values: [],
    }))
    expect(Number(row[0])).toBeGreaterThan(20)
    expect(Number(row[0])).toBeLessThan(140)
  },
)
