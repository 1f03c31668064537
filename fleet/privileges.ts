import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import type { Logger } from 'pino'
import { grantConnect } from '#fleet/cluster.ts'
import { type Cluster, connectAdmin, controlRoles, tenantRoles } from '#server/database/cluster.ts'
import { root } from '#server/root.ts'

/** A database whose privileges are not as they should be. `shared` ones are the server's own: postgres, template1. */
export type Wrong = {
  readonly database: string
  readonly kind: 'control' | 'tenant' | 'template' | 'shared'
  readonly problems: readonly string[]
  readonly canRepair: boolean
  /** What the owner of a shared database can do where we cannot: our own role goes on connecting. */
  readonly remedy: string | null
}

const sql = (name: string) => readFile(join(root, 'sql/cluster', name), 'utf8')

/** What is wrong on this server. `admin` is connected to the maintenance database; nothing is changed. */
export const wrongPrivileges = async (admin: pg.Client, prefix: string): Promise<Wrong[]> => {
  const { rows } = await admin.query<Wrong>(await sql('privileges.sql'), [prefix, controlRoles, tenantRoles])
  return rows
}

/** Takes harmful built-in functions from PUBLIC in this database, where that is ours to do. */
export const lockDown = async (client: pg.Client): Promise<void> => {
  await client.query(await sql('lock_down.sql'))
}

/** Whether PUBLIC may still execute them: where the administrator is no superuser. */
export const isLockedDown = async (client: pg.Client): Promise<boolean> => {
  const { rows } = await client.query<{ open: boolean }>(
    `select has_function_privilege('public', 'pg_catalog.lo_create(oid)', 'execute') as open`,
  )
  return rows[0]?.open === false
}

const repair = async (cluster: Cluster, admin: pg.Client, { database, kind }: Wrong): Promise<void> => {
  const name = `"${database}"`
  if (kind === 'template') return void (await admin.query(`alter database ${name} allow_connections false`))
  if (kind === 'shared') return void (await admin.query(`revoke connect, temporary on database ${name} from public`))
  await admin.query(`alter database ${name} owner to trellis_owner`)
  await grantConnect(admin, database, kind === 'control' ? controlRoles : tenantRoles)
  // restored without its privileges, it has lost those on built-in functions too
  const client = await connectAdmin(cluster, database)
  await lockDown(client).finally(() => client.end())
}

/** Databases of projects that were made by hand, as a restore does: their own privileges are lost, and their content may be older than control says. */
export const restoredAmong = (found: readonly Wrong[]): string[] =>
  found
    .filter(({ kind, problems }) => kind === 'tenant' && problems.includes('a login may not connect'))
    .map(({ database }) => database)

/** Repairs the privileges that Trellis manages; returns the defects found. A failure in one database does not affect others. */
export const repairPrivileges = async (
  cluster: Cluster,
  admin: pg.Client,
  prefix: string,
  log: Pick<Logger, 'warn'>,
): Promise<readonly Wrong[]> => {
  const found = await wrongPrivileges(admin, prefix)
  for (const wrong of found.filter(({ canRepair }) => canRepair)) {
    const { database, problems } = wrong
    await repair(cluster, admin, wrong).then(
      // at the first start of an installation the server's own databases are always open
      () => wrong.kind !== 'shared' && log.warn({ database, problems }, 'repaired the privileges of a database'),
      (error: Error) => log.warn({ database, problems, error: error.message }, 'cannot repair the privileges'),
    )
  }
  return found
}
