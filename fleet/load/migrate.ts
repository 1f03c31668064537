import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { databaseExists, grantConnect } from '#fleet/cluster.ts'
import { knownOf } from '#fleet/load/checksum.ts'
import type { Program } from '#fleet/load/files.ts'
import { changedFiles, loadBase, loadProgram } from '#fleet/load/load.ts'
import { pendingMigrations, runMigrations } from '#fleet/load/migrations.ts'
import type { Loader, Origin } from '#fleet/load/replay.ts'
import { migrationLock, takeLock } from '#fleet/locks.ts'
import { lockDown } from '#fleet/privileges.ts'
import { type Cluster, connectAdmin, controlRoles, tenantRoles } from '#server/database/cluster.ts'
import type { DatabaseError } from '#server/database/failures.ts'

type MigrateOptions = {
  readonly afterBase?: () => Promise<void>
  readonly log?: Pick<Logger, 'warn'>
  /** Of many databases, so that what a version changes is worked out once. Without it files are loaded one by one. */
  readonly loader?: Loader
  readonly target?: Origin['target']
  /**
   * Commits do not wait for the disk. For a database whose state counts only once a later transaction on the same server has committed, which
   * forces all that was written before it: a draft that is renamed, and control, in which the start then notes itself.
   */
  readonly isProvisional?: boolean
}

/**
 * Brings one database to this program: sql/, migrations, then functions, policies and seeds that changed.
 * Answers the migrations and files applied. Safe to run again and at once from several processes.
 */
export const migrateDatabase = async (
  cluster: Cluster,
  database: string,
  program: Program,
  { afterBase = async () => undefined, log, loader, target, isProvisional = false }: MigrateOptions = {},
): Promise<string[]> => {
  const client = await connectAdmin(cluster, database, true, isProvisional ? '-c synchronous_commit=off' : '')
  try {
    await takeLock(client, migrationLock(database), { connect: () => connectAdmin(cluster, database, false), log })
    const from = loader && (await changedFiles(client, program)).length > 0 ? await knownOf(client) : null
    await loadBase(client, program)
    if (await offersVectors(cluster, client)) await client.query(installVectors)
    await lockDown(client)
    await afterBase()
    const pending = await pendingMigrations(client, program)
    if (pending.length > 0) await runMigrations(client, program, pending)
    const applied =
      loader && from
        ? await loader.load(client, program, {
            ...from,
            path: `${cluster.dsn} ${pending.join(' ')}`,
            target,
          })
        : await loadProgram(client, program)
    return [...pending, ...applied]
  } finally {
    await client.end()
  }
}

/**
 * pgvector is not trusted, so the owner of a project's database may not install it; the login that we came with may, where it is
 * a superuser. Where it is none, or the server has no pgvector, vectors are `real[]` with the same answers.
 */
const installVectors = `
  do $$ begin
    if to_regnamespace('extensions') is not null and to_regtype('extensions.vector') is null
       and (select r.rolsuper from pg_roles r where r.rolname = session_user) then
      set local role none;
      create extension vector with schema extensions;
    end if;
  end $$`

/** Whether a server offers pgvector. Asked once for each: Postgres reads a file for each extension that it could install. */
const vectors = new Map<string, boolean>()
const offersVectors = async (cluster: Cluster, client: pg.Client): Promise<boolean> => {
  const known = vectors.get(cluster.dsn)
  if (known !== undefined) return known
  const { rowCount } = await client.query(`select from pg_available_extensions e where e.name = 'vector'`)
  vectors.set(cluster.dsn, rowCount === 1)
  return rowCount === 1
}

/** Makes the control database if it is not there. The cluster lock must be held. */
export const createControl = async (admin: pg.Client, database: string): Promise<void> => {
  if (!(await databaseExists(admin, database))) {
    await admin.query(`create database "${database}" owner trellis_owner template template0 encoding 'UTF8'`)
  }
  await grantConnect(admin, database, controlRoles)
}

/** One tenant database from the template; idempotent. Grants on a database are not copied from its template. */
export const createTenantDatabase = async (admin: pg.Client, database: string, template: string): Promise<void> => {
  for (let attempt = 1; !(await databaseExists(admin, database)); attempt += 1) {
    try {
      await admin.query(`create database "${database}" owner trellis_owner template "${template}" strategy wal_log`)
    } catch (error) {
      const { code = '' } = error as DatabaseError
      // another worker makes it at this moment: a job that was taken for dead may still run
      if (code === '42P04' || code === '23505') continue
      // the template is just being replaced by a newer one
      if (attempt >= 10 || !['3D000', '55006'].includes(code)) throw error
      await sleep(100)
    }
  }
  await grantConnect(admin, database, tenantRoles)
}
