import { runOperation } from '#workers/operation.ts'
import { job } from '#workers/task.ts'

type Step = { done: number; unlocked: number; is_over: boolean }
const batch = 1000

/** Unlocks an achievement for users who qualify already. Each step records its progress in its own transaction. */
export const achievementsBackfill = job('achievements__backfill', (services, { operation_id = '' }) =>
  runOperation(services, operation_id, async ({ operationId, input, call, progress, ...begun }) => {
    const total = begun.total ?? (await call<number>('achievements_users_total', {}))
    const { achievement_id, notify } = input
    for (;;) {
      const args = { run_id: operationId, achievement_id, is_silent: !notify, batch }
      const { done, unlocked, is_over } = await call<Step>('achievements_backfill_step', args)
      if (!(await progress(done, Math.max(total, done)))) return null
      if (is_over) return { users: done, unlocked }
    }
  }),
)
