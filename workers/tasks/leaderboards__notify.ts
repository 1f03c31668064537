import { outboxTask } from '#workers/task.ts'

/** Notifies friends who were passed, and the user who was displaced from the top 10. Idempotent: a second run notifies only what is still so. */
export const leaderboardsNotify = outboxTask('leaderboards__notify', async ({ call }, { payload }) => {
  await call('leaderboard_notify', payload)
  return null
})
