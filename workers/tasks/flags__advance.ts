import { dataOf } from '#server/database/database.ts'
import { outboxTask, timeOf } from '#workers/task.ts'

/** Applies the due steps of flags' schedules, and is due again at the next step. */
export const flagsAdvance = outboxTask(
  'flags__advance',
  async ({ call }) => {
    const nextAt = dataOf<string | null>(await call('flags_advance', {}))
    return timeOf(nextAt)
  },
  { atOnce: 1 },
)
