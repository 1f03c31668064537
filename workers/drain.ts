import { dataOf, type Reply } from '#server/database/database.ts'
import { ApiError } from '#server/errors.ts'
import type { Services } from '#server/services.ts'
import { orStopped, Stopped, sleepUntil } from '#server/stopping.ts'
import { isUnsealed, sealTenant } from '#workers/seal.ts'
import {
  type Finish,
  finished,
  type OutboxRow,
  type OutboxTask,
  type TenantContext,
  type Urgency,
  urgencies,
} from '#workers/task.ts'
import { createWakeSignal, type WakeSignal } from '#workers/wake_signal.ts'

/** How long a lease lasts, how often one whose work still runs is renewed, and how long a drain begins new work. */
export type DrainTiming = { readonly leaseSeconds: number; readonly renewMs: number; readonly turnMs: number }

// a lease is short, because a killed worker's rows, and its places in a lane, wait until it ends; a turn is, because other
// tenants wait for the worker's slot
const usual: DrainTiming = { leaseSeconds: 15, renewMs: 5_000, turnMs: 10_000 }
/** How many rows of each urgency a drain runs at once: a backlog of one kind leaves the others' places free. */
const places: Readonly<Record<Urgency, number>> = { prompt: 10, usual: 20, background: 3 }
// what runs longer than this hangs, and another worker may try
const longestRenewedMs = 30 * 60_000
const laneLimit = 10
const giveUpAfter = 20
const nearMs = 1_000
/** When to look again at what a transaction has locked. */
const lockedMs = 2_000

type Run = {
  readonly urgency: Urgency
  /** Whether it began after the drain's turn. */
  readonly isLate: boolean
  readonly ended: Promise<void>
}
type Running = Map<OutboxRow, Run>
type Drain = {
  readonly context: TenantContext
  readonly tasks: ReadonlyMap<string, OutboxTask>
  readonly timing: DrainTiming
  readonly signal: WakeSignal
  /** What the tasks declare, as outbox_lease takes it; null while the tenant's functions are those of an older version. */
  rules: string | null
  /** When the next row is due, as the last running row has seen it when it was settled; undefined when that must be asked. */
  next: string | null | undefined
}

const draining = new WeakMap<Services, Map<string, WakeSignal>>()

/**
 * Drains a tenant, unless this process does already: then that drain looks again. So one tenant that is woken all the time holds one
 * slot of a worker, and not all.
 */
export const drainAlone = async (
  services: Services,
  tasks: ReadonlyMap<string, OutboxTask>,
  projectId: string,
): Promise<void> => {
  const signals = draining.get(services) ?? new Map<string, WakeSignal>()
  draining.set(services, signals)
  const other = signals.get(projectId)
  if (other) return other.notify()
  const signal = createWakeSignal()
  signals.set(projectId, signal)
  try {
    await drainTenant(services, tasks, projectId, {}, signal)
  } finally {
    signals.delete(projectId)
    // it rang after the last look
    if (signal.wasSignalled) services.waker.wake(projectId, services.now().toISOString())
  }
}

/**
 * Runs what is due in one tenant's outbox and sets the timer for the rest. Rows are leased, run without a connection or a lock
 * held, and finished one by one; a row whose worker dies comes due again when its lease ends. When the server stops, rows are
 * handed back as soon as their tasks come to the end of a step.
 */
export const drainTenant = async (
  services: Services,
  tasks: ReadonlyMap<string, OutboxTask>,
  projectId: string,
  given: Partial<DrainTiming> = {},
  signal: WakeSignal = createWakeSignal(),
): Promise<void> => {
  const timing = { ...usual, ...given }
  const place = await services.fleet.placeOf(projectId)
  if (!place) return
  const { asked } = services.stopping
  const claims = { caller: 'worker', projectId }
  const call: TenantContext['call'] = (name, args, settings) =>
    services.database.call(place, 'app_worker', claims, name, args, settings)
  const step: TenantContext['step'] = async (name, args, settings) => {
    if (asked.aborted) throw new Stopped()
    return services.database.call(place, 'app_worker', claims, name, args, { ...settings, background: true })
  }
  const context: TenantContext = { services, projectId, place, call, step }
  const drain: Drain = { context, tasks, timing, signal, rules: rulesOf(tasks), next: undefined }
  const until = performance.now() + timing.turnMs

  let waitedFor: string | null = null
  for (;;) {
    drain.next = undefined
    const isIdle = await runDue(drain, until)
    const due_at = await nextDue(drain)
    if (!due_at) return
    // work that is due in a moment is waited for: the queue would start a drain for it at once, and find nothing
    const wait = Date.parse(due_at) - services.now().getTime()
    const isNear = wait > 0 && wait <= nearMs && due_at !== waitedFor
    if (!isNear || performance.now() > until || asked.aborted) {
      // what is due and could not be leased is locked by a transaction, whose commit wakes again: another drain at once would find the same
      const isLocked = isIdle && wait <= 0
      services.waker.wake(projectId, isLocked ? new Date(Date.now() + lockedMs).toISOString() : due_at)
      return
    }
    waitedFor = due_at
    // a moment more: the row's time is cut to milliseconds, and a timer may ring one early
    if (!signal.wasSignalled) await Promise.race([sleepUntil(wait + 2, asked), signal.listen()])
  }
}

