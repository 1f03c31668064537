import { copyFile, mkdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type Binaries, installedBinaries } from '#fleet/embedded/binaries.ts'
import { existingHome } from '#fleet/embedded/folder.ts'
import { isInUse } from '#fleet/embedded/lock.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { type Programs, prepareInstallation } from '#fleet/installation.ts'
import { createTenantDatabase, migrateDatabase } from '#fleet/load/migrate.ts'
import { readCatalog, reproduceAll, reproduceTables } from '#fleet/move/catalog.ts'
import { copyRows, emptyTables, movedTables, sumsOf, unequal } from '#fleet/move/copy.ts'
import { connect, using } from '#fleet/move/replication.ts'
import { copySequences } from '#fleet/move/switch.ts'
import { embeddedConnections, embeddedPassword, noDatabases } from '#fleet/postgres.ts'
import type { Config } from '#server/config.ts'
import { type Cluster, connectAdmin } from '#server/database/cluster.ts'
import { controlName, templateName } from '#server/database/names.ts'
import { StartError } from '#server/errors.ts'
import type { Secrets } from '#server/secrets.ts'

export type UpgradeOptions = {
  readonly config: Config
  readonly secrets: Secrets
  readonly programs: Programs
  /** Of the major version that made the data; null where the installed ones did, for a rebuild. */
  readonly former: Binaries | null
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly say: (line: string) => void
}

export type Upgraded = { readonly from: string; readonly to: string; readonly databases: number; readonly kept: string }

const majorOf = (version: string) => version.split('.')[0] ?? ''

/** The version of Postgres that made the data of this installation. */
export const dataVersion = async (dataDir: string): Promise<{ readonly home: string; readonly major: string }> => {
  const home = await existingHome(dataDir)
  if (!home) throw new StartError(noDatabases)
  return { home, major: (await readFile(join(home, 'cluster/PG_VERSION'), 'utf8')).trim() }
}

/**
 * Roles that people have made, with their passwords, limits and settings, and what they are members of: privileges in databases are theirs. Options of a membership are
 * columns since Postgres 16.
 */
const copyRoles = async (from: pg.Client, to: pg.Client): Promise<void> => {
  const { rows } = await from.query<{ make: string }>(
    `select format('do $do$ begin if not exists (select from pg_catalog.pg_roles where rolname = %1$L) then create role %1$I; end if; end $do$;
                    alter role %1$I %2$s connection limit %4$s valid until %5$L password %3$L',
                   a.rolname, concat_ws(' ', case when a.rolsuper then 'superuser' end, case when a.rolcreatedb then 'createdb' end, case when a.rolcreaterole then 'createrole' end,
                                        case when a.rolcanlogin then 'login' end, case when a.rolbypassrls then 'bypassrls' end, case when a.rolreplication then 'replication' end,
                                        case when not a.rolinherit then 'noinherit' end),
                   a.rolpassword, a.rolconnlimit, coalesce(a.rolvaliduntil, 'infinity')) as make
       from pg_catalog.pg_authid a
      where a.rolname !~ '^pg_' and a.rolname <> current_user
     union all
     select format('alter role %I set %I to %s', a.rolname, split_part(c.one, '=', 1),
                   case when split_part(c.one, '=', 1) in ('search_path', 'temp_tablespaces', 'session_preload_libraries', 'local_preload_libraries')
                        then substr(c.one, strpos(c.one, '=') + 1) else quote_literal(substr(c.one, strpos(c.one, '=') + 1)) end)
       from pg_catalog.pg_db_role_setting s join pg_catalog.pg_authid a on a.oid = s.setrole cross join lateral unnest(s.setconfig) c (one)
      where s.setdatabase = 0 and a.rolname !~ '^pg_' and a.rolname <> current_user
     union all
     select format('grant %I to %I', g.rolname, m.rolname)
            || case when to_jsonb(x) ? 'set_option'
                    then format(' with admin %s, inherit %s, set %s', x.admin_option::text, to_jsonb(x) ->> 'inherit_option', to_jsonb(x) ->> 'set_option')
                    when x.admin_option then ' with admin option' else '' end
       from pg_catalog.pg_auth_members x
       join pg_catalog.pg_roles g on g.oid = x.roleid
       join pg_catalog.pg_roles m on m.oid = x.member
      where m.rolname !~ '^pg_'`,
  )
  for (const { make } of rows) await to.query(make)
}

type Side = { readonly cluster: Cluster }

/** Everything of one database, as a move copies it, except that nobody changes it meanwhile; then both are compared. */
const copyDatabase = async (from: Side, to: Side, database: string): Promise<void> => {
  const [source, target, owner] = [
    await connect(from.cluster, database),
    await connect(to.cluster, database),
    await connectAdmin(to.cluster, database),
  ]
  try {
    const catalog = await readCatalog(source)
    const [ends, made] = [{ owner, admin: target }, new Map()]
    await reproduceTables(catalog, ends, made)
    await emptyTables(owner)
    const tables = await movedTables(source)
    await source.query('begin isolation level repeatable read read only')
    const { rows } = await source.query<{ snapshot: string }>('select pg_export_snapshot() as snapshot')
    await copyRows({ ...from, database }, { ...to, database }, tables, rows[0]?.snapshot ?? '')
    await source.query('commit')
    await copySequences(source, target)
    await reproduceAll(catalog, ends, made)
    const wrong = unequal(await sumsOf(source, tables), await sumsOf(target, tables))
    if (wrong.length > 0) throw new Error(`the rows of ${database} are not the same: ${wrong.slice(0, 3).join('; ')}`)
    await target.query(`reset search_path; analyze`)
  } finally {
    for (const client of [source, target, owner]) await client.end().catch(() => undefined)
  }
}

