import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { databaseExists } from '#fleet/cluster.ts'
import { createTenantDatabase } from '#fleet/load/migrate.ts'
import { migrationLock, takeLock, withDatabaseLock } from '#fleet/locks.ts'
import { differences, type Made, readCatalog, reproduceAll, reproduceTables } from '#fleet/move/catalog.ts'
import { copyRows, emptyTables, movedTables } from '#fleet/move/copy.ts'
import {
  checkFollowing,
  connect,
  dropSlot,
  dropSubscription,
  nameOf,
  onServer,
  publish,
  using,
} from '#fleet/move/replication.ts'
import { checkServers, conninfo, createSlot } from '#fleet/move/server.ts'
import type { MoveOptions } from '#fleet/move/switch.ts'
import { reopen, type Switched, switchOver } from '#fleet/move/switch.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import { StartError } from '#server/errors.ts'

export type Moved = Switched & { readonly seconds: number }

/** Only what the slot and the database of this move are: nothing of them is served. */
const forgetTarget = async ({ projectId, database, to }: MoveOptions): Promise<void> => {
  if (!(await onServer(to, (admin) => databaseExists(admin, database)))) return
  await using(to, database, (target) => dropSubscription(target, nameOf(projectId)))
  await withDatabaseLock(to, database, (admin) => admin.query(`drop database if exists "${database}" with (force)`))
}

/** What a move has done so far is taken back: the project goes on where it was. */
const undo = async (options: MoveOptions): Promise<void> => {
  const { projectId, database, from, control, ask } = options
  const name = nameOf(projectId)
  await reopen(from, database)
  await ask('operator_move_hold', { project_id: projectId, is_held: false }).catch(() => undefined)
  await forgetTarget(options)
  await dropSlot(from, name)
  await using(from, database, async (source) => {
    await source.query(`drop publication if exists ${name}`)
    await source.query(`delete from app.settings where key = 'move'`)
    await source.query(`set search_path = ''`)
    for (const table of await fullIdentities(source))
      await source.query(`alter table ${table} replica identity default`)
  })
  await control.query('delete from app.tenant_moves where project_id = $1', [projectId])
}

