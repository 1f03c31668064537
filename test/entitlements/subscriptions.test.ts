import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const day = 86_400_000
const start = Date.parse('2026-11-01T00:00:00Z')
const at = (days: number) => new Date(start + days * day).toISOString()
/** A developer's token lasts a day, and these tests months: signed in again whenever the clock has moved. */
const signedIn = async (to = project) => {
  const { data } = await harness.anyone.post('/auth/developer/login', {
    email: to.developer.email,
    password: 'a long passphrase',
  })
  return to.admin.with({ authorization: `Bearer ${data.access_token}` })
}
let admin = project.admin
const setTime = async (time: string) => {
  harness.setTime(time)
  admin = await signedIn()
}
beforeEach(() => setTime(at(0)))
afterEach(() => harness.setTime(null))

const someone = async () => {
  const { id } = await project.user()
  return { id, ...project.onBehalfOf(id) }
}
type Someone = Awaited<ReturnType<typeof someone>>
/** Takes an event of the provider in, as the worker does that has it from the queue. */
const ingest = async (event: Record<string, unknown>): Promise<string> => {
  const [{ outcome }] = await project.sql(
    `select internal.subscription_ingest($1) as outcome from set_config('app.caller', 'worker', true) a, set_config('app.clock', $2, true) b`,
    [JSON.stringify(event), harness.now().toISOString()],
  )
  return outcome
}
/** The life of one purchase: each event at a day of November, of a month's length. */
const purchase = (user: { id: string } | string, more: Record<string, unknown> = {}) => {
  const original_transaction_id = randomUUID()
  const tell = (type: string, on: number, fields: Record<string, unknown> = {}) =>
    ingest({
      id: randomUUID(),
      type,
      event_timestamp_ms: start + on * day,
      app_user_id: typeof user === 'string' ? user : user.id,
      original_transaction_id,
      product_id: 'monthly',
      entitlement_ids: ['premium'],
      period_type: 'NORMAL',
      store: 'APP_STORE',
      environment: 'PRODUCTION',
      purchased_at_ms: start + on * day,
      ...(['INITIAL_PURCHASE', 'RENEWAL'].includes(type) ? { expiration_at_ms: start + (on + 30) * day } : {}),
      ...more,
      ...fields,
    })
  const find = async () => {
    const [row] = await project.sql('select id from app.subscriptions where source_ref = $1', [original_transaction_id])
    return row?.id as string
  }
  const see = async () => (await admin.get(`/subscriptions/${await find()}`)).data
  return { ref: original_transaction_id, tell, find, see }
}
const entitled = async (user: Someone) => (await user.get('/client/entitlements')).data
const eventsOf = async (user: { id: string }) =>
  (
    await project.sql(
      `select event_name from app.engagement_events where app_user_id = $1 and event_name ~ '^svc.(subscription|entitlement)' order by id`,
      [user.id],
    )
  ).map(({ event_name }) => event_name.slice(4))

