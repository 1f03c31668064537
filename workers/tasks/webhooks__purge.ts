import { outboxTask } from '#workers/task.ts'
import { stepOf } from '#workers/webhooks.ts'

const purge = stepOf('webhook_purge')

/** Deletes the deliveries of a deleted subscription, step by step, so that no lock is held for long. */
export const webhooksPurge = outboxTask(
  'webhooks__purge',
  ({ services, step }, row) => purge(services, step, row.key),
  {
    urgency: 'background',
  },
)
