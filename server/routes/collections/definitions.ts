import { z } from 'zod'
import {
  addIndex,
  change,
  listCollections,
  named,
  readCollection,
  readColumn,
} from '#server/collections/definitions.ts'
import { administrator } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, Flag, Page, page, SentNumber, Text, Uuid } from '#server/http/schemas.ts'
import { type Form, within } from '#server/http/words.ts'

const Name = z.string().regex(/^[a-z][a-z0-9_]{0,62}$/, 'must match ^[a-z][a-z0-9_]{0,62}$')
const types = [
  'text',
  'integer',
  'bigint',
  'numeric',
  'double',
  'boolean',
  'uuid',
  'date',
  'timestamptz',
  'jsonb',
  'vector',
  'text[]',
  'integer[]',
  'bigint[]',
  'numeric[]',
  'boolean[]',
  'uuid[]',
] as const
const Type = z.enum(types, `must be one of ${types.join(', ')}`)
const methods = ['btree', 'gin', 'trgm', 'hnsw'] as const
const Method = z.enum(methods, `must be one of ${methods.join(', ')}`)
const OnDelete = z.enum(['set_null', 'cascade', 'restrict'], 'must be set_null, cascade or restrict')
const Filter = z.record(z.string(), z.unknown())
/** A bigint or a numeric may also be a string, because JSON numbers are doubles to many clients. */
const Bound = z.union([SentNumber, z.string().regex(/^-?\d+(\.\d+)?$/)], 'must be a number')

const NewColumn = z.object({
  name: Name,
  type: Type,
  nullable: z.boolean().optional(),
  default: z.unknown().optional(),
  unique: z.boolean().optional(),
  max_length: z.int().nullable().optional(),
  min: Bound.nullable().optional(),
  max: Bound.nullable().optional(),
  enum: z.array(z.unknown()).nullable().optional(),
  references: z.object({ collection: z.string(), on_delete: OnDelete.optional() }).nullable().optional(),
  dimensions: z.int().nullable().optional(),
  moderated: z.boolean().optional(),
})

const NewIndex = z.object({
  name: Name.optional(),
  columns: z.array(z.string()),
  unique: z.boolean().optional(),
  method: Method.optional(),
  where: Filter.nullable().optional(),
})

const NewCollection = z.object({
  name: Name,
  description: Text(2000).nullable().optional(),
  columns: z.array(NewColumn).optional(),
  indexes: z.array(NewIndex).optional(),
  owner_scope: z.enum(['user', 'group'], 'must be user or group').optional(),
  read_policy: z.string().optional(),
  write_policy: z.string().optional(),
  sync: z.boolean().optional(),
  realtime: z.boolean().optional(),
})

/** owner_scope is accepted only to be refused: it never changes. */
const CollectionChanges = NewCollection.omit({ name: true, columns: true, indexes: true })
const ColumnChanges = NewColumn.pick({
  name: true,
  nullable: true,
  default: true,
  type: true,
  max_length: true,
  enum: true,
  min: true,
  max: true,
  moderated: true,
}).partial()

const Column = answer('collection_column_json', {
  type: Type,
  default: z.unknown(),
  min: z.union([z.number(), z.string()]).nullable(),
  max: z.union([z.number(), z.string()]).nullable(),
  enum: z.array(z.unknown()).nullable(),
  references: z.strictObject({ collection: z.string(), on_delete: OnDelete }).nullable(),
  graphql_name: z.string().nullable(),
})

const Index = answer('collection_index_json', {
  columns: z.array(z.string()),
  method: Method,
  where: Filter.nullable(),
})

const Collection = answer('collection_json', {
  columns: z.array(Column),
  indexes: z.array(Index),
  row_count_estimate: z.int(),
  graphql_name: z.string().nullable(),
})

/** The response of `dry_run`: the change as SQL, and its cost. */
const Plan = z.strictObject({
  sql: z.array(z.string()),
  rewrites_table: z.boolean(),
  rows: z.int(),
  estimated_ms: z.int(),
  warnings: z.array(z.string()),
})

