import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

/** Pays who referred a claimer, once nothing is missing; or ends the claim when its time is over. */
export const referralsRelease = outboxTask('referrals__release', async ({ call }, { key }) => {
  const next = dataOf<string | null>(await call('referral_release', { claim_id: key }))
  return next === null ? null : new Date(next)
})
