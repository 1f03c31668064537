import { describe, expect, test } from 'vitest'
import { held, none, shop, startMonetization } from '#test/support/monetization_project.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** What a project declares to sell, and what it adopts of the provider. */
const { provider, project, get, post, declare } = await startMonetization()

describe('definitions', () => {
  test('are empty at first, and then what was put, completed and sorted', async () => {
    expect((await get('definitions')).data).toEqual({ monetization: none })
    const answer = await declare(shop)
    expect(answer.status).toBe(200)
    expect(answer.data.monetization.offerings).toEqual([
      {
        key: 'default',
        display_name: 'Default',
        is_current: false,
        packages: [
          { offering_key: 'default', key: '$rc_monthly', product_key: 'monthly', position: 1 },
          { offering_key: 'default', key: '$rc_monthly', product_key: 'monthly_play', position: 1 },
        ],
      },
    ])
    expect(answer.data.monetization.entitlements).toEqual(shop.entitlements)
    expect(answer.data.monetization.paywalls).toEqual(shop.paywalls)
    expect((await get('definitions')).data).toEqual(answer.data)
    expect((await declare(answer.data.monetization)).data).toEqual(answer.data)
    expect((await declare(none)).data).toEqual({ monetization: none })
    expect(provider.calls).toEqual([])
  })

  test.each([
    ['a key twice', { products: [shop.products[0], { ...shop.products[1], key: 'monthly' }] }, 'products[1].key'],
    [
      'a product twice',
      { products: [shop.products[0], { ...shop.products[0], key: 'other' }] },
      'products[1].store_identifier',
    ],
    ['an unknown product', { entitlements: [{ key: 'a', product_keys: ['b'] }] }, 'entitlements[0].product_keys[0]'],
    [
      'an unknown product in a package',
      { offerings: [{ key: 'a', packages: [{ key: 'b', product_key: 'c' }] }] },
      'offerings[0].packages[0].product_key',
    ],
    [
      "another offering's package",
      { offerings: [{ key: 'a', packages: [{ key: 'b', offering_key: 'c' }] }] },
      'offerings[0].packages[0].offering_key',
    ],
    ['an unknown offering', { paywalls: [{ key: 'a', offering_key: 'b' }] }, 'paywalls[0].offering_key'],
    [
      'two paywalls of an offering',
      {
        offerings: [{ key: 'a' }],
        paywalls: [
          { key: 'p', offering_key: 'a' },
          { key: 'q', offering_key: 'a' },
        ],
      },
      'paywalls[1].offering_key',
    ],
    ['a store that is no word', { products: [{ ...shop.products[0], store: 'a:b' }] }, 'products.0.store'],
    ['a type that is none', { products: [{ ...shop.products[0], type: 'rent' }] }, 'products.0.type'],
    ['an empty key', { entitlements: [{ key: '' }] }, 'entitlements.0.key'],
    [
      'too many entitlements',
      { entitlements: Array.from({ length: 501 }, (_, n) => ({ key: `k${n}` })) },
      'entitlements',
    ],
    [
      'two positions',
      {
        offerings: [
          {
            key: 'a',
            packages: [
              { key: 'b', position: 1 },
              { key: 'b', position: 2 },
            ],
          },
        ],
      },
      'offerings[0].packages[0].position',
    ],
    [
      'a negative position',
      { offerings: [{ key: 'a', packages: [{ key: 'b', position: -1 }] }] },
      'offerings.0.packages.0.position',
    ],
  ])('refuse %s', async (_, monetization, field) => {
    const answer = await declare(monetization)
    expectRefusal(answer, 400, 'INVALID_BODY')
    expect(answer.error?.details?.['field']).toBe(`monetization.${field}`)
  })

  test('refuse two products of a store in a package', async () => {
    const second = { ...shop.products[0], key: 'b', store_identifier: 'com.x.b' }
    const packages = [
      { key: 'p', product_key: 'monthly' },
      { key: 'p', product_key: 'b' },
    ]
    expectRefusal(
      await declare({ products: [shop.products[0], second], offerings: [{ key: 'o', packages }] }),
      400,
      'INVALID_BODY',
    )
  })

  test('of two at once are one or the other', async () => {
    const of = (name: string) => ({ entitlements: Array.from({ length: 20 }, (_, n) => ({ key: `${name}${n}` })) })
    await Promise.all(Array.from({ length: 8 }, (_, n) => declare(of(n % 2 ? 'a' : 'b'))))
    const keys = (await get('definitions')).data.monetization.entitlements.map(({ key }: { key: string }) => key[0])
    expect([keys.length, new Set(keys).size]).toEqual([20, 1])
  })
})

