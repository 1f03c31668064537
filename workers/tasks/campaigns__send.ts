import { drainQueue } from '#workers/campaigns.ts'
import { outboxTask } from '#workers/task.ts'

/** Sends what is due of a campaign whose channel sends, or queues, in the database. */
export const campaignsSend = outboxTask(
  'campaigns__send',
  (context, { key }) => drainQueue(context, { queue: key ?? '' }),
  { atOnce: 4 },
)
