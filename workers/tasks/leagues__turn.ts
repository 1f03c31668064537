import { setTimeout as sleep } from 'node:timers/promises'
import { dataOf } from '#server/database/database.ts'
import { more, outboxTask, runTurn, timeOf } from '#workers/task.ts'

type Step = { state: 'more' | 'wait' | 'done'; due_at?: string | null }

/** Announces the ends of a league's runs and settles those that have ended, step by step: some cohorts each, in a transaction. */
export const leaguesTurn = outboxTask('leagues__turn', (context, { key }) =>
  runTurn(context, async () => {
    const { state, due_at } = dataOf<Step>(await context.step('league_turn', { league_id: key }))
    if (state === 'done') return timeOf(due_at)
    // waits for writers that began before the end of the run
    if (state === 'wait') await sleep(20)
    return more
  }),
)
