import { afterAll, afterEach, beforeEach, expect } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { providerProject, readKey, startRevenueCat, writeKey } from '#test/support/monetization.ts'

/** A project that is connected to a subscription provider; each test begins with neither a declaration nor anything at the provider. */
export const startMonetization = async () => {
  const provider = await startRevenueCat()
  const harness = await startHarness({ env: { REVENUECAT_BASE_URL: provider.url } })
  afterAll(() => provider.close())
  const project = await harness.project()
  const connect = (on: Project, config: object = {}) =>
    on.admin.post('/integrations', {
      provider: 'revenuecat',
      config: { secret_api_key: readKey, secret_api_key_write: writeKey, project_id: providerProject, ...config },
    })
  await connect(project)
  beforeEach(() => provider.reset())
  afterEach(async () => {
    expect(provider.violations).toEqual([])
    await project.sql('delete from app.monetization_definitions')
    await project.sql('delete from app.monetization_applied_objects')
  })
  const get = (path: string, on: Project = project) => on.admin.get(`/monetization/${path}`)
  const post = (path: string, body: object, on: Project = project) => on.admin.post(`/monetization/${path}`, body)
  const declare = (monetization: object, on: Project = project) =>
    on.admin.put('/monetization/definitions', { monetization })
  return { provider, harness, project, connect, get, post, declare }
}

export const shop = {
  products: [
    {
      key: 'monthly',
      store: 'app_store',
      store_identifier: 'com.x.monthly',
      type: 'subscription',
      display_name: 'Monthly',
      store_metadata: { push_to_store: false },
    },
    { key: 'monthly_play', store: 'play_store', store_identifier: 'monthly:base', type: 'subscription' },
  ],
  entitlements: [
    { key: 'premium', display_name: 'Premium', description: 'Everything', product_keys: ['monthly', 'monthly_play'] },
  ],
  offerings: [
    {
      key: 'default',
      display_name: 'Default',
      packages: [
        { key: '$rc_monthly', product_key: 'monthly', position: 1 },
        { key: '$rc_monthly', product_key: 'monthly_play', position: 1 },
      ],
    },
  ],
  paywalls: [{ key: 'main', offering_key: 'default', template: 'tall', display: { color: 'blue' } }],
}
export const none = { entitlements: [], products: [], offerings: [], paywalls: [] }

export const held = () => ({
  products: [
    { id: 'prod1', app_id: 'app1', store_identifier: 'com.x.yearly', type: 'subscription', display_name: 'Yearly' },
    { id: 'prod2', app_id: 'app2', store_identifier: 'yearly:base', type: 'subscription', display_name: null },
  ],
  entitlements: [{ id: 'entl1', lookup_key: 'gold', display_name: 'Gold', products: ['prod1', 'prod2'] }],
  offerings: [
    {
      id: 'ofrng1',
      lookup_key: 'sale',
      display_name: 'Sale',
      is_current: true,
      packages: [
        { id: 'pkge1', lookup_key: '$rc_annual', display_name: 'Annual', position: 1, products: ['prod1', 'prod2'] },
      ],
    },
  ],
  paywalls: [{ id: 'pw1', name: 'Spring', offering_id: 'ofrng1', published_at: 5 }],
})
