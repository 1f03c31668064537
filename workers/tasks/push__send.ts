import { dataOf } from '#server/database/database.ts'
import { type Sealed, sendAll } from '#server/providers/push/gateway.ts'
import type { Claimed } from '#server/providers/push/message.ts'
import { drainQueue } from '#workers/campaigns.ts'
import { outboxTask, type TenantContext } from '#workers/task.ts'

/** The queue of direct sends and automations. */
const direct = '00000000-0000-0000-0000-000000000000'

/** Sends the due deliveries of a queue: each batch is claimed, which marks it as sending, sent to the providers, and recorded. */
const drain = async (context: TenantContext, queue: string): Promise<Date | null> => {
  const { services, projectId, call, step } = context
  const connected = dataOf<Sealed[]>(await step('push_providers', {}))
  return drainQueue<Claimed>(context, { queue, channel: 'push' }, async (deliveries) => {
    const results = await sendAll(services, projectId, connected, deliveries)
    // a call and not a step: a stop of the server waits until the outcome is recorded
    await call('push_record', { results: JSON.stringify(results) }, { timeoutMs: 30_000, background: true })
  })
}

/** Sends a campaign. */
export const pushSend = outboxTask('push__send', (context, { key }) => drain(context, key ?? direct), { atOnce: 4 })

/** Sends direct messages and those of automations. */
export const pushDirect = outboxTask('push__direct', (context) => drain(context, direct), { atOnce: 1 })
