import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type pg from 'pg'
import type { Logger } from 'pino'
import {
  adminUrl,
  type Cluster,
  connectAdmin,
  controlRoles,
  databaseExists,
  grantConnect,
  tenantRoles,
} from '#server/database/cluster.ts'
import type { DatabaseError } from '#server/database/failures.ts'
import type { Program } from '#server/database/files.ts'
import { loadBase, loadProgram } from '#server/database/load.ts'
import { migrationLock, takeLock } from '#server/database/locks.ts'
import { lockDown } from '#server/database/privileges.ts'

const require = createRequire(import.meta.url)
const exec = promisify(execFile)

/**
 * Brings one database to this program: sql/, dbmate as the owner, then functions, policies and seeds that changed.
 * Answers the files applied. Safe to run again and at once from several processes.
 */
export const migrateDatabase = async (
  cluster: Cluster,
  database: string,
  program: Program,
  { afterBase = async () => undefined, log }: { afterBase?: () => Promise<void>; log?: Pick<Logger, 'warn'> } = {},
): Promise<string[]> => {
  const client = await connectAdmin(cluster, database)
  try {
    await takeLock(client, migrationLock(database), { connect: () => connectAdmin(cluster, database, false), log })
    await loadBase(client, program)
    await client.query(installVectors)
    await lockDown(client)
    await afterBase()
    const pending = await pendingMigrations(client, program)
    if (pending.length > 0) await runDbmate(cluster, database, program)
    const applied = await loadProgram(client, program)
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
       and exists (select from pg_available_extensions e where e.name = 'vector')
       and (select r.rolsuper from pg_roles r where r.rolname = session_user) then
      set local role none;
      create extension vector with schema extensions;
    end if;
  end $$`

const pendingMigrations = async (client: pg.Client, program: Program): Promise<string[]> => {
  const { rows: found } = await client.query(`select to_regclass('ops.schema_migrations') is not null as exists`)
  if (!found[0].exists) return [...program.migrations]
  const { rows } = await client.query<{ version: string }>('select version from ops.schema_migrations')
  const applied = new Set(rows.map((row) => row.version))
  return program.migrations.filter((version) => !applied.has(version))
}

const dbmateBinary = (): string => require.resolve(`@dbmate/${process.platform}-${process.arch}/bin/dbmate`)

/** The url travels in the environment: arguments can be read by every user of the machine. */
const runDbmate = async (cluster: Cluster, database: string, program: Program): Promise<void> => {
  const args = [
    '--no-dump-schema',
    '--migrations-dir',
    program.migrationsDir,
    '--migrations-table',
    'ops.schema_migrations',
  ]
  try {
    await exec(dbmateBinary(), [...args, 'migrate', '--strict'], {
      env: { PATH: process.env['PATH'], DATABASE_URL: adminUrl(cluster, database) },
    })
  } catch (error) {
    const { stderr, stdout } = error as { stderr?: string; stdout?: string }
    throw new Error(
      `dbmate: ${(stderr || stdout || String(error)).trim().replaceAll(/postgres:\/\/\S+/g, 'postgres://…')}`,
    )
  }
}

/** Makes the control database if it is not there. The cluster lock must be held. */
export const createControl = async (admin: pg.Client, database: string): Promise<void> => {
  if (!(await databaseExists(admin, database))) {
    await admin.query(`create database "${database}" owner trellis_owner template template0 encoding 'UTF8'`)
  }
  await grantConnect(admin, database, controlRoles)
}

/**
 * Builds the template anew beside the old one and renames it in, so that it is never open for connections and
 * never half made. The cluster lock must be held.
 */
export const buildTemplate = async (
  cluster: Cluster,
  admin: pg.Client,
  template: string,
  program: Program,
): Promise<void> => {
  const draft = `${template}_draft`
  const old = `${template}_old`
  await admin.query(`drop database if exists "${draft}" with (force)`)
  await admin.query(`create database "${draft}" owner trellis_owner template template0 encoding 'UTF8'`)
  await admin.query(`revoke all on database "${draft}" from public`)
  await migrateDatabase(cluster, draft, program)
  await admin.query(`alter database "${draft}" allow_connections false`)
  // a drop forces a checkpoint, which takes seconds on a busy server: the old template goes when the next one is built
  await admin.query(`drop database if exists "${old}" with (force)`)
  if (await databaseExists(admin, template)) await admin.query(`alter database "${template}" rename to "${old}"`)
  await admin.query(`alter database "${draft}" rename to "${template}"`)
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
