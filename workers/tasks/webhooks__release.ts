import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** Releases the deliveries that were held while a subscription was degraded, 500 at a time, so that no request waits for all of them. */
export const webhooksRelease = outboxTask('webhooks__release', async ({ services, step }, row) => {
  const hasMore = dataOf<boolean>(await step('webhook_release', { webhook_id: row.key }))
  return hasMore ? services.now() : null
})
