import { dataOf } from '#server/database/database.ts'
import { type Sealed, sendAll } from '#server/providers/push/gateway.ts'
import type { Claimed } from '#server/providers/push/message.ts'
import { outboxTask, type TenantContext } from '#workers/task.ts'

type Step = { readonly deliveries: readonly Claimed[]; readonly picked: number; readonly next_at: string | null }

/** The queue of direct sends and automations. */
const direct = '00000000-0000-0000-0000-000000000000'
const batch = 500
/** While providers answer for some batches the next one is claimed. */
const batchesAtOnce = 3
/** The length of a turn: after it the row is due again at once, behind rows that have waited longer. */
const longestMs = 8_000

/**
 * Sends the due deliveries of a queue. Each batch is claimed, which marks it as sending, sent, and recorded. Returns when the next delivery is
 * due, or null when none is left.
 */
const drain = async (context: TenantContext, queue: string): Promise<Date | null> => {
  const { services, projectId, call, step } = context
  const project = await services.projectCache.byProject(projectId)
  const uses_log = project?.environment !== 'production'
  const connected = dataOf<Sealed[]>(await step('push_providers', {}))
  const running = new Set<Promise<unknown>>()
  const errors: unknown[] = []
  const send = async (deliveries: readonly Claimed[]) => {
    const results = await sendAll(services, projectId, connected, deliveries)
    // a call and not a step: a stop of the server waits until the outcome is recorded
    await call('push_record', { results: JSON.stringify(results) }, { timeoutMs: 30_000, background: true })
  }
  const until = performance.now() + longestMs
  try {
    for (;;) {
      if (errors.length > 0) throw errors[0]
      if (performance.now() > until) return services.now()
      // read before the claim, which may see as being sent what is recorded while its answer is on the way
      const others = [...running]
      const claimed = dataOf<Step>(await step('push_claim', { queue, most: batch, uses_log }, { timeoutMs: 30_000 }))
      if (claimed.deliveries.length > 0) {
        const work: Promise<unknown> = send(claimed.deliveries)
          .catch((error) => errors.push(error))
          .finally(() => running.delete(work))
        running.add(work)
      }
      if (claimed.picked > 0) {
        if (running.size >= batchesAtOnce) await Promise.race(running)
      } else if (others.length > 0) {
        // what is recorded may be due again, or the last of a campaign
        await Promise.all(others)
      } else {
        return claimed.next_at === null ? null : later(services.now(), claimed.next_at)
      }
    }
  } finally {
    await Promise.all(running)
  }
}

/** Rows that are due and were not claimed are locked by a transaction: they are looked at again a second later. */
const later = (now: Date, nextAt: string): Date => {
  const at = new Date(nextAt)
  return at > now ? at : new Date(now.getTime() + 1000)
}

/** Sends a campaign. */
export const pushSend = outboxTask('push__send', (context, { key }) => drain(context, key ?? direct), { atOnce: 4 })

/** Sends direct messages and those of automations. */
export const pushDirect = outboxTask('push__direct', (context) => drain(context, direct), { atOnce: 1 })
