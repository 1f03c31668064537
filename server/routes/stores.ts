import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { idempotency } from '#server/http/idempotency.ts'
import { answer, fieldsOf } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import {
  between,
  Cursor,
  cursorPage,
  Deleted,
  data,
  IncludeUser,
  Key,
  Limit,
  Moment,
  Page,
  page,
  Text,
  Time,
  Uuid,
  withUser,
} from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const order = between(-2_147_483_648, 2_147_483_647)
const Fields = fieldsOf('store', { sort_order: order })

const Price = z.strictObject({ currency_code: z.string(), price: z.int(), original_price: z.int().nullable() })
const Offer = answer('store_offer_row_json', { catalog_item_key: Key, prices: z.array(Price), stock_sold: z.int() })
const Store = answer('store_json', { offers: z.array(Offer) })
const Listed = answer('store_shown_json')
const Shown = z.strictObject({
  id: Uuid,
  key: Key,
  item: z.strictObject({
    id: Uuid,
    key: Key,
    name: z.string(),
    item_type: z.enum(['consumable', 'durable', 'bundle', 'currency_pack']),
    icon_url: z.string().nullable(),
  }),
  quantity: z.int(),
  prices: z.array(Price),
  badge: z.string().nullable(),
  available: z.boolean(),
  reason: z.enum(['not_started', 'no_price', 'limit_reached', 'out_of_stock', 'max_owned']).nullable(),
  remaining_for_user: z.int().nullable(),
  remaining_stock: z.int().nullable(),
  can_afford: z.boolean(),
  starts_at: Time.nullable(),
  ends_at: Time.nullable(),
})
const Previewed = Shown.extend({
  reason: z
    .enum([
      'inactive',
      'item_inactive',
      'ended',
      'segment',
      'not_started',
      'no_price',
      'limit_reached',
      'out_of_stock',
      'max_owned',
    ])
    .nullable(),
  visible: z.boolean(),
})
const Preview = z.strictObject({
  visible: z.boolean(),
  reason: z.enum(['inactive', 'not_started', 'ended', 'segment']).nullable(),
  offers: z.array(Previewed),
})

const Stack = answer('inventory_json', {
  item: answer('inventory_item_json'),
  metadata: z.record(z.string(), z.unknown()),
})
const Granted = z.strictObject({ catalog_item_id: Uuid, key: Key, quantity: z.int() })
const Purchase = answer('purchase_json', { granted: z.array(Granted) })
const Balances = z.record(z.string(), z.int())
const Bought = z.strictObject({ purchase: Purchase, granted: z.array(Stack), balances: Balances })
const Revenue = z.record(z.string(), z.number())
const Stats = z.strictObject({
  purchases: z.int(),
  refunded: z.int(),
  buyers: z.int(),
  units: z.int(),
  revenue: Revenue,
  offers: z.array(z.strictObject({ offer_id: Uuid, key: Key, purchases: z.int(), units: z.int(), revenue: Revenue })),
})

const Prices = z
  .array(
    z.object({
      currency_code: z.string(),
      price: between(0, 2_000_000_000),
      original_price: between(1, 2_000_000_000).nullable().optional(),
    }),
  )
  .max(100, 'must have at most 100 items')
const changeable = {
  quantity: between(1, 10_000),
  prices: Prices,
  limit_per_user: between(1, 1_000_000_000).nullable(),
  limit_period: z.enum(['total', 'day', 'week', 'month'], 'must be total, day, week or month'),
  stock_total: between(0, 1_000_000_000).nullable(),
  starts_at: Moment.nullable(),
  ends_at: Moment.nullable(),
  segment_id: Uuid.nullable(),
  badge: Text(64).nullable(),
  sort_order: order,
  is_active: z.boolean(),
}
const NewOffer = z.object({
  key: Key,
  ...z.object({ catalog_item_id: Uuid, catalog_item_key: Key, ...changeable }).partial().shape,
})
const OfferChanges = z.object(changeable).partial()

