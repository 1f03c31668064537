import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { createShop } from '#test/support/stores.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness({ env: { GENERAL_RATE_LIMITS: 'off' } })
harness.setTime('2026-12-01T12:00:00Z')
const { project, item, price, segment, offer, someone, balance, buy, bought, shown, change, coins, held, made, proof } =
  await createShop(harness)
const { admin } = project
await made('/currencies', { code: 'GEMS', name: 'Gems' })
const gems = (amount: number) => ({ currency_code: 'GEMS', price: amount })
const events = (userId: string, name = 'svc.store.purchased') =>
  project.sql('select properties from app.engagement_events where app_user_id = $1 and event_name = $2 order by id', [
    userId,
    name,
  ])

describe('a purchase', () => {
  test('debits, grants and records in one transaction, and tells it', async () => {
    const at = await offer({ quantity: 3, prices: [price(10), gems(1)] })
    const { id, user } = await someone(50)
    const answer = await buy(user, at, { quantity: 2, expected_price: 20 })
    expect(answer.status).toBe(201)
    const { purchase, granted, balances } = answer.data
    expect(purchase).toEqual({
      ...{ id: expect.any(String), app_user_id: id, store_id: at.store.id, offer_id: at.offer.id, quantity: 2 },
      ...{ currency_code: 'COINS', total_price: 20, status: 'completed' },
      granted: [{ catalog_item_id: at.item.id, key: at.item.key, quantity: 6 }],
      ...{ created_at: '2026-12-01T12:00:00.000Z', refunded_at: null },
    })
    expect(granted).toEqual((await user.get('/client/inventory')).data)
    expect(granted).toMatchObject([{ quantity: 6, source_type: 'purchase', source_id: purchase.id }])
    expect(balances).toEqual({ COINS: 30 })
    const [booked] = (await user.get('/client/currencies/COINS/transactions')).data
    expect(booked).toMatchObject({ amount: -20, source_type: 'purchase', source_id: purchase.id, reason: 'purchase' })
    expect(await events(id)).toEqual([
      {
        properties: {
          ...{ purchase_id: purchase.id, store_id: at.store.id, store_key: at.store.key, offer_id: at.offer.id },
          ...{ offer_key: at.offer.key, item_key: at.item.key, quantity: 2, currency_code: 'COINS', total_price: 20 },
        },
      },
    ])
    expect((await user.get('/client/purchases')).body).toEqual({ data: [purchase], total: 1, offset: 0, limit: 50 })
    expect((await user.get(`/client/purchases/${purchase.id}`)).data).toEqual(purchase)
    const { user: other } = await someone()
    expectRefusal(await other.get(`/client/purchases/${purchase.id}`), 404, 'NOT_FOUND')
    expect((await other.get('/client/purchases')).data).toEqual([])
    expect((await admin.get(`/stores/${at.store.key}`)).data.offers[0].stock_sold).toBe(2)
    await proof()
  })

  test('by the key of the offer, in another currency, by a server for its user', async () => {
    const at = await offer({ prices: [price(10), gems(2)] })
    const { id, server } = await someone()
    await coins(id, 5, 'GEMS')
    const path = `/client/stores/${at.store.id}/purchase`
    const body = { offer_key: at.offer.key, currency_code: 'GEMS', expected_price: 2 }
    expect((await server.post(path, body)).data.balances).toEqual({ GEMS: 3 })
    expect(await held(server)).toEqual({ [at.item.key]: 1 })
    expectRefusal(await project.server.post(path, body), 401, 'UNAUTHORIZED')
  })

  test('without a price writes no row of a currency', async () => {
    const at = await offer({ prices: [price(0)] })
    const { id, user } = await someone()
    expect((await bought(user, at, { expected_price: 0 })).balances).toEqual({})
    expect(await project.sql('select from app.currency_transactions where app_user_id = $1', [id])).toEqual([])
    expect(await events(id)).toMatchObject([{ properties: { total_price: 0 } }])
  })

  test('of a bundle gives what is in it, of a pack its currencies, which never expire', async () => {
    await made('/currencies', { code: 'FAST', name: 'Fast', expiry_days: 1 })
    const [potion, ring] = [await item(), await item({ item_type: 'durable' })]
    const effect = {
      xp: 5,
      currencies: [
        { currency_code: 'FAST', amount: 100 },
        { currency_code: 'COINS', amount: 1 },
      ],
    }
    const pack = await item({ item_type: 'currency_pack', use_effect: effect })
    const inner = await item({ item_type: 'bundle', bundle_contents: [{ content_item_key: potion.key, quantity: 2 }] })
    const contents = [
      { content_item_key: inner.key, quantity: 2 },
      { content_item_key: ring.key, quantity: 1 },
      { content_item_key: pack.key, quantity: 2 },
      { content_item_key: potion.key, quantity: 1 },
    ]
    const at = await offer({}, {}, { item_type: 'bundle', bundle_contents: contents })
    const { id, user, server } = await someone(10)
    const answer = await bought(user, at)
    expect(answer.purchase.granted).toEqual([
      { catalog_item_id: potion.id, key: potion.key, quantity: 5 },
      { catalog_item_id: ring.id, key: ring.key, quantity: 1 },
      { catalog_item_id: pack.id, key: pack.key, quantity: 2 },
    ])
    expect(answer.granted.map((stack: any) => [stack.item.key, stack.quantity]).sort()).toEqual(
      [
        [potion.key, 5],
        [ring.key, 1],
      ].sort(),
    )
    expect(answer.balances).toEqual({ COINS: 2, FAST: 200 })
    const credits = await project.sql(
      `select currency_code, amount::int, source_id, expires_at from app.currency_transactions
        where app_user_id = $1 and source_type = 'purchase' and amount > 0 order by 1`,
      [id],
    )
    expect(credits).toEqual([
      { currency_code: 'COINS', amount: 2, source_id: `${answer.purchase.id}:pack`, expires_at: null },
      { currency_code: 'FAST', amount: 200, source_id: answer.purchase.id, expires_at: null },
    ])
    expect((await user.get('/client/xp')).data.total).toBe(10)
    harness.advance(3 * 86_400)
    expect((await server.get('/client/currencies')).data).toContainEqual(
      expect.objectContaining({ code: 'FAST', balance: 200 }),
    )
    harness.setTime('2026-12-01T12:00:00Z')
    await proof()
  })

  test('is not paid with what it brings', async () => {
    const effect = { currencies: [{ currency_code: 'COINS', amount: 100 }] }
    const at = await offer({}, {}, { item_type: 'currency_pack', use_effect: effect })
    const { id, user } = await someone(9)
    expectRefusal(await buy(user, at), 409, 'INSUFFICIENT_FUNDS', { currency_code: 'COINS', balance: 9, required: 10 })
    expect(await balance(id)).toBe(9)
    await coins(id, 1)
    expect((await bought(user, at)).balances).toEqual({ COINS: 100 })
    expect((await user.get('/client/purchases')).data[0].granted).toEqual([
      { catalog_item_id: at.item.id, key: at.item.key, quantity: 1 },
    ])
  })

  test('is refused with nothing left behind where a pack does not fit', async () => {
    await made('/currencies', { code: 'SMALL', name: 'Small', max_balance: 5 })
    const potion = await item()
    const pack = await item({
      item_type: 'currency_pack',
      use_effect: { currencies: [{ currency_code: 'SMALL', amount: 6 }] },
    })
    const contents = [potion, pack].map(({ key }) => ({ content_item_key: key, quantity: 1 }))
    const at = await offer({}, {}, { item_type: 'bundle', bundle_contents: contents })
    const { id, user } = await someone(10)
    expectRefusal(await buy(user, at), 409, 'BALANCE_LIMIT_EXCEEDED', { currency_code: 'SMALL', max_balance: 5 })
    expect([await balance(id), await held(user), await events(id)]).toEqual([10, {}, []])
    expect((await admin.get(`/stores/${at.store.key}`)).data.offers[0].stock_sold).toBe(0)
    await admin.patch('/currencies/SMALL', { is_active: false })
    expectRefusal(await buy(user, at), 409, 'OFFER_NOT_AVAILABLE', { reason: 'item_inactive' })
  })

  test('of a bundle with a pack that cannot be credited is offered to nobody, whatever they would pay', async () => {
    await made('/currencies', { code: 'DEAD', name: 'Dead' })
    const effect = { currencies: [{ currency_code: 'DEAD', amount: 1 }] }
    const pack = await item({ item_type: 'currency_pack', use_effect: effect })
    const contents = [pack, await item()].map(({ key }) => ({ content_item_key: key, quantity: 1 }))
    const inner = await item({ item_type: 'bundle', bundle_contents: contents })
    const at = await offer(
      {},
      {},
      { item_type: 'bundle', bundle_contents: [{ content_item_key: inner.key, quantity: 1 }] },
    )
    const { id, user } = await someone(10)
    expect((await shown(user, at.store.key)).offers).toMatchObject([{ available: true }])
    await admin.patch('/currencies/DEAD', { is_active: false })
    expect((await shown(user, at.store.key)).offers).toEqual([])
    const preview = await admin.get(`/stores/${at.store.key}/preview?user_id=${id}`)
    expect(preview.data.offers).toMatchObject([{ visible: false, reason: 'item_inactive' }])
    // the first refusal in the order of the guide
    const answer = await buy(user, at, { currency_code: 'NONE' })
    expectRefusal(answer, 409, 'OFFER_NOT_AVAILABLE', { reason: 'item_inactive' })
  })

  test('of more than a number can hold is refused by name, and counts as an attempt', async () => {
    const effect = { currencies: [{ currency_code: 'GEMS', amount: 2_000_000_000 }] }
    const pack = await item({ item_type: 'currency_pack', use_effect: effect })
    const ten = (key: string) => [{ content_item_key: key, quantity: 10_000 }]
    const inner = await item({ item_type: 'bundle', bundle_contents: ten(pack.key) })
    const at = await offer({ quantity: 10_000 }, {}, { item_type: 'bundle', bundle_contents: ten(inner.key) })
    const { id, user } = await someone(10)
    expectRefusal(await buy(user, at), 409, 'BALANCE_LIMIT_EXCEEDED', { currency_code: 'GEMS' })
    const [{ count }] = (await project.sql(`select count from app.rate_limits where key = 'store purchases ' || $1`, [
      id,
    ])) as [{ count: number }]
    expect(count).toBe(1)
    expect(await balance(id)).toBe(10)
  })

  test('of more items than JSON holds exactly is never cut off: there is no room', async () => {
    let key = (await item()).key
    for (let level = 0; level < 3; level += 1)
      key = (await item({ item_type: 'bundle', bundle_contents: [{ content_item_key: key, quantity: 10_000 }] })).key
    const at = await made('/stores', { key: 'hoard', name: 'Hoard' })
    const one = await made('/stores/hoard/offers', {
      key: 'one',
      catalog_item_key: key,
      quantity: 10_000,
      prices: [price(0)],
    })
    const { user } = await someone()
    const offers = async () => (await shown(user, 'hoard')).offers
    expect(await offers()).toMatchObject([{ reason: 'max_owned' }])
    expectRefusal(await buy(user, { store: at, offer: one }, { expected_price: 0 }), 409, 'MAX_OWNED_REACHED', {
      max_owned: Number.MAX_SAFE_INTEGER,
    })
    await change({ store: at, offer: one }, { quantity: 5_000 })
    await bought(user, { store: at, offer: one }, { expected_price: 0 })
    expect(await offers()).toMatchObject([{ reason: 'max_owned' }])
  })

  test('of a pack of more than currency is one of at most a hundred', async () => {
    const effect = { badge: 'x', currencies: [{ currency_code: 'GEMS', amount: 1 }] }
    const at = await offer({ quantity: 101 }, {}, { item_type: 'currency_pack', use_effect: effect })
    const { user } = await someone(20)
    expectInvalid(await buy(user, at), 'quantity')
    await change(at, { quantity: 100 })
    expect((await bought(user, at)).balances).toEqual({ COINS: 10, GEMS: 100 })
  })

  test('is seen by XP rules like any event', async () => {
    await made('/xp/rules', { key: 'shopper', name: 'Shopper', event_name: 'svc.store.purchased', amount: 7 })
    const at = await offer()
    const { user } = await someone(10)
    await bought(user, at)
    expect((await user.get('/client/xp')).data.total).toBe(7)
    await admin.delete('/xp/rules/shopper')
  })
})