describe('adopt', () => {
  test('declares everything as it is: the plan is clean, and a repetition writes nothing', async () => {
    provider.reset(held())
    const drift = await get('drift')
    expect(drift.data.has_drift).toBe(true)
    expect(
      drift.data.drift.map(({ object_type, identifier, last_applied_hash }: any) => [
        object_type,
        identifier,
        last_applied_hash,
      ]),
    ).toEqual([
      ['entitlement', 'gold', null],
      ['offering', 'sale', null],
      ['paywall', 'sale', null],
      ['product', 'app_store:com.x.yearly', null],
      ['product', 'play_store:yearly:base', null],
    ])
    expect((await get('plan')).data).toMatchObject({ clean: true, ops: [], drift: drift.data.drift })
    const counts = { adopted: 6, entitlements: 1, products: 2, offerings: 1, packages: 1, paywalls: 1 }
    const answer = await post('adopt', { adopt_all: true })
    expect([answer.status, answer.data]).toEqual([200, counts])
    expect((await get('definitions')).data).toEqual((await get('export')).data)
    expect((await get('drift')).data).toEqual({ has_drift: false, drift: [] })
    const plan = (await get('plan')).data
    expect(plan).toMatchObject({ clean: true, ops: [], human_floor: [] })
    const rows = () =>
      project.sql(
        'select object_type, identifier, xmin::text, definition from app.monetization_definitions order by 1, 2',
      )
    const before = await rows()
    expect((await post('adopt', { adopt_all: true })).data).toEqual(counts)
    expect(await rows()).toEqual(before)
    expect((await get('plan')).data.plan_hash).toBe(plan.plan_hash)
    expect(provider.calls.every(({ method }) => method === 'GET')).toBe(true)
  })

  test('takes single objects with what they refer to, and keeps what only the declaration has', async () => {
    provider.reset(held())
    await declare({
      products: [
        { key: 'year', store: 'app_store', store_identifier: 'com.x.yearly', store_metadata: { push_to_store: false } },
      ],
      entitlements: [{ key: 'gold', display_name: 'Old', description: 'All of it', product_keys: ['year'] }],
    })
    const answer = await post('adopt', { objects: [{ object_type: 'entitlement', identifier: 'gold' }] })
    expect(answer.data).toEqual({ adopted: 3, entitlements: 1, products: 2, offerings: 0, packages: 0, paywalls: 0 })
    const { monetization } = (await get('definitions')).data
    expect(monetization.entitlements).toEqual([
      { key: 'gold', display_name: 'Gold', description: 'All of it', product_keys: ['play_store_yearly:base', 'year'] },
    ])
    expect(monetization.products[1]).toMatchObject({ key: 'year', store_metadata: { push_to_store: false } })
    expect(monetization.offerings).toEqual([])
    expect((await post('adopt', { objects: [{ object_type: 'paywall', identifier: 'sale' }] })).data).toEqual({
      adopted: 5,
      entitlements: 0,
      products: 2,
      offerings: 1,
      packages: 1,
      paywalls: 1,
    })
  })

  test.each([
    [
      'a package',
      { objects: [{ object_type: 'package', identifier: 'sale/$rc_annual' }] },
      'PACKAGE_NOT_INDEPENDENTLY_ADOPTABLE',
    ],
    ['another type', { objects: [{ object_type: 'customer', identifier: 'x' }] }, 'INVALID_BODY'],
    ['what is not there', { objects: [{ object_type: 'offering', identifier: 'x' }] }, 'INVALID_BODY'],
    ['nothing', {}, 'INVALID_BODY'],
    ['an empty list', { objects: [] }, 'INVALID_BODY'],
    ['no boolean', { adopt_all: 'yes' }, 'INVALID_BODY'],
    [
      '501 objects',
      { objects: Array.from({ length: 501 }, () => ({ object_type: 'offering', identifier: 'x' })) },
      'INVALID_BODY',
    ],
    ['no identifier', { objects: [{ object_type: 'offering' }] }, 'INVALID_BODY'],
  ])('refuses %s', async (_, body, code) => {
    expectRefusal(await post('adopt', body), 400, code)
  })

  test('of 500 objects is taken', async () => {
    const entitlements = Array.from({ length: 500 }, (_, n) => ({
      id: `e${n}`,
      lookup_key: `k${n}`,
      display_name: 'K',
      products: [],
    }))
    provider.reset({ entitlements })
    const objects = entitlements.map(({ lookup_key }) => ({ object_type: 'entitlement', identifier: lookup_key }))
    expect((await post('adopt', { objects })).data).toMatchObject({ adopted: 500, entitlements: 500 })
  })
})

