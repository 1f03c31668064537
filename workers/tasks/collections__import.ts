import { dataOf } from '#server/database/database.ts'
import { ApiError } from '#server/errors.ts'
import { Stopped } from '#server/stopping.ts'
import { job } from '#workers/task.ts'

type Operation = {
  project_id: string
  input: { collection: string; import_id: string; developer_id: string; actor: unknown }
}
type Part = { is_over: boolean; rows: number; inserted: number; failed: number; errors: unknown[] }

/** A part may be inserted row by row. */
const partMs = 120_000

/** Inserts what a request staged, part by part; each part goes in the transaction of its rows, so none is inserted twice. */
export const collectionsImport = job('collections__import', async (services, { operation_id }) => {
  const control = <T>(name: string, args: Record<string, unknown>) =>
    services.database
      .call(services.control, 'control_worker', { caller: 'worker' }, name, { operation_id, ...args })
      .then((reply) => dataOf<T>(reply))
  const operation = await control<Operation | null>('operation_begin', {})
  if (!operation) return
  const { project_id, input } = operation
  const place = await services.fleet.placeOf(project_id)
  if (!place) return
  const claims = {
    caller: 'developer',
    developerId: input.developer_id,
    projectId: project_id,
    actor: JSON.stringify(input.actor),
  }
  const tenant = async (name: string) => {
    services.waker.written(project_id)
    const args = { import_id: input.import_id }
    const reply = await services.database.call(place, 'app_admin', claims, name, args, {
      timeoutMs: partMs,
      background: true,
    })
    if (reply.dueAt) services.waker.wake(project_id, reply.dueAt)
    return reply
  }

  try {
    for (;;) {
      if (services.stopping.asked.aborted) throw new Stopped()
      const { is_over, rows, inserted, failed, errors } = dataOf<Part>(await tenant('collection_import_part'))
      if (is_over) {
        await control('operation_end', { result: { collection: input.collection, inserted, failed, errors } })
        break
      }
      // what was cancelled stays as far as it came
      if (!(await control<boolean>('operation_progress', { done: inserted + failed, total: rows }))) break
    }
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    await control('operation_end', { failed_reason: error.message })
  }
  await tenant('collection_import_drop')
})
