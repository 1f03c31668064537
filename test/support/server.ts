import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { grantConnect } from '#fleet/cluster.ts'
import type { Programs } from '#fleet/installation.ts'
import { readProgram } from '#fleet/load/files.ts'
import { prepare } from '#fleet/prepare.ts'
import { readConfig } from '#server/config.ts'
import {
  connectAdmin,
  controlRoles,
  maintenanceDatabase,
  type Role,
  targetOf,
  tenantRoles,
} from '#server/database/cluster.ts'
import { controlName, templateName } from '#server/database/names.ts'
import { createSecrets } from '#server/secrets.ts'
import { assemble, type Harness as Hooks, type Running } from '#server/start.ts'
import { openLimits } from '#test/support/open_limits.ts'

/** What a run of the suite has prepared once: one Postgres, and databases that are copied. */
export type Base = {
  readonly dsn: string
  readonly socketDirectory: string | null
  readonly secretsKey: string
  /** The cluster's id in every copy of the control database. */
  readonly clusterId: string
}

export const basePrefix = 'trellis_base'
/** A project's database with every step of provisioning done; only the id of its project is not in it. */
export const readyDatabase = `${basePrefix}_ready`

/** A server in this process, with a control database of its own, and an administrator's connection to its Postgres. */
export type TestServer = {
  readonly running: Running
  readonly url: string
  readonly prefix: string
  readonly admin: pg.Client
  /** Connections of the owner of a database's objects. */
  owner(database: string): pg.Pool
  /** Connections of the login that may become this role. */
  login(database: string, role: Role): pg.Pool
  /**
   * Copies the ready database for a project that control has just made; what is left of its provisioning takes one query. Under a
   * passed clock the partitions of that time are still to be made.
   */
  makeReady(projectId: string, isClockPassed: boolean): Promise<void>
  stop(): Promise<void>
}

// file_copy is a third of wal_log's cost where nothing is forced to disk
const copyOf = (name: string, template: string) =>
  `create database "${name}" owner trellis_owner template "${template}" strategy file_copy`

/** A hash of the real cost takes longer than the request that it is made for. */
export const cheapPasswords = { memoryCost: 8, timeCost: 1 }

let programs: Promise<Programs> | undefined
/** Read once: 300 files, and no test changes those of the repository. */
const ownPrograms = (): Promise<Programs> => {
  programs ??= Promise.all([readProgram('control'), readProgram('tenant')]).then(([control, tenant]) => ({
    control,
    tenant,
  }))
  return programs
}

/** The base is prepared already, so a copy of it is; other SQL than the repository's is loaded as a start does it. */
const prepared = async (foundation: Parameters<typeof prepare>[0], hooks: Hooks, clusterId: string) => {
  if (hooks.sqlRoot) return prepare(foundation, hooks)
  const { dsn, socketDirectory } = foundation.postgres
  return { programs: await ownPrograms(), cluster: { id: clusterId, dsn, socketDirectory } }
}

export const startTestServer = async (
  base: Base,
  env: Record<string, string | undefined>,
  hooks: Hooks = {},
): Promise<TestServer> => {
  const { dsn, socketDirectory, secretsKey } = base
  const prefix = `t${randomBytes(5).toString('hex')}`
  const config = readConfig({
    DATABASE_URL: dsn,
    SECRETS_KEY: secretsKey,
    DATABASE_PREFIX: prefix,
    DATA_DIR: join(tmpdir(), `trellis-${prefix}`),
    PORT: '0',
    LOG_LEVEL: 'warn',
    TRUST_PROXY: 'true',
    GENERAL_RATE_LIMITS: 'off',
    ...openLimits,
    DATABASE_STATEMENTS: process.env['DATABASE_STATEMENTS'],
    ...env,
  })
  const secrets = createSecrets(secretsKey)
  const cluster = { id: 'test', dsn, socketDirectory }
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  const [control, template] = [controlName(prefix), templateName(prefix)]
  await admin.query(copyOf(control, controlName(basePrefix)))
  await admin.query(copyOf(template, templateName(basePrefix)))
  // privileges of a database are not copied with it
  await grantConnect(admin, control, controlRoles)
  await admin.query(`revoke all on database "${template}" from public`)
  await admin.query(`alter database "${template}" allow_connections false`)

  const postgres = { dsn, socketDirectory, stop: async () => undefined }
  const foundation = { config, log: pino({ level: config.LOG_LEVEL }), secrets, postgres }
  const running = await assemble(foundation, await prepared(foundation, hooks, base.clusterId), hooks)
  const port = await running.listen()

  const pools = new Map<string, pg.Pool>()
  const poolOf = (key: string, settings: pg.PoolConfig): pg.Pool => {
    const known = pools.get(key)
    if (known) return known
    const pool = new pg.Pool(settings)
    // a test may end a connection, or drop its database
    pool.on('error', () => undefined)
    pools.set(key, pool)
    return pool
  }
  const owner = (database: string): pg.Pool => {
    const url = new URL(dsn)
    url.pathname = `/${database}`
    return poolOf(database, { connectionString: url.href, options: '-c role=trellis_owner', max: 4 })
  }
  const login = (database: string, role: Role): pg.Pool => {
    const { host, port, user, password } = targetOf(cluster, database, role, secrets)
    return poolOf(`${database} ${role}`, { host, port, user, password, database, max: 20 })
  }

  const makeReady = async (projectId: string, isClockPassed: boolean) => {
    const database = `${prefix}_${projectId.replaceAll('-', '')}`
    await admin.query(copyOf(database, readyDatabase))
    await grantConnect(admin, database, tenantRoles)
    await owner(control).query(
      `update app.tenants t set steps = (
         select jsonb_agg(case when s.value ->> 'name' = any ($2) then s.value
                               else s.value || '{"status": "succeeded"}' end order by s.n)
           from jsonb_array_elements(t.steps) with ordinality s (value, n)) where t.project_id = $1`,
      [projectId, ['seed_defaults', ...(isClockPassed ? ['verify'] : [])]],
    )
  }

  const stop = async () => {
    await running.stop()
    await Promise.all([...pools.values()].map((pool) => pool.end()))
    const { rows } = await admin.query<{ datname: string }>(`select datname from pg_database where datname like $1`, [
      `${prefix}\\_%`,
    ])
    for (const { datname } of rows)
      await admin.query(`drop database if exists "${datname}" with (force)`).catch(() => undefined)
    await admin.end()
  }

  const url = `http://127.0.0.1:${port}`
  return { running, url, prefix, admin, owner, login, makeReady, stop }
}
