import { z } from 'zod'
import { data, JsonObject, Uuid } from '#server/http/schemas.ts'

/** A row: the server-managed columns, then the developer's own. */
const Row = z.looseObject({ id: Uuid })
export const OneRow = data(Row)
export const Rows = data(z.array(Row))
export const Page = z.strictObject({
  data: z.array(JsonObject),
  next_cursor: z.string().nullable().optional(),
  offset: z.int().optional(),
  limit: z.int().optional(),
})
export const Aggregates = data(z.array(JsonObject))
export const Nearest = data(z.array(z.looseObject({ _distance: z.number() })))
export const Deleted = data(z.strictObject({ id: Uuid, deleted: z.literal(true) }))
export const Count = data(z.strictObject({ count: z.int() }))
const ScanOf = z.strictObject({
  node: z.string(),
  table: z.string().nullable(),
  index: z.string().nullable(),
  rows: z.number(),
})
export const Plan = data(z.strictObject({ plan: z.array(z.string()), cost: z.number(), scans: z.array(ScanOf) }))

export const Batch = z.object({ rows: z.unknown() })
