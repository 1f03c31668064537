import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeEach, expect } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'
import { startRevenueCat } from '#test/support/revenuecat.ts'

export const day = 86_400_000

/** A project that is connected to a provider of subscriptions, which forgets all customers after each test. */
export const startRestores = async () => {
  const provider = await startRevenueCat()
  const harness = await startHarness({ env: { REVENUECAT_BASE_URL: provider.url, LOG_LEVEL: 'silent' } })
  afterAll(provider.close)
  const project = await harness.project()
  const now = () => harness.now().getTime()
  const connect = (config: object = {}) =>
    project.admin.post('/integrations', {
      provider: 'revenuecat',
      config: { secret_api_key: provider.key, project_id: provider.project, ...config },
    })
  beforeEach(async () => {
    await project.sql('delete from app.rate_limits')
    await connect()
  })
  afterEach(() => {
    harness.setTime(null)
    provider.customers.clear()
    provider.requests.splice(0)
    provider.respondBy(() => false)
    provider.setPageSize(100)
  })

  const someone = async () => {
    const { id } = await project.user()
    return { id, ...project.onBehalfOf(id) }
  }
  const restore = (user: Client) => user.post('/client/entitlements/restore')
  const restored = async (user: Client) => {
    const answer = await restore(user)
    expect(answer.status, answer.text).toBe(200)
    return answer.data as { restored_count: number; entitlements: any[] }
  }
  const entitled = async (user: Client) => (await user.get('/client/entitlements')).data
  const tell = async (event: Record<string, unknown>) => {
    const [{ outcome }] = await project.sql(
      `select internal.subscription_ingest($1) as outcome from set_config('app.caller', 'worker', true) a, set_config('app.clock', $2, true) b`,
      [
        JSON.stringify({
          ...{ id: randomUUID(), type: 'INITIAL_PURCHASE', event_timestamp_ms: now(), entitlement_ids: ['premium'] },
          ...{ product_id: 'monthly', store: 'APP_STORE', period_type: 'NORMAL', purchased_at_ms: now() },
          ...{ expiration_at_ms: now() + 30 * day, ...event },
        }),
        harness.now().toISOString(),
      ],
    )
    return outcome
  }
  const subscriptions = async (user: { id: string }) =>
    (await project.admin.get(`/subscriptions?user_id=${user.id}`)).data as any[]
  return { provider, harness, project, now, connect, someone, restore, restored, entitled, tell, subscriptions }
}
