import { dataOf } from '#server/database/database.ts'
import type { CheckedDomain } from '#server/providers/domains.ts'
import { job } from '#workers/task.ts'

type Due = CheckedDomain & { readonly id: string }
const batch = 10

/** Checks the DNS records of every domain once a day. A domain whose check breaks off is due again within the hour. */
export const domainsCheck = job('domains__check', async ({ database, control, domains, log, stopping }) => {
  const call = (name: string, args: Record<string, unknown>) =>
    database.call(control, 'control_worker', { caller: 'worker' }, name, args)
  const check = async ({ id, ...domain }: Due) => {
    const { records, outcome, error } = await domains.check(domain)
    await call('domain_daily_check', { domain_id: id, records: JSON.stringify(records), outcome, error })
  }
  while (!stopping.asked.aborted) {
    const due = dataOf<Due[]>(await call('domains_due', { batch }))
    await Promise.all(
      due.map((domain) =>
        check(domain).catch((error: Error) =>
          log.warn({ domain: domain.domain, error: error.message }, 'a domain was not checked'),
        ),
      ),
    )
    if (due.length < batch) return
  }
})
