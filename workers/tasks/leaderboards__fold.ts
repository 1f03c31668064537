import { outboxTask } from '#workers/task.ts'

/** Adds the recorded moves of a run to the counts that its ranks are summed from. Idempotent: nothing to fold, nothing done. */
export const leaderboardsFold = outboxTask(
  'leaderboards__fold',
  async ({ call }, { key }) => {
    await call('leaderboard_fold', { run_id: key })
    return null
  },
  { urgency: 'background' },
)
