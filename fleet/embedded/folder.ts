import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  access,
  appendFile,
  chmod,
  chown,
  constants,
  lchown,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { totalmem } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type Binaries, canUse, identity, plainEnvironment, type RunsAs, systemUser } from '#fleet/embedded/binaries.ts'
import { StartError } from '#server/errors.ts'

/**
 * Where one embedded Postgres lives. `home` is ours, and holds our settings and Postgres's log; `cluster` and `socket`
 * in it belong to the user that Postgres runs as, so that root never writes where that user could have put a link.
 */
export type Place = {
  readonly home: string
  readonly cluster: string
  readonly socket: string | null
  readonly logFile: string
  readonly runsAs: RunsAs
}

export type Settings = {
  readonly sync: boolean
  readonly maxConnections: number
  readonly archiveTo?: string | undefined
}

export const superuser = 'trellis_superuser'

const isRoot = () => process.getuid?.() === 0

const isThere = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

const hasCluster = (home: string) => isThere(join(home, 'cluster', 'PG_VERSION'))

/** Creates the data folder; returns its paths and the user that runs Postgres there. */
export const findPlace = async (dataDir: string, log: (message: string) => void): Promise<Place> => {
  await makeFolders(resolve(dataDir))
  const asked = await realpath(dataDir)
  if (isRoot()) await openForOthers(asked)
  const home = isRoot() ? await homeForRoot(asked, log) : asked
  const runsAs = isRoot() ? await ownerOf(home) : await ourselves(home)
  const socket = join(home, 'socket')
  return {
    home,
    cluster: join(home, 'cluster'),
    // the system's own limit is 104 bytes on macOS and 108 on Linux
    socket: Buffer.byteLength(join(socket, '.s.PGSQL.65535')) < 90 ? socket : null,
    logFile: join(home, 'postgres.log'),
    runsAs,
  }
}

/** The path of this data folder's cluster, or null when none was created yet. Writes nothing. */
export const existingHome = async (dataDir: string): Promise<string | null> => {
  const asked = await realpath(dataDir).catch(() => null)
  if (!asked) return null
  for (const home of isRoot() ? [asked, homeElsewhere(asked)] : [asked]) if (await hasCluster(home)) return home
  return null
}

/** Where root's Postgres keeps its data when its user cannot reach the data folder. */
export const homeElsewhere = (dataDir: string): string =>
  join('/var/lib/trellis', createHash('sha256').update(dataDir).digest('hex').slice(0, 16))

/** Whatever the umask says, the folders that root makes can be passed through by the user that runs Postgres. */
const makeFolders = async (path: string) => {
  const first = await mkdir(path, { recursive: true })
  const mode = isRoot() ? 0o711 : 0o700
  for (let made = path; first && made.length >= first.length; made = dirname(made)) await chmod(made, mode)
}

const openForOthers = async (home: string) => {
  const { uid, mode } = await stat(home)
  if (uid === 0) await chmod(home, (mode & 0o7777) | 0o011)
}

/** Under a private folder (/root) the other user cannot reach the data: they are then in /var/lib/trellis. */
const homeForRoot = async (dataDir: string, log: (message: string) => void): Promise<string> => {
  const isReachable = await canUse(await ownerOf(dataDir), 'x', dataDir)
  const elsewhere = homeElsewhere(dataDir)
  if (await hasCluster(dataDir)) {
    if (isReachable) return dataDir
    throw new StartError(
      `The user that runs Postgres can no longer reach ${dataDir}: allow everyone to pass through the folders above it (chmod o+x), or start Trellis as the owner of ${join(dataDir, 'cluster')}.`,
    )
  }
  // once the data are there they stay there, even when the folder asked for has become reachable
  if (isReachable && !(await hasCluster(elsewhere))) return dataDir
  log(`Postgres runs as another user, who cannot reach ${dataDir}: its data are in ${elsewhere}.`)
  await makeFolders(elsewhere)
  return elsewhere
}

/** As root, who runs Postgres: the owner of the cluster where there is one, else the system's user. */
const ownerOf = async (home: string): Promise<RunsAs> => {
  const owner = await stat(join(home, 'cluster')).catch(() => null)
  return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : await systemUser()
}

/** As an ordinary user, Postgres runs as ourselves. Refuses a folder or a cluster that is not ours. */
const ourselves = async (home: string): Promise<RunsAs> => {
  const cluster = join(home, 'cluster')
  const owner = await stat(cluster).catch(() => null)
  if (owner && owner.uid !== process.getuid?.()) {
    throw new StartError(
      `${cluster} belongs to another user (${owner.uid}): start Trellis as root or that user, or give ${home} to this one (chown -R).`,
    )
  }
  await access(home, constants.W_OK).catch(() => {
    throw new StartError(`Trellis may not write in ${home}: give it to this user (chown), or set another DATA_DIR.`)
  })
  return null
}

