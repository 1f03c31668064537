import { expect } from 'vitest'
import type { Client, Harness } from '#test/support/harness.ts'

type Body = Record<string, unknown>

/** A project with a currency COINS, an item `potion`, and what tests of stores ask again and again. */
export const createShop = async (harness: Harness) => {
  const project = await harness.project()
  const made = async (path: string, body: unknown) => {
    const answer = await project.admin.post(path, body)
    expect(answer.status, answer.text).toBe(201)
    return answer.data
  }
  await made('/currencies', { code: 'COINS', name: 'Coins' })
  let count = 0
  const named = (what: string) => `${what}_${++count}`
  const item = (more: Body = {}) =>
    made('/catalog', { key: named('item'), name: 'An item', item_type: 'consumable', ...more })
  const store = (more: Body = {}) => made('/stores', { key: named('store'), name: 'A store', ...more })
  const price = (price: number, more: Body = {}) => ({ currency_code: 'COINS', price, ...more })
  const segment = async (...userIds: string[]) => {
    const created = await made('/segments', { key: named('segment'), name: 'Some', kind: 'static' })
    if (userIds.length > 0)
      expect((await project.admin.post(`/segments/${created.id}/members`, { user_ids: userIds })).status).toBeLessThan(
        300,
      )
    return created
  }
  /** An offer of a new item for 10 coins in a new store. */
  const offer = async (more: Body = {}, storeMore: Body = {}, itemMore: Body = {}) => {
    const [thing, shop] = [await item(itemMore), await store(storeMore)]
    const body = { key: named('offer'), catalog_item_id: thing.id, prices: [price(10)], ...more }
    const created = await made(`/stores/${shop.key}/offers`, body)
    return { store: shop, item: thing, offer: created }
  }
  const coins = async (userId: string, amount: number, code = 'COINS') => {
    const answer = await project.admin.post('/currencies/transactions', {
      app_user_id: userId,
      adjustments: [{ currency_code: code, amount }],
      reason: 'test',
    })
    expect(answer.status, answer.text).toBe(201)
    return answer.data
  }
  /** A user with so many coins. */
  const someone = async (amount = 0) => {
    const user = await project.user()
    if (amount > 0) await coins(user.id, amount)
    return { id: user.id, user, server: project.onBehalfOf(user.id) }
  }
  const balance = async (userId: string, code = 'COINS'): Promise<number> =>
    (await project.admin.get(`/users/${userId}/balances`)).data[code]
  const buy = (who: Client, at: { store: { key: string }; offer: { id: string } }, more: Body = {}, headers = {}) =>
    who.post(
      `/client/stores/${at.store.key}/purchase`,
      { offer_id: at.offer.id, currency_code: 'COINS', expected_price: 10, ...more },
      headers,
    )
  const bought = async (...of: Parameters<typeof buy>) => {
    const answer = await buy(...of)
    expect(answer.status, answer.text).toBe(201)
    return answer.data
  }
  const shown = async (who: Client, key: string) => {
    const answer = await who.get(`/client/stores/${key}`)
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  const change = async (at: { store: { key: string }; offer: { id: string } }, body: Body) => {
    const answer = await project.admin.patch(`/stores/${at.store.key}/offers/${at.offer.id}`, body)
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  const held = async (who: Client) =>
    Object.fromEntries((await who.get('/client/inventory')).data.map((stack: any) => [stack.item.key, stack.quantity]))
  /** Every balance and every stack is the sum of its ledger, and what is sold that of the purchases. */
  const proof = async () => {
    expect(
      await project.sql(
        `select b.* from app.currency_balances b
          where b.balance <> (select coalesce(sum(t.amount), 0) from app.currency_transactions t
                               where (t.app_user_id, t.currency_code) = (b.app_user_id, b.currency_code))`,
      ),
    ).toEqual([])
    expect(
      await project.sql(
        `select s.id from app.inventory_stacks s
          where s.quantity <> (select sum(l.change) from app.inventory_ledger_rows l where l.stack_id = s.id)`,
      ),
    ).toEqual([])
  }
  return {
    harness,
    project,
    made,
    item,
    store,
    price,
    segment,
    offer,
    coins,
    someone,
    balance,
    buy,
    bought,
    shown,
    change,
    held,
    proof,
  }
}
