import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { administrator } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { Cursor, cursorPage, data, JsonObject, Limit, Text, Uuid } from '#server/http/schemas.ts'
import {
  Attempt,
  checkTarget,
  createWebhook,
  Delivery,
  DeliveryStatus,
  Rotated,
  rotateWebhookSecret,
  Secret,
  sendSample,
  TargetUrl,
  Tested,
} from '#server/http/webhooks.ts'
import type { Sendable } from '#server/providers/webhooks.ts'

const Webhook = answer('webhook_json', { filter: JsonObject.nullable() })
const Stats = z.strictObject({
  delivered_24h: z.int(),
  failed_24h: z.int(),
  p95_ms: z.int().nullable(),
  pending: z.int(),
})

const EventName = z.string().regex(/^[a-z][a-z0-9_.-]{0,127}$/, 'must match ^[a-z][a-z0-9_.-]{0,127}$')
const Description = Text(1000).nullable().optional()
const Filter = JsonObject.nullable().optional()

const DeliveryDetail = Delivery.extend({
  attempts: z.array(Attempt.extend({ response_excerpt: z.string().nullable() })),
  payload: JsonObject,
}).meta({ title: 'WebhookDeliveryDetail' })
const Replay = z.strictObject({
  operation_id: Uuid,
  type: z.literal('webhooks.replay'),
  status: z.string(),
  progress: z.strictObject({ done: z.int(), total: z.int() }).nullable(),
})

const webhookId = { webhookId: Uuid }

const create = (context: HandlerContext) => createWebhook(context, 'webhook_create')

const update = async (context: HandlerContext) => {
  const { body, params } = context
  if (body['target_url'] !== undefined) await checkTarget(context, body['target_url'])
  return context.call('definition_update', { kind: 'webhook', id_or_key: params['webhookId'], patch: body })
}

const rotateSecret = (context: HandlerContext) => rotateWebhookSecret(context, 'webhook_rotate_secret')

/** Sends a synthetic delivery now, as workers send real ones. Only the workers' role may read secrets, so the call uses that role. */
const test = async (context: HandlerContext) => {
  const asked = await context.call(
    'webhook_test',
    { webhook_id: context.params['webhookId'] },
    { role: 'app_worker', readOnly: true },
  )
  return sendSample(context, dataOf<Sendable>(asked))
}

/** The project's database validates the range; control stores the operation that replays it. */
const replayRange = async (context: HandlerContext) => {
  const { services, resolved, params, body } = context
  const { statuses = ['dlq', 'failed'], ...range } = body
  const webhook_id = params['webhookId']
  const checked = dataOf<object>(
    await context.call('webhook_replay_check', { webhook_id, ...range }, { readOnly: true }),
  )
  const reply = await services.database.call(
    services.control,
    'control_developer',
    resolved.claims,
    'webhook_replay_start',
    { project_id: resolved.project?.projectId, input: { webhook_id, statuses, ...checked } },
    { failure: 'UPDATE_FAILED' },
  )
  const { operation_id, type, status, progress } = dataOf<z.infer<typeof Replay>>(reply)
  return { status: reply.status, body: JSON.stringify({ data: { operation_id, type, status, progress } }) }
}

const subscriptions = [
  ...group('/admin/projects/:projectId/webhooks', administrator, [
    route('POST /', 'Subscribe to an event with signed deliveries; the secret is shown once', {
      handle: create,
      calls: ['webhook_create'],
      body: z.object({
        event_name: EventName,
        target_url: TargetUrl,
        description: Description,
        filter: Filter,
        include_user: z.boolean().optional(),
      }),
      example: { event_name: 'lesson_completed', target_url: 'https://1.1.1.1/hook' },
      replies: { 201: data(Webhook.extend({ secret: Secret })) },
      refusals: { 400: ['TARGET_URL_NOT_ALLOWED', 'TARGET_URL_NOT_HTTPS'] },
    }),
    ...definitions('webhook', {
      id: webhookId,
      row: Webhook,
      refusals: { delete: { 400: ['INVALID_ID'] } },
      summaries: {
        list: 'Subscriptions, newest first',
        delete: 'Delete a subscription with its deliveries',
      },
    }),
    route('GET /:webhookId', 'A subscription with statistics of the last 24 hours', {
      call: 'webhook_get',
      replies: { 200: data(Webhook.extend({ stats: Stats })) },
    }),
    route('PATCH /:webhookId', 'Change a subscription, disable it, or activate a degraded one again', {
      handle: update,
      body: z.object({
        event_name: EventName.optional(),
        target_url: TargetUrl.optional(),
        status: z.enum(['active', 'disabled'], 'must be active or disabled').optional(),
        description: Description,
        filter: Filter,
      }),
      example: { status: 'active' },
      replies: { 200: data(Webhook) },
      refusals: { 400: ['TARGET_URL_NOT_ALLOWED', 'TARGET_URL_NOT_HTTPS'] },
    }),
    route(
      'POST /:webhookId/rotate-secret',
      'Rotate the signing secret, for deliveries that are queued from now on; shown once',
      {
        handle: rotateSecret,
        replies: { 200: Rotated },
      },
    ),
    route('POST /:webhookId/test', "Send a synthetic svc.webhook.test now, and return the receiver's response", {
      handle: test,
      replies: { 200: Tested },
      refusals: { 400: ['TARGET_URL_NOT_ALLOWED', 'TARGET_URL_NOT_HTTPS'] },
      failure: 'CREATE_FAILED',
    }),
  ]),
]

const deliveries = [
  ...group('/admin/projects/:projectId/webhooks', administrator, [
    route('GET /:webhookId/deliveries', 'Deliveries of a subscription, newest first, with their attempt logs', {
      call: 'webhook_delivery_list',
      query: {
        limit: Limit(),
        cursor: Cursor,
        status: DeliveryStatus.optional(),
        since: z.string().meta({ format: 'date-time' }).optional(),
      },
      replies: { 200: cursorPage(Delivery) },
    }),
    route('GET /deliveries/:deliveryId', 'A delivery with its payload and the outcome of each attempt', {
      call: 'webhook_delivery_get',
      replies: { 200: data(DeliveryDetail) },
    }),
    route('POST /deliveries/:deliveryId/replay', 'Send a failed delivery again: same payload, same idempotency key', {
      call: 'webhook_delivery_replay',
      replies: { 202: data(Delivery) },
      failure: 'UPDATE_FAILED',
    }),
    route('POST /:webhookId/replay', 'Send all failed deliveries of a range again, as an operation', {
      handle: replayRange,
      description:
        'Both ends are inclusive and refer to the time when a delivery was queued; without them, all stored deliveries. Poll the operation for its progress.',
      body: z.object({
        since: z.string().meta({ format: 'date-time' }).nullish(),
        until: z.string().meta({ format: 'date-time' }).nullish(),
        statuses: z
          .array(z.enum(['dlq', 'failed'], 'must be dlq or failed'))
          .min(1, 'must name dlq, failed or both')
          .optional(),
      }),
      example: { since: '2026-11-20T00:00:00Z', statuses: ['dlq'] },
      replies: { 202: data(Replay) },
      failure: 'UPDATE_FAILED',
    }),
  ]),
]

export const webhooks = area({
  stem: 'webhooks',
  title: 'Outbound webhooks',
  part: 'Connections',
  about: 'Events of a project, sent to addresses of its developer.',
  source: 'supplement',
  routes: [...subscriptions, ...deliveries],
})
