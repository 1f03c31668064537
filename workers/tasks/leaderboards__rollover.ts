import { setTimeout as sleep } from 'node:timers/promises'
import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

type Turn = { state: 'more' | 'wait' | 'done'; due_at: string | null }
const batch = 500
/** The length of a turn: after it the row is due again at once, behind rows that have waited longer. */
const longestMs = 15_000

/** Applies time-based changes of a board, step by step: creates its next run, freezes and rewards the run that has ended, deletes old runs. */
export const leaderboardsRollover = outboxTask('leaderboards__rollover', async ({ services, step }, { key }) => {
  const until = performance.now() + longestMs
  for (;;) {
    const turn = dataOf<Turn>(await step('leaderboard_rollover', { leaderboard_id: key, batch }))
    if (turn.state === 'done') return turn.due_at ? new Date(turn.due_at) : null
    if (performance.now() > until) return services.now()
    // waits for writers that began before the end of the run
    if (turn.state === 'wait') await sleep(20)
  }
})
