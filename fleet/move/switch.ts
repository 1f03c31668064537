import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { differences, type Made, readCatalog } from '#fleet/move/catalog.ts'
import { type MovedTable, movedTables, sumsOf, unequal } from '#fleet/move/copy.ts'
import { connect, dropSubscription, nameOf, onServer } from '#fleet/move/replication.ts'
import { type Cluster, maintenanceDatabase } from '#server/database/cluster.ts'

/** A function of control that operators call, and what servers are told of afterwards. */
export type Ask = <T>(name: string, args: Readonly<Record<string, string | boolean>>) => Promise<T>

export type MoveOptions = {
  readonly projectId: string
  readonly database: string
  readonly template: string
  readonly from: Cluster
  readonly to: Cluster
  readonly control: pg.Client
  readonly ask: Ask
  readonly say: (line: string) => void
  /** For tests and proofs: called at these points, where a failure is undone. */
  readonly at?: (point: 'copied' | 'held' | 'switched') => Promise<void>
}

/** Longest wait for statements under way, once servers refuse new ones; then they are cut off, and answered 503. */
const drainMs = 1_000
/** Longest check of all rows while nobody is served. One that takes longer goes on afterwards, on the snapshot of this moment. */
const checkMs = 600
/** The whole pause: what has not arrived by then is not waited for. */
const arriveMs = 2_500

export const reopen = (cluster: Cluster, database: string) =>
  onServer(cluster, (admin) => admin.query(`alter database "${database}" allow_connections true`))

/** Lets statements under way end, then closes the database to everybody but those who have a connection of ours. */
export const fence = async (admin: pg.Client, database: string, ours: number[]): Promise<void> => {
  // the login of dashboards tells no state (sql/cluster/roles.sql): one of its sessions that waits for its client is idle
  const busy = `select from pg_catalog.pg_stat_activity
                 where datname = $1 and backend_type = 'client backend' and pid <> all ($2) and state <> 'idle'
                   and (state <> 'disabled' or wait_event is distinct from 'ClientRead') limit 1`
  const until = performance.now() + drainMs
  // the servers are told within a moment; a statement that began before that ends in order
  await sleep(100)
  while (performance.now() < until && (await admin.query(busy, [database, ours])).rowCount) await sleep(20)
  await admin.query(`alter database "${database}" allow_connections false`)
  // autovacuum gives way by itself, and only a superuser may end it
  const others = `from pg_catalog.pg_stat_activity
                  where datname = $1 and backend_type not in ('walsender', 'autovacuum worker') and pid <> all ($2)`
  for (;;) {
    const { rowCount } = await admin.query(`select pg_terminate_backend(pid) ${others}`, [database, ours])
    if (!rowCount) return
    if (performance.now() > until + drainMs) throw new Error('connections to the database cannot be ended')
    await sleep(20)
  }
}

/** The last transaction of the source: where it is, everything before it is. */
export const mark = async (source: pg.Client): Promise<string> => {
  const token = randomUUID()
  await source.query(`select internal.set_setting('move', to_jsonb($1::text))`, [token])
  return token
}

export const arrived = async (target: pg.Client, token: string, until: number): Promise<void> => {
  const there = `select from app.settings s where s.key = 'move' and s.value = to_jsonb($1::text)`
  while (!(await target.query(there, [token])).rowCount) {
    if (performance.now() > until) throw new Error('the last change has not arrived in time')
    await sleep(10)
  }
}

export const copySequences = async (source: pg.Client, target: pg.Client): Promise<void> => {
  await source.query(`set search_path = ''`)
  const { rows } = await source.query<{ name: string; last: string }>(
    `select format('%I.%I', q.schemaname, q.sequencename) as name, q.last_value::text as last
       from pg_catalog.pg_sequences q where q.last_value is not null and q.schemaname !~ '^pg_'`,
  )
  await target.query(`select setval(n::regclass, v::bigint) from unnest($1::text[], $2::text[]) as s (n, v)`, [
    rows.map(({ name }) => name),
    rows.map(({ last }) => last),
  ])
}

/**
 * The sums of one side; null when they take longer than nobody should wait. The bound is a setting of the transaction, which a cancelled statement ends:
 * `set statement_timeout = 0` would itself be cancelled on a machine that stops for a moment.
 */
const quickSums = async (side: pg.Client, tables: readonly MovedTable[]) => {
  try {
    await side.query(`begin; set local statement_timeout = ${checkMs}`)
    const sums = await sumsOf(side, tables)
    await side.query('commit')
    return sums
  } catch (error) {
    await side.query('rollback')
    if ((error as { code?: string }).code === '57014') return null
    throw error
  }
}

/** Rows of both sides that are not the same; null when that was not found in time. */
const quickCheck = async (source: pg.Client, target: pg.Client, tables: readonly MovedTable[]) => {
  const [here, there] = await Promise.all([quickSums(source, tables), quickSums(target, tables)])
  return here && there ? unequal(here, there) : null
}

const sentence = (wrong: readonly string[]) => `the rows are not the same: ${wrong.slice(0, 3).join('; ')}`

export type Switched = {
  readonly pauseMs: number
  readonly tables: number
  /** Whether all rows were compared before anybody was served on the other server. */
  readonly isCheckedBefore: boolean
  /** What is not the same, found afterwards: then nothing of the source is taken away. */
  readonly wrong: readonly string[]
}

/**
 * Nobody is served, the last changes arrive, all is compared, and control names the other server. What fails before that is thrown, with the source closed
 * and the project held. `guards` are connections of the move that stay.
 */
export const switchOver = async (
  { projectId, database, from, to, ask, at = async () => undefined }: MoveOptions,
  guards: readonly number[],
  made: Made,
): Promise<Switched> => {
  const clients: pg.Client[] = []
  const open = async (cluster: Cluster, name: string) => {
    const client = await connect(cluster, name)
    clients.push(client)
    return client
  }
  try {
    const [source, target, frozen, admin] = [
      await open(from, database),
      await open(to, database),
      await open(to, database),
      await open(from, maintenanceDatabase(from)),
    ]
    const tables = await movedTables(source)
    const { rows } = await source.query<{ pid: number }>('select pg_backend_pid() as pid')
    const began = performance.now()
    await ask('operator_move_hold', { project_id: projectId, is_held: true })
    await fence(admin, database, [...guards, ...rows.map(({ pid }) => pid)])
    await at('held')
    const token = await mark(source)
    const [here, there] = await Promise.all([readCatalog(source), readCatalog(target)])
    const [changed] = differences(here, there, made)
    if (changed) throw new Error(`its structure has just changed: ${changed}`)
    await arrived(target, token, began + arriveMs)
    await copySequences(source, target)
    const before = await quickCheck(source, target, tables)
    if (before && before.length > 0) throw new Error(sentence(before))
    // the snapshot of this moment, for what was not compared in time
    await frozen.query('begin isolation level repeatable read read only; select 1')
    await target.query(`delete from app.settings where key = 'move'`)
    await target.query('select internal.tenant_arrived()')
    await dropSubscription(target, nameOf(projectId))
    if (!(await ask<boolean>('operator_move_switch', { project_id: projectId })))
      throw new Error('the project has changed meanwhile')
    const pauseMs = performance.now() - began
    await at('switched')
    if (before) return { pauseMs, tables: tables.length, isCheckedBefore: true, wrong: [] }
    const sums = await Promise.all([sumsOf(source, tables), sumsOf(frozen, tables)])
    return { pauseMs, tables: tables.length, isCheckedBefore: false, wrong: unequal(...sums) }
  } finally {
    for (const client of clients) await client.end().catch(() => undefined)
  }
}
