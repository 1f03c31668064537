import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { area, type HandlerContext, route } from '#server/http/route.ts'
import { data, Flag, Json, Text, Time } from '#server/http/schemas.ts'

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
/** A bigint or a numeric may exceed what a JSON number holds. */
const Bound = z.union([z.number(), z.string().regex(/^-?\d+(\.\d+)?$/)], 'must be a number')

const NewColumn = z.object({
  name: Name,
  type: Type,
  nullable: z.boolean().optional(),
  default: Json.optional(),
  unique: z.boolean().optional(),
  max_length: z.int().nullable().optional(),
  min: Bound.nullable().optional(),
  max: Bound.nullable().optional(),
  enum: z.array(Json).nullable().optional(),
  references: z.object({ collection: z.string(), on_delete: OnDelete.optional() }).nullable().optional(),
  dimensions: z.int().nullable().optional(),
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

const Column = z.strictObject({
  name: z.string(),
  type: Type,
  nullable: z.boolean(),
  default: Json,
  unique: z.boolean(),
  max_length: z.int().nullable(),
  min: z.union([z.number(), z.string()]).nullable(),
  max: z.union([z.number(), z.string()]).nullable(),
  enum: z.array(Json).nullable(),
  references: z.strictObject({ collection: z.string(), on_delete: OnDelete }).nullable(),
  dimensions: z.int().nullable(),
})

const Index = z.strictObject({
  name: z.string(),
  columns: z.array(z.string()),
  unique: z.boolean(),
  method: Method,
  where: Filter.nullable(),
  is_ready: z.boolean(),
})

const Collection = z.strictObject({
  name: z.string(),
  description: z.string().nullable(),
  columns: z.array(Column),
  indexes: z.array(Index),
  owner_scope: z.enum(['user', 'group']),
  read_policy: z.string(),
  write_policy: z.string(),
  sync: z.boolean(),
  realtime: z.boolean(),
  row_count_estimate: z.int(),
  schema_version: z.int(),
  created_at: Time,
  updated_at: Time,
})

/** What `dry_run` answers: the change as SQL, and what it would cost. */
const Plan = z.strictObject({
  sql: z.array(z.string()),
  rewrites_table: z.boolean(),
  rows: z.int(),
  estimated_ms: z.int(),
  warnings: z.array(z.string()),
})

const dryRun = { dry_run: Flag() }
const busy = { 429: ['RATE_LIMITED'] }

/** A change may rewrite a table: it has longer than a request for rows. */
const changeMs = 600_000

/** Changes of the schema take locks and make every server compile anew: five a second in a project are plenty. */
const change =
  (name: string, args: (context: HandlerContext) => Record<string, unknown>) => async (context: HandlerContext) => {
    const { services, resolved, query } = context
    if (!query['dry_run'])
      services.ceilings.take([{ key: `schema ${resolved.edge?.projectId}`, perSecond: 5, burst: 5 }])
    return context.call(name, { ...args(context), dry_run: query['dry_run'] }, { timeoutMs: changeMs })
  }

export const collectionDefinitions = area({
  stem: 'collections',
  title: 'Collections: definitions',
  source: 'supplement',
  routes: [
    route('POST /admin/projects/:projectId/collections', {
      caller: administrator,
      summary: 'Make a collection: a table with its columns, indexes and policies',
      description: '`dry_run=true` answers 200 with the plan, and changes nothing.',
      query: dryRun,
      body: NewCollection,
      example: { name: 'notes', columns: [{ name: 'title', type: 'text', max_length: 200 }] },
      handle: change('collection_create', ({ body }) => ({ definition: body })),
      replies: { 200: data(Plan), 201: data(Collection) },
      refusals: {
        400: ['VALIDATION_ERROR', 'INVALID_BODY', 'INVALID_INPUT', 'RESERVED_NAME', 'INVALID_POLICY'],
        409: ['CONFLICT', 'COLLECTION_LIMIT_REACHED'],
        ...busy,
      },
      failure: 'CREATE_FAILED',
    }),
  ],
})
