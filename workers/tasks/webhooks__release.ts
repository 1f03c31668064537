import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** Lets go what was held for a degraded subscription, some hundreds at a time, so that no request waits for all of it. */
export const webhooksRelease = outboxTask('webhooks__release', async ({ services, step }, row) => {
  const hasMore = dataOf<boolean>(await step('webhook_release', { webhook_id: row.key }))
  return hasMore ? services.now() : null
})
