import { outboxTask } from '#workers/task.ts'

/** Pushes a new message to those of its participants who do not see it. */
export const messagingPush = outboxTask(
  'messaging__push',
  async ({ services, projectId, call }, { key }) => {
    const project = await services.projectCache.byProject(projectId)
    await call('message_push', { message_id: key, uses_log: project?.environment !== 'production' })
    return null
  },
  { urgency: 'prompt' },
)
