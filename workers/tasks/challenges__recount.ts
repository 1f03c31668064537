import { dataOf } from '#server/database/database.ts'
import { more, outboxTask, runTurn } from '#workers/task.ts'

const batch = 1000

/** Counts earlier events within the window of a new or changed challenge. It is history, so no events are sent. */
export const challengesRecount = outboxTask(
  'challenges__recount',
  (context, { key }) =>
    runTurn(context, async () => {
      const reply = await context.step('challenges_recount_step', { run_id: key, challenge_id: key, batch })
      return dataOf<{ is_over: boolean }>(reply).is_over ? null : more
    }),
  { urgency: 'background', atOnce: 1 },
)
