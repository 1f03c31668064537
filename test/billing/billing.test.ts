import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { loadBilling } from '#server/providers/billing.ts'
import { createTestBilling } from '#test/support/billing.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { temporaryFolder } from '#test/support/process.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

/** What a project pays for, and to whom. */
const { provider, state, signed, webhook } = createTestBilling()
const harness = await startHarness({ env: { LOG_LEVEL: 'silent' }, providers: { billing: provider } })
beforeEach(() => {
  state.outage = null
  harness.setTime(null)
})

const at = (text: string) => new Date(text)
const subscribed = (project: Project, more: Record<string, unknown> = {}) => ({
  id: `evt_${project.id}`,
  projectId: project.id,
  occurredAt: at('2026-11-01T10:00:00Z'),
  tier: 'pro' as const,
  status: 'active' as const,
  customerRef: 'cus_1',
  endsAt: at('2026-12-01T10:00:00Z'),
  cancelAtPeriodEnd: false,
  ...more,
})
const deliver = async (text: string, signature: string, url = harness.url) => {
  const response = await fetch(`${url}/webhooks/billing`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-test-signature': signature },
    body: text,
  })
  return { status: response.status, json: (await response.json()) as any }
}
const tell = async (event: Record<string, unknown>) => {
  const { text, signature } = webhook(event)
  const { status, json } = await deliver(text, signature)
  expect(status).toBe(200)
  return json.data
}
const read = async (project: Project) => (await project.admin.get('/billing')).data

describe('billing of a project', () => {
  test('without a subscription', async () => {
    harness.setTime('2026-12-17T12:00:00Z')
    const project = await harness.project()
    const { data, status, text } = await project.admin.get('/billing')
    expect(status, text).toBe(200)
    expect(data).toMatchObject({
      tier: 'free',
      effective_tier: 'free',
      comped: false,
      subscription: null,
      spend_ceiling_usd: null,
      configured: true,
      period: { start: '2026-12-01T00:00:00.000Z', end: '2027-01-01T00:00:00.000Z' },
      limits: { media_storage: 262144000, mau: null, function_ms: null },
      usage: { media_storage: { used: 0, limit: 262144000 }, events: { used: 0, limit: null } },
    })
    expect(Object.keys(data.usage)).toEqual(Object.keys(data.limits))
  })

  test('follows what the provider reports, in whatever order', async () => {
    const project = await harness.project()
    const { post } = project.admin
    expectRefusal(await post('/billing/portal'), 409, 'NO_SUBSCRIPTION')
    expectRefusal(await post('/billing/cancel'), 409, 'NO_SUBSCRIPTION')
    expectInvalid(await post('/billing/checkout', { tier: 'free' }), 'tier')
    expect((await post('/billing/checkout', { tier: 'pro' })).data).toEqual({
      checkout_url: `https://pay.example/checkout/${project.id}`,
    })
    expect(state.checkouts.at(-1)).toEqual({
      project: { id: project.id, tier: 'free', customerRef: null },
      tier: 'pro',
    })

    expect(await tell(subscribed(project))).toEqual({ received: true, applied: true })
    // a repeated event, an older one and one of another kind change nothing
    expect(await tell(subscribed(project, { tier: 'enterprise' }))).toEqual({ received: true, applied: false })
    const older = { id: 'evt_older', status: 'ended', occurredAt: at('2026-10-31T10:00:00Z') }
    expect(await tell(subscribed(project, older))).toEqual({ received: true, applied: false })
    expect(await tell({ type: 'invoice' })).toEqual({ received: true, applied: false })
    const gone = { id: 'evt_gone', projectId: '00000000-0000-4000-8000-000000000000' }
    expect(await tell(subscribed(project, gone))).toEqual({ received: true, applied: false })
    expect(await read(project)).toMatchObject({
      tier: 'pro',
      effective_tier: 'pro',
      limits: { media_storage: null },
      subscription: { tier: 'pro', status: 'active', ends_at: '2026-12-01T10:00:00.000Z', cancel_at_period_end: false },
    })
    expectRefusal(await post('/billing/checkout', { tier: 'enterprise' }), 409, 'ALREADY_SUBSCRIBED')
    expect((await post('/billing/portal')).data).toEqual({ url: 'https://pay.example/portal/cus_1' })

    // the provider knows of no subscription any more, and has not said so yet
    expectRefusal(await post('/billing/cancel'), 409, 'NO_SUBSCRIPTION')
    state.periods.set(project.id, at('2026-12-05T00:00:00Z'))
    const cancelled = {
      tier: 'pro',
      status: 'active',
      ends_at: '2026-12-05T00:00:00.000Z',
      cancel_at_period_end: true,
    }
    expect((await post('/billing/cancel')).data).toEqual(cancelled)
    expect((await read(project)).subscription).toEqual(cancelled)
    await tell(subscribed(project, { id: 'evt_end', status: 'ended', occurredAt: at('2026-12-05T00:00:00Z') }))
    expect(await read(project)).toMatchObject({ tier: 'free', subscription: { status: 'ended' } })
    expect((await post('/billing/checkout', { tier: 'pro' })).status).toBe(200)
    expect((await post('/billing/portal')).status).toBe(200)
    const rows = await harness.control(
      `select action, count(*)::int as n from app.audit_events where target_id = $1 and action ~ '^(billing|projects.update)' group by 1 order by 1`,
      [project.id],
    )
    expect(rows).toEqual([
      { action: 'billing.cancel', n: 2 },
      { action: 'billing.checkout', n: 2 },
      { action: 'billing.portal', n: 2 },
      { action: 'projects.update', n: 2 },
    ])
  })

  test('two events at once are both stored, and the newer one is what counts', async () => {
    const project = await harness.project()
    const events = Array.from({ length: 8 }, (_, index) =>
      subscribed(project, {
        id: `evt_race_${index}`,
        occurredAt: new Date(Date.UTC(2026, 10, 1 + index)),
        tier: index === 7 ? 'enterprise' : 'pro',
      }),
    )
    await Promise.all(events.map(tell))
    expect(await read(project)).toMatchObject({ tier: 'enterprise', subscription: { tier: 'enterprise' } })
  })

  test('a forged webhook is refused, and the provider may be out of order', async () => {
    const project = await harness.project()
    const { text } = webhook(subscribed(project))
    expect(await deliver(text, 'ab'.repeat(32))).toMatchObject({
      status: 401,
      json: { error: { code: 'INVALID_SIGNATURE' } },
    })
    // signed bodies that are not what the interface says, or that the provider's code throws at
    for (const body of [
      ...[
        { tier: 'gold' },
        { status: 'paused' },
        { id: '' },
        { id: 'evt\0' },
        { id: 7 },
        { projectId: 'p' },
        { occurredAt: 'yesterday' },
        { occurredAt: '+010000-01-01T00:00:00Z' },
        { endsAt: '-000001-01-01T00:00:00Z' },
        { customerRef: 'c\0' },
        { customerRef: undefined },
        { cancelAtPeriodEnd: null },
      ].map((more) => webhook(subscribed(project, more))),
      signed('{'),
      signed('null'),
    ])
      expect(await deliver(body.text, body.signature), body.text).toMatchObject({
        status: 400,
        json: { error: { code: 'INVALID_BODY' } },
      })
    expect((await read(project)).tier).toBe('free')
    await tell(subscribed(project))
    state.outage = new Error('connection refused')
    const { post } = project.admin
    expectRefusal(await post('/billing/cancel'), 502, 'BILLING_CANCEL_FAILED')
    expectRefusal(await post('/billing/portal'), 502, 'PROVIDER_FAILED')
    await tell(subscribed(project, { id: 'evt_over', status: 'ended', occurredAt: at('2026-11-02T00:00:00Z') }))
    expectRefusal(await post('/billing/checkout', { tier: 'pro' }), 502, 'PROVIDER_FAILED')
  })

  test('forged webhooks from one address are limited', async () => {
    const own = await startHarness({ env: { GENERAL_RATE_LIMITS: 'on' }, providers: { billing: provider } })
    own.setTime('2026-11-24T00:00:00Z')
    const { text } = webhook({ type: 'invoice' })
    const statuses = new Set<number>()
    for (let count = 0; count < 5000 && !statuses.has(429); count += 1)
      statuses.add((await deliver(text, 'ab'.repeat(32), own.url)).status)
    expect([...statuses]).toEqual([401, 429])
  })
})