const fullIdentities = async (source: pg.Client): Promise<string[]> => {
  const { rows } = await source.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where c.relkind = 'r' and c.relreplident = 'f' and n.nspname !~ '^pg_'`,
  )
  return rows.map(({ name }) => name)
}

const checkContents = async (source: pg.Client): Promise<void> => {
  const { rowCount } = await source.query('select from pg_catalog.pg_largeobject_metadata limit 1')
  if (rowCount) throw new StartError('This database has large objects, which logical replication leaves out.')
}

/** The first half: the database is made on the other server, filled, and follows. */
const copy = async (options: MoveOptions, made: Made): Promise<void> => {
  const { projectId, database, template, from, to, control, say } = options
  const name = nameOf(projectId)
  await withDatabaseLock(to, database, (admin) => createTenantDatabase(admin, database, template))
  await using(from, database, async (source) => {
    await checkContents(source)
    const [owner, target] = await Promise.all([connectAdmin(to, database), connect(to, database)])
    const ends = { owner, admin: target }
    try {
      const catalog = await readCatalog(source)
      await reproduceTables(catalog, ends, made)
      const tables = await movedTables(source)
      await publish(source, name, tables)
      await emptyTables(owner)
      const slot = await createSlot(from, database, name)
      try {
        await copyRows({ cluster: from, database }, { cluster: to, database }, tables, slot.snapshot)
      } finally {
        await slot.end()
      }
      await reproduceAll(catalog, ends, made)
      // the rows are those of the snapshot; what follows is read from the slot that was made with it
      await target.query(
        `create subscription ${name} connection ${pg.escapeLiteral(conninfo(from, database))} publication ${name}
           with (create_slot = false, slot_name = '${name}', copy_data = false, disable_on_error = true)`,
      )
    } finally {
      await Promise.all([owner.end(), target.end()])
    }
  })
  await control.query(`update app.tenant_moves set state = 'following' where project_id = $1`, [projectId])
  say('the rows are copied; changes follow')
}

/** Makes what was made meanwhile there too, and waits until little is left to follow. */
const catchUp = async (
  { projectId, database, from, to }: MoveOptions,
  source: pg.Client,
  target: pg.Client,
  made: Made,
): Promise<void> => {
  const name = nameOf(projectId)
  const owner = await connectAdmin(to, database)
  try {
    for (;;) {
      await checkFollowing(target, name)
      await source.query(`set search_path = ''`)
      const catalog = await readCatalog(source)
      if (differences(catalog, await readCatalog(target), made).length > 0)
        await reproduceAll(catalog, { owner, admin: target }, made)
      if (await publish(source, name, await movedTables(source)))
        await target.query(`alter subscription ${name} refresh publication`)
      const { waiting } = await checkFollowing(target, name)
      const { rows } = await onServer(from, (admin) =>
        admin.query<{ bytes: string | null }>(
          `select pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) as bytes from pg_catalog.pg_replication_slots where slot_name = $1`,
          [name],
        ),
      )
      if (waiting === 0 && Number(rows[0]?.bytes ?? Number.POSITIVE_INFINITY) < 1_000_000) return
      await sleep(200)
    }
  } finally {
    await owner.end()
  }
}

/** After the switch: nobody comes back to what the project left behind. */
const leave = async ({ projectId, database, from, control }: MoveOptions): Promise<void> => {
  await dropSlot(from, nameOf(projectId))
  await onServer(from, (admin) => admin.query(`drop database if exists "${database}" with (force)`))
  await control.query('delete from app.tenant_moves where project_id = $1', [projectId])
}

type Row = { readonly state: 'copying' | 'following' | 'switched'; readonly to_cluster_id: string }

/** Where an earlier run has ended: what it has done is used, or taken back. */
const resume = async (options: MoveOptions): Promise<Row['state'] | null> => {
  const { projectId, database, from, to, control, ask, say } = options
  const { rows } = await control.query<Row>('select state, to_cluster_id from app.tenant_moves where project_id = $1', [
    projectId,
  ])
  const [row] = rows
  if (!row) return null
  if (row.state === 'switched') return row.state
  if (row.state === 'following' && row.to_cluster_id === to.id) {
    say('an earlier run has copied the rows: it goes on')
    await reopen(from, database)
    await ask('operator_move_hold', { project_id: projectId, is_held: false })
    return row.state
  }
  say('an earlier run is taken back')
  await undo(options)
  return null
}

/**
 * Moves a project to another server while it is used. Changes follow by logical replication, until nobody is served for the moment in which the last ones
 * arrive. Safe to run again after any end; what fails before control names the other server is taken back, and then thrown.
 */
export const moveProject = async (options: MoveOptions): Promise<Moved> => {
  const { projectId, database, from, to, control, say, at = async () => undefined } = options
  const began = performance.now()
  return withDatabaseLock(from, database, async () => {
    const state = await resume(options)
    const made: Made = new Map()
    if (state === 'switched') {
      await leave(options)
      return { pauseMs: 0, tables: 0, seconds: 0, wrong: [], isCheckedBefore: true }
    }
    await checkServers(from, to)
    // the project is not migrated while it moves
    const guard = await connect(from, database)
    try {
      await takeLock(guard, migrationLock(database), { connect: () => connectAdmin(from, database, false) })
      const { rows } = await guard.query<{ pid: number }>('select pg_backend_pid() as pid')
      try {
        if (state === null) {
          await control.query(
            'insert into app.tenant_moves (project_id, from_cluster_id, to_cluster_id) values ($1, $2, $3)',
            [projectId, from.id, to.id],
          )
          await copy(options, made)
          await at('copied')
        }
        await using(from, database, (source) => using(to, database, (target) => catchUp(options, source, target, made)))
        const switched = await switchOver(
          options,
          rows.map(({ pid }) => pid),
          made,
        )
        await guard.end()
        if (switched.wrong.length === 0) await leave(options)
        return { ...switched, seconds: (performance.now() - began) / 1000 }
      } catch (error) {
        const { rows: now } = await control.query<Row>('select state from app.tenant_moves where project_id = $1', [
          projectId,
        ])
        // it is served by the other server already: what is left is to tidy up, by another run
        if (now[0]?.state === 'switched') throw error
        say('it is taken back')
        await undo(options)
        throw error
      }
    } finally {
      await guard.end().catch(() => undefined)
    }
  })
}
