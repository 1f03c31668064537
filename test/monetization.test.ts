import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { providerProject, readKey, startRevenueCat, writeKey } from '#test/support/monetization.ts'
import { expectRefusal } from '#test/support/refusals.ts'

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

const shop = {
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
const none = { entitlements: [], products: [], offerings: [], paywalls: [] }

const held = () => ({
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

describe('reading the provider', () => {
  test('export shows what it holds, over pages of every list', async () => {
    provider.reset(held())
    const whole = await get('export')
    expect(whole.data).toEqual({
      monetization: {
        entitlements: [
          {
            key: 'gold',
            display_name: 'Gold',
            description: null,
            product_keys: ['app_store_com.x.yearly', 'play_store_yearly:base'],
          },
        ],
        products: [
          {
            key: 'app_store_com.x.yearly',
            store: 'app_store',
            store_identifier: 'com.x.yearly',
            type: 'subscription',
            display_name: 'Yearly',
            store_metadata: {},
          },
          {
            key: 'play_store_yearly:base',
            store: 'play_store',
            store_identifier: 'yearly:base',
            type: 'subscription',
            display_name: null,
            store_metadata: {},
          },
        ],
        offerings: [
          {
            key: 'sale',
            display_name: 'Sale',
            is_current: true,
            packages: [
              { offering_key: 'sale', key: '$rc_annual', product_key: 'app_store_com.x.yearly', position: 1 },
              { offering_key: 'sale', key: '$rc_annual', product_key: 'play_store_yearly:base', position: 1 },
            ],
          },
        ],
        paywalls: [
          { key: 'sale', offering_key: 'sale', template: null, display: { name: 'Spring', is_published: true } },
        ],
      },
    })
    provider.pages(1)
    const before = provider.calls.length
    expect((await get('export')).data).toEqual(whole.data)
    expect(provider.calls.length - before).toBeGreaterThan(before)
    expect(new Set(provider.calls.map(({ key }) => key))).toEqual(new Set([readKey]))
  })

  test('an offering of several packages is read over pages', async () => {
    const packages = Array.from({ length: 5 }, (_, n) => ({
      id: `pkge${n}`,
      lookup_key: `p${n}`,
      display_name: 'P',
      position: n + 1,
      products: [],
    }))
    provider.reset({ offerings: [{ ...held().offerings[0]!, packages }] })
    provider.pages(2)
    const { offerings } = (await get('export')).data.monetization
    expect(offerings[0].packages.map(({ key }: { key: string }) => key)).toEqual(['p0', 'p1', 'p2', 'p3', 'p4'])
  })

  const broken = [
    ['refuses', { status: 401 }, 401],
    ['forbids', { status: 403 }, 403],
    ['fails', { status: 500 }, 500],
    ['answers no JSON', { status: 200, body: '<html>' }, 200],
    ['answers something else', { status: 200, body: { items: [{ id: 5 }] } }, 200],
    ['asks for a minute', { status: 429, headers: { 'retry-after': '60' } }, 429],
    ['hangs up', 'hang up', null],
  ] as const
  test.each(broken)('a provider that %s: 502 on every route', async (_, reply, status) => {
    // a project of its own, because failures open its circuit
    const own = await harness.project()
    await connect(own)
    provider.interfere(() => ({ when: 'before', reply: reply as never }))
    const calls = [
      () => get('plan', own),
      () => get('drift', own),
      () => get('export', own),
      () => post('adopt', { adopt_all: true }, own),
      () => post('apply', { plan_hash: 'a'.repeat(64) }, own),
    ]
    for (const call of calls) {
      const answer = await call()
      expectRefusal(answer, 502, 'PROVIDER_READ_FAILED')
      expect(answer.error?.details).toEqual({ status })
    }
  })

  test('a 429 with a short Retry-After is waited for', async () => {
    provider.interfere((_call, n) =>
      n === 2 ? { when: 'before', reply: { status: 429, headers: { 'retry-after': '0' } } } : null,
    )
    expect((await get('drift')).data).toEqual({ has_drift: false, drift: [] })
  })

  test('pages that go round in a circle end', async () => {
    provider.interfere(({ path }) =>
      path.endsWith('/apps')
        ? { when: 'before', reply: { status: 200, body: { items: [], next_page: '/x?starting_after=a' } } }
        : null,
    )
    expectRefusal(await get('plan'), 502, 'PROVIDER_READ_FAILED')
  })

  test('text that no database stores is the fault of the provider', async () => {
    for (const [name, status] of [
      ['a\u0000b', 502],
      ['a\ud800b', 502],
      ['a\\u0000b', 200],
    ] as const) {
      provider.interfere(({ path }) =>
        path.endsWith('/entitlements')
          ? {
              when: 'before',
              reply: {
                status: 200,
                body: {
                  items: [
                    { id: 'e9', lookup_key: 'nine', display_name: name, products: { items: [], next_page: null } },
                  ],
                  next_page: null,
                },
              },
            }
          : null,
      )
      const answer = await get('plan')
      expect(answer.status, JSON.stringify(name)).toBe(status)
      if (status === 502) expectRefusal(answer, 502, 'PROVIDER_READ_FAILED')
    }
  })

  test('is refused without a connection, without its project, and when it is switched off', async () => {
    const bare = await harness.project()
    const routes = () => [
      get('plan', bare),
      get('drift', bare),
      get('export', bare),
      post('adopt', { adopt_all: true }, bare),
      post('apply', { plan_hash: 'a'.repeat(64) }, bare),
    ]
    const refusedAll = async () => {
      for (const answer of await Promise.all(routes())) expectRefusal(answer, 400, 'MONETIZATION_NOT_CONFIGURED')
    }
    await refusedAll()
    expect((await get('definitions', bare)).data).toEqual({ monetization: none })
    await connect(bare, { project_id: undefined })
    await refusedAll()
    await connect(bare)
    await bare.admin.patch('/integrations/revenuecat', { is_active: false })
    await refusedAll()
    expect(provider.calls).toEqual([])
  })

  test('is for the owner only', async () => {
    const stranger = await harness.developer()
    const path = `/admin/projects/${project.id}/monetization`
    for (const name of ['plan', 'drift', 'export', 'definitions'])
      expectRefusal(await stranger.get(`${path}/${name}`), 403, 'PROJECT_FORBIDDEN')
    expectRefusal(await stranger.put(`${path}/definitions`, { monetization: none }), 403, 'PROJECT_FORBIDDEN')
    expectRefusal(await stranger.post(`${path}/adopt`, { adopt_all: true }), 403, 'PROJECT_FORBIDDEN')
    expectRefusal(await stranger.post(`${path}/apply`, { plan_hash: 'a'.repeat(64) }), 403, 'PROJECT_FORBIDDEN')
    expectRefusal(await project.server.get(`${path}/plan`), 401, 'INVALID_DEVELOPER_TOKEN')
    expectRefusal(await project.developer.get(`/admin/projects/${randomUUID()}/monetization/plan`), 404, 'NOT_FOUND')
    expect(provider.calls).toEqual([])
  })
})

describe('plan', () => {
  test('of nothing is clean', async () => {
    expect((await get('plan')).data).toEqual({
      provider: 'revenuecat',
      rc_project_id: providerProject,
      plan_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      clean: true,
      ops: [],
      store_floor: [],
      human_floor: [],
      drift: [],
      validation: [],
    })
  })

  test('creates what is declared, what others need first', async () => {
    await declare(shop)
    const { data } = await get('plan')
    expect(
      data.ops.map(({ op, object_type, identifier, status }: any) => [op, object_type, identifier, status]),
    ).toEqual([
      ['create', 'product', 'app_store:com.x.monthly', 'pending'],
      ['create', 'product', 'play_store:monthly:base', 'pending'],
      ['create', 'entitlement', 'premium', 'pending'],
      ['attach', 'entitlement', 'premium/app_store:com.x.monthly', 'pending'],
      ['attach', 'entitlement', 'premium/play_store:monthly:base', 'pending'],
      ['create', 'offering', 'default', 'pending'],
      ['create', 'package', 'default/$rc_monthly', 'pending'],
      ['attach', 'package', 'default/$rc_monthly/app_store:com.x.monthly', 'pending'],
      ['attach', 'package', 'default/$rc_monthly/play_store:monthly:base', 'pending'],
      ['create', 'paywall', 'main', 'pending'],
    ])
    expect([data.clean, data.validation, data.store_floor]).toEqual([false, [], []])
    expect(data.human_floor.map(({ code, product_key }: any) => [code, product_key])).toEqual([
      ['APP_STORE_PRICE', 'monthly'],
      ['APP_STORE_PRODUCT_MISSING', 'monthly'],
      ['APP_STORE_REVIEW', 'monthly'],
      ['PLAY_STORE_PRODUCT', 'monthly_play'],
    ])
  })

  test('says what the declaration lacks', async () => {
    const product = (key: string, store: string, type: string | null, store_metadata: object) => ({
      key,
      store,
      store_identifier: key,
      type,
      store_metadata,
    })
    await declare({
      products: [
        product('typeless', 'stripe', null, {}),
        product('undecided', 'app_store', 'consumable', {}),
        product('pushed', 'app_store', 'subscription', { push_to_store: true }),
        product('complete', 'app_store', 'subscription', {
          push_to_store: true,
          duration: 'ONE_MONTH',
          subscription_group_name: 'Main',
        }),
        product('coins', 'play_store', 'consumable', {
          push_to_store: true,
          play_price_micros: 1.5,
          play_currency: 'usd',
        }),
        product('gems', 'play_store', 'consumable', {
          push_to_store: true,
          play_price_micros: 1990000,
          play_currency: 'USD',
        }),
        product('subscribed', 'play_store', 'subscription', {}),
      ],
      offerings: [
        { key: 'a', is_current: true },
        { key: 'b', is_current: true },
      ],
    })
    const { data } = await get('plan')
    expect(data.validation.map(({ code, identifier }: any) => [code, identifier])).toEqual([
      ['MULTIPLE_CURRENT_OFFERINGS', 'a'],
      ['MULTIPLE_CURRENT_OFFERINGS', 'b'],
      ['PRODUCT_PUSH_INPUT_MISSING', 'app_store:pushed'],
      ['PRODUCT_PUSH_INPUT_MISSING', 'app_store:undecided'],
      ['PRODUCT_PUSH_INPUT_MISSING', 'play_store:coins'],
      ['PRODUCT_TYPE_REQUIRED', 'stripe:typeless'],
    ])
    expect(data.validation.find(({ identifier }: any) => identifier === 'play_store:coins').detail).toMatch(
      /play_price_micros.*play_currency/,
    )
    expect(data.store_floor).toEqual([
      {
        code: 'STORE_APP_MISSING',
        product_key: 'typeless',
        store: 'stripe',
        title: expect.any(String),
        detail: expect.any(String),
        location: null,
      },
    ])
    provider.reset({
      apps: [
        { id: 'a1', type: 'app_store' },
        { id: 'a2', type: 'app_store' },
        { id: 'p', type: 'play_store' },
        { id: 's', type: 'stripe' },
      ],
    })
    const floor = async () =>
      (await get('plan')).data.store_floor.map(({ code, product_key }: any) => [code, product_key])
    await declare({
      products: [
        product('one', 'app_store', 'consumable', { push_to_store: false }),
        product('web', 'rc_billing', 'subscription', {}),
      ],
    })
    expect(await floor()).toEqual([
      ['STORE_APP_AMBIGUOUS', 'one'],
      ['STORE_APP_MISSING', 'web'],
      ['STORE_NOT_WRITABLE', 'web'],
    ])
    await declare({ products: [product('one', 'app_store', 'consumable', { push_to_store: false, app_id: 'a2' })] })
    expect(await floor()).toEqual([])
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

test('after the provider changed, drift names the objects, and the plan undoes the changes', async () => {
  provider.reset(held())
  await post('adopt', { adopt_all: true })
  provider.state.entitlements[0]!.display_name = 'Silver'
  provider.state.offerings[0]!.packages = []
  provider.state.paywalls = []
  const { data } = await get('drift')
  expect(
    data.drift.map(({ object_type, identifier, live_hash }: any) => [object_type, identifier, live_hash === null]),
  ).toEqual([
    ['entitlement', 'gold', false],
    ['offering', 'sale', false],
    ['paywall', 'sale', true],
  ])
  const plan = (await get('plan')).data
  expect(plan.drift).toEqual(data.drift)
  expect(plan.ops.map(({ op, object_type, identifier, status }: any) => [op, object_type, identifier, status])).toEqual(
    [
      ['update', 'entitlement', 'gold', 'drift'],
      ['create', 'package', 'sale/$rc_annual', 'drift'],
      ['attach', 'package', 'sale/$rc_annual/app_store:com.x.yearly', 'drift'],
      ['attach', 'package', 'sale/$rc_annual/play_store:yearly:base', 'drift'],
      ['create', 'paywall', 'sale', 'drift'],
    ],
  )
})

test('keys are neither returned nor logged', async () => {
  const answers = await Promise.all([
    get('plan'),
    get('drift'),
    get('export'),
    get('definitions'),
    post('adopt', { adopt_all: true }),
  ])
  provider.interfere(() => ({
    when: 'before',
    reply: { status: 401, body: { type: readKey, message: `${readKey} ${writeKey}` } },
  }))
  answers.push(await get('plan'))
  const stored = await project.sql('select * from app.monetization_definitions, app.integrations')
  const trail = await project.sql('select * from app.audit_events')
  for (const text of [...answers.map((answer) => answer.text), JSON.stringify(stored), JSON.stringify(trail)]) {
    expect(text).not.toContain(readKey)
    expect(text).not.toContain(writeKey)
  }
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
