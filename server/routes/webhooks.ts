import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { Filter } from '#server/http/grammars.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { Cursor, cursorPage, data, JsonObject, Limit, Text, Uuid } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'
import { Attempt, Delivery, DeliveryStatus, Rotated, Secret, TargetUrl, Tested } from '#server/webhooks/shapes.ts'
import {
  createWebhook,
  replayRange,
  rotateWebhookSecret,
  testWebhook,
  updateWebhook,
} from '#server/webhooks/subscriptions.ts'

const Webhook = answer('webhook_json', { filter: JsonObject.nullable() })
const Stats = z.strictObject({
  delivered_24h: z.int(),
  failed_24h: z.int(),
  p95_ms: z.int().nullable(),
  pending: z.int(),
})

const EventName = z.string().regex(/^[a-z][a-z0-9_.-]{0,127}$/, 'must match ^[a-z][a-z0-9_.-]{0,127}$')
const Description = Text(1000).nullable().optional()
const Narrowed = Filter.nullable().optional()

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

const webhookForm: Form = {
  Delivery: {
    event_name: ['Event', 'One of your events, or a system event such as `svc.user.created`.'],
    target_url: ['Address', 'A public https address of yours that takes a POST.'],
    description: true,
  },
  Contents: {
    filter: ['Only events that match', 'A filter on the properties of the event.', { unset: 'Every such event' }],
    include_user: ['Include the user', 'Whether the body has the user, with their properties.'],
  },
  Status: {
    status: ['Status', 'Active delivers; disabled stops new deliveries.'],
  },
}

const subscriptions = [
  ...group('/admin/projects/:projectId/webhooks', administrator, [
    route('POST /', 'Subscribe to an event with signed deliveries; the secret is shown once', {
      form: webhookForm,
      defaultsOf: 'webhook',
      handle: createWebhook('webhook_create'),
      calls: ['webhook_create'],
      body: z.object({
        event_name: EventName,
        target_url: TargetUrl,
        description: Description,
        filter: Narrowed,
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
      form: webhookForm,
      handle: updateWebhook('definition_update', (id) => ({ kind: 'webhook', id_or_key: id })),
      body: z.object({
        event_name: EventName.optional(),
        target_url: TargetUrl.optional(),
        status: z.enum(['active', 'disabled'], 'must be active or disabled').optional(),
        description: Description,
        filter: Narrowed,
      }),
      example: { status: 'active' },
      replies: { 200: data(Webhook) },
      refusals: { 400: ['TARGET_URL_NOT_ALLOWED', 'TARGET_URL_NOT_HTTPS'] },
    }),
    route(
      'POST /:webhookId/rotate-secret',
      'Rotate the signing secret, for deliveries that are queued from now on; shown once',
      {
        handle: rotateWebhookSecret('webhook_rotate_secret'),
        replies: { 200: Rotated },
      },
    ),
    route('POST /:webhookId/test', "Send a synthetic svc.webhook.test now, and return the receiver's response", {
      // only the workers' role may read secrets
      handle: testWebhook('webhook_test', { role: 'app_worker' }),
      replies: { 200: Tested },
      refusals: { 400: ['TARGET_URL_NOT_ALLOWED', 'TARGET_URL_NOT_HTTPS'] },
      failure: 'CREATE_FAILED',
    }),
  ]),
]

const deliveriesQuery = {
  limit: Limit(),
  cursor: Cursor,
  status: DeliveryStatus.optional(),
  since: z.string().meta({ format: 'date-time' }).optional(),
}

const deliveries = [
  ...group('/admin/projects/:projectId/webhooks', administrator, [
    route('GET /:webhookId/deliveries', 'Deliveries of a subscription, newest first, with their attempt logs', {
      call: 'webhook_delivery_list',
      query: deliveriesQuery,
      replies: { 200: cursorPage(Delivery) },
    }),
    route('GET /deliveries', 'Deliveries of all subscriptions, newest first, with their attempt logs', {
      call: 'webhook_deliveries_list',
      operationId: 'listAllWebhookDeliveries',
      query: deliveriesQuery,
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
  words: {
    since: ['Since', 'Deliveries made from this moment on.'],
    until: ['Until', 'Deliveries made before this moment.', { unset: 'Now' }],
    statuses: ['Status', 'Which of them are sent again.'],
  },
  routes: [...subscriptions, ...deliveries],
})