/** What an operator of the database sees as the declared order: rank 0 goes first; what says nothing needs no rule. */
export const rulesOf = (tasks: ReadonlyMap<string, OutboxTask>): string =>
  JSON.stringify(
    [...tasks.values()]
      .filter(({ share }) => share.urgency !== undefined || share.atOnce !== undefined)
      .map(({ name, share }) => ({
        task: name,
        rank: urgencies.indexOf(share.urgency ?? 'usual'),
        at_once: share.atOnce ?? null,
      })),
  )

const urgencyOf = (tasks: ReadonlyMap<string, OutboxTask>, { task }: OutboxRow): Urgency =>
  tasks.get(task)?.share.urgency ?? 'usual'

/**
 * How many rows of each rank may begin now. At the end of its turn a drain begins only what a person waits for; and what follows from
 * requests while something that lasts keeps the drain, for no other drain of this process takes the tenant meanwhile.
 */
const freePlaces = (running: Running, isTurnOver: boolean): number[] => {
  const runs = [...running.values()]
  const isKept = runs.some(({ isLate }) => !isLate)
  return urgencies.map((urgency) => {
    if (isTurnOver && (urgency === 'background' || (urgency === 'usual' && !isKept))) return 0
    const taken = runs.filter((each) => each.urgency === urgency).length
    return Math.max(0, places[urgency] - taken)
  })
}

/** Leases as many rows as can be begun at once, until none is due (true), the turn is over or the server stops. */
const runDue = async (drain: Drain, until: number): Promise<boolean> => {
  const { context, timing, signal } = drain
  const { asked } = context.services.stopping
  const running: Running = new Map()
  const stopRenewing = renew(context, running, timing)
  let sealing: Promise<void> | undefined
  let canSeal = true
  const seal = async () => {
    canSeal = await sealTenant(context, () => performance.now() < until || running.size > 0)
  }
  try {
    while (!asked.aborted) {
      const isTurnOver = performance.now() > until
      if (isTurnOver && running.size === 0) break
      if (running.size === 0 && !sealing && isNothingDue(drain)) return true
      const signalled = signal.listen()
      const wasRunning = running.size > 0
      const leased = await lease(drain, freePlaces(running, isTurnOver))
      if (!sealing && canSeal && leased.isUnsealed) {
        sealing = seal().finally(() => {
          sealing = undefined
        })
      }
      const { rows } = leased
      // one lease takes all that can be begun: the next waits for an end, a ring or the clock
      for (const row of rows) begin(drain, running, row, isTurnOver)
      if (running.size === 0 && !sealing) {
        // what ended while the lease was asked for has left its place to another row
        if (wasRunning) continue
        return true
      }
      // what ends makes room, in its lane too; what is new may be more urgent, and does not wait for the sealer
      const changes = [...ends(running), signalled, ...(sealing ? [sealing] : [])]
      // nothing rings for what comes due again meanwhile, nor for what tasks queue
      const timer = setTimeout(() => signal.notify(), nearMs)
      await orStopped(Promise.race(changes), asked).catch(() => undefined)
      clearTimeout(timer)
    }
    return false
  } finally {
    await sealing
    await releaseLeases(context, running)
    stopRenewing()
  }
}

/** Whether the last row saw nothing due when it was settled, and nothing has rung since. */
const isNothingDue = ({ next, signal, context }: Drain): boolean =>
  next !== undefined && !signal.wasSignalled && (next === null || Date.parse(next) > context.services.now().getTime())

const nextDue = async ({ next, rules, context }: Drain): Promise<string | null> => {
  if (next !== undefined) return next
  const args = rules === null ? {} : { rules }
  return dataOf<{ due_at: string | null }>(await context.call('outbox_next', args)).due_at
}

const ends = (running: Running) => [...running.values()].map(({ ended }) => ended)

type Leased = { readonly rows: readonly OutboxRow[]; readonly isUnsealed: boolean }

