import { z } from 'zod'
import type { Services } from '#server/services.ts'

/** The config of the integration revenuecat, as far as monetization reads it. */
export type CatalogConfig = {
  readonly secret_api_key: string
  readonly secret_api_key_write?: string | undefined
  readonly project_id: string
}

/** What the provider holds. `products` are identifiers `store:store_identifier`: functions/tenant/monetization/documents.sql. */
export type Live = {
  readonly apps: readonly { readonly id: string; readonly type: string }[]
  readonly products: readonly LiveProduct[]
  readonly entitlements: readonly LiveEntitlement[]
  readonly offerings: readonly LiveOffering[]
  readonly paywalls: readonly LivePaywall[]
  /** Objects that are archived at the provider: gone for a plan, and brought back where they are declared again. */
  readonly archived: Readonly<Record<'products' | 'entitlements' | 'offerings', readonly Archived[]>>
}
export type Archived = { readonly id: string; readonly key: string }
export type LiveProduct = {
  readonly id: string
  readonly app_id: string
  readonly store: string
  readonly store_identifier: string
  readonly type: string
  readonly display_name: string | null
}
export type LiveEntitlement = {
  readonly id: string
  readonly key: string
  readonly display_name: string
  readonly products: readonly string[]
}
export type LivePackage = {
  readonly id: string
  readonly key: string
  readonly position: number | null
  readonly products: readonly string[]
}
export type LiveOffering = {
  readonly id: string
  readonly key: string
  readonly display_name: string
  readonly is_current: boolean
  readonly packages: readonly LivePackage[]
}
export type LivePaywall = {
  readonly id: string
  readonly offering: string
  readonly is_published: boolean
  readonly display: Readonly<Record<string, unknown>>
}

export const identifierOf = ({ store, store_identifier }: Pick<LiveProduct, 'store' | 'store_identifier'>) =>
  `${store}:${store_identifier}`

/** The provider could not be read. The message has no words of the provider. */
export class ReadFailed extends Error {
  readonly status: number | null
  constructor(reason: string, status: number | null) {
    super(reason)
    this.status = status
  }
}

const list = <T extends z.ZodType>(item: T) =>
  z.object({ items: z.array(item), next_page: z.string().nullish() }).nullish()
const App = z.object({ id: z.string(), type: z.string() })
/** `inactive` is archived; absent in answers of before there were archives. */
const state = z.string().nullish()
const Product = z.object({
  id: z.string(),
  app_id: z.string(),
  store_identifier: z.string(),
  type: z.string(),
  display_name: z.string().nullish(),
  state,
})
const Entitlement = z.object({
  id: z.string(),
  lookup_key: z.string(),
  display_name: z.string(),
  state,
  products: list(Product),
})
const Association = z.object({ product: Product })
const Package = z.object({
  id: z.string(),
  lookup_key: z.string(),
  position: z.number().nullish(),
  products: list(Association),
})
const Offering = z.object({
  id: z.string(),
  lookup_key: z.string(),
  display_name: z.string(),
  is_current: z.boolean(),
  state,
  packages: list(Package),
})
const Paywall = z.object({
  id: z.string(),
  name: z.string().nullish(),
  offering_id: z.string(),
  published_at: z.number().nullish(),
})

/** 429 is answered by the key's limit of 60 requests a minute, which a worker waits for and a request does not. */
export type Patience = { readonly sleep: (milliseconds: number) => Promise<void> }

const pageSize = 100
const mostCalls = 500
const longestWaitMs = 65_000
const mostWaits = 10
const usualWaitMs = 10_000

/** How long a 429 asks to wait. */
export const waitOf = (headers: Readonly<Record<string, string>>): number => {
  const seconds = Number(headers['retry-after'] ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds * 1000, longestWaitMs) : usualWaitMs
}

type Listing = {
  readonly path: string
  readonly params?: Readonly<Record<string, string>>
  readonly expand?: string
}

type Reader = {
  readonly items: <T extends z.ZodType>(item: T, listing: Listing, after?: string | null) => Promise<z.output<T>[]>
}

/** The cursor of the next page; the address itself is not followed. */
const cursorOf = (nextPage: string | null | undefined): string | null => {
  if (!nextPage) return null
  const cursor = URL.parse(nextPage, 'https://provider.invalid')?.searchParams.get('starting_after')
  if (!cursor) throw new ReadFailed('a page names no next one', 200)
  return cursor
}

