import { z } from 'zod'
import { JsonObject, Moment, Uuid } from '#server/http/schemas.ts'

const length = 'must have 1 to 128 characters'

/** The fields of a mutation; each but data may stand alone, so that one that is rejected keeps what is well formed. */
export const MutationFields = {
  id: Uuid,
  op: z.enum(['put', 'patch', 'delete'], 'must be put, patch or delete'),
  collection: z.string('must be a text'),
  row_id: Uuid,
  base_updated_at: Moment.nullish(),
  tx: z.string(length).min(1, length).max(128, length).nullish(),
}

/** A mutation of a push, each of which is understood, or rejected, by itself. */
export const Mutation = z
  .object({ ...MutationFields, data: z.unknown().optional() })
  .refine(({ op, data }) => op === 'delete' || JsonObject.safeParse(data).success, {
    path: ['data'],
    message: 'must be an object',
  })

/** What the document shows. */
export const DocumentedMutation = z.object({ ...MutationFields, data: JsonObject.optional() })
