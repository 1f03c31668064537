import { describe, expect, test } from 'vitest'
import { readKey, writeKey } from '#test/support/monetization.ts'
import { namesOf, shop, sold, startApplies } from '#test/support/monetization_applies.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const { provider, harness, project, connect, get, declare, planned, apply, run, applied, opened } = await startApplies()

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
