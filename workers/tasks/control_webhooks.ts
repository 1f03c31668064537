import { dataOf } from '#server/database/database.ts'
import { recordArguments, sendDelivery } from '#server/providers/webhooks.ts'
import type { Services } from '#server/services.ts'
import { type Job, job } from '#workers/task.ts'
import { type Begun, type Degraded, degradedMail, probeWebhook, stepOf } from '#workers/webhooks.ts'

const callOf =
  ({ database, control }: Services) =>
  (name: string, args: Record<string, unknown>) =>
    database.call(control, 'control_worker', { caller: 'worker' }, name, args)

type Run = (services: Services, call: ReturnType<typeof callOf>, key: string) => Promise<Date | null>

/** A task of the control plane's webhooks: the receiver is a stranger's. Each owner has few lanes, see internal.webhook_lane. */
const task = (name: string, run: Run): Job =>
  job(
    `control_${name}`,
    async (services, { key = '' }) => {
      const call = callOf(services)
      const due = await run(services, call, key)
      if (due) await call('webhook_task_repeat', { task: name, key, due_at: due })
    },
    'background',
    { slots: 'outbound' },
  )

/** Makes one attempt of a delivery: SQL evaluates the outcome, and schedules the next attempt with the record of this one. */
const attemptDelivery: Run = async (services, call, key) => {
  const begun = dataOf<Begun>(await call('webhook_delivery_begin', { delivery_id: key }))
  if (begun?.delivery)
    await call('webhook_attempt_record', recordArguments(begun.delivery, await sendDelivery(services, begun.delivery)))
  return null
}

export const controlWebhooksDeliver = task('webhooks__deliver', attemptDelivery)
export const controlWebhooksProbe = task('webhooks__probe', probeWebhook)
export const controlWebhooksRelease = task('webhooks__release', stepOf('webhook_release'))
export const controlWebhooksPurge = task('webhooks__purge', stepOf('webhook_purge'))

/** A line of a header: the name of an organization is chosen by its members. */
const lineOf = (name: string) => name.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim()

/** Notifies the owner of an organization, once, by mail, that one of its webhooks has become degraded. */
export const controlWebhooksNotify = job('control_webhooks__notify', async (services, payload) => {
  const { key = '' } = payload
  const degraded = payload as unknown as Degraded
  const { webhook_id } = degraded
  const owner = dataOf<{ email: string; organization: string } | null>(
    await callOf(services)('control_webhook_owner', { webhook_id }),
  )
  if (!owner) return
  const organization = lineOf(owner.organization)
  const url = `${services.publicUrl}/v1/admin/control-plane-webhooks/${webhook_id}`
  await services.mail.send({
    id: `webhook-degraded-${key}`,
    to: owner.email,
    subject: `Webhook degraded: ${organization}`,
    text: degradedMail(
      degraded,
      `organization ${organization}`,
      url,
      'POST /v1/admin/control-plane-webhooks/deliveries/:deliveryId/replay',
    ),
  })
})
