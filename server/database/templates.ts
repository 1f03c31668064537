import type pg from 'pg'
import { type Cluster, connectAdmin, databaseExists } from '#server/database/cluster.ts'
import type { Program } from '#server/database/files.ts'
import { changedFiles } from '#server/database/load.ts'
import { withClusterLock } from '#server/database/locks.ts'
import { pendingMigrations } from '#server/database/migrations.ts'
import { fingerprintOf, readTarget, type Target } from '#server/database/state.ts'

/** The template, which tenants are brought to, and the template before it, which they are copies of. */
export type Templates = {
  readonly target: Target
  /** Fingerprint of the template before: a tenant with the same one was changed by nobody. Null where that template is not there. */
  readonly former: string | null
}

export const formerOf = (template: string) => `${template}_old`

/**
 * Reads both templates. They are closed to connections, so each is opened for the time of the reading; a tenant that is made meanwhile waits.
 * Null where the template holds another program than this one. Takes the cluster lock.
 */
export const readTemplates = (cluster: Cluster, template: string, program: Program): Promise<Templates | null> =>
  withClusterLock(cluster, async (admin) => {
    const target = await whileOpen(cluster, admin, template, async (client) => {
      const isOther = (await changedFiles(client, program)).length > 0
      return isOther || (await pendingMigrations(client, program)).length > 0 ? null : readTarget(client)
    })
    if (!target) return null
    const former = await whileOpen(cluster, admin, formerOf(template), fingerprintOf)
    return { target, former }
  })

/** Null where there is no such database. */
const whileOpen = async <T>(
  cluster: Cluster,
  admin: pg.Client,
  database: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T | null> => {
  if (!(await databaseExists(admin, database))) return null
  await admin.query(`alter database "${database}" allow_connections true`)
  try {
    const client = await connectAdmin(cluster, database)
    return await work(client).finally(() => client.end())
  } finally {
    await admin.query(`alter database "${database}" allow_connections false`)
  }
}
