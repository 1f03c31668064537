import pg from 'pg'
import { address, adminConfig, type Cluster, connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { StartError } from '#server/errors.ts'

type Ability = {
  readonly is_superuser: boolean
  readonly wal_level: string
  readonly slots: number
  readonly major: number
  readonly system: string
}

const abilityOf = async (cluster: Cluster): Promise<Ability> => {
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  try {
    const { rows } = await admin.query<Ability>(
      `select (select r.rolsuper from pg_catalog.pg_roles r where r.rolname = current_user) as is_superuser,
              current_setting('wal_level') as wal_level,
              current_setting('max_replication_slots')::int - (select count(*)::int from pg_catalog.pg_replication_slots) as slots,
              current_setting('server_version_num')::int / 10000 as major,
              (select c.system_identifier::text from pg_catalog.pg_control_system() c) as system`,
    )
    return rows[0] as Ability
  } finally {
    await admin.end()
  }
}

/** Throws what keeps a project from moving from one server to the other, with what to do about it. */
export const checkServers = async (from: Cluster, to: Cluster): Promise<void> => {
  const [source, target] = await Promise.all([abilityOf(from), abilityOf(to)])
  if (source.system === target.system) throw new StartError('The two are one server: there is nowhere to move to.')
  if (!source.is_superuser || !target.is_superuser)
    throw new StartError('The roles of both addresses must be superusers: logical replication of all tables needs it.')
  if (source.wal_level !== 'logical')
    throw new StartError(
      `The server that the project is on has wal_level ${source.wal_level}: alter system set wal_level = 'logical', and restart it.`,
    )
  if (source.slots < 1)
    throw new StartError('The server that the project is on has no replication slot left: raise max_replication_slots.')
  if (target.major < source.major)
    throw new StartError(`Postgres ${source.major} cannot be moved to the older Postgres ${target.major}.`)
}

const quoted = (value: string) => `'${value.replaceAll(/[\\']/g, '\\$&')}'`

/** How the other server reaches this database: libpq's keywords. */
export const conninfo = (cluster: Cluster, database: string): string => {
  const url = new URL(cluster.dsn)
  const { host, port } = address({ ...cluster, socketDirectory: null })
  const parts: Record<string, string> = {
    host,
    port: String(port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    dbname: database,
    application_name: 'trellis_move',
  }
  const mode = url.searchParams.get('sslmode')
  if (mode) parts['sslmode'] = mode
  return Object.entries(parts)
    .map(([name, value]) => `${name}=${quoted(value)}`)
    .join(' ')
}

/**
 * A slot from which changes are read, and the snapshot just before the first of them, which lasts as long as the connection that is answered.
 */
export const createSlot = async (
  cluster: Cluster,
  database: string,
  slot: string,
): Promise<{ readonly snapshot: string; end(): Promise<void> }> => {
  const settings = { ...adminConfig(cluster, database, false), replication: 'database' } as pg.ClientConfig
  const client = new pg.Client(settings)
  client.on('error', () => undefined)
  await client.connect()
  try {
    const { rows } = await client.query<{ snapshot_name: string }>(
      // of the replication protocol, whose words are in capitals
      `CREATE_REPLICATION_SLOT ${pg.escapeIdentifier(slot)} LOGICAL pgoutput (SNAPSHOT 'export')`,
    )
    return { snapshot: rows[0]?.snapshot_name ?? '', end: () => client.end().catch(() => undefined) }
  } catch (error) {
    await client.end()
    throw error
  }
}
