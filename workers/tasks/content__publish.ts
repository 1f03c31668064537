import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** At the time of a schedule: announces all publications that are due, a hundred entries in each run. What apps read does not wait for it. */
export const contentPublish = outboxTask(
  'content__publish',
  async ({ call }) => {
    const next = dataOf<string | null>(await call('content_settle', {}))
    return next === null ? null : new Date(next)
  },
  { urgency: 'prompt', atOnce: 1 },
)
