import type { Place } from '#server/database/cluster.ts'
import { dataOf } from '#server/database/database.ts'
import type { Arguments } from '#server/database/statements.ts'
import { ApiError } from '#server/errors.ts'
import { unserved } from '#server/http/client_credentials.ts'
import type { Services } from '#server/services.ts'
import { Stopped } from '#server/stopping.ts'
import type { Again } from '#workers/task.ts'

type Operation = { project_id: string; input: Record<string, unknown>; done: number | null; total: number | null }

export type OperationContext = {
  readonly operationId: string
  readonly input: Record<string, unknown>
  /** The progress that an earlier worker, which died, has recorded, and its total. */
  readonly done: number
  readonly total: number | null
  /** Calls an api function of the project's database: a step. Throws instead of starting a step when the server stops, or the turn is over. */
  readonly call: <T>(name: string, args: Arguments) => Promise<T>
  /** Records the progress; false when the operation is no longer running. After this a turn may be over. */
  readonly progress: (done: number, total: number) => Promise<boolean>
}

type Work = (context: OperationContext) => Promise<unknown>

export type OperationOptions = {
  /** For an operation that runs with the rights of the developer who requested it: the claims of its steps, instead of the worker's. */
  readonly developer?: (input: Record<string, unknown>) => { readonly developerId: string; readonly actor: string }
  /** Runs when the operation has ended in any way, also when it was cancelled from outside. */
  readonly afterwards?: (context: OperationContext) => Promise<unknown>
  /** The length of a turn; 10 seconds by default. */
  readonly turnMs?: number
}

/** Returned by the work: the operation goes on later, when another job takes it; the work has recorded where it stands. */
export const waits = Symbol('waits')

/** Thrown by the work: the operation has failed for this reason and is not retried. */
export class OperationFailed extends Error {}

/** Thrown between two steps by an operation whose turn is over: it goes on after the jobs that wait. */
class TurnOver extends Error {}

/** Slots for what may take long are few: an operation of hours leaves its slot to others after so long. */
const usualTurnMs = 10_000

/** The limit for a step, which may wait for locks and read many rows. */
const timeoutMs = 120_000

/**
 * Runs an operation on a project's database: begins it, runs the work, and ends it with a result, or with the reason of an OperationFailed
 * or a refusal (status below 500). Any other error leaves the operation running, and the job is retried; when the server stops, another
 * worker continues it at once. An operation of a project without a database fails. One that is not over after its turn is queued again, without
 * the priority of its beginning.
 */
export const runOperation = async (
  services: Services,
  operationId: string,
  work: Work,
  options: OperationOptions = {},
): Promise<Again | null> => {
  const control = async <T>(name: string, args: Arguments) =>
    dataOf<T>(
      await services.database.call(services.control, 'control_worker', { caller: 'worker' }, name, {
        operation_id: operationId,
        ...args,
      }),
    )
  const operation = await control<Operation | null>('operation_begin', {})
  if (!operation) return null
  const ask = await callsOf(services, operation, options)
  if (!ask) {
    await control('operation_end', { failed_reason: 'The project has no database.' })
    return null
  }
  const turnEndsAt = performance.now() + (options.turnMs ?? usualTurnMs)
  let isTurnOver = false
  const context: OperationContext = {
    operationId,
    input: operation.input,
    done: operation.done ?? 0,
    total: operation.total,
    call: async (name, args) => {
      if (services.stopping.asked.aborted) throw new Stopped()
      if (isTurnOver) throw new TurnOver()
      return ask(name, args)
    },
    progress: async (done, total) => {
      const isRunning = await control<boolean>('operation_progress', { done, total })
      // only here, so that each turn gets on by a step at least
      isTurnOver = performance.now() > turnEndsAt
      return isRunning
    },
  }
  const end = await endOf(work, context)
  if (end === null) return { again: { operation_id: operationId }, priority: 0 }
  if (end.result === waits) return null
  // has no effect on an operation that was ended from outside during the work
  await control('operation_end', end)
  // no job continues an operation that has ended, so this runs even when the server stops
  await options.afterwards?.({ ...context, call: ask })
  return null
}

/** The outcome of the work: its result, or the reason of its failure; null when its turn ended first. */
const endOf = async (
  work: Work,
  context: OperationContext,
): Promise<{ result?: unknown; failed_reason?: string } | null> => {
  try {
    return { result: await work(context) }
  } catch (error) {
    if (error instanceof TurnOver) return null
    const hasFailed = error instanceof OperationFailed || (error instanceof ApiError && error.status < 500)
    if (!hasFailed) throw error
    return { failed_reason: error.message }
  }
}

/** The project's database, null where it has none. Throws while the project is held, so that the job is tried again later. */
export const servedPlace = async (services: Services, projectId: string): Promise<Place | null> => {
  const project = await services.projectCache.byProject(projectId)
  if (project?.hold) throw unserved(project)
  return project?.place ?? null
}

/** Calls the project's database as a worker, or as the developer who requested the operation; null when the project has none. */
const callsOf = async (
  services: Services,
  { project_id: projectId, input }: Operation,
  { developer }: OperationOptions,
): Promise<OperationContext['call'] | null> => {
  const place = await servedPlace(services, projectId)
  if (!place) return null
  const role = developer ? 'app_admin' : 'app_worker'
  const claims = { caller: developer ? 'developer' : 'worker', projectId, ...developer?.(input) }
  return async (name, args) => {
    if (developer) services.waker.written(projectId)
    const reply = await services.database.call(place, role, claims, name, args, { timeoutMs, background: true })
    if (reply.dueAt) services.waker.wake(projectId, reply.dueAt)
    return dataOf(reply)
  }
}
