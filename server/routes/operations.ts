import { z } from 'zod'
import { projectOwner } from '#server/http/callers.ts'
import { area, route } from '#server/http/route.ts'
import { data, Time, Uuid } from '#server/http/schemas.ts'

const Operation = z.strictObject({
  operation_id: Uuid,
  type: z.string(),
  status: z.enum(['queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled']),
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
  source: 'contract',
  invalid: 'INVALID_INPUT',
  routes: [
    route('GET /admin/projects/:projectId/operations/:operationId', {
      caller: projectOwner,
      summary: 'How an asynchronous operation stands',
      params: { operationId: Uuid },
      call: 'operation_get',
      args: ({ params }) => ({ project_id: params['projectId'] }),
      replies: { 200: data(Operation) },
      failure: 'FETCH_FAILED',
    }),
  ],
})