describe('a purchase is refused', () => {
  test.each([
    ['offer_id', { offer_id: undefined }],
    ['offer_id', { offer_key: 'both' }],
    ['offer_id', { offer_id: 'nonsense' }],
    ['currency_code', { currency_code: undefined }],
    ['expected_price', { expected_price: undefined }],
    ['expected_price', { expected_price: -1 }],
    ['quantity', { quantity: 0 }],
    ['quantity', { quantity: 100 }],
    ['quantity', { quantity: 1.5 }],
  ])('about %s: %j', async (field, more) => {
    const at = await offer()
    expectInvalid(await buy((await someone()).user, at, more), field)
  })

  test('for the first rule that it breaks, in the order of the guide', async () => {
    const ring = await item({ max_owned: 1 })
    const at = await offer(
      {
        catalog_item_id: ring.id,
        limit_per_user: 1,
        stock_total: 1,
        starts_at: '2027-01-01T00:00:00Z',
        prices: [price(10)],
      },
      { is_active: false },
    )
    const { id, user } = await someone()
    await admin.post('/inventory/grant', { app_user_id: id, catalog_item_key: ring.key, reason: 'test' })
    const wrong = { offer_id: randomUUID(), currency_code: 'GEMS', expected_price: 1, quantity: 2 }
    expectRefusal(await buy(user, at, wrong), 404, 'STORE_NOT_FOUND')
    expectRefusal(await buy(user, { ...at, store: { key: 'nothing' } }, wrong), 404, 'STORE_NOT_FOUND')
    await admin.patch(`/stores/${at.store.key}`, { is_active: true })
    expectRefusal(await buy(user, at, wrong), 404, 'OFFER_NOT_FOUND')
    const right = { ...wrong, offer_id: at.offer.id }
    expectRefusal(await buy(user, at, right), 409, 'OFFER_NOT_AVAILABLE', { reason: 'not_started' })
    await change(at, { starts_at: null, prices: [] })
    expectRefusal(await buy(user, at, right), 409, 'OFFER_NOT_AVAILABLE', { reason: 'no_price' })
    await change(at, { prices: [price(10)] })
    expectRefusal(await buy(user, at, right), 400, 'CURRENCY_NOT_ACCEPTED')
    const coin = { ...right, currency_code: 'COINS' }
    expectRefusal(await buy(user, at, coin), 409, 'PRICE_CHANGED', { current_price: 20 })
    const paid = { ...coin, expected_price: 20 }
    expectRefusal(await buy(user, at, paid), 409, 'PURCHASE_LIMIT_REACHED', { remaining: 1 })
    await change(at, { limit_per_user: 2 })
    expectRefusal(await buy(user, at, paid), 409, 'OUT_OF_STOCK', { remaining: 1 })
    await change(at, { stock_total: 2 })
    expectRefusal(await buy(user, at, paid), 409, 'MAX_OWNED_REACHED', { catalog_item_key: ring.key, max_owned: 1 })
    await admin.post('/inventory/revoke', { app_user_id: id, catalog_item_key: ring.key, reason: 'test' })
    expectRefusal(await buy(user, at, { ...paid, quantity: 1, expected_price: 10 }), 409, 'INSUFFICIENT_FUNDS', {
      ...{ currency_code: 'COINS', balance: 0, required: 10 },
    })
    await coins(id, 10)
    await bought(user, at)
  })

  test('for an offer of another store, and one that a segment hides', async () => {
    const [one, two] = [await offer(), await offer()]
    const { id, user } = await someone(10)
    expectRefusal(await buy(user, { store: one.store, offer: two.offer }), 404, 'OFFER_NOT_FOUND')
    const some = await segment()
    await change(one, { segment_id: some.id })
    expectRefusal(await buy(user, one), 409, 'OFFER_NOT_AVAILABLE', { reason: 'segment' })
    await admin.post(`/segments/${some.id}/members`, { user_ids: [id] })
    await bought(user, one)
  })

  test('where a user has 10,000 stacks', async () => {
    const at = await offer()
    const { id, user } = await someone(10)
    await project.sql(
      `insert into app.inventory_stacks (app_user_id, catalog_item_id, quantity, expires_at, source_type, source_id)
       select $1, $2, 0, timestamptz '2020-01-01' + n * interval '1 s', 'x', 'x' from generate_series(1, 10000) n`,
      [id, at.item.id],
    )
    expectRefusal(await buy(user, at), 409, 'LIMIT_REACHED')
    expect(await balance(id)).toBe(10)
  })
})

