import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'
import { type Degraded, degradedMail } from '#workers/webhooks.ts'

/**
 * Reports that a subscription has become degraded, once: to the webhooks of the control plane, and to the project's owner by mail. Runs independently of
 * deliveries.
 */
export const webhooksNotify = outboxTask('webhooks__notify', async ({ services, projectId }, row) => {
  const degraded = row.payload as unknown as Degraded
  const call = (name: string, args: Record<string, unknown>) =>
    services.database.call(services.control, 'control_worker', { caller: 'worker' }, name, args)
  const { webhook_id, ...state } = degraded
  await call('webhook_degraded', {
    project_id: projectId,
    event_id: row.key,
    webhook: { id: webhook_id, status: 'degraded', ...state },
  })
  const owner = dataOf<{ email: string; project_name: string } | null>(
    await call('webhook_owner', { project_id: projectId }),
  )
  if (!owner) return null
  const url = `${services.publicUrl}/v1/admin/projects/${projectId}/webhooks/${webhook_id}`
  await services.mail.send({
    id: `webhook-degraded-${row.key}`,
    to: owner.email,
    subject: `Webhook degraded: ${degraded.event_name} in ${owner.project_name}`,
    text: degradedMail(degraded, `project ${owner.project_name}`, url, `POST ${url}/replay {"statuses": ["dlq"]}`),
  })
  return null
})
