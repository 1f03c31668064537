import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { day, startRestores } from '#test/support/restores.ts'
import { activeOf, purchaseOf, subscriptionOf } from '#test/support/revenuecat.ts'

/** Restoring purchases: the provider's answer becomes the state. */
const { provider, harness, project, now, connect, someone, restore, restored, entitled, tell, subscriptions } =
  await startRestores()

describe('a restore', () => {
  test('gives what the provider says, from subscriptions and single purchases', async () => {
    const user = await someone()
    const end = now() + 10 * day
    provider.customers.set(user.id, {
      subscriptions: [
        subscriptionOf(`tx-${user.id}`, ['premium', 'support'], end),
        subscriptionOf(`old-${user.id}`, ['legacy'], now() - day, { gives_access: false, status: 'expired' }),
      ],
      purchases: [
        purchaseOf(`order-${user.id}`, ['no_ads'], now() - 5 * day),
        purchaseOf(`back-${user.id}`, ['refunded'], now() - 5 * day, { status: 'refunded' }),
      ],
      active_entitlements: [activeOf('premium', end), activeOf('support', end), activeOf('no_ads', null)],
    })
    const { restored_count, entitlements } = await restored(user)
    expect(restored_count).toBe(3)
    const shown = entitlements.map(({ entitlement_id, is_active, expiration_date, store }) => [
      ...[entitlement_id, is_active, expiration_date, store],
    ])
    expect(shown.filter(([, isActive]) => isActive)).toEqual([
      ['no_ads', true, null, 'play_store'],
      ['premium', true, new Date(end).toISOString(), 'app_store'],
      ['support', true, new Date(end).toISOString(), 'app_store'],
    ])
    expect(shown.filter(([, isActive]) => !isActive).map(([id]) => id)).toEqual(['legacy', 'refunded'])
    expect(await entitled(user)).toEqual(entitlements)
    expect(new Set(provider.requests.map(({ authorization }) => authorization))).toEqual(new Set(['Bearer sk_read']))
    // the app hears of it, once
    const emitted = () =>
      project.sql(
        `select event_name from app.engagement_events where app_user_id = $1 and event_name like 'svc.entitlement.%'`,
        [user.id],
      )
    expect(await emitted()).toHaveLength(3)
    expect((await restored(user)).restored_count).toBe(3)
    expect(await emitted()).toHaveLength(3)
    expect(await project.sql(`select from app.subscription_events where app_user_id = $1`, [user.id])).toHaveLength(4)
    expect((await subscriptions(user)).map(({ status }) => status).sort()).toEqual([
      ...['active', 'active', 'expired', 'refunded'],
    ])
  })

  test('knows the states of a subscription', async () => {
    const user = await someone()
    const end = now() + 3 * day
    const of = (ref: string, key: string, more: object) => subscriptionOf(`${ref}-${user.id}`, [key], end, more as any)
    provider.customers.set(user.id, {
      subscriptions: [
        of('trial', 'a', { status: 'trialing' }),
        of('cancelled', 'b', { auto_renewal_status: 'will_not_renew', environment: 'sandbox' }),
        of('grace', 'c', { status: 'in_grace_period', ends_at: now() - day, current_period_ends_at: now() - day }),
        of('retry', 'd', { status: 'in_billing_retry', gives_access: false, ends_at: now() - day }),
        of('paused', 'e', { status: 'paused', gives_access: false, ends_at: null, current_period_ends_at: null }),
      ],
      active_entitlements: [activeOf('c', now() + 6 * day)],
    })
    expect((await restored(user)).restored_count).toBe(3)
    const states = Object.fromEntries(
      (await subscriptions(user)).map((each) => [each.status, [each.auto_renew, each.environment]]),
    )
    expect(states).toEqual({
      trial: [true, 'production'],
      cancelled: [false, 'sandbox'],
      grace: [true, 'production'],
      expired: [false, 'production'],
      paused: [false, 'production'],
    })
    const grace = (await entitled(user)).find((each: any) => each.entitlement_id === 'c')
    expect(grace.is_active).toBe(true)
    expect(Date.parse(grace.expiration_date) - now()).toBeGreaterThan(5 * day)
  })

  test('ends what ended upstream, and leaves gifts and other names alone', async () => {
    const user = await someone()
    const [ours, gone] = [randomUUID(), randomUUID()]
    await tell({ app_user_id: user.id, original_transaction_id: ours, transaction_id: ours })
    await tell({ app_user_id: user.id, original_transaction_id: gone, entitlement_ids: ['support'] })
    // of a customer whom the restore does not ask about
    const other = `$RCAnonymousID:${randomUUID()}`
    await tell({ app_user_id: other, original_transaction_id: randomUUID(), entitlement_ids: ['side'] })
    await project.sql(`update app.subscription_events set app_user_id = $1 where names && array[$2]`, [user.id, other])
    await project.sql(
      `insert into app.subscriptions (app_user_id, source_ref, store, environment, period_type, entitlement_ids, purchase_date, expiration_date, last_event_at)
       select $1, source_ref, 'app_store', 'production', 'normal', '{side}', $3, $4, $3 from app.subscription_events where names && array[$2]`,
      [user.id, other, new Date(now()), new Date(now() + day)],
    )
    await project.admin.post(`/users/${user.id}/entitlements`, { entitlement_id: 'gift' })
    provider.customers.set(user.id, {
      subscriptions: [subscriptionOf(ours, ['premium'], now() - day, { gives_access: false, status: 'expired' })],
    })
    const { restored_count, entitlements } = await restored(user)
    expect(restored_count).toBe(0)
    expect(entitlements.map(({ entitlement_id, is_active }) => [entitlement_id, is_active])).toEqual([
      ['gift', true],
      ['premium', false],
      ['support', false],
    ])
    const states = (await subscriptions(user)).map(({ status, product_id }) => [status, product_id])
    expect(states.sort()).toEqual([
      ['active', null],
      ['expired', 'monthly'],
      ['expired', 'monthly'],
    ])
    // a customer with nothing left
    await tell({ app_user_id: user.id, original_transaction_id: randomUUID(), entitlement_ids: ['late'] })
    provider.customers.set(user.id, {})
    expect((await restored(user)).entitlements.find((each) => each.entitlement_id === 'late').is_active).toBe(false)
  })

  test('knows a purchase again by its first transaction, by a later one, by its order, and by its beginning', async () => {
    const user = await someone()
    const begun = now() - 40 * day
    const ref = (name: string) => `${name}-${user.id}`
    const buy = (name: string, more: object) =>
      tell({
        ...{
          app_user_id: user.id,
          original_transaction_id: ref(name),
          entitlement_ids: [name],
          event_timestamp_ms: begun,
        },
        ...{ purchased_at_ms: begun, expiration_at_ms: begun + 30 * day, ...more },
      })
    await buy('first', {})
    await buy('later', { transaction_id: ref('T2') })
    await buy('GPA', { store: 'PLAY_STORE' })
    await buy('begun', { purchased_at_ms: begun + 5000 })
    expect((await entitled(user)).map(({ is_active }: any) => is_active)).toEqual([false, false, false, false])
    const end = now() + 20 * day
    provider.customers.set(user.id, {
      subscriptions: [
        subscriptionOf(ref('first'), ['first'], end),
        subscriptionOf(ref('T2'), ['later'], end),
        subscriptionOf(`${ref('GPA')}..3`, ['GPA'], end, { store: 'play_store' }),
        subscriptionOf(ref('T9'), ['begun'], end, { starts_at: begun + 5000 }),
      ],
    })
    expect((await restored(user)).restored_count).toBe(4)
    const all = await subscriptions(user)
    expect(all.map(({ status, expiration_date, product_id }) => [status, expiration_date, product_id])).toEqual(
      Array(4).fill(['active', new Date(end).toISOString(), 'monthly']),
    )
    // and a replay of its events gives the same
    for (const { id } of all) {
      expect((await project.admin.post(`/subscriptions/${id}/replay`)).data.changed).toBe(false)
    }
  })

  test('is united with the events of its purchase when they come', async () => {
    const user = await someone()
    const [first, latest] = [`first-${user.id}`, `latest-${user.id}`]
    provider.customers.set(user.id, { subscriptions: [subscriptionOf(latest, ['premium'], now() + 20 * day)] })
    await restored(user)
    harness.advance(60)
    const event = { app_user_id: user.id, original_transaction_id: first, transaction_id: latest }
    expect(await tell({ ...event, type: 'CANCELLATION', cancel_reason: 'CUSTOMER_SUPPORT' })).toBe('applied')
    expect((await subscriptions(user)).map(({ status }) => status)).toEqual(['refunded'])
    expect(await entitled(user)).toMatchObject([{ entitlement_id: 'premium', is_active: false }])
    // the other way: the purchase was known, and its renewal unknown
    const other = await someone()
    const [T1, T2] = [`T1-${other.id}`, `T2-${other.id}`]
    await tell({
      app_user_id: other.id,
      original_transaction_id: T1,
      event_timestamp_ms: now() - 30 * day,
      expiration_at_ms: now() - day,
    })
    provider.customers.set(other.id, { subscriptions: [subscriptionOf(T2, ['premium'], now() + 20 * day)] })
    await restored(other)
    expect(await subscriptions(other)).toHaveLength(2)
    const renewal = { type: 'RENEWAL', event_timestamp_ms: now() - 1000, expiration_at_ms: now() + 20 * day }
    await tell({ app_user_id: other.id, original_transaction_id: T1, transaction_id: T2, ...renewal })
    expect((await subscriptions(other)).map(({ status }) => status)).toEqual(['active'])
  })

  test('moves a purchase that another user has here, as the provider has it now', async () => {
    const [giver, taker] = [await someone(), await someone()]
    const ref = randomUUID()
    await tell({ app_user_id: giver.id, original_transaction_id: ref })
    provider.customers.set(taker.id, { subscriptions: [subscriptionOf(ref, ['premium'], now() + 30 * day)] })
    expect((await restored(taker)).restored_count).toBe(1)
    expect(await entitled(giver)).toEqual([])
    expect(await subscriptions(giver)).toEqual([])
    // a late event of the former holder changes nothing about that
    await tell({
      app_user_id: giver.id,
      original_transaction_id: ref,
      type: 'RENEWAL',
      event_timestamp_ms: now() - day,
    })
    expect(await entitled(giver)).toEqual([])
    expect((await entitled(taker))[0].is_active).toBe(true)
  })

  test('names products as their stores do, and heals what was restored under the ids of the provider', async () => {
    const user = await someone()
    const ref = randomUUID()
    provider.products.set('prod9', 'com.app.yearly')
    const of = (product_id: string | null) => subscriptionOf(ref, ['premium'], now() + 30 * day, { product_id })
    // as former versions stored it
    await tell({ app_user_id: user.id, original_transaction_id: ref, product_id: 'prod9' })
    provider.customers.set(user.id, { subscriptions: [of('prod9')] })
    expect((await restored(user)).entitlements).toMatchObject([{ product_id: 'com.app.yearly' }])
    const [{ id, product_id }] = await subscriptions(user)
    expect(product_id).toBe('com.app.yearly')
    const shown = (await project.admin.get(`/subscriptions/${id}`)).data.events
    expect(shown.at(-1)).toMatchObject({ type: 'RESTORE', product_id: 'com.app.yearly' })
    // the key allows few requests for products, which do not change
    const asked = () => provider.requests.filter(({ path }) => path.endsWith('/products/prod9')).length
    await restored(user)
    expect(asked()).toBe(1)
    // what the provider does not tell is not made up, and what is known stays
    provider.customers.set(user.id, { subscriptions: [of('prod_unknown')] })
    expect((await restored(user)).entitlements).toMatchObject([{ product_id: 'com.app.yearly' }])
    const other = await someone()
    provider.customers.set(other.id, {
      purchases: [purchaseOf(randomUUID(), ['no_ads'], now(), { product_id: 'prod_unknown' })],
    })
    expect((await restored(other)).entitlements).toMatchObject([{ entitlement_id: 'no_ads', product_id: null }])
  })

  test('after a renewal is one subscription still, whatever tells of it later', async () => {
    const user = await someone()
    const [T0, T1, T2, T3] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()]
    const of = (ref: string, days: number) =>
      subscriptionOf(ref, ['premium'], now() + days * day, { id: `sub_${T0}`, starts_at: now() - 300 * day })
    const state = async () => (await subscriptions(user)).map(({ status }) => status)
    for (const [ref, days] of [
      [T1, 1],
      [T2, 30],
    ] as const) {
      provider.customers.set(user.id, { subscriptions: [of(ref, days)] })
      await restored(user)
      expect(await state()).toEqual(['active'])
    }
    const renewal = (transaction_id: string) =>
      tell({
        ...{ app_user_id: user.id, original_transaction_id: T0, transaction_id, type: 'RENEWAL' },
        ...{ event_timestamp_ms: now() - 2000, purchased_at_ms: now() - day, expiration_at_ms: now() + 29 * day },
      })
    // a webhook of the transaction that the second restore named
    expect(await renewal(T2)).toBe('applied')
    expect(await state()).toEqual(['active'])
    // and one of another: the next restore unites them
    provider.customers.set(user.id, { subscriptions: [of(T3, 40)] })
    await restored(user)
    expect(await state()).toEqual(['active'])
    const other = await someone()
    const [O, R1, R2] = [randomUUID(), randomUUID(), randomUUID()]
    const held = (ref: string) => subscriptionOf(ref, ['premium'], now() + 9 * day, { id: `sub_${O}` })
    provider.customers.set(other.id, { subscriptions: [held(R1)] })
    await restored(other)
    await tell({ app_user_id: other.id, original_transaction_id: O, transaction_id: R2, type: 'RENEWAL' })
    provider.customers.set(other.id, { subscriptions: [held(R2)] })
    await restored(other)
    expect((await subscriptions(other)).map(({ status }) => status)).toEqual(['active'])
    expect(await entitled(other)).toHaveLength(1)
  })

  test('of one purchase by several users at once gives it to exactly one of them', async () => {
    for (let round = 0; round < 2; round += 1) {
      const users = await Promise.all(Array.from({ length: 4 }, () => someone()))
      const ref = randomUUID()
      await tell({ app_user_id: (await someone()).id, original_transaction_id: ref })
      for (const { id } of users)
        provider.customers.set(id, { subscriptions: [subscriptionOf(ref, ['premium'], now() + 30 * day)] })
      const answers = await Promise.all(users.map((user) => restore(user)))
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
      const held = await Promise.all(users.map(async (user) => (await entitled(user)).length))
      expect(held.sort()).toEqual([0, 0, 0, 1])
    }
  })

  test('asks by our id and by external_id, reads every page, and finds the project by the key', async () => {
    await connect({ project_id: undefined })
    const user = await someone()
    const external_id = `customer/${randomUUID()}?#`
    await project.admin.patch(`/users/${user.id}`, { external_id })
    const keys = Array.from({ length: 7 }, (_, n) => `k${n}`)
    provider.setPageSize(3)
    provider.customers.set(external_id, {
      subscriptions: keys.map((key) => subscriptionOf(`${key}-${user.id}`, [key], now() + day)),
    })
    provider.customers.set(user.id, { purchases: [purchaseOf(`mine-${user.id}`, ['mine'], now())] })
    expect((await restored(user)).restored_count).toBe(8)
    expect(provider.requests[0]?.path).toBe('/v2/projects')
  })

  test('asks by the names of users who were merged into this one', async () => {
    const [user, guest] = [await project.user(), await project.user()]
    provider.customers.set(guest.id, { purchases: [purchaseOf(`mine-${guest.id}`, ['mine'], now())] })
    const merged = await user.post('/client/auth/merge', { from_session_token: guest.sessionToken })
    expect(merged.status, merged.text).toBe(200)
    expect((await restored(user)).restored_count).toBe(1)
  })

  test('of a customer whom the provider does not know answers 0 and ends nothing', async () => {
    const user = await someone()
    await tell({ app_user_id: user.id, original_transaction_id: randomUUID() })
    expect(await restored(user)).toMatchObject({
      restored_count: 0,
      entitlements: [{ entitlement_id: 'premium', is_active: true }],
    })
    expect(await restored(await someone())).toEqual({ restored_count: 0, entitlements: [] })
  })

  test('gives way to what is reported while the provider is asked', async () => {
    const user = await someone()
    const [renewed, bought, other] = [randomUUID(), randomUUID(), randomUUID()]
    const old = { event_timestamp_ms: now() - 30 * day, expiration_at_ms: now() - day }
    await tell({ app_user_id: user.id, original_transaction_id: renewed, entitlement_ids: ['renewed'], ...old })
    await tell({ app_user_id: user.id, original_transaction_id: other, entitlement_ids: ['other'] })
    provider.customers.set(user.id, {
      subscriptions: [
        subscriptionOf(renewed, ['renewed'], now() - day, { gives_access: false, status: 'expired' }),
        subscriptionOf(other, ['other'], now() - 2 * day, { gives_access: false, status: 'expired' }),
      ],
    })
    // the lists are answered as they are, and a purchase and a renewal are reported before the last of them
    let told: Promise<unknown> | undefined
    provider.respondBy((response, path) => {
      if (!path.endsWith('/active_entitlements')) return false
      const at = now() + 5
      told ??= Promise.all([
        tell({
          ...{ app_user_id: user.id, original_transaction_id: renewed, entitlement_ids: ['renewed'], type: 'RENEWAL' },
          event_timestamp_ms: at,
        }),
        tell({
          app_user_id: user.id,
          original_transaction_id: bought,
          entitlement_ids: ['bought'],
          event_timestamp_ms: at,
        }),
      ]).then(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{"items": []}'))
      return true
    })
    const { restored_count, entitlements } = await restored(user)
    await told
    expect(restored_count).toBe(0)
    expect(entitlements.map(({ entitlement_id, is_active }) => [entitlement_id, is_active])).toEqual([
      ['bought', true],
      ['other', false],
      ['renewed', true],
    ])
    for (const { id } of await subscriptions(user))
      expect((await project.admin.post(`/subscriptions/${id}/replay`)).data.changed).toBe(false)
    // asked again, the provider's answer is the newer one
    provider.respondBy(() => false)
    harness.advance(60)
    expect((await restored(user)).entitlements.map(({ is_active }) => is_active)).toEqual([false, false, false])
    // what changes nothing is not stored, also under a clock that is ahead of this one
    const ahead = { event_timestamp_ms: now() + day, type: 'RENEWAL' }
    await tell({ app_user_id: user.id, original_transaction_id: bought, entitlement_ids: ['bought'], ...ahead })
    const stored = () => project.sql(`select from app.subscription_events where app_user_id = $1`, [user.id])
    const count = (await stored()).length
    expect((await restored(user)).entitlements.map(({ is_active }) => is_active)).toEqual([true, false, false])
    expect(await stored()).toHaveLength(count)
  })

  test('by five devices at once gives one subscription', async () => {
    const user = await someone()
    provider.customers.set(user.id, { subscriptions: [subscriptionOf(randomUUID(), ['premium'], now() + day)] })
    const answers = await Promise.all(Array.from({ length: 5 }, () => restore(user)))
    expect(answers.map(({ status, data }) => [status, data.restored_count])).toEqual(Array(5).fill([200, 1]))
    expect(await subscriptions(user)).toHaveLength(1)
    expect(
      await project.sql(
        `select from app.engagement_events where app_user_id = $1 and event_name = 'svc.entitlement.granted'`,
        [user.id],
      ),
    ).toHaveLength(1)
  })
})
