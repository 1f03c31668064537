import { z } from 'zod'
import { data, Time, Uuid } from '#server/http/schemas.ts'

// What the webhooks of projects and those of the control plane have in common.
export const Secret = z.string().regex(/^[0-9a-f]{64}$/)
export const TargetUrl = z.string().min(1, 'is required').max(2048, 'must have at most 2048 characters')

export const DeliveryStatus = z.enum(['pending', 'delivered', 'failed', 'dlq'])
export const Attempt = z.strictObject({
  n: z.int(),
  at: Time,
  status_code: z.int().nullable(),
  error: z.string().nullable(),
  duration_ms: z.int(),
})
export const Delivery = z
  .strictObject({
    id: Uuid,
    webhook_id: Uuid,
    event_id: Uuid,
    event_name: z.string(),
    idempotency_key: Uuid,
    status: DeliveryStatus,
    failed_reason: z
      .enum(['attempts_exhausted', 'held_too_long', 'gone', 'target_not_allowed', 'subscription_disabled'])
      .meta({ title: 'WebhookDeliveryDetailFailedReason' })
      .nullable(),
    attempt_count: z.int(),
    next_attempt_at: Time.nullable(),
    held_until: Time.nullable(),
    created_at: Time,
    settled_at: Time.nullable(),
    attempts: z.array(Attempt),
  })
  .meta({ title: 'WebhookDelivery' })
export const Rotated = data(z.strictObject({ secret: Secret }).meta({ title: 'RotateWebhookSecretResult' }))
export const Tested = data(
  z
    .strictObject({
      status_code: z.int().nullable(),
      error: z.string().nullable(),
      duration_ms: z.int(),
      response_excerpt: z.string(),
      delivered: z.boolean(),
    })
    .meta({ title: 'TestWebhookResult' }),
)

export const addressRefusals = ['TARGET_URL_NOT_ALLOWED', 'TARGET_URL_NOT_HTTPS']
