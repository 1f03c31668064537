import { setTimeout as sleep } from 'node:timers/promises'
import { dataOf } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { isUnsealed, sealTenant } from '#workers/seal.ts'
import type { OutboxRow, OutboxTask, TenantContext } from '#workers/task.ts'

/** How long a lease lasts, and how often one whose work still runs is renewed. */
export type Pace = { readonly leaseSeconds: number; readonly renewMs: number }

const together = 20
// short, because a killed worker's rows, and its places in a lane, wait until it ends; renewed while the work runs
const usual = { leaseSeconds: 15, renewMs: 5_000 }
// what runs longer than this hangs, and another worker may try
const longestRenewedMs = 30 * 60_000
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
  pace: Pace = usual,
): Promise<void> => {
  const place = await services.fleet.placeOf(projectId)
  if (!place) return
  const call: TenantContext['call'] = (name, args) =>
    services.database.call(place, 'app_worker', { caller: 'worker', projectId }, name, args)
  const context: TenantContext = { services, projectId, place, call }
  const until = performance.now() + longestMs

  let waitedFor: string | null = null
  for (;;) {
    await runDue(context, tasks, until, pace)
    const { due_at } = dataOf<{ due_at: string | null }>(await call('outbox_next', {}))
    if (!due_at) return
    // work that is due in a moment is waited for: the queue would start a drain for it at once, and find nothing
    const wait = Date.parse(due_at) - services.now().getTime()
    if (wait <= 0 || wait > nearMs || due_at === waitedFor || performance.now() > until) {
      services.waker.wake(projectId, due_at)
      return
    }
    waitedFor = due_at
    // a moment more: the row's time is cut to milliseconds, and a timer may ring one early
    await sleep(wait + 2)
  }
}

/** Leases as many rows as can be begun at once, until none is due or the time is over. */
const runDue = async (
  context: TenantContext,
  tasks: ReadonlyMap<string, OutboxTask>,
  until: number,
  pace: Pace,
): Promise<void> => {
  const running = new Map<OutboxRow, Promise<void>>()
  const stopRenewing = renew(context, running, pace)
  let sealing: Promise<void> | undefined
  try {
    while (performance.now() < until) {
      const lease = await context.call('outbox_lease', {
        batch: together - running.size,
        seconds: pace.leaseSeconds,
        lane_limit: laneLimit,
      })
      if (!sealing && isUnsealed(lease)) {
        sealing = sealTenant(context).finally(() => {
          sealing = undefined
        })
      }
      const rows = dataOf<OutboxRow[]>(lease)
      for (const row of rows) {
        running.set(
          row,
          runRow(context, tasks, row).finally(() => running.delete(row)),
        )
      }
      if (running.size === 0) break
      // what ends makes room, in its lane too
      if (rows.length === 0 || running.size >= together) await Promise.race(running.values())
    }
  } finally {
    await Promise.all([...running.values(), sealing])
    stopRenewing()
  }
}

/** Keeps the leases of what runs, until told to stop. */
const renew = (context: TenantContext, running: ReadonlyMap<OutboxRow, unknown>, pace: Pace): (() => void) => {
  const began = new WeakMap<OutboxRow, number>()
  const timer = setInterval(() => {
    const now = performance.now()
    const held = [...running.keys()].filter((row) => {
      if (!began.has(row)) began.set(row, now)
      return now - (began.get(row) ?? now) < longestRenewedMs
    })
    if (held.length === 0) return
    const leases = held.map(({ id, lease }) => ({ id, lease }))
    // a lease that cannot be renewed ends, and the work is done twice: tasks are safe to run twice
    context
      .call('outbox_renew', { held: leases, seconds: pace.leaseSeconds })
      .catch((error: Error) => context.services.log.warn({ error: error.message }, 'leases were not renewed'))
  }, pace.renewMs)
  return () => clearInterval(timer)
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