const storeForm: Form = {
  Basics: { name: true, key: true, description: true },
  'Who sees it, and when': {
    segment_id: true,
    starts_at: ['From', 'Users do not see it before.', { unset: 'At once' }],
    ends_at: ['Until', 'Users do not see it from then on.', { unset: 'Always' }],
    is_active: ['Active', 'Users see active stores only.'],
    sort_order: ['Order', 'Lists begin with the lowest number.'],
  },
}
const offerForm: Form = {
  'What is sold': {
    key: ['Key', 'The name of the offer in code; it never changes.'],
    catalog_item_id: ['Item', 'The id of an item of the catalog; it never changes.'],
    catalog_item_key: ['Item', 'The key of an item of the catalog, in place of its id.'],
    quantity: ['Quantity', 'How many of the item a unit gives.', { default: 1 }],
    prices: ['Prices', 'What a unit costs, one for each currency. None: the prices of the item.', { default: [] }],
    badge: ['Badge', 'A word that apps show with it, such as `Best value`.'],
  },
  Limits: {
    limit_per_user: ['Limit of a user', 'How many units a user may buy in a period.', { unset: 'No limit' }],
    limit_period: [
      'Period',
      'Days, weeks and months of UTC, after which a user may buy again; or for ever.',
      { default: 'total' },
    ],
    stock_total: ['Stock', 'How many units all users may buy.', { unset: 'No limit' }],
  },
  'Who sees it, and when': {
    segment_id: true,
    starts_at: ['From', 'Users see it before, but cannot buy it.', { unset: 'At once' }],
    ends_at: ['Until', 'Users do not see it from then on.', { unset: 'Always' }],
    is_active: ['Active', 'Users see active offers only.', { default: true }],
    sort_order: ['Order', 'The store begins with the lowest number.', { default: 0 }],
  },
}

const purchase = (context: HandlerContext) =>
  context.call('store_purchase', {
    id_or_key: context.params['idOrKey'],
    ...context.body,
    ...idempotency(context),
  })

const refund = (context: HandlerContext) =>
  context.call('purchase_refund', {
    purchase_id: context.params['purchaseId'],
    ...context.body,
    ...idempotency(context),
  })

const takesKey = 'Accepts an Idempotency-Key, which is stored permanently by user and store; a refusal does not use it.'

