import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

const batch = 1000
/** The length of a turn: after it the row is due again at once, behind rows that have waited longer. */
const longestMs = 15_000

/** Counts earlier events within the window of a new or changed challenge. It is history, so no events are sent. */
export const challengesRecount = outboxTask(
  'challenges__recount',
  async ({ services, step }, { key }) => {
    const until = performance.now() + longestMs
    for (;;) {
      const args = { run_id: key, challenge_id: key, batch }
      if (dataOf<{ is_over: boolean }>(await step('challenges_recount_step', args)).is_over) return null
      if (performance.now() > until) return services.now()
    }
  },
  { urgency: 'background', atOnce: 1 },
)
