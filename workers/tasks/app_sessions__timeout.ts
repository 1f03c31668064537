import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** Stores the end of a user's app sessions that timed out. Responses do not depend on it: they compute the end themselves. */
export const appSessionsTimeout = outboxTask('app_sessions__timeout', async ({ call }, row) => {
  const { due_at } = dataOf<{ due_at: string | null }>(await call('app_sessions_timeout', { user_id: row.key }))
  return due_at ? new Date(due_at) : null
})
