import { z } from 'zod'
import { projectOwner } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, Page, page, Text, Time, Uuid } from '#server/http/schemas.ts'

const statuses = ['queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled'] as const
const Operation = z.strictObject({
  operation_id: Uuid,
  type: z.string(),
  status: z.enum(statuses),
  progress: z.strictObject({ done: z.int(), total: z.int() }).nullable(),
  confirm_required: z.boolean(),
  plan_hash: z.string().optional(),
  result: z.unknown(),
  failed_reason: z.string().nullable(),
  created_at: Time,
  updated_at: Time,
})

export const operations = area({
  stem: 'operations',
  title: 'Operations',
  part: 'Platform',
  about: 'Work in the background that an administrator started: state, result, cancellation.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  routes: [
    ...group('/admin/projects/:projectId/operations', projectOwner, [
      route('GET /', 'Asynchronous operations of a project, newest first; kept 90 days', {
        call: 'operation_list',
        query: {
          ...Page,
          type: Text(200).optional(),
          status: z.enum(statuses, `must be one of ${statuses.join(', ')}`).optional(),
        },
        replies: { 200: page(Operation) },
      }),
      route('GET /:operationId', 'The state of an asynchronous operation', {
        call: 'operation_get',
        args: ({ params }) => ({ project_id: params['projectId'] }),
        replies: { 200: data(Operation) },
      }),
      route('POST /:operationId/cancel', 'Cancel an operation that is queued or waiting', {
        call: 'operation_cancel',
        replies: { 200: data(Operation) },
      }),
    ]),
  ],
})
