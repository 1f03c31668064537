import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import {
  type Cluster,
  connectAdmin,
  controlRoles,
  databaseExists,
  grantConnect,
  tenantRoles,
} from '#server/database/cluster.ts'
import type { DatabaseError } from '#server/database/failures.ts'
import type { Program } from '#server/database/files.ts'
import { changedFiles, loadBase, loadProgram } from '#server/database/load.ts'
import { migrationLock, takeLock } from '#server/database/locks.ts'
import { pendingMigrations, runMigrations } from '#server/database/migrations.ts'
import { lockDown } from '#server/database/privileges.ts'
import type { Loader, Origin } from '#server/database/replay.ts'
import { fingerprintOf } from '#server/database/state.ts'
import { formerOf } from '#server/database/templates.ts'

type MigrateOptions = {
  readonly afterBase?: () => Promise<void>
  readonly log?: Pick<Logger, 'warn'>
  /** Of many databases, so that what a version changes is worked out once. Without it files are loaded one by one. */
  readonly loader?: Loader
  readonly templates?: Origin['templates']
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
  { afterBase = async () => undefined, log, loader, templates, isProvisional = false }: MigrateOptions = {},
): Promise<string[]> => {
  const client = await connectAdmin(cluster, database, true, isProvisional ? '-c synchronous_commit=off' : '')
  try {
    await takeLock(client, migrationLock(database), { connect: () => connectAdmin(cluster, database, false), log })
    const from = loader && (await changedFiles(client, program)).length > 0 ? await fingerprintOf(client) : null
    await loadBase(client, program)
    await client.query(installVectors)
    await lockDown(client)
    await afterBase()
    const pending = await pendingMigrations(client, program)
    if (pending.length > 0) await runMigrations(client, program, pending)
    const applied =
      loader && from
        ? await loader.load(client, program, {
            fingerprint: from,
            path: `${cluster.dsn} ${pending.join(' ')}`,
            templates,
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
       and exists (select from pg_available_extensions e where e.name = 'vector')
       and (select r.rolsuper from pg_roles r where r.rolname = session_user) then
      set local role none;
      create extension vector with schema extensions;
    end if;
  end $$`

/** Makes the control database if it is not there. The cluster lock must be held. */
export const createControl = async (admin: pg.Client, database: string): Promise<void> => {
  if (!(await databaseExists(admin, database))) {
    await admin.query(`create database "${database}" owner trellis_owner template template0 encoding 'UTF8'`)
  }
  await grantConnect(admin, database, controlRoles)
}

/** More changed files than this are loaded faster into an empty database, in one transaction, than one by one. */
const fewFiles = 20

/**
 * Builds a new template beside the old one, so that it is never open for connections and never half made: a copy of the old one in which
 * few files change, and otherwise a new database. The cluster lock must be held until publishDraft has renamed it.
 */
export const buildDraft = async (
  cluster: Cluster,
  admin: pg.Client,
  template: string,
  program: Program,
): Promise<void> => {
  const draft = draftOf(template)
  await admin.query(`drop database if exists "${draft}" with (force)`)
  if (await databaseExists(admin, template)) {
    await admin.query(`create database "${draft}" owner trellis_owner template "${template}" strategy wal_log`)
    await admin.query(`revoke all on database "${draft}" from public`)
    if (await isNearlyLoaded(cluster, draft, program)) {
      await migrateDatabase(cluster, draft, program, { isProvisional: true })
      return
    }
    await admin.query(`drop database "${draft}" with (force)`)
  }
  await admin.query(`create database "${draft}" owner trellis_owner template template0 encoding 'UTF8'`)
  await admin.query(`revoke all on database "${draft}" from public`)
  await migrateDatabase(cluster, draft, program, { isProvisional: true })
  await compact(cluster, draft)
}

/** Whether only a few files of functions, policies and seeds differ, and nothing before them. */
const isNearlyLoaded = async (cluster: Cluster, database: string, program: Program): Promise<boolean> => {
  const client = await connectAdmin(cluster, database)
  try {
    const changed = await changedFiles(client, program)
    const isOlder = (await pendingMigrations(client, program).catch(() => ['unknown'])).length > 0
    const bases = new Set(program.base.map(({ path }) => path))
    return !isOlder && changed.length <= fewFiles && !changed.some((path) => bases.has(path))
  } finally {
    await client.end()
  }
}

export const draftOf = (template: string) => `${template}_draft`

/** Renames the draft into the place of the template. */
export const publishDraft = async (admin: pg.Client, template: string): Promise<void> => {
  const draft = draftOf(template)
  const old = formerOf(template)
  await admin.query(`alter database "${draft}" allow_connections false`)
  // a drop forces a checkpoint, which takes seconds on a busy server: the old template goes when the next one is built
  await admin.query(`drop database if exists "${old}" with (force)`)
  if (await databaseExists(admin, template)) await admin.query(`alter database "${template}" rename to "${old}"`)
  await admin.query(`alter database "${draft}" rename to "${template}"`)
}

export const buildTemplate = async (
  cluster: Cluster,
  admin: pg.Client,
  template: string,
  program: Program,
): Promise<void> => {
  await buildDraft(cluster, admin, template, program)
  await publishDraft(admin, template)
}

/**
 * Every project's database is a copy of the template, with what loading left behind: dead rows of the catalog, and free space maps and
 * visibility maps, which are files of their own. Rewrites only tables that have something to lose, as this is a part of the first start.
 */
const compact = async (cluster: Cluster, database: string): Promise<void> => {
  const client = await connectAdmin(cluster, database)
  try {
    const { rows } = await client.query<{ names: string }>(
      `select string_agg(format('%I.%I', n.nspname, c.relname), ', ') as names
         from pg_catalog.pg_class c
         join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'm') and not c.relisshared and n.nspname <> 'pg_toast'
          and (pg_relation_size(c.oid, 'fsm') > 0 or pg_relation_size(c.oid, 'vm') > 0 or pg_table_size(c.oid) > 65536)`,
    )
    await client.query(`vacuum (full) ${rows[0]?.names}`)
  } finally {
    await client.end()
  }
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
