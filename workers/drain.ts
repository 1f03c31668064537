import { setTimeout as sleep } from 'node:timers/promises'
import { dataOf } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import type { OutboxRow, OutboxTask, TenantContext } from '#workers/task.ts'

const together = 20
// a delivery takes at most its ten seconds, and is begun as soon as it is leased
const leaseSeconds = 30
const laneLimit = 10
const giveUpAfter = 20
const longestMs = 60_000
const nearMs = 1_000

/**
 * Runs what is due in one tenant's outbox and sets the timer for the rest. Rows are leased, run without a connection or a lock
 * held, and settled one by one; a row whose worker dies comes due again when its lease ends.
 */
export const drainTenant = async (
  services: Services,
  tasks: ReadonlyMap<string, OutboxTask>,
  projectId: string,
): Promise<void> => {
  const place = await services.fleet.placeOf(projectId)
  if (!place) return
  const call: TenantContext['call'] = (name, args) =>
    services.database.call(place, 'app_worker', { caller: 'worker', projectId }, name, args)
  const context: TenantContext = { services, projectId, place, call }
  const until = performance.now() + longestMs

  let waitedFor: string | null = null
  for (;;) {
    await runDue(context, tasks, until)
    const { due_at } = dataOf<{ due_at: string | null }>(await call('outbox_next', {}))
    if (!due_at) return
    // work that is due in a moment is waited for: the queue would start a drain for it at once, and find nothing
    const wait = Date.parse(due_at) - services.now().getTime()
    if (wait <= 0 || wait > nearMs || due_at === waitedFor || performance.now() > until) {
      services.waker.wake(projectId, due_at)
      return
    }
    waitedFor = due_at
    await sleep(wait)
  }
}

/** Leases as many rows as can be begun at once, until none is due or the time is over. */
const runDue = async (context: TenantContext, tasks: ReadonlyMap<string, OutboxTask>, until: number): Promise<void> => {
  const running = new Set<Promise<void>>()
  try {
    while (performance.now() < until) {
      const rows = dataOf<OutboxRow[]>(
        await context.call('outbox_lease', {
          batch: together - running.size,
          seconds: leaseSeconds,
          lane_limit: laneLimit,
        }),
      )
      for (const row of rows) {
        const work = runRow(context, tasks, row).finally(() => running.delete(work))
        running.add(work)
      }
      if (running.size === 0) break
      // what ends makes room, in its lane too
      if (rows.length === 0 || running.size >= together) await Promise.race(running)
    }
  } finally {
    await Promise.all(running)
  }
}

const runRow = async (
  context: TenantContext,
  tasks: ReadonlyMap<string, OutboxTask>,
  row: OutboxRow,
): Promise<void> => {
  const settle = (settled: { due_at?: string; error?: string; gave_up?: boolean }) =>
    context.call('outbox_settle', { id: row.id, lease: row.lease, ...settled })
  try {
    const task = tasks.get(row.task)
    if (!task) throw new Error(`there is no task ${row.task} in this version`)
    const due = await task.run(context, row)
    await settle(due ? { due_at: due.toISOString() } : {})
  } catch (error) {
    const { services, projectId } = context
    const message = (error as Error).message.slice(0, 1000)
    services.log.warn(
      { project: projectId, task: row.task, row: row.id, attempts: row.attempts, error: message },
      'a task failed',
    )
    const seconds = Math.min(6 * 3600, 2 ** row.attempts * (0.9 + 0.2 * Math.random()))
    const again = new Date(services.now().getTime() + seconds * 1000).toISOString()
    // a settle that fails leaves the lease, which ends by itself
    await settle(
      row.attempts >= giveUpAfter ? { error: message, gave_up: true } : { error: message, due_at: again },
    ).catch(() => undefined)
  }
}
