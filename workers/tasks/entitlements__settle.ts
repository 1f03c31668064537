import { outboxTask } from '#workers/task.ts'

/** Applies purchases and transfers that waited for their user. */
export const entitlementsSettle = outboxTask('entitlements__settle', async ({ call }, row) => {
  await call('subscription_resume', { item: row.key })
  return null
})