/** A folder in our own that only the user who runs Postgres can enter. */
export const makePrivate = async (path: string, runsAs: RunsAs) => {
  await mkdir(path, { recursive: true, mode: 0o700 })
  if (runsAs) await chown(path, runsAs.uid, runsAs.gid)
}

/** Removes what a start that was killed left half made. */
export const removeDrafts = async (home: string) => {
  const drafts = (await readdir(home)).filter((name) => name.startsWith('draft-'))
  // an initdb that outlived its parent may still write there: the next start removes the rest
  for (const name of drafts) await rm(join(home, name), { recursive: true, force: true }).catch(() => undefined)
}

/** Makes the cluster if there is none; else checks that these binaries can run it. */
export const prepareCluster = async (place: Place, binaries: Binaries, password: string, isDurable: boolean) => {
  if (!(await hasCluster(place.home))) {
    await refuseHalfUpgraded(place.home)
    return await initialise(place, binaries, password, isDurable)
  }
  const theirs = (await readFile(join(place.cluster, 'PG_VERSION'), 'utf8')).trim()
  const ours = binaries.version.split('.')[0]
  if (theirs !== ours) {
    throw new StartError(
      `The database in ${place.cluster} was made by Postgres ${theirs} and this is Postgres ${ours}: run npm run db:upgrade, which says how, or set DATABASE_URL.`,
    )
  }
  // a folder that root restored from a backup
  if (place.runsAs && (await stat(place.cluster)).uid === 0) await transferOwnership(place.cluster, place.runsAs)
}

/** An upgrade that was killed between its two renames: a new, empty cluster would hide the data. */
const refuseHalfUpgraded = async (home: string) => {
  const kept = (await readdir(home)).find((name) => /^cluster-\d+$/.test(name))
  if (kept)
    throw new StartError(
      `${home} has ${kept} and no cluster: an upgrade was killed at its end. Rename ${kept} to cluster, and run npm run db:upgrade again.`,
    )
}

const transferOwnership = async (folder: string, to: NonNullable<RunsAs>) => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  for (const entry of entries) await lchown(join(entry.parentPath, entry.name), to.uid, to.gid)
  await lchown(folder, to.uid, to.gid)
}

