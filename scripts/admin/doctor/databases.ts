import type { Config } from '#server/config.ts'
import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import type { Run } from '../arguments.ts'
import { type Finding, fail, graded, ok, span, warn } from './findings.ts'

type Server = {
  readonly version: string
  readonly major: number
  readonly may_create: boolean
  readonly is_standby: boolean
  readonly most: number
  readonly used: number
  readonly data_checksums: string
  readonly fsync: string
  readonly autovacuum: string
}

const serverQuery = `
  select current_setting('server_version') as version, current_setting('server_version_num')::int / 10000 as major,
         r.rolsuper or (r.rolcreatedb and r.rolcreaterole) as may_create, pg_is_in_recovery() as is_standby,
         current_setting('max_connections')::int as most,
         (select count(*)::int from pg_catalog.pg_stat_activity where backend_type = 'client backend') as used,
         current_setting('data_checksums') as data_checksums, current_setting('fsync') as fsync, current_setting('autovacuum') as autovacuum
    from pg_catalog.pg_roles r where r.rolname = current_user`

const wraparoundQuery = `
  select datname as database, age(datfrozenxid) as age
    from pg_catalog.pg_database order by age(datfrozenxid) desc limit 1`

const longQuery = `
  select pid, datname as database, coalesce(usename::text, '') as user, state,
         extract(epoch from clock_timestamp() - xact_start) as seconds
    from pg_catalog.pg_stat_activity
   where xact_start is not null and backend_type = 'client backend' and pid <> pg_backend_pid() and starts_with(datname, $1)
   order by xact_start limit 1`

const slotQuery = `
  select slot_name as name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8 as bytes
    from pg_catalog.pg_replication_slots where not active order by 2 desc nulls last limit 1`

const archiveQuery = `
  select current_setting('archive_mode') as mode, last_failed_wal as failed, last_failed_time as "failedAt",
         last_failed_time > coalesce(last_archived_time, '-infinity') as fails
    from pg_catalog.pg_stat_archiver`

type Archive = {
  readonly mode: string
  readonly failed: string | null
  readonly failedAt: Date | null
  readonly fails: boolean | null
}

const archiving = (found: Archive | undefined, wanted: string | undefined): Finding => {
  if (found?.mode === 'off' || !found)
    return wanted === undefined
      ? ok('archive', 'the write-ahead log is not archived: what is restored is the moment of a backup')
      : fail(
          'archive',
          'ARCHIVE_TO is set, and Postgres archives nothing',
          'It is read when Postgres starts: stop every process that uses DATA_DIR, and start again.',
        )
  if (found.fails)
    return fail(
      'archive',
      `${found.failed} could not be archived, at ${found.failedAt?.toISOString()}`,
      'Postgres keeps every segment until it is: look at postgres.log, and at the room and the rights of the archive.',
    )
  return ok('archive', 'the write-ahead log is archived')
}

const deadQuery = `
  select relid::regclass::text as name, n_dead_tup::float8 as dead, n_live_tup::float8 as live
    from pg_catalog.pg_stat_user_tables where n_dead_tup > 100000 and n_dead_tup > 0.5 * (n_live_tup + 1)
   order by n_dead_tup desc limit 1`

/** The newest minor version of a major one when this program was released. */
const newestKnown: Readonly<Record<number, number>> = { 15: 20, 18: 6 }

/** npm's Postgres lags behind, and its libraries are those that it was built with: enough to try Trellis, and for one machine. */
export const versionFinding = (
  { major, version }: Pick<Server, 'major' | 'version'>,
  config: Pick<Config, 'DATABASE_URL' | 'POSTGRES_BIN'>,
): Finding => {
  const name = 'version of Postgres'
  if (major < 15) return fail(name, version, 'Upgrade it: 15 to 18 are supported.')
  if (major > 18) return warn(name, version, 'It is newer than what this program is tested with: 15 to 18.')
  const newest = newestKnown[major] ?? 0
  const isBehind = Number(/^\d+\.(\d+)/.exec(version)?.[1] ?? 0) < newest
  if (config.DATABASE_URL === undefined && config.POSTGRES_BIN === undefined)
    return ok(
      name,
      `${version}, of npm: for trying, and for one machine. ${isBehind ? `${major}.${newest} has security fixes: ` : ''}POSTGRES_BIN takes the one of the system, which updates it`,
    )
  return isBehind ? warn(name, version, `${major}.${newest} has security fixes: update it.`) : ok(name, version)
}

