import { identifierOf, type Live, type LiveOffering, type LivePackage } from '#server/providers/monetization/live.ts'

/** What steps name; each has those of its kind. */
export type StepArgs = {
  readonly product: string
  readonly store: string
  readonly store_identifier: string
  readonly type: string
  readonly display_name: string
  readonly app_id: string | null
  readonly entitlement: string
  readonly offering: string
  readonly package: string
  readonly paywall?: string
  readonly position: number | null
  readonly store_metadata: Readonly<Record<string, unknown>>
}

/** A step of an apply, made by internal.monetization_ops. `args` names objects by their identifiers. */
export type Step = {
  readonly op: 'create' | 'update' | 'archive' | 'attach' | 'detach'
  readonly object_type: 'product' | 'store_product' | 'entitlement' | 'offering' | 'package' | 'paywall'
  readonly identifier: string
  readonly args: StepArgs
}

export type Write = {
  readonly method: 'POST' | 'DELETE'
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  readonly json?: unknown
}

/** The kind of a step, such as `attach package`. */
const kindOf = ({ op, object_type }: Step) => `${op} ${object_type}`

export const wordsOf = (step: Step): string => `${kindOf(step)} ${step.identifier}`

const productOf = (live: Live, identifier: string) =>
  live.products
    .filter((product) => identifierOf(product) === identifier)
    // the one that internal.monetization_objects takes
    .sort((a, b) => (a.id < b.id ? -1 : 1))[0]
const entitlementOf = (live: Live, key: string) => live.entitlements.find((entitlement) => entitlement.key === key)
const offeringOf = (live: Live, key: string) => live.offerings.find((offering) => offering.key === key)
const packageOf = (live: Live, { offering, package: key }: StepArgs) =>
  offeringOf(live, offering)?.packages.find((each) => each.key === key)
const paywallOf = (live: Live, offering: string) => live.paywalls.find((paywall) => paywall.offering === offering)

const checks: Readonly<Record<string, (live: Live, args: StepArgs) => boolean>> = {
  'create product': (live, { product }) => productOf(live, product) !== undefined,
  'create entitlement': (live, { entitlement }) => entitlementOf(live, entitlement) !== undefined,
  'update entitlement': (live, { entitlement, display_name }) =>
    entitlementOf(live, entitlement)?.display_name === display_name,
  'attach entitlement': (live, { entitlement, product }) =>
    entitlementOf(live, entitlement)?.products.includes(product) === true,
  'create offering': (live, { offering }) => offeringOf(live, offering) !== undefined,
  'update offering': (live, { offering, display_name }) => offeringOf(live, offering)?.display_name === display_name,
  'create package': (live, args) => packageOf(live, args) !== undefined,
  'update package': (live, args) => packageOf(live, args)?.position === args.position,
  'attach package': (live, args) => packageOf(live, args)?.products.includes(args.product) === true,
  'create paywall': (live, { offering }) => paywallOf(live, offering) !== undefined,
  'detach package': (live, args) => !packageOf(live, args)?.products.includes(args.product),
  'archive package': (live, args) => packageOf(live, args) === undefined,
  'detach entitlement': (live, { entitlement, product }) =>
    !entitlementOf(live, entitlement)?.products.includes(product),
  'archive paywall': (live, { paywall = '' }) => paywallOf(live, paywall) === undefined,
  'archive offering': (live, { offering }) => offeringOf(live, offering) === undefined,
  'archive entitlement': (live, { entitlement }) => entitlementOf(live, entitlement) === undefined,
  'archive product': (live, { product }) => productOf(live, product) === undefined,
}

/** Whether the provider already holds what a step would bring about. The API does not show whether a product is in its store. */
export const isDone = (live: Live, step: Step): boolean => checks[kindOf(step)]?.(live, step.args) ?? false

/** An object that a step refers to is missing: somebody has removed it since the plan. */
export class MissingObject extends Error {}

const id = (found: { readonly id: string } | undefined): string => {
  if (!found) throw new MissingObject('an object that it refers to is gone')
  return found.id
}

/** The app in which a product is created: the one that the definition names, else the only one of the store. */
const appOf = (live: Live, { store, app_id }: StepArgs) =>
  live.apps.find((app) => app.type === store && (typeof app_id !== 'string' || app.id === app_id))

