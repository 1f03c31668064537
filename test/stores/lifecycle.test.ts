import { expect, test } from 'vitest'
import { dataFor } from '#test/support/graphql.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { exportOf } from '#test/support/promotion.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { createShop } from '#test/support/stores.ts'
import { meetingBehind, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
harness.setTime('2026-12-01T12:00:00Z')
const { project, item, price, offer, someone, balance, buy, bought, shown, held, made, proof } =
  await createShop(harness)
const { admin } = project

test('a merge moves purchases, limits count them, and a refund takes the items that came along', async () => {
  const pack = await item({
    item_type: 'currency_pack',
    use_effect: { currencies: [{ currency_code: 'COINS', amount: 3 }] },
  })
  const potion = await item()
  const contents = [potion, pack].map(({ key }) => ({ content_item_key: key, quantity: 1 }))
  const at = await offer({ limit_per_user: 3 }, {}, { item_type: 'bundle', bundle_contents: contents })
  const [me, guest] = [await someone(10), await someone(10)]
  await bought(me.user, at)
  const { purchase } = await bought(guest.user, at)
  const merged = await me.user.post('/client/auth/merge', { from_session_token: guest.user.sessionToken })
  expect([merged.status, merged.data?.merged.purchases], merged.text).toEqual([200, 1])
  expect((await me.user.get('/client/purchases')).data).toMatchObject([{ id: purchase.id, app_user_id: me.id }, {}])
  expect((await shown(me.user, at.store.key)).offers[0].remaining_for_user).toBe(1)
  const answer = await admin.post(`/purchases/${purchase.id}/refund`, {})
  expect(answer.data?.balances, answer.text).toEqual({ COINS: 13 })
  expect(await held(me.user)).toEqual({ [potion.key]: 1 })
  expect((await shown(me.user, at.store.key)).offers[0].remaining_for_user).toBe(2)
  await proof()
})

test('a refund that waits for a merge refunds the purchase where it has gone', async () => {
  const at = await offer()
  const [me, guest] = [await someone(10), await someone(10)]
  const { purchase } = await bought(guest.user, at)
  const refund = async () => {
    await untilBlocked(project)
    return admin.post(`/purchases/${purchase.id}/refund`, {})
  }
  const locked = `select from app.users where id = '${guest.id}' for update`
  const [merged, refunded] = await meetingBehind(project.database, locked, () => [
    me.user.post('/client/auth/merge', { from_session_token: guest.user.sessionToken }),
    refund(),
  ])
  expect(merged?.status, merged?.text).toBe(200)
  expect(refunded?.data, refunded?.text).toMatchObject({
    purchase: { app_user_id: me.id, status: 'refunded' },
    balances: { COINS: 20 },
  })
  await proof()
})

test('who is deleted or merged while a purchase waits buys nothing, and is told that there is no such user', async () => {
  for (const end of ['delete', 'merge']) {
    const at = await offer({ stock_total: 1 })
    const [me, guest] = [await someone(10), await someone(10)]
    const purchase = async () => {
      await untilBlocked(project)
      return buy(guest.user, at)
    }
    const locked = `select from app.users where id = '${guest.id}' for update`
    const [ended, answer] = await meetingBehind(project.database, locked, () => [
      end === 'delete'
        ? admin.delete(`/users/${guest.id}`)
        : me.user.post('/client/auth/merge', { from_session_token: guest.user.sessionToken }),
      purchase(),
    ])
    expect(ended?.status, ended?.text).toBe(200)
    expectRefusal(answer as NonNullable<typeof answer>, 401, 'UNAUTHORIZED')
    expect((await admin.get(`/stores/${at.store.key}`)).data.offers[0].stock_sold).toBe(0)
  }
  await proof()
})

test('a purchase that is in the export of its user goes with the user; what was sold stays sold', async () => {
  const at = await offer({ stock_total: 1 })
  const { id, user } = await someone(10)
  const { purchase } = await bought(user, at)
  const lines = (await admin.get(`/users/${id}/export`)).text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines.find(({ section }) => section === 'purchases').data).toMatchObject({ id: purchase.id, total_price: 10 })
  expect((await admin.delete(`/users/${id}`)).status).toBe(200)
  await project.drain()
  expect((await admin.get(`/purchases?user_id=${id}`)).data).toEqual([])
  expectRefusal(await buy((await someone(10)).user, at), 409, 'OUT_OF_STOCK')
  expect((await admin.delete(`/stores/${at.store.key}`)).data).toEqual({ deleted: true })
})

