import { runOperation } from '#workers/operation.ts'
import { job } from '#workers/task.ts'

const batch = 5000

/** Deletes events in steps. A worker that takes the operation over continues it: deleted events are not found again. */
export const eventsDelete = job('events__delete', (services, { operation_id = '' }) =>
  runOperation(services, operation_id, async ({ input, call, progress, ...begun }) => {
    const total = begun.total ?? begun.done + (await call<number>('events_count', input))
    let done = begun.done
    for (;;) {
      const deleted = await call<number>('events_delete_step', { ...input, batch })
      done += deleted
      if (!(await progress(done, Math.max(done, total))) || deleted < batch) return { deleted: done }
    }
  }),
)
