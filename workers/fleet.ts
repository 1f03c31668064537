import { dataOf, type Place } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { Stopped } from '#server/stopping.ts'
import type { Again } from '#workers/task.ts'

const batch = 100
/** After this the queue runs what else waits, and comes back. */
const turnMs = 20_000

/**
 * Work in every project that is ready, one after the other. It is done in turns, each of which continues where the one before came
 * to, so that it never holds a worker for long and a stop loses nothing of it. A project that fails holds up no other.
 */
export const forEachTenant = async (
  services: Services,
  after: string | undefined,
  chore: (place: Place, projectId: string) => Promise<void>,
  failed: string,
): Promise<Again | null> => {
  const until = performance.now() + turnMs
  const { asked } = services.stopping
  let last = after
  for (;;) {
    const args = { after: last ?? null, batch }
    const ids = dataOf<string[]>(
      await services.database.call(services.control, 'control_worker', { caller: 'worker' }, 'fleet_page', args),
    )
    for (const id of ids) {
      if (last !== undefined && (asked.aborted || performance.now() > until)) return { again: { after: last } }
      const place = await services.fleet.placeOf(id)
      if (place) {
        await chore(place, id).catch((error: Error) => {
          if (asked.aborted) throw new Stopped()
          services.log.warn({ project: id, error: error.message }, failed)
        })
      }
      last = id
    }
    if (ids.length < batch) return null
  }
}
