import { z } from 'zod'
import { importItems } from '#server/economy/catalog_import.ts'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { Reward } from '#server/http/grammars.ts'
import { fieldsOf } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { between, data, Flag, Key, Page, page, SmallJson, Text, Time, Uuid } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const ItemType = z.enum(
  ['consumable', 'durable', 'bundle', 'currency_pack'],
  'must be consumable, durable, bundle or currency_pack',
)
const Fields = fieldsOf('catalog_item', {
  tags: z.array(Text(50, 1)).max(50, 'must have at most 50 items'),
  metadata: SmallJson(8192),
  max_owned: between(1, 1_000_000).nullable(),
  duration_seconds: between(1, 315_360_000).nullable(),
  use_effect: Reward.nullable(),
})
const { name, ...optional } = Fields
const Prices = z
  .array(z.object({ currency_code: z.string(), price: between(0, 2_000_000_000) }))
  .max(100, 'must have at most 100 items')
const Contents = z
  .array(z.object({ content_item_key: z.string(), quantity: between(1, 10_000) }))
  .max(100, 'must have at most 100 items')
const NewItem = z.object({
  key: Key,
  name,
  item_type: ItemType,
  ...z.object({ ...optional, prices: Prices, bundle_contents: Contents }).partial().shape,
})

const Item = z.strictObject({
  id: Uuid,
  key: Key,
  item_type: ItemType,
  ...Fields,
  catalog_item_prices: z.array(z.strictObject({ currency_code: z.string(), price: z.int() })),
  bundle_contents: z.array(
    z.strictObject({
      content_item_id: Uuid,
      quantity: z.int(),
      catalog_items: z.strictObject({ key: Key, name: z.string(), icon_url: z.string().nullable() }),
    }),
  ),
  created_at: Time,
  updated_at: Time,
})
const Problem = z.strictObject({ index: z.int(), key: z.string().nullable(), message: z.string() })
const Imported = z.strictObject({
  created: z.int(),
  updated: z.int(),
  unchanged: z.int(),
  errors: z.array(Problem),
})

const listed = {
  category: z.string().max(100).optional(),
  tag: z.string().max(50).optional(),
}
const notFound = { 404: ['NOT_FOUND'] }
const badBody = ['VALIDATION_ERROR', 'INVALID_BODY']

const itemForm: Form = {
  Basics: { name: true, key: true, description: true, icon_url: true },
  'What it is': {
    item_type: [
      'Kind',
      'Consumable: used up. Durable: owned once. Bundle: other items. Currency pack: credits at once. It never changes.',
    ],
    bundle_contents: ['Contents', 'What a bundle consists of.', { default: [] }],
    use_effect: ['Effect', 'What a user gets by using it, or at once from a currency pack.', { unset: 'None' }],
    max_owned: ['Most owned', 'How many a user can have.', { unset: 'No limit; 1 of a durable' }],
    duration_seconds: ['Lasts', 'Seconds after which it expires.', { unset: 'For ever' }],
  },
  'In the shop': {
    prices: ['Prices', 'One for each currency that buys it.', { default: [] }],
    category: ['Category', 'A word by which apps list items.'],
    tags: true,
    is_active: ['Active', 'Users see active items only.'],
    metadata: true,
  },
}

export const catalog = area({
  stem: 'catalog',
  title: 'Catalog',
  part: 'Economy',
  about: 'Items that can be bought or granted, with prices and contents.',
  words: {
    is_active: ['Active', 'Users see active items only.', { unset: 'True for a new item, else as it is' }],
    max_owned: ['Most owned', 'How many a user can have.', { unset: 'No limit for a new item, else as it is' }],
    duration_seconds: ['Lasts', 'Seconds after which it expires.', { unset: 'For ever for a new item, else as it is' }],
    'prices.price': ['Price', 'How much of the currency it costs.'],
    content_item_key: ['Item', 'The key of another item.'],
    'bundle_contents.quantity': ['Quantity', 'How many of it.'],
  },
  routes: [
    ...group('/client/catalog', endUser, [
      route('GET /', 'Active items, newest first', {
        call: 'catalog_list',
        operationId: 'listCatalogItems',
        codes: 'by area',
        query: { ...Page, ...listed },
        replies: { 200: page(Item) },
      }),
      route('GET /:itemId', 'An active item, by id or key', {
        call: 'catalog_get',
        operationId: 'getCatalogItem',
        codes: 'by area',
        params: { itemId: z.string() },
        replies: { 200: data(Item) },
      }),
    ]),
    ...group('/admin/projects/:projectId/catalog', administrator, [
      route('GET /', 'Items, newest first', {
        call: 'catalog_item_list',
        operationId: 'listCatalogItemDefinitions',
        query: {
          ...Page,
          ...listed,
          item_type: ItemType.optional(),
          search: z.string().max(200).optional(),
          include_inactive: Flag(),
        },
        replies: { 200: page(Item) },
      }),
      route('POST /import', 'Create or update items by key, all or none', {
        handle: importItems(NewItem),
        description:
          'The body is a JSON array of 1 to 5000 items, each as for creating one; omitted fields are unchanged. Bundles may contain items of the same list. With an error nothing is written.',
        query: { dry_run: Flag(true).describe('Only say what would happen') },
        documentedBody: z.array(NewItem).min(1).max(5000),
        example: [{ key: 'potion', name: 'Potion', item_type: 'consumable' }],
        replies: { 200: data(Imported) },
        refusals: { 400: ['INVALID_BODY', 'VALIDATION_ERROR'] },
        failure: 'CREATE_FAILED',
      }),
      ...definitions('catalog_item', {
        form: itemForm,
        creation: NewItem,
        fields: Fields,
        row: Item,
        refusals: {
          create: { 400: [...badBody, 'BUNDLE_CYCLE'] },
          get: notFound,
          update: { 400: badBody, ...notFound },
          delete: { ...notFound, 409: ['ITEM_IN_USE'] },
        },
        example: {
          create: { key: 'potion', name: 'Potion', item_type: 'consumable', tags: ['healing'] },
          update: { is_active: false },
        },
        summaries: {
          create: 'Add an item; at most 5,000',
          get: 'An item',
          update: 'Change an item',
          delete: 'Delete an item that is not in use',
        },
      }),
      route('PUT /:idOrKey/prices', "Replace an item's prices", {
        call: 'catalog_prices_put',
        operationId: 'setCatalogItemPrices',
        body: z.object({ prices: Prices }),
        example: { prices: [] },
        replies: { 200: data(Item) },
      }),
      route('PUT /:idOrKey/contents', 'Replace the contents of a bundle', {
        call: 'catalog_contents_put',
        operationId: 'setCatalogItemContents',
        body: z.object({ bundle_contents: Contents }),
        example: { bundle_contents: [] },
        replies: { 200: data(Item) },
      }),
    ]),
  ],
})
