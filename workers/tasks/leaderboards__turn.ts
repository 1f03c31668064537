import { setTimeout as sleep } from 'node:timers/promises'
import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

type Turn = { state: 'more' | 'wait' | 'done'; due_at: string | null }
const batch = 500
/** Well within the lease, so that nobody else begins the same turn. */
const longestMs = 15_000

/** Does what the clock asks of a board, step by step: makes its next run, freezes and rewards the one that is over, deletes old ones. */
export const leaderboardsTurn = outboxTask('leaderboards__turn', async ({ services, step }, { key }) => {
  const until = performance.now() + longestMs
  for (;;) {
    const turn = dataOf<Turn>(await step('leaderboard_rollover', { leaderboard_id: key, batch }))
    if (turn.state === 'done') return turn.due_at ? new Date(turn.due_at) : null
    if (performance.now() > until) return services.now()
    // writers that began before the run was over are let finish
    if (turn.state === 'wait') await sleep(20)
  }
})
