import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { data, Time, Uuid } from '#server/http/schemas.ts'
import { isAcknowledged, type Sendable, sealSecret, sendDelivery } from '#server/providers/webhooks.ts'

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

export const checkTarget = async ({ services }: HandlerContext, url: unknown): Promise<void> => {
  const problem = await services.outbound.checkUrl(String(url))
  if (problem) throw refusal(400, problem.code, problem.message, { field: 'target_url', reason: problem.message })
}

/** 32 random bytes, in the form that is shown and the form that is stored. */
const newSecret = ({ services }: HandlerContext) => {
  const secret = randomBytes(32).toString('hex')
  return { secret, secret_sealed: sealSecret(services.secrets, secret) }
}

/** The secret is made and shown here, once, and stored sealed. */
export const createWebhook = async (context: HandlerContext, call: string) => {
  await checkTarget(context, context.body['target_url'])
  const { secret, secret_sealed } = newSecret(context)
  const reply = await context.call(call, { ...context.body, secret_sealed })
  return { status: reply.status, body: JSON.stringify({ data: { ...dataOf<object>(reply), secret } }) }
}

export const rotateWebhookSecret = async (context: HandlerContext, call: string) => {
  const { secret, secret_sealed } = newSecret(context)
  const reply = await context.call(call, { webhook_id: context.params['webhookId'], secret_sealed })
  return { status: reply.status, body: JSON.stringify({ data: { secret } }) }
}

/** Sends a synthetic delivery now, as workers send real ones. */
export const sendSample = async (context: HandlerContext, delivery: Sendable) => {
  await checkTarget(context, delivery.target_url)
  const outcome = await sendDelivery(context.services, delivery)
  const answer = {
    status_code: outcome.statusCode,
    error: outcome.error,
    duration_ms: outcome.durationMs,
    response_excerpt: outcome.responseExcerpt,
    delivered: isAcknowledged(outcome),
  }
  return { status: 200, body: JSON.stringify({ data: answer }) }
}
