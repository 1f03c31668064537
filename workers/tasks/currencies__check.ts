import { dataOf, type Place } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { job } from '#workers/task.ts'

type Step = { id: string; is_over: boolean; mismatched: number }

/** Proves one project's balances, some users at a time. */
export const checkCurrencies = async (services: Services, place: Place, projectId: string, batch = 1000) => {
  let step: Step | undefined
  do {
    const reply = await services.database.call(
      place,
      'app_worker',
      { caller: 'worker', projectId },
      'currencies_check',
      { check_id: step?.id, batch },
      { timeoutMs: 60_000 },
    )
    step = dataOf<Step>(reply)
  } while (!step.is_over)
  if (step.mismatched > 0)
    services.log.error({ project: projectId, mismatched: step.mismatched }, 'balances differ from their ledgers')
}

/** Every night, over all projects. */
export const currenciesCheck = job('currencies__check', async (services) => {
  const ids = dataOf<string[]>(
    await services.database.call(services.control, 'control_worker', { caller: 'worker' }, 'fleet_to_sweep', {
      all_tenants: true,
    }),
  )
  for (const id of ids) {
    const place = await services.fleet.placeOf(id)
    if (!place) continue
    await checkCurrencies(services, place, id).catch((error: Error) =>
      services.log.warn({ project: id, error: error.message }, 'the proof of balances failed'),
    )
  }
})
