import { dataOf } from '#server/database/database.ts'
import { more, outboxTask, runTurn, timeOf } from '#workers/task.ts'

type Tick = { streaks: number; is_over: boolean; next_at: string | null }

const batch = 500

/** Emits time-based events of a project's streaks, a batch of users at a time, and is due again at the next deadline. */
export const streaksTick = outboxTask(
  'streaks__tick',
  (context) =>
    runTurn(context, async () => {
      const { is_over, next_at } = dataOf<Tick>(await context.step('streaks_tick', { batch }))
      return is_over ? timeOf(next_at) : more
    }),
  { atOnce: 1 },
)
