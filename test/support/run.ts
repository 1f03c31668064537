import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, readlink, rm, stat, statfs } from 'node:fs/promises'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { homeElsewhere } from '#fleet/embedded/folder.ts'

/**
 * One run of the suite, of a proof or of a benchmark: everything that it starts or writes can be found by its folder, and a keeper,
 * a process of its own, ends and removes what is left when the run is over, however it ended.
 */
export type Run = {
  readonly folder: string
  /** What still lives, the run's own children aside. */
  survivors(): Promise<Living[]>
  /** Ends what is left, and removes the folder. */
  end(): Promise<void>
}

export type Living = { readonly pid: number; readonly parent: number; readonly command: string }

/** Names the run's folder to every process that it starts. */
export const runVariable = 'TRELLIS_RUN'
const beginning = 'trellis-run-'

let current: Promise<Run> | undefined

/** The folder of this run, which its first caller begins. */
export const runFolder = async (): Promise<string> => process.env[runVariable] ?? (await beginRun()).folder

export const beginRun = ({ inMemory = false } = {}): Promise<Run> => {
  current ??= begin(inMemory)
  return current
}

const begin = async (inMemory: boolean): Promise<Run> => {
  for (const place of [tmpdir(), memory]) await endStale(place)
  const folder = await mkdtemp(join(inMemory && (await hasRoom()) ? memory : tmpdir(), beginning))
  // as root, Postgres runs as another user, who must be able to pass through
  await chmod(folder, 0o711)
  const keeper = keep(folder, 'pipe')
  process.env[runVariable] = folder
  process.env['TMPDIR'] = folder
  return {
    folder,
    survivors: async () =>
      (await processesOf(folder)).filter(({ pid, parent }) => pid !== keeper.pid && parent !== process.pid),
    async end() {
      keeper.ref()
      const ended = once(keeper, 'exit')
      keeper.stdin?.end()
      await ended
    },
  }
}

/** Its standard input ends with the process that holds the other end, whatever ended that. */
const keep = (folder: string, input: 'pipe' | 'ignore'): ChildProcess => {
  const keeper = spawn(process.execPath, [join(import.meta.dirname, 'keeper.ts'), folder], {
    detached: true,
    stdio: [input, 'ignore', 'ignore'],
    env: { PATH: process.env['PATH'] },
    cwd: '/',
  })
  keeper.unref()
  ;(keeper.stdin as unknown as { unref?: () => void } | null)?.unref?.()
  return keeper
}

/** A file system in memory: databases are created and dropped there at a quarter of the cost. */
const memory = '/dev/shm'

/** What the whole suite needs at most, twice. A TMPDIR that somebody has chosen wins. */
const roomOfSuite = 6 * 2 ** 30

const hasRoom = async (): Promise<boolean> => {
  if (process.platform !== 'linux' || process.env['TMPDIR'] || freemem() < roomOfSuite) return false
  const [size, mounts] = await Promise.all([statfs(memory).catch(() => null), readFile('/proc/mounts', 'utf8')])
  const options =
    mounts
      .split('\n')
      .find((line) => line.split(' ')[1] === memory)
      ?.split(' ')[3] ?? 'noexec'
  // tests copy programs to their folders, and start them there
  return size !== null && size.bavail * size.bsize >= roomOfSuite && !options.split(',').includes('noexec')
}

/** Runs whose keeper was killed too. */
const endStale = async (place: string): Promise<void> => {
  for (const name of await readdir(place).catch(() => [])) {
    const folder = join(place, name)
    const found = name.startsWith(beginning) ? await stat(folder).catch(() => null) : null
    // a young one may not have its keeper yet
    if (!found || found.uid !== process.getuid?.() || Date.now() - found.birthtimeMs < 60_000) continue
    const isKept = (await allProcesses()).some(({ words }) => words.includes(folder) && words.some(isKeeper))
    if (!isKept) keep(folder, 'ignore')
  }
}

const isKeeper = (word: string) => word.endsWith('/test/support/keeper.ts')

type Process = Living & {
  readonly words: readonly string[]
  readonly variables: readonly string[]
  readonly folder: string
}

/** Those that this run started: its folder stands in their arguments, in their environment, or is where a Postgres works. */
export const processesOf = async (folder: string): Promise<Living[]> => {
  const homes = await homesOf(folder)
  const isInside = (path: string) => homes.some((home) => path === home || path.startsWith(`${home}/`))
  const isOurs = ({ words, variables, folder: working, command }: Process) =>
    words.some(isInside) ||
    variables.some(
      (variable) => !/^(OLD)?PWD=/.test(variable) && isInside(variable.slice(variable.indexOf('=') + 1)),
    ) ||
    (command.includes('postgres') && isInside(working))
  return (await allProcesses()).filter((found) => found.pid !== process.pid && isOurs(found))
}

/** The folder, and where root's Postgres has put the data of folders in it that its user cannot reach. */
export const homesOf = async (folder: string): Promise<string[]> => {
  const inside = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const folders = inside.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))
  const homes = await Promise.all(
    folders.map(homeElsewhere).map((home) =>
      stat(home).then(
        () => [home],
        () => [],
      ),
    ),
  )
  return [folder, ...homes.flat()]
}

const allProcesses = async (): Promise<Process[]> => {
  if (process.platform !== 'linux') return listed()
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  return (await Promise.all(ids.map(readProcess))).filter((found) => found !== null)
}

const readProcess = async (id: string): Promise<Process | null> => {
  const read = (name: string) => readFile(`/proc/${id}/${name}`, 'utf8').catch(() => '')
  const [line, environment, state, folder] = await Promise.all([
    read('cmdline'),
    read('environ'),
    read('stat'),
    readlink(`/proc/${id}/cwd`).catch(() => ''),
  ])
  const [, status, parent] = /\) (\S) (\d+)/.exec(state) ?? []
  // one that has ended and whose parent has not looked has no arguments any more
  if (!line || status === 'Z') return null
  const words = line.split('\0').filter(Boolean)
  const variables = environment.split('\0')
  return { pid: Number(id), parent: Number(parent), command: words.join(' '), words, variables, folder }
}

/** Where there is no /proc: arguments and environment in one line. */
const listed = async (): Promise<Process[]> => {
  const { stdout } = await promisify(execFile)('ps', ['-axEww', '-o', 'pid=,ppid=,command='], {
    maxBuffer: 64 * 1024 * 1024,
  })
  return stdout.split('\n').flatMap((line) => {
    const [, pid, parent, command = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? []
    if (!pid) return []
    const words = command.split(' ')
    const variables = words.filter((word) => /^[A-Z_]+=/.test(word))
    return [{ pid: Number(pid), parent: Number(parent), command, words, variables, folder: '' }]
  })
}

/** Ends every process of a run at once, those that it still starts as well, and removes its folders. */
export const clear = async (folder: string): Promise<void> => {
  const homes = await homesOf(folder)
  // what is killed may have started another a moment before
  for (let quiet = 0; quiet < 3; quiet += 1) {
    const found = await processesOf(folder)
    for (const { pid } of found) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // it has ended just now
      }
    }
    if (found.length > 0) quiet = -1
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  for (const home of homes) await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
}
