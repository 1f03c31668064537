import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { administrator } from '#server/http/callers.ts'
import { area, type HandlerContext, route } from '#server/http/route.ts'
import { Deleted, data, JsonObject, Page, page, Time, Uuid } from '#server/http/schemas.ts'

const Webhook = z.strictObject({
  id: Uuid,
  event_name: z.string(),
  target_url: z.string(),
  description: z.string().nullable(),
  filter: JsonObject.nullable(),
  include_user: z.boolean(),
  status: z.enum(['active', 'disabled', 'degraded']),
  created_at: Time,
  updated_at: Time,
})

/** The secret is made and shown here, once, and stored sealed. */
const create = async (context: HandlerContext) => {
  const { services, body } = context
  const problem = await services.outbound.checkUrl(String(body['target_url']))
  if (problem) throw refusal(400, problem.code, problem.message, { field: 'target_url', reason: problem.message })
  const secret = randomBytes(32).toString('hex')
  const reply = await context.call('webhook_create', {
    ...body,
    secret_sealed: services.secrets.encrypt('webhook secret', secret),
  })
  return { status: reply.status, body: JSON.stringify({ data: { ...dataOf<object>(reply), secret } }) }
}

export const webhooks = area({
  stem: 'webhooks',
  title: 'Outbound webhooks',
  source: 'supplement',
  routes: [
    route('POST /admin/projects/:projectId/webhooks', {
      caller: administrator,
      summary: 'Watch an event and send it on, signed; the secret is shown once',
      body: z.object({
        event_name: z.string().regex(/^[a-z][a-z0-9_.-]{0,127}$/, 'must match ^[a-z][a-z0-9_.-]{0,127}$'),
        target_url: z.string().min(1, 'is required').max(2048, 'must have at most 2048 characters'),
        description: z.string().max(1000, 'must have at most 1000 characters').nullable().optional(),
        filter: JsonObject.nullable().optional(),
        include_user: z.boolean().optional(),
      }),
      example: { event_name: 'lesson_completed', target_url: 'https://1.1.1.1/hook' },
      handle: create,
      replies: { 201: data(Webhook.extend({ secret: z.string().regex(/^[0-9a-f]{64}$/) })) },
      refusals: {
        400: ['VALIDATION_ERROR', 'INVALID_BODY', 'TARGET_URL_NOT_ALLOWED', 'TARGET_URL_NOT_HTTPS'],
        409: ['LIMIT_REACHED'],
      },
      failure: 'CREATE_FAILED',
    }),
    route('GET /admin/projects/:projectId/webhooks', {
      caller: administrator,
      summary: 'Subscriptions, newest first',
      query: Page,
      call: 'webhook_list',
      replies: { 200: page(Webhook) },
      refusals: { 400: ['INVALID_INPUT'] },
      failure: 'LIST_FAILED',
    }),
    route('DELETE /admin/projects/:projectId/webhooks/:webhookId', {
      caller: administrator,
      summary: 'Delete a subscription with its deliveries',
      params: { webhookId: Uuid },
      call: 'webhook_delete',
      replies: { 200: Deleted },
      refusals: { 400: ['INVALID_ID'] },
      failure: 'DELETE_FAILED',
    }),
  ],
})
