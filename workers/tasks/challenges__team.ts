import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

const batch = 200
/** Well within the lease, so that nobody else begins the same look. */
const longestMs = 15_000

/** Completes and rewards the members of a team that has come to the goal of a challenge. */
export const challengesTeam = outboxTask('challenges__team', async ({ services, step }, { payload }) => {
  const until = performance.now() + longestMs
  for (;;) {
    const answer = await step('challenge_team_complete', { ...payload, batch })
    if (dataOf<{ is_over: boolean }>(answer).is_over) return null
    if (performance.now() > until) return services.now()
  }
})
