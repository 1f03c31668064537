import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** Computes the rarity of achievements, every hour while there are any. */
export const achievementsRarity = outboxTask(
  'achievements__rarity',
  async ({ services, step }) =>
    dataOf<boolean>(await step('achievements_count', {})) ? new Date(services.now().getTime() + 3_600_000) : null,
  { urgency: 'background', atOnce: 1 },
)
