import { dataOf } from '#server/database/database.ts'
import { outboxTask, timeOf } from '#workers/task.ts'

/** Creates the next occurrence of a recurring challenge. */
export const challengesRecur = outboxTask('challenges__recur', async ({ call }, { key }) => {
  const next = dataOf<string | null>(await call('challenge_recur', { challenge_id: key }))
  return timeOf(next)
})
