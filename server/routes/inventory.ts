import { z } from 'zod'
import { administrator, endUser, serverForUser } from '#server/http/callers.ts'
import { idempotency } from '#server/http/idempotency.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import {
  between,
  Cursor,
  cursorPage,
  data,
  IncludeUser,
  JsonObject,
  Limit,
  Page,
  page,
  Text,
  Uuid,
  withUser,
} from '#server/http/schemas.ts'

const ItemType = z.enum(['consumable', 'durable', 'bundle', 'currency_pack'])
const Short = answer('inventory_item_json')
const Stack = answer('inventory_json', { item: Short, metadata: JsonObject })
const Movement = answer('inventory_movement_json', { catalog_item_key: z.string() })
const Used = z.strictObject({ item: Short, quantity: z.int(), effect: JsonObject.nullable() })
const Left = z.strictObject({ catalog_item_key: z.string(), quantity: z.int() })

const quantity = (most: number) => between(1, most)
const Reason = Text(200, 1)
const given = {
  catalog_item_key: z.string(),
  quantity: quantity(10_000).optional(),
  expires_at: z.string().max(40, 'must be an ISO 8601 time').optional(),
}
const takesKey = 'Accepts an Idempotency-Key, which is stored permanently by user and route.'

const keyed = (call: string) => (context: HandlerContext) =>
  context.call(call, { ...context.body, ...idempotency(context) })
const consume = (context: HandlerContext) =>
  context.call('inventory_consume', {
    id_or_key: context.params['idOrKey'],
    ...context.body,
    ...idempotency(context),
  })

export const inventory = area({
  stem: 'inventory',
  title: 'Inventory',
  part: 'Economy',
  about: 'Items that users own.',
  words: {
    catalog_item_key: ['Item', 'The key of an item of the catalog.'],
    quantity: ['Quantity', 'How many.', { default: 1 }],
    expires_at: ['Expires at', 'The end of what is given.', { unset: 'As the item says, else never' }],
    'metadata.user': ['Data of the user', 'Keys are merged; null removes one.'],
  },
  routes: [
    ...group('/client/inventory', endUser, [
      route('GET /', "The caller's stacks, newest first", {
        call: 'inventory_list',
        query: { ...Page, item_type: ItemType.optional(), category: z.string().max(100).optional() },
        replies: { 200: page(Stack) },
      }),
      route('POST /grant', 'Grant items to a user, by a server key on behalf of them', {
        handle: keyed('inventory_grant'),
        caller: serverForUser,
        description: takesKey,
        body: z.object({ ...given, reason: Reason.optional() }),
        example: { catalog_item_key: 'potion', quantity: 3 },
        replies: { 200: data(z.array(Stack)), 201: data(z.array(Stack)) },
        refusals: { 404: ['ITEM_NOT_FOUND'], 409: ['IDEMPOTENCY_CONFLICT', 'LIMIT_REACHED', 'MAX_OWNED_REACHED'] },
      }),
      route('GET /:idOrKey', "One of the caller's stacks, by its id, or an item's stack that expires soonest", {
        call: 'inventory_get',
        operationId: 'getInventoryItem',
        replies: { 200: data(Stack) },
      }),
      route('PATCH /:idOrKey', "Change the caller's own metadata of a stack", {
        call: 'inventory_patch',
        operationId: 'updateInventoryItem',
        description: 'Only `metadata.user` is changed: keys are merged, null removes a key.',
        body: z.object({ metadata: z.object({ user: JsonObject.optional() }).optional() }),
        example: { metadata: { user: { equipped: true } } },
        replies: { 200: data(Stack) },
      }),
      route('POST /:idOrKey/consume', "Consume the caller's items, the soonest to expire first", {
        handle: consume,
        operationId: 'consumeInventoryItem',
        description: `Grants the item's \`use_effect\`, once for each. ${takesKey}`,
        body: z.object({ quantity: quantity(100).optional() }),
        example: { quantity: 1 },
        replies: { 200: data(Used) },
        refusals: { 404: ['ITEM_NOT_FOUND'], 409: ['IDEMPOTENCY_CONFLICT', 'INSUFFICIENT_QUANTITY', 'NOT_CONSUMABLE'] },
      }),
    ]),
    ...group('/admin/projects/:projectId/inventory', administrator, [
      route('GET /', 'Stacks of all users, newest first, including empty and expired ones', {
        call: 'inventory_all',
        query: { ...Page, user_id: Uuid.optional(), item_key: z.string().max(128).optional(), ...IncludeUser },
        replies: { 200: page(withUser(Stack)) },
      }),
      route('POST /grant', 'Grant items to a user; bundles are unpacked', {
        handle: keyed('inventory_grant'),
        description: takesKey,
        body: z.object({ app_user_id: Uuid, ...given, reason: Reason }),
        example: { app_user_id: '018f3f5e-0000-7000-8000-000000000000', catalog_item_key: 'potion', reason: 'support' },
        replies: { 200: data(z.array(Stack)), 201: data(z.array(Stack)) },
        refusals: { 404: ['ITEM_NOT_FOUND'], 409: ['IDEMPOTENCY_CONFLICT', 'LIMIT_REACHED', 'MAX_OWNED_REACHED'] },
      }),
      route('POST /revoke', 'Revoke items of a user', {
        handle: keyed('inventory_revoke'),
        description: takesKey,
        body: z.object({
          app_user_id: Uuid,
          catalog_item_key: z.string(),
          quantity: quantity(10_000).optional(),
          reason: Reason,
        }),
        example: { app_user_id: '018f3f5e-0000-7000-8000-000000000000', catalog_item_key: 'potion', reason: 'refund' },
        replies: { 200: data(Left) },
        refusals: { 404: ['ITEM_NOT_FOUND'], 409: ['IDEMPOTENCY_CONFLICT', 'INSUFFICIENT_QUANTITY'] },
      }),
      route('GET /ledger', 'Movements of items, newest first', {
        call: 'inventory_ledger',
        query: {
          user_id: Uuid.optional(),
          ...IncludeUser,
          cursor: Cursor,
          limit: Limit(),
        },
        replies: { 200: cursorPage(withUser(Movement)) },
      }),
    ]),
  ],
})
