import { describe, expect, test } from 'vitest'
import { monthly, namesOf, play, shop, startApplies } from '#test/support/monetization_applies.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { monetizationExpire } from '#workers/tasks/monetization__apply.ts'

const { provider, harness, project, services, signInAgain, declare, planned, apply, run, operation, applied, opened } =
  await startApplies()

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

  test('archive at the provider, where nothing is lost, and bring it back when it is declared again', async () => {
    provider.reset({
      offerings: [{ id: 'o1', lookup_key: 'first', display_name: 'First', is_current: true, packages: [] }],
    })
    await opened()
    const held = provider.shown()
    await declare({})
    await applied({ confirm: (await planned()).plan_hash })
    const { products, entitlements, offerings } = provider.state.archived
    expect(products.map(({ store_identifier }) => store_identifier).sort()).toEqual([
      'com.x.monthly',
      'com.x.yearly',
      'monthly:base',
    ])
    expect([entitlements, offerings].map(([each]) => each?.lookup_key)).toEqual(['premium', 'default'])
    expect((await planned()).clean).toBe(true)
    const { drift } = (await project.admin.get('/monetization/drift')).data
    expect(drift.map(({ identifier }: any) => identifier)).toEqual(['first'])
    // inactive objects are gone: for what is declared again there is something to do
    await declare(shop)
    expect(namesOf((await planned()).ops)).toContain('create product app_store:com.x.monthly')
    expect((await applied({ confirm: (await planned()).plan_hash })).ended).toMatchObject({ status: 'succeeded' })
    expect(provider.state.archived).toEqual({ products: [], entitlements: [], offerings: [] })
    expect(provider.shown()).toMatchObject({ products: held.products, entitlements: held.entitlements })
    expect((await planned()).ops.filter(({ op }: any) => op === 'create')).toEqual([])
  })

  test('what somebody has archived at the provider has drifted, and is brought back', async () => {
    await opened()
    const { archived } = provider.state
    archived.products.push(...provider.state.products.splice(0, 1))
    archived.entitlements.push(...provider.state.entitlements.splice(0, 1))
    const { data } = await project.admin.get('/monetization/drift')
    expect(data.drift.map(({ identifier }: any) => identifier)).toEqual(
      expect.arrayContaining(['premium', 'app_store:com.x.monthly']),
    )
    expect((await applied({ confirm: (await planned()).plan_hash })).ended).toMatchObject({ status: 'succeeded' })
    expect(archived).toEqual({ products: [], entitlements: [], offerings: [] })
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
