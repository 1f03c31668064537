import { dataOf } from '#server/database/database.ts'
import { more, outboxTask, runTurn, timeOf } from '#workers/task.ts'

const batch = 500

/** Emits events for expired stacks of users' inventories, and is due again when the next stack expires. */
export const inventoryExpire = outboxTask(
  'inventory__expire',
  (context) =>
    runTurn(context, async () => {
      const reply = await context.step('inventory_expire', { batch })
      const { is_over, next_at } = dataOf<{ is_over: boolean; next_at: string | null }>(reply)
      return is_over ? timeOf(next_at) : more
    }),
  { atOnce: 1 },
)
