import { dataOf } from '#server/database/database.ts'
import { recordArguments, type Sendable, sendDelivery } from '#server/providers/webhooks.ts'
import { outboxTask } from '#workers/task.ts'

type Begun = { readonly delivery?: Sendable | null } | null

/** Makes one attempt of a delivery. The request comes with the lease of the row; SQL evaluates the outcome and schedules the retry. */
export const webhooksDeliver = outboxTask('webhooks__deliver', async ({ services, call }, row, finish) => {
  if (row.begun) {
    const delivery = row.begun as Sendable
    return finish('webhook_attempt_finish', recordArguments(delivery, await sendDelivery(services, delivery)))
  }
  // the subscription is not active, or the tenant is not migrated yet
  const begun = dataOf<Begun>(await call('webhook_delivery_begin', { delivery_id: row.key }))
  if (!begun?.delivery) return null
  const outcome = await sendDelivery(services, begun.delivery)
  const { next_attempt_at } = dataOf<{ next_attempt_at: string | null }>(
    await call('webhook_attempt_record', recordArguments(begun.delivery, outcome)),
  )
  return next_attempt_at ? new Date(next_attempt_at) : null
})
