import { z } from 'zod'
import { answers } from '#server/collections/answers.ts'
import { AggregateOptions, FindOptions, NearestOptions } from '#server/collections/options.ts'
import { administrator } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { Flag, JsonObject, NotModified, Uuid } from '#server/http/schemas.ts'
import { Aggregates, Batch, Deleted, Nearest, OneRow, Page, Plan, Rows } from '#server/routes/collections/responses.ts'
import { rowWords } from '#server/routes/collections/words.ts'

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
  invalid: 'INVALID_BODY',
  invalidBody: 'INVALID_BODY',
  invalidJson: 'INVALID_JSON',
  words: rowWords,
  routes: [
    ...group('/admin/projects/:projectId/collections', administrator, [
      route('POST /:name/rows', 'Insert a row of a user or a group', {
        handle: answers.insert,
        operationId: 'adminCreateRow',
        invalid: 'INVALID_BODY',
        description: 'As `POST /client/collections/:name`, with `user_id` or `group_id` in the body.',
        query: {
          on_conflict: z.enum(['error', 'ignore', 'update'], 'must be error, ignore or update').optional(),
          conflict_target: z.string().optional(),
        },
        headers: { ...inGroup, 'Idempotency-Key': z.string().optional() },
        body: JsonObject,
        needsBody: true,
        example: { user_id: '00000000-0000-4000-8000-000000000000', title: 'First' },
        replies: { 200: OneRow, 201: OneRow },
        refusals: {
          400: [...inserting, 'INVALID_CONFLICT_TARGET'],
          ...adding,
          409: ['CONFLICT', 'IDEMPOTENCY_REPLAY_GONE'],
        },
      }),
      route('POST /:name/rows/batch', 'Insert up to 500 rows, all or none', {
        handle: answers.batch,
        operationId: 'adminCreateRows',
        invalid: 'INVALID_BODY',
        headers: inGroup,
        body: Batch,
        documentedBody: z.object({ rows: z.array(JsonObject).max(500) }),
        example: { rows: [{ user_id: '00000000-0000-4000-8000-000000000000', title: 'First' }] },
        replies: { 201: Rows },
        refusals: { 400: [...inserting, 'BATCH_TOO_LARGE'], ...adding, 409: ['CONFLICT'] },
      }),
      route('POST /:name/find', 'Find rows of all users', {
        handle: answers.find,
        operationId: 'adminFindRows',
        invalid: 'INVALID_BODY',
        headers: inGroup,
        body: FindOptions,
        replies: { 200: Page },
        refusals: { 400: ['INVALID_COLUMN'], ...unknownGroup },
        readOnly: true,
      }),
      route('POST /:name/explain', 'How Postgres would find rows: its plan, and what it reads by which index', {
        handle: answers.explain,
        calls: ['collection_plan'],
        operationId: 'explainRows',
        invalid: 'INVALID_BODY',
        description:
          'Takes the body of find, and `user_id`: with it as that user of an app would find them, policies included. Nothing is run.',
        headers: inGroup,
        body: FindOptions.extend({ user_id: Uuid.nullable().optional() }),
        replies: { 200: Plan },
        refusals: { 400: ['INVALID_COLUMN'], 403: ['NOT_A_GROUP_MEMBER'], 404: ['COLLECTION_NOT_FOUND'] },
        readOnly: true,
      }),
      route('POST /:name/aggregate', 'Counts, sums, averages and extremes of the rows of all users', {
        handle: answers.aggregate,
        operationId: 'adminAggregateRows',
        invalid: 'INVALID_BODY',
        headers: inGroup,
        body: AggregateOptions,
        example: { aggregates: [{ fn: 'count', as: 'n' }] },
        replies: { 200: Aggregates },
        refusals: { 400: ['INVALID_COLUMN'], ...unknownGroup },
        readOnly: true,
      }),
      route('POST /:name/find-nearest', 'The rows of all users nearest to a vector, or to a text', {
        handle: answers.nearest,
        operationId: 'adminFindNearestRows',
        invalid: 'INVALID_BODY',
        headers: inGroup,
        body: NearestOptions,
        example: { column: 'embedding', vector: [0, 1] },
        replies: { 200: Nearest },
        refusals: {
          400: ['INVALID_COLUMN', 'INVALID_VECTOR', 'EMBEDDINGS_NOT_CONFIGURED'],
          402: ['SPEND_CEILING_REACHED'],
          502: ['PROVIDER_FAILED', 'PROVIDER_TIMEOUT'],
          ...unknownGroup,
        },
        readOnly: true,
      }),
      route('GET /:name/rows/:id', 'One row', {
        handle: answers.get,
        operationId: 'adminGetRow',
        description: '304 when `If-None-Match` has the ETag that the row has.',
        headers: { ...inGroup, 'If-None-Match': z.string().optional() },
        replies: { 200: OneRow, 304: NotModified },
        refusals: { 403: ['NOT_A_GROUP_MEMBER'], 404: ['COLLECTION_NOT_FOUND'] },
      }),
      route('PATCH /:name/rows/:id', 'Change a row', {
        handle: answers.patch,
        operationId: 'adminUpdateRow',
        invalid: 'INVALID_BODY',
        headers: { ...inGroup, 'If-Match': z.string().optional() },
        body: JsonObject,
        needsBody: true,
        example: { title: 'Another' },
        replies: { 200: OneRow },
        refusals: {
          400: ['INVALID_COLUMN', 'NOT_NULL_VIOLATION'],
          403: ['FORBIDDEN', 'NOT_A_GROUP_MEMBER'],
          404: ['COLLECTION_NOT_FOUND'],
          409: ['CONFLICT'],
        },
      }),
      route('DELETE /:name/rows/:id', 'Delete a row; with `hard=true` permanently', {
        handle: answers.delete,
        operationId: 'adminDeleteRow',
        invalidQuery: 'INVALID_BODY',
        description: '`If-Match` with an ETag refuses the deletion of another version: 409 with `details.current`.',
        headers: { ...inGroup, 'If-Match': z.string().optional() },
        query: { hard: Flag() },
        replies: { 200: Deleted },
        refusals: { 403: ['FORBIDDEN', 'NOT_A_GROUP_MEMBER'], 404: ['COLLECTION_NOT_FOUND'], 409: ['CONFLICT'] },
      }),
    ]),
  ],
})
