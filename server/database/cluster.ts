import pg from 'pg'
import { currentHost, cutWhenMoved, hostsOf, locateOnce, tlsOf } from '#server/database/hosts.ts'
import { learnPasswords } from '#server/database/passwords.ts'
import type { Secrets } from '#server/secrets.ts'

/** A database as a call names it. */
export type Place = {
  readonly cluster: Cluster
  readonly database: string
  readonly kind: 'control' | 'tenant'
  /** Connections that this process may hold to it, where an operator has set fewer than others have. */
  readonly mostConnections?: number
}

/** The connection parameters of one login to one database. */
export type Target = {
  readonly key: string
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password: string
  readonly ssl?: pg.ClientConfig['ssl'] | undefined
  /** The control database: tenants together leave room for its connections. */
  readonly isControl?: boolean
  /** Connections to this database at most, where that is less than `perTenant`. */
  readonly mostConnections?: number
}

/** The roles that serve requests: one login, and one pool, for each. Names are the whole cluster's. */
export const controlRoles = ['control_anon', 'control_developer', 'control_auth', 'control_worker'] as const
export const tenantRoles = [
  'app_anon',
  'app_user',
  'app_server',
  'app_admin',
  'app_auth',
  'app_dashboard',
  'app_worker',
  'app_rest',
] as const
export type Role = (typeof controlRoles)[number] | (typeof tenantRoles)[number]

/**
 * A Postgres server that holds our databases. The dsn is a role with CREATEDB and CREATEROLE; it is never logged. Its parameter
 * `pooler=host:port` names a transaction pooler for the calls of requests and workers; locks, LISTEN, jobs and migrations go to
 * the server itself.
 */
export type Cluster = {
  readonly id: string
  readonly dsn: string
  readonly socketDirectory?: string | null
  /** The server of control, whose standby DATABASE_REPLICA_URL is. */
  readonly isOwn?: boolean
}

export const loginPassword = (secrets: Secrets, login: string) =>
  secrets.deriveCurrent(`login:${login}`, 24).toString('base64url')

/** Lets this process connect with the passwords of every key: which one a login has changes while keys are rotated. */
export const learnLogins = (secrets: Secrets): void => {
  for (const role of [...controlRoles, ...tenantRoles])
    learnPasswords(secrets.deriveAll(`login:login_${role}`, 24).map((bytes) => bytes.toString('base64url')))
}

/** Host, port and TLS of a cluster: of several hosts the one that takes writes, as far as it is known. */
export const address = (cluster: Cluster, pooled = false) => {
  const url = new URL(cluster.dsn)
  const pooler = pooled ? url.searchParams.get('pooler') : null
  if (pooler) url.host = pooler
  const current = pooler ? null : currentHost(cluster.dsn)
  const port = current?.port ?? Number(url.port || (pooler ? 6432 : 5432))
  const host =
    current?.host ??
    (pooler ? null : cluster.socketDirectory) ??
    decodeURIComponent((pooler ? null : url.searchParams.get('host')) ?? url.hostname)
  return { host, port, ssl: tlsOf(url) }
}

/** How the login of a role reaches a database of this cluster. */
export const targetOf = (cluster: Cluster, database: string, role: Role, secrets: Secrets): Target => ({
  key: `${cluster.id}/${database}`,
  ...address(cluster, true),
  database,
  user: `login_${role}`,
  password: loginPassword(secrets, `login_${role}`),
})

/**
 * How PostgREST reaches a database of this cluster: not through a pooler, because it listens. Its login may become `app_rest`, which has
 * what `app_user` has, and `app_server`.
 */
export const restUri = (cluster: Cluster, database: string, secrets: Secrets): string => {
  const { host, port } = address(cluster)
  const hosts = hostsOf(cluster.dsn)
  // libpq finds the primary itself when it connects again
  const where =
    hosts.length > 0
      ? {
          host: hosts.map((one) => one.host).join(),
          port: hosts.map((one) => one.port).join(),
          target_session_attrs: 'read-write',
          // libpq waits for minutes for a machine that is gone
          connect_timeout: '2',
          keepalives_idle: '2',
          keepalives_interval: '1',
          keepalives_count: '3',
          tcp_user_timeout: '5000',
        }
      : { host, port: String(port) }
  const settings = new URLSearchParams({ ...where, application_name: 'trellis_rest' })
  for (const name of ['sslmode', 'sslrootcert']) {
    const value = new URL(cluster.dsn).searchParams.get(name)
    if (value) settings.set(name, value)
  }
  const login = 'login_app_rest'
  return `postgresql://${login}:${loginPassword(secrets, login)}@/${encodeURIComponent(database)}?${settings}`
}

/** Connection settings of the cluster's administrator, acting as the owner of our objects once `asOwner`. */
export const adminConfig = (cluster: Cluster, database: string, asOwner = true, settings = ''): pg.ClientConfig => {
  const url = new URL(cluster.dsn)
  return {
    ...address(cluster),
    database,
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    application_name: 'trellis_admin',
    connectionTimeoutMillis: 10_000,
    // queries of the catalog look dear to the planner, and compiling one takes a second
    ...(asOwner ? { options: `-c role=trellis_owner -c jit=off ${settings}`.trim() } : {}),
  }
}

export const connectAdmin = async (
  cluster: Cluster,
  database: string,
  asOwner = true,
  settings = '',
): Promise<pg.Client> => {
  await locateOnce(cluster.dsn)
  const client = new pg.Client(adminConfig(cluster, database, asOwner, settings))
  client.on('error', () => undefined)
  cutWhenMoved(client)
  await client.connect()
  return client
}

/** The database that the administrator's dsn names: where locks of the whole cluster are taken. */
export const maintenanceDatabase = (cluster: Cluster) => new URL(cluster.dsn).pathname.slice(1) || 'postgres'