describe('the states of a subscription', () => {
  test('trial, active, grace, expired: each gives access as long as it should', async () => {
    const user = await someone()
    const sub = purchase(user)
    expect(await sub.tell('INITIAL_PURCHASE', 0, { period_type: 'TRIAL', expiration_at_ms: start + 7 * day })).toBe(
      'applied',
    )
    expect(await sub.see()).toMatchObject({
      ...{ app_user_id: user.id, product_id: 'monthly', store: 'app_store', status: 'trial', period_type: 'trial' },
      ...{ purchase_date: at(0), expiration_date: at(7), auto_renew: true, environment: 'production' },
      source_ref: sub.ref,
    })
    expect(await entitled(user)).toEqual([
      {
        ...{ entitlement_id: 'premium', is_active: true, product_id: 'monthly', store: 'app_store' },
        ...{ purchase_date: at(0), expiration_date: at(7), period_type: 'trial' },
      },
    ])
    await setTime(at(7))
    // nobody told, and the clock is enough
    expect((await sub.see()).status).toBe('expired')
    expect((await entitled(user))[0].is_active).toBe(false)
    await sub.tell('RENEWAL', 7)
    expect(await sub.see()).toMatchObject({ status: 'active', period_type: 'normal', expiration_date: at(37) })
    await setTime(at(36))
    await sub.tell('BILLING_ISSUE', 36, { grace_period_expiration_at_ms: start + 53 * day })
    expect(await sub.see()).toMatchObject({ status: 'grace', auto_renew: true })
    await setTime(at(52))
    expect((await entitled(user))[0]).toMatchObject({ is_active: true, expiration_date: at(53) })
    await sub.tell('RENEWAL', 52)
    expect(await sub.see()).toMatchObject({ status: 'active', expiration_date: at(82) })
    await sub.tell('BILLING_ISSUE', 53, { grace_period_expiration_at_ms: start + 99 * day })
    await setTime(at(90))
    await sub.tell('EXPIRATION', 90, { expiration_at_ms: start + 82 * day })
    expect(await sub.see()).toMatchObject({ status: 'expired', auto_renew: false })
    expect((await entitled(user))[0].is_active).toBe(false)
    expect(await eventsOf(user)).toEqual([
      ...['subscription.started', 'entitlement.granted'],
      ...['subscription.renewed', 'entitlement.granted'],
      ...['subscription.billing_issue', 'subscription.renewed', 'subscription.billing_issue'],
      ...['subscription.expired', 'entitlement.revoked'],
    ])
  })

  test('cancelled keeps access to the end, and may come back', async () => {
    const user = await someone()
    const sub = purchase(user)
    await sub.tell('INITIAL_PURCHASE', 0)
    await sub.tell('CANCELLATION', 1, { cancel_reason: 'UNSUBSCRIBE', expiration_at_ms: start + 30 * day })
    expect(await sub.see()).toMatchObject({ status: 'cancelled', auto_renew: false, expiration_date: at(30) })
    expect((await entitled(user))[0].is_active).toBe(true)
    await sub.tell('UNCANCELLATION', 2)
    expect(await sub.see()).toMatchObject({ status: 'active', auto_renew: true })
    await sub.tell('CANCELLATION', 3, { cancel_reason: 'UNSUBSCRIBE' })
    await setTime(at(30))
    expect((await sub.see()).status).toBe('expired')
    expect((await entitled(user))[0].is_active).toBe(false)
  })

  test.each([
    ['the reason of support', { cancel_reason: 'CUSTOMER_SUPPORT' }],
    ['a negative price', { cancel_reason: 'UNSUBSCRIBE', price: -9.99 }],
  ])('refunded, by %s, ends access at once; reversed, gives it back', async (_, fields) => {
    const user = await someone()
    const sub = purchase(user)
    await sub.tell('INITIAL_PURCHASE', 0)
    await setTime(at(2))
    await sub.tell('CANCELLATION', 2, fields)
    expect(await sub.see()).toMatchObject({ status: 'refunded', auto_renew: false })
    expect((await entitled(user))[0].is_active).toBe(false)
    await sub.tell('REFUND_REVERSED', 2.5)
    expect(await sub.see()).toMatchObject({ status: 'active', auto_renew: true, expiration_date: at(30) })
    expect((await entitled(user))[0].is_active).toBe(true)
    await setTime(at(3))
    await sub.tell('CANCELLATION', 2.75, fields)
    // a renewal after a refund begins anew
    await sub.tell('RENEWAL', 3)
    expect(await sub.see()).toMatchObject({ status: 'active', expiration_date: at(33) })
    expect(await eventsOf(user)).toEqual([
      ...['subscription.started', 'entitlement.granted', 'subscription.refunded', 'entitlement.revoked'],
      'entitlement.granted',
      ...['subscription.refunded', 'entitlement.revoked', 'subscription.renewed', 'entitlement.granted'],
    ])
  })

  test('paused, extended, and what changes nothing', async () => {
    const user = await someone()
    const sub = purchase(user)
    await sub.tell('INITIAL_PURCHASE', 0)
    await sub.tell('SUBSCRIPTION_PAUSED', 1)
    expect(await sub.see()).toMatchObject({ status: 'paused', auto_renew: false })
    expect((await entitled(user))[0].is_active).toBe(true)
    await sub.tell('UNCANCELLATION', 2)
    await sub.tell('SUBSCRIPTION_EXTENDED', 3, { expiration_at_ms: start + 40 * day })
    expect(await sub.see()).toMatchObject({ status: 'active', expiration_date: at(40) })
    expect(await sub.tell('PRODUCT_CHANGE', 4, { new_product_id: 'yearly' })).toBe('without_effect')
    expect(await sub.see()).toMatchObject({ product_id: 'monthly' })
    expect((await sub.see()).events.map(({ type, outcome }: any) => [type, outcome])).toEqual([
      ['INITIAL_PURCHASE', 'applied'],
      ['SUBSCRIPTION_PAUSED', 'applied'],
      ['UNCANCELLATION', 'applied'],
      ['SUBSCRIPTION_EXTENDED', 'applied'],
      ['PRODUCT_CHANGE', 'without_effect'],
    ])
  })

  test('a renewal as another product gives what that holds, and ends what it does not', async () => {
    const user = await someone()
    const sub = purchase(user, { entitlement_ids: ['premium', 'support'] })
    await sub.tell('INITIAL_PURCHASE', 0)
    await setTime(at(10))
    await sub.tell('RENEWAL', 10, { product_id: 'plus', entitlement_ids: ['plus', 'premium'] })
    const held = await entitled(user)
    expect(held.map(({ entitlement_id, is_active }: any) => [entitlement_id, is_active])).toEqual([
      ['plus', true],
      ['premium', true],
      ['support', false],
    ])
    expect((await eventsOf(user)).slice(-2)).toEqual(['entitlement.granted', 'entitlement.revoked'])
  })

  test('the end of one never ends what another pays for', async () => {
    const user = await someone()
    const [one, two] = [purchase(user), purchase(user, { store: 'PLAY_STORE', product_id: 'weekly' })]
    await one.tell('INITIAL_PURCHASE', 0)
    await two.tell('INITIAL_PURCHASE', 1)
    await setTime(at(2))
    await two.tell('CANCELLATION', 2, { price: -1 })
    expect((await entitled(user))[0]).toMatchObject({ is_active: true, product_id: 'monthly' })
    expect(await eventsOf(user)).toEqual([
      ...['subscription.started', 'entitlement.granted', 'subscription.started', 'subscription.refunded'],
    ])
  })

  test('what is bought once has no end', async () => {
    const user = await someone()
    const sub = purchase(user)
    await sub.tell('NON_RENEWING_PURCHASE', 0)
    await setTime(at(10_000))
    expect(await sub.see()).toMatchObject({ status: 'active', auto_renew: false, expiration_date: null })
  })
})

