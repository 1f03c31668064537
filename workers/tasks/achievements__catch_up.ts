import { dataOf } from '#server/database/database.ts'
import { more, outboxTask, runTurn } from '#workers/task.ts'

const batch = 1000

/** Backfill of an achievement that becomes active: unlocks it for users who qualify already. It is history, so no events are sent. */
export const achievementsCatchUp = outboxTask(
  'achievements__catch_up',
  (context, { key }) =>
    runTurn(context, async () => {
      const args = { run_id: key, achievement_id: key, is_silent: true, batch }
      const reply = await context.step('achievements_backfill_step', args)
      return dataOf<{ is_over: boolean }>(reply).is_over ? null : more
    }),
  { urgency: 'background', atOnce: 1 },
)
