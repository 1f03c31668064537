import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

type Step = { readonly is_over: boolean; readonly next_at?: string | null }

/** A step reads 20,000 users under rules of any cost. */
const timeoutMs = 60_000

/** Makes the deliveries of a campaign in steps; also ends those that a cancelled campaign has left, and deletes those of a deleted one. */
export const campaignsPlan = outboxTask(
  'campaigns__plan',
  async ({ step }, { key }) => {
    for (;;) {
      const { is_over, next_at } = dataOf<Step>(await step('campaign_plan_step', { campaign_id: key }, { timeoutMs }))
      if (is_over) return next_at ? new Date(next_at) : null
    }
  },
  { atOnce: 2 },
)
