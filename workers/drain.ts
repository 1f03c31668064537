import { dataOf, type Reply } from '#server/database/database.ts'
import { ApiError } from '#server/errors.ts'
import type { Services } from '#server/services.ts'
import { orStopped, Stopped, sleepUntil } from '#server/stopping.ts'
import { activeSpan, errorType, within } from '#server/telemetry/spans.ts'
import { isUnsealed, sealTenant } from '#workers/seal.ts'
import {
  type Finish,
  finished,
  jobAttributes,
  type OutboxRow,
  type OutboxTask,
  type TenantContext,
  type Urgency,
  urgencies,
} from '#workers/task.ts'
import { createWakeSignal, type WakeSignal } from '#workers/wake_signal.ts'

/**
 * How long a lease lasts, how often the lease of a running task is renewed, for how long a drain starts new tasks (its turn), for how long after
 * its turn it keeps the slot of a worker, and for how long while none of its tasks begins or ends.
 */
export type DrainTiming = {
  readonly leaseSeconds: number
  readonly renewMs: number
  readonly turnMs: number
  readonly overstayMs: number
  readonly quietMs: number
}

// a lease is short, because the rows of a killed worker, and its places in a lane, are blocked until the lease expires; a turn is
// short, because other tenants wait for the worker's slot
const usual: DrainTiming = { leaseSeconds: 15, renewMs: 5_000, turnMs: 10_000, overstayMs: 2_000, quietMs: 1_000 }
/** How many rows of each urgency a drain runs at once, so that a backlog of one urgency does not occupy the places of another. */
const places: Readonly<Record<Urgency, number>> = { prompt: 10, usual: 20, background: 3 }
// a task that runs longer is considered hung: its lease is no longer renewed, so that another worker may take the row
const longestRenewedMs = 30 * 60_000
const laneLimit = 10
const giveUpAfter = 20
const nearMs = 1_000
/** How often a drain with a slot is looked at. */
const lookMs = 250
/** The delay before another drain when the due rows are locked by a transaction. */
const lockedMs = 2_000

type Run = {
  readonly urgency: Urgency
  /** Whether it started after the end of the drain's turn. */
  readonly isLate: boolean
  readonly ended: Promise<void>
}
type Running = Map<OutboxRow, Run>
/** What a drain runs now, and when a task began or ended last, for whoever decides about its slot. */
type Watched = { running: Running; movedAt: number }
type Drain = {
  readonly context: TenantContext
  readonly tasks: ReadonlyMap<string, OutboxTask>
  readonly timing: DrainTiming
  readonly signal: WakeSignal
  readonly watched: Watched
  /** The tasks' declared urgency and concurrency, as outbox_lease takes them; null while the tenant has the functions of an older version. */
  rules: string | null
  /** When the next row is due, as returned when the last running row was finished; undefined when it must be queried. */
  next: string | null | undefined
}

const draining = new WeakMap<Services, Map<string, { readonly signal: WakeSignal; readonly ended: Promise<void> }>>()
/** How many drains may wait without a slot, for tasks that are waiting themselves. */
const mostDetached = 200

/**
 * Drains a tenant. If a drain of it already runs in this process, that drain is signalled to lease again instead, so that a tenant that is
 * woken continuously occupies one slot of the worker and not all of them. A drain whose tasks all wait for external services (a receiver that
 * is silent, a mail server that says nothing for minutes), or whose turn is over, goes on without its slot: other tenants' work does not wait
 * for it, however many projects wait so.
 */
