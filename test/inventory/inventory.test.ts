import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
await project.admin.post('/currencies', { code: 'GOLD', name: 'Gold' })
afterEach(() => harness.setTime(null))

let count = 0
const item = async (more: Record<string, unknown> = {}): Promise<{ id: string; key: string }> => {
  count += 1
  const body = { key: `item_${count}`, name: `Item ${count}`, item_type: 'consumable', ...more }
  const answer = await project.admin.post('/catalog', body)
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const someone = async () => {
  const user = await project.user()
  return { id: user.id, user, server: project.onBehalfOf(user.id) }
}
const act = (
  verb: 'grant' | 'revoke',
  userId: string,
  key: string,
  more: object = {},
  headers?: Record<string, string>,
) =>
  project.admin.post(
    `/inventory/${verb}`,
    { app_user_id: userId, catalog_item_key: key, reason: 'test', ...more },
    headers,
  )
const give = async (userId: string, key: string, quantity: number, more: object = {}) => {
  const answer = await act('grant', userId, key, { quantity, ...more })
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const consume = (who: Client, name: string, quantity?: unknown, headers?: Record<string, string>) =>
  who.post(`/client/inventory/${name}/consume`, { quantity }, headers)
const held = async (who: Client) =>
  Object.fromEntries((await who.get('/client/inventory')).data.map((stack: any) => [stack.item.key, stack.quantity]))
/** Every stack is the sum of its movements. */
const proof = async (userId: string) =>
  expect(
    await project.sql(
      `select s.id from app.inventory_stacks s
        where s.app_user_id = $1 and s.quantity <> (select sum(l.change) from app.inventory_ledger_rows l where l.stack_id = s.id)`,
      [userId],
    ),
  ).toEqual([])

describe('a grant', () => {
  test('adds to the stack with the same expiry, emits an event and writes the ledger', async () => {
    const thing = await item({ icon_url: 'https://x/i.png' })
    const { id, user } = await someone()
    const [stack] = await give(id, thing.key, 3)
    expect(stack).toEqual({
      id: expect.any(String),
      app_user_id: id,
      catalog_item_id: thing.id,
      item: { key: thing.key, name: expect.any(String), item_type: 'consumable', icon_url: 'https://x/i.png' },
      quantity: 3,
      expires_at: null,
      metadata: {},
      source_type: 'admin',
      source_id: expect.any(String),
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    expect((await act('grant', id, thing.key)).data[0]).toMatchObject({ id: stack.id, quantity: 4 })
    await give(id, thing.key, 1, { expires_at: '2099-01-01T00:00:00Z' })
    expect((await user.get('/client/inventory')).body).toMatchObject({ total: 2, limit: 50, offset: 0 })
    for (const name of [stack.id, thing.key, thing.id])
      expect((await user.get(`/client/inventory/${name}`)).data.item.key).toBe(thing.key)
    const rows = (await project.admin.get(`/inventory/ledger?user_id=${id}`)).data
    expect(rows.map((row: any) => [row.kind, row.change, row.quantity_after])).toEqual([
      ['granted', 1, 1],
      ['granted', 1, 4],
      ['granted', 3, 3],
    ])
    const emittedEvents = await project.sql(
      `select from app.engagement_events where app_user_id = $1 and event_name = 'svc.inventory.granted'`,
      [id],
    )
    expect(emittedEvents).toHaveLength(3)
    await proof(id)
  })

  test('of a durable is given once, also when ten give it at once', async () => {
    const thing = await item({ item_type: 'durable' })
    const { id, user } = await someone()
    const answers = await Promise.all(Array.from({ length: 10 }, () => act('grant', id, thing.key)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 201))
      expectRefusal(answer, 409, 'MAX_OWNED_REACHED', { catalog_item_key: thing.key, max_owned: 1 })
    expectRefusal(await consume(user, thing.key), 409, 'NOT_CONSUMABLE')
    await proof(id)
  })

  test('of a bundle gives what is in it, all or nothing', async () => {
    const [a, b] = [await item(), await item({ max_owned: 4 })]
    const contents = [
      { content_item_key: a.key, quantity: 2 },
      { content_item_key: b.key, quantity: 1 },
    ]
    const inner = await item({ item_type: 'bundle', bundle_contents: contents })
    const outer = await item({ item_type: 'bundle', bundle_contents: [{ content_item_key: inner.key, quantity: 2 }] })
    const { id, user } = await someone()
    expect(await give(id, outer.key, 2)).toHaveLength(2)
    expect(await held(user)).toEqual({ [a.key]: 8, [b.key]: 4 })
    expectRefusal(await act('grant', id, inner.key), 409, 'MAX_OWNED_REACHED')
    expect(await held(user)).toEqual({ [a.key]: 8, [b.key]: 4 })
    await proof(id)
  })

  test('of a pack of currency gives its effect, and nothing to keep, not even itself', async () => {
    const pack = await item({ item_type: 'currency_pack' })
    const use_effect = { currencies: [{ currency_code: 'GOLD', amount: 5 }], items: [{ catalog_item_key: pack.key }] }
    await project.admin.patch(`/catalog/${pack.key}`, { use_effect })
    const { id, user } = await someone()
    expect(await give(id, pack.key, 3)).toEqual([])
    expect((await user.get('/client/currencies')).data[0].balance).toBe(15)
    expect(await held(user)).toEqual({})
    expectRefusal(await act('grant', id, pack.key, { quantity: 101 }), 400, 'VALIDATION_ERROR', { field: 'quantity' })
  })

  test('lasts as it says, or as long as the item does; expired ones are hidden and cannot be used', async () => {
    harness.setTime(new Date())
    const thing = await item({ duration_seconds: 3600, max_owned: 2 })
    const { id, server } = await someone()
    await give(id, thing.key, 1, { expires_at: new Date(harness.now().getTime() + 60_000).toISOString() })
    await give(id, thing.key, 1)
    expectRefusal(await act('grant', id, thing.key), 409, 'MAX_OWNED_REACHED')
    harness.advance(60)
    expect(await held(server)).toEqual({ [thing.key]: 1 })
    await give(id, thing.key, 1)
    expect((await consume(server, thing.key, 2)).data.quantity).toBe(0)
    expectRefusal(await consume(server, thing.key), 409, 'INSUFFICIENT_QUANTITY', { quantity: 0, required: 1 })
    expectRefusal(await server.get(`/client/inventory/${thing.key}`), 404, 'ITEM_NOT_FOUND')
    expect((await project.admin.get(`/inventory?user_id=${id}`)).body.total).toBe(3)
  })

  test('by the app itself is refused; by a server key it is given', async () => {
    const thing = await item({ max_owned: 3 })
    const { id, user, server } = await someone()
    const other = await someone()
    const body = { catalog_item_key: thing.key, quantity: 2 }
    expectRefusal(await user.post('/client/inventory/grant', body), 403, 'SERVER_KEY_REQUIRED')
    expect(await held(user)).toEqual({})
    const key = { 'idempotency-key': 'g' }
    expect((await server.post('/client/inventory/grant', { ...body, app_user_id: other.id }, key)).status).toBe(201)
    expect([await held(user), await held(other.user)]).toEqual([{ [thing.key]: 2 }, {}])
    expect((await server.post('/client/inventory/grant', { ...body, app_user_id: other.id }, key)).status).toBe(200)
    expectRefusal(await server.post('/client/inventory/grant', body, key), 409, 'IDEMPOTENCY_CONFLICT')
    expectRefusal(await server.post('/client/inventory/grant', body), 409, 'MAX_OWNED_REACHED')
    expectRefusal(await server.post('/client/inventory/grant', { catalog_item_key: 'no' }), 404, 'ITEM_NOT_FOUND')
    expectRefusal(await server.post('/client/inventory/grant', { quantity: 1 }), 400, 'VALIDATION_ERROR')
    expectRefusal(await server.post('/client/inventory/grant', '[]'), 400, 'INVALID_BODY')
    await proof(id)
  })

  test('needs a user, an item and a quantity of 1 to 10,000, and 10,000 stacks are the most', async () => {
    const thing = await item()
    const { id, server } = await someone()
    for (const verb of ['grant', 'revoke'] as const) {
      expectRefusal(await act(verb, randomUUID(), thing.key), 404, 'NOT_FOUND')
      expectRefusal(await act(verb, id, 'nothing'), 404, 'ITEM_NOT_FOUND')
      for (const quantity of [0, -1, 1.5, 10_001, '1'])
        expectRefusal(await act(verb, id, thing.key, { quantity }), 400, 'VALIDATION_ERROR', { field: 'quantity' })
      expectRefusal(await act(verb, id, thing.key, { reason: '' }), 400, 'VALIDATION_ERROR', { field: 'reason' })
      expectRefusal(await project.admin.post(`/inventory/${verb}`, '[]'), 400, 'INVALID_BODY')
    }
    expectRefusal(await act('grant', id, thing.key, { expires_at: '2020-01-01T00:00:00Z' }), 400, 'VALIDATION_ERROR')
    await project.sql(
      `insert into app.inventory_stacks (app_user_id, catalog_item_id, quantity, expires_at, source_type, source_id)
       select $1, $2, 1, internal.now() + n * interval '1 day', 'x', 'x' from generate_series(1, 9999) n`,
      [id, thing.id],
    )
    await give(id, thing.key, 10_000)
    await give(id, thing.key, 1)
    const [one, two] = [await item(), await item()]
    for (const other of [one, two])
      expectRefusal(await act('grant', id, other.key), 409, 'LIMIT_REACHED', { limit: 10_000 })
    expectRefusal(await server.post('/client/inventory/grant', { catalog_item_key: one.key }), 409, 'LIMIT_REACHED')
  })
})

describe('a consumption', () => {
  test('takes what ends soonest, grants the effect once for each, and is replayed under its key', async () => {
    const use_effect = { currencies: [{ currency_code: 'GOLD', amount: 10 }] }
    const thing = await item({ use_effect })
    const { id, user } = await someone()
    await give(id, thing.key, 2)
    const [soon] = await give(id, thing.key, 2, { expires_at: '2099-01-01T00:00:00Z' })
    const key = { 'idempotency-key': 'c' }
    const answer = await consume(user, thing.key, 3, key)
    expect([answer.status, answer.data]).toEqual([
      200,
      { item: expect.objectContaining({ key: thing.key }), quantity: 1, effect: use_effect },
    ])
    expect((await consume(user, thing.key, 3, key)).headers.get('idempotency-replayed')).toBe('true')
    expectRefusal(await consume(user, thing.key, 2, key), 409, 'IDEMPOTENCY_CONFLICT')
    expect((await user.get('/client/currencies')).data[0].balance).toBe(30)
    expectRefusal(await user.get(`/client/inventory/${soon.id}`), 404, 'ITEM_NOT_FOUND')
    expectRefusal(await consume(user, thing.key, 2), 409, 'INSUFFICIENT_QUANTITY', { quantity: 1, required: 2 })
    expectRefusal(await consume(user, 'nothing'), 404, 'ITEM_NOT_FOUND')
    for (const quantity of [0, 101, 1.5, '1'])
      expectRefusal(await consume(user, thing.key, quantity), 400, 'VALIDATION_ERROR')
    expectRefusal(await user.post(`/client/inventory/${thing.key}/consume`, '[]'), 400, 'INVALID_BODY')
    await proof(id)
  })

  test('by fifty at once uses up exactly what there is', async () => {
    const thing = await item({ use_effect: { currencies: [{ currency_code: 'GOLD', amount: 1 }] } })
    const { id, server } = await someone()
    await give(id, thing.key, 20)
    const answers = await Promise.all(Array.from({ length: 50 }, () => consume(server, thing.key)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(20)
    expect((await server.get('/client/currencies')).data[0].balance).toBe(20)
    await proof(id)
  })

  test("of another user's stack is refused", async () => {
    const thing = await item()
    const [one, two] = [await someone(), await someone()]
    const [stack] = await give(one.id, thing.key, 1)
    expectRefusal(await consume(two.user, stack.id), 404, 'ITEM_NOT_FOUND')
    expectRefusal(await consume(two.user, thing.key), 409, 'INSUFFICIENT_QUANTITY')
    expectRefusal(await two.user.get(`/client/inventory/${stack.id}`), 404, 'ITEM_NOT_FOUND')
    expectRefusal(
      await two.user.patch(`/client/inventory/${stack.id}`, { metadata: { user: { a: 1 } } }),
      404,
      'ITEM_NOT_FOUND',
    )
    expect((await consume(one.user, stack.id)).status).toBe(200)
  })
})

test('a revocation takes as much as there is, once under its key', async () => {
  const thing = await item()
  const { id, user } = await someone()
  await give(id, thing.key, 5)
  const key = { 'idempotency-key': 'r' }
  for (const _ of [1, 2])
    expect((await act('revoke', id, thing.key, { quantity: 2 }, key)).data).toEqual({
      catalog_item_key: thing.key,
      quantity: 3,
    })
  expectRefusal(await act('revoke', id, thing.key, { quantity: 1 }, key), 409, 'IDEMPOTENCY_CONFLICT')
  expectRefusal(await act('revoke', id, thing.key, { quantity: 4 }), 409, 'INSUFFICIENT_QUANTITY')
  expectRefusal(await act('grant', id, thing.key, {}, { 'idempotency-key': '\u00e9' }), 400, 'VALIDATION_ERROR')
  const granted = await act('grant', id, thing.key, {}, { 'idempotency-key': 'g' })
  expect((await act('grant', id, thing.key, {}, { 'idempotency-key': 'g' })).body).toEqual(granted.body)
  expectRefusal(
    await act('grant', id, thing.key, { quantity: 2 }, { 'idempotency-key': 'g' }),
    409,
    'IDEMPOTENCY_CONFLICT',
  )
  expect(await held(user)).toEqual({ [thing.key]: 4 })
  const audited = await project.sql(`select action from app.audit_events where target_id = $1 order by position`, [id])
  expect(audited.map(({ action }) => action)).toEqual(['inventory.grant', 'inventory.revoke', 'inventory.grant'])
  expectRefusal(await project.admin.delete(`/catalog/${thing.key}`), 409, 'ITEM_IN_USE')
})

test("marks of the user's own lie under metadata.user, and nothing else is honoured", async () => {
  const thing = await item()
  const { id, user } = await someone()
  const [stack] = await give(id, thing.key, 1)
  const path = `/client/inventory/${stack.id}`
  const mark = (metadata: unknown, more = {}) => user.patch(path, { metadata, ...more })
  expect((await mark({ user: { equipped: true, slot: 1 }, power: 9 }, { quantity: 99 })).data).toMatchObject({
    metadata: { user: { equipped: true, slot: 1 } },
    quantity: 1,
  })
  expect((await mark({ user: { slot: null } })).data.metadata).toEqual({ user: { equipped: true } })
  expect((await user.patch(path, {})).data.metadata).toEqual({ user: { equipped: true } })
  expect((await mark({ user: { set: { ring: null }, equipped: null } })).data.metadata).toEqual({
    user: { set: { ring: null } },
  })
  expectRefusal(await mark({ user: { note: 'x'.repeat(4097) } }), 400, 'VALIDATION_ERROR', { field: 'metadata' })
  expectRefusal(await mark(5), 400, 'VALIDATION_ERROR')
  expectRefusal(await user.patch(path, '[]'), 400, 'INVALID_BODY')
})

test('lists are filtered and paged', async () => {
  const category = `c ${randomUUID()}`
  const [a, b] = [await item({ category }), await item({ item_type: 'durable' })]
  const { id, user } = await someone()
  await give(id, a.key, 1)
  await give(id, b.key, 1)
  const keys = async (client: Client, path: string) => {
    const answer = await client.get(path)
    expect(answer.status, answer.text).toBe(200)
    return answer.data.map((row: any) => row.item?.key ?? row.catalog_item_key)
  }
  expect(await keys(user, '/client/inventory')).toEqual([b.key, a.key])
  expect(await keys(user, `/client/inventory?category=${category}`)).toEqual([a.key])
  expect(await keys(user, '/client/inventory?item_type=durable')).toEqual([b.key])
  expect(await keys(user, '/client/inventory?limit=1&offset=1')).toEqual([a.key])
  expect(await keys(project.admin, `/inventory?user_id=${id}&item_key=${a.key}`)).toEqual([a.key])
  expect(await keys(project.admin, `/inventory?user_id=${id}&item_key=nothing`)).toEqual([])
  const first = await project.admin.get(`/inventory/ledger?user_id=${id}&limit=1`)
  expect(
    await keys(project.admin, `/inventory/ledger?user_id=${id}&limit=1&cursor=${first.body.pagination.next_cursor}`),
  ).toEqual([a.key])
  for (const bad of ['/inventory?user_id=x', '/inventory/ledger?cursor=x', '/inventory?limit=0'])
    expectRefusal(await project.admin.get(bad), 400, 'INVALID_INPUT')
  expectRefusal(await user.get('/client/inventory?item_type=x'), 400, 'INVALID_INPUT')
})

test('rewards give items once for their source; what cannot be given is recorded', async () => {
  const [a, full] = [await item(), await item({ item_type: 'durable' })]
  const { id, user } = await someone()
  await give(id, full.key, 1)
  const parts = [
    { catalog_item_key: a.key, quantity: 2 },
    { catalog_item_key: full.key, quantity: 1 },
    { catalog_item_key: 'nothing' },
    { catalog_item_key: a.key, quantity: -1 },
    5,
  ]
  const reward = async () =>
    (
      await project.sql(`select internal.grant_reward($1, $2, 'test', '1') as outcome`, [
        id,
        JSON.stringify({ items: parts }),
      ])
    )[0].outcome
  const outcome = await reward()
  expect(outcome.items.items).toHaveLength(5)
  expect(outcome.items.items.filter((part: any) => part.given > 0)).toEqual([{ catalog_item_key: a.key, given: 2 }])
  expect(await reward()).toBeNull()
  expect(await held(user)).toEqual({ [a.key]: 2, [full.key]: 1 })
  await proof(id)
})

test('a merge adds stacks as far as there is room', async () => {
  const [a, durable] = [await item(), await item({ item_type: 'durable' })]
  const [me, guest] = [await someone(), await someone()]
  for (const who of [me, guest]) {
    await give(who.id, a.key, 2)
    await give(who.id, durable.key, 1)
  }
  const merged = await me.user.post('/client/auth/merge', { from_session_token: guest.user.sessionToken })
  expect([merged.status, merged.data?.merged.inventory]).toEqual([200, 1])
  expect(await held(me.user)).toEqual({ [a.key]: 4, [durable.key]: 1 })
  await proof(me.id)
})

test('items are moved by nobody but the functions that check their caller', async () => {
  const thing = await item()
  const { id } = await someone()
  const other = await someone()
  await give(id, thing.key, 1)
  const claims = { 'app.user_id': id, 'app.caller': 'user' }
  for (const attack of [
    `update app.inventory_stacks set quantity = 99`,
    `delete from app.inventory_ledger_rows`,
    `select internal.reward__items('${id}', '[]', 'x', 'x')`,
    `select internal.inventory_give('${id}', i, 1, null, 'x', 'x', 'x') from app.catalog_items i`,
  ])
    for (const role of ['app_user', 'app_admin', 'app_server', 'app_worker'] as const)
      await expect(project.as(role, claims, attack)).rejects.toThrow(/permission denied/)
  const tryAs = (caller: string, verb: string, userId: string) =>
    project.as(
      'app_user',
      { 'app.user_id': id, 'app.caller': caller },
      'select internal.inventory_transact($1, $2, $3, 1, null, $4, null, null)',
      [userId, verb, thing.key, 'x'],
    )
  await expect(tryAs('user', 'grant', id)).rejects.toThrow(/Only a server key/)
  await expect(tryAs('user', 'consume', other.id)).rejects.toThrow(/their own items/)
  await expect(tryAs('server_key_user', 'revoke', id)).rejects.toThrow(/their own items/)
  await expect(tryAs('client_key', 'grant', id)).rejects.toThrow(/not moved by/)
  await expect(project.sql('update app.inventory_ledger_rows set change = 9')).rejects.toThrow(/only ever added to/)
})