describe('events', () => {
  test('count once, also when the same comes eight times at once', async () => {
    const user = await someone()
    const sub = purchase(user)
    const id = randomUUID()
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => sub.tell('INITIAL_PURCHASE', 0, { id })))
    expect(outcomes.sort()).toEqual(['applied', ...Array(7).fill('duplicate')])
    expect(await eventsOf(user)).toEqual(['subscription.started', 'entitlement.granted'])
    expect(await sub.tell('RENEWAL', 30, { id })).toBe('duplicate')
  })

  test('that arrive late are folded in the order of their own times', async () => {
    const user = await someone()
    const sub = purchase(user)
    await sub.tell('INITIAL_PURCHASE', 0)
    await sub.tell('UNCANCELLATION', 5)
    expect(await sub.tell('SUBSCRIPTION_EXTENDED', 3, { expiration_at_ms: start + 45 * day })).toBe('applied')
    expect(await sub.see()).toMatchObject({ expiration_date: at(45) })
    expect((await entitled(user))[0].expiration_date).toBe(at(45))
    // what came after it in time still counts
    expect(await sub.tell('CANCELLATION', 4, { cancel_reason: 'UNSUBSCRIBE' })).toBe('applied')
    expect(await sub.see()).toMatchObject({ status: 'active', expiration_date: at(45) })
    const path = `/subscriptions/${await sub.find()}`
    expect((await admin.post(`${path}/replay`)).data.changed).toBe(false)
    expect((await sub.see()).events.map(({ type }: any) => type)).toEqual([
      ...['INITIAL_PURCHASE', 'SUBSCRIPTION_EXTENDED', 'CANCELLATION', 'UNCANCELLATION'],
    ])
  })

  test('that an earlier version kept aside as older are folded in by a replay', async () => {
    const user = await someone()
    const sub = purchase(user)
    await sub.tell('INITIAL_PURCHASE', 0)
    await sub.tell('SUBSCRIPTION_EXTENDED', 3, { expiration_at_ms: start + 45 * day })
    await project.sql(
      `update app.subscription_events set outcome = 'older' where source_ref = $1 and type <> 'INITIAL_PURCHASE'`,
      [sub.ref],
    )
    await project.sql('update app.subscriptions set expiration_date = $2 where source_ref = $1', [sub.ref, at(30)])
    await project.sql('update app.entitlement_grants set expiration_date = $2 where source_ref = $1', [sub.ref, at(30)])
    const path = `/subscriptions/${await sub.find()}`
    const dry = await admin.post(`${path}/replay`)
    expect(dry.status).toBe(200)
    expect(dry.data).toMatchObject({
      before: { expiration_date: at(30), grants: [{ entitlement_id: 'premium', expiration_date: at(30) }] },
      after: { expiration_date: at(45), grants: [{ entitlement_id: 'premium', expiration_date: at(45) }] },
      changed: true,
    })
    expect((await admin.get(path)).data).toMatchObject({ expiration_date: at(30) })
    expect((await entitled(user))[0].expiration_date).toBe(at(30))
    const wet = await admin.post(`${path}/replay?dry_run=false`)
    expect(wet.data).toMatchObject({ after: { expiration_date: at(45) }, changed: true })
    expect((await entitled(user))[0].expiration_date).toBe(at(45))
    expect((await sub.see()).events.map(({ outcome }: any) => outcome)).toEqual(['applied', 'applied'])
    const [entry] = (await admin.get('/audit-events?action=subscriptions.replay')).data
    expect(entry).toMatchObject({ target: { id: await sub.find() } })
  })

  test('replay mends what somebody bent by hand', async () => {
    const user = await someone()
    const sub = purchase(user)
    await sub.tell('INITIAL_PURCHASE', 0)
    await project.sql(`update app.subscriptions set expiration_date = $2 where source_ref = $1`, [sub.ref, at(-1)])
    await project.sql(`delete from app.entitlement_grants where source_ref = $1`, [sub.ref])
    const path = `/subscriptions/${await sub.find()}/replay?dry_run=false`
    const { data } = await admin.post(path)
    expect(data).toMatchObject({
      before: { status: 'expired', grants: [] },
      after: { status: 'active', grants: [{ entitlement_id: 'premium', is_active: true }] },
      changed: true,
    })
    expect((await entitled(user))[0].is_active).toBe(true)
    // without its events there is nothing to go by
    await project.sql('delete from app.subscription_events where source_ref = $1', [sub.ref])
    const bare = await admin.post(path)
    expect(bare.data).toMatchObject({ before: data.after, after: data.after, changed: false })
  })

  test('a cancellation that comes before its purchase waits for it, in the order of their times', async () => {
    const user = await someone()
    const sub = purchase(user)
    expect(await sub.tell('CANCELLATION', 2)).toBe('waiting')
    expect(await entitled(user)).toEqual([])
    expect(await sub.tell('INITIAL_PURCHASE', 0)).toBe('applied')
    expect(await sub.see()).toMatchObject({ status: 'cancelled' })
    expect(await eventsOf(user)).toEqual(['subscription.started', 'subscription.cancelled', 'entitlement.granted'])
  })

  test('of an unknown user are kept, and come along when the user is known', async () => {
    const name = `customer-${randomUUID()}`
    const sub = purchase(name)
    expect(await sub.tell('INITIAL_PURCHASE', 0)).toBe('unknown_user')
    const user = await someone()
    expect((await admin.patch(`/users/${user.id}`, { external_id: name })).status).toBe(200)
    await project.drain()
    expect(await sub.see()).toMatchObject({ app_user_id: user.id, expiration_date: at(30) })
    expect(await entitled(user)).toMatchObject([{ entitlement_id: 'premium', is_active: true }])
    expect(await sub.tell('RENEWAL', 1)).toBe('applied')
    expect(await sub.see()).toMatchObject({ app_user_id: user.id, expiration_date: at(31) })
    expect((await sub.see()).events.map(({ outcome }: any) => outcome)).toEqual(['applied', 'applied'])
    // by alias, where the first name is nobody's
    const other = purchase('nobody')
    expect(await other.tell('INITIAL_PURCHASE', 0, { aliases: ['who', name] })).toBe('applied')
    expect((await other.see()).app_user_id).toBe(user.id)
  })

  test('under a name of a user who was merged belong to the survivor', async () => {
    const [last, middle, first] = [await project.user(), await project.user(), await project.user()]
    const name = `customer-${randomUUID()}`
    expect((await admin.patch(`/users/${first.id}`, { external_id: name })).status).toBe(200)
    for (const [survivor, other] of [
      [middle, first],
      [last, middle],
    ] as const) {
      const merged = await survivor.post('/client/auth/merge', { from_session_token: other.sessionToken })
      expect(merged.status, merged.text).toBe(200)
    }
    for (const known of [first.id.toUpperCase(), name, middle.id]) {
      const sub = purchase(known)
      expect(await sub.tell('INITIAL_PURCHASE', 0), known).toBe('applied')
      expect((await sub.see()).app_user_id, known).toBe(last.id)
    }
    // a transfer names the survivor by a former name
    const [sub, to] = [purchase(last), await someone()]
    await sub.tell('INITIAL_PURCHASE', 0)
    const transfer = { transferred_from: [first.id], transferred_to: [to.id] }
    expect(await ingest({ id: randomUUID(), type: 'TRANSFER', event_timestamp_ms: start + day, ...transfer })).toBe(
      'applied',
    )
    expect((await sub.see()).app_user_id).toBe(to.id)
    // a name that somebody else has today is theirs, also in a list of names
    expect((await admin.patch(`/users/${to.id}`, { external_id: name })).status).toBe(200)
    const taken = purchase(name)
    await taken.tell('INITIAL_PURCHASE', 0)
    expect((await taken.see()).app_user_id).toBe(to.id)
    // the names go with their user
    await project.sql('delete from app.users where id = $1', [last.id])
    expect(await purchase(middle.id).tell('INITIAL_PURCHASE', 0)).toBe('unknown_user')
  })

  test('a transfer moves what was bought, and access with it', async () => {
    const [from, to] = [await someone(), await someone()]
    const sub = purchase(from)
    await sub.tell('INITIAL_PURCHASE', 0)
    await admin.post(`/users/${from.id}/entitlements`, { entitlement_id: 'gift' })
    const transfer = (fields: Record<string, unknown>) =>
      ingest({ id: randomUUID(), type: 'TRANSFER', event_timestamp_ms: start + day, ...fields })
    const stranger = randomUUID()
    expect(await transfer({ transferred_from: [from.id], transferred_to: [stranger] })).toBe('unknown_user')
    expect(await transfer({ transferred_from: [from.id, stranger], transferred_to: [stranger, to.id] })).toBe('applied')
    expect((await entitled(from)).map((e: any) => e.entitlement_id)).toEqual(['gift'])
    expect(await entitled(to)).toMatchObject([{ entitlement_id: 'premium', is_active: true }])
    expect(await sub.see()).toMatchObject({ app_user_id: to.id })
    expect((await eventsOf(from)).at(-1)).toBe('entitlement.revoked')
    expect(await eventsOf(to)).toEqual(['entitlement.granted'])
    await sub.tell('RENEWAL', 30)
    expect((await entitled(to))[0].expiration_date).toBe(at(60))
    expect((await admin.post(`/subscriptions/${await sub.find()}/replay`)).data.changed).toBe(false)
  })

  test('that are no events are not kept', async () => {
    for (const event of [
      {},
      { id: '' },
      { id: 'x'.repeat(256), event_timestamp_ms: start },
      { id: 'x', event_timestamp_ms: 'yesterday' },
      { id: 'x', event_timestamp_ms: -1 },
    ])
      expect(await ingest(event)).toBe('malformed')
    expect(await ingest({ id: randomUUID(), type: 'TEST', event_timestamp_ms: start })).toBe('without_effect')
    // odd fields give nothing and break nothing, and their event is marked
    const sub = purchase(await someone())
    const odd = { entitlement_ids: 'premium', aliases: 7, price: 'x', expiration_at_ms: 'never', store: null }
    expect(await sub.tell('INITIAL_PURCHASE', 0, { ...odd, expiration_at_ms: start + day })).toBe('malformed')
    expect(await sub.see()).toMatchObject({ store: 'unknown', grants: [] })
    expect(await purchase(await someone()).tell('INITIAL_PURCHASE', 0, odd)).toBe('malformed')
    const old = purchase(await someone())
    await old.tell('INITIAL_PURCHASE', 0, { entitlement_ids: null, entitlement_id: 'premium' })
    expect((await old.see()).grants).toHaveLength(1)
  })
})

