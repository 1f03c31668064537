import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** Writes down the steps of flags' schedules that are due, and comes back for the next. */
export const flagsAdvance = outboxTask(
  'flags__advance',
  async ({ call }) => {
    const nextAt = dataOf<string | null>(await call('flags_advance', {}))
    return nextAt === null ? null : new Date(nextAt)
  },
  { atOnce: 1 },
)
