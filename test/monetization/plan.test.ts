import fc from 'fast-check'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'

/** Properties of the planner, a pure function in SQL, against a model of the provider that is written here. */
const harness = await startHarness()
const project = await harness.project()

type Product = {
  key: string
  store: string
  store_identifier: string
  type: string
  display_name: string | null
  store_metadata?: object
}
type Package = { key: string; position: number; products: string[] }
type State = {
  apps: { id: string; type: string }[]
  products: Product[]
  entitlements: { key: string; display_name: string; products: string[] }[]
  offerings: { key: string; display_name: string; is_current: boolean; packages: Package[] }[]
  paywalls: { key: string; offering: string; is_published: boolean }[]
}
type Op = { op: string; object_type: string; identifier: string; status: string; args: any; gate: string | null }
type Plan = { plan_hash: string; clean: boolean; ops: Op[]; drift: { object_type: string; identifier: string }[] }

const apps = [
  { id: 'app1', type: 'app_store' },
  { id: 'app2', type: 'play_store' },
]
const identifiers = ['app_store:a', 'app_store:b', 'play_store:a', 'play_store:c']
const name = fc.constantFrom('One', 'Two')
const some = fc.subarray(identifiers)
/** At most one product of a store, as a package has. */
const oneOfEach = some.map((ids) =>
  ids.filter((id, n) => ids.findIndex((other) => other.split(':')[0] === id.split(':')[0]) === n),
)
const subset = <T>(keys: readonly string[], value: (key: string) => fc.Arbitrary<T>) =>
  fc.subarray([...keys]).chain((chosen) => fc.tuple(...chosen.map(value)) as fc.Arbitrary<T[]>)

const packages = subset(['p', 'q', 'r'], (key) =>
  fc.record({ key: fc.constant(key), position: fc.integer({ min: 1, max: 3 }), products: oneOfEach }),
)
/** A state without references to what is missing. */
const state: fc.Arbitrary<State> = fc
  .record({
    products: subset(identifiers, (id) => {
      const [store = '', store_identifier = ''] = id.split(':')
      return fc.record({
        key: fc.constant(id),
        store: fc.constant(store),
        store_identifier: fc.constant(store_identifier),
        type: fc.constantFrom('subscription', 'consumable'),
        display_name: name,
      })
    }),
    entitlements: subset(['gold', 'silver'], (key) =>
      fc.record({ key: fc.constant(key), display_name: name, products: some }),
    ),
    offerings: subset(['main', 'sale', 'test'], (key) =>
      fc.record({ key: fc.constant(key), display_name: name, is_current: fc.constant(false), packages }),
    ),
    current: fc.nat(2),
    paywalls: fc.subarray(['main', 'sale', 'test']),
  })
  .map(({ products, entitlements, offerings, current, paywalls }) => {
    const has = (id: string) => products.some(({ key }) => key === id)
    return {
      apps,
      products,
      entitlements: entitlements.map((each) => ({ ...each, products: each.products.filter(has) })),
      offerings: offerings.map((each, n) => ({
        ...each,
        is_current: n === current,
        packages: each.packages.map((one) => ({ ...one, products: one.products.filter(has) })),
      })),
      paywalls: paywalls
        .filter((key) => offerings.some((offering) => offering.key === key))
        .map((key) => ({ key, offering: key, is_published: true })),
    }
  })

const planOf = async (declared: State, live: State, applied: State): Promise<Plan> => {
  const [row] = await project.sql<{ plan: Plan }>(
    `select internal.monetization_plan($1, $2, (
       select coalesce(jsonb_agg(jsonb_build_object('object_type', o.object_type, 'identifier', o.identifier, 'document', o.document, 'more', o.more,
                                                    'hash', internal.monetization_hash(o.document), 'is_pushed', true)), '[]')
         from internal.monetization_objects($3) o)) as plan`,
    [declared, live, applied].map((each) => JSON.stringify(each)),
  )
  return row!.plan
}

const found = <T>(item: T | undefined, what: string): T => {
  if (item === undefined) throw new Error(`${what} is missing: the ops are in the wrong order`)
  return item
}
const added = (items: string[], item: string) => {
  if (items.includes(item)) throw new Error(`${item} is there already`)
  items.push(item)
}
const removed = <T>(items: T[], is: (item: T) => boolean, what: string) => {
  if (!items.some(is)) throw new Error(`${what} is gone already`)
  return items.filter((item) => !is(item))
}