export const stores = area({
  stem: 'stores',
  title: 'Stores',
  part: 'Economy',
  about: 'Offers of items for currencies, with limits, and what users bought.',
  words: {
    'prices.currency_code': ['Currency', 'The code of a currency.'],
    'prices.price': ['Price', 'How much of the currency a unit costs; 0 is free.'],
    'prices.original_price': ['Former price', 'A higher price that apps show beside it.', { unset: 'None' }],
    offer_id: ['Offer', 'The id of the offer; it or its key is required.'],
    offer_key: ['Offer', 'The key of the offer.'],
    currency_code: ['Currency', 'The currency that is paid.'],
    expected_price: ['Expected price', 'What the user was told that all units cost together.'],
    is_active: ['Active', 'Users see what is active only.', { unset: 'True for a new one, else as it is' }],
  },
  routes: [
    ...group('/client/stores', endUser, [
      route('GET /', 'The stores that the caller sees, by sort_order', {
        call: 'stores_list',
        query: Page,
        replies: { 200: page(Listed) },
      }),
      route('GET /:idOrKey', 'A store with its offers as the caller sees them', {
        call: 'store_get',
        description:
          'An offer that cannot be bought now has a `reason`: the first of `not_started`, `no_price`, `limit_reached`, `out_of_stock`, `max_owned` that holds.',
        replies: { 200: data(Listed.extend({ offers: z.array(Shown) })) },
      }),
      route('POST /:idOrKey/purchase', 'Buy some units of an offer', {
        handle: purchase,
        calls: ['store_purchase'],
        operationId: 'purchaseOffer',
        description: `Debits, grants and records in one transaction, or not at all. ${takesKey} At most 30 a minute for a user.`,
        body: z.object({
          offer_id: Uuid.optional(),
          offer_key: z.string().max(128).optional(),
          quantity: between(1, 99).default(1),
          currency_code: z.string().max(16),
          expected_price: between(0, Number.MAX_SAFE_INTEGER),
        }),
        words: { quantity: ['Quantity', 'How many units.'] },
        example: { offer_key: 'potion', quantity: 2, currency_code: 'COINS', expected_price: 20 },
        replies: { 200: data(Bought), 201: data(Bought) },
      }),
    ]),
    ...group('/client/purchases', endUser, [
      route('GET /', "The caller's purchases, newest first", {
        call: 'purchases_list',
        query: Page,
        replies: { 200: page(Purchase) },
      }),
      route('GET /:purchaseId', "One of the caller's purchases", {
        call: 'purchase_get',
        replies: { 200: data(Purchase) },
      }),
    ]),
    ...group('/admin/projects/:projectId/stores', administrator, [
      ...definitions('store', {
        form: storeForm,
        fields: Fields,
        row: Store,
        refusals: { delete: { 409: ['STORE_IN_USE'] } },
        example: { create: { key: 'main', name: 'Main store' }, update: { is_active: false } },
        summaries: {
          create: 'Define a store; at most 50',
          list: 'Stores with their offers, by sort_order',
          get: 'A store with its offers',
          update: 'Change a store',
          delete: 'Delete a store in which nobody has bought, with its offers',
        },
      }),
      route('POST /:idOrKey/offers', 'Add an offer to a store; at most 200', {
        call: 'store_offer_create',
        form: offerForm,
        body: NewOffer,
        patch: true,
        example: { key: 'potion', catalog_item_key: 'potion', prices: [{ currency_code: 'COINS', price: 10 }] },
        replies: { 201: data(Offer) },
      }),
      route('PATCH /:idOrKey/offers/:offerId', 'Change an offer', {
        call: 'store_offer_update',
        form: offerForm,
        body: OfferChanges,
        patch: true,
        example: { is_active: false },
        replies: { 200: data(Offer) },
      }),
      route('DELETE /:idOrKey/offers/:offerId', 'Delete an offer that nobody has bought', {
        call: 'store_offer_delete',
        replies: { 200: Deleted },
      }),
      route('GET /:idOrKey/preview', 'What a user sees of a store, and why', {
        call: 'store_preview',
        description:
          'All offers, with `visible`. Further reasons are `inactive`, `item_inactive`, `ended` and `segment`, with which a list does not show an offer.',
        query: { user_id: Uuid },
        replies: { 200: data(Preview) },
      }),
      route('GET /:idOrKey/stats', 'What was sold in a store', {
        call: 'store_stats',
        description: '`purchases` has refunded ones too; `buyers`, `units` and `revenue` do not.',
        replies: { 200: data(Stats) },
      }),
    ]),
    ...group('/admin/projects/:projectId/purchases', administrator, [
      route('GET /', 'Purchases of all users, newest first', {
        call: 'purchases_all',
        query: {
          user_id: Uuid.optional(),
          store_id: Uuid.optional(),
          offer_id: Uuid.optional(),
          status: z.enum(['completed', 'refunded'], 'must be completed or refunded').optional(),
          ...IncludeUser,
          cursor: Cursor,
          limit: Limit(),
        },
        replies: { 200: cursorPage(withUser(Purchase)) },
      }),
      route('POST /:purchaseId/refund', 'Refund a purchase: the price goes back, what was given is taken', {
        handle: refund,
        calls: ['purchase_refund'],
        description:
          'If not all of it is there, 409 with `missing`, unless `force` takes what is there. Accepts an Idempotency-Key, which is stored permanently.',
        body: z.object({
          revoke_items: z.boolean().default(true),
          force: z.boolean().default(false),
          reason: Text(200).nullable().optional(),
        }),
        words: {
          revoke_items: ['Take the items', 'Off: the user keeps what was given.'],
          force: ['Also when something is missing', 'Takes what is there.'],
          reason: ['Reason', 'Why, for the audit trail.', { unset: 'None' }],
        },
        example: { reason: 'bought by mistake' },
        replies: { 200: data(z.strictObject({ purchase: Purchase, balances: Balances })) },
      }),
    ]),
  ],
})
