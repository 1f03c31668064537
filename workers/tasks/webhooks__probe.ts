import { outboxTask } from '#workers/task.ts'
import { probeWebhook } from '#workers/webhooks.ts'

/** Half-open probe of the circuit breaker of a project's webhook. */
export const webhooksProbe = outboxTask('webhooks__probe', ({ services, call }, row) =>
  probeWebhook(services, call, row.key),
)
