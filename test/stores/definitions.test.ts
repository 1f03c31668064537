import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { createShop } from '#test/support/stores.ts'

const harness = await startHarness()
const shop = await createShop(harness)
const { project, item, store, price, segment, offer, someone, bought, change } = shop
const { admin } = project

describe('a store', () => {
  test('has defaults, and an offer of its own is in every answer', async () => {
    const made = await store({ key: 'main' })
    expect(made).toMatchObject({
      ...{ description: null, segment_id: null, starts_at: null, ends_at: null },
      ...{ is_active: true, sort_order: 0, offers: [] },
    })
    const thing = await item()
    const added = await admin.post('/stores/main/offers', { key: 'one', catalog_item_key: thing.key })
    for (const answer of [await admin.get('/stores/main'), await admin.patch('/stores/main', { name: 'Other' })])
      expect(answer.data).toMatchObject({ offers: [added.data] })
    expect((await admin.get('/stores?limit=200')).data.find(({ key }: any) => key === 'main').offers).toEqual([
      added.data,
    ])
  })

  test('does not take offers, which have routes of their own', async () => {
    const answer = await admin.post('/stores', { key: 'no_offers', name: 'x', offers: [{ key: 'a' }] })
    expect([answer.status, answer.data.offers]).toEqual([201, []])
    const changed = await admin.patch('/stores/no_offers', { offers: [{ key: 'a' }] })
    expect([changed.status, changed.data.offers]).toEqual([200, []])
  })

  test('ends after it starts, and its segment exists', async () => {
    const [a, b] = ['2026-12-01T00:00:00Z', '2026-12-02T00:00:00Z']
    expectInvalid(await admin.post('/stores', { key: 'x', name: 'x', starts_at: b, ends_at: b }), 'ends_at')
    const made = await store({ starts_at: a, ends_at: b })
    expectInvalid(await admin.patch(`/stores/${made.key}`, { ends_at: a }), 'ends_at')
    expectInvalid(await admin.patch(`/stores/${made.key}`, { segment_id: randomUUID() }), 'segment_id')
    const some = await segment()
    expect((await admin.patch(`/stores/${made.key}`, { segment_id: some.id })).data.segment_id).toBe(some.id)
    expectRefusal(await admin.delete(`/segments/${some.id}`), 409, 'SEGMENT_IN_USE', { used_by: [`store ${made.key}`] })
  })

  test('with purchases cannot be deleted, one without is, with its offers', async () => {
    const sold = await offer()
    await bought((await someone(10)).user, sold)
    expectRefusal(await admin.delete(`/stores/${sold.store.key}`), 409, 'STORE_IN_USE')
    const unsold = await offer()
    expect((await admin.delete(`/stores/${unsold.store.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await admin.patch(`/stores/${unsold.store.key}/offers/${unsold.offer.id}`, {}), 404, 'NOT_FOUND')
  })
})

describe('an offer', () => {
  test('has defaults and is found by the key or the id of its store', async () => {
    const [thing, shop] = [await item(), await store()]
    const answer = await admin.post(`/stores/${shop.id}/offers`, { key: 'plain', catalog_item_id: thing.id })
    expect(answer.status).toBe(201)
    expect(answer.data).toEqual({
      ...{ id: expect.any(String), store_id: shop.id, key: 'plain' },
      ...{ catalog_item_id: thing.id, catalog_item_key: thing.key, quantity: 1, prices: [] },
      ...{ limit_per_user: null, limit_period: 'total', stock_total: null, stock_sold: 0 },
      ...{ starts_at: null, ends_at: null, segment_id: null, badge: null, sort_order: 0, is_active: true },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    })
    const path = `/stores/${shop.key}/offers`
    expectRefusal(await admin.post(path, { key: 'plain', catalog_item_id: thing.id }), 409, 'CONFLICT', 'key')
    expect(
      (await admin.post(`/stores/${(await store()).id}/offers`, { key: 'plain', catalog_item_id: thing.id })).status,
    ).toBe(201)
    const full = {
      ...{ quantity: 3, prices: [price(5, { original_price: 6 })], limit_per_user: 1, limit_period: 'week' },
      ...{ stock_total: 0, badge: 'New', sort_order: -1, is_active: false },
      ...{
        starts_at: '2026-12-01T00:00:00.000Z',
        ends_at: '2026-12-02T00:00:00.000Z',
        segment_id: (await segment()).id,
      },
    }
    const changed = await admin.patch(`${path}/${answer.data.id}`, {
      ...full,
      key: 'x',
      catalog_item_id: randomUUID(),
      stock_sold: 9,
    })
    expect(changed.status, changed.text).toBe(200)
    expect(changed.data).toMatchObject({ ...full, key: 'plain', catalog_item_id: thing.id, stock_sold: 0 })
    expect((await admin.patch(`${path}/${answer.data.id}`, {})).data).toEqual(changed.data)
    expect((await admin.patch(`${path}/${answer.data.id}`, { badge: null, prices: [] })).data).toMatchObject({
      badge: null,
      prices: [],
      quantity: 3,
    })
    expect((await admin.delete(`${path}/${answer.data.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await admin.delete(`${path}/${answer.data.id}`), 404, 'NOT_FOUND')
  })

  test.each([
    ['key', {}],
    ['key', { key: 'Ä' }],
    ['catalog_item_id', { key: 'a' }],
    ['catalog_item_id', { key: 'a', catalog_item_id: randomUUID() }],
    ['catalog_item_id', { key: 'a', catalog_item_id: randomUUID(), catalog_item_key: 'a' }],
    ['catalog_item_key', { key: 'a', catalog_item_key: 'nothing' }],
    ['quantity', { quantity: 0 }],
    ['quantity', { quantity: 10_001 }],
    ['limit_per_user', { limit_per_user: 0 }],
    ['limit_period', { limit_period: 'year' }],
    ['stock_total', { stock_total: -1 }],
    ['stock_total', { stock_total: 1.5 }],
    ['badge', { badge: 'x'.repeat(65) }],
    ['segment_id', { segment_id: randomUUID() }],
    ['ends_at', { starts_at: '2026-12-01T00:00:00Z', ends_at: '2026-12-01T00:00:00Z' }],
    ['prices.0.price', { prices: [price(-1)] }],
    ['prices.0.price', { prices: [price(0.5)] }],
    ['prices', { prices: [price(5, { original_price: 5 })] }],
    ['prices', { prices: [price(5), price(6)] }],
    ['prices.1.currency_code', { prices: [price(5), { currency_code: 'NONE', price: 1 }] }],
  ])('is refused about %s: %j', async (field, more) => {
    const { store, item } = await offer()
    const whole = 'key' in more || field === 'key' ? more : { key: 'new', catalog_item_id: item.id, ...more }
    expectInvalid(await admin.post(`/stores/${store.key}/offers`, whole), field)
  })

  test('that is changed stays within its bounds, and as it was where it is refused', async () => {
    const { store, offer: made } = await offer()
    const path = `/stores/${store.key}/offers/${made.id}`
    const [starts_at, ends_at] = ['2026-12-02T00:00:00Z', '2026-12-01T00:00:00Z']
    for (const [field, body] of [
      ['quantity', { quantity: 0 }],
      ['quantity', { quantity: null }],
      ['ends_at', { badge: 'x', starts_at, ends_at }],
      ['segment_id', { badge: 'x', segment_id: randomUUID() }],
      ['prices.0.currency_code', { badge: 'x', prices: [{ currency_code: 'NONE', price: 1 }] }],
    ] as const)
      expectInvalid(await admin.patch(path, body), field)
    expect((await admin.get(`/stores/${store.key}`)).data.offers).toEqual([made])
  })

  test('of another store, an unknown store and another project are not found', async () => {
    const [one, two] = [await offer(), await offer()]
    expectRefusal(await admin.patch(`/stores/${one.store.key}/offers/${two.offer.id}`, {}), 404, 'NOT_FOUND')
    expectRefusal(await admin.delete(`/stores/${one.store.key}/offers/${two.offer.id}`), 404, 'NOT_FOUND')
    expectRefusal(
      await admin.post('/stores/nothing/offers', { key: 'a', catalog_item_id: one.item.id }),
      404,
      'NOT_FOUND',
    )
    expectRefusal(await admin.patch(`/stores/nothing/offers/${two.offer.id}`, {}), 404, 'NOT_FOUND')
    expectRefusal(await admin.delete(`/stores/nothing/offers/${two.offer.id}`), 404, 'NOT_FOUND')
    expectRefusal(await admin.patch(`/stores/${one.store.key}/offers/nonsense`, {}), 400, 'INVALID_ID')
    const other = await harness.project()
    expectRefusal(await other.admin.get(`/stores/${one.store.id}`), 404, 'NOT_FOUND')
    expectRefusal(await other.developer.get(`/admin/projects/${project.id}/stores`), 403, 'PROJECT_FORBIDDEN')
  })

  test('with purchases cannot be deleted, nor what it names', async () => {
    const some = await segment()
    const sold = await offer({ segment_id: some.id })
    const buyer = await someone(10)
    await admin.post(`/segments/${some.id}/members`, { user_ids: [buyer.id] })
    expectRefusal(await admin.delete(`/segments/${some.id}`), 409, 'SEGMENT_IN_USE', {
      used_by: [`offer ${sold.store.key}/${sold.offer.key}`],
    })
    expectRefusal(await admin.delete(`/catalog/${sold.item.key}`), 409, 'ITEM_IN_USE')
    await bought(buyer.user, sold)
    expectRefusal(await admin.delete(`/stores/${sold.store.key}/offers/${sold.offer.id}`), 409, 'OFFER_IN_USE')
    const gems = await shop.made('/currencies', { code: 'GEMS', name: 'Gems' })
    await change(sold, { prices: [{ currency_code: gems.code, price: 1 }] })
    expectRefusal(await admin.delete('/currencies/GEMS'), 409, 'CURRENCY_IN_USE')
  })

  test('is the 200th of a store at most, also when many are added at once', async () => {
    const { store, item, offer: first } = await offer()
    await project.sql(
      `insert into app.store_offers (store_id, key, catalog_item_id) select $1, 'k' || n, $2 from generate_series(1, 197) n`,
      [store.id, item.id],
    )
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        admin.post(`/stores/${store.key}/offers`, { key: `last_${n}`, catalog_item_id: item.id }),
      ),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(2)
    for (const answer of answers.filter(({ status }) => status !== 201))
      expectRefusal(answer, 409, 'LIMIT_REACHED', { limit: 200 })
    expect(first.key).toBeTruthy()
  })

  test('is audited with its prices', async () => {
    const { offer: made, store } = await offer()
    await change({ offer: made, store }, { prices: [price(7)], badge: 'Sale' })
    const rows = await project.sql(
      `select action, changes from app.audit_events where target_id = $1 or changes::text like $2 order by id`,
      [made.id, `%${made.id}%`],
    )
    expect(rows.length).toBeGreaterThanOrEqual(3)
    expect(rows.map(({ action }) => action.split('.')[0])).toEqual(rows.map(() => 'stores'))
  })
})

test('the scopes of purchases are those of stores', async () => {
  const token = async (scope: string) => {
    const { data } = await project.developer.post('/admin/tokens', { name: 't', scopes: [scope] })
    return { authorization: `Bearer ${data.token}` }
  }
  const path = `/admin/projects/${project.id}`
  expect((await harness.anyone.get(`${path}/purchases`, await token('stores:read'))).status).toBe(200)
  expect((await harness.anyone.get(`${path}/purchases`, await token('catalog:read'))).status).toBe(403)
  const refund = `${path}/purchases/${randomUUID()}/refund`
  expectRefusal(await harness.anyone.post(refund, {}, await token('stores:read')), 403, 'SCOPE_REQUIRED')
  expectRefusal(await harness.anyone.post(refund, {}, await token('stores:write')), 404, 'NOT_FOUND')
})