describe('limits', () => {
  test('of a user count units of UTC days, ISO weeks, months or for ever', async () => {
    const user = await someone()
    const cases = [
      ['day', '2026-12-01T23:59:59.999Z', '2026-12-02T00:00:00Z'],
      ['week', '2026-12-06T23:59:59.999Z', '2026-12-07T00:00:00Z'],
      ['month', '2026-12-31T23:59:59.999Z', '2027-01-01T00:00:00Z'],
    ] as const
    const offers = await Promise.all(
      cases.map(([limit_period]) => offer({ limit_per_user: 3, limit_period, prices: [price(0)] })),
    )
    const total = await offer({ limit_per_user: 3, prices: [price(0)] })
    const buyOf = (at: (typeof offers)[number], quantity: number) =>
      buy(user.server, at, { quantity, expected_price: 0 })
    for (const at of [...offers, total]) expect((await buyOf(at, 2)).status).toBe(201)
    for (const [n, [, last, next]] of cases.entries()) {
      const at = offers[n] as (typeof offers)[number]
      harness.setTime(last)
      expectRefusal(await buyOf(at, 2), 409, 'PURCHASE_LIMIT_REACHED', { remaining: 1 })
      harness.setTime(next)
      expect((await buyOf(at, 3)).status).toBe(201)
      expectRefusal(await buyOf(at, 1), 409, 'PURCHASE_LIMIT_REACHED', { remaining: 0 })
    }
    expectRefusal(await buyOf(total, 2), 409, 'PURCHASE_LIMIT_REACHED', { remaining: 1 })
    harness.setTime('2026-12-01T12:00:00Z')
  })

  test('of a user hold for one who buys twenty times at once', async () => {
    const at = await offer({ limit_per_user: 3, prices: [price(1)] })
    const { id, user } = await someone(20)
    const answers = await meetingBehind(project.database, `select from app.users where id = '${id}' for update`, () =>
      Array.from({ length: 20 }, () => buy(user, at, { expected_price: 1 })),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(3)
    for (const answer of answers.filter(({ status }) => status !== 201))
      expectRefusal(answer, 409, 'PURCHASE_LIMIT_REACHED', { remaining: 0 })
    expect([await balance(id), await held(user)]).toEqual([17, { [at.item.key]: 3 }])
  })

  test('of a user do not count for others, and the stock counts for all', async () => {
    const at = await offer({ limit_per_user: 2, stock_total: 3, prices: [price(0)] })
    const [one, two] = [await someone(), await someone()]
    await bought(one.user, at, { quantity: 2, expected_price: 0 })
    expectRefusal(await buy(two.user, at, { quantity: 2, expected_price: 0 }), 409, 'OUT_OF_STOCK', { remaining: 1 })
    await bought(two.user, at, { expected_price: 0 })
    expectRefusal(await buy(two.user, at, { expected_price: 0 }), 409, 'OUT_OF_STOCK', { remaining: 0 })
    expect((await change(at, { stock_total: 1 })).stock_sold).toBe(3)
    expect((await shown(two.user, at.store.key)).offers[0].remaining_stock).toBe(0)
  })

  test('of a stock that is set later count what was sold before', async () => {
    const at = await offer({ prices: [price(0)] })
    await bought((await someone()).user, at, { quantity: 4, expected_price: 0 })
    await change(at, { stock_total: 5 })
    expectRefusal(await buy((await someone()).user, at, { quantity: 2, expected_price: 0 }), 409, 'OUT_OF_STOCK', {
      remaining: 1,
    })
  })
})

test('of twenty buyers of the last item exactly one has it, and nobody paid for nothing', async () => {
  const at = await offer({ stock_total: 1 })
  const buyers = await Promise.all(Array.from({ length: 20 }, () => someone(10)))
  // all of them have seen that one is left before the first can count it as sold
  const answers = await meetingBehind(project.database, 'lock table app.store_offer_sales in share mode', () =>
    buyers.map(({ user }) => buy(user, at)),
  )
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
  for (const answer of answers.filter(({ status }) => status !== 201))
    expectRefusal(answer, 409, 'OUT_OF_STOCK', { remaining: 0 })
  for (const [n, { id, user }] of buyers.entries()) {
    const has = answers[n]?.status === 201
    expect([await balance(id), await held(user)]).toEqual(has ? [0, { [at.item.key]: 1 }] : [10, {}])
  }
  expect((await admin.get(`/stores/${at.store.key}`)).data.offers[0].stock_sold).toBe(1)
  expect(await project.sql('select from app.purchases where offer_id = $1', [at.offer.id])).toHaveLength(1)
  await proof()
})

test('a store and an offer that are deleted while they are bought are bought, or not found', async () => {
  const at = await offer({ stock_total: 1 })
  const { id, user } = await someone(10)
  const [purchase, removal] = await meetingBehind(
    project.database,
    `select from app.users where id = '${id}' for update; select from app.stores where id = '${at.store.id}' for update`,
    () => [buy(user, at), admin.delete(`/stores/${at.store.key}`)],
  )
  const outcome = [purchase?.status, removal?.status]
  expect([
    [201, 409],
    [404, 200],
  ]).toContainEqual(outcome)
  expect(await balance(id)).toBe(purchase?.status === 201 ? 0 : 10)
})

describe('an Idempotency-Key', () => {
  test('is kept by user and store, answers again whatever has changed, and is not used up by a refusal', async () => {
    const at = await offer({ stock_total: 2 })
    const { id, user, server } = await someone()
    const key = { 'idempotency-key': 'one' }
    expectRefusal(await buy(user, at, {}, key), 409, 'INSUFFICIENT_FUNDS')
    await coins(id, 30)
    const first = await buy(user, at, {}, key)
    expect(first.status).toBe(201)
    await admin.patch(`/stores/${at.store.key}`, { is_active: false })
    harness.setTime('2027-12-01T12:00:00Z')
    const path = `/client/stores/${at.store.id}/purchase`
    const again = await server.post(path, { offer_id: at.offer.id, currency_code: 'COINS', expected_price: 10 }, key)
    expect([again.status, again.headers.get('idempotency-replayed'), again.data]).toEqual([200, 'true', first.data])
    expectRefusal(await buy(server, at, { quantity: 2, expected_price: 20 }, key), 409, 'IDEMPOTENCY_CONFLICT')
    harness.setTime('2026-12-01T12:00:00Z')
    const other = await offer()
    expect((await buy(user, other, {}, key)).status).toBe(201)
    expect((await buy((await someone(10)).user, other, {}, key)).status).toBe(201)
    expect(await balance(id)).toBe(10)
    expectInvalid(await buy(user, other, {}, { 'idempotency-key': 'ü' }), 'Idempotency-Key')
  })

  test('of twenty at once buys once', async () => {
    const at = await offer()
    const { id, user } = await someone(200)
    const answers = await meetingBehind(project.database, `select from app.users where id = '${id}' for update`, () =>
      Array.from({ length: 20 }, () => buy(user, at, {}, { 'idempotency-key': 'x' })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201])
    expect(await balance(id)).toBe(190)
  })
})

test('the 31st purchase in a minute is refused, refused ones count, replays do not, and nothing lifts it', async () => {
  const at = await offer({ prices: [price(1)] })
  const { id, user } = await someone(15)
  const key = { 'idempotency-key': 'again' }
  for (let n = 0; n < 15; n += 1) expect((await buy(user, at, { expected_price: 1 }, n ? {} : key)).status).toBe(201)
  for (let n = 0; n < 14; n += 1) expectRefusal(await buy(user, at, { expected_price: 1 }), 409, 'INSUFFICIENT_FUNDS')
  expectInvalid(await buy(user, at, { quantity: 0 }), 'quantity')
  expectRefusal(await buy(user, { ...at, store: { key: 'nothing' } }), 404, 'STORE_NOT_FOUND')
  for (let n = 0; n < 3; n += 1) expect((await buy(user, at, { expected_price: 1 }, key)).status).toBe(200)
  await coins(id, 5)
  const refused = await buy(user, at, { expected_price: 1 })
  expectRefusal(refused, 429, 'RATE_LIMITED', { retry_after_seconds: 60 })
  expect(refused.headers.get('retry-after')).toBe('60')
  harness.advance(60)
  expect((await buy(user, at, { expected_price: 1 })).status).toBe(201)
  harness.setTime('2026-12-01T12:00:00Z')
})
