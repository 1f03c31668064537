import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import type pg from 'pg'
import { type Entry, writeArchive } from '#fleet/backup/archive.ts'
import { leftOfCluster, putFile, putFolder } from '#fleet/backup/cluster_files.ts'
import { file, json, keyName, type Manifest, manifestName, type Point, pointName } from '#fleet/backup/manifest.ts'
import { nameOf } from '#fleet/backup/places.ts'
import { databaseExists } from '#fleet/cluster.ts'
import { existingHome } from '#fleet/embedded/folder.ts'
import { type Foundation, noDatabases } from '#fleet/postgres.ts'
import { type Cluster, connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { checkKeys, keysStatus } from '#server/database/keys.ts'
import { controlName } from '#server/database/names.ts'
import { StartError } from '#server/errors.ts'

export type BackupOptions = {
  readonly recipients: readonly string[]
  /** The generated key stays out: whoever restores has it from elsewhere. */
  readonly withoutKey: boolean
  readonly version: string
  readonly say: (line: string) => void
  /** Where the bytes go, once the name is known. */
  readonly begin: (name: string) => Promise<Writable>
}

export type BackedUp = {
  readonly name: string
  readonly point: Point
  readonly bytes: number
  readonly hasKey: boolean
}

type Started = { readonly first: string; readonly timeline: number; readonly system: string; readonly major: number }

const one = async <T extends pg.QueryResultRow>(
  client: pg.Client,
  text: string,
  values: unknown[] = [],
): Promise<T> => {
  const { rows } = await client.query<T>(text, values)
  return rows[0] as T
}

/**
 * The session of a backup: a slot keeps the WAL that the backup needs, and is gone with the session, however this process ends.
 */
const startSession = async (cluster: Cluster): Promise<pg.Client> => {
  const session = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  await session.query(`set statement_timeout = 0; set idle_session_timeout = 0`)
  return session
}

const start = async (session: pg.Client): Promise<Started> => {
  const slot = `trellis_backup_${randomBytes(6).toString('hex')}`
  await session.query('select pg_create_physical_replication_slot($1, true, true)', [slot])
  const { lsn } = await one<{ lsn: string }>(session, `select pg_backup_start('trellis', true)::text as lsn`)
  return one<Started>(
    session,
    `select pg_walfile_name($1::pg_lsn) as first, c.timeline_id as timeline, s.system_identifier::text as system,
            current_setting('server_version_num')::int / 10000 as major
       from pg_catalog.pg_control_checkpoint() c, pg_catalog.pg_control_system() s`,
    [lsn],
  )
}

const checkCluster = async (cluster: string): Promise<void> => {
  if ((await readdir(join(cluster, 'pg_tblspc'))).length > 0)
    throw new StartError('This Postgres has tablespaces, which such a backup leaves out: use pg_basebackup.')
}

/** The generated key, unless SECRETS_KEY is given or the operator keeps it elsewhere. */
const generatedKey = async ({ config }: Foundation, withoutKey: boolean): Promise<string | null> =>
  config.SECRETS_KEY !== undefined || withoutKey ? null : readFile(join(config.DATA_DIR, keyName), 'utf8')

/** Which keys the data need, and how many projects there are. */
const readControl = async (foundation: Foundation, cluster: Cluster) => {
  const control = await connectAdmin(cluster, controlName(foundation.config.DATABASE_PREFIX))
  try {
    await checkKeys(control, foundation.secrets)
    const { keys } = await keysStatus(control)
    const needed = keys.filter((key) => !key.is_droppable).map(({ id, key_check: check }) => ({ id, check }))
    const { rows } = await control.query<{ count: number }>(
      'select count(*)::int as count from app.projects p where p.deleted_at is null',
    )
    return { keys: needed, projects: rows[0]?.count ?? 0 }
  } finally {
    await control.end()
  }
}

/**
 * Backs up embedded Postgres with its media while it is used, by the files of Postgres: what is restored is all databases, roles and privileges as they were at
 * one moment, the end of the backup, which is after everything that was answered before this was called.
 */
export const backUpInstallation = async (foundation: Foundation, options: BackupOptions): Promise<BackedUp> => {
  const { config, postgres } = foundation
  const home = await existingHome(config.DATA_DIR)
  if (config.DATABASE_URL !== undefined || !home) throw new StartError(noDatabases)
  const cluster: Cluster = { id: '', dsn: postgres.dsn, socketDirectory: postgres.socketDirectory }
  const folder = join(home, 'cluster')
  await checkCluster(folder)
  const session = await startSession(cluster)
  try {
    if (!(await databaseExists(session, controlName(config.DATABASE_PREFIX)))) throw new StartError(noDatabases)
    const { keys, projects } = await readControl(foundation, cluster)
    const begunAt = new Date()
    const started = await start(session)
    const key = await generatedKey(foundation, options.withoutKey)
    const hasMedia = config.STORAGE_URL === undefined
    const name = nameOf(begunAt, started.first, options.recipients.length > 0)
    let bytes = 0
    let point: Point | undefined
    const fill = async (put: (entry: Entry) => Promise<void>) => {
      const manifest: Manifest = {
        format: 1,
        kind: 'installation',
        begun_at: begunAt.toISOString(),
        version: options.version,
        postgres: started.major,
        platform: process.platform,
        arch: process.arch,
        system_identifier: started.system,
        timeline: started.timeline,
        keys,
        has_key: key !== null,
        has_media: hasMedia,
      }
      await put(json(manifestName, manifest))
      if (key !== null) await put(file(keyName, key))
      bytes += await putFolder(put, folder, 'cluster', leftOfCluster)
      options.say(`${megabytes(bytes)} of databases`)
      const media = createMediaPasses(put, join(config.DATA_DIR, 'media'))
      if (hasMedia) await media.pass()
      bytes += await putFile(put, join(folder, 'global/pg_control'), 'cluster/global/pg_control')
      const stopped = await stop(session)
      await put(file('cluster/backup_label', stopped.label))
      bytes += await putWal(put, folder, started.first, stopped.last)
      // what was stored while the first pass went on is there as of the moment that is restored
      if (hasMedia) bytes += await media.pass()
      if (hasMedia) options.say(`${megabytes(media.bytes())} of media`)
      point = { lsn: stopped.lsn, at: stopped.at, projects }
      await put(json(pointName, point))
    }
    await writeArchive(await options.begin(name), options.recipients, fill)
    if (!point) throw new Error('a backup without an end')
    return { name, point, bytes, hasKey: key !== null }
  } finally {
    await session.end()
  }
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`

type Stopped = { readonly lsn: string; readonly at: string; readonly label: string; readonly last: string }

const stop = async (session: pg.Client): Promise<Stopped> => {
  const found = await one<{ lsn: string; label: string; at: Date; last: string }>(
    session,
    // the segment of the byte before: at the very beginning of a segment nothing of it is needed
    `select s.lsn::text as lsn, s.labelfile as label, clock_timestamp() as at, pg_walfile_name(s.lsn - 1) as last
       from pg_backup_stop(false) s`,
  )
  return { ...found, at: found.at.toISOString() }
}

/** Every segment from the first to the last, which the slot has kept, and the history of timelines. */
const putWal = async (put: (entry: Entry) => Promise<void>, folder: string, first: string, last: string) => {
  const names = (await readdir(join(folder, 'pg_wal'))).sort()
  const needed = names.filter(
    (name) => name.endsWith('.history') || (/^[0-9A-F]{24}$/.test(name) && name >= first && name <= last),
  )
  if (!needed.includes(first) || !needed.includes(last))
    throw new Error(`the WAL of this backup is gone: ${first} to ${last}`)
  let bytes = 0
  for (const name of needed) bytes += await putFile(put, join(folder, 'pg_wal', name), `cluster/pg_wal/${name}`)
  return bytes
}

/** Media are files that never change once they have their name: each is read once, in the pass that first sees it. */
const createMediaPasses = (put: (entry: Entry) => Promise<void>, folder: string) => {
  const seen = new Set<string>()
  let bytes = 0
  return {
    bytes: () => bytes,
    async pass(): Promise<number> {
      const putNew = async (entry: Entry) => {
        if (entry.type === 'directory' && seen.has(entry.name)) return
        seen.add(entry.name)
        await put(entry)
      }
      const leave = (path: string, isFile: boolean) =>
        // temporary files of uploads under way; and what the pass before has read
        isFile && (path.endsWith('.tmp') || seen.has(`media/${path}`)) ? 'all' : 'none'
      const added = await putFolder(putNew, folder, 'media', leave)
      bytes += added
      return added
    },
  }
}
