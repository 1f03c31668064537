/** The bodies of requests that read rows, as their routes declare them and as a query string is checked. */
import { z } from 'zod'
import { field } from '#server/http/words.ts'

export const whole = (least: number) =>
  z
    .number(`must be a whole number of at least ${least}`)
    .refine((n) => Number.isInteger(n) && n >= least, `must be a whole number of at least ${least}`)
    .meta({ type: 'integer', minimum: least })
    .transform((n) => Math.min(n, Number.MAX_SAFE_INTEGER))
const clamped = (most: number, usual: number) =>
  field(
    whole(1)
      .transform((limit) => Math.min(limit, most))
      .default(usual),
    'Limit',
    `How many rows at most; more than ${most} counts as ${most}.`,
    { default: usual },
  )
const Name = z.string()
const Names = z.array(Name).max(200)
const Direction = z.enum(['asc', 'desc'], 'must be asc or desc')
const Order = z.array(z.object({ column: Name, direction: Direction.optional() }))
const nullish = <T extends z.ZodType>(schema: T) => schema.nullable().optional()

/** SQL validates a filter and names the path of an error in it. */
const Filter = z.unknown().meta({ anyOf: [{ $ref: '#/components/schemas/Filter' }, { type: 'null' }] })

export const FindOptions = z.object({
  filter: Filter.optional(),
  search: nullish(
    z.object({
      q: z.string(),
      columns: Names,
      fuzzy: z.boolean().optional(),
      threshold: z.number().min(0, 'must be from 0 to 1').max(1, 'must be from 0 to 1').optional(),
    }),
  ),
  order: nullish(Order),
  limit: clamped(1000, 50),
  offset: nullish(whole(0)),
  cursor: nullish(z.string()),
  select: nullish(Names),
  include_deleted: z.boolean().optional(),
  include: nullish(Names),
})

const Bucket = z.enum(['hour', 'day', 'week', 'month', 'year'], 'must be hour, day, week, month or year')
const functions = ['count', 'count_distinct', 'sum', 'avg', 'min', 'max'] as const

export const AggregateOptions = z.object({
  filter: Filter.optional(),
  group_by: nullish(
    z
      .array(z.union([Name, z.object({ column: Name, bucket: Bucket.optional(), timezone: z.string().optional() })]))
      .max(10),
  ),
  aggregates: z
    .array(
      z.object({
        fn: z.enum(functions, `must be one of ${functions.join(', ')}`),
        column: nullish(Name),
        as: z.string().regex(/^[a-z][a-z0-9_]{0,62}$/, 'must match ^[a-z][a-z0-9_]{0,62}$'),
      }),
    )
    .min(1, 'must have 1 to 10')
    .max(10, 'must have 1 to 10'),
  having: Filter.optional(),
  order: nullish(Order.max(20, 'must have at most 20 columns')),
  limit: clamped(1000, 100),
  include_deleted: z.boolean().optional(),
})

export const NearestOptions = z.object({
  column: Name,
  vector: z.array(z.unknown()).optional(),
  text: z.string().min(1, 'must have 1 to 8000 characters').max(8000, 'must have 1 to 8000 characters').optional(),
  metric: z.enum(['cosine', 'l2', 'inner_product'], 'must be cosine, l2 or inner_product').optional(),
  limit: clamped(100, 10),
  filter: Filter.optional(),
  max_distance: nullish(z.number()),
  select: nullish(Names),
})
