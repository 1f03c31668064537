import { createHmac, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Answer, freshIp, type Project, startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Webhooks of providers: who may send them, how they are stored, and what follows from them. */
const harness = await startHarness({ env: { LOG_LEVEL: 'silent' } })
let project: Project
const secret = 'whsec-of-ours'
const connect = (provider: string, config: object = {}, to = project) =>
  to.admin.post('/integrations', { provider, config: { secret_api_key: 'sk', api_key: 'pk', ...config } })
beforeEach(async () => {
  project ??= await harness.project()
  await project.sql(
    'truncate app.inbound_events, app.subscription_events, app.subscriptions, app.entitlement_grants cascade',
  )
  await project.sql('delete from app.rate_limits')
  await connect('revenuecat', { webhook_secret: secret })
  await connect('superwall', { webhook_secret: secret })
})
afterEach(() => harness.setTime(null))

const hmac = (body: string | Buffer, key = secret) => createHmac('sha256', key).update(body).digest('hex')
const send = async (path: string, body: string | Buffer, headers: Record<string, string>): Promise<Answer> => {
  const response = await fetch(harness.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': freshIp(), ...headers },
    body: new Uint8Array(Buffer.from(body)),
  })
  const text = await response.text()
  const parsed = JSON.parse(text)
  return {
    ...{ status: response.status, headers: response.headers, text },
    ...{ body: parsed, data: parsed.data, error: parsed.error },
  }
}
const asText = (body: unknown) => (typeof body === 'string' ? body : JSON.stringify(body))
const purchases = (body: unknown, headers: Record<string, string> = {}, query = `?project_id=${project.id}`) =>
  send(`/webhooks/revenuecat${query}`, asText(body), { authorization: `Bearer ${secret}`, ...headers })
const paywall = (body: unknown, headers: Record<string, string> = {}, query = `?project_id=${project.id}`) =>
  send(`/webhooks/superwall${query}`, asText(body), { 'x-superwall-signature': hmac(asText(body)), ...headers })
const stored = () =>
  project.sql(
    'select id, provider, event_key, body, outcome, processed_at from app.inbound_events order by received_at, id',
  )
const outcomes = async () => (await stored()).map(({ outcome }) => outcome)

const purchaseOf = (app_user_id: string, more: object = {}) => ({
  api_version: '1.0',
  event: {
    id: randomUUID(),
    type: 'INITIAL_PURCHASE',
    event_timestamp_ms: harness.now().getTime(),
    app_user_id,
    original_transaction_id: randomUUID(),
    entitlement_ids: ['premium'],
    product_id: 'monthly',
    store: 'APP_STORE',
    period_type: 'NORMAL',
    environment: 'PRODUCTION',
    purchased_at_ms: harness.now().getTime(),
    expiration_at_ms: harness.now().getTime() + 86_400_000,
    ...more,
  },
})

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

type Sample = { readonly name: string; readonly source: string; readonly body: { event: Record<string, unknown> } }
/** Of the repository RevenueCat/docs, each under its path there. */
const samples = readFileSync(new URL('fixtures/revenuecat-events.ndjson', import.meta.url), 'utf8')
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

