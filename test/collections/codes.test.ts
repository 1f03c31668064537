import { randomUUID } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { define, group, inGroup } from '#test/support/collection_rows.ts'
import { type Client, startHarness } from '#test/support/harness.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

/** Every route of rows with what every one of them can do wrong, as an app and as the developer. */
const harness = await startHarness()
const project = await harness.project()
const [user, member] = [await project.user(), await project.user()]
const columns = [
  { name: 'a', type: 'text', nullable: false, unique: true },
  { name: 'v', type: 'vector', dimensions: 2 },
]
await define(project, { name: 'own', columns })
await define(project, {
  name: 'shared',
  owner_scope: 'group',
  read_policy: 'member:admin',
  write_policy: 'member:admin',
  columns,
})
const home = await group(project, [
  [user, 'owner'],
  [member, 'member'],
])
const open = await group(project, [[user, 'owner']], true)
const id = randomUUID()

type Call = { name: string; method: string; path: string; good: object; column: object; write: boolean; row?: boolean }
const calls: readonly Call[] = [
  { name: 'insert', method: 'POST', path: '', good: { a: 'x' }, column: { nope: 1 }, write: true },
  {
    name: 'batch',
    method: 'POST',
    path: '/batch',
    good: { rows: [{ a: 'x' }] },
    column: { rows: [{ nope: 1 }] },
    write: true,
  },
  { name: 'find', method: 'POST', path: '/find', good: {}, column: { select: ['nope'] }, write: false },
  {
    name: 'aggregate',
    method: 'POST',
    path: '/aggregate',
    good: { aggregates: [{ fn: 'count', as: 'n' }] },
    column: { aggregates: [{ fn: 'count', column: 'nope', as: 'n' }] },
    write: false,
  },
  {
    name: 'nearest',
    method: 'POST',
    path: '/find-nearest',
    good: { column: 'v', vector: [1, 2] },
    column: { column: 'nope', vector: [1] },
    write: false,
  },
  { name: 'patch', method: 'PATCH', path: `/${id}`, good: { a: 'y' }, column: { nope: 1 }, write: false, row: true },
]
const client = (name: string) => (collection: string, call: Call) => ({
  name,
  url: `/client/collections/${collection}${call.path}`,
})
const admin = (collection: string, call: Call) => {
  const rows = call.row || call.name === 'insert' || call.name === 'batch' ? '/rows' : ''
  return { name: 'admin', url: `/collections/${collection}${rows}${call.path}` }
}
const sides = [
  { side: 'app', who: user as Client, at: client('app') },
  { side: 'developer', who: project.admin, at: admin },
]

