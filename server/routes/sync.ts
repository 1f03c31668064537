import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, JsonObject, Page, page, Time, Uuid } from '#server/http/schemas.ts'
import { pull, push, status, unstorable } from '#server/sync/handlers.ts'
import { DocumentedMutation } from '#server/sync/schemas.ts'

const Changes = z.strictObject({
  created: z.array(JsonObject),
  updated: z.array(JsonObject),
  deleted: z.array(Uuid),
})
const Status = z.enum(['applied', 'conflict', 'rejected'])
const Result = z.strictObject({
  id: z.unknown(),
  status: z.enum([...Status.options, 'duplicate']),
  row: JsonObject.nullable(),
  code: z.string().optional(),
  message: z.string().optional(),
  first_status: Status.optional(),
})
const Digits = z.string().regex(/^[1-9]\d{0,14}$/)

export const sync = area({
  stem: 'sync',
  title: 'Sync',
  part: 'Data',
  about: 'Rows of collections on devices that are offline at times.',
  words: {
    client_id: ['Client', 'The installation of the app.'],
    checkpoint: ['Checkpoint', 'What the last pull answered; null pulls everything.', { unset: 'Everything' }],
    collections: ['Collections', 'The names of synced collections.', { unset: 'All' }],
    mutations: ['Mutations', 'What the client has written, 1 to 500, in its order.'],
    'mutations.id': ['Mutation', 'By which it is known again.'],
    'mutations.op': ['Operation', 'put sets all columns of a row, new or not, patch those of data, delete deletes it.'],
    'mutations.collection': ['Collection', 'Its name.'],
    'mutations.row_id': ['Row', 'The id of the row.'],
    'mutations.data': ['Data', 'Columns and their values, of put and patch.', { unset: 'None' }],
    'mutations.base_updated_at': [
      'Base',
      'updated_at of the row that was changed: another one is a conflict.',
      { unset: 'The last write wins' },
    ],
    'mutations.tx': ['Transaction', 'Mutations of one text are applied together, or none is.', { unset: 'Alone' }],
  },
  routes: [
    ...group('/client/sync', endUser, [
      route('POST /pull', 'What has changed since a checkpoint', {
        handle: pull,
        calls: ['sync_pull'],
        operationId: 'pull',
        reads: true,
        description:
          'Rows as a fetch of each shows them to the caller. `created` are rows that the client does not hold, `updated` those that it holds or has pushed, `deleted` ids of rows that are gone or no longer readable. Pull again with the checkpoint while `has_more`.',
        body: z.object({
          client_id: Uuid,
          checkpoint: z.unknown().optional(),
          collections: z.array(z.string()).min(1, 'must have 1 to 200').max(200, 'must have 1 to 200').optional(),
          limit: z.int('must be a whole number').min(1, 'must be at least 1').default(1000),
        }),
        words: { limit: ['Limit', 'How many rows and ids of all collections together; more than 5000 are 5000.'] },
        example: { client_id: '5f0c6a4e-3b5c-4c52-9a57-0d5cf7d1a1b2', checkpoint: null },
        replies: {
          200: data(
            z.strictObject({
              changes: z.record(z.string(), Changes),
              checkpoint: Digits,
              has_more: z.boolean(),
              server_time: Time,
              schema: z.record(z.string(), z.int()),
            }),
          ),
        },
      }),
      route('POST /push', 'Apply what a client has written', {
        handle: push,
        calls: ['sync_put', 'sync_push'],
        operationId: 'push',
        description:
          'Each mutation has a result, in their order: a bad one stops no other. `code` is that of the route that writes such a row. `row` is the row afterwards, or what the caller reads there. A repeated `id` is a `duplicate` for 30 days.',
        headers: {
          'X-Group-Context': z
            .string()
            .meta({ description: 'The group of new rows whose data names none.' })
            .optional(),
        },
        cleansText: unstorable,
        body: z.object({ client_id: Uuid, mutations: z.array(z.unknown()).min(1, 'must have 1 to 500') }),
        documentedBody: z.object({ client_id: Uuid, mutations: z.array(DocumentedMutation).min(1).max(500) }),
        example: {
          client_id: '5f0c6a4e-3b5c-4c52-9a57-0d5cf7d1a1b2',
          mutations: [
            {
              id: '7d1a1b25-0c6a-4e3b-8c52-9a570d5cf001',
              op: 'put',
              collection: 'notes',
              row_id: '0d5cf7d1-a1b2-4e3b-8c52-9a5700000001',
              data: { title: 'First' },
            },
          ],
        },
        replies: { 200: data(z.strictObject({ results: z.array(Result), checkpoint_hint: Digits })) },
      }),
      route('GET /status', 'The checkpoint of a client, and how much there is to pull', {
        handle: status,
        calls: ['sync_status'],
        operationId: 'getStatus',
        description: '`pending_changes` is at most 1000.',
        query: { client_id: Uuid },
        replies: {
          200: data(
            z.strictObject({
              checkpoint: Digits.nullable(),
              last_pull_at: Time.nullable(),
              last_push_at: Time.nullable(),
              pending_changes: z.int(),
            }),
          ),
        },
      }),
      route('POST /reset', 'Forget a client: its next pull begins from nothing', {
        call: 'sync_reset',
        operationId: 'reset',
        body: z.object({ client_id: Uuid }),
        example: { client_id: '5f0c6a4e-3b5c-4c52-9a57-0d5cf7d1a1b2' },
        replies: { 200: data(z.strictObject({ client_id: Uuid, reset: z.literal(true) })) },
      }),
    ]),
    ...group('/admin/projects/:projectId/sync', administrator, [
      route('GET /clients', 'Clients of users, last used first', {
        call: 'sync_clients',
        operationId: 'listClients',
        query: { ...Page, user_id: Uuid.optional() },
        replies: { 200: page(answer('sync_client_json', { checkpoint: Digits.nullable() })) },
      }),
      route('GET /stats', 'The log of changes, and rejected mutations of a day', {
        call: 'sync_stats',
        operationId: 'getSyncStats',
        description: '`lag_seconds` is the age of the oldest change that an open transaction holds back.',
        replies: {
          200: data(
            z.strictObject({
              change_log_rows: z.int(),
              oldest: Time.nullable(),
              lag_seconds: z.int(),
              rejected_24h: z.record(z.string(), z.int()),
            }),
          ),
        },
      }),
    ]),
  ],
})
