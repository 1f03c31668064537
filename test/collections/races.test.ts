import { expect, test } from 'vitest'
import { freshName, startCollections } from '#test/support/definitions.ts'
import type { Answer } from '#test/support/harness.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const { project, define, insert } = await startCollections()
const user = await project.user()
const asDeveloper = () =>
  openTransaction(project, 'app_admin', {
    'app.caller': 'developer',
    'app.developer_id': project.developer.id,
    'app.project_id': project.id,
  })

const alone = await define()
const parent = (name: string) => ({ name: 'p', type: 'uuid', references: { collection: name, on_delete: 'cascade' } })
type Asked = { name: string; row: string; target: string; targetRow: string }

test.each<[string, (asked: Asked) => Promise<Answer>, number, string?]>([
  ['an insert', ({ name }) => user.post(`/client/collections/${name}`, { a: 'x' }), 404, 'COLLECTION_NOT_FOUND'],
  [
    'an insert with a key',
    ({ name }) => user.post(`/client/collections/${name}`, { a: 'x' }, { 'idempotency-key': 'k' }),
    404,
    'COLLECTION_NOT_FOUND',
  ],
  [
    'a batch',
    ({ name }) => user.post(`/client/collections/${name}/batch`, { rows: [{ a: 'x' }] }),
    404,
    'COLLECTION_NOT_FOUND',
  ],
  [
    'a patch',
    ({ name, row }) => user.patch(`/client/collections/${name}/${row}`, { a: 'y' }),
    404,
    'COLLECTION_NOT_FOUND',
  ],
  ['a delete', ({ name, row }) => user.delete(`/client/collections/${name}/${row}`), 404, 'COLLECTION_NOT_FOUND'],
  ['a get', ({ name, row }) => user.get(`/client/collections/${name}/${row}`), 404, 'COLLECTION_NOT_FOUND'],
  ['a find', ({ name }) => user.post(`/client/collections/${name}/find`), 404, 'COLLECTION_NOT_FOUND'],
  [
    'a find that includes it',
    ({ name, target }) => user.post(`/client/collections/${target}/find`, { include: [name] }),
    400,
    'INVALID_COLUMN',
  ],
  [
    'an upsert',
    ({ name }) => user.post(`/client/collections/${name}?on_conflict=update&conflict_target=u`, { a: 'x', u: 'one' }),
    404,
    'COLLECTION_NOT_FOUND',
  ],
  [
    'a transaction',
    ({ name, row }) =>
      user.post('/client/collections/transaction', {
        operations: [{ op: 'update', collection: name, id: row, data: { a: 'z' } }],
      }),
    404,
    'COLLECTION_NOT_FOUND',
  ],
  [
    'a transaction that inserts',
    ({ name, target }) =>
      user.post('/client/collections/transaction', {
        operations: [
          { op: 'insert', collection: target, data: {} },
          { op: 'insert', collection: name, data: { a: 'z' } },
        ],
      }),
    404,
    'COLLECTION_NOT_FOUND',
  ],
  [
    'the deletion of a row that it refers to',
    ({ target, targetRow }) => user.delete(`/client/collections/${target}/${targetRow}`),
    200,
  ],
  ['an export', ({ name }) => project.admin.get(`/collections/${name}/export`), 404, 'COLLECTION_NOT_FOUND'],
  [
    'an import',
    ({ name }) =>
      project.admin.request('POST', `/collections/${name}/import`, `{"a":"x","user_id":"${user.id}"}\n`, {
        'content-type': 'application/x-ndjson',
      }),
    404,
    'COLLECTION_NOT_FOUND',
  ],
  ['its definition', ({ name }) => project.admin.get(`/collections/${name}`), 200],
  ['the list of definitions', () => project.admin.get('/collections?limit=100'), 200],
  [
    'a column',
    ({ name }) => project.admin.post(`/collections/${name}/columns`, { name: 'b', type: 'text' }),
    404,
    'COLLECTION_NOT_FOUND',
  ],
  [
    'a reference to it',
    ({ name }) => project.admin.post(`/collections/${alone}/columns`, { ...parent(name), name: freshName('to') }),
    409,
    'CONFLICT',
  ],
  [
    'a collection that refers to it',
    ({ name }) => project.admin.post('/collections', { name: freshName(), columns: [parent(name)] }),
    409,
    'CONFLICT',
  ],
  [
    'an index',
    ({ name }) => project.admin.post(`/collections/${name}/indexes`, { columns: ['a'] }),
    404,
    'COLLECTION_NOT_FOUND',
  ],
  ['the reset of a user', () => project.admin.delete(`/users/${user.id}/reset?sections=collections`), 200],
  ["a user's export", () => project.admin.get(`/users/${user.id}/export`), 200],
])('%s, while the collection is dropped', async (_name, ask, status, code) => {
  const target = await define({ columns: [{ name: 'a', type: 'text' }] })
  const name = await define({
    columns: [{ name: 'a', type: 'text' }, { name: 'u', type: 'text', unique: true }, parent(target)],
  })
  const { id: targetRow } = await insert(target, {}, user)
  const { id: row } = await insert(name, { a: 'x', p: targetRow }, user)
  // known, and so compiled, before
  await user.post(`/client/collections/${target}/find`)
  const dropping = await asDeveloper()
  await dropping.query('select api.collection_drop($1, $1)', [name])
  const asking = ask({ name, row, target, targetRow })
  await untilBlocked(project)
  await dropping.commit()
  const answer = await asking
  expect([answer.status, answer.error?.code], answer.text).toEqual([status, code])
})

