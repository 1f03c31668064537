import type { Logger } from 'pino'
import type { Place } from '#server/database/cluster.ts'
import type { Database } from '#server/database/database.ts'
import type { DatabaseError } from '#server/database/failures.ts'
import { createLru } from '#server/lru.ts'

/** The least time between two checks whether the database of a project is lost. */
const pauseMs = 5_000
/** When a whole server is away, all its tenants are unavailable: the others wait for a later call, or the sweep. */
const mostWaiting = 100

/**
 * The same database, which calls `look` to check whether a tenant's database is lost when a call finds it unavailable. At most once in
 * five seconds for a project and one at a time, so that a tenant that is merely down costs next to nothing.
 */
export const watchTenants = (
  database: Database,
  look: (projectId: string) => Promise<unknown>,
  log: Pick<Logger, 'warn'>,
): Database => {
  const looked = createLru<true>(10_000, { ttlMs: pauseMs })
  const waiting = new Set<string>()
  let last: Promise<void> = Promise.resolve()

  const suspect = (place: Place, projectId: string | null | undefined): void => {
    if (place.kind !== 'tenant' || !projectId || waiting.size >= mostWaiting || waiting.has(projectId)) return
    if (looked.has(projectId)) return
    looked.set(projectId, true)
    waiting.add(projectId)
    last = last
      .then(() => look(projectId))
      // unknown does not count as lost
      .catch((error: Error) => log.warn({ project: projectId, error: error.message }, 'cannot look for a database'))
      .then(() => void waiting.delete(projectId))
  }
  const isUnavailable = (error: unknown) =>
    ['TENANT_UNAVAILABLE', '3D000'].includes((error as DatabaseError).code ?? '')
  const watched = <T>(place: Place, projectId: string | null | undefined, work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      if (isUnavailable(error)) suspect(place, projectId)
      throw error
    })

  return {
    ...database,
    call: (place, role, claims, ...rest) =>
      watched(place, claims.projectId, database.call(place, role, claims, ...rest)),
    execute: (place, role, claims, ...rest) =>
      watched(place, claims.projectId, database.execute(place, role, claims, ...rest)),
    async close() {
      await last
      await database.close()
    },
  }
}
