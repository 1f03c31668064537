import { dataOf } from '#server/database/database.ts'
import { more, outboxTask, runTurn } from '#workers/task.ts'

const batch = 200

/** Completes a challenge for the members of a team that has reached its goal, and rewards them. */
export const challengesTeam = outboxTask('challenges__team', (context, { payload }) =>
  runTurn(context, async () => {
    const reply = await context.step('challenge_team_complete', { ...payload, batch })
    return dataOf<{ is_over: boolean }>(reply).is_over ? null : more
  }),
)