/** JSON Schemas of a collection's rows: as they are answered, and as they are sent. */
const Types = z.strictObject({
  typescript: z.string(),
  json_schema: z.record(z.string(), z.strictObject({ row: z.looseObject({}), input: z.looseObject({}) })),
})

const dryRun = { dry_run: Flag() }

const confirmed = { ...dryRun, confirm: z.string().optional() }
const Dropped = z.strictObject({ name: z.string(), deleted: z.literal(true) })
const Started = z.strictObject({ operation_id: Uuid, status: z.literal('queued') })
const missing = { 404: ['COLLECTION_NOT_FOUND'] }
const onDryRun = '`dry_run=true` answers 200 with the plan, and changes nothing.'

const columnForm: Form = {
  Column: {
    name: ['Name', 'Small letters, digits and _, such as `price`.'],
    type: ['Type', 'What it holds.'],
    nullable: ['May be empty', 'Whether a row may have no value.', { default: true }],
    default: [
      'Default',
      'The value of a new row; `{"$fn": "now"}` is the time, `uuid` and `user_id` the others.',
      { unset: 'None' },
    ],
  },
  Bounds: {
    unique: ['Unique', 'No two rows have the same value.', { default: false }],
    max_length: ['Longest text', 'In characters.', { unset: 'No bound' }],
    min: ['Least', 'Of numbers.', { unset: 'No bound' }],
    max: ['Greatest', 'Of numbers.', { unset: 'No bound' }],
    enum: ['Choices', 'The only values that it takes.', { unset: 'Any value' }],
    moderated: ['Moderated', 'Rules of moderation read it.', { default: false }],
  },
  Special: {
    references: ['Refers to', 'Rows of another collection, by their id.', { unset: 'Nothing' }],
    dimensions: ['Dimensions', 'How many numbers a vector has.', { unset: 'Required of a vector' }],
  },
}

const collectionForm: Form = {
  Basics: {
    name: ['Name', 'The name of the table: small letters, digits and _, such as `notes`. It never changes.'],
    description: true,
  },
  Access: {
    owner_scope: ['Rows belong to', 'A user, or a group. It never changes.', { default: 'user' }],
    read_policy: ['Who reads', '`owner`, `public`, `member`, `member:<rank>` or `role:<key>`.', { default: 'owner' }],
    write_policy: ['Who writes', '`owner`, `authenticated`, `member:<rank>` or `role:<key>`.', { default: 'owner' }],
  },
  Table: {
    columns: ['Columns', 'Beside `id`, the owner and the times, which every table has.', { default: [] }],
    indexes: ['Indexes', 'For fast searching by columns.', { default: [] }],
  },
  Live: {
    realtime: ['Realtime', 'Changes are sent to apps that listen.', { default: true }],
    sync: ['Sync', 'Whether devices pull and push its rows.', { default: false }],
  },
}

const indexForm: Form = {
  Index: {
    columns: ['Columns', 'In the order of the index.'],
    unique: ['Unique', 'No two rows have the same values.', { default: false }],
    method: [
      'Kind',
      '`btree` for values, `gin` for lists and JSON, `trgm` for words, `hnsw` for vectors.',
      { default: 'btree' },
    ],
    where: ['Only rows that match', 'A filter: the index has no other rows.', { unset: 'All rows' }],
    name: ['Name', 'Small letters, digits and _.', { unset: 'One is made' }],
  },
}