const ofServer = (server: Server, run: Run): Finding[] => {
  const { DATABASE_CONNECTIONS: pool, WEB_CONCURRENCY: processes } = run.foundation.config
  // the queue's and the listener's connections come on top, and three are kept for superusers
  const wanted = processes * (pool + 20) + 10
  return [
    versionFinding(server, run.foundation.config),
    server.may_create
      ? ok('role', 'it may create databases and roles')
      : fail(
          'role',
          'the role of DATABASE_URL may not create databases and roles',
          'alter role ... createdb createrole',
        ),
    server.is_standby
      ? fail('primary', 'this server is a standby: nothing can be written', 'Point DATABASE_URL at the primary.')
      : ok('primary', 'this server takes writes'),
    wanted > server.most
      ? fail(
          'max_connections',
          `${server.most}, and the ${processes} server processes of this environment may open ${wanted}`,
          `Raise max_connections, or lower DATABASE_CONNECTIONS to ${Math.max(10, Math.floor((server.most - 10) / processes) - 20)}.`,
        )
      : graded(
          'max_connections',
          server.used / server.most,
          { failed: 0.95, warning: 0.8 },
          {
            found: `${server.used} of ${server.most} in use; this environment may open ${wanted}`,
            remedy: 'Raise max_connections, or lower DATABASE_CONNECTIONS of the processes.',
          },
        ),
    server.fsync === 'on'
      ? ok('fsync', 'on')
      : fail('fsync', 'off: a crash of the machine destroys the data', "alter system set fsync = 'on', then reload."),
    server.autovacuum === 'on'
      ? ok('autovacuum', 'on')
      : fail('autovacuum', 'off: tables grow, and Postgres stops in the end', "alter system set autovacuum = 'on'"),
    server.data_checksums === 'on'
      ? ok('checksums', 'on')
      : warn(
          'checksums',
          'off: a disk that returns wrong bytes is not noticed',
          'pg_checksums --enable, while Postgres is stopped',
        ),
  ]
}

export const databaseChecks = async (run: Run): Promise<Finding[]> => {
  const { cluster, control, foundation } = run
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  try {
    const one = async <T extends object>(text: string, args: unknown[] = []): Promise<T | undefined> =>
      (await admin.query<T>(text, args)).rows[0]
    const server = await one<Server>(serverQuery)
    const oldest = await one<{ database: string; age: number }>(wraparoundQuery)
    const prefix = `${foundation.config.DATABASE_PREFIX}_`
    const long = await one<{ pid: number; database: string; user: string; state: string; seconds: string }>(longQuery, [
      prefix,
    ])
    const slot = await one<{ name: string; bytes: number | null }>(slotQuery)
    const archive = await one<Archive>(archiveQuery)
    const { rows: dead } = await control.query<{ name: string; dead: number; live: number }>(deadQuery)
    return [
      ...(server ? ofServer(server, run) : []),
      archiving(archive, foundation.config.ARCHIVE_TO),
      graded(
        'transaction ids',
        oldest?.age ?? 0,
        { failed: 1_500_000_000, warning: 500_000_000 },
        {
          found: `${((oldest?.age ?? 0) / 1e6).toFixed(0)} million since ${oldest?.database} was last frozen; Postgres stops at two billion`,
          remedy: `vacuum (freeze) in ${oldest?.database}, and see what keeps autovacuum from it: long transactions, replication slots.`,
        },
      ),
      graded(
        'long transactions',
        Number(long?.seconds ?? 0),
        { failed: 3600, warning: 300 },
        {
          found: long
            ? `the oldest runs for ${span(Number(long.seconds))}: process ${long.pid} in ${long.database} (${long.user}, ${long.state})`
            : 'none',
          remedy: `Nothing is cleaned up while it runs. To end it: select pg_terminate_backend(${long?.pid})`,
        },
      ),
      graded(
        'replication slots',
        (slot?.bytes ?? 0) / 1e9,
        { failed: 10, warning: 1 },
        {
          found: slot
            ? `${slot.name} is used by nobody and keeps ${((slot.bytes ?? 0) / 1e9).toFixed(1)} GB of WAL`
            : 'none is left behind',
          remedy: `select pg_drop_replication_slot('${slot?.name}'), unless somebody still needs it; one of a move: run the move again.`,
        },
      ),
      dead[0]
        ? warn(
            'bloat',
            `${dead[0].name} of control has ${dead[0].dead} dead rows beside ${dead[0].live}`,
            `vacuum (analyze) ${dead[0].name}`,
          )
        : ok('bloat', 'no table of control has more dead rows than live ones'),
    ]
  } finally {
    await admin.end()
  }
}
