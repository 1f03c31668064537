import { outboxTask } from '#workers/task.ts'

/** Tells friends who were passed, and who was displaced at the edge of the top 10. A second run finds nothing that is no longer so. */
export const leaderboardsTell = outboxTask('leaderboards__tell', async ({ call }, { payload }) => {
  await call('leaderboard_tell', payload)
  return null
})
