import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** The payload: the state when the subscription became degraded; `target_url` without its query, which may contain a secret. */
type Degraded = {
  readonly webhook_id: string
  readonly event_name: string
  readonly target_url: string
  readonly degraded_at: string
  readonly dlq_in_row: number
  readonly failed_in_row: number
  readonly failing_since: string | null
}

const reasonOf = ({ dlq_in_row, failed_in_row, failing_since }: Degraded): string => {
  if (dlq_in_row >= 5) return `The last ${dlq_in_row} deliveries were given up, each after all of its attempts.`
  if (failed_in_row > 0) return `The last ${failed_in_row} attempts failed, the first of them at ${failing_since}.`
  return 'It was marked as degraded.'
}

/** Notifies the project's owner, once, by mail, that a subscription has become degraded; runs independently of deliveries. */
export const webhooksNotify = outboxTask('webhooks__notify', async ({ services, projectId }, row) => {
  const degraded = row.payload as unknown as Degraded
  const reply = await services.database.call(
    services.control,
    'control_worker',
    { caller: 'worker' },
    'webhook_owner',
    {
      project_id: projectId,
    },
  )
  const owner = dataOf<{ email: string; project_name: string } | null>(reply)
  if (!owner) return null
  const url = `${services.publicUrl}/v1/admin/projects/${projectId}/webhooks/${degraded.webhook_id}`
  await services.mail.send({
    id: `webhook-degraded-${row.key}`,
    to: owner.email,
    subject: `Webhook degraded: ${degraded.event_name} in ${owner.project_name}`,
    text: [
      `The webhook for ${degraded.event_name} of your project ${owner.project_name} does not reach its receiver:`,
      degraded.target_url,
      '',
      reasonOf(degraded),
      `It is degraded since ${degraded.degraded_at}. New deliveries wait for up to 72 hours, and every 15 minutes one is tried.`,
      '',
      'When the receiver works again, switch the webhook on, and what waits is delivered:',
      `PATCH ${url} {"status": "active"}`,
      'What was given up can be sent again:',
      `POST ${url}/replay {"statuses": ["dlq"]}`,
      '',
    ].join('\n'),
  })
  return null
})
