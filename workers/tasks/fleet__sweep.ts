import { dataOf, type Place } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { job } from '#workers/task.ts'

const ask = async <T>(services: Services, name: string, args: Record<string, unknown> = {}) =>
  dataOf<T>(await services.database.call(services.control, 'control_worker', { caller: 'worker' }, name, args))

/** Finds what a crash between commit and wake-up lost, and what a DBA's own SQL made due. */
const sweep = async (services: Services, all: boolean) => {
  const ids = await ask<string[]>(services, 'fleet_to_sweep', { all_tenants: all })
  for (const id of ids) services.waker.wake(id, new Date().toISOString())
  for (const id of await ask<string[]>(services, 'provision_stalled')) await services.fleet.queueAgain('provision', id)
  for (const id of await ask<string[]>(services, 'removals_left')) await services.fleet.queueAgain('remove', id)
  for (const id of await ask<string[]>(services, 'file_purges_due')) await services.fleet.queuePurge(id)
  await services.fleet.inspect()
}

/** Every minute, over tenants written to lately. */
export const fleetSweep = job('fleet__sweep', (services) => sweep(services, false))

/** Every hour, over all. */
export const fleetSweepAll = job('fleet__sweep_all', (services) => sweep(services, true))

const forgetMs = 600_000

/** One tenant's chores. Partitions are made in a moment or not at all, so that no request waits for long: hence the attempts. */
const maintain = async (services: Services, place: Place, projectId: string) => {
  const call = (name: string, timeoutMs?: number) =>
    services.database.call(
      place,
      'app_worker',
      { caller: 'worker', projectId },
      name,
      {},
      timeoutMs ? { timeoutMs } : {},
    )
  for (const chore of ['events_maintain', 'audit_maintain'])
    await call(chore)
      .catch(() => call(chore))
      .catch(() => call(chore))
  await call('tenant_forget', forgetMs)
}

/** Every day: partitions ahead of time, and what has outlived its use. */
export const fleetMaintain = job('fleet__maintain', async (services) => {
  const ids = await ask<string[]>(services, 'fleet_to_sweep', { all_tenants: true })
  for (const id of ids) {
    const place = await services.fleet.placeOf(id)
    if (!place) continue
    await maintain(services, place, id).catch((error: Error) =>
      services.log.warn({ project: id, error: error.message }, 'maintenance failed'),
    )
  }
  await ask(services, 'audit_maintain')
    .catch(() => ask(services, 'audit_maintain'))
    .catch((error: Error) => services.log.warn({ error: error.message }, 'maintenance of the audit trail failed'))
  await ask(services, 'control_maintain')
})
