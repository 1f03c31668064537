import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { area, route } from '#server/http/route.ts'
import { Flag, JsonObject, Uuid } from '#server/http/schemas.ts'
import {
  AggregateOptions,
  Aggregates,
  answers,
  Batch,
  Deleted,
  FindOptions,
  Nearest,
  NearestOptions,
  OneRow,
  Page,
  Rows,
} from './responses.ts'

const row = { id: Uuid }
const inGroup = {
  'X-Group-Context': z.string().meta({ description: 'The group whose rows the request reads or writes.' }).optional(),
}
const unknownGroup = { 403: ['NOT_A_GROUP_MEMBER'], 404: ['COLLECTION_NOT_FOUND'] }
const ofRow = { 403: ['NOT_A_GROUP_MEMBER'], 404: ['COLLECTION_NOT_FOUND', 'NOT_FOUND'] }
// FORBIDDEN: policies that a DBA added
const adding = { 403: ['NOT_A_GROUP_MEMBER', 'FORBIDDEN'], 404: ['COLLECTION_NOT_FOUND'] }
const writingRow = { 403: ['NOT_A_GROUP_MEMBER', 'FORBIDDEN'], 404: ['COLLECTION_NOT_FOUND', 'NOT_FOUND'] }
const inserting = ['INVALID_COLUMN', 'NOT_NULL_VIOLATION', 'GROUP_CONTEXT_REQUIRED', 'GROUP_NOT_PRIVATE']

export const collectionRows = area({
  stem: 'collections',
  title: 'Collections: rows',
  source: 'supplement',
  invalid: 'INVALID_BODY',
  invalidBody: 'INVALID_BODY',
  invalidJson: 'INVALID_JSON',
  routes: [
    route('POST /admin/projects/:projectId/collections/:name/rows', {
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
      failure: 'CREATE_FAILED',
    }),
    route('POST /admin/projects/:projectId/collections/:name/rows/batch', {
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
      failure: 'CREATE_FAILED',
    }),
    route('POST /admin/projects/:projectId/collections/:name/find', {
      caller: administrator,
      invalid: 'INVALID_BODY',
      summary: 'Find rows of all users',
      headers: inGroup,
      body: FindOptions,
      handle: answers.find,
      replies: { 200: Page },
      refusals: { 400: ['INVALID_COLUMN'], ...unknownGroup },
      readOnly: true,
      failure: 'FETCH_FAILED',
    }),
    route('POST /admin/projects/:projectId/collections/:name/aggregate', {
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
      failure: 'FETCH_FAILED',
    }),
    route('POST /admin/projects/:projectId/collections/:name/find-nearest', {
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
        502: ['PROVIDER_FAILED', 'PROVIDER_TIMEOUT'],
        ...unknownGroup,
      },
      readOnly: true,
      failure: 'FETCH_FAILED',
    }),
    route('GET /admin/projects/:projectId/collections/:name/rows/:id', {
      caller: administrator,
      summary: 'One row',
      params: row,
      headers: inGroup,
      handle: answers.get,
      replies: { 200: OneRow },
      refusals: ofRow,
      failure: 'FETCH_FAILED',
    }),
    route('PATCH /admin/projects/:projectId/collections/:name/rows/:id', {
      caller: administrator,
      invalid: 'INVALID_BODY',
      summary: 'Change a row',
      params: row,
      headers: { ...inGroup, 'If-Match': z.string().optional() },
      body: JsonObject,
      needsBody: true,
      example: { title: 'Another' },
      handle: answers.patch,
      replies: { 200: OneRow },
      refusals: { 400: ['INVALID_COLUMN', 'NOT_NULL_VIOLATION'], ...writingRow, 409: ['CONFLICT'] },
      failure: 'UPDATE_FAILED',
    }),
    route('DELETE /admin/projects/:projectId/collections/:name/rows/:id', {
      caller: administrator,
      invalidQuery: 'INVALID_BODY',
      summary: 'Delete a row; with `hard=true` permanently',
      params: row,
      headers: inGroup,
      query: { hard: Flag() },
      handle: answers.delete,
      replies: { 200: Deleted },
      refusals: { ...writingRow, 409: ['CONFLICT'] },
      failure: 'DELETE_FAILED',
    }),
  ],
})