export const drainAlone = async (
  services: Services,
  tasks: ReadonlyMap<string, OutboxTask>,
  projectId: string,
  given: Partial<DrainTiming> = {},
): Promise<void> => {
  const { turnMs, overstayMs, quietMs } = { ...usual, ...given }
  const drains = draining.get(services) ?? new Map()
  draining.set(services, drains)
  const other = drains.get(projectId)
  if (other) return other.signal.notify()
  const signal = createWakeSignal()
  const watched: Watched = { running: new Map(), movedAt: performance.now() }
  const ended = drainTenant(services, tasks, projectId, given, signal, watched).finally(() => {
    drains.delete(projectId)
    // a signal came after the drain's last lease
    if (signal.wasSignalled) services.waker.wake(projectId, services.now().toISOString())
  })
  drains.set(projectId, { signal, ended })
  const done = new AbortController()
  const finish = ended.finally(() => done.abort())
  finish.catch(() => undefined)
  const keepsUntil = performance.now() + turnMs + overstayMs
  const isQuiet = () => watched.running.size > 0 && performance.now() - watched.movedAt >= quietMs
  // what takes the time of a processor or of the database keeps its slot: slots bound it
  const isWorking = () => [...watched.running.values()].some(({ urgency }) => urgency === 'background')
  const keepsSlot = () => isWorking() || drains.size > mostDetached || !(isQuiet() || performance.now() >= keepsUntil)
  while (!done.signal.aborted && keepsSlot()) await sleepUntil(Math.min(lookMs, turnMs), done.signal)
  if (done.signal.aborted) return ended
  ended.catch((error: Error) =>
    services.log.warn({ project: projectId, error: error.message }, 'a drain ended with an error after its turn'),
  )
}

/** Waits for the drains that go on without a slot. */
export const drainsEnded = async (services: Services): Promise<void> => {
  await Promise.allSettled([...(draining.get(services)?.values() ?? [])].map(({ ended }) => ended))
}

/**
 * Runs the due rows of one tenant's outbox and schedules the next drain. Rows are leased, run without holding a connection or a lock,
 * and finished one by one; a row whose worker dies is due again when its lease expires. When the server stops, the lease of a row is
 * released as soon as its task has finished its current step.
 */
export const drainTenant = async (
  services: Services,
  tasks: ReadonlyMap<string, OutboxTask>,
  projectId: string,
  given: Partial<DrainTiming> = {},
  signal: WakeSignal = createWakeSignal(),
  watched: Watched = { running: new Map(), movedAt: performance.now() },
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
  const drain: Drain = { context, tasks, timing, signal, watched, rules: rulesOf(tasks), next: undefined }
  const until = performance.now() + timing.turnMs

  let waitedFor: string | null = null
  for (;;) {
    drain.next = undefined
    const isIdle = await runDue(drain, until)
    const due_at = await nextDue(drain)
    if (!due_at) return
    // the drain waits for a row that is due within a second: the queue would start another drain at once, which would find nothing due
    const wait = Date.parse(due_at) - services.now().getTime()
    const isNear = wait > 0 && wait <= nearMs && due_at !== waitedFor
    if (!isNear || performance.now() > until || asked.aborted) {
      // a row that is due but could not be leased is locked by a transaction, whose commit wakes the drain: starting one at once would find
      // the row still locked
      const isLocked = isIdle && wait <= 0
      services.waker.wake(projectId, isLocked ? new Date(Date.now() + lockedMs).toISOString() : due_at)
      return
    }
    waitedFor = due_at
    // 2 ms longer: due_at is truncated to milliseconds, and a timer may fire one millisecond early
    if (!signal.wasSignalled) await Promise.race([sleepUntil(wait + 2, asked), signal.listen()])
  }
}

/** The rules of the tasks as JSON for outbox_lease: rank 0 goes first; a task that declares neither urgency nor concurrency has no rule. */
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
 * How many rows of each rank may start now. After the end of its turn a drain starts only `prompt` tasks. It also starts `usual` tasks
 * while a long task keeps the drain alive, because no other drain of this process serves the tenant until then.
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

/** Leases as many rows as may start at once, until no row is due (true), or the turn is over or the server stops (false). */
const runDue = async (drain: Drain, until: number): Promise<boolean> => {
  const { context, timing, signal } = drain
  const { asked } = context.services.stopping
  const running: Running = new Map()
  drain.watched.running = running
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
      // one lease takes every row that may start: the next lease waits for the end of a task, a signal or the timer
      for (const row of rows) begin(drain, running, row, isTurnOver)
      if (running.size === 0 && !sealing) {
        // a task that ended during the call of outbox_lease has freed its place for another row
        if (wasRunning) continue
        return true
      }
      // the end of a task frees a place, in its lane too; a new row may be more urgent and does not wait for the sealer
      const changes = [...ends(running), signalled, ...(sealing ? [sealing] : [])]
      // there is no signal for rows that become due again, nor for rows that tasks queue: hence the timer
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

/** Whether no row was due when the last row was finished, and no signal has come since. */
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
    // the function of a tenant that is not migrated yet takes only the first three arguments: its tasks run without rules
    const leased = leasedOf(await context.call('outbox_lease', args))
    drain.rules = null
    return leased
  }
}

