import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { between, data, Line, SmallJson, Text, Uuid } from '#server/http/schemas.ts'
import { adopt, adoptable, apply, plan, put, reading } from '#server/integrations/monetization.ts'

const stores = [
  'app_store',
  'mac_app_store',
  'play_store',
  'amazon',
  'stripe',
  'rc_billing',
  'roku',
  'paddle',
  'test_store',
] as const
const types = ['subscription', 'one_time', 'consumable', 'non_consumable', 'non_renewing_subscription'] as const

/** What the provider takes as a key, such as `$rc_monthly` or `Pro access`: what is adopted can be declared again. */
const Key = Text(200, 1)
const Name = Line(1500).nullable().default(null)
const upTo = <T extends z.ZodType>(item: T, most: number) =>
  z.array(item).max(most, `must have at most ${most} items`).default([])

const Declared = z.object({
  entitlements: upTo(
    z.object({
      key: Key,
      display_name: Name,
      description: Text(2000).nullable().default(null),
      product_keys: upTo(Key, 200),
    }),
    500,
  ),
  products: upTo(
    z.object({
      key: Key,
      store: z
        .string('must be a string')
        .regex(/^[a-z0-9_]{1,50}$/, `must be a word of small letters, digits and _, such as ${stores.join(', ')}`),
      store_identifier: Text(200, 1),
      type: z
        .enum(types, `must be one of ${types.join(', ')}`)
        .nullable()
        .default(null),
      display_name: Name,
      store_metadata: SmallJson(4000).default({}),
    }),
    2000,
  ),
  offerings: upTo(
    z.object({
      key: Key,
      display_name: Name,
      is_current: z.boolean('must be true or false').default(false),
      packages: upTo(
        z.object({
          offering_key: Key.optional(),
          key: Key,
          product_key: Key.nullable().default(null),
          position: between(0, 2_147_483_647).nullable().default(null),
        }),
        200,
      ),
    }),
    500,
  ),
  paywalls: upTo(
    z.object({
      key: Key,
      offering_key: Key,
      template: Text(200, 1).nullable().default(null),
      display: SmallJson(8000).default({}),
    }),
    500,
  ),
})

/** What the provider holds may have keys that cannot be declared. */
const Monetization = z.strictObject({
  entitlements: z.array(
    z.strictObject({
      key: z.string(),
      display_name: z.string().nullable(),
      description: z.string().nullable(),
      product_keys: z.array(z.string()),
    }),
  ),
  products: z.array(
    z.strictObject({
      key: z.string(),
      store: z.string(),
      store_identifier: z.string(),
      type: z.string().nullable(),
      display_name: z.string().nullable(),
      store_metadata: z.record(z.string(), z.unknown()),
    }),
  ),
  offerings: z.array(
    z.strictObject({
      key: z.string(),
      display_name: z.string().nullable(),
      is_current: z.boolean(),
      packages: z.array(
        z.strictObject({
          offering_key: z.string(),
          key: z.string(),
          product_key: z.string().nullable(),
          position: z.int().nullable(),
        }),
      ),
    }),
  ),
  paywalls: z.array(
    z.strictObject({
      key: z.string(),
      offering_key: z.string(),
      template: z.string().nullable(),
      display: z.record(z.string(), z.unknown()),
    }),
  ),
})
const Shown = data(z.strictObject({ monetization: Monetization }))

const Drifted = z.strictObject({
  object_type: z.enum(adoptable),
  identifier: z.string(),
  last_applied_hash: z.string().nullable(),
  live_hash: z.string().nullable(),
})
const Floor = z.strictObject({
  code: z.string(),
  product_key: z.string().nullable(),
  store: z.string(),
  title: z.string(),
  detail: z.string(),
  location: z.string().nullable(),
})
const Op = z.strictObject({
  op: z.enum(['create', 'update', 'archive', 'attach', 'detach', 'set-current']),
  object_type: z.enum([...adoptable, 'package', 'store_product']),
  identifier: z.string(),
})
const Plan = z.strictObject({
  provider: z.literal('revenuecat'),
  rc_project_id: z.string(),
  plan_hash: z.string(),
  clean: z.boolean(),
  ops: z.array(Op.extend({ status: z.enum(['pending', 'drift']), reason: z.string() })),
  store_floor: z.array(Floor),
  human_floor: z.array(Floor),
  drift: z.array(Drifted),
  validation: z.array(
    z.strictObject({
      code: z.enum(['MULTIPLE_CURRENT_OFFERINGS', 'PRODUCT_TYPE_REQUIRED', 'PRODUCT_PUSH_INPUT_MISSING']),
      object_type: z.enum(adoptable),
      identifier: z.string(),
      detail: z.string(),
    }),
  ),
})
const Counts = z.strictObject({
  adopted: z.int(),
  entitlements: z.int(),
  products: z.int(),
  offerings: z.int(),
  packages: z.int(),
  paywalls: z.int(),
})
const Applying = z.strictObject({
  provider: z.literal('revenuecat'),
  operation_id: Uuid,
  status: z.enum(['started', 'confirm_sent']),
  plan_hash: z.string(),
  confirm_required: z.boolean(),
  gated: z.array(Op.extend({ reason: z.string() })),
  refused: z.array(Op.extend({ code: z.string(), manual_step: z.string() })),
})

const Hash = z.string().regex(/^[0-9a-f]{64}$/, 'must be the plan_hash of a plan')

const readable = { 400: ['MONETIZATION_NOT_CONFIGURED'], 502: ['PROVIDER_READ_FAILED'] }