test('users read only their own purchases, nothing of stores, and write none of it', async () => {
  const at = await offer()
  const [me, other] = [await someone(20), await someone(20)]
  await bought(me.user, at)
  await bought(other.user, at)
  const claims = { 'app.user_id': me.id, 'app.caller': 'user' }
  expect(await project.as('app_user', claims, 'select distinct app_user_id from app.purchases')).toEqual([
    { app_user_id: me.id },
  ])
  for (const attack of [
    'select from app.stores',
    'select from app.store_offers',
    'select from app.store_offer_prices',
    'select from app.store_offer_sales',
    `update app.purchases set status = 'refunded'`,
    'delete from app.purchases',
    `select internal.store_sales_add('${at.offer.id}', '${me.id}', -1)`,
    `select internal.store_buy('${at.store.id}', '${other.id}', '${at.offer.id}', null, 1, 'COINS', 10)`,
    `select api.purchase_refund('${at.offer.id}')`,
    `select api.store_preview('${at.store.key}', '${other.id}')`,
  ])
    await expect(project.as('app_user', claims, attack), attack).rejects.toThrow(/permission denied/)
  expect(await balance(other.id)).toBe(10)
})

test('developers read stores and purchases by GraphQL', async () => {
  await admin.patch('', { graphql_enabled: true })
  const at = await offer()
  const { id, user } = await someone(10)
  await bought(user, at)
  const data = await dataFor(
    project,
    `{ user(id: "${id}") { purchases { nodes { totalPrice quantity status } } } stores { nodes { key } } }`,
  )
  expect(data.user.purchases.nodes).toEqual([{ totalPrice: '10', quantity: 1, status: 'completed' }])
  expect(data.stores.nodes).toContainEqual({ key: at.store.key })
})

test('a webhook receives what is bought', async () => {
  const hook = await made('/webhooks', { event_name: 'svc.store.purchased', target_url: 'https://1.1.1.1/' })
  const at = await offer()
  const { id, user } = await someone(10)
  const { purchase } = await bought(user, at)
  const rows = await project.sql('select payload from app.webhook_deliveries where webhook_id = $1', [hook.id])
  expect(rows).toHaveLength(1)
  expect(JSON.stringify(rows[0])).toContain(purchase.id)
  expect(JSON.stringify(rows[0])).toContain(id)
})

const planOf = async (from: Project, to: Project, body: object = {}) =>
  (
    await from.admin.post('/promotion/plan', {
      target_project_id: to.id,
      kinds: ['currencies', 'catalog', 'segments', 'stores'],
      ...body,
    })
  ).data
const promote = async (from: Project, to: Project) => {
  const plan = await planOf(from, to)
  expect(plan.blocked).toEqual([])
  const done = await from.admin.post('/promotion/apply', { plan_hash: plan.plan_hash, confirm: plan.plan_hash })
  expect(done.status, done.text).toBe(202)
  return plan.ops.map(({ op, kind, key }: any) => `${op} ${kind} ${key}`)
}

test('promotion copies a store with its offers, by key, without what was sold', async () => {
  const owner = project.developer
  const [from, to] = [await harness.project({ developer: owner }), await harness.project({ developer: owner })]
  const post = async (path: string, body: object) => (await from.admin.post(path, body)).data
  await post('/currencies', { code: 'COINS', name: 'Coins' })
  const thing = await post('/catalog', { key: 'thing', name: 'Thing', item_type: 'consumable' })
  const some = await post('/segments', { key: 'some', name: 'Some', kind: 'static' })
  await post('/stores', { key: 'main', name: 'Main', segment_id: some.id, starts_at: '2026-01-01T00:00:00Z' })
  const full = {
    ...{ key: 'full', catalog_item_key: 'thing', quantity: 2, limit_per_user: 1, limit_period: 'week', stock_total: 5 },
    ...{ starts_at: null, ends_at: '2027-01-01T00:00:00.000Z', badge: 'New', sort_order: 2, is_active: true },
    prices: [price(5, { original_price: 9 })],
  }
  await post('/stores/main/offers', { ...full, segment_id: some.id })
  const plain = await post('/stores/main/offers', { key: 'plain', catalog_item_id: thing.id })
  const stores = async (of: Project) => (await exportOf(of)).definitions.stores
  expect((await stores(from)).main).toMatchObject({
    segment_id: 'some',
    offers: [
      { ...full, segment_id: 'some' },
      { key: 'plain', prices: [] },
    ],
  })
  expect(await promote(from, to)).toEqual([
    'create currencies COINS',
    'create segments some',
    'create catalog thing',
    'create stores main',
  ])
  expect(await stores(to)).toEqual(await stores(from))
  const copied = (await to.admin.get('/stores/main')).data
  expect(copied.segment_id).toBe((await to.admin.get('/segments/some')).data.id)
  expect(copied.offers[1]).toMatchObject({ ...full, stock_sold: 0 })
  expect((await planOf(from, to)).clean).toBe(true)

  // the same again, after changes: an offer that the source has no more goes, one that was bought is switched off
  await from.admin.patch(`/stores/main/offers/${plain.id}`, { badge: 'Plain', prices: [price(3)] })
  const target = createBuyer(to)
  await to.admin.post('/stores/main/offers', { key: 'sold', catalog_item_key: 'thing', prices: [price(0)] })
  await to.admin.post('/stores/main/offers', { key: 'unsold', catalog_item_key: 'thing' })
  await target.buys('sold')
  expect(await promote(from, to)).toEqual(['update stores main'])
  const after = (await to.admin.get('/stores/main')).data.offers
  expect(after.map(({ key, is_active, badge }: any) => [key, is_active, badge])).toEqual([
    ['plain', true, 'Plain'],
    ['sold', false, null],
    ['full', true, 'New'],
  ])
  expect((await planOf(from, to)).clean).toBe(true)

  // another item under a known key is blocked
  await post('/catalog', { key: 'other', name: 'Other', item_type: 'consumable' })
  await from.admin.delete(`/stores/main/offers/${plain.id}`)
  await post('/stores/main/offers', { key: 'plain', catalog_item_key: 'other' })
  expect((await planOf(from, to)).blocked).toMatchObject([{ kind: 'stores', key: 'main', code: 'VALIDATION_ERROR' }])
})

