import { runOperation } from '#workers/operation.ts'
import { job } from '#workers/task.ts'

type Step = { done: number; changed: number; is_over: boolean }
const batch = 1000

/** Recounts a challenge for all users. Each step stores its progress in its own transaction. */
export const challengesRecompute = job('challenges__recompute', (services, { operation_id = '' }) =>
  runOperation(services, operation_id, async ({ operationId, input, call, progress, ...begun }) => {
    const total = begun.total ?? (await call<number>('achievements_users_total', {}))
    for (;;) {
      const args = { run_id: operationId, challenge_id: input['challenge_id'], batch }
      const { done, changed, is_over } = await call<Step>('challenges_recount_step', args)
      if (!(await progress(done, Math.max(total, done)))) return null
      if (is_over) return { users: done, changed }
    }
  }),
)
