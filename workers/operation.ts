import { type Arguments, dataOf } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { Stopped } from '#server/stopping.ts'

type Operation = { project_id: string; input: Record<string, unknown>; done: number | null }

export type OperationContext = {
  readonly operationId: string
  readonly input: Record<string, unknown>
  /** How far an earlier worker came, who died over it. */
  readonly done: number
  /** An api function of the project's database, as app_worker: a step. Throws Stopped between two of them when the server stops. */
  readonly call: <T>(name: string, args: Arguments) => Promise<T>
  /** Says how far it has come; false when the operation runs no more. */
  readonly progress: (done: number, total: number) => Promise<boolean>
}

/** A step may wait for locks and read much, but not for ever. */
const timeoutMs = 120_000

/**
 * Runs an operation on a project's database: takes it, works, and ends it with a result. A throw leaves it running, and the job
 * is tried again, by another worker at once when the server stops; what a project that is gone asked for, fails.
 */
export const runOperation = async (
  services: Services,
  operationId: string,
  work: (context: OperationContext) => Promise<unknown>,
): Promise<void> => {
  const control = async <T>(name: string, args: Arguments) =>
    dataOf<T>(await services.database.call(services.control, 'control_worker', { caller: 'worker' }, name, args))
  const operation = await control<Operation | null>('operation_begin', { operation_id: operationId })
  if (!operation) return
  const projectId = operation.project_id
  const place = await services.fleet.placeOf(projectId)
  if (!place) {
    await control('operation_end', { operation_id: operationId, failed_reason: 'The project has no database.' })
    return
  }
  const context: OperationContext = {
    operationId,
    input: operation.input,
    done: operation.done ?? 0,
    call: async (name, args) => {
      if (services.stopping.asked.aborted) throw new Stopped()
      const claims = { caller: 'worker', projectId }
      const settings = { timeoutMs, background: true }
      const reply = await services.database.call(place, 'app_worker', claims, name, args, settings)
      if (reply.dueAt) services.waker.wake(projectId, reply.dueAt)
      return dataOf(reply)
    },
    progress: (done, total) => control('operation_progress', { operation_id: operationId, done, total }),
  }
  const result = await work(context)
  // what was ended from outside, meanwhile, is left as it is
  await control('operation_end', { operation_id: operationId, result })
}