const pushBody = ({ type, store_metadata: more }: StepArgs) => {
  if (type !== 'subscription') return {}
  const { duration, subscription_group_name, subscription_group_id } = more
  const group = typeof subscription_group_id === 'string' ? { subscription_group_id } : {}
  return { store_information: { duration, subscription_group_name, ...group } }
}

const positioned = ({ position }: StepArgs) => (typeof position === 'number' ? { position } : {})

const writes: Readonly<Record<string, (live: Live, args: StepArgs) => Write>> = {
  'create product': (live, args) => ({
    ...post('/products', {}),
    json: {
      store_identifier: args.store_identifier,
      app_id: id(appOf(live, args)),
      type: args.type,
      ...(typeof args.display_name === 'string' ? { display_name: args.display_name } : {}),
    },
  }),
  'create store_product': (live, args) => ({
    ...post('/products/{product}/create_in_store', { product: id(productOf(live, args.product)) }),
    json: pushBody(args),
  }),
  'create entitlement': (_live, { entitlement, display_name }) => ({
    ...post('/entitlements', {}),
    json: { lookup_key: entitlement, display_name },
  }),
  'update entitlement': (live, { entitlement, display_name }) => ({
    ...post('/entitlements/{entitlement}', { entitlement: id(entitlementOf(live, entitlement)) }),
    json: { display_name },
  }),
  'attach entitlement': (live, args) => ofEntitlement(live, args, 'attach_products'),
  'detach entitlement': (live, args) => ofEntitlement(live, args, 'detach_products'),
  'create offering': (_live, { offering, display_name }) => ({
    ...post('/offerings', {}),
    json: { lookup_key: offering, display_name },
  }),
  'update offering': (live, { offering, display_name }) => ({
    ...post('/offerings/{offering}', { offering: id(offeringOf(live, offering)) }),
    json: { display_name },
  }),
  'create package': (live, args) => ({
    ...post('/offerings/{offering}/packages', { offering: id(offeringOf(live, args.offering)) }),
    json: { lookup_key: args.package, display_name: args.display_name, ...positioned(args) },
  }),
  'update package': (live, args) => ({
    ...post('/packages/{package}', { package: id(packageOf(live, args)) }),
    json: positioned(args),
  }),
  'attach package': (live, args) => ({
    ...post('/packages/{package}/actions/attach_products', { package: id(packageOf(live, args)) }),
    json: { products: [{ product_id: id(productOf(live, args.product)), eligibility_criteria: 'all' }] },
  }),
  'detach package': (live, args) => ({
    ...post('/packages/{package}/actions/detach_products', { package: id(packageOf(live, args)) }),
    json: { product_ids: [id(productOf(live, args.product))] },
  }),
  'create paywall': (live, { offering }) => ({
    ...post('/paywalls', {}),
    json: { offering_id: id(offeringOf(live, offering)) },
  }),
  'archive package': (live, args) => remove('/packages/{package}', { package: id(packageOf(live, args)) }),
  'archive paywall': (live, { paywall = '' }) =>
    remove('/paywalls/{paywall}', { paywall: id(paywallOf(live, paywall)) }),
  'archive offering': (live, { offering }) =>
    post('/offerings/{offering}/actions/archive', { offering: id(offeringOf(live, offering)) }),
  'archive entitlement': (live, { entitlement }) =>
    post('/entitlements/{entitlement}/actions/archive', { entitlement: id(entitlementOf(live, entitlement)) }),
  'archive product': (live, { product }) =>
    post('/products/{product}/actions/archive', { product: id(productOf(live, product)) }),
}

/** The archived object that a step would make a second time, and the request that brings it back in its place. */
const archivedAs = (live: Live, { op, object_type, args }: Step): Write | null => {
  if (op !== 'create' || (object_type !== 'product' && object_type !== 'entitlement' && object_type !== 'offering'))
    return null
  const found = live.archived[`${object_type}s`].find(({ key }) => key === args[object_type])
  return found ? post(`/${object_type}s/{object}/actions/unarchive`, { object: found.id }) : null
}

/** Whether a step brings an archived object back: what it holds then only the provider knows. */
export const bringsBack = (live: Live, step: Step): boolean => archivedAs(live, step) !== null

