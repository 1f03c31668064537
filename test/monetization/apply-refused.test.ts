import { describe, expect, test } from 'vitest'
import { monthly, namesOf, play, shop, startApplies, yearly } from '#test/support/monetization_applies.ts'

const { provider, project, declare, planned, applied, opened, grant } = await startApplies()

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

  test('a customer whose product was restored under the id of the provider, or under none, is a live customer', async () => {
    await opened()
    const id = provider.state.products.find(({ store_identifier }) => store_identifier === 'com.x.monthly')!.id
    for (const product of [id, null]) {
      await project.sql('delete from app.entitlement_grants')
      const holder = await project.user()
      await project.sql(
        `insert into app.entitlement_grants (app_user_id, entitlement_id, source, source_ref, product_id, store, period_type, purchase_date)
         values ($1, 'premium', 'subscription_provider', 'x', $2, 'app_store', 'normal', '2026-11-01')`,
        [holder.id, product],
      )
      await declare(without('monthly'))
      const { answer } = await applied({ confirm: (await planned()).plan_hash })
      expect(answer.refused).toContainEqual(
        expect.objectContaining({ op: 'detach', object_type: 'entitlement', code: 'LIVE_CUSTOMERS' }),
      )
      await declare(shop)
    }
    await project.sql('delete from app.entitlement_grants')
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
