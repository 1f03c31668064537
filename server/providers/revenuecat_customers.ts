import { z } from 'zod'
import { createLru, type Lru } from '#server/lru.ts'
import type { Upstream } from '#server/providers/upstream.ts'

/** The integration's config as far as customers are read. A key belongs to one project of the provider: `project_id` spares a request. */
export type CustomerConfig = { readonly secret_api_key: string; readonly project_id?: string }

/** A purchase as api.subscriptions_restore takes it. */
export type Purchase = {
  /** The identifier in the store: that of the latest transaction. */
  readonly ref: string
  /** The provider's own id, which a renewal does not change. */
  readonly provider_id: string
  readonly store: string
  readonly environment: 'production' | 'sandbox'
  /** The provider's own id of the product. */
  readonly product_id: string | null
  /** Its identifier in the store, which events name; null where the provider does not tell. */
  readonly store_product_id: string | null
  readonly entitlement_ids: readonly string[]
  readonly status: string
  readonly gives_access: boolean
  /** Null for what is bought once. */
  readonly will_renew: boolean | null
  readonly starts_at_ms: number
  readonly purchased_at_ms: number
  readonly expiration_at_ms: number | null
  /** The end of access of a subscription in its grace period. */
  readonly access_until_ms: number | null
}

export type Found =
  | { readonly failure: null; readonly purchases: readonly Purchase[]; readonly isKnown: boolean }
  /** One of our own words, or HTTP_<status>. */
  | { readonly failure: string }

const EntitlementItem = z.object({ id: z.string(), lookup_key: z.string() })
const Entitlements = z.object({ items: z.array(EntitlementItem) }).nullish()
const Common = {
  id: z.string(),
  product_id: z.string().nullish(),
  entitlements: Entitlements,
  environment: z.enum(['production', 'sandbox']),
  store: z.string(),
}
const Subscription = z.object({
  ...Common,
  starts_at: z.number(),
  current_period_starts_at: z.number(),
  current_period_ends_at: z.number().nullish(),
  ends_at: z.number().nullish(),
  gives_access: z.boolean(),
  auto_renewal_status: z.string(),
  status: z.string(),
  store_subscription_identifier: z.string().min(1),
})
const Bought = z.object({
  ...Common,
  purchased_at: z.number(),
  status: z.enum(['owned', 'refunded']),
  store_purchase_identifier: z.string().min(1),
})
const ActiveEntitlement = z.object({ entitlement_id: z.string(), expires_at: z.number().nullable() })
const Project = z.object({ id: z.string() })
const Product = z.object({ store_identifier: z.string().min(1) })
const List = z.object({ items: z.array(z.unknown()), next_page: z.string().nullish() })

const pageSize = 100
const maxPages = 20
const totalMs = 15_000

/** Ends a restore: something about the answer is not as documented, or there is none. */
class UpstreamProblem extends Error {}

/** A purchase before its product was looked up. */
type Untold = Omit<Purchase, 'store_product_id'>

/** Identifiers of products in their stores, which never change, by the provider's ids: its key allows few requests for them. */
const identifiers = new WeakMap<Upstream, Lru<string>>()
const identifiersOf = (upstream: Upstream): Lru<string> => {
  const known = identifiers.get(upstream) ?? createLru<string>(10_000)
  identifiers.set(upstream, known)
  return known
}

const keysOf = (entitlements: z.output<typeof Entitlements>) =>
  (entitlements?.items ?? []).map((each) => each.lookup_key)

const ofSubscription = (
  { store_subscription_identifier: ref, ...of }: z.output<typeof Subscription>,
  ends: ReadonlyMap<string, number | null>,
): Untold => {
  const known = (of.entitlements?.items ?? []).flatMap(({ id }) => ends.get(id) ?? [])
  const period = of.ends_at ?? of.current_period_ends_at ?? null
  return {
    ref,
    provider_id: of.id,
    store: of.store,
    environment: of.environment,
    product_id: of.product_id ?? null,
    entitlement_ids: keysOf(of.entitlements),
    status: of.status,
    gives_access: of.gives_access,
    will_renew: of.auto_renewal_status !== 'will_not_renew',
    starts_at_ms: of.starts_at,
    purchased_at_ms: of.current_period_starts_at,
    expiration_at_ms: period,
    access_until_ms: known.length > 0 ? Math.max(...known) : period,
  }
}

const ofPurchase = ({ store_purchase_identifier: ref, ...of }: z.output<typeof Bought>): Untold => ({
  ref,
  provider_id: of.id,
  store: of.store,
  environment: of.environment,
  product_id: of.product_id ?? null,
  entitlement_ids: keysOf(of.entitlements),
  status: of.status,
  gives_access: of.status === 'owned',
  will_renew: null,
  starts_at_ms: of.purchased_at,
  purchased_at_ms: of.purchased_at,
  expiration_at_ms: null,
  access_until_ms: null,
})

