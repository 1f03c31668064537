import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

const batch = 1000
const everyMs = 5 * 60_000
/** The limit for a step: evaluating all users of a large project takes longer than the limit for a request. */
const timeoutMs = 60_000

/** Evaluates a project's dynamic segments for all users, one segment after the other, and is due again in five minutes while there are any. */
export const segmentsRefresh = outboxTask(
  'segments__refresh',
  async ({ services, step }) => {
    const ids = dataOf<string[]>(await step('segments_due', {}))
    for (const segment_id of ids) {
      while (dataOf<number>(await step('segments_refresh', { segment_id, batch }, { timeoutMs })) >= batch);
    }
    return ids.length === 0 ? null : new Date(services.now().getTime() + everyMs)
  },
  { urgency: 'background', atOnce: 1 },
)
