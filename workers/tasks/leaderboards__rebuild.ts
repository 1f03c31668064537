import { setTimeout as sleep } from 'node:timers/promises'
import { runOperation } from '#workers/operation.ts'
import { job } from '#workers/task.ts'

type Step = { state: 'more' | 'wait' | 'done'; users: number; entries?: number; swapped?: boolean }
const batch = 1000

/** Recounts the current run of a board from the event log into a shadow, which then replaces the visible run. */
export const leaderboardsRebuild = job('leaderboards__rebuild', (services, { operation_id = '' }) =>
  runOperation(services, operation_id, async ({ operationId, input, call, progress, ...begun }) => {
    const total = begun.total ?? (await call<number>('achievements_users_total', {}))
    for (;;) {
      const args = { operation_id: operationId, leaderboard_id: input['leaderboard_id'], batch }
      const { state, users, entries, swapped } = await call<Step>('leaderboard_rebuild_step', args)
      if (state === 'done') return { users, entries, swapped }
      if (!(await progress(users, Math.max(total, users)))) return null
      if (state === 'wait') await sleep(50)
    }
  }),
)
