import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The subscription provider: its REST API v2 with state. Requests and responses are checked against the published document. */
type Schema = Record<string, any>
type Operation = { parameters: Schema[]; requestBody?: Schema; required?: boolean; responses: Record<string, Schema> }
const document: { base: string; paths: Record<string, Record<string, Operation>>; schemas: Record<string, Schema> } =
  JSON.parse(readFileSync(new URL('./monetization_openapi.json', import.meta.url), 'utf8'))

const typeOf = (value: unknown) => (Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value)

/** What is wrong with a value by a schema of OpenAPI 3.0, with its place. */
const problemsOf = (schema: Schema, value: any, at = ''): string[] => {
  if (value === null && schema['nullable']) return []
  if (schema['$ref']) {
    const named = document.schemas[schema['$ref'].split('/').pop()]
    if (!named) throw new Error(`no schema ${schema['$ref']}`)
    return value === null && named['nullable'] ? [] : problemsOf(named, value, at)
  }
  if (schema['allOf']) return schema['allOf'].flatMap((each: Schema) => problemsOf(each, value, at))
  if (schema['oneOf']) {
    const fitting = schema['oneOf'].filter((each: Schema) => problemsOf(each, value, at).length === 0)
    return fitting.length === 1 ? [] : [`${at}: fits ${fitting.length} of the alternatives`]
  }
  const type = typeOf(value)
  const wanted = schema['type'] ?? (schema['properties'] ? 'object' : undefined)
  if (wanted && wanted !== type && !(wanted === 'integer' && Number.isInteger(value)))
    return [`${at}: is ${type}, not ${wanted}`]
  const problems: string[] = []
  const check = (holds: boolean, what: string) => holds || problems.push(`${at}: ${what}`)
  if (schema['enum']) check(schema['enum'].includes(value), 'is none of its values')
  if (type === 'string') {
    check(value.length >= (schema['minLength'] ?? 0), 'is too short')
    check(value.length <= (schema['maxLength'] ?? 1e9), 'is too long')
  }
  if (type === 'number') check(value >= (schema['minimum'] ?? -1e18), 'is too small')
  if (type === 'array') {
    check(value.length <= (schema['maxLength'] ?? 1e9), 'has too many items')
    problems.push(
      ...value.flatMap((item: unknown, n: number) => problemsOf(schema['items'] ?? {}, item, `${at}[${n}]`)),
    )
  }
  if (type === 'object') {
    const known = schema['properties'] ?? {}
    for (const name of schema['required'] ?? []) check(name in value, `lacks ${name}`)
    for (const [name, part] of Object.entries(value)) {
      if (known[name]) problems.push(...problemsOf(known[name], part, `${at}.${name}`))
      else check(schema['additionalProperties'] !== false, `has ${name}`)
    }
  }
  return problems
}

export const readKey = 'sk_read_only_7f3a'
export const writeKey = 'sk_read_write_91bc'
export const providerProject = 'proj1ab2c3d4'

type App = { id: string; type: string }
type Product = { id: string; app_id: string; store_identifier: string; type: string; display_name: string | null }
type Entitlement = { id: string; lookup_key: string; display_name: string; products: string[] }
type Package = { id: string; lookup_key: string; display_name: string; position: number; products: string[] }
type Offering = { id: string; lookup_key: string; display_name: string; is_current: boolean; packages: Package[] }
type Paywall = { id: string; name: string | null; offering_id: string; published_at: number | null }
export type ProviderState = {
  apps: App[]
  products: Product[]
  entitlements: Entitlement[]
  offerings: Offering[]
  paywalls: Paywall[]
  inStore: string[]
  /** Objects that are archived: hidden, not deleted. */
  archived: { products: Product[]; entitlements: Entitlement[]; offerings: Offering[] }
}

export type Call = { readonly method: string; readonly path: string; readonly body: any; readonly key: string }
type Reply = { status: number; body?: unknown; headers?: Record<string, string> }
/** An answer in place of the provider's own, before or after the effect of the request; `hang up` closes the connection, `silence` leaves it open. */
export type Interference = (
  call: Call,
  n: number,
) => { when: 'before' | 'after'; reply: Reply | 'hang up' | 'silence' } | null

const createdAt = 1658399423658
const refused = (status: number, type: string, message = type): Reply => ({
  status,
  body: {
    object: 'error',
    type,
    message,
    retryable: status === 429 || status >= 500,
    doc_url: 'https://errors.example',
  },
})
const missing = refused(404, 'resource_missing')
const taken = refused(409, 'resource_already_exists')

