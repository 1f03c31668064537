import { outboxTask } from '#workers/task.ts'

/** Looks whether the event that guards a ramp comes too often, and stops the ramp if so. */
export const flagsGuard = outboxTask('flags__guard', async ({ call }, row) => {
  await call('flag_guard', { flag_id: row.key })
  return null
})
