import { dataOf } from '#server/database/database.ts'
import { outboxTask, timeOf } from '#workers/task.ts'

/** Pays the referrer of a claim once all of its conditions are met, or ends the claim when it has expired. */
export const referralsRelease = outboxTask('referrals__release', async ({ call }, { key }) => {
  const next = dataOf<string | null>(await call('referral_release', { claim_id: key }))
  return timeOf(next)
})
