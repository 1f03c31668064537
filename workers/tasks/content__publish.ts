import { outboxTask } from '#workers/task.ts'

/** At the time of a schedule: announces the publication if the schedule still stands. What apps read does not wait for it. */
export const contentPublish = outboxTask(
  'content__publish',
  async ({ call }, row) => {
    await call('content_settle', { entry_id: row.payload['entry_id'] as string })
    return null
  },
  { urgency: 'prompt' },
)
