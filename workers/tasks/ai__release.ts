import { outboxTask } from '#workers/task.ts'

/** Ends an invocation that its server has not finished. */
export const aiRelease = outboxTask(
  'ai__release',
  async ({ call }, { key }) => {
    await call('ai_release', { invocation_id: key })
    return null
  },
  { urgency: 'background', atOnce: 2 },
)