describe('a webhook is refused', () => {
  test('without a project, and for one that does not exist', async () => {
    const body = purchaseOf('someone')
    for (const query of ['', '?project_id=', '?project_id=x', `?project_id=${project.id}x`]) {
      expectRefusal(await purchases(body, {}, query), 400, 'MISSING_PROJECT')
      expectRefusal(await paywall(body, {}, query), 400, 'MISSING_PROJECT')
    }
    expectRefusal(await purchases(body, {}, `?project_id=${randomUUID()}`), 404, 'NOT_CONFIGURED')
    expectRefusal(await paywall(body, {}, `?project_id=${randomUUID()}`), 404, 'NOT_CONFIGURED')
    expect((await purchases(body, {}, `?project_id=${project.id.toUpperCase()}`)).status).toBe(200)
  })

  test.each([
    ['none', undefined],
    ['an empty one', 'Bearer '],
    ['another', 'Bearer other'],
    ['one that begins with it', `Bearer ${secret}x`],
    ['its beginning', `Bearer ${secret.slice(0, -1)}`],
    ['the secret alone', secret],
    ['another scheme', `Basic ${secret}`],
  ])('by the subscription provider with %s as the secret', async (_name, authorization) => {
    const answer = await send(
      `/webhooks/revenuecat?project_id=${project.id}`,
      asText(purchaseOf('someone')),
      authorization === undefined ? {} : { authorization },
    )
    expectRefusal(answer, 401, 'INVALID_SIGNATURE')
    expect(await stored()).toEqual([])
  })

  test.each([
    ['no signature', () => ''],
    ['the signature of another body', () => hmac('{}')],
    ['a signature under another secret', (body: string) => hmac(body, 'other')],
    ['a signature cut short', (body: string) => hmac(body).slice(0, 62)],
    ['a signature in base64', (body: string) => createHmac('sha256', secret).update(body).digest('base64')],
  ])('by the paywall provider with %s', async (_name, sign) => {
    const body = asText({ event: 'paywall_open', user_id: 'someone' })
    expectRefusal(await paywall(body, { 'x-superwall-signature': sign(body) }), 401, 'INVALID_SIGNATURE')
    const unsigned = await send(`/webhooks/superwall?project_id=${project.id}`, body, {})
    expectRefusal(unsigned, 401, 'INVALID_SIGNATURE')
    expect(await stored()).toEqual([])
  })

  test('with a wrong signature before its body is looked at, and then for a body that is no JSON object', async () => {
    const wrong = { 'x-superwall-signature': hmac('other'), authorization: 'Bearer other' }
    const bodies = ['{', '', '[]', '"text"', 'null', '{"a":1}x']
    for (const body of bodies) {
      expectRefusal(await paywall(body, wrong), 401, 'INVALID_SIGNATURE')
      expectRefusal(await purchases(body, wrong), 401, 'INVALID_SIGNATURE')
      expectRefusal(await paywall(body), 400, 'INVALID_BODY')
      expectRefusal(await purchases(body), 400, 'INVALID_BODY')
    }
    for (const body of [{}, { event: 'text' }, { event: [] }, { event: null }])
      expectRefusal(await purchases(body), 400, 'INVALID_BODY')
    const notText = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])
    const broken = await send(`/webhooks/superwall?project_id=${project.id}`, notText, {
      'x-superwall-signature': hmac(notText),
    })
    expectRefusal(broken, 400, 'INVALID_BODY')
    expect(await stored()).toEqual([])
  })

  test('under the former secret as soon as there is another, or none', async () => {
    const body = asText({ event: 'paywall_open', user_id: 'someone' })
    expect((await paywall(body)).status).toBe(200)
    await connect('superwall', { webhook_secret: 'second' })
    await connect('revenuecat', { webhook_secret: 'second' })
    expectRefusal(await paywall(body), 401, 'INVALID_SIGNATURE')
    expect((await paywall(body, { 'x-superwall-signature': hmac(body, 'second') })).status).toBe(200)
    expectRefusal(await purchases(purchaseOf('someone')), 401, 'INVALID_SIGNATURE')
    expect((await purchases(purchaseOf('someone'), { authorization: 'bearer second' })).status).toBe(200)
    await connect('superwall')
    await connect('revenuecat')
    expectRefusal(await paywall(body), 404, 'NOT_CONFIGURED')
    expectRefusal(await purchases(purchaseOf('someone')), 404, 'NOT_CONFIGURED')
  })

  test('while the integration is off, after it is deleted, and under the secret of another project', async () => {
    const body = asText({ event: 'paywall_open', user_id: 'someone' })
    for (const provider of ['superwall', 'revenuecat']) {
      expect((await project.admin.patch(`/integrations/${provider}`, { is_active: false })).status).toBe(200)
    }
    expectRefusal(await paywall(body), 404, 'NOT_CONFIGURED')
    expectRefusal(await purchases(purchaseOf('someone')), 404, 'NOT_CONFIGURED')
    for (const provider of ['superwall', 'revenuecat']) {
      await project.admin.patch(`/integrations/${provider}`, { is_active: true })
      await project.admin.delete(`/integrations/${provider}`)
    }
    expectRefusal(await paywall(body), 404, 'NOT_CONFIGURED')
    expectRefusal(await purchases(purchaseOf('someone')), 404, 'NOT_CONFIGURED')
    const other = await harness.project()
    await connect('superwall', { webhook_secret: 'of the other' }, other)
    await connect('revenuecat', { webhook_secret: 'of the other' }, other)
    expectRefusal(await paywall(body, {}, `?project_id=${other.id}`), 401, 'INVALID_SIGNATURE')
    expectRefusal(await purchases(purchaseOf('someone'), {}, `?project_id=${other.id}`), 401, 'INVALID_SIGNATURE')
    expect(await other.sql('select from app.inbound_events')).toEqual([])
  })

  test('over 100 a second in a project; forged ones do not count', async () => {
    harness.setTime('2026-11-20T10:00:00Z')
    for (let i = 0; i < 5; i += 1) await purchases(purchaseOf('someone'), { authorization: 'Bearer other' })
    const answers: Answer[] = []
    for (let i = 0; i < 50; i += 1) {
      answers.push(
        ...(await Promise.all([purchases(purchaseOf('someone')), paywall({ event: 'open', user_id: `u${i}` })])),
      )
    }
    expect(answers.map(({ status }) => status)).toEqual(Array(100).fill(200))
    const over = await purchases(purchaseOf('someone'))
    expectRefusal(over, 429, 'RATE_LIMITED')
    expect(over.headers.get('retry-after')).toBe('1')
    expectRefusal(await paywall({ event: 'open', user_id: 'x' }), 429, 'RATE_LIMITED')
    harness.advance(1)
    expect((await purchases(purchaseOf('someone'))).status).toBe(200)
  })

  test('with 500 when it cannot be stored, so that the provider sends it again', async () => {
    await project.sql('alter table app.inbound_events add constraint nothing_more check (false) not valid')
    expectRefusal(await purchases(purchaseOf('someone')), 500, 'WEBHOOK_PROCESSING_FAILED')
    expectRefusal(await paywall({ event: 'open', user_id: 'x' }), 500, 'WEBHOOK_PROCESSING_FAILED')
    await project.sql('alter table app.inbound_events drop constraint nothing_more')
    expect((await purchases(purchaseOf('someone'))).status).toBe(200)
  })
})

