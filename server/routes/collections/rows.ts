import { z } from 'zod'
import { answers, ask, transaction } from '#server/collections/answers.ts'
import { AggregateOptions, FindOptions, NearestOptions } from '#server/collections/options.ts'
import { countQuery } from '#server/collections/requests.ts'
import { endUserOrServer } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, JsonObject, NotModified } from '#server/http/schemas.ts'
import { Aggregates, Batch, Count, Deleted, Nearest, OneRow, Page, Rows } from '#server/routes/collections/responses.ts'
import { rowWords } from '#server/routes/collections/words.ts'

const inGroup = {
  'X-Group-Context': z.string().meta({ description: 'The group whose rows the request reads or writes.' }).optional(),
}
const onConflict = {
  on_conflict: z.enum(['error', 'ignore', 'update'], 'must be error, ignore or update').optional(),
  conflict_target: z.string().optional(),
}
const ofGroup = ['NOT_A_GROUP_MEMBER', 'GROUP_ROLE_FORBIDDEN']
const reading = { 403: ofGroup, 404: ['COLLECTION_NOT_FOUND'] }
// FORBIDDEN: policies that a DBA added
const adding = { 403: [...ofGroup, 'FORBIDDEN', 'USER_MUTED'], 404: ['COLLECTION_NOT_FOUND'] }
const writingRow = { 403: [...ofGroup, 'FORBIDDEN'], 404: ['COLLECTION_NOT_FOUND', 'NOT_FOUND'] }
const changingRow = { ...writingRow, 403: [...writingRow[403], 'USER_MUTED'] }
// CONTENT_REJECTED and USER_MUTED: columns that are moderated
const inserting = [
  'INVALID_COLUMN',
  'NOT_NULL_VIOLATION',
  'GROUP_CONTEXT_REQUIRED',
  'GROUP_NOT_PRIVATE',
  'CONTENT_REJECTED',
]

const Operation = z.object({
  op: z.enum(['insert', 'update', 'upsert', 'delete'], 'must be insert, update, upsert or delete'),
  collection: z.string(),
  id: z.unknown().optional(),
  data: JsonObject.optional(),
  $if: JsonObject.optional(),
  conflict_target: z.array(z.string()).optional(),
  as: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,62}$/, 'must match ^[a-z][a-z0-9_]{0,62}$')
    .optional(),
})

