import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { startInbound } from '#test/support/inbound.ts'
import { sized } from '#test/support/sized.ts'

/** Webhooks of the subscription provider: how they are stored, and what follows from them. */
const { harness, project, purchases, paywall, stored, outcomes, purchaseOf } = await startInbound()

describe('an event of the subscription provider', () => {
  test('is stored as it came before it is answered, and gives access once it is processed', async () => {
    const user = await project.user()
    // spaces, numbers and order of keys are the sender's
    const body = ` {"api_version" : "1.0", "event": ${JSON.stringify(purchaseOf(user.id, { price: 1 }).event).replace('"price":1', '"price":1.00')}}`
    const answer = await purchases(body)
    expect([answer.status, answer.body]).toEqual([200, { data: { received: true } }])
    const [row] = await stored()
    expect(row).toMatchObject({ provider: 'revenuecat', body, outcome: null, processed_at: null })
    expect((await user.get('/client/entitlements')).data).toEqual([])
    await project.drain()
    expect(await outcomes()).toEqual(['applied'])
    expect((await user.get('/client/entitlements')).data).toMatchObject([
      { entitlement_id: 'premium', is_active: true },
    ])
  })

  test('counts once, also when it comes eight times at once', async () => {
    const user = await project.user()
    const body = purchaseOf(user.id)
    const answers = await Promise.all(Array.from({ length: 8 }, () => purchases(body)))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
    expect(await stored()).toHaveLength(1)
    await project.drain()
    expect((await purchases({ ...body, extra: 'sent again with other words' })).status).toBe(200)
    await project.drain()
    expect(await outcomes()).toEqual(['applied'])
    expect(await project.sql('select from app.subscription_events')).toHaveLength(1)
  })

  test('waits when its user does not exist yet, and is applied when the user appears', async () => {
    const name = `customer-${randomUUID()}`
    await purchases(purchaseOf(`$RCAnonymousID:${randomUUID()}`, { aliases: [name] }))
    await project.drain()
    expect(await outcomes()).toEqual(['unknown_user'])
    const { data } = await project.admin.post('/users', { external_id: name })
    await project.drain()
    expect((await project.onBehalfOf(data.id).get('/client/entitlements')).data).toMatchObject([
      { entitlement_id: 'premium', is_active: true },
    ])
  })

  test('of an anonymous customer is applied when a later event says who that is', async () => {
    const anonymous = `$RCAnonymousID:${randomUUID()}`
    const user = await project.user()
    await purchases(purchaseOf(anonymous))
    await project.drain()
    expect((await user.get('/client/entitlements')).data).toEqual([])
    // of another purchase, and even one without effect
    await purchases(purchaseOf(user.id, { type: 'PRODUCT_CHANGE', aliases: [anonymous] }))
    await project.drain()
    await project.drain()
    expect((await user.get('/client/entitlements')).data).toMatchObject([
      { entitlement_id: 'premium', is_active: true },
    ])
  })

  test('of a user who appears while it is processed is applied a minute later', async () => {
    const name = `customer-${randomUUID()}`
    await purchases(purchaseOf(name))
    await project.drain()
    expect(await outcomes()).toEqual(['unknown_user'])
    // as a transaction that neither of both could see: without the trigger
    const user = await project.user()
    await project.sql('alter table app.users disable trigger tg_users__subscriptions')
    await project.sql('update app.users set external_id = $2 where id = $1', [user.id, name])
    await project.sql('alter table app.users enable trigger tg_users__subscriptions')
    await project.drain()
    expect((await user.get('/client/entitlements')).data).toEqual([])
    harness.advance(60)
    await project.drain()
    expect((await user.get('/client/entitlements')).data).toMatchObject([{ entitlement_id: 'premium' }])
  })

  test('a transfer meets a purchase that waits for its user', async () => {
    const giver = `$RCAnonymousID:${randomUUID()}`
    const user = await project.user()
    await purchases(purchaseOf(giver))
    await project.drain()
    const transfer = { id: randomUUID(), type: 'TRANSFER', event_timestamp_ms: harness.now().getTime() + 1000 }
    await purchases({ event: { ...transfer, transferred_from: [giver], transferred_to: [user.id] } })
    await project.drain()
    expect((await outcomes()).sort()).toEqual(['applied', 'unknown_user'])
    expect((await user.get('/client/entitlements')).data).toMatchObject([
      { entitlement_id: 'premium', is_active: true },
    ])
  })

  test('a transfer to a user who does not exist yet is applied when that user appears', async () => {
    const giver = await project.user()
    const name = `customer-${randomUUID()}`
    await purchases(purchaseOf(giver.id))
    const transfer = { id: randomUUID(), type: 'TRANSFER', event_timestamp_ms: harness.now().getTime() + 1000 }
    await purchases({ event: { ...transfer, transferred_from: [giver.id], transferred_to: [name] } })
    await project.drain()
    expect((await giver.get('/client/entitlements')).data).toMatchObject([{ entitlement_id: 'premium' }])
    const { data } = await project.admin.post('/users', { external_id: name })
    await project.drain()
    expect((await giver.get('/client/entitlements')).data).toEqual([])
    expect((await project.onBehalfOf(data.id).get('/client/entitlements')).data).toMatchObject([
      { entitlement_id: 'premium', is_active: true },
    ])
  })
})

