import { outboxTask } from '#workers/task.ts'

/** Emits the event of a user whom a group went to because its owner is gone. */
export const groupsNotify = outboxTask('groups__notify', async ({ call }, { payload }) => {
  await call('group_inherited', payload)
  return null
})