test('rows that come in for a collection which was dropped meanwhile are refused', async () => {
  const name = await define({ columns: [{ name: 'a', type: 'text' }] })
  const staging = await asDeveloper()
  const [{ import_begin }] = await staging.query('select (api.collection_import_begin($1)).body as import_begin', [
    name,
  ])
  await staging.commit()
  const { import_id } = JSON.parse(JSON.stringify(import_begin)).data
  expect((await project.admin.delete(`/collections/${name}?confirm=${name}`)).status).toBe(200)
  const late = await asDeveloper()
  await expect(
    late.query(`select api.collection_import_add($1, 0, '[{"line":1,"row":{}}]')`, [import_id]),
  ).rejects.toThrow('was dropped during the import')
  await late.commit()
})

/** An insert locks the table first, then what its key refers to; whoever changes the table has them the other way round. */
test('an insert with a key does not wait for who is about to change the table', async () => {
  const name = await define({ columns: [{ name: 'a', type: 'text' }] })
  const changing = await asDeveloper()
  await changing.query(`select api.collection_update($1, '{"description": "other"}')`, [name])
  const key = { 'idempotency-key': 'k' }
  expect((await user.post(`/client/collections/${name}`, { a: 'x' }, key)).status).toBe(201)
  await changing.query(`select api.collection_update($1, '{"read_policy": "public"}')`, [name])
  await changing.commit()
  expect((await user.post(`/client/collections/${name}`, { a: 'x' }, key)).status).toBe(200)
})

test.each<[string, string, object | undefined, string[]]>([
  ['gets another type', 'PATCH', { type: 'bigint' }, ['id', 'user_id', 'created_at', 'updated_at', 'deleted_at', 'n']],
  ['gets another name', 'PATCH', { name: 'm' }, ['id', 'user_id', 'created_at', 'updated_at', 'deleted_at', 'm']],
  ['is dropped', 'DELETE', undefined, ['id', 'user_id', 'created_at', 'updated_at', 'deleted_at']],
])('an export has every row, while a column %s', async (_name, method, body, columns) => {
  const name = await define({ columns: [{ name: 'n', type: 'integer' }] })
  for (const n of [1, 2]) await insert(name, { n }, user)
  const changing = await asDeveloper()
  if (method === 'PATCH')
    await changing.query(`select api.collection_column_change($1, 'n', $2)`, [name, JSON.stringify(body)])
  else await changing.query(`select api.collection_column_drop($1, 'n', 'n')`, [name])
  const exporting = project.admin.get(`/collections/${name}/export`)
  await untilBlocked(project)
  await changing.commit()
  const { status, text } = await exporting
  expect(status, text).toBe(200)
  const rows = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(rows.map((row) => Object.keys(row).sort())).toEqual([[...columns].sort(), [...columns].sort()])
})

/** Writers, while a column that they do not name changes: they are compiled anew, and all that they say is kept. */
test.each<[string, string, string?]>([
  ['another type', `select api.collection_column_change($1, 'n', '{"type": "bigint"}')`],
  ['other policies', `select api.collection_update($1, '{"read_policy": "public", "write_policy": "authenticated"}')`],
  ['one column less', `select api.collection_column_drop($1, 'n', 'n')`],
  ['an index', `select api.collection_index_add($1, '{"columns": ["a"], "unique": true}')`],
])('what is written while a collection gets %s', async (_name, change) => {
  const name = await define({
    columns: [
      { name: 'n', type: 'integer' },
      { name: 'a', type: 'text' },
      { name: 'k', type: 'text', unique: true },
    ],
  })
  const path = `/client/collections/${name}`
  const rows = []
  for (const a of ['p', 'd', 't', 'r']) rows.push((await insert(name, { a, k: a }, user)).id)
  const [patched, deleted, moved, restored] = rows
  await user.delete(`${path}/${restored}`)
  const changing = await asDeveloper()
  await changing.query(change, [name])
  const asking = Promise.all([
    user.post(path, { a: 'i' }),
    user.post(path, { a: 'j' }, { 'idempotency-key': 'j' }),
    user.post(`${path}/batch`, { rows: [{ a: 'b' }] }),
    user.post(`${path}?on_conflict=update&conflict_target=k`, { a: 'P2', k: 'new' }),
    user.patch(`${path}/${patched}`, { a: 'p2' }),
    user.delete(`${path}/${deleted}`),
    user.post(`${path}/${restored}/restore`),
    user.post('/client/collections/transaction', {
      operations: [
        { op: 'update', collection: name, id: moved, data: { a: 't2' } },
        { op: 'insert', collection: name, data: { a: 'u' } },
      ],
    }),
    user.post(`${path}/find`),
  ])
  await untilBlocked(project)
  await changing.commit()
  const answers = await asking
  expect(answers.map(({ status, text }) => [200, 201].includes(status) || text)).toEqual(answers.map(() => true))
  const kept = await project.sql(`select a from collections.${name} where deleted_at is null order by a collate "C"`)
  expect(kept.map(({ a }) => a)).toEqual(['P2', 'b', 'i', 'j', 'p2', 'r', 't2', 'u'])
})
