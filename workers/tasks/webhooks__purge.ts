import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** Deletes the deliveries of a deleted subscription, step by step, so that no lock is held for long. */
export const webhooksPurge = outboxTask(
  'webhooks__purge',
  async ({ services, step }, row) => {
    const hasMore = dataOf<boolean>(await step('webhook_purge', { webhook_id: row.key }))
    return hasMore ? services.now() : null
  },
  { urgency: 'background' },
)