export const collections = area({
  stem: 'collections',
  title: 'Collections',
  part: 'Data',
  about: 'Rows of the tables that a project defines, as end users read and write them.',
  codes: 'by area',
  invalid: 'INVALID_BODY',
  invalidBody: 'INVALID_BODY',
  invalidJson: 'INVALID_JSON',
  words: rowWords,
  routes: [
    ...group('/client/collections', endUserOrServer, [
      route('POST /transaction', 'Up to 100 writes, all or none', {
        handle: transaction,
        operationId: 'runTransaction',
        codes: 'by part',
        invalid: 'INVALID_BODY',
        description:
          'Results in the order of the operations. A later one may use `{"$ref": "name.column"}` of an earlier one that was named with `as`. The first failure rolls all back and is returned with its own status and code, and `details.index`.',
        headers: inGroup,
        body: z.object({ operations: z.array(Operation).min(1, 'must have 1 to 100') }),
        example: { operations: [{ op: 'insert', collection: 'notes', data: { title: 'First' } }] },
        replies: { 200: data(z.array(JsonObject)) },
        refusals: {
          400: [...inserting, 'BATCH_TOO_LARGE', 'INVALID_CONFLICT_TARGET'],
          ...changingRow,
          409: ['CONFLICT', 'IDEMPOTENCY_REPLAY_GONE'],
        },
      }),
      route('POST /:name', 'Insert or upsert a row', {
        handle: answers.insert,
        operationId: 'createRow',
        description:
          "The body maps columns to values; server-managed ones are left out. `on_conflict=ignore` answers the existing row, `update` merges what was sent into it, both need `conflict_target` and never touch another user's row. The same `Idempotency-Key` again answers the row that it made.",
        query: onConflict,
        headers: { ...inGroup, 'Idempotency-Key': z.string().optional() },
        body: JsonObject,
        needsBody: true,
        example: { title: 'First' },
        replies: { 200: OneRow, 201: OneRow },
        refusals: {
          400: [...inserting, 'INVALID_CONFLICT_TARGET'],
          ...adding,
          409: ['CONFLICT', 'IDEMPOTENCY_REPLAY_GONE'],
        },
      }),
      route('POST /:name/batch', 'Insert up to 500 rows, all or none', {
        handle: answers.batch,
        operationId: 'createRows',
        description: 'Columns that a row omits are null, even if they have a default.',
        headers: inGroup,
        body: Batch,
        documentedBody: z.object({ rows: z.array(JsonObject).max(500) }),
        example: { rows: [{ title: 'First' }, { title: 'Second' }] },
        replies: { 201: Rows },
        refusals: { 400: [...inserting, 'BATCH_TOO_LARGE'], ...adding, 409: ['CONFLICT'] },
      }),
      route('POST /:name/find', 'Find rows', {
        handle: answers.find,
        operationId: 'findRows',
        description: 'By filter and search, in pages by cursor (no `offset`, an `order` of one column) or by offset.',
        headers: inGroup,
        body: FindOptions,
        replies: { 200: Page },
        refusals: { 400: ['INVALID_COLUMN'], ...reading },
        readOnly: true,
      }),
      route('POST /:name/find-nearest', 'Rows nearest to a vector, or to a text, nearest first', {
        handle: answers.nearest,
        operationId: 'findNearestRows',
        codes: 'by part',
        invalid: 'INVALID_BODY',
        headers: inGroup,
        body: NearestOptions,
        example: { column: 'embedding', vector: [0, 1] },
        replies: { 200: Nearest },
        refusals: {
          400: ['INVALID_COLUMN', 'INVALID_VECTOR', 'EMBEDDINGS_NOT_CONFIGURED'],
          402: ['SPEND_CEILING_REACHED'],
          502: ['PROVIDER_FAILED', 'PROVIDER_TIMEOUT'],
          ...reading,
        },
        readOnly: true,
      }),
      route('POST /:name/aggregate', 'Counts, sums, averages and extremes, by group', {
        handle: answers.aggregate,
        operationId: 'aggregateRows',
        codes: 'by part',
        invalid: 'INVALID_BODY',
        headers: inGroup,
        body: AggregateOptions,
        example: { aggregates: [{ fn: 'count', as: 'n' }] },
        replies: { 200: Aggregates },
        refusals: { 400: ['INVALID_COLUMN'], ...reading },
        readOnly: true,
      }),
      route('GET /:name', 'Find rows by the query string', {
        handle: answers.query,
        operationId: 'listRows',
        codes: 'by part',
        invalidQuery: 'INVALID_BODY',
        description:
          '`?query=` takes the body of find as JSON. Else `limit`, `offset`, `cursor`, `select`, `order`, `include`, `include_deleted`, `q`, `q_columns`, and every other parameter is a filter: `col=value` or `col[op]=value`.',
        headers: inGroup,
        query: {
          query: z.unknown().meta({ type: 'string' }).optional(),
          limit: z.unknown().meta({ type: 'integer' }).optional(),
          offset: z.unknown().meta({ type: 'integer' }).optional(),
          cursor: z.unknown().meta({ type: 'string' }).optional(),
          select: z.unknown().meta({ type: 'string' }).optional(),
          order: z.unknown().meta({ type: 'string' }).optional(),
          include: z.unknown().meta({ type: 'string' }).optional(),
          include_deleted: z.unknown().meta({ type: 'boolean' }).optional(),
          q: z.unknown().meta({ type: 'string' }).optional(),
          q_columns: z.unknown().meta({ type: 'string' }).optional(),
        },
        replies: { 200: Page },
        refusals: { 400: ['INVALID_COLUMN', 'INVALID_JSON'], ...reading },
        failure: 'FETCH_FAILED',
      }),
      route('GET /:name/count', 'How many rows match', {
        operationId: 'countRows',
        codes: 'by part',
        invalidQuery: 'INVALID_BODY',
        headers: inGroup,
        query: {
          filter: z.unknown().meta({ type: 'string' }).optional(),
          include_deleted: z.unknown().meta({ type: 'boolean' }).optional(),
        },
        handle: (context) => ask(context, 'count', countQuery(context)),
        replies: { 200: Count },
        refusals: { 400: ['INVALID_COLUMN', 'INVALID_JSON'], ...reading },
      }),
      route('GET /:name/:id', 'One row', {
        handle: answers.get,
        operationId: 'getRow',
        description: '304 when `If-None-Match` has the ETag that the row has.',
        headers: { ...inGroup, 'If-None-Match': z.string().optional() },
        replies: { 200: OneRow, 304: NotModified },
        refusals: { 403: ['GROUP_ROLE_FORBIDDEN', 'NOT_A_GROUP_MEMBER'], 404: ['COLLECTION_NOT_FOUND'] },
      }),
      route('PATCH /:name/:id', 'Change a row', {
        handle: answers.patch,
        operationId: 'updateRow',
        description:
          'A map of values, and `$if` (compare and set), `$inc`, `$append`, `$remove`, `$unset`. `If-Match` with an ETag refuses a change to another version: 409 with `details.current`.',
        headers: { ...inGroup, 'If-Match': z.string().optional() },
        body: JsonObject,
        needsBody: true,
        example: { title: 'Another' },
        replies: { 200: OneRow },
        refusals: {
          400: ['CONTENT_REJECTED', 'INVALID_COLUMN', 'NOT_NULL_VIOLATION'],
          403: ['FORBIDDEN', 'GROUP_ROLE_FORBIDDEN', 'NOT_A_GROUP_MEMBER', 'USER_MUTED'],
          404: ['COLLECTION_NOT_FOUND'],
          409: ['CONFLICT'],
        },
      }),
      route('DELETE /:name/:id', 'Delete a row; it can be restored for 30 days', {
        handle: answers.delete,
        operationId: 'deleteRow',
        description: '`If-Match` with an ETag refuses the deletion of another version: 409 with `details.current`.',
        headers: { ...inGroup, 'If-Match': z.string().optional() },
        replies: { 200: Deleted },
        refusals: {
          403: ['FORBIDDEN', 'GROUP_ROLE_FORBIDDEN', 'NOT_A_GROUP_MEMBER'],
          404: ['COLLECTION_NOT_FOUND'],
          409: ['CONFLICT'],
        },
      }),
      route('POST /:name/:id/restore', 'Restore a row that was deleted in the last 30 days', {
        handle: answers.restore,
        operationId: 'restoreRow',
        headers: inGroup,
        replies: { 200: OneRow },
        refusals: {
          400: ['CONTENT_REJECTED'],
          403: ['FORBIDDEN', 'GROUP_ROLE_FORBIDDEN', 'NOT_A_GROUP_MEMBER'],
          404: ['COLLECTION_NOT_FOUND'],
          409: ['CONFLICT'],
        },
      }),
    ]),
  ],
})
