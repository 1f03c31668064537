import type pg from 'pg'
import { type Cluster, connectAdmin } from '#server/database/cluster.ts'
import {
  databasesToReseal,
  isRotating,
  noteResealed,
  noteUnused,
  type Resealed,
  resealDatabase,
} from '#server/database/keys.ts'
import type { Services } from '#server/services.ts'

/** The length of a turn. After it the queue runs other waiting jobs first. */
const turnMs = 20_000

type Surroundings = Pick<Services, 'control' | 'fleet' | 'log' | 'secrets' | 'stopping'>

/**
 * One pass over control and every tenant that is ready: those that are done are not visited again. One that cannot be reached is noted and does
 * not stop the others. It continues at the next minute where it was stopped.
 */
export const resealEverything = async ({ control, fleet, log, secrets, stopping }: Surroundings): Promise<void> => {
  const until = performance.now() + turnMs
  const isWanted = () => !stopping.asked.aborted && performance.now() < until
  const noting = await connectAdmin(control.cluster, control.database)
  try {
    if (!(await isRotating(noting))) return
    for (const { database_name, project_id, cluster_id } of await databasesToReseal(noting)) {
      if (!isWanted()) return
      const { rows } = await noting.query<{ now: Date }>('select now() as now')
      let found: Resealed = { resealed: 0, remaining: 1 }
      let failure: string | null = null
      try {
        if (project_id === null || cluster_id === null) {
          found = await resealDatabase(noting, 'control', '', secrets, isWanted)
        } else {
          const cluster = await fleet.clusterOf(cluster_id)
          if (!cluster) throw new Error('its server is not known')
          found = await inDatabase(cluster, database_name, (client) =>
            resealDatabase(client, 'tenant', project_id, secrets, isWanted),
          )
        }
      } catch (error) {
        failure = (error as Error).message
        log.warn({ database: database_name, error: failure }, 'what is stored could not be encrypted again')
      }
      const name = project_id === null ? 'control' : database_name
      await noteResealed(noting, name, secrets.current, found, rows[0]!.now, failure)
    }
    const unused = await noteUnused(noting)
    if (unused > 0)
      log.info({ keys: unused }, 'a former key of SECRETS_KEY encrypts nothing any more: npm run admin -- keys status')
  } finally {
    await noting.end()
  }
}

const inDatabase = async <T>(
  cluster: Cluster,
  database: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> => {
  const client = await connectAdmin(cluster, database)
  return work(client).finally(() => client.end())
}
