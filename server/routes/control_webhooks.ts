import { z } from 'zod'
import { developer } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { Cursor, cursorPage, Deleted, data, Limit, Page, page, Uuid } from '#server/http/schemas.ts'
import {
  Attempt,
  addressRefusals,
  Delivery,
  DeliveryStatus,
  Rotated,
  Secret,
  TargetUrl,
  Tested,
} from '#server/webhooks/shapes.ts'
import { createWebhook, rotateWebhookSecret, testWebhook, updateWebhook } from '#server/webhooks/subscriptions.ts'

const types = [
  'project.created',
  'project.deleted',
  'project.provisioned',
  'project.provisioning_failed',
  'api_key.created',
  'api_key.revoked',
  'member.joined',
  'member.removed',
  'deployment.ready',
  'deployment.failed',
  'quota.warning',
  'quota.exceeded',
  'webhook.degraded',
  'domain.verified',
  'audit.event',
] as const

const ControlWebhook = answer('webhook_json', { event_types: z.array(z.string()) }, 'control')
const ControlDelivery = Delivery.extend({
  attempts: z.array(Attempt.extend({ response_excerpt: z.string().nullable() })),
}).meta({ title: 'ControlPlaneWebhookDelivery' })
/** `["*"]`, or types by name: SQL refuses a mixture. */
const EventTypes = z
  .array(z.enum(['*', ...types], 'must be * or a known type'))
  .min(1, 'must name at least one type')
  .max(types.length, `must name at most ${types.length} types`)

const refusals = { 403: ['ROLE_FORBIDDEN'], 404: ['NOT_FOUND'] }

export const controlWebhooks = area({
  stem: 'control_webhooks',
  title: 'Control-plane webhooks',
  part: 'Platform',
  about: 'What happens to the projects of an organization, sent to addresses of its admins.',
  words: {
    target_url: ['Address', 'A public https address of yours that takes a POST.'],
    event_types: ['Events', 'Such as `project.created`; `*` is all of them.'],
    status: ['Status', 'Active delivers; disabled stops new deliveries.'],
    organization_id: ['Organization', 'Whose events.', { unset: 'Your own' }],
  },
  routes: [
    ...group('/admin/control-plane-webhooks', developer, [
      route('POST /', 'Watch an organization, as its admin, with signed deliveries; the secret is shown once', {
        handle: createWebhook('control_webhook_create'),
        calls: ['control_webhook_create'],
        sessionOnly: true,
        description: '`["*"]` is every type but `audit.event`. Without `organization_id`: the personal organization.',
        body: z.object({ target_url: TargetUrl, event_types: EventTypes, organization_id: Uuid.optional() }),
        example: { target_url: 'https://1.1.1.1/hook', event_types: ['*'] },
        replies: { 201: data(ControlWebhook.extend({ secret: Secret })) },
        refusals: { 400: ['TARGET_URL_NOT_ALLOWED', 'TARGET_URL_NOT_HTTPS'] },
      }),
      route('GET /', 'Webhooks of the organizations that the developer administrates, or of one, newest first', {
        call: 'control_webhook_list',
        sessionOnly: true,
        query: { ...Page, organization_id: Uuid.optional() },
        replies: { 200: page(ControlWebhook) },
      }),
      route('GET /:webhookId', 'A webhook of an organization', {
        call: 'control_webhook_get',
        sessionOnly: true,
        replies: { 200: data(ControlWebhook) },
      }),
      route('PATCH /:webhookId', 'Change a webhook, disable it, or activate a degraded one again', {
        handle: updateWebhook('control_webhook_patch', (id) => ({ webhook_id: id })),
        calls: ['control_webhook_patch'],
        sessionOnly: true,
        body: z.object({
          target_url: TargetUrl.optional(),
          event_types: EventTypes.optional(),
          status: z.enum(['active', 'disabled'], 'must be active or disabled').optional(),
        }),
        example: { status: 'active' },
        replies: { 200: data(ControlWebhook) },
        refusals: { 400: ['TARGET_URL_NOT_ALLOWED', 'TARGET_URL_NOT_HTTPS'] },
      }),
      route('DELETE /:webhookId', 'Delete a webhook with its deliveries', {
        call: 'control_webhook_delete',
        sessionOnly: true,
        replies: { 200: Deleted },
      }),
      route(
        'POST /:webhookId/rotate-secret',
        'Rotate the signing secret, for deliveries that are queued from now on; shown once',
        {
          handle: rotateWebhookSecret('control_webhook_rotate_secret'),
          sessionOnly: true,
          replies: { 200: Rotated },
          refusals,
        },
      ),
      route('POST /:webhookId/test', "Send a synthetic webhook.test now, and return the receiver's response", {
        handle: testWebhook('control_webhook_test'),
        sessionOnly: true,
        replies: { 200: Tested },
        refusals: { ...refusals, 400: addressRefusals },
        failure: 'CREATE_FAILED',
      }),
      route('GET /:webhookId/deliveries', 'Deliveries of a webhook, newest first, with their attempt logs', {
        call: 'control_webhook_delivery_list',
        sessionOnly: true,
        query: {
          limit: Limit(),
          cursor: Cursor,
          status: DeliveryStatus.optional(),
          since: z.string().meta({ format: 'date-time' }).optional(),
        },
        replies: { 200: cursorPage(ControlDelivery) },
      }),
      route('POST /deliveries/:deliveryId/replay', 'Send a failed delivery again: same payload, same idempotency key', {
        call: 'control_webhook_delivery_replay',
        sessionOnly: true,
        replies: { 202: data(ControlDelivery) },
        failure: 'UPDATE_FAILED',
      }),
    ]),
  ],
})