const empty = (): ProviderState => ({
  apps: [
    { id: 'app1', type: 'app_store' },
    { id: 'app2', type: 'play_store' },
  ],
  products: [],
  entitlements: [],
  offerings: [],
  paywalls: [],
  inStore: [],
  archived: { products: [], entitlements: [], offerings: [] },
})

export const startRevenueCat = async () => {
  let state = empty()
  let next = 0
  let pageSize = 1000
  let interfere: Interference = () => null
  const violations: string[] = []
  const calls: Call[] = []
  const created: string[] = []
  const newId = (prefix: string) => {
    next += 1
    return `${prefix}${String(next).padStart(6, '0')}`
  }
  const stamp = { created_at: createdAt }

  const stateOf = (object: object) =>
    Object.values(state.archived).some((objects: object[]) => objects.includes(object)) ? 'inactive' : 'active'
  const productJson = (product: Product) => ({
    ...{ object: 'product', ...stamp, ...product, app: null, state: stateOf(product) },
  })
  const productById = (id: string) => state.products.find((product) => product.id === id)
  /** Those of an entitlement or a package: archived ones stay attached. */
  const productsJson = (ids: string[]) =>
    ids
      .flatMap((id) => [...state.products, ...state.archived.products].find((product) => product.id === id) ?? [])
      .map(productJson)
  const listJson = (url: string, items: any[], after: string | null, limit: number) => {
    const from = after ? items.findIndex((item) => (item.product?.id ?? item.id) === after) + 1 : 0
    const page = items.slice(from, from + Math.min(limit, pageSize))
    const last = page.at(-1)
    const isLast = from + page.length >= items.length
    const next_page = isLast ? null : `${url}?starting_after=${last.product?.id ?? last.id}`
    return { object: 'list', items: page, next_page, url }
  }
  const associationsJson = (ids: string[]) =>
    productsJson(ids).map((product) => ({ product, eligibility_criteria: 'all' }))
  const packageJson = ({ products, ...rest }: Package, expand: boolean) => ({
    object: 'package',
    ...stamp,
    ...rest,
    ...(expand
      ? { products: listJson(`${document.base}/packages/${rest.id}/products`, associationsJson(products), null, 1000) }
      : {}),
  })
  const packagesJson = (offering: Offering) =>
    [...offering.packages].sort((a, b) => a.position - b.position).map((each) => packageJson(each, true))
  const offeringJson = (offering: Offering, expand: boolean) => {
    const { packages, ...rest } = offering
    const list = listJson(`${document.base}/offerings/${rest.id}/packages`, packagesJson(offering), null, 1000)
    const more = { ...rest, state: stateOf(offering), ...(expand ? { packages: list } : {}) }
    return { object: 'offering', ...stamp, project_id: providerProject, ...more }
  }
  const entitlementJson = (entitlement: Entitlement, expand: boolean) => {
    const { products, ...rest } = entitlement
    const list = () => listJson(`${document.base}/entitlements/${rest.id}/products`, productsJson(products), null, 1000)
    const more = { ...rest, state: stateOf(entitlement), ...(expand ? { products: list() } : {}) }
    return { object: 'entitlement', ...stamp, project_id: providerProject, ...more }
  }
  const paywallJson = (paywall: Paywall) => ({ object: 'paywall', ...stamp, ...paywall })
  const appJson = (app: App) => ({ object: 'app', ...stamp, ...app, name: app.type, project_id: providerProject })
  const deleted = (object: string, id: string): Reply => ({ status: 200, body: { object, id, deleted_at: createdAt } })
  const made = (what: string, body: unknown): Reply => {
    created.push(what)
    return { status: 201, body }
  }
  const packages = () => state.offerings.flatMap((offering) => offering.packages)
  const find = {
    entitlement: (id: string) => state.entitlements.find((each) => each.id === id),
    offering: (id: string) => state.offerings.find((each) => each.id === id),
    package: (id: string) => packages().find((each) => each.id === id),
  }
  type Exchange = { ids: string[]; body: any; query: URLSearchParams; url: string }
  const listed = ({ query, url }: Exchange, items: any[]): Reply => ({
    status: 200,
    body: listJson(url, items, query.get('starting_after'), Number(query.get('limit') ?? 20)),
  })

  /** Moves an object between those in use and the archived ones. */
  const moved = <T extends { id: string }>(
    from: T[],
    to: T[],
    id: string | undefined,
    shown: (object: T) => object,
  ) => {
    const at = from.findIndex((each) => each.id === id)
    if (at < 0) return missing
    const [object] = from.splice(at, 1) as [T]
    to.push(object)
    return { status: 200, body: shown(object) }
  }
  const handlers: Record<string, (exchange: Exchange) => Reply> = {
    'post /products/{product_id}/actions/archive': ({ ids: [id] }) =>
      moved(state.products, state.archived.products, id, productJson),
    'post /products/{product_id}/actions/unarchive': ({ ids: [id] }) =>
      moved(state.archived.products, state.products, id, productJson),
    'post /entitlements/{entitlement_id}/actions/archive': ({ ids: [id] }) =>
      moved(state.entitlements, state.archived.entitlements, id, (each) => entitlementJson(each, false)),
    'post /entitlements/{entitlement_id}/actions/unarchive': ({ ids: [id] }) =>
      moved(state.archived.entitlements, state.entitlements, id, (each) => entitlementJson(each, false)),
    'post /offerings/{offering_id}/actions/archive': ({ ids: [id] }) =>
      moved(state.offerings, state.archived.offerings, id, (each) => offeringJson(each, false)),
    'post /offerings/{offering_id}/actions/unarchive': ({ ids: [id] }) =>
      moved(state.archived.offerings, state.offerings, id, (each) => offeringJson(each, false)),
    'get /apps': (exchange) => listed(exchange, state.apps.map(appJson)),
    'get /products': (exchange) => listed(exchange, [...state.products, ...state.archived.products].map(productJson)),
    'post /products': ({ body: { store_identifier, app_id, type, display_name = null } }) => {
      if (!state.apps.some((app) => app.id === app_id)) return missing
      const all = [...state.products, ...state.archived.products]
      if (all.some((each) => each.app_id === app_id && each.store_identifier === store_identifier)) return taken
      const product = { id: newId('prod'), app_id, store_identifier, type, display_name }
      state.products.push(product)
      return made(`product ${store_identifier}`, productJson(product))
    },
    'delete /products/{product_id}': ({ ids: [id = ''] }) => {
      if (!productById(id)) return missing
      state.products = state.products.filter((each) => each.id !== id)
      for (const holder of [...state.entitlements, ...packages()])
        holder.products = holder.products.filter((held) => held !== id)
      return deleted('product', id)
    },
    'post /products/{product_id}/create_in_store': ({ ids: [id = ''], body }) => {
      const product = productById(id)
      if (!product) return missing
      if (product.type === 'subscription' && !body?.store_information) return refused(400, 'parameter_error')
      if (state.inStore.includes(product.store_identifier)) return taken
      state.inStore.push(product.store_identifier)
      const created_product = {
        object: 'store_product',
        id: '1',
        name: null,
        product_identifier: product.store_identifier,
      }
      return made(`store_product ${product.store_identifier}`, { created_product })
    },
    'get /entitlements': (exchange) =>
      listed(
        exchange,
        [...state.entitlements, ...state.archived.entitlements].map((each) =>
          entitlementJson(each, exchange.query.has('expand')),
        ),
      ),
    'post /entitlements': ({ body: { lookup_key, display_name } }) => {
      const all = [...state.entitlements, ...state.archived.entitlements]
      if (all.some((each) => each.lookup_key === lookup_key)) return taken
      const entitlement = { id: newId('entl'), lookup_key, display_name, products: [] }
      state.entitlements.push(entitlement)
      return made(`entitlement ${lookup_key}`, entitlementJson(entitlement, false))
    },
    'post /entitlements/{entitlement_id}': ({ ids: [id = ''], body }) => {
      const found = find.entitlement(id)
      if (!found) return missing
      return { status: 200, body: entitlementJson(Object.assign(found, body), false) }
    },
    'delete /entitlements/{entitlement_id}': ({ ids: [id = ''] }) => {
      if (!find.entitlement(id)) return missing
      state.entitlements = state.entitlements.filter((each) => each.id !== id)
      return deleted('entitlement', id)
    },
    'get /entitlements/{entitlement_id}/products': (exchange) => {
      const found = find.entitlement(exchange.ids[0] ?? '')
      return found ? listed(exchange, productsJson(found.products)) : missing
    },
    'post /entitlements/{entitlement_id}/actions/attach_products': ({ ids: [id = ''], body }) => {
      const found = find.entitlement(id)
      if (!found || body.product_ids.some((each: string) => !productById(each))) return missing
      if (body.product_ids.some((each: string) => found.products.includes(each))) return taken
      found.products.push(...body.product_ids)
      return { status: 200, body: entitlementJson(found, false) }
    },
    'post /entitlements/{entitlement_id}/actions/detach_products': ({ ids: [id = ''], body }) => {
      const found = find.entitlement(id)
      if (!found || body.product_ids.some((each: string) => !found.products.includes(each))) return missing
      found.products = found.products.filter((each) => !body.product_ids.includes(each))
      return { status: 200, body: entitlementJson(found, false) }
    },
    'get /offerings': (exchange) =>
      listed(
        exchange,
        [...state.offerings, ...state.archived.offerings].map((each) =>
          offeringJson(each, exchange.query.has('expand')),
        ),
      ),
    'post /offerings': ({ body: { lookup_key, display_name } }) => {
      const all = [...state.offerings, ...state.archived.offerings]
      if (all.some((each) => each.lookup_key === lookup_key)) return taken
      const offering = {
        id: newId('ofrng'),
        lookup_key,
        display_name,
        is_current: state.offerings.length === 0,
        packages: [],
      }
      state.offerings.push(offering)
      return made(`offering ${lookup_key}`, offeringJson(offering, false))
    },
    'post /offerings/{offering_id}': ({ ids: [id = ''], body }) => {
      const found = find.offering(id)
      return found ? { status: 200, body: offeringJson(Object.assign(found, body), false) } : missing
    },
    'delete /offerings/{offering_id}': ({ ids: [id = ''] }) => {
      if (!find.offering(id)) return missing
      state.offerings = state.offerings.filter((each) => each.id !== id)
      state.paywalls = state.paywalls.filter((each) => each.offering_id !== id)
      return deleted('offering', id)
    },
    'get /offerings/{offering_id}/packages': (exchange) => {
      const found = find.offering(exchange.ids[0] ?? '')
      return found ? listed(exchange, packagesJson(found)) : missing
    },
    'post /offerings/{offering_id}/packages': ({ ids: [id = ''], body: { lookup_key, display_name, position } }) => {
      const found = find.offering(id)
      if (!found) return missing
      if (found.packages.some((each) => each.lookup_key === lookup_key)) return taken
      const at = position ?? found.packages.length + 1
      const made_one = { id: newId('pkge'), lookup_key, display_name, position: at, products: [] }
      found.packages.push(made_one)
      return made(`package ${found.lookup_key}/${lookup_key}`, packageJson(made_one, false))
    },
    'post /packages/{package_id}': ({ ids: [id = ''], body }) => {
      const found = find.package(id)
      return found ? { status: 200, body: packageJson(Object.assign(found, body), false) } : missing
    },
    'delete /packages/{package_id}': ({ ids: [id = ''] }) => {
      if (!find.package(id)) return missing
      for (const offering of state.offerings) offering.packages = offering.packages.filter((each) => each.id !== id)
      return deleted('package', id)
    },
    'get /packages/{package_id}/products': (exchange) => {
      const found = find.package(exchange.ids[0] ?? '')
      return found ? listed(exchange, associationsJson(found.products)) : missing
    },
    'post /packages/{package_id}/actions/attach_products': ({ ids: [id = ''], body }) => {
      const found = find.package(id)
      const ids: string[] = body.products.map(({ product_id }: { product_id: string }) => product_id)
      if (!found || ids.some((each) => !productById(each))) return missing
      const apps = found.products.map((each) => productById(each)?.app_id)
      if (ids.some((each) => found.products.includes(each))) return taken
      if (ids.some((each) => apps.includes(productById(each)?.app_id)))
        return refused(422, 'unprocessable_entity_error')
      found.products.push(...ids)
      return { status: 200, body: packageJson(found, false) }
    },
    'post /packages/{package_id}/actions/detach_products': ({ ids: [id = ''], body }) => {
      const found = find.package(id)
      if (!found || body.product_ids.some((each: string) => !found.products.includes(each))) return missing
      found.products = found.products.filter((each) => !body.product_ids.includes(each))
      return { status: 200, body: packageJson(found, false) }
    },
    'get /paywalls': (exchange) => listed(exchange, state.paywalls.map(paywallJson)),
    'post /paywalls': ({ body: { offering_id } }) => {
      const offering = find.offering(offering_id)
      if (!offering) return missing
      if (state.paywalls.some((each) => each.offering_id === offering_id)) return taken
      const paywall = { id: newId('pw'), name: null, offering_id, published_at: null }
      state.paywalls.push(paywall)
      return made(`paywall ${offering.lookup_key}`, paywallJson(paywall))
    },
    'delete /paywalls/{paywall_id}': ({ ids: [id = ''] }) => {
      if (!state.paywalls.some((each) => each.id === id)) return missing
      state.paywalls = state.paywalls.filter((each) => each.id !== id)
      return deleted('paywall', id)
    },
  }

  const templateOf = (path: string) => {
    for (const template of Object.keys(document.paths)) {
      const found = new RegExp(`^${template.replaceAll(/\{\w+\}/g, '([^/]+)')}$`).exec(path)
      if (found) return { template, ids: found.slice(1).map(decodeURIComponent) }
    }
    return null
  }

  const answer = (call: Call, url: URL): Reply => {
    if (![readKey, writeKey].includes(call.key)) return refused(401, 'authentication_error')
    const prefix = document.base.replace('{project_id}', providerProject)
    const found = url.pathname.startsWith(prefix) ? templateOf(url.pathname.slice(prefix.length)) : null
    const method = call.method.toLowerCase()
    const operation = found && document.paths[found.template]?.[method]
    if (!found || !operation) {
      violations.push(`${call.method} ${url.pathname} is not in the document`)
      return missing
    }
    const name = `${method} ${found.template}`
    if (method !== 'get' && call.key !== writeKey) return refused(403, 'authorization_error')
    for (const [parameter, value] of url.searchParams) {
      const declared = operation.parameters.find((each) => each['name'] === parameter)
      if (!declared) violations.push(`${name} has no parameter ${parameter}`)
      const values = declared?.['schema'].items?.enum
      if (values && !values.includes(value)) violations.push(`${name}: ${parameter}=${value}`)
    }
    if (operation.requestBody) {
      if (call.body !== undefined || operation.required)
        violations.push(...problemsOf(operation.requestBody, call.body, `${name} body`))
    } else if (call.body !== undefined) violations.push(`${name} takes no body`)
    const reply = handlers[name]!({ ids: found.ids, body: call.body, query: url.searchParams, url: url.pathname })
    const schema = operation.responses[reply.status]
    violations.push(...problemsOf(schema ?? { $ref: 'Error' }, reply.body, `${name} ${reply.status}`))
    return reply
  }

  const write = (response: ServerResponse, { status, body = {}, headers = {} }: Reply) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const url = new URL(request.url ?? '/', 'http://provider')
    const key = (request.headers.authorization ?? '').replace('Bearer ', '')
    const call = { method: request.method ?? '', path: url.pathname, body: text ? JSON.parse(text) : undefined, key }
    calls.push(call)
    const instead = interfere(call, calls.length)
    const own = instead?.when === 'before' ? null : answer(call, url)
    const reply = instead?.reply ?? own
    if (reply === 'hang up' || !reply) request.socket.destroy()
    else if (reply !== 'silence') write(response, reply)
  }

  const server = createServer((request, response) => void serve(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const keyOf = (id: string) => productById(id)?.store_identifier ?? id

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    violations,
    calls,
    /** What was created, in order: an object that was created twice is there twice. */
    created,
    get state() {
      return state
    },
    /** The state without ids, sorted: two that look the same to customers are equal. */
    shown: () => ({
      products: state.products
        .map(({ id: _, ...rest }) => rest)
        .sort((a, b) => (a.store_identifier < b.store_identifier ? -1 : 1)),
      entitlements: state.entitlements
        .map(({ id: _, products, ...rest }) => ({ ...rest, products: products.map(keyOf).sort() }))
        .sort((a, b) => (a.lookup_key < b.lookup_key ? -1 : 1)),
      offerings: state.offerings
        .map(({ id: _, packages: held, ...rest }) => ({
          ...rest,
          packages: held
            .map(({ id: __, products, ...each }) => ({ ...each, products: products.map(keyOf).sort() }))
            .sort((a, b) => (a.lookup_key < b.lookup_key ? -1 : 1)),
        }))
        .sort((a, b) => (a.lookup_key < b.lookup_key ? -1 : 1)),
      paywalls: state.paywalls.map(({ offering_id }) => find.offering(offering_id)?.lookup_key).sort(),
      inStore: [...state.inStore].sort(),
    }),
    reset(initial: Partial<ProviderState> = {}) {
      state = { ...empty(), ...structuredClone(initial) }
      calls.length = 0
      created.length = 0
      interfere = () => null
      pageSize = 1000
    },
    interfere(with_: Interference) {
      interfere = with_
    },
    pages(size: number) {
      pageSize = size
    },
    async close() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

export type RevenueCat = Awaited<ReturnType<typeof startRevenueCat>>
