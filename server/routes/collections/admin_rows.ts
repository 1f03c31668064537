import { z } from 'zod'
import { answers } from '#server/collections/answers.ts'
import { AggregateOptions, FindOptions, NearestOptions } from '#server/collections/options.ts'
import { administrator } from '#server/http/callers.ts'
import { area, route } from '#server/http/route.ts'
import { Flag, JsonObject, NotModified, Uuid } from '#server/http/schemas.ts'
import { Aggregates, Batch, Deleted, Nearest, OneRow, Page, Plan, Rows } from '#server/routes/collections/responses.ts'

const inGroup = {
  'X-Group-Context': z.string().meta({ description: 'The group whose rows the request reads or writes.' }).optional(),
}
const unknownGroup = { 403: ['NOT_A_GROUP_MEMBER'], 404: ['COLLECTION_NOT_FOUND'] }
// FORBIDDEN: policies that a DBA added
const adding = { 403: ['NOT_A_GROUP_MEMBER', 'FORBIDDEN'], 404: ['COLLECTION_NOT_FOUND'] }
const inserting = ['INVALID_COLUMN', 'NOT_NULL_VIOLATION', 'GROUP_CONTEXT_REQUIRED', 'GROUP_NOT_PRIVATE']

export const collectionRows = area({
  stem: 'collections',
  title: 'Collections: rows',
  part: 'Data',
  about: 'Rows of a collection, as an administrator reads and writes them.',
  source: 'supplement',
  invalid: 'INVALID_BODY',
  invalidBody: 'INVALID_BODY',
  invalidJson: 'INVALID_JSON',
  routes: [
    route('POST /admin/projects/:projectId/collections/:name/rows', {
      operationId: 'adminCreateRow',
      caller: administrator,
      invalid: 'INVALID_BODY',
      summary: 'Insert a row of a user or a group',
      description: 'As `POST /client/collections/:name`, with `user_id` or `group_id` in the body.',
      query: {
        on_conflict: z.enum(['error', 'ignore', 'update'], 'must be error, ignore or update').optional(),
        conflict_target: z.string().optional(),
      },
      headers: { ...inGroup, 'Idempotency-Key': z.string().optional() },
      body: JsonObject,
      needsBody: true,
      example: { user_id: '00000000-0000-4000-8000-000000000000', title: 'First' },
      handle: answers.insert,
      replies: { 200: OneRow, 201: OneRow },
      refusals: {
        400: [...inserting, 'INVALID_CONFLICT_TARGET'],
        ...adding,
        409: ['CONFLICT', 'IDEMPOTENCY_REPLAY_GONE'],
      },
    }),
    route('POST /admin/projects/:projectId/collections/:name/rows/batch', {
      operationId: 'adminCreateRows',
      caller: administrator,
      invalid: 'INVALID_BODY',
      summary: 'Insert up to 500 rows, all or none',
      headers: inGroup,
      body: Batch,
      documentedBody: z.object({ rows: z.array(JsonObject).max(500) }),
      example: { rows: [{ user_id: '00000000-0000-4000-8000-000000000000', title: 'First' }] },
      handle: answers.batch,
      replies: { 201: Rows },
      refusals: { 400: [...inserting, 'BATCH_TOO_LARGE'], ...adding, 409: ['CONFLICT'] },
    }),
    route('POST /admin/projects/:projectId/collections/:name/find', {
      operationId: 'adminFindRows',
      caller: administrator,
      invalid: 'INVALID_BODY',
      summary: 'Find rows of all users',
      headers: inGroup,
      body: FindOptions,
      handle: answers.find,
      replies: { 200: Page },
      refusals: { 400: ['INVALID_COLUMN'], ...unknownGroup },
      readOnly: true,
    }),
    route('POST /admin/projects/:projectId/collections/:name/explain', {
      operationId: 'explainRows',
      caller: administrator,
      invalid: 'INVALID_BODY',
      summary: 'How Postgres would find rows: its plan, and what it reads by which index',
      description:
        'Takes the body of find, and `user_id`: with it as that user of an app would find them, policies included. Nothing is run.',
      headers: inGroup,
      body: FindOptions.extend({ user_id: Uuid.nullable().optional() }),
      handle: answers.explain,
      replies: { 200: Plan },
      refusals: {
        400: ['INVALID_COLUMN'],
        403: ['NOT_A_GROUP_MEMBER'],
        404: ['COLLECTION_NOT_FOUND', 'USER_NOT_FOUND'],
      },
      readOnly: true,
    }),
    route('POST /admin/projects/:projectId/collections/:name/aggregate', {
      operationId: 'adminAggregateRows',
      caller: administrator,
      invalid: 'INVALID_BODY',
      summary: 'Counts, sums, averages and extremes of the rows of all users',
      headers: inGroup,
      body: AggregateOptions,
      example: { aggregates: [{ fn: 'count', as: 'n' }] },
      handle: answers.aggregate,
      replies: { 200: Aggregates },
      refusals: { 400: ['INVALID_COLUMN'], ...unknownGroup },
      readOnly: true,
    }),
    route('POST /admin/projects/:projectId/collections/:name/find-nearest', {
      operationId: 'adminFindNearestRows',
      caller: administrator,
      invalid: 'INVALID_BODY',
      summary: 'The rows of all users nearest to a vector, or to a text',
      headers: inGroup,
      body: NearestOptions,
      example: { column: 'embedding', vector: [0, 1] },
      handle: answers.nearest,
      replies: { 200: Nearest },
      refusals: {
        400: ['INVALID_COLUMN', 'INVALID_VECTOR', 'EMBEDDINGS_NOT_CONFIGURED'],
        402: ['SPEND_CEILING_REACHED'],
        502: ['PROVIDER_FAILED', 'PROVIDER_TIMEOUT'],
        ...unknownGroup,
      },
      readOnly: true,
    }),
    route('GET /admin/projects/:projectId/collections/:name/rows/:id', {
      operationId: 'adminGetRow',
      caller: administrator,
      summary: 'One row',
      description: '304 when `If-None-Match` has the ETag that the row has.',
      headers: { ...inGroup, 'If-None-Match': z.string().optional() },
      handle: answers.get,
      replies: { 200: OneRow, 304: NotModified },
      refusals: { 403: ['NOT_A_GROUP_MEMBER'], 404: ['COLLECTION_NOT_FOUND'] },
    }),
    route('PATCH /admin/projects/:projectId/collections/:name/rows/:id', {
      operationId: 'adminUpdateRow',
      caller: administrator,
      invalid: 'INVALID_BODY',
      summary: 'Change a row',
      headers: { ...inGroup, 'If-Match': z.string().optional() },
      body: JsonObject,
      needsBody: true,
      example: { title: 'Another' },
      handle: answers.patch,
      replies: { 200: OneRow },
      refusals: {
        400: ['INVALID_COLUMN', 'NOT_NULL_VIOLATION'],
        403: ['FORBIDDEN', 'NOT_A_GROUP_MEMBER'],
        404: ['COLLECTION_NOT_FOUND'],
        409: ['CONFLICT'],
      },
    }),
    route('DELETE /admin/projects/:projectId/collections/:name/rows/:id', {
      operationId: 'adminDeleteRow',
      caller: administrator,
      invalidQuery: 'INVALID_BODY',
      summary: 'Delete a row; with `hard=true` permanently',
      description: '`If-Match` with an ETag refuses the deletion of another version: 409 with `details.current`.',
      headers: { ...inGroup, 'If-Match': z.string().optional() },
      query: { hard: Flag() },
      handle: answers.delete,
      replies: { 200: Deleted },
      refusals: { 403: ['FORBIDDEN', 'NOT_A_GROUP_MEMBER'], 404: ['COLLECTION_NOT_FOUND'], 409: ['CONFLICT'] },
    }),
  ],
})