/** In a folder of its own, renamed when it is whole: initdb killed in the middle leaves nothing that looks like data. */
const initialise = async (place: Place, binaries: Binaries, password: string, isDurable: boolean) => {
  const draft = await mkdtemp(join(place.home, 'draft-'))
  try {
    if (place.runsAs) await chown(draft, place.runsAs.uid, place.runsAs.gid)
    const passwordFile = join(draft, 'password')
    await writeFile(passwordFile, `${password}\n`, { mode: 0o600, flag: 'wx' })
    if (place.runsAs) await chown(passwordFile, place.runsAs.uid, place.runsAs.gid)
    const cluster = join(draft, 'cluster')
    const options = ['-D', cluster, '-U', superuser, '--auth=scram-sha-256', `--pwfile=${passwordFile}`]
    await runInitdb(place, binaries, isDurable ? options : [...options, '--no-sync'])
    await appendFile(
      join(cluster, 'postgresql.conf'),
      "\n# Written anew by Trellis at each start. What stands below this line, and ALTER SYSTEM, win over it.\ninclude = '../postgres.conf'\n",
    )
    await rename(cluster, place.cluster)
    if (isDurable) await syncFolder(place.home)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/** Postgres's own C.UTF-8 knows Unicode's cases, and sorts alike under every C library. */
const ownLocales = [
  ['--locale-provider=builtin', '--locale=C.UTF-8'],
  // where the C library has no C.UTF-8
  ['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C', '--lc-ctype=en_US.UTF-8'],
  ['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'],
]

/** Before Postgres 17, which has it. */
const formerLocales = [['--locale=C.UTF-8'], ['--locale=C', '--lc-ctype=en_US.UTF-8'], ['--locale=C']]

const runInitdb = async ({ home, logFile, runsAs }: Place, binaries: Binaries, options: readonly string[]) => {
  const { folder, version } = binaries
  const how = { ...identity(runsAs), cwd: home, env: plainEnvironment }
  const locales = Number.parseInt(version, 10) < 17 ? formerLocales : ownLocales
  for (const [attempt, locale] of locales.entries()) {
    try {
      await promisify(execFile)(join(folder, 'bin/initdb'), [...options, '--encoding=UTF8', ...locale], how)
      return
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
      const isLocaleMissing = stderr.includes('invalid locale name') && attempt < locales.length - 1
      if (isLocaleMissing) continue
      await appendFile(logFile, `${stdout}${stderr}`, { mode: 0o600 }).catch(() => undefined)
      throw stdout || stderr ? explained(`${stdout}\n${stderr}`, home) : error
    }
  }
}

const syncFolder = async (path: string) => {
  const handle = await open(path)
  await handle.sync()
  await handle.close()
}

/** Nothing outlives the tests: the least of the log, and nothing kept of it. */
const forTests = [
  'fsync = off',
  'full_page_writes = off',
  'wal_level = minimal',
  'max_wal_senders = 0',
  'wal_recycle = off',
  "min_wal_size = '32MB'",
  "checkpoint_timeout = '1h'",
]

/** By Postgres' own module, which writes a segment under another name first and syncs it: no shell, and nothing half made. */
const archiving = (folder: string) => [
  'archive_mode = on',
  "archive_library = 'basic_archive'",
  `basic_archive.archive_directory = '${folder.replaceAll("'", "''")}'`,
  // a segment that is not full is finished after so long: what a lost disk takes away at most
  "archive_timeout = '5min'",
]

/** The folder of ARCHIVE_TO, which the user that runs Postgres writes in. */
export const makeArchive = async (folder: string, runsAs: RunsAs) => {
  const found = await stat(folder).catch(() => null)
  if (found && !found.isDirectory()) throw new StartError(`ARCHIVE_TO is no folder: ${folder}.`)
  if (!found) await makeFolders(folder)
  // a new one; what is in use as something else stays as it is
  if (runsAs && (await stat(folder)).uid === 0 && (await readdir(folder)).length === 0) {
    await chown(folder, runsAs.uid, runsAs.gid)
    await chmod(folder, 0o700)
  }
  if (!(await canUse(runsAs, 'w', folder)))
    throw new StartError(`The user that runs Postgres may not write in ${folder}, which ARCHIVE_TO names.`)
}

/**
 * An eighth of the memory of the machine or of its control group, from 128 MB to 2 GB, in MB: rows of many users that are read from the operating
 * system's cache take ten times as long. Postgres takes it as it needs it, so a small project does not use it.
 */
export const sharedBuffers = (machine = totalmem(), group = process.constrainedMemory()): number => {
  // a group without a limit says 0, or more than there is
  const bytes = group > 0 ? Math.min(machine, group) : machine
  return Math.min(2048, Math.max(128, Math.floor(bytes / 8 / 2 ** 20)))
}

/**
 * Our defaults, for a server that shares its machine with us. Values of parameters are never logged, and neither are the
 * DETAIL lines that quote a row's values (`log_error_verbosity`).
 */
export const writeSettings = async (place: Place, { sync, maxConnections, archiveTo }: Settings) => {
  const lines = [
    '# Written by Trellis at each start: change postgresql.conf or use ALTER SYSTEM instead.',
    "listen_addresses = '127.0.0.1'",
    `max_connections = ${maxConnections}`,
    `shared_buffers = '${sync ? sharedBuffers() : 128}MB'`,
    // each round visits every database: at one minute, five hundred tenants would cost a twentieth of a core
    "autovacuum_naptime = '5min'",
    // after a crash, fsync of each tenant's thousand files takes half a minute; Linux only
    ...(process.platform === 'linux' ? ['recovery_init_sync_method = syncfs'] : []),
    // a project moves to another server by logical replication
    'wal_level = logical',
    ...(sync ? [] : forTests),
    ...(archiveTo === undefined ? [] : archiving(archiveTo)),
    "timezone = 'UTC'",
    "log_timezone = 'UTC'",
    "log_line_prefix = '%m [%p] %q%d '",
    'log_parameter_max_length = 0',
    'log_parameter_max_length_on_error = 0',
    'log_error_verbosity = terse',
    'log_checkpoints = off',
  ]
  const file = join(place.home, 'postgres.conf')
  await writeFile(file, `${lines.join('\n')}\n`)
  // holds no secret, and Postgres's user reads it whatever our umask says
  await chmod(file, 0o644)
}

const sentences: readonly (readonly [RegExp, (home: string) => string])[] = [
  [
    /no space left on device|ENOSPC|disk is full|check free disk space|wrote only \d+ of \d+ bytes|disk quota exceeded|EDQUOT/i,
    (home) => `The disk that holds ${home} is full: free some space, and start Trellis again.`,
  ],
  [
    /could not look up effective user ID/,
    () =>
      'Postgres needs a named user, and the one that runs Trellis has no line in /etc/passwd: add one, or set DATABASE_URL.',
  ],
  [
    /spawn .* ENOENT/,
    () => 'The embedded Postgres cannot run on this system, it needs glibc on Linux: set DATABASE_URL instead.',
  ],
]

/** A failure of Postgres, or of a file operation, as a message for the operator who starts Trellis. */
export const explained = (output: string, home: string): StartError => {
  const known = sentences.find(([pattern]) => pattern.test(output))
  if (known) return new StartError(known[1](home))
  const lines = output.split('\n').filter((line) => line.trim())
  const said = lines.find((line) => /(FATAL|PANIC|error): /.test(line)) ?? lines.at(-1) ?? 'it said nothing'
  return new StartError(`Postgres did not start (${said.trim()}): see ${join(home, 'postgres.log')}.`)
}
