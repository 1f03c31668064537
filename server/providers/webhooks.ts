import { type Outbound, type Outcome, signature } from '#server/providers/outbound.ts'
import type { Secrets } from '#server/secrets.ts'
import type { Telemetry } from '#server/telemetry/telemetry.ts'

/** One attempt as SQL returns it: `payload` is the body, and `sent_at` the Unix time that is signed. */
export type Sendable = {
  readonly id: string
  readonly event_id: string
  readonly event_name: string
  readonly payload: string
  readonly attempt: number
  readonly target_url: string
  readonly secret_sealed: string
  readonly idempotency_key: string
  readonly sent_at: number
}

const purpose = 'webhook secret'

/** Encrypts a signing secret for storage. */
export const sealSecret = (secrets: Secrets, secret: string): string => secrets.encrypt(purpose, secret)

/** Signs and posts one delivery. Throws only when this process stops before there is an outcome. Contract "Outbound webhooks". */
export const sendDelivery = async (
  {
    outbound,
    secrets,
    telemetry,
  }: { readonly outbound: Outbound; readonly secrets: Secrets; readonly telemetry?: Pick<Telemetry, 'measures'> },
  delivery: Sendable,
): Promise<Outcome> => {
  const secret = secrets.decrypt(purpose, delivery.secret_sealed)
  const outcome = await outbound.post({
    url: delivery.target_url,
    body: delivery.payload,
    headers: {
      'x-service-signature': signature(secret, delivery.sent_at, delivery.payload),
      'x-service-idempotency-key': delivery.idempotency_key,
      'x-service-event-name': delivery.event_name,
      'x-service-event-id': delivery.event_id,
      'x-service-attempt': String(delivery.attempt),
    },
  })
  // this process closed the connection: the circuit breaker must not count it as a failure of the receiver
  if (outcome.error === 'closed') throw new Error('this process ends')
  telemetry?.measures.delivery('webhook', isAcknowledged(outcome) ? 'delivered' : 'failed')
  return outcome
}

export const isAcknowledged = ({ statusCode, error }: Outcome): boolean =>
  error === null && statusCode !== null && statusCode >= 200 && statusCode < 300

/** An outcome as `api.webhook_attempt_record` and `api.webhook_attempt_finish` take it. */
export const recordArguments = ({ id, target_url }: Sendable, outcome: Outcome, isProbe = false) => ({
  delivery_id: id,
  target_url,
  status_code: outcome.statusCode,
  error: outcome.error,
  duration_ms: Math.round(outcome.durationMs),
  response_excerpt: outcome.responseExcerpt,
  // SQL honours at most one hour
  retry_after: outcome.retryAfter === null ? null : Math.min(Math.round(outcome.retryAfter), 86_400),
  is_refused: outcome.refused,
  is_probe: isProbe,
})
