import { dataOf, type Reply } from '#server/database/database.ts'
import { recordArguments, type Sendable, sendDelivery } from '#server/providers/webhooks.ts'
import type { Services } from '#server/services.ts'

/** Calls an api function of the database that holds the webhooks: a project's, or control. Both have the same functions. */
type Call = (name: string, args: Record<string, unknown>) => Promise<Reply>
export type Begun = { readonly delivery?: Sendable | null } | null
type Probe = { readonly delivery: Sendable | null; readonly due_at: string } | null

/** Half-open probe of the circuit breaker: sends the oldest delivery of a degraded webhook, every 15 minutes until the status changes. */
export const probeWebhook = async (services: Services, call: Call, webhookId: string | null) => {
  const begun = dataOf<Probe>(await call('webhook_probe_begin', { webhook_id: webhookId }))
  if (!begun) return null
  if (begun.delivery) {
    const outcome = await sendDelivery(services, begun.delivery)
    await call('webhook_attempt_record', recordArguments(begun.delivery, outcome, true))
  }
  return new Date(begun.due_at)
}

/** A step of a task that deals with many deliveries, so that no lock is held for long: due again at once while more may be left. */
export const stepOf =
  (name: 'webhook_purge' | 'webhook_release') => async (services: Services, call: Call, webhookId: string | null) =>
    dataOf<boolean>(await call(name, { webhook_id: webhookId })) ? services.now() : null

/** The state of a webhook when it became degraded; `target_url` without its query, which may contain a secret. */
export type Degraded = {
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

/** The mail about a webhook that has become degraded; `url` is where the webhook is changed. */
export const degradedMail = (degraded: Degraded, of: string, url: string, replay: string): string =>
  [
    `The webhook for ${degraded.event_name} of your ${of} does not reach its receiver:`,
    degraded.target_url,
    '',
    reasonOf(degraded),
    `It is degraded since ${degraded.degraded_at}. New deliveries wait for up to 72 hours, and every 15 minutes one is tried.`,
    '',
    'When the receiver works again, switch the webhook on, and what waits is delivered:',
    `PATCH ${url} {"status": "active"}`,
    'What was given up can be sent again:',
    replay,
    '',
  ].join('\n')
