import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { createShop } from '#test/support/stores.ts'

const harness = await startHarness()
const noon = '2026-12-01T12:00:00Z'
harness.setTime(noon)
const { project, item, store, price, segment, offer, someone, bought, shown, change, coins, made } =
  await createShop(harness)
const { admin } = project

const preview = async (at: { store: { key: string } }, userId: string) => {
  const answer = await admin.get(`/stores/${at.store.key}/preview?user_id=${userId}`)
  expect(answer.status, answer.text).toBe(200)
  return answer.data
}

describe('a store', () => {
  test('is listed by sort_order, then key, without offers, and only where it is visible', async () => {
    const project = await harness.project()
    const user = project.onBehalfOf((await project.user()).id)
    const some = (await project.admin.post('/segments', { key: 'some', name: 'Some', kind: 'static' })).data
    for (const body of [
      { key: 'second', sort_order: 1, description: 'Two' },
      { key: 'b' },
      { key: 'a' },
      { key: 'off', is_active: false },
      { key: 'later', starts_at: '2026-12-01T12:00:01Z' },
      { key: 'over', ends_at: '2026-12-01T12:00:00Z' },
      { key: 'now', starts_at: '2026-12-01T12:00:00Z', ends_at: '2026-12-01T12:00:01Z', sort_order: 9 },
      { key: 'others', segment_id: some.id },
    ])
      expect((await project.admin.post('/stores', { name: 'S', ...body })).status).toBe(201)
    const list = await user.get('/client/stores')
    expect(list.body).toMatchObject({ total: 4, limit: 50, offset: 0 })
    expect(list.data.map(({ key }: any) => key)).toEqual(['a', 'b', 'second', 'now'])
    expect(list.data[2]).toEqual({
      ...{ id: expect.any(String), key: 'second', name: 'S', description: 'Two' },
      ...{ starts_at: null, ends_at: null, sort_order: 1 },
    })
    expect((await user.get('/client/stores?limit=1&offset=2')).data.map(({ key }: any) => key)).toEqual(['second'])
    for (const key of ['off', 'later', 'over', 'others', 'nothing', randomUUID()])
      expectRefusal(await user.get(`/client/stores/${key}`), 404, 'STORE_NOT_FOUND')
    expect((await user.get(`/client/stores/${list.data[0].id}`)).data.key).toBe('a')
    const [id] = await project.sql('select id from app.users')
    for (const [key, reason] of Object.entries({
      off: 'inactive',
      later: 'not_started',
      over: 'ended',
      others: 'segment',
      a: null,
    }))
      expect((await project.admin.get(`/stores/${key}/preview?user_id=${id.id}`)).data).toEqual({
        ...{ visible: reason === null, reason, offers: [] },
      })
    await project.admin.post('/segments/some/members', { user_ids: [id.id] })
    expect((await user.get('/client/stores/others')).status).toBe(200)
    expectRefusal(await project.app.get('/client/stores'), 401, 'UNAUTHORIZED')
  })
})

