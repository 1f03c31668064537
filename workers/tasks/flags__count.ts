import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

const batch = 1000

/** Aggregates the evaluations that requests recorded; the next request that records one queues this task again. */
export const flagsCount = outboxTask(
  'flags__count',
  async ({ step }) => {
    while (dataOf<number>(await step('flags_count', { batch })) > 0);
    return null
  },
  { urgency: 'background', atOnce: 1 },
)