/** Postgres stores neither U+0000 nor half of a surrogate pair; `JSON.stringify` escapes both. */
const isStorable = (value: unknown): boolean => !/(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/.test(JSON.stringify(value))

const createReader = (
  { upstream }: Pick<Services, 'upstream'>,
  projectId: string,
  config: CatalogConfig,
  patience: Patience | null,
): Reader => {
  let calls = 0
  const page = async (listing: Listing, after: string | null): Promise<unknown> => {
    for (let waits = 0; ; waits += 1) {
      calls += 1
      if (calls > mostCalls) throw new ReadFailed('the project has too many objects', null)
      const answer = await upstream.call({
        provider: 'revenuecat',
        projectId,
        method: 'GET',
        path: `/v2/projects/{project}${listing.path}`,
        params: { project: config.project_id, ...listing.params },
        query: { limit: pageSize, starting_after: after ?? undefined, expand: listing.expand },
        headers: { authorization: `Bearer ${config.secret_api_key}` },
      })
      if (answer.failure !== null) throw new ReadFailed(answer.reason, null)
      if (answer.status === 200) return answer.json()
      if (answer.status !== 429 || !patience || waits >= mostWaits)
        throw new ReadFailed(`status ${answer.status}`, answer.status)
      await patience.sleep(waitOf(answer.headers))
    }
  }
  return {
    async items(item, listing, after = null) {
      const shape = z.object({ items: z.array(item), next_page: z.string().nullish() })
      const seen = new Set<string>()
      const found = []
      for (let cursor = after; ; ) {
        const parsed = shape.safeParse(await page(listing, cursor))
        if (!parsed.success) throw new ReadFailed('an answer is not as documented', 200)
        if (!isStorable(parsed.data.items)) throw new ReadFailed('an answer has text that no database stores', 200)
        found.push(...parsed.data.items)
        const next = cursorOf(parsed.data.next_page)
        if (next === null) return found
        if (seen.has(next)) throw new ReadFailed('pages go round in a circle', 200)
        seen.add(next)
        cursor = next
      }
    },
  }
}

/** The items of an expanded list, and of its further pages. */
const expanded = async <T extends z.ZodType>(
  { items }: Reader,
  item: T,
  first: { items: z.output<T>[]; next_page?: string | null | undefined } | null | undefined,
  listing: Listing,
): Promise<z.output<T>[]> => {
  if (!first) return items(item, listing)
  const next = cursorOf(first.next_page)
  return next === null ? first.items : [...first.items, ...(await items(item, listing, next))]
}

const isArchived = (object: { readonly state?: string | null | undefined }) => object.state === 'inactive'

/** The objects of a list in use, and those that are archived. */
const parted = <T extends { readonly state?: string | null | undefined }>(objects: readonly T[]) => ({
  used: objects.filter((object) => !isArchived(object)),
  archived: objects.filter(isArchived),
})

/** One after the other: the provider allows 60 requests a minute, and most objects need none of their own. */
const mapInOrder = async <T, R>(values: readonly T[], map: (value: T) => Promise<R>): Promise<R[]> => {
  const results: R[] = []
  for (const value of values) results.push(await map(value))
  return results
}

/**
 * Reads everything that a plan compares, with the read-scoped key. Throws ReadFailed. A request passes no patience, so that a 429 fails at once
 * when its Retry-After is longer than the call's own time.
 */
export const readLive = async (
  services: Pick<Services, 'upstream'>,
  projectId: string,
  config: CatalogConfig,
  patience: Patience | null = null,
): Promise<Live> => {
  const reader = createReader(services, projectId, config, patience)
  const apps = (await reader.items(App, { path: '/apps' })).map(({ id, type }) => ({ id, type }))
  const stores = new Map(apps.map(({ id, type }) => [id, type]))
  const identifier = (product: z.output<typeof Product>) =>
    identifierOf({ store: stores.get(product.app_id) ?? 'unknown', store_identifier: product.store_identifier })
  const allProducts = parted(await reader.items(Product, { path: '/products' }))
  const products = allProducts.used.map((product) => ({
    id: product.id,
    app_id: product.app_id,
    store: stores.get(product.app_id) ?? 'unknown',
    store_identifier: product.store_identifier,
    type: product.type,
    display_name: product.display_name ?? null,
  }))
  // what an archived product is attached to has it no more
  const gone = new Set(allProducts.archived.map(({ id }) => id))
  const heldOf = (held: readonly z.output<typeof Product>[]) =>
    parted(held)
      .used.filter(({ id }) => !gone.has(id))
      .map(identifier)
  const allEntitlements = parted(await reader.items(Entitlement, { path: '/entitlements', expand: 'items.product' }))
  const entitlements = await mapInOrder(
    allEntitlements.used,
    async ({ id, lookup_key: key, display_name, products: first }) => {
      const listing = { path: '/entitlements/{entitlement}/products', params: { entitlement: id } }
      return { id, key, display_name, products: heldOf(await expanded(reader, Product, first, listing)) }
    },
  )
  const packageOf = async ({ id, lookup_key: key, position, products: first }: z.output<typeof Package>) => {
    const listing = { path: '/packages/{package}/products', params: { package: id } }
    const held = heldOf((await expanded(reader, Association, first, listing)).map(({ product }) => product))
    return { id, key, position: position ?? null, products: held }
  }
  const allOfferings = parted(await reader.items(Offering, { path: '/offerings', expand: 'items.package.product' }))
  const offerings = await mapInOrder(
    allOfferings.used,
    async ({ id, lookup_key: key, display_name, is_current, packages: first }) => {
      const listing = { path: '/offerings/{offering}/packages', params: { offering: id }, expand: 'items.product' }
      const packages = await mapInOrder(await expanded(reader, Package, first, listing), packageOf)
      return { id, key, display_name, is_current, packages }
    },
  )
  const keys = new Map(offerings.map(({ id, key }) => [id, key]))
  const paywalls = (await reader.items(Paywall, { path: '/paywalls' })).flatMap((paywall) => {
    const offering = keys.get(paywall.offering_id)
    if (offering === undefined) return []
    const is_published = typeof paywall.published_at === 'number'
    return [{ id: paywall.id, offering, is_published, display: { name: paywall.name ?? null, is_published } }]
  })
  const archived = {
    products: allProducts.archived.map((product) => ({ id: product.id, key: identifier(product) })),
    entitlements: allEntitlements.archived.map(({ id, lookup_key: key }) => ({ id, key })),
    offerings: allOfferings.archived.map(({ id, lookup_key: key }) => ({ id, key })),
  }
  return { apps, products, entitlements, offerings, paywalls, archived }
}
