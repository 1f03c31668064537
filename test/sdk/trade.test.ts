import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { appOf } from '#test/support/sdk.ts'
import { createShop } from '#test/support/stores.ts'
import {
  getLeague,
  getReviewPrompt,
  getStore,
  listPurchases,
  listReviews,
  purchaseOffer,
  sendEvents,
  voteForReview,
  writeReview,
} from '../../sdk/src/generated/client.ts'
import { isRefusal, newUuid } from '../../sdk/src/index.ts'

/** Stores, reviews and leagues as an app uses them through the SDK. */
const harness = await startHarness()
const { project, offer, coins, change, made } = await createShop(harness)
const buying = (key: string) => `POST /v1/client/stores/${key}/purchase`

test('a purchase whose answer is lost is asked for again, and nothing is bought twice', async () => {
  const at = await offer()
  const { app, net } = appOf(harness, project)
  const { userId } = await app.ensureSignedIn()
  await coins(userId, 50)
  const path = { idOrKey: at.store.key }
  const { data: store } = await app.call(getStore, { path })
  const [shown] = store.offers
  expect(shown).toMatchObject({ available: true, can_afford: true, prices: [{ currency_code: 'COINS', price: 10 }] })
  net.losing.push(buying(at.store.key))
  const body = { offer_id: at.offer.id, quantity: 2, currency_code: 'COINS', expected_price: 20 }
  const { data } = await app.call(purchaseOffer, { path, body, headers: { 'Idempotency-Key': newUuid() } })
  expect(net.count(buying(at.store.key))).toBe(2)
  expect(data.balances).toEqual({ COINS: 30 })
  expect(data.granted).toMatchObject([{ quantity: 2 }])
  expect((await app.call(listPurchases)).data).toHaveLength(1)

  // a refusal is known by its code, with what the app asks next
  await change(at, { prices: [{ currency_code: 'COINS', price: 40 }] })
  const refused = await app.call(purchaseOffer, { path, body }).catch((error: unknown) => error)
  expect(isRefusal(refused, 'PRICE_CHANGED') && refused.details?.['current_price']).toBe(80)
  const poor = await app
    .call(purchaseOffer, { path, body: { ...body, quantity: 1, expected_price: 40 } })
    .catch((error: unknown) => error)
  expect(isRefusal(poor, 'INSUFFICIENT_FUNDS')).toBe(true)
})

test('a review is written, found helpful and listed with its summary', async () => {
  const { app } = appOf(harness, project)
  const other = appOf(harness, project).app
  await Promise.all([app.ensureSignedIn(), other.ensureSignedIn()])
  const of = { subject_type: 'app' }
  const { data: review } = await app.call(writeReview, { body: { ...of, rating: 4, title: 'Works' } })
  const { data: voted } = await other.call(voteForReview, { path: { reviewId: review.id } })
  expect(voted).toEqual({ id: review.id, helpful_count: 1, voted: true })
  const { data, summary } = await other.call(listReviews, { query: { ...of, sort: 'helpful' } })
  expect(data).toMatchObject([{ title: 'Works', voted: true }])
  expect(summary).toMatchObject({ average: 4, count: 1, histogram: { 4: 1 } })
  expect((await app.call(getReviewPrompt)).data).toEqual({ should_prompt: false, reason: 'too_few_sessions' })
})

test('points come with the event that gives them, and the league shows the cohort', async () => {
  const tiers = [{ key: 'bronze', promote_count: 1 }, { key: 'gold' }]
  await made('/leagues', { key: 'weekly', name: 'Weekly', tiers, points: { type: 'event', event_name: 'won' } })
  const { app } = appOf(harness, project)
  const { userId } = await app.ensureSignedIn()
  const { data: sent } = await app.call(sendEvents, { body: { event_name: 'won' } })
  expect(sent.effects).toMatchObject({ league: { key: 'weekly', tier: 'bronze', points: 1, rank: 1 } })
  const { data } = await app.call(getLeague, { path: { idOrKey: 'weekly' } })
  expect(data).toMatchObject({ current: { tier: 'bronze', points: 1 }, cohort: [{ app_user_id: userId, rank: 1 }] })
})
