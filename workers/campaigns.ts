import { dataOf } from '#server/database/database.ts'
import type { TenantContext } from '#workers/task.ts'

type Step<Delivery> = {
  readonly deliveries: readonly Delivery[]
  readonly picked: number
  readonly next_at: string | null
}
/** What is claimed: a campaign's deliveries, or with the channel those of its queue of direct sends. */
type Queue = { readonly queue: string; readonly channel?: string }

/** How many deliveries are claimed at once. */
const batch = 500
/** While the outside world answers for some batches the next one is claimed. */
const batchesAtOnce = 3
/** The length of a turn: after it the row is due again at once, behind rows that have waited longer. */
const longestMs = 8_000

/**
 * Claims what is due of a queue until nothing is, or its turn is over. `send` is for channels whose deliveries a worker sends: it also records what became of
 * them. Returns when the next delivery is due, or null when none is left.
 */
export const drainQueue = async <Delivery>(
  context: TenantContext,
  queue: Queue,
  send?: (deliveries: readonly Delivery[]) => Promise<void>,
): Promise<Date | null> => {
  const { services, projectId, step } = context
  const project = await services.projectCache.byProject(projectId)
  const asked = { ...queue, most: batch, is_production: project?.environment === 'production' }
  const running = new Set<Promise<unknown>>()
  const errors: unknown[] = []
  const until = performance.now() + longestMs
  try {
    for (;;) {
      if (errors.length > 0) throw errors[0]
      if (performance.now() > until) return services.now()
      // read before the claim, which may see as being sent what is recorded while its answer is on the way
      const others = [...running]
      const claimed = dataOf<Step<Delivery>>(await step('campaign_claim', asked, { timeoutMs: 30_000 }))
      if (send && claimed.deliveries.length > 0) {
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
