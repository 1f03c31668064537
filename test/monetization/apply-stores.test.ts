import { describe, expect, test } from 'vitest'
import { monthly, namesOf, play, shop, sold, startApplies } from '#test/support/monetization_applies.ts'

const { provider, get, declare, planned, apply, run, applied, opened } = await startApplies()

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