/**
 * What a customer owns, by the REST API v2 of the provider: subscriptions, single purchases and the ends of active entitlements, for each of the names
 * under which the provider may know the customer. Any answer that is not complete and as documented is a failure.
 */
export const readPurchases = async (
  upstream: Upstream,
  projectId: string,
  { secret_api_key, project_id }: CustomerConfig,
  names: readonly string[],
): Promise<Found> => {
  // the requests of a restore end together: one that has failed makes the answers of the others useless
  const ended = new AbortController()
  const signal = AbortSignal.any([AbortSignal.timeout(totalMs), ended.signal])
  const common = {
    provider: 'revenuecat',
    projectId,
    method: 'GET',
    headers: { authorization: `Bearer ${secret_api_key}` },
    timeoutMs: 10_000,
    signal,
  } as const
  const get = async (path: string, params: Record<string, string>, after: string | undefined) => {
    const answer = await upstream.call({ ...common, path, params, query: { limit: pageSize, starting_after: after } })
    if (answer.failure !== null)
      throw new UpstreamProblem(answer.failure === 'ABORTED' ? 'PROVIDER_TIMEOUT' : answer.failure)
    if (answer.status === 404) return null
    const list = answer.status === 200 ? List.safeParse(answer.json()) : null
    if (!list?.success) throw new UpstreamProblem(`HTTP_${answer.status}`)
    return list.data
  }
  /** All pages of a list; null when the provider does not know the object. */
  const all = async <T extends z.ZodType>(path: string, params: Record<string, string>, item: T) => {
    const items: z.output<T>[] = []
    let after: string | undefined
    for (let page = 0; page < maxPages; page += 1) {
      const list = await get(path, params, after)
      if (!list) return page === 0 ? null : fail()
      const read = z.array(item).safeParse(list.items)
      if (!read.success) return fail()
      items.push(...read.data)
      if (!list.next_page) return items
      // the cursor is the one that the provider names, not its URL, which could lead elsewhere
      after = new URL(list.next_page, 'https://provider.invalid').searchParams.get('starting_after') ?? fail()
    }
    return fail()
  }
  const fail = (): never => {
    throw new UpstreamProblem('UNEXPECTED_ANSWER')
  }
  const projectOf = async () => {
    const projects = await all('/v2/projects', {}, Project)
    return projects?.length === 1 ? projects[0]!.id : fail()
  }
  /** The identifier of a product in its store. A restore does not fail for want of it: the next one asks again. */
  const identifierOf = async (project: string, product: string): Promise<string | null> => {
    const key = `${projectId} ${project} ${product}`
    const known = identifiersOf(upstream).get(key)
    if (known !== undefined) return known
    const answer = await upstream.call({
      ...common,
      path: '/v2/projects/{project}/products/{product}',
      params: { project, product },
    })
    const read = answer.failure === null && answer.status === 200 ? Product.safeParse(answer.json()) : null
    if (!read?.success) return null
    identifiersOf(upstream).set(key, read.data.store_identifier)
    return read.data.store_identifier
  }
  const ofCustomer = async (project: string, customer: string): Promise<Untold[] | null> => {
    const path = '/v2/projects/{project}/customers/{customer}'
    const [subscriptions, bought, active] = await Promise.all([
      all(`${path}/subscriptions`, { project, customer }, Subscription),
      all(`${path}/purchases`, { project, customer }, Bought),
      all(`${path}/active_entitlements`, { project, customer }, ActiveEntitlement),
    ])
    if (!subscriptions && !bought && !active) return null
    if (!subscriptions || !bought || !active) return fail()
    const ends = new Map(active.map((each) => [each.entitlement_id, each.expires_at]))
    return [...subscriptions.map((each) => ofSubscription(each, ends)), ...bought.map(ofPurchase)]
  }
  try {
    const project = project_id || (await projectOf())
    // these cannot be in a path, and the provider knows no customer of such a name
    const askable = names.filter((name) => name !== '.' && name !== '..')
    const customers = await Promise.all(askable.map((name) => ofCustomer(project, name)))
    const known = customers.filter((each) => each !== null)
    // one customer may have several names
    const purchases = new Map(known.flat().map((purchase) => [purchase.ref, purchase]))
    const products = [...new Set([...purchases.values()].flatMap(({ product_id }) => product_id ?? []))]
    const told = new Map(await Promise.all(products.map(async (id) => [id, await identifierOf(project, id)] as const)))
    const found = [...purchases.values()].map((purchase) => ({
      ...purchase,
      store_product_id: told.get(purchase.product_id ?? '') ?? null,
    }))
    return { failure: null, purchases: found, isKnown: known.length > 0 }
  } catch (error) {
    ended.abort()
    if (error instanceof UpstreamProblem) return { failure: error.message }
    throw error
  }
}
