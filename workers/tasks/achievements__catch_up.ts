import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

const batch = 1000
/** The length of a turn: after it the row is due again at once, behind rows that have waited longer. */
const longestMs = 15_000

/** Backfill of an achievement that becomes active: unlocks it for users who qualify already. It is history, so no events are sent. */
export const achievementsCatchUp = outboxTask(
  'achievements__catch_up',
  async ({ services, step }, { key }) => {
    const until = performance.now() + longestMs
    for (;;) {
      const args = { run_id: key, achievement_id: key, is_silent: true, batch }
      if (dataOf<{ is_over: boolean }>(await step('achievements_backfill_step', args)).is_over) return null
      if (performance.now() > until) return services.now()
    }
  },
  { urgency: 'background', atOnce: 1 },
)