describe('an event of the paywall provider', () => {
  test('becomes one engagement event, which moves streaks, XP and segments', async () => {
    const own = await harness.project()
    await connect('superwall', { webhook_secret: secret }, own)
    const made = await Promise.all([
      own.admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'paywall.paywall_open' }),
      own.admin.post('/xp/rules', { key: 'open', name: 'Open', event_name: 'paywall.paywall_open', amount: 7 }),
      own.admin.post('/segments', {
        ...{ key: 'openers', name: 'Openers' },
        rules: { source: 'event', event_name: 'paywall.paywall_open', measure: 'count', op: 'gte', value: 1 },
      }),
    ])
    expect(made.map(({ status }) => status)).toEqual([201, 201, 201])
    const user = await own.user()
    const body = { id: 'evt-1', event: 'paywall_open', user_id: user.id, paywall: { key: 'p1', products: ['a'] } }
    const query = `?project_id=${own.id}`
    for (let i = 0; i < 3; i += 1) expect((await paywall(body, {}, query)).status).toBe(200)
    await own.drain()
    await own.drain()
    const events = await own.sql(
      `select app_user_id, event_name, properties, source from app.engagement_events where event_name like 'paywall.%'`,
    )
    expect(events).toEqual([
      {
        ...{ app_user_id: user.id, event_name: 'paywall.paywall_open', source: 'webhook' },
        properties: { id: 'evt-1', paywall: { key: 'p1', products: ['a'] } },
      },
    ])
    expect((await user.get('/client/xp')).data.total).toBe(7)
    expect((await user.get('/client/streaks')).data).toMatchObject([{ key: 'daily', current_count: 1 }])
    expect((await own.admin.get(`/segments/openers/members/${user.id}/explain`)).data.member).toBe(true)
    // neither a replay nor the same event again counts twice
    const { data } = await own.admin.get('/integrations/superwall/events')
    expect((await own.admin.post(`/integrations/superwall/events/${data[0].id}/replay`)).status).toBe(202)
    await own.drain()
    expect((await own.admin.get('/integrations/superwall/events')).data).toMatchObject([{ outcome: 'duplicate' }])
    expect((await user.get('/client/xp')).data.total).toBe(7)
  })

  test("is taken in the vendor's own form and signature too", async () => {
    // superwall/docs, content/docs/integrations/webhooks/index.mdx
    const user = await project.user()
    const body = asText({
      ...{ object: 'event', type: 'renewal', projectId: 3827, applicationId: 1, timestamp: harness.now().getTime() },
      data: {
        ...{ id: '42fc6339-dc28-470b-a0fa-0d13c92d8b61:renewal', name: 'renewal', periodType: 'NORMAL', price: 9.99 },
        ...{ originalAppUserId: user.id, store: 'APP_STORE', productId: 'com.example.premium.monthly' },
      },
    })
    const key = Buffer.from('a secret of twenty-four b')
    await connect('superwall', { webhook_secret: `whsec_${key.toString('base64')}` })
    const sign = (seconds: number, text = body) => ({
      'svix-id': 'msg_1',
      'svix-timestamp': String(seconds),
      'svix-signature': `v1,AAAA v1,${createHmac('sha256', key).update(`msg_1.${seconds}.${text}`).digest('base64')}`,
    })
    const post = (headers: Record<string, string>) =>
      send(`/webhooks/superwall?project_id=${project.id}`, body, headers)
    const now = Math.floor(harness.now().getTime() / 1000)
    for (const headers of [
      sign(now - 301),
      sign(now + 302),
      sign(now, '{}'),
      { ...sign(now), 'svix-timestamp': `${now - 1}` },
    ])
      expectRefusal(await post(headers), 401, 'INVALID_SIGNATURE')
    expect((await post(sign(now))).status).toBe(200)
    expect((await post(sign(now - 299))).status).toBe(200)
    await project.drain()
    expect(await outcomes()).toEqual(['applied'])
    expect(
      await project.sql(`select event_name from app.engagement_events where app_user_id = $1 and source = 'webhook'`, [
        user.id,
      ]),
    ).toEqual([{ event_name: 'paywall.renewal' }])
  })

  test('is kept and marked when nothing can follow from it', async () => {
    const user = await project.user()
    const old = new Date(harness.now().getTime() - 31 * 86_400_000).toISOString()
    const cases: [body: string, outcome: string][] = [
      [asText({ event: 'open', user_id: 'nobody' }), 'unknown_user'],
      [asText({ event: 'open' }), 'without_effect'],
      [asText({ user_id: user.id }), 'without_effect'],
      [asText({ event: 7, user_id: user.id }), 'without_effect'],
      [asText({ event: 'x'.repeat(300), user_id: user.id }), 'malformed'],
      [asText({ event: 'open', user_id: user.id, timestamp: old }), 'malformed'],
      [asText({ event: 'open', user_id: user.id, text: 'x'.repeat(40_000) }), 'malformed'],
      [`{"event":"open","user_id":"${user.id}","text":"\\u0000"}`, 'malformed'],
    ]
    for (const [body] of cases) expect((await paywall(body)).status).toBe(200)
    await project.drain()
    const rows = await stored()
    expect(cases.map(([body]) => rows.find((row) => row.body === body)?.outcome)).toEqual(
      cases.map(([, outcome]) => outcome),
    )
    expect(
      await project.sql(`select from app.engagement_events where app_user_id = $1 and source = 'webhook'`, [user.id]),
    ).toEqual([])
  })

  test('is known again by id, by event_id, or by its body', async () => {
    const user = await project.user()
    const base = { event: 'open', user_id: user.id }
    for (const body of [
      { ...base, id: 'a' },
      { ...base, id: 'a', more: 1 },
      { ...base, event_id: 'b' },
      { ...base, event_id: 'b', more: 2 },
      { ...base, id: null, at: 1 },
      { ...base, id: null, at: 1 },
      { ...base, at: 2 },
    ])
      expect((await paywall(body)).status).toBe(200)
    expect((await stored()).map(({ event_key }) => event_key.replace(/(?<=^sha256 ).*/, '…')).sort()).toEqual([
      ...['id a', 'id b', 'sha256 …', 'sha256 …'],
    ])
  })
})