/** What a provider holds after an op; refuses what a provider refuses. A person does what is manual. */
const perform = (live: State, { op, object_type, args }: Op, declared: State): void => {
  const entitlement = () =>
    found(
      live.entitlements.find(({ key }) => key === args.entitlement),
      args.entitlement,
    )
  const offering = () =>
    found(
      live.offerings.find(({ key }) => key === args.offering),
      args.offering,
    )
  const one = () =>
    found(
      offering().packages.find(({ key }) => key === args.package),
      args.package,
    )
  const product = () =>
    found(
      live.products.find(({ key }) => key === args.product),
      args.product,
    )
  const wanted = () => declared.products.find(({ key }) => key === args.product)!
  const kinds: Record<string, () => void> = {
    'create product': () =>
      live.products.push({
        key: args.product,
        store: args.store,
        store_identifier: args.store_identifier,
        type: args.type,
        display_name: args.display_name,
      }),
    'update product': () => Object.assign(product(), { type: wanted().type, display_name: wanted().display_name }),
    'create entitlement': () =>
      live.entitlements.push({ key: args.entitlement, display_name: args.display_name, products: [] }),
    'update entitlement': () => Object.assign(entitlement(), { display_name: args.display_name }),
    'attach entitlement': () => added(entitlement().products, product().key),
    'detach entitlement': () => {
      entitlement().products = removed(entitlement().products, (id) => id === args.product, args.product)
    },
    'create offering': () =>
      live.offerings.push({ key: args.offering, display_name: args.display_name, is_current: false, packages: [] }),
    'update offering': () => Object.assign(offering(), { display_name: args.display_name }),
    'set-current offering': () => each(live.offerings, ({ key }) => ({ is_current: key === args.offering })),
    'create package': () => offering().packages.push({ key: args.package, position: args.position, products: [] }),
    'update package': () => Object.assign(one(), { position: args.position }),
    'attach package': () => {
      const store = args.product.split(':')[0]
      if (one().products.some((id) => id.split(':')[0] === store))
        throw new Error('a package has one product of a store')
      added(one().products, product().key)
    },
    'detach package': () => {
      one().products = removed(one().products, (id) => id === args.product, args.product)
    },
    'create paywall': () => live.paywalls.push({ key: offering().key, offering: args.offering, is_published: true }),
    'archive paywall': () => {
      live.paywalls = removed(live.paywalls, (each) => each.offering === args.paywall, args.paywall)
    },
    'archive package': () => {
      offering().packages = removed(offering().packages, ({ key }) => key === args.package, args.package)
    },
    'archive offering': () => {
      live.offerings = removed(live.offerings, ({ key }) => key === args.offering, args.offering)
      live.paywalls = live.paywalls.filter((each) => each.offering !== args.offering)
    },
    'archive entitlement': () => {
      live.entitlements = removed(live.entitlements, ({ key }) => key === args.entitlement, args.entitlement)
    },
    'archive product': () => {
      live.products = removed(live.products, ({ key }) => key === args.product, args.product)
      for (const each of [...live.entitlements, ...live.offerings.flatMap((all) => all.packages)])
        each.products = each.products.filter((id) => id !== args.product)
    },
  }
  found(kinds[`${op} ${object_type}`], `${op} ${object_type}`)()
}

const each = <T extends object>(items: T[], change: (item: T) => object): void => {
  for (const item of items) Object.assign(item, change(item))
}

const shuffled = (value: any): any => {
  if (Array.isArray(value)) return [...value].reverse().map(shuffled)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, part]) => [key, shuffled(part)]),
  )
}

const runs = { numRuns: sized(60, 600) }

