import { createHmac, randomUUID } from 'node:crypto'
import { afterEach, beforeEach } from 'vitest'
import { type Answer, freshIp, type Project, startHarness } from '#test/support/harness.ts'

export const secret = 'whsec-of-ours'
export const hmac = (body: string | Buffer, key = secret) => createHmac('sha256', key).update(body).digest('hex')
export const asText = (body: unknown) => (typeof body === 'string' ? body : JSON.stringify(body))

/** A project with both providers of webhooks connected, in which each test begins without events. */
export const startInbound = async () => {
  const harness = await startHarness({ env: { LOG_LEVEL: 'silent' } })
  const project = await harness.project()
  const connect = (provider: string, config: object = {}, to: Project = project) =>
    to.admin.post('/integrations', { provider, config: { secret_api_key: 'sk', api_key: 'pk', ...config } })
  beforeEach(async () => {
    await project.sql(
      'truncate app.inbound_events, app.subscription_events, app.subscriptions, app.entitlement_grants cascade',
    )
    await project.sql('delete from app.rate_limits')
    await connect('revenuecat', { webhook_secret: secret })
    await connect('superwall', { webhook_secret: secret })
  })
  afterEach(() => harness.setTime(null))
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
  return { harness, project, connect, send, purchases, paywall, stored, outcomes, purchaseOf }
}
