import { type Arguments, dataOf } from '#server/database/database.ts'
import { ApiError } from '#server/errors.ts'
import type { Services } from '#server/services.ts'
import { Stopped } from '#server/stopping.ts'

type Operation = { project_id: string; input: Record<string, unknown>; done: number | null; total: number | null }

export type OperationContext = {
  readonly operationId: string
  readonly input: Record<string, unknown>
  /** How far an earlier worker came, who died over it, and of how much. */
  readonly done: number
  readonly total: number | null
  /** An api function of the project's database: a step. Throws Stopped between two of them when the server stops. */
  readonly call: <T>(name: string, args: Arguments) => Promise<T>
  /** Says how far it has come; false when the operation runs no more. */
  readonly progress: (done: number, total: number) => Promise<boolean>
}

type Work = (context: OperationContext) => Promise<unknown>

export type OperationOptions = {
  /** For an operation that works with the rights of the developer who asked for it: the claims of its steps, instead of the worker's. */
  readonly developer?: (input: Record<string, unknown>) => { readonly developerId: string; readonly actor: string }
  /** Runs when the operation has ended in whatever way, or was ended from outside. */
  readonly afterwards?: (context: OperationContext) => Promise<unknown>
}

/** Thrown by the work: the operation has failed, for this reason, and is not tried again. */
export class OperationFailed extends Error {}

/** A step may wait for locks and read much, but not for ever. */
const timeoutMs = 120_000

/**
 * Runs an operation on a project's database: takes it, works, and ends it with a result, or with the reason of an OperationFailed or
 * a refusal. Any other throw leaves it running, and the job is tried again, by another worker at once when the server stops; an operation of
 * a project without a database fails.
 */
export const runOperation = async (
  services: Services,
  operationId: string,
  work: Work,
  options: OperationOptions = {},
): Promise<void> => {
  const control = async <T>(name: string, args: Arguments) =>
    dataOf<T>(
      await services.database.call(services.control, 'control_worker', { caller: 'worker' }, name, {
        operation_id: operationId,
        ...args,
      }),
    )
  const operation = await control<Operation | null>('operation_begin', {})
  if (!operation) return
  const ask = await callsOf(services, operation, options)
  if (!ask) return void (await control('operation_end', { failed_reason: 'The project has no database.' }))
  const context: OperationContext = {
    operationId,
    input: operation.input,
    done: operation.done ?? 0,
    total: operation.total,
    call: async (name, args) => {
      if (services.stopping.asked.aborted) throw new Stopped()
      return ask(name, args)
    },
    progress: (done, total) => control('operation_progress', { done, total }),
  }
  // what was ended from outside, meanwhile, is left as it is
  await control('operation_end', await endOf(work, context))
  // nobody comes back to an operation that has ended: a stop does not hold this up
  await options.afterwards?.({ ...context, call: ask })
}

/** What the work came to: its result, or why it failed. */
const endOf = async (work: Work, context: OperationContext): Promise<Arguments> => {
  try {
    return { result: await work(context) }
  } catch (error) {
    const hasFailed = error instanceof OperationFailed || (error instanceof ApiError && error.status < 500)
    if (!hasFailed) throw error
    return { failed_reason: error.message }
  }
}

/** Calls the project's database as a worker, or as the developer who asked; null when the project has none. */
const callsOf = async (
  services: Services,
  { project_id: projectId, input }: Operation,
  { developer }: OperationOptions,
): Promise<OperationContext['call'] | null> => {
  const place = await services.fleet.placeOf(projectId)
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
