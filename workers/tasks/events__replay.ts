import { runOperation } from '#workers/operation.ts'
import { job } from '#workers/task.ts'

const batch = 200

/** Replays events target by target, a batch of users at a time. Each step records its progress in its own transaction. */
export const eventsReplay = job('events__replay', (services, { operation_id = '' }) =>
  runOperation(services, operation_id, async ({ operationId, input, call, progress, ...begun }) => {
    const total = begun.total ?? (await call<number>('events_replay_total', { input }))
    let before = 0
    for (const target of input['targets'] as string[]) {
      const args = { operation_id: operationId, target, input, batch }
      for (;;) {
        const { done, is_over } = await call<{ done: number; is_over: boolean }>('events_replay_step', args)
        if (!(await progress(before + done, Math.max(total, before + done)))) return null
        if (is_over) {
          before += done
          break
        }
      }
    }
    return call<object>('events_replay_result', { operation_id: operationId })
  }),
)
