import { outboxTask } from '#workers/task.ts'

/** Checks a ramp's guardrail: stops the ramp when the guardrail's event occurs too often. */
export const flagsGuard = outboxTask('flags__guard', async ({ call }, row) => {
  await call('flag_guard', { flag_id: row.key })
  return null
})
