import type { Place } from '#server/database/cluster.ts'
import { dataOf } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { Stopped } from '#server/stopping.ts'
import { forEachTenant } from '#workers/fleet.ts'
import { job } from '#workers/task.ts'

type Step = { id: string; is_over: boolean; mismatched: number }

/** Verifies one project's balances against its ledger, a batch of users at a time. */
export const checkCurrencies = async (services: Services, place: Place, projectId: string, batch = 1000) => {
  let step: Step | undefined
  do {
    if (services.stopping.asked.aborted) throw new Stopped()
    const reply = await services.database.call(
      place,
      'app_worker',
      { caller: 'worker', projectId },
      'currencies_check',
      { check_id: step?.id, batch },
      { timeoutMs: 60_000, background: true },
    )
    step = dataOf<Step>(reply)
  } while (!step.is_over)
  if (step.mismatched > 0)
    services.log.error({ project: projectId, mismatched: step.mismatched }, 'balances differ from their ledgers')
}

/** Verifies the balances of all projects, every night. */
export const currenciesCheck = job('currencies__check', (services, { after }) => {
  const chore = (place: Place, id: string) => checkCurrencies(services, place, id)
  return forEachTenant(services, after, chore, 'the proof of balances failed')
})
