import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

const batch = 500

/** Emits events for expired stacks of users' inventories, and is due again when the next stack expires. */
export const inventoryExpire = outboxTask(
  'inventory__expire',
  async ({ step }) => {
    for (;;) {
      const reply = await step('inventory_expire', { batch })
      const { is_over, next_at } = dataOf<{ is_over: boolean; next_at: string | null }>(reply)
      if (is_over) return next_at === null ? null : new Date(next_at)
    }
  },
  { atOnce: 1 },
)
