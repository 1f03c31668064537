import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'
import { createShop } from '#test/support/stores.ts'

const harness = await startHarness({ env: { GENERAL_RATE_LIMITS: 'off' } })
harness.setTime('2026-12-01T12:00:00Z')
const { project, item, price, segment, store, made, someone, buy } = await createShop(harness)
const { admin } = project

/** What a purchase of one unit answers where the list says why it cannot be bought. */
const codes: Record<string, string> = {
  limit_reached: 'PURCHASE_LIMIT_REACHED',
  out_of_stock: 'OUT_OF_STOCK',
  max_owned: 'MAX_OWNED_REACHED',
}
const moment = fc.constantFrom(null, null, null, '2026-11-01T00:00:00Z', '2027-01-01T00:00:00Z')
const shape = fc.record({
  what: fc.constantFrom('plain', 'few', 'off', 'bundle', 'deep', 'empty', 'pack', 'dead', 'deadIn'),
  quantity: fc.constantFrom(1, 1, 2, 10_000),
  isPriced: fc.constantFrom(true, true, true, false),
  limit_per_user: fc.constantFrom(null, null, 1, 2),
  limit_period: fc.constantFrom('total', 'day', 'week', 'month'),
  stock_total: fc.constantFrom(null, null, 0, 1, 2),
  segment: fc.constantFrom(null, null, null, 'in', 'out'),
  starts_at: moment,
  ends_at: fc.constantFrom(null, null, null, '2026-11-30T00:00:00Z', '2027-01-01T00:00:00Z'),
  is_active: fc.constantFrom(true, true, true, false),
})

const pack = (code: string) => ({
  item_type: 'currency_pack',
  use_effect: { currencies: [{ currency_code: code, amount: 1 }] },
})
const bundle = (...keys: string[]) => ({
  item_type: 'bundle',
  bundle_contents: keys.map((content_item_key) => ({ content_item_key, quantity: 2 })),
})
await made('/currencies', { code: 'GONE', name: 'Gone' })
const plain = await item()
const few = await item({ max_owned: 3 })
const inner = await item(bundle(plain.key, few.key))
const dead = await item(pack('GONE'))
const items: Record<string, string> = {
  ...{ plain: plain.key, few: few.key, dead: dead.key },
  off: (await item({ is_active: false })).key,
  bundle: inner.key,
  deep: (await item(bundle(inner.key, plain.key))).key,
  empty: (await item(bundle())).key,
  pack: (await item(pack('COINS'))).key,
  deadIn: (await item(bundle(dead.key, plain.key))).key,
}
await admin.patch('/currencies/GONE', { is_active: false })

test('what a list says of an offer is what its purchase answers, before and after', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(shape, { minLength: 12, maxLength: 14 }), async (shapes) => {
      const { id, user } = await someone(1000)
      const segments = { in: (await segment(id)).id, out: (await segment()).id }
      const shop = await store()
      const offers = []
      for (const [n, { what, isPriced, segment: of, ...rest }] of shapes.entries()) {
        // one that ends before it starts is none
        if (rest.starts_at && rest.ends_at && rest.starts_at >= rest.ends_at) continue
        offers.push(
          await made(`/stores/${shop.key}/offers`, {
            ...{ ...rest, key: `o${n}`, catalog_item_key: items[what], sort_order: n },
            ...{ prices: isPriced ? [price(1)] : [], segment_id: of && segments[of] },
          }),
        )
      }
      for (const offer of [...offers, ...offers]) {
        const path = `/stores/${shop.key}/preview?user_id=${id}`
        const seen = (await admin.get(path)).data.offers.find(({ key }: { key: string }) => key === offer.key)
        const answer = await buy(user, { store: shop, offer }, { expected_price: 1 })
        if (seen.available) expect(answer.status, answer.text).toBe(201)
        else if (codes[seen.reason]) expect(answer.error?.code, seen.reason).toBe(codes[seen.reason])
        else expect(answer.error).toMatchObject({ code: 'OFFER_NOT_AVAILABLE', details: { reason: seen.reason } })
        // the list of the user has the same, without what is hidden
        const { data } = await admin.get(path)
        const listed = (await user.get(`/client/stores/${shop.key}`)).data.offers
        expect(listed.map((one: object) => ({ ...one, visible: true }))).toEqual(
          data.offers.filter(({ visible }: { visible: boolean }) => visible),
        )
      }
    }),
    { numRuns: sized(4, 40), seed: Number(process.env['FUZZ_SEED'] ?? 43), endOnFailure: true },
  )
})
