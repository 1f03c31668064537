import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** Counts how rare achievements are, every hour while there are any. */
export const achievementsRarity = outboxTask('achievements__rarity', async ({ services, call }) =>
  dataOf<boolean>(await call('achievements_count', {})) ? new Date(services.now().getTime() + 3_600_000) : null,
)
