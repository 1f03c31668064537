import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Item = Readonly<Record<string, unknown>>
export type Customer = { subscriptions?: Item[]; purchases?: Item[]; active_entitlements?: Item[] }

const list = (items: readonly unknown[], url: string, next_page: string | null) => ({
  object: 'list',
  items,
  next_page,
  url,
})
const error = (type: string, message: string) => ({
  ...{ object: 'error', type, message, retryable: false, doc_url: `https://errors.rev.cat/${type}` },
})

/** An entitlement, a subscription and a purchase as the provider's OpenAPI document of the REST API v2 describes them. */
export const entitlementOf = (key: string) => ({
  ...{
    object: 'entitlement',
    project_id: 'proj1',
    id: `entl_${key}`,
    lookup_key: key,
    display_name: key,
    created_at: 1,
  },
})
const entitled = (keys: readonly string[]) => list(keys.map(entitlementOf), '/v2/entitlements', null)
export const subscriptionOf = (ref: string, keys: readonly string[], endsAt: number, more: Item = {}) => ({
  ...{ object: 'subscription', id: `sub_${ref}`, customer_id: 'c', original_customer_id: 'c', product_id: 'prod1' },
  ...{ starts_at: endsAt - 86_400_000, current_period_starts_at: endsAt - 86_400_000, current_period_ends_at: endsAt },
  ...{
    ends_at: endsAt,
    gives_access: true,
    pending_payment: false,
    auto_renewal_status: 'will_renew',
    status: 'active',
  },
  ...{ total_revenue_in_usd: { currency: 'USD', gross: 1, commission: 0, tax: 0, proceeds: 1 }, management_url: null },
  ...{ presented_offering_id: null, entitlements: entitled(keys), environment: 'production', store: 'app_store' },
  ...{ store_subscription_identifier: ref, ownership: 'purchased', ...more },
})
export const purchaseOf = (ref: string, keys: readonly string[], purchasedAt: number, more: Item = {}) => ({
  ...{ object: 'purchase', id: `purch_${ref}`, customer_id: 'c', original_customer_id: 'c', product_id: 'prod2' },
  ...{ purchased_at: purchasedAt, revenue_in_usd: { currency: 'USD', gross: 1, commission: 0, tax: 0, proceeds: 1 } },
  ...{
    quantity: 1,
    status: 'owned',
    presented_offering_id: null,
    entitlements: entitled(keys),
    environment: 'production',
  },
  ...{ store: 'play_store', store_purchase_identifier: ref, ownership: 'purchased', ...more },
})
export const activeOf = (key: string, expires_at: number | null) => ({
  ...{ object: 'customer.active_entitlement', entitlement_id: `entl_${key}`, expires_at },
})

/**
 * The customers of one project of RevenueCat over its REST API v2: keys, pages, and errors in its form. `respond` may answer a request itself.
 */
export const startRevenueCat = async ({ project = 'proj1', key = 'sk_read' } = {}) => {
  const customers = new Map<string, Customer>()
  /** Identifiers in their stores, by the provider's ids of products. */
  const products = new Map([
    ['prod1', 'monthly'],
    ['prod2', 'no_ads'],
  ])
  const requests: { path: string; authorization: string | undefined }[] = []
  let pageSize = 100
  let respond: (response: ServerResponse, path: string) => boolean = () => false
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://revenuecat.test')
    const { authorization } = request.headers
    requests.push({ path: url.pathname, authorization })
    if (respond(response, url.pathname)) return
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const page = (items: readonly Item[]) => {
      const after = url.searchParams.get('starting_after')
      const from = after ? items.findIndex(({ id, entitlement_id }) => (id ?? entitlement_id) === after) + 1 : 0
      const size = Math.min(pageSize, Number(url.searchParams.get('limit') ?? 20))
      const part = items.slice(from, from + size)
      const last = part.at(-1)
      const next =
        from + size < items.length ? `${url.pathname}?starting_after=${last?.['id'] ?? last?.['entitlement_id']}` : null
      answer(200, list(part, url.pathname, next))
    }
    if (authorization !== `Bearer ${key}`)
      return answer(401, error('authentication_error', `Invalid API key ${authorization}`))
    if (url.pathname === '/v2/projects') return page([{ object: 'project', id: project, name: 'App', created_at: 1 }])
    const product = new RegExp(`^/v2/projects/${project}/products/([^/]+)$`).exec(url.pathname)?.[1]
    const store_identifier = products.get(product ?? '')
    if (store_identifier) return answer(200, { object: 'product', id: product, store_identifier, state: 'active' })
    const [, of, id = '', what = ''] =
      /^\/v2\/projects\/([^/]+)\/customers(?:\/([^/]+)\/(\w+))?$/.exec(url.pathname) ?? []
    if (of === project && what === '') return page([])
    const customer = of === project ? customers.get(decodeURIComponent(id)) : undefined
    if (!customer) return answer(404, error('resource_missing', 'Resource not found'))
    return page(customer[what as keyof Customer] ?? [])
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    project,
    key,
    customers,
    products,
    requests,
    setPageSize: (size: number) => {
      pageSize = size
    },
    /** Answers in the provider's place where it returns true. */
    respondBy: (by: typeof respond) => {
      respond = by
    },
    close: () => {
      server.closeAllConnections()
      return new Promise((done) => server.close(done))
    },
  }
}
