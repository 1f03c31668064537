import { dataOf } from '#server/database/database.ts'
import { signature } from '#server/providers/outbound.ts'
import { outboxTask } from '#workers/task.ts'

type Delivery = {
  id: string
  event_id: string
  event_name: string
  payload: string
  attempt: number
  target_url: string
  secret_sealed: string
  idempotency_key: string
  sent_at: number
}

/** One attempt of a delivery: SQL says what to send and decides what the outcome means. */
export const webhooksDeliver = outboxTask('webhooks__deliver', async ({ services, call }, row) => {
  const delivery = dataOf<Delivery | null>(await call('webhook_delivery_begin', { delivery_id: row.key }))
  if (!delivery) return null
  const secret = services.secrets.decrypt('webhook secret', delivery.secret_sealed)
  const outcome = await services.outbound.post({
    url: delivery.target_url,
    body: delivery.payload,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'Service-Webhooks/1',
      'x-service-signature': signature(secret, delivery.sent_at, delivery.payload),
      'x-service-idempotency-key': delivery.idempotency_key,
      'x-service-event-name': delivery.event_name,
      'x-service-event-id': delivery.event_id,
      'x-service-attempt': String(delivery.attempt),
    },
  })
  const { next_attempt_at } = dataOf<{ next_attempt_at: string | null }>(
    await call('webhook_attempt_record', {
      delivery_id: delivery.id,
      status_code: outcome.statusCode,
      error: outcome.error,
      duration_ms: Math.round(outcome.durationMs),
      response_excerpt: outcome.responseExcerpt,
      retry_after: outcome.retryAfter === null ? null : Math.round(outcome.retryAfter),
      is_refused: outcome.refused,
    }),
  )
  return next_attempt_at ? new Date(next_attempt_at) : null
})
