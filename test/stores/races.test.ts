import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'
import { createShop } from '#test/support/stores.ts'

/** Buyers, administrators, merges and deletions at once. */
const harness = await startHarness({ env: { GENERAL_RATE_LIMITS: 'off' } })
const { project, item, price, store, made, coins, proof } = await createShop(harness)
const { admin } = project
await made('/currencies', { code: 'GEMS', name: 'Gems' })

const kinds = [
  'buy',
  'buy',
  'buy',
  'buy',
  'again',
  'refund',
  'refund',
  'use',
  'merge',
  'price',
  'stock',
  'delete',
] as const
const act = fc.record({
  kind: fc.constantFrom(...kinds),
  who: fc.nat(4),
  what: fc.nat(2),
  n: fc.nat(30),
  quantity: fc.integer({ min: 1, max: 2 }),
  code: fc.constantFrom('COINS', 'GEMS'),
})

const play = async () => {
  const pack = await item({
    item_type: 'currency_pack',
    use_effect: { currencies: [{ currency_code: 'GEMS', amount: 3 }] },
  })
  const [potion, ring] = [await item(), await item({ max_owned: 6 })]
  const contents = [potion, ring, pack].map(({ key }) => ({ content_item_key: key, quantity: 1 }))
  const bundle = await item({ item_type: 'bundle', bundle_contents: contents })
  const shop = await store()
  const prices = [price(2), { currency_code: 'GEMS', price: 1 }]
  const offers: { id: string; key: string }[] = []
  for (const [thing, more] of [
    [potion, { limit_per_user: 5 }],
    [bundle, { stock_total: 9 }],
    [pack, { stock_total: 12, limit_per_user: 4 }],
  ] as const)
    offers.push(
      await made(`/stores/${shop.key}/offers`, { key: thing.key, catalog_item_id: thing.id, prices, ...more }),
    )
  const someone = async () => {
    const user = await project.user()
    for (const code of ['COINS', 'GEMS']) await coins(user.id, 20, code)
    return user
  }
  const users = await Promise.all(Array.from({ length: 5 }, someone))
  const purchases = () => project.sql('select id from app.purchases where store_id = $1 order by id', [shop.id])
  const gone: string[] = []
  const sold = () =>
    project.sql(
      `select o.key, o.stock_total, coalesce((select sum(s.units) from app.store_offer_sales s where s.offer_id = o.id), 0)::int as sold,
              coalesce((select sum(p.quantity) from app.purchases p where p.offer_id = o.id and p.status = 'completed'), 0)::int as bought
         from app.store_offers o where o.store_id = $1 order by o.key`,
      [shop.id],
    )
  const doing = async ({
    kind,
    who,
    what,
    n,
    quantity,
    code,
  }: typeof act extends fc.Arbitrary<infer T> ? T : never) => {
    const user = users[who] as (typeof users)[number]
    const me = project.onBehalfOf(user.id)
    const offer = offers[what] as (typeof offers)[number]
    const path = `/client/stores/${shop.key}/purchase`
    const body = {
      offer_id: offer.id,
      quantity,
      currency_code: code,
      expected_price: quantity * (code === 'GEMS' ? 1 : 2),
    }
    if (kind === 'buy' || kind === 'again') {
      await project.sql('delete from app.rate_limits')
      return me.post(
        path,
        body,
        kind === 'again' ? { 'Idempotency-Key': `${user.id} ${what} ${quantity} ${code}` } : {},
      )
    }
    if (kind === 'refund') {
      const all = await purchases()
      const one = all[n % Math.max(all.length, 1)]
      return one ? admin.post(`/purchases/${one.id}/refund`, { force: n % 2 === 0 }) : { status: 404 }
    }
    if (kind === 'use') return me.post(`/client/inventory/${potion.key}/consume`, { quantity: 1 })
    if (kind === 'price')
      return admin.patch(`/stores/${shop.key}/offers/${offer.id}`, { prices: n % 2 ? prices : prices.slice(0, 1) })
    if (kind === 'stock') return admin.patch(`/stores/${shop.key}/offers/${offer.id}`, { badge: `${n}` })
    if (kind === 'merge') {
      const at = (who + 1) % users.length
      const other = users[at] as (typeof users)[number]
      users[at] = await someone()
      return user.post('/client/auth/merge', { from_session_token: other.sessionToken })
    }
    gone.push(user.id)
    users[who] = await someone()
    return admin.delete(`/users/${user.id}`)
  }
  return { doing, sold, gone }
}

test('of all that happens at once nothing fails, nothing is sold twice, and every ledger adds up', async () => {
  const done = new Set<string>()
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 48, maxLength: 64 }), async (acts) => {
      const { doing, sold, gone } = await play()
      for (let from = 0; from < acts.length; from += 8) {
        const some = acts.slice(from, from + 8)
        const answers = await Promise.all(some.map(doing))
        for (const [at, { status, text }] of (answers as { status: number; text: string }[]).entries()) {
          expect(status, `${some[at]?.kind} ${text}`).toBeLessThan(500)
          if (status < 300) done.add(some[at]?.kind ?? '')
        }
      }
      await proof()
      for (const one of await sold()) {
        if (one.stock_total !== null) expect(one.sold, one.key).toBeLessThanOrEqual(one.stock_total)
        // what was sold to users who are gone stays sold
        expect(one.sold, one.key).toBeGreaterThanOrEqual(one.bought)
        if (gone.length === 0) expect(one.sold, one.key).toBe(one.bought)
      }
      // nobody paid for nothing: a debit of a purchase has its purchase, unless its buyer is gone
      expect(
        await project.sql(
          `select t.id from app.currency_transactions t
            where t.source_type = 'purchase' and t.amount < 0
              and not exists (select from app.purchases p where p.id::text = t.source_id and p.total_price = -t.amount)`,
        ),
      ).toEqual([])
    }),
    { numRuns: sized(4, 30), seed: Number(process.env['FUZZ_SEED'] ?? 43), endOnFailure: true },
  )
  expect([...done].sort()).toEqual([...new Set(kinds)].sort())
})
