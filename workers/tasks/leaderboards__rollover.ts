import { setTimeout as sleep } from 'node:timers/promises'
import { dataOf } from '#server/database/database.ts'
import { more, outboxTask, runTurn, timeOf } from '#workers/task.ts'

type Step = { state: 'more' | 'wait' | 'done'; due_at?: string | null }
const batch = 500

/** Applies time-based changes of a board, step by step: creates its next run, freezes and rewards the run that has ended, deletes old runs. */
export const leaderboardsRollover = outboxTask('leaderboards__rollover', (context, { key }) =>
  runTurn(context, async () => {
    const { state, due_at } = dataOf<Step>(await context.step('leaderboard_rollover', { leaderboard_id: key, batch }))
    if (state === 'done') return timeOf(due_at)
    // waits for writers that began before the end of the run
    if (state === 'wait') await sleep(20)
    return more
  }),
)
