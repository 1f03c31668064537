import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { createShop } from '#test/support/stores.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
harness.setTime('2026-12-01T12:00:00Z')
const { project, item, price, offer, someone, balance, bought, coins, held, made, shown, proof } =
  await createShop(harness)
const { admin } = project
await made('/currencies', { code: 'GEMS', name: 'Gems' })

const refund = (id: string, body: object = {}, headers = {}) => admin.post(`/purchases/${id}/refund`, body, headers)
const packOf = (...credits: [string, number][]) => ({
  item_type: 'currency_pack',
  use_effect: { currencies: credits.map(([currency_code, amount]) => ({ currency_code, amount })) },
})

describe('a refund', () => {
  test('gives the price, the stock and the limit back, takes the items, and tells it', async () => {
    const at = await offer({ quantity: 2, limit_per_user: 2, stock_total: 2 })
    const { id, user } = await someone(20)
    const { purchase } = await bought(user, at, { quantity: 2, expected_price: 20 })
    harness.advance(60)
    const answer = await refund(purchase.id, { reason: 'a mistake' })
    expect(answer.status, answer.text).toBe(200)
    const refunded = { ...purchase, status: 'refunded', refunded_at: '2026-12-01T12:01:00.000Z' }
    expect(answer.data).toEqual({ purchase: refunded, balances: { COINS: 20 } })
    expect([await balance(id), await held(user)]).toEqual([20, {}])
    expect((await user.get('/client/purchases')).data).toEqual([refunded])
    expect((await user.get('/client/currencies/COINS/transactions')).data[0]).toMatchObject({
      amount: 20,
      source_type: 'refund',
    })
    const [movement] = (await admin.get(`/inventory/ledger?user_id=${id}`)).data
    expect(movement).toMatchObject({ kind: 'revoked', change: -4, source_type: 'refund', source_id: purchase.id })
    expect((await shown(user, at.store.key)).offers[0]).toMatchObject({ remaining_for_user: 2, remaining_stock: 2 })
    const told = await project.sql(
      `select properties from app.engagement_events where app_user_id = $1 and event_name = 'svc.store.refunded'`,
      [id],
    )
    expect(told).toMatchObject([
      {
        properties: {
          purchase_id: purchase.id,
          store_key: at.store.key,
          offer_key: at.offer.key,
          total_price: 20,
          quantity: 2,
        },
      },
    ])
    const [row] = await project.sql(`select action, changes from app.audit_events where target_id = $1`, [purchase.id])
    expect(row).toMatchObject({
      action: 'stores.refund',
      changes: { status: ['completed', 'refunded'], reason: [null, 'a mistake'] },
    })
    await proof()
    harness.setTime('2026-12-01T12:00:00Z')
  })

  test('takes from the stack of the purchase, then from those that expire soonest', async () => {
    const at = await offer({ quantity: 3 }, {}, { duration_seconds: 7200 })
    const { id, user } = await someone(10)
    const give = async (quantity: number, expires_at?: string) => {
      const body = { app_user_id: id, catalog_item_key: at.item.key, quantity, expires_at, reason: 'test' }
      return (await admin.post('/inventory/grant', body)).data[0].id
    }
    const soon = await give(2, '2026-12-01T12:30:00Z')
    const late = await give(2, '2027-01-01T00:00:00Z')
    const { purchase, granted } = await bought(user, at)
    // both of those that expire first, and one of the purchase
    await user.post(`/client/inventory/${at.item.key}/consume`, { quantity: 3 })
    expect(await give(2, '2026-12-01T12:30:00Z')).toBe(soon)
    expect((await refund(purchase.id)).status).toBe(200)
    const left = Object.fromEntries(
      (await admin.get(`/inventory?user_id=${id}`)).data.map((stack: any) => [stack.id, stack.quantity]),
    )
    expect(left).toEqual({ [soon]: 1, [late]: 2, [granted[0].id]: 0 })
  })

  test('of what is used up is refused with all that is missing; force takes what is there', async () => {
    const [potion, scroll, pack] = [await item(), await item(), await item(packOf(['GEMS', 50]))]
    const contents = [potion, scroll, pack].map(({ key }) => ({ content_item_key: key, quantity: 2 }))
    const at = await offer({}, {}, { item_type: 'bundle', bundle_contents: contents })
    const { id, user } = await someone(10)
    const { purchase } = await bought(user, at)
    await user.post(`/client/inventory/${potion.key}/consume`, { quantity: 1 })
    await coins(id, -70, 'GEMS')
    expectRefusal(await refund(purchase.id), 409, 'ITEMS_CONSUMED', {
      missing: [
        { key: potion.key, quantity: 1 },
        { key: 'GEMS', quantity: 70 },
      ],
    })
    expect([await balance(id), await balance(id, 'GEMS')]).toEqual([0, 30])
    expect(await held(user)).toEqual({ [potion.key]: 1, [scroll.key]: 2 })
    expect((await refund(purchase.id, { force: true })).data.balances).toEqual({ COINS: 10, GEMS: 0 })
    expect(await held(user)).toEqual({})
    await proof()
  })

  test('of a pack takes its currencies back; with revoke_items false all stays with the user', async () => {
    const at = await offer({}, {}, packOf(['GEMS', 5], ['COINS', 3]))
    const { id, user } = await someone(20)
    const [one, two] = [await bought(user, at), await bought(user, at)]
    expect((await refund(one.purchase.id)).data.balances).toEqual({ COINS: 13, GEMS: 5 })
    expect((await refund(two.purchase.id, { revoke_items: false })).data.balances).toEqual({ COINS: 23 })
    expect(await balance(id, 'GEMS')).toBe(5)
    await proof()
  })

  test('of a free purchase moves no currency', async () => {
    const at = await offer({ prices: [price(0)] })
    const { user } = await someone()
    const { purchase } = await bought(user, at, { expected_price: 0 })
    expect((await refund(purchase.id)).data).toMatchObject({ purchase: { status: 'refunded' }, balances: {} })
  })

  test('gives credits that expire back with the lifetime that they had left', async () => {
    await made('/currencies', { code: 'BRIEF', name: 'Brief', expiry_days: 1 })
    const at = await offer({ prices: [{ currency_code: 'BRIEF', price: 10 }] })
    const { id, user, server } = await someone()
    await coins(id, 10, 'BRIEF')
    const { purchase } = await bought(user, at, { currency_code: 'BRIEF' })
    expect((await refund(purchase.id)).data.balances).toEqual({ BRIEF: 10 })
    harness.advance(86_400)
    expect((await server.get('/client/currencies')).data.find(({ code }: any) => code === 'BRIEF').balance).toBe(0)
    harness.setTime('2026-12-01T12:00:00Z')
  })

  test('pays once, whatever an administrator has reversed', async () => {
    const at = await offer({}, {}, packOf(['GEMS', 5]))
    const { id, user } = await someone(10)
    const { purchase } = await bought(user, at)
    const rows = await project.sql(
      `select id from app.currency_transactions where app_user_id = $1 and source_type = 'purchase'`,
      [id],
    )
    expect(rows).toHaveLength(2)
    for (const row of rows)
      expect((await admin.post(`/currencies/transactions/${row.id}/reverse`, {})).status).toBe(201)
    expect((await refund(purchase.id)).data.balances).toEqual({})
    expect([await balance(id), await balance(id, 'GEMS')]).toEqual([10, 0])
    await coins(id, 10, 'GEMS')
    const again = await bought(user, at)
    await refund(again.purchase.id)
    for (const row of await project.sql(
      `select id from app.currency_transactions where app_user_id = $1 and source_type = 'purchase' and source_id = $2`,
      [id, again.purchase.id],
    ))
      expectRefusal(await admin.post(`/currencies/transactions/${row.id}/reverse`, {}), 409, 'ALREADY_REVERSED')
  })

  test('that would exceed the most of a currency is refused, and nothing happens', async () => {
    await made('/currencies', { code: 'SMALL', name: 'Small', max_balance: 10 })
    const at = await offer({ prices: [{ currency_code: 'SMALL', price: 10 }] })
    const { id, user } = await someone()
    await coins(id, 10, 'SMALL')
    const { purchase } = await bought(user, at, { currency_code: 'SMALL' })
    await coins(id, 1, 'SMALL')
    expectRefusal(await refund(purchase.id), 409, 'BALANCE_LIMIT_EXCEEDED')
    expect(await held(user)).toEqual({ [at.item.key]: 1 })
    expect((await user.get(`/client/purchases/${purchase.id}`)).data.status).toBe('completed')
  })
})