describe('administrators', () => {
  test('list by status, product, store, user and end; and read figures', async () => {
    const own = await harness.project()
    const make = async (on: number, fields: Record<string, unknown>) => {
      const { id } = await own.user()
      const ref = randomUUID()
      await own.sql(
        `select internal.subscription_ingest($1) from set_config('app.caller', 'worker', true) a, set_config('app.clock', $2, true) b`,
        [
          JSON.stringify({
            ...{ id: randomUUID(), type: 'INITIAL_PURCHASE', event_timestamp_ms: start + on * day, app_user_id: id },
            ...{ original_transaction_id: ref, product_id: 'monthly', store: 'APP_STORE', period_type: 'NORMAL' },
            ...{ expiration_at_ms: start + (on + 30) * day, entitlement_ids: ['premium'], ...fields },
          }),
          harness.now().toISOString(),
        ],
      )
      harness.advance(1)
      return { user: id, ref }
    }
    const a = await make(0, {})
    const b = await make(-1, { store: 'PLAY_STORE', product_id: 'yearly', expiration_at_ms: start + 300 * day })
    const c = await make(-60, { environment: 'SANDBOX' })
    const d = await make(0, { period_type: 'TRIAL', expiration_at_ms: start + 7 * day })
    const users = async (query: string) => {
      const answer = await own.admin.get(`/subscriptions${query}`)
      expect(answer.status, answer.text).toBe(200)
      return answer.data.map(({ app_user_id }: any) => app_user_id)
    }
    expect(await users('')).toEqual([d, c, b, a].map(({ user }) => user))
    expect((await own.admin.get('/subscriptions?limit=1&offset=1')).body).toMatchObject({
      ...{ total: 4, offset: 1, limit: 1, data: [{ app_user_id: c.user, environment: 'sandbox', status: 'expired' }] },
    })
    expect(await users('?status=expired')).toEqual([c.user])
    expect(await users('?status=trial')).toEqual([d.user])
    expect(await users('?product_id=yearly')).toEqual([b.user])
    expect(await users('?store=play_store')).toEqual([b.user])
    expect(await users(`?user_id=${a.user}`)).toEqual([a.user])
    expect(await users(`?expiring_before=${at(30)}`)).toEqual([d.user])
    expect(await users(`?expiring_before=${at(31)}&status=active`)).toEqual([a.user])
    for (const query of ['status=odd', 'user_id=x', 'expiring_before=soon', 'limit=0'])
      expectRefusal(await own.admin.get(`/subscriptions?${query}`), 400, 'INVALID_INPUT')

    await own.sql(
      `select internal.subscription_ingest($1) from set_config('app.caller', 'worker', true) a, set_config('app.clock', $2, true) b`,
      [
        JSON.stringify({
          ...{ id: randomUUID(), type: 'RENEWAL', event_timestamp_ms: start + day, app_user_id: d.user },
          ...{ original_transaction_id: d.ref, product_id: 'monthly', store: 'APP_STORE', period_type: 'NORMAL' },
          ...{ expiration_at_ms: start + 31 * day },
        }),
        harness.now().toISOString(),
      ],
    )
    expect((await own.admin.get('/subscriptions/summary')).data).toEqual({
      statuses: { trial: 0, active: 3, grace: 0, cancelled: 0, paused: 0, refunded: 0, expired: 1 },
      trials_30d: { started: 1, converted: 1 },
      active_by_product: [
        { product_id: 'monthly', store: 'app_store', active: 2 },
        { product_id: 'yearly', store: 'play_store', active: 1 },
      ],
    })
    await setTime(at(32))
    expect((await (await signedIn(own)).get('/subscriptions/summary')).data.trials_30d).toEqual({
      started: 0,
      converted: 0,
    })
  })

  test('get a 404 for what is not there, and a 400 for what is no id', async () => {
    expectRefusal(await admin.get(`/subscriptions/${randomUUID()}`), 404, 'NOT_FOUND')
    expectRefusal(await admin.post(`/subscriptions/${randomUUID()}/replay`), 404, 'NOT_FOUND')
    expectRefusal(await admin.get('/subscriptions/x'), 400, 'INVALID_ID')
    expectRefusal(await admin.post('/subscriptions/x/replay'), 400, 'INVALID_ID')
    expectRefusal(await admin.post(`/subscriptions/${randomUUID()}/replay?dry_run=1`), 400, 'INVALID_INPUT')
  })

  test('alone see subscriptions; a bundle has the user’s own, a reset takes them, a deletion too', async () => {
    const user = await someone()
    const sub = purchase(user)
    await sub.tell('INITIAL_PURCHASE', 0)
    for (const table of ['subscriptions', 'subscription_events'])
      await expect(
        project.as('app_user', { 'app.user_id': user.id, 'app.caller': 'user' }, `select * from app.${table}`),
      ).rejects.toThrow(/permission denied/)
    await expect(
      project.as('app_worker', { 'app.caller': 'worker' }, `select internal.subscription_ingest('{}')`),
    ).rejects.toThrow(/permission denied/)
    await expect(
      project.sql(`select internal.subscription_ingest('{}') from set_config('app.caller', 'user', true)`),
    ).rejects.toThrow(/taken in by workers/)
    await expect(
      project.as('app_admin', { 'app.caller': 'user' }, 'select internal.subscription_replay(internal.new_id(), true)'),
    ).rejects.toThrow(/replayed by administrators/)
    const sections = (await admin.get(`/users/${user.id}/export`)).text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).section)
    expect(sections).toEqual(expect.arrayContaining(['subscriptions', 'subscription_events', 'entitlement_grants']))
    await admin.delete(`/users/${user.id}/reset?sections=entitlements`)
    expect(await sub.find()).toBeUndefined()
    expect(await entitled(user)).toEqual([])
    const again = purchase(user)
    await again.tell('INITIAL_PURCHASE', 0)
    await admin.delete(`/users/${user.id}`)
    expect(await again.find()).toBeUndefined()
    expect(await project.sql('select from app.subscription_events where source_ref = $1', [again.ref])).toEqual([])
  })
})
