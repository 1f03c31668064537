import { outboxTask } from '#workers/task.ts'

/** Processes a webhook of a provider that was stored when it arrived. */
export const integrationsProcess = outboxTask('integrations__process', async ({ call }, row) => {
  await call('inbound_process', { inbound_id: row.key })
  return null
})