export const monetization = area({
  stem: 'monetization',
  title: 'Monetization',
  part: 'Economy',
  about: 'Products, prices and offers of the stores as one plan.',
  codes: 'by area',
  invalid: 'INVALID_BODY',
  notMigrated: 'MONETIZATION_NOT_MIGRATED',
  words: {
    monetization: ['What you sell', 'The whole declaration; it replaces the former one.'],
    key: ['Key', 'The name in code and in calls.'],
    entitlements: ['Entitlements', 'What users get access to.'],
    product_keys: ['Products', 'The keys of the products that give it.'],
    products: ['Products', 'What is sold in stores.'],
    store: ['Store', 'Such as `app_store` or `play_store`.'],
    store_identifier: ['Store id', 'What the store calls it.'],
    'products.type': ['Kind', 'A subscription, or something that is bought once.'],
    store_metadata: ['For the store', 'Such as `push_to_store`, `duration` and `subscription_group_name`.'],
    offerings: ['Offerings', 'What is shown together.'],
    is_current: ['Current', 'The one that apps show.'],
    packages: ['Packages', 'The choices of an offering.'],
    offering_key: ['Offering', 'The key of an offering.'],
    product_key: ['Product', 'The key of the product that is sold.'],
    position: ['Position', 'Lower numbers come first.'],
    paywalls: ['Paywalls', 'The screens that sell an offering.'],
    template: ['Template', 'The design of the screen.'],
    display: ['Display', 'Texts and colours, as the template takes them.'],
    adopt_all: ['Everything', 'Takes over all that the provider has.', { default: false }],
    objects: ['Objects', 'Or these alone.'],
    object_type: ['Kind', 'Such as `product`.'],
    identifier: ['Identifier', 'What the provider calls it.'],
    plan_hash: ['Plan', 'The `plan_hash` of the plan that is applied.'],
    confirm: ['Confirmation', 'The same again, where the plan ends something.'],
    allow_detach_live: ['Also what customers have', 'Detaches products by which somebody has access now.'],
    reconcile: ['What differs', '`service` makes the provider as declared, `adopt` declares what the provider has.'],
  },
  routes: [
    ...group('/admin/projects/:projectId/monetization', administrator, [
      route('GET /plan', 'What an apply would do at the subscription provider', {
        handle: plan,
        description:
          'Reads the provider, changes nothing. `status` of an op is `drift` where the definition has not changed since it was applied, so the op would undo a change at the provider.',
        replies: { 200: data(Plan) },
        refusals: readable,
      }),
      route('GET /drift', 'What changed at the provider since it was applied', {
        handle: reading('monetization_drift'),
        description:
          'Live objects that are neither declared nor adopted have `last_applied_hash` null; objects that are gone have `live_hash` null.',
        replies: { 200: data(z.strictObject({ has_drift: z.boolean(), drift: z.array(Drifted) })) },
        refusals: readable,
      }),
      route('GET /export', 'What the provider holds, in the shape of the definitions', {
        handle: reading('monetization_export'),
        replies: { 200: Shown },
        refusals: readable,
      }),
      route('GET /definitions', 'What is declared', { call: 'monetization_definitions_get', replies: { 200: Shown } }),
      route('PUT /definitions', 'Declare what the project sells; replaces the whole declaration', {
        handle: put,
        description:
          'Touches no provider: plan and apply do. A field that is absent or null is left as the provider has it.',
        body: z.object({ monetization: Declared }),
        example: {
          monetization: {
            products: [
              {
                key: 'monthly',
                store: 'app_store',
                store_identifier: 'com.example.monthly',
                type: 'subscription',
                store_metadata: { push_to_store: false },
              },
            ],
            entitlements: [{ key: 'premium', display_name: 'Premium', product_keys: ['monthly'] }],
            offerings: [
              {
                key: 'default',
                display_name: 'Default',
                packages: [{ key: '$rc_monthly', product_key: 'monthly', position: 1 }],
              },
            ],
          },
        },
        replies: { 200: Shown },
      }),
      route('POST /adopt', 'Declare live objects as the provider holds them', {
        handle: adopt,
        description:
          "Writes the project's definitions only. What an object refers to is adopted with it: an entitlement's products, an offering's packages and their products, a paywall's offering. Products are named `store:store_identifier`.",
        body: z.object({
          adopt_all: z.boolean('must be true or false').optional(),
          objects: z
            .array(
              z.object({
                object_type: z.string().max(100, 'must have at most 100 characters'),
                identifier: Text(300, 1),
              }),
            )
            .max(500, 'must have at most 500 items')
            .optional(),
        }),
        example: { adopt_all: true },
        replies: { 200: data(Counts) },
        refusals: { ...readable, 400: ['MONETIZATION_NOT_CONFIGURED', 'PACKAGE_NOT_INDEPENDENTLY_ADOPTABLE'] },
      }),
      route('POST /apply', 'Apply a plan, as an operation', {
        handle: apply,
        description:
          'Additive ops run at once; `gated` ones wait up to 24 hours for a second call with `confirm` equal to `plan_hash`; `refused` ones are left to a person. Poll the operation.',
        body: z.object({
          plan_hash: Hash,
          confirm: Hash.optional(),
          allow_detach_live: z.boolean('must be true or false').default(false),
          reconcile: z.enum(['service', 'adopt'], 'must be service or adopt').default('service'),
        }),
        example: { plan_hash: 'a'.repeat(64) },
        replies: { 202: data(Applying) },
        refusals: {
          ...readable,
          403: ['WRITE_KEY_REQUIRED'],
          409: ['PLAN_CHANGED', 'ALREADY_RUNNING', 'CONFIRM_MISMATCH', 'CONFIRMATION_EXPIRED'],
        },
        failure: 'APPLY_FAILED',
      }),
    ]),
  ],
})
