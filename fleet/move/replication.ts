import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { MovedTable } from '#fleet/move/copy.ts'
import { adminConfig, type Cluster, maintenanceDatabase } from '#server/database/cluster.ts'
import { StartError } from '#server/errors.ts'

/** Of the publication, the subscription and the slot of a move. */
export const nameOf = (projectId: string) => `trellis_move_${projectId.replaceAll('-', '')}`

export const connect = async (cluster: Cluster, database: string): Promise<pg.Client> => {
  const client = new pg.Client({ ...adminConfig(cluster, database, false), application_name: 'trellis_move' })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

/** Work with an administrator's connection. */
export const using = async <T>(
  cluster: Cluster,
  database: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> => {
  const client = await connect(cluster, database)
  return work(client).finally(() => client.end().catch(() => undefined))
}

export const onServer = <T>(cluster: Cluster, work: (client: pg.Client) => Promise<T>) =>
  using(cluster, maintenanceDatabase(cluster), work)

/** Takes a subscription away without asking the server that it reads from, which may be gone. */
export const dropSubscription = async (client: pg.Client, name: string): Promise<void> => {
  const { rowCount } = await client.query(
    `select from pg_catalog.pg_subscription s where s.subname = $1
        and s.subdbid = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())`,
    [name],
  )
  if (rowCount === 0) return
  await client.query(`alter subscription ${name} disable`)
  await client.query(`alter subscription ${name} set (slot_name = none)`)
  await client.query(`drop subscription ${name}`)
}

export const dropSlot = (cluster: Cluster, name: string): Promise<void> =>
  onServer(cluster, async (admin) => {
    const active = `select active_pid as pid from pg_catalog.pg_replication_slots where slot_name = $1`
    for (let tries = 0; ; tries += 1) {
      const { rows } = await admin.query<{ pid: number | null }>(active, [name])
      if (!rows[0]) return
      if (rows[0].pid === null) {
        await admin.query('select pg_drop_replication_slot($1)', [name])
        return
      }
      await admin.query('select pg_terminate_backend($1)', [rows[0].pid])
      if (tries > 100) throw new Error(`the replication slot ${name} stays in use`)
      await sleep(100)
    }
  })

/** Publishes tables that are not published yet. A table without a key is followed by its whole rows. */
export const publish = async (source: pg.Client, name: string, tables: readonly MovedTable[]): Promise<boolean> => {
  const { rows } = await source.query<{ name: string }>(
    `select r.prrelid::regclass::text as name from pg_catalog.pg_publication_rel r join pg_catalog.pg_publication p on p.oid = r.prpubid
      where p.pubname = $1`,
    [name],
  )
  const published = new Set(rows.map((row) => row.name))
  const added = tables.filter((table) => !published.has(table.name))
  if (added.length === 0) return false
  await source.query(`set lock_timeout = '5s'`)
  for (const table of added.filter(({ hasIdentity }) => !hasIdentity))
    await source.query(`alter table ${table.name} replica identity full`)
  const list = added.map((table) => `only ${table.name}`).join(', ')
  const exists = await source.query('select from pg_catalog.pg_publication where pubname = $1', [name])
  await source.query(
    exists.rowCount ? `alter publication ${name} add table ${list}` : `create publication ${name} for table ${list}`,
  )
  return true
}

type Standing = { readonly enabled: boolean; readonly waiting: number }

/** Throws when the other server has stopped to follow. */
export const checkFollowing = async (target: pg.Client, name: string): Promise<Standing> => {
  const { rows } = await target.query<Standing>(
    `select s.subenabled as enabled,
            (select count(*)::int from pg_catalog.pg_subscription_rel r where r.srsubid = s.oid and r.srsubstate <> 'r') as waiting
       from pg_catalog.pg_subscription s where s.subname = $1`,
    [name],
  )
  const [found] = rows
  if (!found) throw new StartError('The other server does not follow: its subscription is gone.')
  if (!found.enabled)
    throw new StartError(
      'The other server has stopped to follow, because it could not apply a change: its log says which. Was the structure of a table changed meanwhile?',
    )
  return found
}
