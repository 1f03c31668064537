import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { runOperationJob } from '#test/support/jobs.ts'
import { type ProviderState, providerProject, readKey, startRevenueCat, writeKey } from '#test/support/monetization.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { monetizationExpire } from '#workers/tasks/monetization__apply.ts'

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
const namesOf = (ops: { op: string; object_type: string; identifier: string }[]) =>
  ops.map(({ op, object_type, identifier }) => `${op} ${object_type} ${identifier}`)

const monthly = {
  key: 'monthly',
  store: 'app_store',
  store_identifier: 'com.x.monthly',
  type: 'subscription',
  display_name: 'Monthly',
  store_metadata: { push_to_store: false },
}
const yearly = { ...monthly, key: 'yearly', store_identifier: 'com.x.yearly', display_name: 'Yearly' }
const play = {
  key: 'play',
  store: 'play_store',
  store_identifier: 'monthly:base',
  type: 'subscription',
  display_name: 'Play',
  store_metadata: {},
}
const shop = {
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
const sold = {
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

describe('an apply', () => {
  test('creates what is declared: it starts, runs and succeeds, and the plan is clean', async () => {
    await declare(shop)
    const { answer, ended, plan_hash } = await applied()
    expect(answer).toEqual({
      provider: 'revenuecat',
      operation_id: expect.any(String),
      status: 'started',
      plan_hash,
      confirm_required: false,
      gated: [],
      refused: [
        {
          op: 'update',
          object_type: 'paywall',
          identifier: 'main',
          code: 'MANUAL_STEP',
          manual_step: expect.stringContaining('Publish'),
        },
      ],
    })
    expect(ended).toMatchObject({
      type: 'monetization.apply',
      status: 'succeeded',
      confirm_required: false,
      plan_hash,
      failed_reason: null,
      progress: { done: 13, total: 13 },
    })
    expect(ended.result.applied).toHaveLength(13)
    expect(ended.result.refused).toEqual(answer.refused)
    expect(provider.shown()).toEqual(sold)
    expect(await planned()).toMatchObject({ clean: true, ops: [], drift: [] })
    expect((await get('drift')).data.has_drift).toBe(false)
    const writes = provider.calls.filter(({ method }) => method !== 'GET')
    expect(new Set(writes.map(({ key }) => key))).toEqual(new Set([writeKey]))
  })

  test('of a clean plan succeeds, and remembers what was declared as it is', async () => {
    await opened()
    await project.sql('delete from app.monetization_applied_objects')
    const { ended } = await applied()
    expect(ended).toMatchObject({ status: 'succeeded', progress: { done: 0, total: 0 } })
    provider.state.entitlements[0]!.display_name = 'Other'
    expect((await get('drift')).data.drift.map(({ identifier }: any) => identifier)).toEqual(['premium'])
  })

  test('changes names and positions, attaches to what is there', async () => {
    await opened()
    const [offering] = shop.offerings
    await declare({
      ...shop,
      entitlements: [{ key: 'premium', display_name: 'Premium Plus', product_keys: ['monthly', 'play', 'yearly'] }],
      offerings: [
        {
          ...offering,
          display_name: 'All',
          packages: offering!.packages.map((each) => ({ ...each, position: 3 - each.position })),
        },
      ],
    })
    const { ended } = await applied()
    expect(namesOf(ended.result.applied)).toEqual([
      'update entitlement premium',
      'attach entitlement premium/app_store:com.x.yearly',
      'update offering default',
      'update package default/$rc_annual',
      'update package default/$rc_monthly',
    ])
    expect(provider.shown().entitlements[0]).toMatchObject({
      display_name: 'Premium Plus',
      products: ['com.x.monthly', 'com.x.yearly', 'monthly:base'],
    })
    expect((await planned()).clean).toBe(true)
  })

  test('leaves what nobody declared or adopted alone', async () => {
    provider.reset({ entitlements: [{ id: 'e1', lookup_key: 'other', display_name: 'Other', products: [] }] })
    await opened()
    expect(provider.state.entitlements.map(({ lookup_key }) => lookup_key)).toEqual(['other', 'premium'])
    expect((await planned()).drift).toEqual([
      { object_type: 'entitlement', identifier: 'other', last_applied_hash: null, live_hash: expect.any(String) },
    ])
  })

  test('needs the write key', async () => {
    const own = await harness.project()
    await connect(own, { secret_api_key_write: undefined })
    const { plan_hash } = await planned(own)
    expectRefusal(await apply({ plan_hash }, own), 403, 'WRITE_KEY_REQUIRED')
    expect(await harness.control('select id from app.operations')).toEqual([])
  })

  test('with a write key that may not write fails, and names the step', async () => {
    const own = await harness.project()
    await connect(own, { secret_api_key_write: readKey })
    await declare(shop, own)
    const { data } = await apply({ plan_hash: (await planned(own)).plan_hash }, own)
    expect(await run(data.operation_id, own)).toMatchObject({
      status: 'failed',
      failed_reason: 'PROVIDER_WRITE_FAILED: create product app_store:com.x.monthly: status 403 authorization_error.',
    })
  })

  test('refuses a plan that has changed on either side', async () => {
    await declare(shop)
    const { plan_hash } = await planned()
    provider.state.entitlements.push({ id: 'x', lookup_key: 'x', display_name: 'X', products: [] })
    expectRefusal(await apply({ plan_hash }), 409, 'PLAN_CHANGED')
    provider.state.entitlements.pop()
    expect((await planned()).plan_hash).toBe(plan_hash)
    await declare({ ...shop, paywalls: [] })
    expectRefusal(await apply({ plan_hash }), 409, 'PLAN_CHANGED')
    await declare(shop)
    expect((await planned()).plan_hash).toBe(plan_hash)
    // and once more when the job begins
    const { data } = await apply({ plan_hash })
    await declare({ ...shop, paywalls: [] })
    expect(await run(data.operation_id)).toMatchObject({
      status: 'failed',
      failed_reason: expect.stringMatching(/^PLAN_CHANGED/),
    })
    expect(provider.created).toEqual([])
  })

  test.each([
    ['no hash', {}],
    ['another hash', { plan_hash: 'x' }],
    ['a confirm that is none', { plan_hash: 'a'.repeat(64), confirm: true }],
    ['another reconcile', { plan_hash: 'a'.repeat(64), reconcile: 'revert' }],
    ['a text for a boolean', { plan_hash: 'a'.repeat(64), allow_detach_live: 'yes' }],
  ])('refuses %s', async (_, body) => {
    expectRefusal(await apply(body), 400, 'INVALID_BODY')
  })

  test('confirms only its own hash', async () => {
    const { plan_hash } = await planned()
    expectRefusal(await apply({ plan_hash, confirm: 'b'.repeat(64) }), 409, 'CONFIRM_MISMATCH')
  })

  test('runs one at a time: of twenty at once one starts', async () => {
    await declare(shop)
    const { plan_hash } = await planned()
    const answers = await Promise.all(Array.from({ length: 20 }, () => apply({ plan_hash })))
    expect(answers.map(({ status }) => status).sort()).toEqual([202, ...Array(19).fill(409)])
    expect(new Set(answers.flatMap(({ error }) => error?.code ?? []))).toEqual(new Set(['ALREADY_RUNNING']))
    const { data } = answers.find(({ status }) => status === 202)!
    expectRefusal(await apply({ plan_hash, confirm: plan_hash }), 409, 'ALREADY_RUNNING')
    expect(await run(data.operation_id)).toMatchObject({ status: 'succeeded' })
    expect((await apply({ plan_hash: (await planned()).plan_hash })).status).toBe(202)
  })

  test('of a project does not hold up another', async () => {
    const own = await harness.project()
    await connect(own)
    expect((await apply({ plan_hash: (await planned()).plan_hash })).status).toBe(202)
    const { data } = await apply({ plan_hash: (await planned(own)).plan_hash }, own)
    expect(await run(data.operation_id, own)).toMatchObject({ status: 'succeeded' })
    expectRefusal(await project.admin.get(`/operations/${data.operation_id}`), 404, 'NOT_FOUND')
  })
})

describe('destructive ops', () => {
  const smaller = {
    ...shop,
    products: [monthly, play],
    offerings: [{ ...shop.offerings[0]!, packages: shop.offerings[0]!.packages.slice(0, 2) }],
  }

  test('wait for a confirmation, while additive ones run', async () => {
    await opened()
    await declare({
      ...smaller,
      entitlements: [...shop.entitlements, { key: 'extra', display_name: 'Extra', product_keys: [] }],
    })
    const { answer, ended, plan_hash } = await applied()
    expect(answer).toMatchObject({ status: 'started', confirm_required: true })
    expect(namesOf(answer.gated)).toEqual([
      'archive package default/$rc_annual',
      'archive product app_store:com.x.yearly',
    ])
    expect(ended).toMatchObject({
      status: 'waiting',
      confirm_required: true,
      plan_hash,
      progress: { done: 1, total: 3 },
    })
    expect(provider.state.entitlements.map(({ lookup_key }) => lookup_key)).toEqual(['premium', 'extra'])
    expect(provider.state.products).toHaveLength(3)

    const now = (await planned()).plan_hash
    expect(now).not.toBe(plan_hash)
    expectRefusal(await apply({ plan_hash: now }), 409, 'ALREADY_RUNNING')
    expectRefusal(await apply({ plan_hash: now, confirm: now }), 409, 'CONFIRM_MISMATCH')
    expectRefusal(await apply({ plan_hash, confirm: now }), 409, 'CONFIRM_MISMATCH')
    // a confirmation may leave the options of the apply out, but not change them
    for (const changed of [{ allow_detach_live: true }, { reconcile: 'adopt' }])
      expectRefusal(await apply({ plan_hash, confirm: plan_hash, ...changed }), 409, 'CONFIRM_MISMATCH')
    const confirmed = await apply({ plan_hash, confirm: plan_hash, allow_detach_live: false })
    expect([confirmed.status, confirmed.data]).toMatchObject([
      202,
      {
        operation_id: answer.operation_id,
        status: 'confirm_sent',
        plan_hash,
        confirm_required: false,
        gated: answer.gated,
      },
    ])
    // the same call again, as after a lost answer
    expect((await apply({ plan_hash, confirm: plan_hash })).data).toEqual(confirmed.data)
    expect(await run(answer.operation_id)).toMatchObject({
      status: 'succeeded',
      confirm_required: false,
      progress: { done: 3, total: 3 },
    })
    expect(provider.state.products.map(({ store_identifier }) => store_identifier)).toEqual([
      'com.x.monthly',
      'monthly:base',
    ])
    expect((await planned()).clean).toBe(true)
  })

  test('run at once when the plan is confirmed in advance', async () => {
    await opened()
    await declare(smaller)
    const { plan_hash } = await planned()
    const { answer, ended } = await applied({ confirm: plan_hash })
    expect(answer).toMatchObject({ status: 'started', confirm_required: false })
    expect(ended).toMatchObject({ status: 'succeeded' })
    expect((await planned()).clean).toBe(true)
  })

  test('of every kind go in the opposite order of their making', async () => {
    provider.reset({
      offerings: [{ id: 'o1', lookup_key: 'first', display_name: 'First', is_current: true, packages: [] }],
    })
    await opened()
    await declare({})
    const { plan_hash, ops } = await planned()
    expect(namesOf(ops)).toEqual([
      'archive paywall main',
      'archive offering default',
      'archive entitlement premium',
      'archive product app_store:com.x.monthly',
      'archive product app_store:com.x.yearly',
      'archive product play_store:monthly:base',
    ])
    await applied({ confirm: plan_hash })
    expect(provider.shown()).toMatchObject({
      products: [],
      entitlements: [],
      paywalls: [],
      offerings: [{ lookup_key: 'first' }],
    })
    expect(await project.sql('select * from app.monetization_applied_objects')).toEqual([])
  })

  test('are not confirmed when the provider has changed meanwhile', async () => {
    await opened()
    await declare(smaller)
    const { answer, plan_hash } = await applied()
    provider.state.entitlements[0]!.display_name = 'Changed'
    expectRefusal(await apply({ plan_hash, confirm: plan_hash }), 409, 'PLAN_CHANGED')
    expect(await operation(answer.operation_id)).toMatchObject({ status: 'waiting' })
    provider.state.entitlements[0]!.display_name = 'Premium'
    expect((await apply({ plan_hash, confirm: plan_hash })).status).toBe(202)
    // and not performed when it changes between the confirmation and the job
    provider.state.entitlements[0]!.display_name = 'Changed'
    expect(await run(answer.operation_id)).toMatchObject({
      status: 'failed',
      failed_reason: expect.stringMatching(/^PLAN_CHANGED/),
    })
    expect(provider.state.products).toHaveLength(3)
  })

  test('of a cancelled operation are never performed', async () => {
    await opened()
    await declare(smaller)
    const { answer, plan_hash } = await applied()
    expect((await project.admin.post(`/operations/${answer.operation_id}/cancel`)).data).toMatchObject({
      status: 'cancelled',
    })
    await run(answer.operation_id)
    expect(provider.state.products).toHaveLength(3)
    expect((await apply({ plan_hash })).status).toBe(202)
  })

  test('expire after 24 hours: the confirmation is refused once, and then a new apply begins', async () => {
    await opened()
    await declare(smaller)
    const { answer, plan_hash } = await applied()
    harness.advance(86_399)
    await monetizationExpire.run(services, { operation_id: answer.operation_id })
    expect(await operation(answer.operation_id)).toMatchObject({ status: 'waiting' })
    harness.advance(1)
    await signInAgain()
    expectRefusal(await apply({ plan_hash, confirm: plan_hash }), 409, 'CONFIRMATION_EXPIRED')
    expect(await operation(answer.operation_id)).toMatchObject({
      status: 'failed',
      confirm_required: false,
      failed_reason: expect.stringMatching(/^CONFIRMATION_EXPIRED/),
    })
    const again = await apply({ plan_hash, confirm: plan_hash })
    expect(again.data).toMatchObject({ status: 'started', confirm_required: false })
    expect(again.data.operation_id).not.toBe(answer.operation_id)
  })

  test('that nobody confirms end by themselves, and the late confirmation is told', async () => {
    await opened()
    await declare(smaller)
    const { answer, plan_hash } = await applied()
    const jobs = await harness.control(`select run_at, payload from graphile_worker._private_jobs where key = $1`, [
      `monetization expiry ${answer.operation_id}`,
    ])
    expect(jobs).toEqual([{ run_at: new Date('2026-12-02T10:00:00Z'), payload: { operation_id: answer.operation_id } }])
    harness.advance(86_400)
    await signInAgain()
    await monetizationExpire.run(services, { operation_id: answer.operation_id })
    expect(await operation(answer.operation_id)).toMatchObject({ status: 'failed' })
    expectRefusal(await apply({ plan_hash, confirm: plan_hash }), 409, 'CONFIRMATION_EXPIRED')
    expect((await apply({ plan_hash, confirm: plan_hash })).status).toBe(202)
  })

  test('an expired one does not hold up a new apply', async () => {
    await opened()
    await declare(smaller)
    const { answer, plan_hash } = await applied()
    harness.advance(90_000)
    await signInAgain()
    const again = await apply({ plan_hash })
    expect(again.data).toMatchObject({ status: 'started', confirm_required: true })
    expect(await operation(answer.operation_id)).toMatchObject({ status: 'failed' })
  })

  test('of twenty confirmations at once the operation runs once', async () => {
    await opened()
    await declare(smaller)
    const { answer, plan_hash } = await applied()
    const answers = await Promise.all(Array.from({ length: 20 }, () => apply({ plan_hash, confirm: plan_hash })))
    expect(new Set(answers.map(({ status, data }) => `${status} ${data.status} ${data.operation_id}`))).toEqual(
      new Set([`202 confirm_sent ${answer.operation_id}`]),
    )
    const before = provider.calls.length
    await Promise.all([run(answer.operation_id), run(answer.operation_id)])
    expect(await operation(answer.operation_id)).toMatchObject({ status: 'succeeded' })
    const removals = provider.calls.slice(before).filter(({ method }) => method === 'DELETE')
    expect(new Set(removals.map(({ path }) => path)).size).toBe(removals.length)
  })

  test('a confirmation that comes while additive ops run is remembered', async () => {
    await opened()
    await declare({ ...smaller, entitlements: [...shop.entitlements, { key: 'extra', product_keys: [] }] })
    const { plan_hash } = await planned()
    const { data } = await apply({ plan_hash })
    expect((await apply({ plan_hash, confirm: plan_hash })).data).toMatchObject({
      status: 'confirm_sent',
      operation_id: data.operation_id,
    })
    expect(await run(data.operation_id)).toMatchObject({ status: 'succeeded' })
    expect((await planned()).clean).toBe(true)
  })
})

describe('store products', () => {
  const pushed = {
    ...monthly,
    store_metadata: { push_to_store: true, duration: 'ONE_MONTH', subscription_group_name: 'Main' },
  }
  const coins = {
    key: 'coins',
    store: 'app_store',
    store_identifier: 'com.x.coins',
    type: 'consumable',
    store_metadata: { push_to_store: true },
  }

  test('always wait for a confirmation, also of a plan that was confirmed in advance', async () => {
    await declare({ products: [pushed, coins] })
    const { plan_hash } = await planned()
    const { answer, ended } = await applied({ confirm: plan_hash })
    expect(answer).toMatchObject({ status: 'started', confirm_required: true })
    expect(namesOf(answer.gated)).toEqual([
      'create store_product app_store:com.x.coins',
      'create store_product app_store:com.x.monthly',
    ])
    expect(ended).toMatchObject({ status: 'waiting' })
    expect(provider.shown().inStore).toEqual([])
    expect((await apply({ plan_hash, confirm: plan_hash })).data).toMatchObject({ status: 'confirm_sent' })
    expect(await run(answer.operation_id)).toMatchObject({ status: 'succeeded' })
    expect(provider.shown().inStore).toEqual(['com.x.coins', 'com.x.monthly'])
    expect((await planned()).clean).toBe(true)
    const bodies = provider.calls.filter(({ path }) => path.endsWith('/create_in_store')).map(({ body }) => body)
    expect(bodies).toEqual([{}, { store_information: { duration: 'ONE_MONTH', subscription_group_name: 'Main' } }])
  })

  test('that the store has already are not created again', async () => {
    await declare({ products: [coins] })
    const { answer, plan_hash } = await applied()
    provider.state.inStore.push('com.x.coins')
    await apply({ plan_hash, confirm: plan_hash })
    expect(await run(answer.operation_id)).toMatchObject({ status: 'succeeded' })
    expect(provider.created).toEqual(['product com.x.coins'])
    expect((await planned()).clean).toBe(true)
  })

  test('that lack an input are refused with what is attached to them; the rest runs', async () => {
    const incomplete = { ...monthly, store_metadata: { push_to_store: true } }
    await declare({
      products: [incomplete, play],
      entitlements: [{ key: 'premium', display_name: 'Premium', product_keys: ['monthly', 'play'] }],
    })
    const { answer, ended } = await applied()
    expect(
      answer.refused.map(({ op, object_type, identifier, code }: any) => [op, object_type, identifier, code]),
    ).toEqual([
      ['create', 'product', 'app_store:com.x.monthly', 'PRODUCT_PUSH_INPUT_MISSING'],
      ['attach', 'entitlement', 'premium/app_store:com.x.monthly', 'PRODUCT_PUSH_INPUT_MISSING'],
      ['create', 'store_product', 'app_store:com.x.monthly', 'PRODUCT_PUSH_INPUT_MISSING'],
    ])
    expect(ended).toMatchObject({ status: 'succeeded', progress: { done: 3, total: 3 } })
    expect(provider.shown().entitlements).toMatchObject([{ lookup_key: 'premium', products: ['monthly:base'] }])
  })

  test('without an app of their store, and those of the Play store, are left to a person', async () => {
    const gems = {
      key: 'gems',
      store: 'play_store',
      store_identifier: 'gems',
      type: 'consumable',
      store_metadata: { push_to_store: true, play_price_micros: 990000, play_currency: 'EUR' },
    }
    const roku = { key: 'roku', store: 'roku', store_identifier: 'r', type: 'subscription' }
    await declare({ products: [gems, roku] })
    const { answer, ended } = await applied()
    expect(
      answer.refused.map(({ op, object_type, identifier, code }: any) => [op, object_type, identifier, code]),
    ).toEqual([
      ['create', 'product', 'roku:r', 'STORE_APP_MISSING'],
      ['create', 'store_product', 'play_store:gems', 'MANUAL_STEP'],
    ])
    expect(ended).toMatchObject({ status: 'succeeded' })
    expect(provider.created).toEqual(['product gems'])
  })
})

describe('refused ops', () => {
  test('the current offering is neither set nor archived', async () => {
    await opened()
    await declare({
      ...shop,
      paywalls: [],
      offerings: [{ key: 'next', display_name: 'Next', is_current: true, packages: [] }],
    })
    const { answer, ended } = await applied({ confirm: (await planned()).plan_hash })
    expect(
      answer.refused.map(({ op, object_type, identifier, code }: any) => [op, object_type, identifier, code]),
    ).toEqual([
      ['set-current', 'offering', 'next', 'MANUAL_STEP'],
      ['archive', 'offering', 'default', 'CURRENT_OFFERING'],
    ])
    expect(ended).toMatchObject({ status: 'succeeded' })
    expect(provider.state.offerings.map(({ lookup_key, is_current }) => [lookup_key, is_current])).toEqual([
      ['default', true],
      ['next', false],
    ])
    // a person does it
    for (const offering of provider.state.offerings) offering.is_current = offering.lookup_key === 'next'
    const plan = await planned()
    expect(namesOf(plan.ops)).toEqual(['archive offering default'])
    expect((await applied({ confirm: plan.plan_hash })).ended).toMatchObject({ status: 'succeeded' })
    expect(provider.state.offerings).toHaveLength(1)
    // and back again is drift
    provider.state.offerings[0]!.is_current = false
    expect((await planned()).ops).toMatchObject([{ op: 'set-current', identifier: 'next', status: 'drift' }])
  })

  test('a product is changed by a person', async () => {
    await opened()
    await declare({ ...shop, products: [{ ...monthly, display_name: 'Each month' }, yearly, play] })
    const { answer, ended } = await applied()
    expect(answer.refused[0]).toMatchObject({ op: 'update', object_type: 'product', code: 'MANUAL_STEP' })
    expect(ended).toMatchObject({ status: 'succeeded', progress: { done: 0, total: 0 } })
    expect((await planned()).ops).toHaveLength(1)
  })

  const without = (key: string) => ({
    ...shop,
    entitlements: [
      { ...shop.entitlements[0]!, product_keys: shop.entitlements[0]!.product_keys.filter((each) => each !== key) },
    ],
  })

  test.each([
    ['by which a customer has access', 'com.x.monthly', '2027-01-01', true],
    ['whose access has ended', 'com.x.monthly', '2026-11-30', false],
    ['of another product', 'com.x.yearly', '2027-01-01', false],
    ['of a base plan of it', 'com.x.monthly:base', '2027-01-01', true],
  ])('a detach of a product %s', async (_, product, ends, isRefused) => {
    await opened()
    await grant('premium', product, ends)
    await declare(without('monthly'))
    const { plan_hash } = await planned()
    const { answer } = await applied({ confirm: plan_hash })
    expect(answer.refused.some(({ code }: any) => code === 'LIVE_CUSTOMERS')).toBe(isRefused)
    expect(provider.shown().entitlements[0]!.products).toEqual(
      isRefused ? ['com.x.monthly', 'monthly:base'] : ['monthly:base'],
    )
  })

  test('a detach that live customers feel is done when it is allowed', async () => {
    await opened()
    await grant('premium', 'monthly')
    await declare(without('play'))
    const first = await applied({ confirm: (await planned()).plan_hash })
    expect(first.answer.refused).toContainEqual({
      op: 'detach',
      object_type: 'entitlement',
      identifier: 'premium/play_store:monthly:base',
      code: 'LIVE_CUSTOMERS',
      manual_step: expect.stringContaining('allow_detach_live'),
    })
    const { answer, ended } = await applied({ confirm: (await planned()).plan_hash, allow_detach_live: true })
    expect(namesOf(answer.refused)).toEqual(['update paywall main'])
    expect(ended).toMatchObject({ status: 'succeeded' })
    expect(provider.shown().entitlements[0]!.products).toEqual(['com.x.monthly'])
  })

  test('an archive of an entitlement or a product that live customers have is refused likewise', async () => {
    await opened()
    await grant('premium', 'com.x.monthly')
    await declare({ products: [yearly] })
    const { answer } = await applied({ confirm: (await planned()).plan_hash })
    expect(answer.refused.map(({ object_type, identifier, code }: any) => [object_type, identifier, code])).toEqual([
      ['offering', 'default', 'CURRENT_OFFERING'],
      ['entitlement', 'premium', 'LIVE_CUSTOMERS'],
      ['product', 'app_store:com.x.monthly', 'LIVE_CUSTOMERS'],
    ])
  })

  test('an archive of an entitlement that a customer has by a promotional grant is refused', async () => {
    await opened()
    const { id } = await project.user()
    await project.sql(
      `insert into app.entitlement_grants (app_user_id, entitlement_id, source, source_ref, store, period_type, purchase_date)
       values ($1, 'premium', 'promotional', '', 'promotional', 'promotional', '2026-11-01')`,
      [id],
    )
    await declare({ products: [monthly, yearly, play], offerings: shop.offerings, paywalls: shop.paywalls })
    const { answer } = await applied({ confirm: (await planned()).plan_hash })
    expect(answer.refused).toContainEqual(
      expect.objectContaining({ op: 'archive', identifier: 'premium', code: 'LIVE_CUSTOMERS' }),
    )
  })

  test('a product takes the place of another of its store in a package, once that has left', async () => {
    await opened()
    const swapped = {
      ...shop,
      offerings: [
        {
          ...shop.offerings[0]!,
          packages: [
            { key: '$rc_monthly', product_key: 'yearly', position: 1 },
            ...shop.offerings[0]!.packages.slice(1),
          ],
        },
      ],
    }
    await declare(swapped)
    const { plan_hash, ops } = await planned()
    expect(namesOf(ops)).toEqual([
      'detach package default/$rc_monthly/app_store:com.x.monthly',
      'attach package default/$rc_monthly/app_store:com.x.yearly',
    ])
    await grant('premium', 'com.x.monthly')
    const first = await applied({ confirm: plan_hash })
    expect(first.answer.refused.slice(0, 2).map(({ code }: any) => code)).toEqual(['LIVE_CUSTOMERS', 'PLACE_TAKEN'])
    const second = await applied({ confirm: (await planned()).plan_hash, allow_detach_live: true })
    expect(second.ended).toMatchObject({ status: 'succeeded' })
    expect((await planned()).clean).toBe(true)
  })
})

describe('reconcile', () => {
  const disturbed = async () => {
    await opened()
    provider.state.entitlements[0]!.display_name = 'Silver'
    provider.state.offerings[0]!.packages = provider.state.offerings[0]!.packages.filter(
      ({ lookup_key }) => lookup_key !== '$rc_annual',
    )
    provider.state.paywalls = []
  }

  test('by default undoes what changed at the provider', async () => {
    await disturbed()
    expect((await applied()).ended).toMatchObject({ status: 'succeeded' })
    expect(provider.shown()).toEqual(sold)
  })

  test('adopt declares what changed, also what is gone, and performs the rest', async () => {
    await disturbed()
    await declare({
      ...shop,
      entitlements: [...shop.entitlements, { key: 'extra', display_name: 'Extra', product_keys: ['yearly'] }],
    })
    const { answer, ended } = await applied({ reconcile: 'adopt' })
    expect(ended).toMatchObject({ status: 'succeeded' })
    expect(namesOf(ended.result.applied)).toEqual([
      'create entitlement extra',
      'attach entitlement extra/app_store:com.x.yearly',
    ])
    expect(answer.gated).toEqual([])
    const { monetization } = (await get('definitions')).data
    expect(monetization.entitlements.map(({ key, display_name }: any) => [key, display_name])).toEqual([
      ['extra', 'Extra'],
      ['premium', 'Silver'],
    ])
    expect(monetization.offerings[0].packages.map(({ key }: any) => key)).toEqual(['$rc_monthly', '$rc_monthly'])
    expect(monetization.paywalls).toEqual([])
    expect(await planned()).toMatchObject({ clean: true, drift: [] })
  })

  test('adopt also takes over which offering is current and how a product is, which no call could undo', async () => {
    const second = { key: 'second', display_name: 'Second', packages: [] }
    const [first] = shop.offerings
    await declare({ ...shop, offerings: [{ ...first, is_current: true }, second] })
    await applied({})
    expect((await planned()).clean).toBe(true)
    for (const offering of provider.state.offerings) offering.is_current = offering.lookup_key === 'second'
    provider.state.products[0]!.display_name = 'Every month'
    expect((await planned()).ops.map(({ op, object_type, status }: any) => [op, object_type, status])).toEqual([
      ['update', 'product', 'drift'],
      ['set-current', 'offering', 'drift'],
    ])
    const { answer, ended } = await applied({ reconcile: 'adopt' })
    expect(ended).toMatchObject({ status: 'succeeded' })
    expect(answer.refused.filter(({ object_type }: any) => object_type !== 'paywall')).toEqual([])
    const { monetization } = (await get('definitions')).data
    expect(monetization.offerings.map(({ key, is_current }: any) => [key, is_current])).toEqual([
      ['default', false],
      ['second', false],
    ])
    expect(monetization.products.find(({ key }: any) => key === 'monthly').display_name).toBe('Every month')
    expect(await planned()).toMatchObject({ clean: true, drift: [] })
  })
})

describe('a provider in trouble', () => {
  const steady: Partial<ProviderState> = {}
  const isWrite = ({ method }: { method: string }) => method !== 'GET'

  test.each([
    ['500 without effect', 'before', { status: 500 }],
    ['500 after the effect', 'after', { status: 500 }],
    ['a lost answer', 'after', 'hang up'],
    ['a lost request', 'before', 'hang up'],
    ['423 without effect', 'before', { status: 423 }],
    ['429 with Retry-After', 'before', { status: 429, headers: { 'retry-after': '0' } }],
    ['an answer without an id', 'after', { status: 201, body: '{}' }],
  ] as const)('%s at every write changes nothing about the end', async (_, when, reply) => {
    provider.reset(steady)
    await declare(shop)
    const { plan_hash } = await planned()
    const { data } = await apply({ plan_hash })
    const troubled = new Set<string>()
    provider.interfere((call) => {
      const name = `${call.method} ${call.path} ${JSON.stringify(call.body)}`
      if (!isWrite(call) || troubled.has(name) || troubled.size > 6) return null
      troubled.add(name)
      return { when, reply: reply as never }
    })
    expect(await run(data.operation_id)).toMatchObject({ status: 'succeeded' })
    expect(troubled.size).toBeGreaterThan(4)
    expect(provider.shown()).toEqual(sold)
    expect(new Set(provider.created).size).toBe(provider.created.length)
  })

  test('stops at the first failure, without rollback, and goes on from there in the next apply', async () => {
    await declare(shop)
    const { plan_hash } = await planned()
    const { data } = await apply({ plan_hash })
    provider.interfere(({ method, path }) =>
      method === 'POST' && path.endsWith('/offerings')
        ? {
            when: 'before',
            reply: { status: 422, body: { object: 'error', type: 'unprocessable_entity_error', message: writeKey } },
          }
        : null,
    )
    const failed = await run(data.operation_id)
    expect(failed).toMatchObject({
      status: 'failed',
      progress: { done: 6, total: 13 },
      failed_reason: 'PROVIDER_WRITE_FAILED: create offering default: status 422 unprocessable_entity_error.',
    })
    expect(provider.created).toEqual([
      'product com.x.monthly',
      'product com.x.yearly',
      'product monthly:base',
      'entitlement premium',
    ])
    provider.interfere(() => null)
    // what was done counts as applied: nothing has drifted
    const plan = await planned()
    expect([plan.drift, plan.ops.length]).toEqual([[], 7])
    expect((await applied()).ended).toMatchObject({ status: 'succeeded' })
    expect(provider.shown()).toEqual(sold)
  })

  test('that cannot be read ends the operation', async () => {
    await declare(shop)
    const { data } = await apply({ plan_hash: (await planned()).plan_hash })
    provider.interfere(() => ({ when: 'before', reply: { status: 401 } }))
    expect(await run(data.operation_id)).toMatchObject({
      status: 'failed',
      failed_reason: 'PROVIDER_READ_FAILED: status 401.',
    })
  })

  test('that is disconnected meanwhile ends the operation', async () => {
    await declare(shop)
    const { data } = await apply({ plan_hash: (await planned()).plan_hash })
    await project.admin.patch('/integrations/revenuecat', { is_active: false })
    expect(await run(data.operation_id)).toMatchObject({
      status: 'failed',
      failed_reason: expect.stringContaining('revenuecat'),
    })
    await project.admin.patch('/integrations/revenuecat', { is_active: true })
  })
})

test('keys are in no operation, job or audit row', async () => {
  await opened()
  const stored = await Promise.all([
    harness.control('select * from app.operations'),
    harness.control('select * from app.monetization_applies'),
    harness.control('select * from graphile_worker._private_jobs'),
    harness.control('select * from app.audit_events'),
    project.sql('select * from app.audit_events'),
  ])
  expect(JSON.stringify(stored)).not.toContain(readKey)
  expect(JSON.stringify(stored)).not.toContain(writeKey)
  const actions = stored[3].map(({ action }) => action)
  expect(actions).toContain('monetization.apply')
})
