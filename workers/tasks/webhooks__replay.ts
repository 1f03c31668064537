import { type OperationContext, OperationFailed, runOperation } from '#workers/operation.ts'
import { job } from '#workers/task.ts'

const batchSize = 500

/** Queues up to `batch` deliveries of the range again and returns how many remain. */
const queueBatch = async ({ input, call }: OperationContext, batch: number): Promise<number> => {
  const queued = await call<{ remaining: number } | null>('webhook_replay_batch', { ...input, batch })
  if (!queued) throw new OperationFailed('The subscription was deleted.')
  return queued.remaining
}

/** Queues the deliveries of a range again. When the worker dies, another one continues with the remaining deliveries. */
export const webhooksReplay = job('webhooks__replay', (services, { operation_id = '' }) =>
  runOperation(services, operation_id, async (context) => {
    let remaining = await queueBatch(context, 0)
    const total = context.total ?? remaining
    for (;;) {
      if (!(await context.progress(total - remaining, total))) return null
      if (remaining === 0) return { replayed: total }
      remaining = await queueBatch(context, batchSize)
    }
  }),
)