const namesOf = async (cluster: Cluster, prefix: string) => {
  const control = await connectAdmin(cluster, controlName(prefix))
  try {
    const { rows: tenants } = await control.query<{ name: string }>(
      `select t.database_name as name from app.tenants t join app.clusters c on c.id = t.cluster_id
        where c.dsn_sealed is null and exists (select from pg_catalog.pg_database d where d.datname = t.database_name) order by 1`,
    )
    const known = [...tenants.map(({ name }) => name), controlName(prefix), templateName(prefix)]
    const { rows: others } = await control.query<{ name: string }>(
      `select d.datname as name from pg_catalog.pg_database d
        where not d.datistemplate and d.datname <> 'postgres' and d.datname <> all ($1) order by 1`,
      [known],
    )
    return { tenants: tenants.map(({ name }) => name), others: others.map(({ name }) => name) }
  } finally {
    await control.end()
  }
}

/**
 * Copies an installation with embedded Postgres, which nobody uses meanwhile, into a cluster of the installed version: structure by statements, rows by COPY, every table
 * compared. The new cluster takes the place of the former one, which is kept beside. What fails leaves the former one as it was.
 */
export const upgradeInstallation = async (options: UpgradeOptions): Promise<Upgraded> => {
  const { config, secrets, programs, former, log, say } = options
  const { home, major } = await dataVersion(config.DATA_DIR)
  if (isInUse(join(home, 'use.lock')))
    throw new StartError('This installation is in use: stop its servers and workers first.')
  const installed = await installedBinaries(process.platform, process.arch)
  const binaries = former ?? installed
  if (majorOf(binaries.version) !== major)
    throw new StartError(`The data are of Postgres ${major}, and these binaries are of ${binaries.version}.`)
  const prefix = config.DATABASE_PREFIX
  const start = (dataDir: string, which: Binaries) =>
    startEmbeddedPostgres({
      dataDir,
      binaries: which,
      superuserPassword: embeddedPassword(secrets),
      log: () => undefined,
      maxConnections: embeddedConnections,
    })
  const sideOf = ({ url, socketDirectory }: EmbeddedPostgres): Side => ({
    cluster: { id: '', dsn: url, socketDirectory },
  })
  const old = await start(config.DATA_DIR, binaries)
  let next: EmbeddedPostgres | undefined
  const draft = join(home, `draft-upgrade-${process.pid}`)
  let databases = 0
  try {
    const from = sideOf(old)
    // both hold this program, so that they differ in nothing but rows and what was made by hand
    await prepareInstallation(from.cluster, prefix, programs, secrets, { log })
    const { tenants, others } = await namesOf(from.cluster, prefix)
    if (others.length > 0)
      throw new StartError(
        `These databases are not of Trellis, and would be left behind: ${others.join(', ')}. Drop them, or move them first.`,
      )
    for (const database of tenants) await migrateDatabase(from.cluster, database, programs.tenant)
    await mkdir(draft, { mode: 0o711 })
    next = await start(draft, installed)
    const to = sideOf(next)
    const [source, target] = [await connect(from.cluster, 'postgres'), await connect(to.cluster, 'postgres')]
    try {
      await copyRoles(source, target)
      await prepareInstallation(to.cluster, prefix, programs, secrets, { log })
      await copyDatabase(from, to, controlName(prefix))
      say(`copied   ${controlName(prefix)}`)
      for (const database of tenants) {
        await createTenantDatabase(target, database, templateName(prefix))
        await copyDatabase(from, to, database)
        await using(to.cluster, database, (client) => client.query('select internal.tenant_arrived()'))
        databases += 1
        say(`copied   ${database}, ${databases} of ${tenants.length}`)
      }
    } finally {
      await Promise.all([source.end(), target.end()])
    }
    await next.stop()
    await old.stop()
    const kept = await settle(home, draft, major)
    return { from: major, to: majorOf(installed.version), databases, kept }
  } finally {
    await next?.stop().catch(() => undefined)
    await old.stop().catch(() => undefined)
    await rm(draft, { recursive: true, force: true })
  }
}

/** Two renames: killed between them, the next start finds no cluster under its name, and `cluster-<major>` beside. */
const settle = async (home: string, draft: string, major: string): Promise<string> => {
  const kept = join(home, `cluster-${major}`)
  await rm(kept, { recursive: true, force: true })
  // what somebody has set by ALTER SYSTEM
  await copyFile(join(home, 'cluster/postgresql.auto.conf'), join(draft, 'cluster/postgresql.auto.conf'))
  await rename(join(home, 'cluster'), kept)
  await rename(join(draft, 'cluster'), join(home, 'cluster'))
  return kept
}