describe('received webhooks', () => {
  test('are listed, newest first, and processed again by administrators alone', async () => {
    const name = `customer-${randomUUID()}`
    await purchases(purchaseOf('nobody'))
    const late = { event: 'paywall_open', user_id: name }
    await paywall(late)
    await project.drain()
    const { data } = await project.admin.get('/integrations/superwall/events?outcome=unknown_user')
    expect(data).toEqual([
      {
        id: expect.any(String),
        provider: 'superwall',
        event_key: expect.stringMatching(/^sha256 [0-9a-f]{64}$/),
        outcome: 'unknown_user',
        body: JSON.stringify(late),
        received_at: expect.any(String),
        processed_at: expect.any(String),
      },
    ])
    expect((await project.admin.get('/integrations/superwall/events?outcome=applied')).data).toEqual([])
    const path = `/integrations/superwall/events/${data[0].id}/replay`
    const { data: user } = await project.admin.post('/users', { external_id: name })
    const again = await project.admin.post(path)
    expect([again.status, again.data.outcome]).toEqual([202, null])
    await project.drain()
    expect((await project.admin.get('/integrations/superwall/events')).data).toMatchObject([{ outcome: 'applied' }])
    expect(
      await project.sql(`select from app.engagement_events where app_user_id = $1 and source = 'webhook'`, [user.id]),
    ).toHaveLength(1)
    expect((await project.admin.get('/audit-events?action=integrations.replay')).data).toMatchObject([
      { target: { id: data[0].id } },
    ])
    expectRefusal(await project.admin.post(`/integrations/revenuecat/events/${data[0].id}/replay`), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.post(`/integrations/superwall/events/${randomUUID()}/replay`), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.post('/integrations/superwall/events/x/replay'), 400, 'INVALID_ID')
    expectRefusal(await project.admin.get('/integrations/superwall/events?limit=0'), 400, 'INVALID_INPUT')
    const stranger = await harness.developer()
    for (const answer of [
      await stranger.get(`/admin/projects/${project.id}/integrations/superwall/events`),
      await stranger.post(`/admin/projects/${project.id}${path}`),
    ])
      expectRefusal(answer, 403, 'PROJECT_FORBIDDEN')
    for (const role of ['app_user', 'app_server', 'app_anon', 'app_worker'] as const)
      await expect(project.as(role, {}, 'select from app.inbound_events')).rejects.toThrow(/permission denied/)
  })

  test('that fail stay queued, and nothing of them is half done', async () => {
    const user = await project.user()
    await purchases(purchaseOf(user.id))
    await project.sql('alter table app.entitlement_grants add constraint nothing_more check (false) not valid')
    await project.drain()
    expect(await outcomes()).toEqual([null])
    expect(await project.sql('select from app.subscription_events')).toEqual([])
    await project.sql('alter table app.entitlement_grants drop constraint nothing_more')
    harness.advance(1800)
    await project.drain()
    expect(await outcomes()).toEqual(['applied'])
    expect((await user.get('/client/entitlements')).data).toHaveLength(1)
  })

  test('are deleted after 90 days, and events whose user never appears after 400', async () => {
    const user = await project.user()
    await purchases(purchaseOf(user.id))
    await purchases(purchaseOf('nobody'))
    await project.drain()
    const count = async (table: string) => (await project.sql(`select count(*)::int as n from app.${table}`))[0].n
    const purge = (days: number) =>
      project.sql(
        `select internal.purge__inbound(), internal.purge__subscription_events() from set_config('app.clock', $1, true)`,
        [new Date(harness.now().getTime() + days * 86_400_000).toISOString()],
      )
    await purge(89)
    expect([await count('inbound_events'), await count('subscription_events')]).toEqual([2, 2])
    await purge(91)
    expect([await count('inbound_events'), await count('subscription_events')]).toEqual([0, 2])
    await purge(401)
    expect(await project.sql('select app_user_id from app.subscription_events')).toEqual([{ app_user_id: user.id }])
  })

  test('are received and processed by the server alone', async () => {
    for (const call of [
      `internal.inbound_receive('revenuecat', 'k', '{}')`,
      'internal.inbound_process(internal.new_id())',
      `internal.subscription_resume('purchase x')`,
      'internal.restore_begin(internal.new_id())',
      `internal.subscriptions_restore(internal.new_id(), '{}', '[]', true, now())`,
    ])
      await expect(project.sql(`select ${call} from set_config('app.caller', 'user', true)`)).rejects.toThrow(
        /not by user/,
      )
    await expect(
      project.sql(
        `select internal.inbound_replay('revenuecat', internal.new_id()) from set_config('app.caller', 'user', true)`,
      ),
    ).rejects.toThrow(/not by user/)
  })
})
