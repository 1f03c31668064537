import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** Writes down which app sessions of a user have ended by silence. Answers do not wait for it: they work the end out by themselves. */
export const appSessionsTimeout = outboxTask('app_sessions__timeout', async ({ call }, row) => {
  const { due_at } = dataOf<{ due_at: string | null }>(await call('app_sessions_timeout', { user_id: row.key }))
  return due_at ? new Date(due_at) : null
})
