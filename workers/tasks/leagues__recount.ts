import { outboxTask } from '#workers/task.ts'

/** Counts the members of a cohort that somebody left while somebody else was entering it. */
export const leaguesRecount = outboxTask('leagues__recount', async ({ call }, { key }) => {
  await call('league_recount', { cohort_id: key })
  return null
})