const createBuyer = (of: Project) => ({
  buys: async (offer_key: string) => {
    const user = await of.user()
    await of.admin.post('/segments/some/members', { user_ids: [user.id] })
    const body = { offer_key, currency_code: 'COINS', expected_price: 0 }
    const answer = await user.post('/client/stores/main/purchase', body)
    expect(answer.status, answer.text).toBe(201)
  },
})

/** Imports a store by a document alone. */
const importStore = async (store: object) => {
  const known = (await exportOf(project)).definitions.catalog?.thing
  if (!known) await made('/catalog', { key: 'thing', name: 'Thing', item_type: 'consumable' })
  const document = { ...(await exportOf(project)), definitions: { stores: { wrong: { name: 'Wrong', ...store } } } }
  return admin.post('/promotion/import?dry_run=false', { document })
}

test('a document creates a store with the defaults of its offers', async () => {
  const answer = await importStore({ offers: [{ key: 'a', catalog_item_key: 'thing' }] })
  expect(answer.status, answer.text).toBeLessThan(300)
  expect((await admin.get('/stores/wrong')).data.offers).toMatchObject([
    { key: 'a', catalog_item_key: 'thing', quantity: 1, prices: [], limit_period: 'total', is_active: true },
  ])
  await admin.delete('/stores/wrong')
})

test.each([
  ['offers is no list', { offers: 7 }],
  ['an offer has no key', { offers: [{ catalog_item_key: 'thing' }] }],
  ['an offer is no object', { offers: [7] }],
  [
    'a key is there twice',
    {
      offers: [
        { key: 'a', catalog_item_key: 'thing' },
        { key: 'a', catalog_item_key: 'thing' },
      ],
    },
  ],
  ['a quantity is no number', { offers: [{ key: 'a', catalog_item_key: 'thing', quantity: 'x' }] }],
  ['a quantity is none', { offers: [{ key: 'a', catalog_item_key: 'thing', quantity: 0 }] }],
  ['prices are no list', { offers: [{ key: 'a', catalog_item_key: 'thing', prices: 1 }] }],
  [
    'a price is no number',
    { offers: [{ key: 'a', catalog_item_key: 'thing', prices: [{ currency_code: 'COINS', price: 'x' }] }] },
  ],
  ['a price is null', { offers: [{ key: 'a', catalog_item_key: 'thing', prices: [{ currency_code: 'COINS' }] }] }],
  [
    'a price is a text',
    { offers: [{ key: 'a', catalog_item_key: 'thing', prices: [{ currency_code: 'COINS', price: '3' }] }] },
  ],
  ...['x', 3.5, 1e40, '9'].map((original_price): [string, object] => [
    `a former price is ${original_price}`,
    {
      offers: [{ key: 'a', catalog_item_key: 'thing', prices: [{ currency_code: 'COINS', price: 1, original_price }] }],
    },
  ]),
  ['a time is none', { offers: [{ key: 'a', catalog_item_key: 'thing', starts_at: 'soon' }] }],
  // Postgres reads these, and no answer could show them
  ...['infinity', '-infinity', 'now', '4000-01-01 BC', '200000-01-01'].flatMap((time): [string, object][] => [
    [`an offer starts at ${time}`, { offers: [{ key: 'a', catalog_item_key: 'thing', starts_at: time }] }],
    [`an offer ends at ${time}`, { offers: [{ key: 'a', catalog_item_key: 'thing', ends_at: time }] }],
    [`the store starts at ${time}`, { starts_at: time }],
  ]),
])('a document in which %s is refused', async (_why, store) => {
  const answer = await importStore(store)
  expect([400, 409], answer.text).toContain(answer.status)
  expect(answer.text).not.toContain('is not a field')
  expectRefusal(await admin.get('/stores/wrong'), 404, 'NOT_FOUND')
})
