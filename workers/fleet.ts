import type { Place } from '#server/database/cluster.ts'
import { dataOf } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'
import { Stopped } from '#server/stopping.ts'
import type { Again } from '#workers/task.ts'

const batch = 100
/** The length of a turn. After it the queue runs other waiting jobs first. */
const turnMs = 20_000

/**
 * Runs a chore in every project that is ready, one project after the other. It runs in turns, each of which continues where the previous
 * one ended, so that it does not occupy a worker for long and a stop loses no progress. A failure in one project does not stop the others.
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