describe('an offer', () => {
  test('is shown with its item, prices and limits', async () => {
    const at = await offer(
      { quantity: 2, prices: [price(10, { original_price: 15 })], badge: 'New', limit_per_user: 3, stock_total: 5 },
      { ends_at: '2090-01-01T00:00:00Z' },
      { name: 'Potion', icon_url: 'https://x/i.png' },
    )
    const { user } = await someone(10)
    expect((await shown(user, at.store.key)).offers).toEqual([
      {
        ...{ id: at.offer.id, key: at.offer.key, quantity: 2, badge: 'New', available: true, reason: null },
        item: {
          id: at.item.id,
          key: at.item.key,
          name: 'Potion',
          item_type: 'consumable',
          icon_url: 'https://x/i.png',
        },
        prices: [{ currency_code: 'COINS', price: 10, original_price: 15 }],
        ...{ remaining_for_user: 3, remaining_stock: 5, can_afford: true },
        ...{ starts_at: null, ends_at: '2090-01-01T00:00:00.000Z' },
      },
    ])
    await change(at, { ends_at: '2080-01-01T00:00:00Z' })
    await bought(user, at)
    expect((await shown(user, at.store.id)).offers[0]).toMatchObject({
      ...{ remaining_for_user: 2, remaining_stock: 4, can_afford: false, available: true },
      ends_at: '2080-01-01T00:00:00.000Z',
    })
    expect((await shown((await someone()).user, at.store.key)).offers[0]).toMatchObject({
      remaining_for_user: 3,
      remaining_stock: 4,
    })
  })

  test('costs what its item costs times the quantity where it has no price, in active currencies', async () => {
    await made('/currencies', { code: 'OLD', name: 'Old' })
    await made('/currencies', { code: 'ALSO', name: 'Also' })
    const at = await offer({ prices: [], quantity: 3 }, {}, { prices: [price(4), { currency_code: 'OLD', price: 1 }] })
    const own = await offer({ prices: [{ currency_code: 'OLD', price: 1 }] }, {}, { prices: [price(4)] })
    const two = await offer({ prices: [price(4), { currency_code: 'ALSO', price: 1 }] })
    await admin.patch('/currencies/OLD', { is_active: false })
    const { id, user } = await someone(11)
    expect((await shown(user, at.store.key)).offers[0]).toMatchObject({
      prices: [{ currency_code: 'COINS', price: 12, original_price: null }],
      can_afford: false,
    })
    // its own prices stand, although no currency of theirs is active
    expect((await shown(user, own.store.key)).offers[0]).toMatchObject({
      prices: [],
      reason: 'no_price',
      available: false,
      can_afford: false,
    })
    const poor = await someone()
    await coins(poor.id, 1, 'ALSO')
    expect((await shown(poor.user, two.store.key)).offers[0]).toMatchObject({ can_afford: true })
    await coins(id, 1)
    expect((await shown(user, at.store.key)).offers[0]).toMatchObject({ can_afford: true })
  })

  test('says the first reason that holds: not_started, no_price, limit_reached, out_of_stock, max_owned', async () => {
    const at = await offer({ limit_per_user: 1, stock_total: 1, prices: [price(0)] }, {}, { max_owned: 1 })
    const { server } = await someone()
    const reason = async () => (await shown(server, at.store.key)).offers[0].reason
    expect(await reason()).toBeNull()
    await bought(server, at, { expected_price: 0 })
    await change(at, { starts_at: '2026-12-02T00:00:00Z', prices: [] })
    expect(await reason()).toBe('not_started')
    await change(at, { starts_at: '2026-12-01T12:00:00Z' })
    expect(await reason()).toBe('no_price')
    await change(at, { prices: [price(0)] })
    expect(await reason()).toBe('limit_reached')
    await change(at, { limit_per_user: null })
    expect(await reason()).toBe('out_of_stock')
    await change(at, { stock_total: null })
    expect(await reason()).toBe('max_owned')
    await change(at, { stock_total: 0 })
    expect((await shown(server, at.store.key)).offers[0]).toMatchObject({ remaining_stock: 0, reason: 'out_of_stock' })
  })

  test('of a bundle has room for each of its contents', async () => {
    const [inner, ring] = [await item(), await item({ item_type: 'durable' })]
    const contents = [inner, ring].map(({ key }) => ({ content_item_key: key, quantity: 1 }))
    const at = await offer({}, {}, { item_type: 'bundle', bundle_contents: contents })
    const { id, user } = await someone(10)
    expect((await shown(user, at.store.key)).offers[0].reason).toBeNull()
    await admin.post('/inventory/grant', { app_user_id: id, catalog_item_key: ring.key, reason: 'test' })
    expect((await shown(user, at.store.key)).offers[0].reason).toBe('max_owned')
  })

  test('of bundles in bundles that hold more than a number can is shown, and has no room', async () => {
    const leaf = await item({ max_owned: 5 })
    let contents = [leaf.key]
    for (let level = 0; level < 2; level += 1) {
      const held = contents.map((content_item_key) => ({ content_item_key, quantity: 10_000 }))
      contents = []
      for (let n = 0; n < 31; n += 1) contents.push((await item({ item_type: 'bundle', bundle_contents: held })).key)
    }
    const held = contents.map((content_item_key) => ({ content_item_key, quantity: 10_000 }))
    const at = await offer({ quantity: 10_000 }, {}, { item_type: 'bundle', bundle_contents: held })
    const { user } = await someone(10)
    expect((await shown(user, at.store.key)).offers[0].reason).toBe('max_owned')
  })

  test('is hidden while it is inactive, of an inactive item, ended or for a segment of others; a preview says why', async () => {
    const at = await offer()
    const { id, server } = await someone()
    const hidden = async (reason: string) => {
      expect((await shown(server, at.store.key)).offers).toEqual([])
      expect((await preview(at, id)).offers).toMatchObject([
        { key: at.offer.key, visible: false, available: false, reason },
      ])
      expectRefusal(await buyOne(), 409, 'OFFER_NOT_AVAILABLE', { reason })
    }
    const buyOne = () =>
      server.post(`/client/stores/${at.store.key}/purchase`, {
        offer_id: at.offer.id,
        currency_code: 'COINS',
        expected_price: 10,
      })
    await change(at, { segment_id: (await segment()).id })
    await hidden('segment')
    await change(at, { ends_at: '2026-12-01T12:00:00Z' })
    await hidden('ended')
    await admin.patch(`/catalog/${at.item.key}`, { is_active: false })
    await hidden('item_inactive')
    await change(at, { is_active: false })
    await hidden('inactive')
    await change(at, { is_active: true, ends_at: null, segment_id: null })
    await admin.patch(`/catalog/${at.item.key}`, { is_active: true })
    expect(await preview(at, id)).toMatchObject({
      visible: true,
      reason: null,
      offers: [{ visible: true, available: true, reason: null }],
    })
    const [seen] = (await shown(server, at.store.key)).offers
    expect((await preview(at, id)).offers).toEqual([{ ...seen, visible: true }])
  })

  test('comes by sort_order, then key', async () => {
    const [thing, shop] = [await item(), await store()]
    for (const [key, sort_order] of [
      ['c', 0],
      ['b', 1],
      ['a', 1],
      ['d', -1],
    ])
      await made(`/stores/${shop.key}/offers`, { key, sort_order, catalog_item_id: thing.id, prices: [price(1)] })
    const { id, user } = await someone()
    const keys = (offers: any[]) => offers.map(({ key }) => key)
    expect(keys((await shown(user, shop.key)).offers)).toEqual(['d', 'c', 'a', 'b'])
    expect(keys((await preview({ store: shop }, id)).offers)).toEqual(['d', 'c', 'a', 'b'])
    expect(keys((await admin.get(`/stores/${shop.key}`)).data.offers)).toEqual(['d', 'c', 'a', 'b'])
  })

  test('that would give nothing is not sold', async () => {
    const { user } = await someone(100)
    const empty = await offer({}, {}, { item_type: 'bundle' })
    const pack = await offer(
      {},
      {},
      { item_type: 'currency_pack', use_effect: { currencies: [{ currency_code: 'NONE', amount: 1 }] } },
    )
    for (const at of [empty, pack]) {
      expect((await shown(user, at.store.key)).offers).toEqual([])
      expectRefusal(
        await user.post(`/client/stores/${at.store.key}/purchase`, {
          offer_id: at.offer.id,
          currency_code: 'COINS',
          expected_price: 10,
        }),
        409,
        'OFFER_NOT_AVAILABLE',
        { reason: 'item_inactive' },
      )
    }
  })
})

test('a preview needs a user that exists', async () => {
  const at = await offer()
  expectRefusal(await admin.get(`/stores/${at.store.key}/preview`), 400, 'INVALID_INPUT')
  expectRefusal(await admin.get(`/stores/${at.store.key}/preview?user_id=${randomUUID()}`), 404, 'NOT_FOUND')
  const { id } = await someone()
  expectRefusal(await admin.get(`/stores/nothing/preview?user_id=${id}`), 404, 'NOT_FOUND')
})
