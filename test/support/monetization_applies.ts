import { afterAll, afterEach, beforeEach, expect } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { runOperationJob } from '#test/support/jobs.ts'
import { providerProject, readKey, startRevenueCat, writeKey } from '#test/support/monetization.ts'

export const monthly = {
  key: 'monthly',
  store: 'app_store',
  store_identifier: 'com.x.monthly',
  type: 'subscription',
  display_name: 'Monthly',
  store_metadata: { push_to_store: false },
}
export const yearly = { ...monthly, key: 'yearly', store_identifier: 'com.x.yearly', display_name: 'Yearly' }
export const play = {
  key: 'play',
  store: 'play_store',
  store_identifier: 'monthly:base',
  type: 'subscription',
  display_name: 'Play',
  store_metadata: {},
}
export const shop = {
  products: [monthly, yearly, play],
  entitlements: [{ key: 'premium', display_name: 'Premium', product_keys: ['monthly', 'play'] }],
  offerings: [
    {
      key: 'default',
      display_name: 'Default',
      packages: [
        { key: '$rc_monthly', product_key: 'monthly', position: 1 },
        { key: '$rc_monthly', product_key: 'play', position: 1 },
        { key: '$rc_annual', product_key: 'yearly', position: 2 },
      ],
    },
  ],
  paywalls: [{ key: 'main', offering_key: 'default' }],
}
export const sold = {
  products: [
    { app_id: 'app1', store_identifier: 'com.x.monthly', type: 'subscription', display_name: 'Monthly' },
    { app_id: 'app1', store_identifier: 'com.x.yearly', type: 'subscription', display_name: 'Yearly' },
    { app_id: 'app2', store_identifier: 'monthly:base', type: 'subscription', display_name: 'Play' },
  ],
  entitlements: [{ lookup_key: 'premium', display_name: 'Premium', products: ['com.x.monthly', 'monthly:base'] }],
  offerings: [
    {
      lookup_key: 'default',
      display_name: 'Default',
      is_current: true,
      packages: [
        { lookup_key: '$rc_annual', display_name: '$rc_annual', position: 2, products: ['com.x.yearly'] },
        {
          lookup_key: '$rc_monthly',
          display_name: '$rc_monthly',
          position: 1,
          products: ['com.x.monthly', 'monthly:base'],
        },
      ],
    },
  ],
  paywalls: ['default'],
  inStore: [],
}

export const namesOf = (ops: { op: string; object_type: string; identifier: string }[]) =>
  ops.map(({ op, object_type, identifier }) => `${op} ${object_type} ${identifier}`)

/** A project that is connected to a subscription provider, whose definitions are applied; each test begins with nothing declared and nothing at the provider. */
export const startApplies = async () => {
  const provider = await startRevenueCat()
  const harness = await startHarness({ env: { REVENUECAT_BASE_URL: provider.url } })
  afterAll(() => provider.close())
  harness.setTime('2026-12-01T10:00:00Z')
  const project = await harness.project()
  let admin = project.admin
  /** A day later the session of the owner has ended. */
  const signInAgain = async () => {
    const developer = await harness.signIn(project.developer)
    const path = (name: string) => `/admin/projects/${project.id}${name}`
    admin = {
      ...developer,
      get: (name: string) => developer.get(path(name)),
      post: (name: string, body?: unknown) => developer.post(path(name), body),
    } as typeof admin
  }
  const { services } = harness.running

  const config = { secret_api_key: readKey, secret_api_key_write: writeKey, project_id: providerProject }
  const connect = (on: Project, more: object = {}) =>
    on.admin.post('/integrations', { provider: 'revenuecat', config: { ...config, ...more } })
  await connect(project)

  beforeEach(() => {
    harness.setTime('2026-12-01T10:00:00Z')
    admin = project.admin
    provider.reset()
  })
  afterEach(async () => {
    expect(provider.violations).toEqual([])
    await project.sql('delete from app.monetization_definitions')
    await project.sql('delete from app.monetization_applied_objects')
    await project.sql('delete from app.entitlement_grants')
    await harness.control(`delete from app.operations`)
  })

  const get = (path: string, on: Project = project) => on.admin.get(`/monetization/${path}`)
  const declare = async (monetization: object, on: Project = project) => {
    const answer = await on.admin.put('/monetization/definitions', { monetization })
    expect([answer.status, answer.error]).toEqual([200, undefined])
  }
  const planned = async (on: Project = project) => (await get('plan', on)).data
  const apply = (body: object, on: Project | null = null) => (on?.admin ?? admin).post('/monetization/apply', body)
  const run = (operationId: string, on: Project = project) =>
    runOperationJob(harness, on, 'monetization__apply', operationId)
  const operation = async (id: string) => (await admin.get(`/operations/${id}`)).data
  /** Plans, starts and runs. */
  const applied = async (options: object = {}) => {
    const { plan_hash } = await planned()
    const answer = await apply({ plan_hash, ...options })
    expect(answer.status, answer.text).toBe(202)
    return { answer: answer.data, ended: await run(answer.data.operation_id), plan_hash }
  }
  /** The shop, applied. */
  const opened = async () => {
    await declare(shop)
    const { ended } = await applied()
    expect(ended).toMatchObject({ status: 'succeeded', failed_reason: null })
  }
  const grant = async (entitlement: string, product: string, ends = '2027-01-01') => {
    const { id } = await project.user()
    await project.sql(
      `insert into app.entitlement_grants (app_user_id, entitlement_id, source, source_ref, product_id, store, period_type, purchase_date, expiration_date)
       values ($1, $2, 'subscription_provider', $3, $4, 'app_store', 'normal', '2026-11-01', $5)`,
      [id, entitlement, id, product, ends],
    )
  }
  return {
    provider,
    harness,
    project,
    services,
    connect,
    signInAgain,
    get,
    declare,
    planned,
    apply,
    run,
    operation,
    applied,
    opened,
    grant,
  }
}