describe('the planner', () => {
  test('has nothing to do for equal states, whatever was applied', async () => {
    await fc.assert(
      fc.asyncProperty(state, state, async (both, applied) => {
        const plan = await planOf(both, both, applied)
        expect([plan.ops, plan.clean]).toEqual([[], true])
      }),
      runs,
    )
  })

  test('plans what takes the provider there, in an order that it accepts: the next plan is clean', async () => {
    await fc.assert(
      fc.asyncProperty(state, state, state, async (declared, before, applied) => {
        const live = structuredClone(before)
        const plan = await planOf(declared, live, applied)
        for (const op of plan.ops) perform(live, op, declared)
        expect((await planOf(declared, live, applied)).ops).toEqual([])
        // ops that run by themselves come first
        const gates = plan.ops.map(({ gate }) => gate === null || gate === 'manual')
        expect(gates).toEqual([...gates].sort((a, b) => Number(b) - Number(a)))
      }),
      runs,
    )
  })

  test('touches only what is declared, or was applied', async () => {
    await fc.assert(
      fc.asyncProperty(state, state, async (declared, before) => {
        const live = structuredClone(before)
        const none: State = { apps, products: [], entitlements: [], offerings: [], paywalls: [] }
        const plan = await planOf(declared, live, none)
        for (const op of plan.ops) perform(live, op, declared)
        for (const kind of ['products', 'entitlements', 'offerings'] as const) {
          const isForeign = ({ key }: { key: string }) => !declared[kind].some((each) => each.key === key)
          const named = (of: State) => of[kind].filter(isForeign).map(({ key }) => key)
          expect(named(live)).toEqual(named(before))
        }
        expect(plan.ops.filter(({ op, object_type }) => op === 'archive' && object_type !== 'package')).toEqual([])
      }),
      runs,
    )
  })

  test('gives the same plan for the same sides in another order', async () => {
    await fc.assert(
      fc.asyncProperty(state, state, state, async (declared, live, applied) => {
        const turned = await planOf(shuffled(declared), shuffled(live), shuffled(applied))
        expect(turned).toEqual(await planOf(declared, live, applied))
      }),
      runs,
    )
  })

  test('changes its hash with each side, and with nothing else', async () => {
    const changes: ((of: State) => void)[] = [
      (of) =>
        of.products.push({
          key: 'stripe:x',
          store: 'stripe',
          store_identifier: 'x',
          type: 'subscription',
          display_name: null,
        }),
      (of) => of.entitlements.push({ key: 'new', display_name: 'New', products: [] }),
      (of) => of.offerings.push({ key: 'new', display_name: 'New', is_current: false, packages: [] }),
      (of) =>
        each(of.offerings, ({ packages }) => ({ packages: [...packages, { key: 'new', position: 9, products: [] }] })),
      (of) => each(of.offerings, ({ is_current }) => ({ is_current: !is_current })),
      (of) => each(of.entitlements, () => ({ display_name: 'Other' })),
      (of) => each(of.products, () => ({ type: 'one_time' })),
      (of) => of.paywalls.splice(0),
      (of) => of.paywalls.push({ key: 'x', offering: 'x', is_published: false }),
    ]
    await fc.assert(
      fc.asyncProperty(
        state,
        state,
        state,
        fc.constantFrom(...changes),
        fc.nat(2),
        async (declared, live, applied, change, side) => {
          const sides = [declared, live, applied] as [State, State, State]
          const before = await planOf(...sides)
          const changed = structuredClone(sides)
          change(changed[side]!)
          const isSame = JSON.stringify(changed) === JSON.stringify(sides)
          const after = await planOf(...changed)
          // which offering was the current one when it was applied only tells drift from a change of the declaration
          if (side !== 2) expect(after.plan_hash === before.plan_hash).toBe(isSame)
          else if (isSame) expect(after.plan_hash).toBe(before.plan_hash)
          expect((await planOf(...sides)).plan_hash).toBe(before.plan_hash)
        },
      ),
      runs,
    )
  })

  test('calls an op drift exactly when the declaration is as it was applied', async () => {
    await fc.assert(
      fc.asyncProperty(state, state, async (declared, live) => {
        const same = await planOf(declared, live, declared)
        const ops = same.ops.filter(({ object_type }) => object_type !== 'store_product')
        expect(ops.filter(({ status }) => status !== 'drift')).toEqual([])
        const none: State = { apps, products: [], entitlements: [], offerings: [], paywalls: [] }
        const fresh = await planOf(declared, live, none)
        expect(fresh.ops.filter(({ status }) => status !== 'pending')).toEqual([])
        expect(fresh.ops.length).toBe(same.ops.length)
      }),
      runs,
    )
  })
})

test('a request plans once, and compares the two sides once', async () => {
  const counted = (name: string, times: number) => `
    if (select f.calls from pg_stat_xact_user_functions f where f.schemaname = 'internal' and f.funcname = '${name}') is distinct from ${times} then
      raise exception '${name} was not called ${times} times';
    end if;`
  // a superuser may count, and a connection of its own has counted nothing before
  const connectionString = inject('dsn').replace(/\/[^/?]*(\?|$)/, `/${project.database}$1`)
  const planned = async (call: string, times: number) => {
    const client = new pg.Client({ connectionString })
    await client.connect()
    try {
      await client.query(`
        set local track_functions = 'all';
        do $$
        begin
          perform ${call};
          ${counted('monetization_plan', times)}
          ${counted('monetization_compared', times)}
        end $$`)
    } finally {
      await client.end()
    }
  }
  await planned(`api.monetization_plan('{}', 'proj')`, 1)
  await planned(`api.monetization_decide('{}', 'proj', false, 'service')`, 1)
  await expect(planned(`api.monetization_plan('{}', 'proj')`, 2)).rejects.toThrow('was not called 2 times')
})