test('whatever stands in a field, an event of either provider is kept and processed', async () => {
  const user = await project.user()
  const odd = [null, 'x'.repeat(5000), '\0', 1e308, [[]], ...[{ a: 1 }, '', 'NaN', true, -1, []].slice(0, sized(1, 9))]
  const opened = { id: 'e', event: 'open', user_id: user.id, timestamp: harness.now().getTime(), data: {} }
  const bodies = odd.flatMap((value) => [
    ...Object.keys(purchaseOf(user.id).event).map(
      (field) => [purchases, purchaseOf(user.id, { [field]: value })] as const,
    ),
    ...Object.keys(opened).map((field) => [paywall, { ...opened, id: randomUUID(), [field]: value }] as const),
  ])
  for (const [n, [tell, body]] of bodies.entries()) {
    if (n % 50 === 0) await project.sql('delete from app.rate_limits')
    const { status, text } = await tell(body)
    expect(status, text).toBe(200)
  }
  await project.drain()
  const rows = await stored()
  expect(rows.length).toBeGreaterThan(80)
  expect(rows.filter(({ outcome }) => outcome === null)).toEqual([])
  expect(await project.sql('select task, last_error from app.outbox where attempts > 0')).toEqual([])
}, 60_000)

type Sample = { readonly name: string; readonly source: string; readonly body: { event: Record<string, unknown> } }
/** Of the repository RevenueCat/docs, each under its path there. */
const samples = readFileSync(new URL('../fixtures/revenuecat-events.ndjson', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Sample)

describe("the vendor's sample payloads", () => {
  const expected: Record<string, string> = {
    initial_purchase: 'applied',
    renewal: 'applied',
    non_renewing_purchase: 'applied',
    trial_started: 'applied',
    cancellation: 'waiting',
    uncancellation: 'waiting',
    subscription_paused: 'waiting',
    refund: 'waiting',
    refund_reversed: 'waiting',
    trial_cancelled: 'waiting',
    expiration: 'waiting',
    subscription_extended: 'waiting',
    billing_issue: 'unknown_user',
    transfer: 'unknown_user',
    product_change: 'without_effect',
    virtual_currency: 'without_effect',
    temporary_entitlement_grant: 'without_effect',
    invoice_issuance: 'without_effect',
  }
  test.each(samples.map(({ name, body }) => [name, body] as const))('%s', async (name, body) => {
    for (const external_id of ['1234567890', 'user_1234']) await project.admin.post('/users', { external_id })
    expect((await purchases(body)).status).toBe(200)
    await project.drain()
    expect(await outcomes()).toEqual([expected[name]])
    const [event] = await project.sql('select id, type, payload from app.subscription_events')
    expect(event).toEqual({ id: body.event['id'], type: body.event['type'], payload: body.event })
  })
})
