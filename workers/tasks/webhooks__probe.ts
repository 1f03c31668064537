import { dataOf } from '#server/database/database.ts'
import { recordArguments, type Sendable, sendDelivery } from '#server/providers/webhooks.ts'
import { outboxTask } from '#workers/task.ts'

type Begun = { readonly delivery: Sendable | null; readonly due_at: string } | null

/** Half-open probe of the circuit breaker: sends the oldest delivery of a degraded subscription, every 15 minutes until the status changes. */
export const webhooksProbe = outboxTask('webhooks__probe', async ({ services, call }, row) => {
  const begun = dataOf<Begun>(await call('webhook_probe_begin', { webhook_id: row.key }))
  if (!begun) return null
  if (begun.delivery) {
    const outcome = await sendDelivery(services, begun.delivery)
    await call('webhook_attempt_record', recordArguments(begun.delivery, outcome, true))
  }
  return new Date(begun.due_at)
})
