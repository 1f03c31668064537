import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** The payload: the state when a guardrail stopped a ramp. */
type Stopped = {
  readonly flag_id: string
  readonly key: string
  readonly ramp: {
    readonly rule_index: number
    readonly guardrail: { readonly event_name: string; readonly max_rate: number }
    readonly rate: number
    readonly exposed_users: number
    readonly stopped_at: string
  }
}

/** Notifies the project's owner, once, by mail, that a guardrail has disabled a rule of a flag. */
export const flagsNotify = outboxTask('flags__notify', async ({ services, projectId }, row) => {
  const { flag_id, key, ramp } = row.payload as unknown as Stopped
  const claims = { caller: 'worker' }
  const args = { project_id: projectId }
  const reply = await services.database.call(services.control, 'control_worker', claims, 'webhook_owner', args)
  const owner = dataOf<{ email: string; project_name: string } | null>(reply)
  if (!owner) return null
  await services.mail.send({
    id: `flag-stopped-${row.key}`,
    to: owner.email,
    subject: `Flag stopped: ${key} in ${owner.project_name}`,
    text: [
      `The ramp of the flag ${key} in your project ${owner.project_name} was stopped by its guardrail at ${ramp.stopped_at}.`,
      `Of ${ramp.exposed_users} users who got the value of rule ${ramp.rule_index}, ${ramp.rate * 100} % had ${ramp.guardrail.event_name} afterwards; ${ramp.guardrail.max_rate * 100} % may.`,
      '',
      'The percentage of the rule is now 0, so it applies to nobody. Its remaining steps were removed.',
      `GET ${services.publicUrl}/v1/admin/projects/${projectId}/flags/${flag_id}`,
      '',
    ].join('\n'),
  })
  return null
})
