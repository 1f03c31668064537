import { outboxTask } from '#workers/task.ts'
import { stepOf } from '#workers/webhooks.ts'

const release = stepOf('webhook_release')

/** Releases the deliveries that were held while a subscription was degraded, 500 at a time, so that no request waits for all of them. */
export const webhooksRelease = outboxTask('webhooks__release', ({ services, step }, row) =>
  release(services, step, row.key),
)