const post = (path: string, params: Readonly<Record<string, string>>) => ({ method: 'POST' as const, path, params })
const remove = (path: string, params: Readonly<Record<string, string>>) => ({ method: 'DELETE' as const, path, params })
const ofEntitlement = (live: Live, { entitlement, product }: StepArgs, action: string): Write => ({
  ...post(`/entitlements/{entitlement}/actions/${action}`, { entitlement: id(entitlementOf(live, entitlement)) }),
  json: { product_ids: [id(productOf(live, product))] },
})

/** The request that performs a step, with the provider's ids in place of identifiers. Throws MissingObject. */
export const writeOf = (live: Live, step: Step): Write => {
  const again = archivedAs(live, step)
  if (again) return again
  const write = writes[kindOf(step)]
  if (!write) throw new Error(`${kindOf(step)} is no step`)
  return write(live, step.args)
}

const without = <T>(items: readonly T[], item: T) => items.filter((each) => each !== item)
const offeringWith = (live: Live, key: string, change: (offering: LiveOffering) => LiveOffering): Live => ({
  ...live,
  offerings: live.offerings.map((offering) => (offering.key === key ? change(offering) : offering)),
})
const packageWith = (live: Live, args: StepArgs, change: (each: LivePackage) => LivePackage): Live =>
  offeringWith(live, args.offering, (offering) => ({
    ...offering,
    packages: offering.packages.map((each) => (each.key === args.package ? change(each) : each)),
  }))
const entitlementWith = (live: Live, key: string, products: (held: readonly string[]) => readonly string[]): Live => ({
  ...live,
  entitlements: live.entitlements.map((each) =>
    each.key === key ? { ...each, products: products(each.products) } : each,
  ),
})

const changes: Readonly<Record<string, (live: Live, args: StepArgs, newId: string) => Live>> = {
  'create product': (live, args, newId) => {
    const { store, store_identifier, type, display_name } = args
    const app_id = appOf(live, args)?.id ?? ''
    return { ...live, products: [...live.products, { id: newId, app_id, store, store_identifier, type, display_name }] }
  },
  'create entitlement': (live, { entitlement: key, display_name }, newId) => ({
    ...live,
    entitlements: [...live.entitlements, { id: newId, key, display_name, products: [] }],
  }),
  'attach entitlement': (live, { entitlement, product }) =>
    entitlementWith(live, entitlement, (held) => [...held, product]),
  'detach entitlement': (live, { entitlement, product }) =>
    entitlementWith(live, entitlement, (held) => without(held, product)),
  'create offering': (live, { offering: key, display_name }, newId) => ({
    ...live,
    offerings: [...live.offerings, { id: newId, key, display_name, is_current: false, packages: [] }],
  }),
  'create package': (live, args, newId) =>
    offeringWith(live, args.offering, (offering) => ({
      ...offering,
      packages: [...offering.packages, { id: newId, key: args.package, position: args.position, products: [] }],
    })),
  'attach package': (live, args) =>
    packageWith(live, args, (each) => ({ ...each, products: [...each.products, args.product] })),
  'detach package': (live, args) =>
    packageWith(live, args, (each) => ({ ...each, products: without(each.products, args.product) })),
  'archive package': (live, args) =>
    offeringWith(live, args.offering, (offering) => ({
      ...offering,
      packages: offering.packages.filter((each) => each.key !== args.package),
    })),
  'create paywall': (live, { offering }, newId) => ({
    ...live,
    paywalls: [...live.paywalls, { id: newId, offering, is_published: false, display: {} }],
  }),
}

/** What the provider holds after a step that later steps refer to; other steps leave what is known as it is. */
export const after = (live: Live, step: Step, newId: string): Live =>
  changes[kindOf(step)]?.(live, step.args, newId) ?? live

/** Whether later steps need the id that the provider gives. */
export const makesId = ({ op, object_type }: Step): boolean => op === 'create' && object_type !== 'store_product'

/** The managed object that a step changes, as internal.monetization_objects identifies it. */
export const objectOf = ({ object_type, args }: Step): readonly [type: string, identifier: string] => {
  if (object_type === 'package') return ['offering', args.offering]
  if (object_type === 'store_product') return ['product', args.product]
  if (object_type === 'paywall') return ['paywall', args.paywall ?? args.offering]
  return [object_type, args[object_type]]
}