describe.each(sides)('as $side', ({ side, who, at }) => {
  test.each(calls)('$name', async (call) => {
    const own = at('own', call).url
    const shared = at('shared', call).url
    const send = (url: string, body: unknown, headers = {}) => who.request(call.method, url, body, headers)
    expect(await send(own, '{')).toMatchObject({ status: 400, error: { code: 'INVALID_JSON' } })
    expect(await send(own, '[]')).toMatchObject({ status: 400, error: { code: 'INVALID_BODY' } })
    expect(await send(own, call.column)).toMatchObject({ status: 400, error: { code: 'INVALID_COLUMN' } })
    expect(await send(at('nothing', call).url, call.good)).toMatchObject({
      status: 404,
      error: { code: 'COLLECTION_NOT_FOUND' },
    })
    for (const group of ['x', randomUUID()]) {
      expect(await send(shared, call.good, { 'x-group-context': group })).toMatchObject({
        status: 403,
        error: { code: 'NOT_A_GROUP_MEMBER' },
      })
    }
    if (side === 'app') {
      expect(await inGroup(member, home).request(call.method, shared, call.good)).toMatchObject({
        status: 403,
        error: { code: 'GROUP_ROLE_FORBIDDEN' },
      })
    }
    if (call.row) expect(await send(own, call.good)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    if (!call.write) return
    const whose = side === 'app' ? {} : { user_id: user.id }
    const wrap = (row: object) => (call.name === 'batch' ? { rows: [{ ...row, ...whose }] } : { ...row, ...whose })
    expect(await send(shared, wrap({ a: 'x' }))).toMatchObject({
      status: 400,
      error: { code: 'GROUP_CONTEXT_REQUIRED' },
    })
    expect(await send(shared, wrap({ a: 'x' }), { 'x-group-context': open })).toMatchObject({
      status: 400,
      error: { code: 'GROUP_NOT_PRIVATE' },
    })
    expect(await send(own, wrap({ a: null }))).toMatchObject({ status: 400, error: { code: 'NOT_NULL_VIOLATION' } })
    expect((await send(own, wrap({ a: `once ${side} ${call.name}` }))).status).toBe(201)
    expect(await send(own, wrap({ a: `once ${side} ${call.name}` }))).toMatchObject({
      status: 409,
      error: { code: 'CONFLICT' },
    })
    if (call.name === 'batch') {
      const many = { rows: Array.from({ length: 501 }, () => ({ a: 'x' })) }
      expect(await send(own, many)).toMatchObject({ status: 400, error: { code: 'BATCH_TOO_LARGE' } })
      return
    }
    expect(await send(`${own}?on_conflict=update`, wrap({ a: 'x' }))).toMatchObject({
      status: 400,
      error: { code: 'INVALID_CONFLICT_TARGET' },
    })
    expect(await send(`${own}?on_conflict=never`, wrap({ a: 'x' }))).toMatchObject({
      status: 400,
      error: { code: 'INVALID_BODY' },
    })
    const key = { 'idempotency-key': randomUUID() }
    const made = await send(own, wrap({ a: `key ${side}` }), key)
    expect((await send(own, wrap({ a: `key ${side}` }), key)).status).toBe(200)
    const row = `${own}/${made.data.id}`
    expect(await who.patch(row, { a: null })).toMatchObject({ status: 400, error: { code: 'NOT_NULL_VIOLATION' } })
    expect(await who.patch(row, { a: 'z' }, { 'if-match': '"0"' })).toMatchObject({
      status: 409,
      error: { code: 'CONFLICT' },
    })
    expect((await who.patch(row, { a: `patched ${side}` })).status).toBe(200)
    expect((await who.get(row)).status).toBe(200)
    expect((await who.get(row, { 'if-none-match': '*' })).status).toBe(304)
    expect((await who.delete(row)).status).toBe(200)
    expect(await send(own, wrap({ a: 'again' }), key)).toMatchObject({
      status: 409,
      error: { code: 'IDEMPOTENCY_REPLAY_GONE' },
    })
  })

  test('reading and deleting by id, restoring', async () => {
    const base = side === 'app' ? '/client/collections' : '/collections'
    const rows = side === 'app' ? '' : '/rows'
    const of = (collection: string, row: string) => `${base}/${collection}${rows}/${row}`
    for (const method of side === 'app' ? ['GET', 'DELETE', 'RESTORE'] : ['GET', 'DELETE']) {
      const send = (who: Client, url: string, headers = {}) =>
        method === 'RESTORE'
          ? who.request('POST', `${url}/restore`, undefined, headers)
          : who.request(method, url, undefined, headers)
      expect(await send(who, of('own', id))).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
      expect(await send(who, of('nothing', id))).toMatchObject({ status: 404, error: { code: 'COLLECTION_NOT_FOUND' } })
      expect(await send(who, of('shared', id), { 'x-group-context': randomUUID() })).toMatchObject({
        status: 403,
        error: { code: 'NOT_A_GROUP_MEMBER' },
      })
      expect(await send(who, of('own', 'x'))).toMatchObject(
        side === 'app' ? { status: 404 } : { status: 400, error: { code: 'INVALID_ID' } },
      )
      if (side === 'app') {
        expect(await send(inGroup(member, home), of('shared', id))).toMatchObject({
          status: 403,
          error: { code: 'GROUP_ROLE_FORBIDDEN' },
        })
      }
    }
    if (side === 'developer') {
      expect((await who.patch(of('own', 'x'), {})).error?.code).toBe('INVALID_ID')
      expect((await who.delete(`${of('own', id)}?hard=maybe`)).error?.code).toBe('INVALID_BODY')
    }
  })
})

test('what is referred to keeps its row from the developer too', async () => {
  await define(project, {
    name: 'holders',
    columns: [{ name: 'own_id', type: 'uuid', references: { collection: 'own', on_delete: 'restrict' } }],
  })
  const held = (await user.post('/client/collections/own', { a: 'held' })).data
  await user.post('/client/collections/holders', { own_id: held.id })
  for (const how of ['', '?hard=true']) {
    expect(await project.admin.delete(`/collections/own/rows/${held.id}${how}`), how).toMatchObject({
      status: 409,
      error: { code: 'CONFLICT' },
    })
  }
  const [held_by] = (await user.post('/client/collections/holders/find')).data
  expect(held_by.own_id).toBe(held.id)
  await user.delete(`/client/collections/holders/${held_by.id}`)
  expect((await project.admin.delete(`/collections/own/rows/${held.id}?hard=true`)).status).toBe(200)
})

test('a transaction under the codes of groups', async () => {
  const run = (who: Client, data: object = { a: 'x' }) =>
    who.post('/client/collections/transaction', { operations: [{ op: 'insert', collection: 'shared', data }] })
  expect((await run(user)).error?.code).toBe('GROUP_CONTEXT_REQUIRED')
  expect((await run(inGroup(user, open))).error?.code).toBe('GROUP_NOT_PRIVATE')
  expect((await run(inGroup(member, home))).error?.code).toBe('GROUP_ROLE_FORBIDDEN')
  expect((await run(inGroup(user, randomUUID()))).error?.code).toBe('NOT_A_GROUP_MEMBER')
  expect((await run(inGroup(user, home))).status).toBe(200)
})

test('the same without named statements, for poolers that have none', async () => {
  const plain = await startHarness({ env: { DATABASE_STATEMENTS: 'unnamed' } })
  const tenant = await plain.project()
  const someone = await tenant.user()
  const path = await define(tenant, { name: 'plain', columns: [{ name: 'n', type: 'integer' }] })
  for (const n of [1, 2, 3]) expect((await someone.post(path, { n })).data.n).toBe(n)
  expect(
    (
      await someone.post(`${path}/find`, {
        filter: { column: 'n', op: 'in', value: [1, 3] },
        order: [{ column: 'n', direction: 'asc' }],
      })
    ).data.map((row: any) => row.n),
  ).toEqual([1, 3])
  expect((await someone.post(path, { n: 2 ** 40 })).error?.code).toBe('INVALID_BODY')
  await plain.stop()
})
