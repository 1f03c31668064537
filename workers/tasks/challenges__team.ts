import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

const batch = 200
/** The length of a turn: after it the row is due again at once, behind rows that have waited longer. */
const longestMs = 15_000

/** Completes a challenge for the members of a team that has reached its goal, and rewards them. */
export const challengesTeam = outboxTask('challenges__team', async ({ services, step }, { payload }) => {
  const until = performance.now() + longestMs
  for (;;) {
    const answer = await step('challenge_team_complete', { ...payload, batch })
    if (dataOf<{ is_over: boolean }>(answer).is_over) return null
    if (performance.now() > until) return services.now()
  }
})
