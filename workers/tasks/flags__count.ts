import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

const batch = 1000

/** Counts the evaluations that requests noted; the next request that notes one queues it again. */
export const flagsCount = outboxTask(
  'flags__count',
  async ({ step }) => {
    while (dataOf<number>(await step('flags_count', { batch })) > 0);
    return null
  },
  { urgency: 'background', atOnce: 1 },
)