test('twenty refunds at once refund once; with the same Idempotency-Key they answer as the first', async () => {
  const at = await offer()
  const { id, user } = await someone(20)
  const [one, two] = [await bought(user, at), await bought(user, at)]
  const behind = (call: () => ReturnType<typeof refund>) =>
    meetingBehind(project.database, `select from app.users where id = '${id}' for update`, () =>
      Array.from({ length: 20 }, call),
    )
  const plain = await behind(() => refund(one.purchase.id))
  expect(plain.filter(({ status }) => status === 200)).toHaveLength(1)
  for (const answer of plain.filter(({ status }) => status !== 200)) expectRefusal(answer, 409, 'ALREADY_REFUNDED')
  const key = { 'idempotency-key': 'k' }
  const keyed = await behind(() => refund(two.purchase.id, {}, key))
  expect(new Set(keyed.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  expect(keyed.filter(({ headers }) => headers.get('idempotency-replayed') === 'true')).toHaveLength(19)
  expectRefusal(await refund(two.purchase.id, { force: true }, key), 409, 'IDEMPOTENCY_CONFLICT')
  expect(await balance(id)).toBe(20)
  expect((await admin.get(`/stores/${at.store.key}`)).data.offers[0].stock_sold).toBe(0)
  await proof()
})

test('a refund needs a purchase and valid fields', async () => {
  expectRefusal(await refund(randomUUID()), 404, 'NOT_FOUND')
  expectRefusal(await refund('nonsense'), 400, 'INVALID_ID')
  expectInvalid(await refund(randomUUID(), { force: 1 }), 'force')
  expectInvalid(await refund(randomUUID(), { revoke_items: 'no' }), 'revoke_items')
  expectInvalid(await refund(randomUUID(), { reason: 'x'.repeat(201) }), 'reason')
})

test('purchases are listed newest first, by user, store, offer and status', async () => {
  const [a, b] = [await offer(), await offer()]
  const [one, two] = [await someone(100), await someone(100)]
  const ids = []
  for (const [who, at] of [
    [one, a],
    [two, a],
    [one, b],
  ] as const)
    ids.unshift((await bought(who.user, at)).purchase.id)
  await refund(ids[0])
  const list = async (query: string) => {
    const answer = await admin.get(`/purchases?${query}`)
    expect(answer.status, answer.text).toBe(200)
    return answer.data.map(({ id }: any) => id)
  }
  expect(await list('limit=3')).toEqual(ids)
  const first = await admin.get('/purchases?limit=2')
  expect(first.body.pagination).toMatchObject({ total: null, next_cursor: expect.any(String) })
  expect(await list(`limit=1&cursor=${first.body.pagination.next_cursor}`)).toEqual([ids[2]])
  expect(await list(`user_id=${one.id}`)).toEqual([ids[0], ids[2]])
  expect(await list(`store_id=${a.store.id}`)).toEqual([ids[1], ids[2]])
  expect(await list(`offer_id=${b.offer.id}`)).toEqual([ids[0]])
  expect(await list(`user_id=${one.id}&status=refunded`)).toEqual([ids[0]])
  expect(await list(`user_id=${one.id}&status=completed`)).toEqual([ids[2]])
  expect((await admin.get(`/purchases?user_id=${two.id}&include=user`)).data[0].user.id).toBe(two.id)
  for (const query of ['status=gone', 'user_id=x', 'cursor=x', 'limit=x'])
    expectRefusal(await admin.get(`/purchases?${query}`), 400, 'INVALID_INPUT')
})

test('stats count purchases with refunded ones, and buyers, units and revenue without', async () => {
  const at = await offer({ prices: [price(10), { currency_code: 'GEMS', price: 1 }] })
  const second = await made(`/stores/${at.store.key}/offers`, {
    key: 'a',
    catalog_item_id: at.item.id,
    prices: [price(1)],
    sort_order: -1,
  })
  const stats = async () => (await admin.get(`/stores/${at.store.key}/stats`)).data
  const none = { purchases: 0, units: 0, revenue: {} }
  expect(await stats()).toEqual({
    ...{ purchases: 0, refunded: 0, buyers: 0, units: 0, revenue: {} },
    offers: [
      { offer_id: second.id, key: 'a', ...none },
      { offer_id: at.offer.id, key: at.offer.key, ...none },
    ],
  })
  const [one, two] = [await someone(100), await someone(100)]
  await coins(one.id, 5, 'GEMS')
  await bought(one.user, at, { quantity: 3, expected_price: 30 })
  await bought(one.user, at, { currency_code: 'GEMS', expected_price: 1 })
  await bought(one.user, { store: at.store, offer: second }, { expected_price: 1 })
  const { purchase } = await bought(two.user, at)
  await refund(purchase.id)
  expect(await stats()).toEqual({
    ...{ purchases: 4, refunded: 1, buyers: 1, units: 5, revenue: { COINS: 31, GEMS: 1 } },
    offers: [
      { offer_id: second.id, key: 'a', purchases: 1, units: 1, revenue: { COINS: 1 } },
      { offer_id: at.offer.id, key: at.offer.key, purchases: 3, units: 4, revenue: { COINS: 30, GEMS: 1 } },
    ],
  })
  expectRefusal(await admin.get('/stores/nothing/stats'), 404, 'NOT_FOUND')
})
