import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

type Tick = { streaks: number; is_over: boolean; next_at: string | null }

const batch = 500
/** The length of a turn: after it the row is due again at once, behind rows that have waited longer. */
const longestMs = 15_000

/** Emits time-based events of a project's streaks, a batch of users at a time, and is due again at the next deadline. */
export const streaksTick = outboxTask(
  'streaks__tick',
  async ({ services, step }) => {
    const until = performance.now() + longestMs
    for (;;) {
      const { is_over, next_at } = dataOf<Tick>(await step('streaks_tick', { batch }))
      if (is_over) return next_at === null ? null : new Date(next_at)
      if (performance.now() > until) return services.now()
    }
  },
  { atOnce: 1 },
)
