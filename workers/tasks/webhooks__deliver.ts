import { recordArguments, type Sendable, sendDelivery } from '#server/providers/webhooks.ts'
import { outboxTask } from '#workers/task.ts'
import { attemptDelivery } from '#workers/webhooks.ts'

/** Makes one attempt of a delivery. The request comes with the lease of the row; SQL evaluates the outcome and schedules the retry. */
export const webhooksDeliver = outboxTask('webhooks__deliver', async ({ services, call }, row, finish) => {
  if (row.begun) {
    const delivery = row.begun as Sendable
    return finish('webhook_attempt_finish', recordArguments(delivery, await sendDelivery(services, delivery)))
  }
  // the subscription is not active, or the tenant is not migrated yet
  return attemptDelivery(services, call, row.key)
})