describe('the provider of an installation', () => {
  test('none: nothing can be bought, and nothing is received', async () => {
    const own = await startHarness()
    const project = await own.project()
    const { post } = project.admin
    expect((await project.admin.get('/billing')).data).toMatchObject({ configured: false, subscription: null })
    expectRefusal(await post('/billing/checkout', { tier: 'pro' }), 409, 'BILLING_NOT_CONFIGURED')
    expectRefusal(await post('/billing/portal'), 409, 'BILLING_NOT_CONFIGURED')
    expectRefusal(await post('/billing/cancel'), 409, 'BILLING_NOT_CONFIGURED')
    expect(await deliver('{}', '', own.url)).toMatchObject({ status: 404, json: { error: { code: 'NOT_CONFIGURED' } } })
  })

  test('is a module, whose mistakes are named at the start', async () => {
    const folder = await temporaryFolder()
    const write = (name: string, text: string) => {
      const file = join(folder, name)
      writeFileSync(file, text)
      return file
    }
    const methods = 'createCheckout() {}, portalUrl() {}, cancelAtPeriodEnd() {}, handleWebhook() {}'
    const good = write('good.mjs', `export default ({ publicUrl }) => ({ name: 'acme', url: publicUrl(), ${methods} })`)
    const url = () => 'https://api.example.com'
    expect(await loadBilling(good, url)).toMatchObject({ name: 'acme', url: url() })
    expect((await loadBilling(undefined, url)).name).toBe('none')
    for (const [name, text, problem] of [
      ['none.mjs', `export default () => ({ name: 'none', ${methods} })`, 'must return'],
      ['part.mjs', `export default () => ({ name: 'acme', createCheckout() {} })`, 'must return'],
      ['broken.mjs', 'export default () => { throw new Error("no key") }', 'no key'],
    ] as const)
      await expect(loadBilling(write(name, text), url)).rejects.toThrow(problem)
  })
})
