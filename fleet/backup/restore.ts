import { createWriteStream } from 'node:fs'
import { mkdir, open, readdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { type ReadEntry, readArchive } from '#fleet/backup/archive.ts'
import {
  keyName,
  type Manifest,
  manifestName,
  type Point,
  type ProjectManifest,
  point,
  pointName,
  readManifest,
} from '#fleet/backup/manifest.ts'
import { installedBinaries } from '#fleet/embedded/binaries.ts'
import { existingHome, findPlace } from '#fleet/embedded/folder.ts'
import { startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { embeddedConnections, embeddedPassword } from '#fleet/postgres.ts'
import type { Config } from '#server/config.ts'
import { type Cluster, connectAdmin } from '#server/database/cluster.ts'
import { checkKeys } from '#server/database/keys.ts'
import { controlName } from '#server/database/names.ts'
import { StartError } from '#server/errors.ts'
import { createSecrets, type Secrets } from '#server/secrets.ts'

export type RestoreOptions = {
  readonly identities: readonly string[]
  /** A later moment than the backup's own: the segments of ARCHIVE_TO are replayed up to it, or all of them. */
  readonly until: Date | 'latest' | null
  /** Folders in which those segments are; the first that has one gives it. */
  readonly archives: readonly string[]
  readonly say: (line: string) => void
}

export type Restored = {
  readonly manifest: Manifest
  readonly point: Point
  readonly projects: number
  readonly at: string
}

/** What may stand in the folder of an installation to be: a key that is kept, and what systems put into every volume. */
const harmless = new Set([keyName, 'lost+found', 'start.lock', 'use.lock'])

const checkFree = async (dataDir: string): Promise<void> => {
  const found = await readdir(dataDir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const [other] = found.filter((name) => !harmless.has(name) && !name.startsWith('draft-'))
  const home = await existingHome(dataDir)
  if (other || home)
    throw new StartError(
      `${home ?? dataDir} is occupied (${home ? 'cluster' : other}): a backup is restored into an empty DATA_DIR. Name another one, or move this one away.`,
    )
}

/** The key that is kept, from the environment or from the folder, else the one of the backup. */
const keptKey = async (config: Config): Promise<string | null> => {
  if (config.SECRETS_KEY !== undefined) return config.SECRETS_KEY
  const file = await open(join(config.DATA_DIR, keyName)).catch(() => null)
  if (!file) return null
  return (await file.readFile('utf8').finally(() => file.close())).trim()
}

export const checkKey = (manifest: Pick<Manifest, 'keys'>, secrets: Secrets): void => {
  const lost = manifest.keys.find(({ id, check }) => !secrets.keyIds.includes(id) || secrets.checkOf(id) !== check)
  if (lost)
    throw new StartError(
      `SECRETS_KEY lacks the key ${lost.id} of this backup: put it there, or leave SECRETS_KEY and ${keyName} away where the backup has its own.`,
    )
}

const checkMachine = async (manifest: Manifest): Promise<void> => {
  const { version } = await installedBinaries(process.platform, process.arch)
  const major = Number(version.split('.')[0])
  if (manifest.postgres !== major)
    throw new StartError(
      `This backup is of Postgres ${manifest.postgres}, and this is Postgres ${major}: restore it with Trellis ${manifest.version}.`,
    )
  if (manifest.platform !== process.platform || manifest.arch !== process.arch)
    throw new StartError(
      `This backup was made on ${manifest.platform} ${manifest.arch}, whose files Postgres on ${process.platform} ${process.arch} does not read: restore it on such a machine.`,
    )
}

export type Read<M> = { readonly manifest: M; readonly end: unknown }

/** Reads the manifest, whatever it is of, and what the last entry says; gives the entries in between to `store`. */
export const readBackup = async <M extends Manifest | ProjectManifest>(
  source: Readable,
  identities: readonly string[],
  begin: (manifest: Manifest | ProjectManifest) => Promise<M>,
  store: (entry: ReadEntry) => Promise<void>,
): Promise<Read<M>> => {
  let manifest: M | undefined
  let end: unknown
  await readArchive(source, identities, async (entry) => {
    if (!manifest) {
      if (entry.name !== manifestName || entry.size > 1e6) throw new StartError('This is no backup of Trellis.')
      manifest = await begin(readManifest(await bytesOf(entry)))
      return
    }
    if (entry.name === pointName) end = JSON.parse((await bytesOf(entry)).toString('utf8'))
    else await store(entry)
  })
  if (!manifest || end === undefined) throw new StartError('This backup is not whole: it ends too early.')
  return { manifest, end }
}

export const bytesOf = async ({ body }: ReadEntry) => await buffer(body)

/** Reads a backup to its end and compares every checksum; writes nothing. */
export const checkBackup = async (source: Readable, identities: readonly string[]) =>
  readBackup(
    source,
    identities,
    async (manifest) => manifest,
    async ({ body }) => {
      for await (const chunk of body) chunk.length
    },
  )

const storeUnder = async (folder: string, { name, mode, type, body }: ReadEntry): Promise<void> => {
  const path = join(folder, name)
  if (type === 'directory') {
    await mkdir(path, { recursive: true, mode: mode | 0o700 })
    return
  }
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  // Postgres syncs the files of its cluster at the start of a recovery
  await pipeline(body, createWriteStream(path, { mode, flags: 'wx', flush: name.startsWith('media/') }))
}

const quoted = (path: string) => `'${path.replaceAll("'", "'\\''")}'`

/** Settings of the one start that recovers. Without an archive the WAL in the backup is all there is. */
const recoverySettings = ({ until, archives }: RestoreOptions): Record<string, string> => ({
  restore_command:
    archives.map((folder) => `cp ${quoted(folder.replaceAll('%', '%%'))}/%f "%p"`).join(' || ') || 'false',
  recovery_target_action: 'promote',
  ...(until === null ? { recovery_target: 'immediate' } : {}),
  // names of zones, Z among them, are not known yet when this is read
  ...(until instanceof Date ? { recovery_target_time: until.toISOString().replace('Z', '+00') } : {}),
  // it takes connections when it has recovered, and not while it does
  hot_standby: 'off',
  // the copy archives nothing before it is one: its segments belong to a new timeline
  archive_mode: 'off',
})

const explainRecovery = (error: unknown): unknown => {
  const message = String((error as Error).message)
  if (/before configured recovery target was reached/.test(message))
    return new StartError(
      'The archive ends before that moment: restore an earlier one, or all there is (--at latest). The last minutes may still be in cluster/pg_wal of the former DATA_DIR: name it too, by a further --archive.',
    )
  if (
    /could not find redo location|could not locate required checkpoint|requested timeline|not a child of/.test(message)
  )
    return new StartError(`The archive is not the one of this backup (${message}).`)
  return error
}

/**
 * The draft of an installation: `folder`, where its Postgres is to be, and `files`, the same unless root's Postgres keeps its data elsewhere. A rename brings each to its place.
 */
type Copy = { readonly folder: string; readonly files: string; readonly dataDir: string; readonly home: string }

/** Starts Postgres on the copy, lets it recover, and looks whether what is there is an installation of these keys. */
const recover = async ({ folder }: Copy, config: Config, secrets: Secrets, options: RestoreOptions) => {
  await writeFile(join(folder, 'cluster/recovery.signal'), '', { mode: 0o600 })
  const running = await startEmbeddedPostgres({
    dataDir: folder,
    superuserPassword: embeddedPassword(secrets),
    log: () => undefined,
    maxConnections: embeddedConnections,
    settings: recoverySettings(options),
  }).catch((error: unknown) => {
    throw explainRecovery(error)
  })
  try {
    const cluster: Cluster = { id: '', dsn: running.url, socketDirectory: running.socketDirectory }
    const control = await connectAdmin(cluster, controlName(config.DATABASE_PREFIX))
    try {
      await checkKeys(control, secrets)
      const { rows } = await control.query<{ projects: number; at: Date | null }>(
        `select count(*)::int as projects, pg_last_xact_replay_timestamp() as at
           from app.projects p where p.deleted_at is null`,
      )
      return rows[0]!
    } finally {
      await control.end()
    }
  } finally {
    await running.stop()
  }
}

const isThere = async (path: string) => (await stat(path).catch(() => null)) !== null

const syncFolder = async (folder: string) => {
  const handle = await open(folder)
  await handle.sync().finally(() => handle.close())
}

/** The last moment at which nothing has happened yet: from here on DATA_DIR is an installation. Its cluster comes last. */
const settle = async ({ folder, files, dataDir, home }: Copy, isKeyKept: boolean): Promise<void> => {
  if (await isThere(join(files, 'media'))) await rename(join(files, 'media'), join(dataDir, 'media'))
  if (!isKeyKept && (await isThere(join(files, keyName)))) await rename(join(files, keyName), join(dataDir, keyName))
  await syncFolder(dataDir)
  await rename(join(folder, 'cluster'), join(home, 'cluster'))
  await syncFolder(home)
}

/**
 * Restores a backup into the DATA_DIR of the environment, which must be empty. Everything happens in a draft beside it, with a start of Postgres that recovers and
 * is stopped again; what fails leaves nothing.
 */
export const restoreInstallation = async (
  source: Readable,
  config: Config,
  options: RestoreOptions,
): Promise<Restored> => {
  const { DATA_DIR: dataDir } = config
  if (config.DATABASE_URL !== undefined)
    throw new StartError(
      'Such a backup is restored into embedded Postgres: leave DATABASE_URL away. A server of your own is restored by its own tools.',
    )
  await checkFree(dataDir)
  const kept = await keptKey(config)
  let brought: string | null = null
  let copy: Copy | undefined
  try {
    const { manifest, end: last } = await readBackup(
      source,
      options.identities,
      async (found) => {
        if (found.kind !== 'installation')
          throw new StartError('This is a backup of one project: restore it by --project ID, or by --new-project NAME.')
        await checkMachine(found)
        if (kept !== null) checkKey(found, createSecrets(kept))
        else if (!found.has_key)
          throw new StartError('This backup has no key in it: set SECRETS_KEY to the one that the data were made with.')
        copy = await makeDraft(dataDir)
        options.say(`of ${found.begun_at}, by Trellis ${found.version}, Postgres ${found.postgres}`)
        return found
      },
      async (entry) => {
        if (!copy) return
        if (entry.name === keyName) {
          brought = (await bytesOf(entry)).toString('utf8').trim()
          await writeFile(join(copy.files, keyName), `${brought}\n`, { mode: 0o600, flag: 'wx', flush: true })
        } else if (/^cluster(\/|$)/.test(entry.name)) await storeUnder(copy.folder, entry)
        else if (/^media(\/|$)/.test(entry.name)) await storeUnder(copy.files, entry)
        else throw new StartError(`This backup has an entry that none of ours has: ${JSON.stringify(entry.name)}.`)
      },
    )
    if (!copy) throw new Error('a backup without a beginning')
    const end = point.parse(last)
    const secrets = createSecrets(kept ?? brought ?? '')
    checkKey(manifest, secrets)
    if (options.until instanceof Date && options.until.getTime() <= Date.parse(end.at))
      throw new StartError(`This backup ends at ${end.at}: for an earlier moment restore an earlier backup.`)
    options.say('every checksum is right; Postgres recovers')
    const { projects, at } = await recover(copy, config, secrets, options)
    await settle(copy, kept !== null)
    return { manifest, point: end, projects, at: options.until === null ? end.at : (at?.toISOString() ?? end.at) }
  } finally {
    if (copy) for (const draft of [copy.folder, copy.files]) await rm(draft, { recursive: true, force: true })
  }
}

/** A data folder in the one to be, which a start would remove, had this process been killed. */
const makeDraft = async (dataDir: string): Promise<Copy> => {
  const { home } = await findPlace(dataDir, () => undefined)
  const own = await realpath(dataDir)
  const name = `draft-restore-${process.pid}`
  const copy = { folder: join(home, name), files: join(own, name), dataDir: own, home }
  await mkdir(copy.folder, { mode: 0o711 })
  if (copy.files !== copy.folder) await mkdir(copy.files, { mode: 0o700 })
  return copy
}
