import { dataOf } from '#server/database/database.ts'
import { recordArguments, type Sendable, sendDelivery } from '#server/providers/webhooks.ts'
import { outboxTask } from '#workers/task.ts'
import type { Begun } from '#workers/webhooks.ts'

/** Makes one attempt of a delivery. The request comes with the lease of the row; SQL evaluates the outcome and schedules the retry as it finishes the row. */
export const webhooksDeliver = outboxTask('webhooks__deliver', async ({ services, call }, row, finish) => {
  const delivery =
    (row.begun as Sendable | null | undefined) ??
    // the subscription is not active, and the delivery must be changed first
    dataOf<Begun>(await call('webhook_delivery_begin', { delivery_id: row.key }))?.delivery
  if (!delivery) return null
  return finish('webhook_attempt_finish', recordArguments(delivery, await sendDelivery(services, delivery)))
})