test('what is adopted can be declared again, whatever characters its keys have', async () => {
  provider.reset({
    products: [{ id: 'prod1', app_id: 'app1', store_identifier: 'année 1/2', type: 'subscription', display_name: 'A' }],
    entitlements: [{ id: 'entl1', lookup_key: 'Pro access', display_name: '', products: ['prod1'] }],
    offerings: [
      {
        ...{ id: 'ofrng1', lookup_key: 'main', display_name: '', is_current: false },
        packages: [{ id: 'pkge1', lookup_key: 'first', display_name: '', position: 0, products: ['prod1'] }],
      },
    ],
  })
  expect((await post('adopt', { adopt_all: true })).data).toMatchObject({ adopted: 4 })
  const { monetization } = (await get('definitions')).data
  expect(monetization.entitlements).toMatchObject([{ key: 'Pro access' }])
  const again = await declare(monetization)
  expect([again.status, again.data]).toEqual([200, { monetization }])
  expect((await get('plan')).data).toMatchObject({ clean: true, drift: [] })
  // the published document has no empty names
  provider.violations.length = 0
})

test('what has a key that cannot be stored is not adopted', async () => {
  provider.reset({
    entitlements: [{ id: 'entl1', lookup_key: 'k'.repeat(301), display_name: 'Pro', products: [] }],
  })
  expectRefusal(await post('adopt', { adopt_all: true }), 400, 'INVALID_BODY', 'objects')
  provider.violations.length = 0
})

test('the check of a declaration of thousands of products and packages does not compare each with each', async () => {
  const keys = Array.from({ length: 2000 }, (_, n) => `p${n}`)
  const products = keys.map((key) => ({ key, store: 'stripe', store_identifier: key }))
  const packages = (at: number) => keys.slice(at * 3, at * 3 + 10).map((key) => ({ key: `k${key}`, product_key: key }))
  const offerings = Array.from({ length: 500 }, (_, at) => ({ key: `o${at}`, packages: packages(at) }))
  const check = (more: object[]) => {
    const config = JSON.stringify({ products, offerings: [...offerings, ...more], entitlements: [], paywalls: [] })
    return project.sql(`set local statement_timeout = '8s'; select internal.monetization_check('${config}')`)
  }
  await check([])
  const broken = { key: 'broken', packages: ['p1', 'p2'].map((product_key) => ({ key: 'k', product_key })) }
  await expect(check([broken])).rejects.toMatchObject({ detail: expect.stringContaining('a package has one product') })
})