const leasedOf = (reply: Reply): Leased => ({ rows: dataOf<OutboxRow[]>(reply), isUnsealed: isUnsealed(reply) })

/** A function that the tenant lacks causes a 500, or TENANT_MIGRATION_PENDING where a request has already found that the tenant is behind. */
const isMissing = (error: unknown) =>
  error instanceof ApiError && (error.status === 500 || error.code === 'TENANT_MIGRATION_PENDING')

const begin = (drain: Drain, running: Running, row: OutboxRow, isLate: boolean): void => {
  const { context, tasks } = drain
  drain.next = undefined
  drain.watched.movedAt = performance.now()
  const ended = runRow(context, tasks, row, finishOf(drain, running, row)).finally(() => {
    drain.watched.movedAt = performance.now()
    running.delete(row)
  })
  running.set(row, { urgency: urgencyOf(tasks, row), isLate, ended })
}

/** Finishes a row by a function of its task; for the last running row the reply says when the next row is due. */
const finishOf =
  (drain: Drain, running: Running, row: OutboxRow): Finish =>
  async (name, args) => {
    const { signal, context, rules } = drain
    const isLast = running.size === 1
    // the call sees the rows of every signal before it; a signal from here on makes the drain lease again, also while the call waits for a lock
    if (isLast) signal.forget()
    const reply = await context.call(name, { ...args, row_id: row.id, lease: row.lease, rules, is_last: isLast })
    if (isLast && running.size === 1) drain.next = dataOf<{ due_at: string | null }>(reply).due_at
    return finished
  }

/** Waits for the running tasks; at the end of a stop it no longer waits and releases their leases. */
const releaseLeases = async (context: TenantContext, running: Running): Promise<void> => {
  await orStopped(Promise.all(ends(running)), context.services.stopping.over).catch(async (error) => {
    if (!(error instanceof Stopped)) throw error
    await release(context, [...running.keys()])
  })
}

/** Makes rows due again at once without counting the attempt. When the release fails, the leases expire. */
const release = async ({ call, services, projectId }: TenantContext, rows: readonly OutboxRow[]): Promise<void> => {
  const held = rows.map((row) => ({ id: row.id, lease: row.lease }))
  await call('outbox_release', { held: JSON.stringify(held) }).catch((error: Error) =>
    services.log.warn({ project: projectId, error: error.message }, 'leases were not released'),
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
    // a lease that cannot be renewed expires, and the task runs twice: tasks are idempotent
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
  const began = performance.now()
  const { measures, traces } = services.telemetry
  const measured = (outcome: 'done' | 'failed' | 'stopped') =>
    measures.outboxTask(row.task, outcome, performance.now() - began)
  const span = traces.job(row.task, jobAttributes('outbox', row.task, projectId, row.attempts), [activeSpan()])
  try {
    const task = tasks.get(row.task)
    if (!task) throw new Error(`there is no task ${row.task} in this version`)
    const due = await within(span, () => task.run(context, row, finish))
    measured('done')
    span.end()
    if (due === finished) return
    await close(due ? { due_at: due.toISOString() } : {})
  } catch (error) {
    measured(services.stopping.asked.aborted ? 'stopped' : 'failed')
    span.end(services.stopping.asked.aborted ? undefined : errorType(error))
    // a task that the stop of the server interrupts has not failed
    if (services.stopping.asked.aborted) return release(context, [row])
    const message = (error as Error).message.slice(0, 1000)
    services.log.warn(
      { project: projectId, task: row.task, row: row.id, attempts: row.attempts, error: message },
      'a task failed',
    )
    const seconds = Math.min(6 * 3600, 2 ** row.attempts * (0.9 + 0.2 * Math.random()))
    const again = new Date(services.now().getTime() + seconds * 1000).toISOString()
    // when this call fails, the lease expires
    await close(
      row.attempts >= giveUpAfter ? { error: message, gave_up: true } : { error: message, due_at: again },
    ).catch(() => undefined)
  }
}
