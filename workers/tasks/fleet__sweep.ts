import type { Place } from '#server/database/cluster.ts'
import { dataOf } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { rulesOf } from '#workers/drain.ts'
import { forEachTenant } from '#workers/fleet.ts'
import { job, loadTasks } from '#workers/task.ts'

const ask = async <T>(services: Services, name: string, args: Record<string, unknown> = {}) =>
  dataOf<T>(await services.database.call(services.control, 'control_worker', { caller: 'worker' }, name, args))

/** Reads when a tenant's next row is due, and wakes the tenant only if there is one: a drain without work would occupy a worker's slot. */
const look = async (services: Services, projectId: string, rules: string): Promise<void> => {
  const place = await services.fleet.placeOf(projectId)
  if (!place) return
  const claims = { caller: 'worker', projectId }
  const { due_at } = dataOf<{ due_at: string | null }>(
    await services.database.call(place, 'app_worker', claims, 'outbox_next', { rules }),
  )
  if (!due_at) return
  if (Date.parse(due_at) <= services.now().getTime()) services.waker.wakeSwept(projectId)
  // the tenant's timer may have been lost in the same crash
  else services.waker.wake(projectId, due_at)
}

/** Checks tenants one after the other; the next sweep begins with those that this one does not reach. */
const lookInto = async (services: Services, ids: readonly string[]): Promise<void> => {
  const rules = rulesOf((await loadTasks()).outbox)
  for (const id of ids) {
    if (services.stopping.asked.aborted) return
    await look(services, id, rules).catch((error: Error) =>
      services.log.warn({ project: id, error: error.message }, 'the sweep could not check this project'),
    )
  }
}

const turnMs = 30_000
const batch = 50

/**
 * Every minute: checks the outboxes of tenants that were written to recently, for rows whose wake-up was lost in a crash after the commit, and
 * queues stalled work of the control database again.
 */
export const fleetSweep = job('fleet__sweep', async (services) => {
  for (const id of await ask<string[]>(services, 'provision_stalled')) await services.fleet.queueAgain('provision', id)
  for (const id of await ask<string[]>(services, 'removals_left')) await services.fleet.queueAgain('remove', id)
  for (const id of await ask<string[]>(services, 'file_purges_due')) await services.fleet.queuePurge(id)
  await ask(services, 'api_keys_expire')
  await services.fleet.endExhausted()
  services.waker.seal()
  await services.fleet.inspect()
  await services.fleet.tidy()
  for (const until = performance.now() + turnMs; performance.now() < until && !services.stopping.asked.aborted; ) {
    const ids = await ask<string[]>(services, 'sweep_take', { all_tenants: false, batch })
    await lookInto(services, ids)
    if (ids.length < batch) return
  }
})

/** Every minute: checks a share of all tenants, so that each is checked within an hour. This finds rows that a DBA's own SQL has queued. */
export const fleetSweepAll = job('fleet__sweep_all', async (services) =>
  lookInto(services, await ask<string[]>(services, 'sweep_take', { all_tenants: true })),
)

/** Per step: a few thousand rows of a table, some of them without an index on their age. */
const purgeMs = 60_000

type Purge = { readonly next: string | null }

/** The maintenance of one tenant. Creating partitions gives up quickly when it must wait for a lock, so that no request waits behind it: hence the attempts. */
const maintain = async (services: Services, place: Place, projectId: string) => {
  const call = (name: string, args: Record<string, unknown> = {}) =>
    services.database.call(place, 'app_worker', { caller: 'worker', projectId }, name, args, {
      background: true,
      ...(name === 'tenant_purge_step' ? { timeoutMs: purgeMs } : {}),
    })
  for (const chore of ['events_maintain', 'audit_maintain'])
    await call(chore)
      .catch(() => call(chore))
      .catch(() => call(chore))
  // each step is a transaction of its own; rows that a stop leaves are deleted the next day
  for (let purge: string | null = ''; purge !== null && !services.stopping.asked.aborted; )
    purge = dataOf<Purge>(await call('tenant_purge_step', { purge })).next
}

/** Every day: creates partitions ahead of time and deletes expired rows. */
export const fleetMaintain = job('fleet__maintain', async (services, { after }) => {
  const chore = (place: Place, id: string) => maintain(services, place, id)
  const again = await forEachTenant(services, after, chore, 'maintenance failed')
  if (again) return again
  await ask(services, 'audit_maintain')
    .catch(() => ask(services, 'audit_maintain'))
    .catch((error: Error) => services.log.warn({ error: error.message }, 'maintenance of the audit trail failed'))
  await ask(services, 'control_maintain')
  return null
})