export const collectionDefinitions = area({
  stem: 'collections',
  title: 'Collections: definitions',
  part: 'Data',
  about: 'Tables of a project: columns, indexes, access rules.',
  words: {
    ...within('columns', columnForm),
    ...within('indexes', indexForm),
    'references.collection': ['Collection', 'The name of a collection.'],
    'references.on_delete': [
      'When that row is deleted',
      'Clears it, deletes this row too, or refuses the deletion.',
      { default: 'set_null' },
    ],
  },
  routes: [
    ...group('/admin/projects/:projectId', administrator, [
      route('POST /collections', 'Create a collection: a table with its columns, indexes and policies', {
        form: collectionForm,
        description: onDryRun,
        query: dryRun,
        body: NewCollection,
        example: { name: 'notes', columns: [{ name: 'title', type: 'text', max_length: 200 }] },
        handle: named(
          change('collection_create', ({ body }) => ({ definition: body })),
          readCollection,
        ),
        calls: ['collection_create'],
        replies: { 200: data(Plan), 201: data(Collection) },
      }),
      route('GET /collections', "The project's collections, newest first", {
        handle: named(listCollections, listCollections),
        query: Page,
        replies: { 200: page(Collection) },
      }),
      route('GET /types', "Types of the rows of the project's collections, as TypeScript and as JSON Schema", {
        call: 'collections_types',
        operationId: 'getCollectionTypes',
        replies: { 200: data(Types) },
      }),
      route('GET /collections/:name', "A collection's definition", {
        handle: named(readCollection, readCollection),
        replies: { 200: data(Collection) },
        refusals: missing,
      }),
      route('PATCH /collections/:name', 'Change the description, the policies, sync or realtime of a collection', {
        form: collectionForm,
        description: onDryRun,
        query: dryRun,
        body: CollectionChanges,
        handle: named(
          change('collection_update', ({ body }) => ({ patch: body })),
          readCollection,
        ),
        calls: ['collection_update'],
        replies: { 200: data(z.union([Collection, Plan])) },
      }),
      route('DELETE /collections/:name', 'Drop a collection with its rows; `confirm` repeats its name', {
        handle: change('collection_drop'),
        calls: ['collection_drop'],
        description: onDryRun,
        query: confirmed,
        replies: { 200: data(z.union([Dropped, Plan])) },
      }),
      route('POST /collections/:name/columns', 'Add a column; existing rows get its default', {
        form: columnForm,
        description: onDryRun,
        query: dryRun,
        body: NewColumn,
        example: { name: 'title', type: 'text' },
        handle: named(
          change('collection_column_add', ({ body }) => ({ definition: body })),
          readColumn,
        ),
        calls: ['collection_column_add', 'collection_column_get'],
        replies: { 200: data(Plan), 201: data(Column) },
      }),
      route(
        'PATCH /collections/:name/columns/:column',
        'Rename a column or change its type, default or bounds, in place and without loss',
        {
          description: onDryRun,
          query: dryRun,
          form: columnForm,
          body: ColumnChanges,
          handle: named(
            change('collection_column_change', ({ body }) => ({ patch: body })),
            readColumn,
          ),
          calls: ['collection_column_change'],
          replies: { 200: data(z.union([Column, Plan])) },
        },
      ),
      route('DELETE /collections/:name/columns/:column', 'Drop a column with its values; `confirm` repeats its name', {
        handle: change('collection_column_drop'),
        calls: ['collection_column_drop'],
        description: onDryRun,
        query: confirmed,
        replies: { 200: data(z.union([Dropped, Plan])) },
      }),
      route('POST /collections/:name/indexes', 'Add an index', {
        form: indexForm,
        handle: addIndex,
        calls: ['collection_index_add'],
        description: `Over 100,000 rows it is built in the background, without a lock: 202 with an operation to poll. ${onDryRun}`,
        query: dryRun,
        body: NewIndex,
        example: { columns: ['created_at'] },
        replies: { 200: data(Plan), 201: data(Index), 202: data(Started) },
      }),
      route('DELETE /collections/:name/indexes/:index', 'Drop an index', {
        handle: change('collection_index_drop'),
        calls: ['collection_index_drop'],
        description: onDryRun,
        query: dryRun,
        replies: { 200: data(z.union([Dropped, Plan])) },
      }),
    ]),
  ],
})