const lease = async (drain: Drain, free: readonly number[]): Promise<Leased> => {
  const { context, timing, rules } = drain
  drain.next = undefined
  const batch = free.reduce((sum, each) => sum + each, 0)
  if (batch === 0) return { rows: [], isUnsealed: false }
  const args = { batch, seconds: timing.leaseSeconds, lane_limit: laneLimit }
  if (rules === null) return leasedOf(await context.call('outbox_lease', args))
  try {
    return leasedOf(await context.call('outbox_lease', { ...args, rules, places: `{${free.join(',')}}` }))
  } catch (error) {
    if (!isMissing(error)) throw error
    // a tenant that waits for its migration knows the first three arguments, and its work goes on as before
    const leased = leasedOf(await context.call('outbox_lease', args))
    drain.rules = null
    return leased
  }
}

const leasedOf = (reply: Reply): Leased => ({ rows: dataOf<OutboxRow[]>(reply), isUnsealed: isUnsealed(reply) })

/** A function that the tenant does not have is a defect, unless a request has shown already that the tenant is behind. */
const isMissing = (error: unknown) =>
  error instanceof ApiError && (error.status === 500 || error.code === 'TENANT_MIGRATION_PENDING')

const begin = (drain: Drain, running: Running, row: OutboxRow, isLate: boolean): void => {
  const { context, tasks } = drain
  drain.next = undefined
  const ended = runRow(context, tasks, row, finishOf(drain, running, row)).finally(() => running.delete(row))
  running.set(row, { urgency: urgencyOf(tasks, row), isLate, ended })
}

/** Settles a row by a function of its task; the last one that runs learns when the next is due. */
const finishOf =
  (drain: Drain, running: Running, row: OutboxRow): Finish =>
  async (name, args) => {
    const { signal, context, rules } = drain
    const isLast = running.size === 1
    // what was signalled before is visible to the call; a signal from here on makes the drain look again, also while the call waits for a lock
    if (isLast) signal.forget()
    const reply = await context.call(name, { ...args, row_id: row.id, lease: row.lease, rules, is_last: isLast })
    if (isLast && running.size === 1) drain.next = dataOf<{ due_at: string | null }>(reply).due_at
    return finished
  }

/** Waits for what runs; at the end of a stop no longer, and its leases go back as they are. */
const releaseLeases = async (context: TenantContext, running: Running): Promise<void> => {
  await orStopped(Promise.all(ends(running)), context.services.stopping.over).catch(async (error) => {
    if (!(error instanceof Stopped)) throw error
    await release(context, [...running.keys()])
  })
}

/** Makes rows due again at once, with the attempt that they had. A release that fails leaves leases, which end by themselves. */
const release = async ({ call, services, projectId }: TenantContext, rows: readonly OutboxRow[]): Promise<void> => {
  const held = rows.map((row) => ({ id: row.id, lease: row.lease }))
  await call('outbox_release', { held: JSON.stringify(held) }).catch((error: Error) =>
    services.log.warn({ project: projectId, error: error.message }, 'leases were not handed back'),
  )
}

/** Renews the leases of running tasks, until it is stopped. */
const renew = (context: TenantContext, running: Running, timing: DrainTiming): (() => void) => {
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
      .call('outbox_renew', { held: leases, seconds: timing.leaseSeconds })
      .catch((error: Error) => context.services.log.warn({ error: error.message }, 'leases were not renewed'))
  }, timing.renewMs)
  return () => clearInterval(timer)
}

const runRow = async (
  context: TenantContext,
  tasks: ReadonlyMap<string, OutboxTask>,
  row: OutboxRow,
  finish: Finish,
): Promise<void> => {
  const { services, projectId } = context
  const close = (outcome: { due_at?: string; error?: string; gave_up?: boolean }) =>
    context.call('outbox_finish', { id: row.id, lease: row.lease, ...outcome })
  try {
    const task = tasks.get(row.task)
    if (!task) throw new Error(`there is no task ${row.task} in this version`)
    const due = await task.run(context, row, finish)
    if (due === finished) return
    await close(due ? { due_at: due.toISOString() } : {})
  } catch (error) {
    // whatever a stop interrupts did not fail
    if (services.stopping.asked.aborted) return release(context, [row])
    const message = (error as Error).message.slice(0, 1000)
    services.log.warn(
      { project: projectId, task: row.task, row: row.id, attempts: row.attempts, error: message },
      'a task failed',
    )
    const seconds = Math.min(6 * 3600, 2 ** row.attempts * (0.9 + 0.2 * Math.random()))
    const again = new Date(services.now().getTime() + seconds * 1000).toISOString()
    // a call that fails leaves the lease, which ends by itself
    await close(
      row.attempts >= giveUpAfter ? { error: message, gave_up: true } : { error: message, due_at: again },
    ).catch(() => undefined)
  }
}
