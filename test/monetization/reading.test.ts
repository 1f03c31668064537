import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { providerProject, readKey, writeKey } from '#test/support/monetization.ts'
import { held, none, shop, startMonetization } from '#test/support/monetization_project.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Reading the provider: export, plan and drift. */
const { provider, harness, project, connect, get, post, declare } = await startMonetization()

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
