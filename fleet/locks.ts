import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { type Cluster, connectAdmin, controlRoles, maintenanceDatabase, tenantRoles } from '#server/database/cluster.ts'
import { StartError } from '#server/errors.ts'

/** An advisory lock of a session: the arguments that take it, and the row of pg_locks that shows it. */
export type AdvisoryLock = {
  readonly name: string
  readonly values: readonly (string | number)[]
  readonly take: string
  readonly shown: string
}

export const numberedLock = (name: string, key: number): AdvisoryLock => ({
  name,
  values: [key],
  take: '$1::bigint',
  shown: `l.classid = ($1::bigint >> 32)::oid and l.objid = ($1::bigint & 4294967295)::oid and l.objsubid = 1`,
})

const namedLock = (name: string, space: number, of: string): AdvisoryLock => ({
  name,
  values: [of],
  take: `${space}, hashtext($1::text)`,
  shown: `l.classid = ${space}::oid and l.objid = (hashtext($1::text)::bigint & 4294967295)::oid and l.objsubid = 2`,
})

// The register of session locks; those of transactions are in sql/shared/45_locks.sql.
/** Held while roles, control and the template are brought to a program. */
const bootstrapLock = numberedLock('the whole server', 7_305_441_001)
/** Held in a database while it is migrated: dbmate takes no lock of its own. */
export const migrationLock = (database: string) => numberedLock(`migrations of ${database}`, 7_305_441_002)
/** Held in the maintenance database while one database is made or dropped. */
const databaseLock = (database: string) => namedLock(`making and dropping ${database}`, 73_054_411, database)

type Holder = { readonly pid: number; readonly user: string; readonly application: string; readonly since: string }

export type LockOptions = {
  /** Another connection of the administrator's to the same database. */
  readonly connect: () => Promise<pg.Client>
  readonly log?: Pick<Logger, 'warn'> | undefined
  readonly patienceMs?: number
}

const logins = [...controlRoles, ...tenantRoles].map((role) => `login_${role}`)

/**
 * Takes a lock that only administrators take. Advisory locks are open to every login that may connect, so a login that holds this
 * one, or waits for it before us, loses its connection. For another administrator (a start, a migration) it waits, and after
 * `patienceMs` throws a StartError that names the holder.
 */
export const takeLock = async (client: pg.Client, lock: AdvisoryLock, options: LockOptions): Promise<void> => {
  const { rows } = await client.query<{ taken: boolean; pid: number }>(
    `select pg_try_advisory_lock(${lock.take}) as taken, pg_backend_pid() as pid`,
    [...lock.values],
  )
  if (rows[0]?.taken !== false) return
  const waiting = client.query(`select pg_advisory_lock(${lock.take})`, [...lock.values]).then(() => true)
  // awaited below; an error of the connection must not go unhandled meanwhile
  waiting.catch(() => undefined)
  const watcher = await options.connect()
  try {
    await watch(watcher, lock, rows[0].pid, waiting, options)
  } finally {
    await watcher.end()
  }
}

const watch = async (
  watcher: pg.Client,
  lock: AdvisoryLock,
  ourPid: number,
  waiting: Promise<boolean>,
  { log, patienceMs = 300_000 }: LockOptions,
): Promise<void> => {
  const until = Date.now() + patienceMs
  let isAnnounced = false
  for (let pauseMs = 50; ; pauseMs = Math.min(1000, pauseMs * 2)) {
    const holders = await endLogins(watcher, lock, ourPid, log)
    if (await Promise.race([waiting, sleep(pauseMs, false)])) return
    const [holder] = holders
    if (!holder) continue
    const held = `The lock of ${lock.name} is held by process ${holder.pid} of Postgres (${holder.user}, ${holder.application || 'unnamed'}, connected since ${holder.since}).`
    if (Date.now() > until) {
      await watcher.query('select pg_cancel_backend($1)', [ourPid])
      throw new StartError(`${held} Wait for it, or end it: select pg_terminate_backend(${holder.pid})`)
    }
    if (!isAnnounced && pauseMs === 1000) {
      log?.warn(`${held} Waiting for it.`)
      isAnnounced = true
    }
  }
}

/** Ends logins that hold the lock or wait for it; answers who else holds it. */
const endLogins = async (
  watcher: pg.Client,
  lock: AdvisoryLock,
  ourPid: number,
  log: LockOptions['log'],
): Promise<Holder[]> => {
  const { rows } = await watcher.query<Holder & { granted: boolean }>(
    `select a.pid, a.usename::text as user, a.application_name as application, l.granted,
            to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') as since
       from pg_catalog.pg_locks l
       join pg_catalog.pg_stat_activity a on a.pid = l.pid
      where l.locktype = 'advisory' and ${lock.shown} and l.pid <> $2
        and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())`,
    [...lock.values, ourPid],
  )
  for (const { pid, user } of rows.filter((row) => logins.includes(row.user))) {
    log?.warn({ backend: pid, user }, `a login held the lock of ${lock.name}: its connection is ended`)
    await watcher
      .query('select pg_terminate_backend($1)', [pid])
      .catch((error: Error) =>
        log?.warn({ backend: pid, user, error: error.message }, 'its connection cannot be ended'),
      )
  }
  return rows.filter((row) => row.granted)
}

const locked = async <T>(
  cluster: Cluster,
  lock: AdvisoryLock,
  work: (admin: pg.Client) => Promise<T>,
  log: LockOptions['log'],
): Promise<T> => {
  const connect = () => connectAdmin(cluster, maintenanceDatabase(cluster), false)
  const admin = await connect()
  try {
    await takeLock(admin, lock, { connect, log })
    return await work(admin)
  } finally {
    await admin.end()
  }
}

/**
 * Runs under one lock for the whole cluster: role changes of two bootstraps at once fail with "tuple concurrently
 * updated", and advisory locks are per database, so all meet in the maintenance database.
 */
export const withClusterLock = <T>(
  cluster: Cluster,
  work: (admin: pg.Client) => Promise<T>,
  log?: LockOptions['log'],
): Promise<T> => locked(cluster, bootstrapLock, work, log)

/**
 * Exclusive access to one database: a removal waits for a running creation, also for one whose worker died, and a creation that
 * follows finds the project deleted. So no orphaned database remains.
 */
export const withDatabaseLock = <T>(
  cluster: Cluster,
  database: string,
  work: (admin: pg.Client) => Promise<T>,
  log?: LockOptions['log'],
): Promise<T> => locked(cluster, databaseLock(database), work, log)
