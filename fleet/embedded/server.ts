import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, copyFile, open, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import {
  type Binaries,
  identity,
  installedBinaries,
  plainEnvironment,
  usableBinaries,
} from '#fleet/embedded/binaries.ts'
import {
  existingHome,
  explained,
  findPlace,
  makeArchive,
  makePrivate,
  type Place,
  prepareCluster,
  removeDrafts,
  superuser,
  writeSettings,
} from '#fleet/embedded/folder.ts'
import { alone, isInUse, use } from '#fleet/embedded/lock.ts'
import { StartError } from '#server/errors.ts'

export type EmbeddedOptions = {
  dataDir: string
  superuserPassword: string
  log: (message: string) => void
  /** False in tests: nothing is forced to disk. A killed Postgres loses nothing; a crash of the machine, everything. */
  sync?: boolean
  maxConnections?: number
  /** A folder that gets each finished segment of WAL. */
  archiveTo?: string | undefined
  /** Settings of this one start, over all others. */
  settings?: Readonly<Record<string, string>>
  /** Of another version than the one that is installed. */
  binaries?: Binaries
}

export type EmbeddedPostgres = {
  /** libpq style, to the database `postgres` as superuser, with the password: never log it. */
  url: string
  port: number
  /** The folder of `.s.PGSQL.<port>`; null where the path is too long for a socket. */
  socketDirectory: string | null
  pid: number
  /**
   * Ends every connection and Postgres itself, also one that another process had started; the last to call it does. While
   * another process still uses Postgres (a worker, a script, the server that replaces this one) it goes on.
   */
  stop(): Promise<void>
  /** No longer counts as a user of Postgres, and stops nothing: for a handle whose Postgres was started again under another one. */
  release(): void
}

/** The postmaster's own note of itself, `postmaster.pid` in its cluster. */
type Postmaster = { pid: number; port: number; socketDirectory: string | null; status: string }

/** A failure that another attempt may not meet: the port taken meanwhile, a killed server's last processes. */
const passing = /Address already in use|is still in use|lock file ".*" (already exists|is empty)/

/**
 * Runs Postgres on `dataDir`, made at the first start, or adopts the one that runs there: one that outlived a killed
 * server, or one that another process has just started. Throws a StartError that says what to do.
 */
export const startEmbeddedPostgres = async (options: EmbeddedOptions): Promise<EmbeddedPostgres> => {
  const installed = options.binaries ?? (await installedBinaries(process.platform, process.arch))
  let home = options.dataDir
  try {
    const place = await findPlace(options.dataDir, options.log)
    home = place.home
    // within the lock, nobody starts or stops Postgres between our finding it and our mark that we use it
    return await alone(join(home, 'start.lock'), async () =>
      handle(place, await adoptOrLaunch(place, installed, options), options),
    )
  } catch (error) {
    if (error instanceof StartError || !/ENOSPC|EDQUOT|disk is full|spawn .* ENOENT/.test(String(error))) throw error
    throw explained(String(error), home)
  }
}

/** The URL of the Postgres that runs on `dataDir`, or null. Starts nothing and writes nothing. */
export const runningEmbeddedPostgres = async (dataDir: string, superuserPassword: string): Promise<string | null> => {
  const home = await existingHome(dataDir)
  const found = home ? await readPostmaster(join(home, 'cluster')) : null
  if (!home || !found) return null
  const owner = await stat(join(home, 'cluster'))
  const isAlive = await isPostmaster({ cluster: join(home, 'cluster'), runsAs: owner }, found.pid)
  return isAlive ? urlOf(found.port, superuserPassword) : null
}

const adoptOrLaunch = async (place: Place, installed: Binaries, options: EmbeddedOptions): Promise<Postmaster> => {
  await removeDrafts(place.home)
  const binaries = await usableBinaries(installed, place, options.log)
  await prepareCluster(place, binaries, options.superuserPassword, options.sync ?? true)
  const deadline = Date.now() + 15_000
  for (;;) {
    const adopted = await adopt(place, options)
    if (adopted) return adopted
    const launched = await launch(place, binaries, options)
    if (typeof launched !== 'string') {
      const isUp = await isAccepting(launched, options).catch(async (error) => {
        await stopPostmaster(place, launched.pid, options.log)
        throw error
      })
      if (isUp) return launched
    } else if (!passing.test(launched) || Date.now() > deadline) throw explained(launched, place.home)
    await sleep(100)
  }
}

/** The postmaster that already runs on this cluster, once it accepts connections; null when none runs. */
const adopt = async (place: Place, options: EmbeddedOptions): Promise<Postmaster | null> => {
  let isAnnounced = false
  const deadline = Date.now() + 10 * 60_000
  for (;;) {
    const found = await readPostmaster(place.cluster)
    if (!found || !(await isPostmaster(place, found.pid))) return null
    // it says ready also while it recovers from the crash of one of its processes
    if (found.status === 'ready' && (await isAccepting(found, options))) {
      options.log(`Postgres already runs here, on port ${found.port} (process ${found.pid}): using it.`)
      const hasSocket = await stat(join(`${found.socketDirectory}`, `.s.PGSQL.${found.port}`)).catch(() => null)
      return hasSocket ? found : { ...found, socketDirectory: null }
    }
    if (!isAnnounced) options.log(`Postgres runs here (process ${found.pid}) but takes no connections yet: waiting.`)
    isAnnounced = true
    if (Date.now() > deadline) {
      throw new StartError(
        `Postgres (process ${found.pid}) has taken no connections for ten minutes: see ${place.logFile}.`,
      )
    }
    await sleep(10)
  }
}

/** Starts the postmaster: itself once it accepts connections, or what it said when it ended before. */
const launch = async (
  place: Place,
  binaries: Binaries,
  { log, sync = true, maxConnections = 200, archiveTo, settings = {} }: EmbeddedOptions,
): Promise<Postmaster | string> => {
  await clearRemains(place)
  if (archiveTo !== undefined) await makeArchive(archiveTo, place.runsAs)
  await writeSettings(place, { sync, maxConnections, archiveTo })
  await boundLog(place.logFile)
  const port = await freePort(join(place.home, 'port'))
  const output = await open(place.logFile, 'a', 0o600)
  try {
    const from = (await output.stat()).size
    const child = await spawnPostgres(place, binaries, { ...settings, port: `${port}` }, output.fd)
    while (child.exitCode === null && child.signalCode === null) {
      const found = await readPostmaster(place.cluster)
      if (found?.pid === child.pid && found?.status === 'ready') {
        await writeFile(join(place.home, 'port'), `${port}\n`)
        log(
          `Postgres ${binaries.version.replace(/(\.0)?-.*$/, '')} runs on port ${port} (process ${found.pid}), with its data in ${place.home}.`,
        )
        child.once('exit', () => log(`Postgres (process ${found.pid}) has ended.`))
        return found
      }
      await sleep(5)
    }
    return (await readFile(place.logFile)).subarray(from).toString('utf8')
  } finally {
    await output.close()
  }
}

/** In a process group of its own: Ctrl-C must not stop it while our server still drains, nor may the terminal's end. */
const spawnPostgres = async (
  place: Place,
  { folder }: Binaries,
  given: Readonly<Record<string, string>>,
  output: number,
) => {
  // in double quotes, because the value is a list and a folder's name may hold a comma
  const sockets = place.socket ? `"${place.socket.replaceAll('"', '""')}"` : ''
  const settings = Object.entries({ ...given, unix_socket_directories: sockets }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ])
  const child: ChildProcess = spawn(join(folder, 'bin/postgres'), ['-D', place.cluster, ...settings], {
    ...identity(place.runsAs),
    cwd: place.home,
    env: plainEnvironment,
    detached: true,
    stdio: ['ignore', output, output],
  })
  await once(child, 'spawn')
  child.unref()
  return child
}

/** The port of the last start while it is free, so that stored URLs stay valid; else any free one. */
const freePort = async (file: string): Promise<number> => {
  const last = Number(await readFile(file, 'utf8').catch(() => '0'))
  const listen = async (port: number) => {
    const server = createServer().listen(port, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    server.close()
    await once(server, 'close')
    return address !== null && typeof address === 'object' ? address.port : 0
  }
  const wanted = Number.isInteger(last) && last > 0 && last < 65536 ? last : 0
  return await listen(wanted).catch(() => listen(0))
}

const readPostmaster = async (cluster: string): Promise<Postmaster | null> => {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '')
  // pid, folder, start time, port, socket folder, address, shared memory, status
  const [pid = '', folder = '', , port = '', socketDirectory = '', , , status = ''] = text.split('\n')
  if (!/^\d+$/.test(pid) || folder !== cluster) return null
  return { pid: Number(pid), port: Number(port), socketDirectory: socketDirectory || null, status: status.trim() }
}

/** Is this process alive, a postmaster, and on this cluster? Pids are used again, above all after a machine's restart. */
const isPostmaster = async ({ cluster, runsAs }: Pick<Place, 'cluster' | 'runsAs'>, pid: number): Promise<boolean> => {
  const found = await processOf(pid)
  if (!`${found?.command} `.includes(`/postgres -D ${cluster} `)) return false
  return found?.uid === (runsAs?.uid ?? process.getuid?.())
}

/** Whose a process is, and its program with its arguments: empty when it has ended and its parent has not looked. */
const processOf = async (pid: number): Promise<{ uid: number; command: string } | null> => {
  try {
    if (process.platform === 'linux') {
      const [{ uid }, words] = await Promise.all([stat(`/proc/${pid}`), readFile(`/proc/${pid}/cmdline`, 'utf8')])
      return { uid, command: words.split('\0').join(' ').trim() }
    }
    const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'uid=,command=', '-p', `${pid}`])
    const [, uid, command = ''] = /^\s*(\d+)\s+(.*)/.exec(stdout) ?? []
    return { uid: Number(uid), command: command.trim() }
  } catch {
    return null
  }
}

/** Puts away what a killed postmaster, whose pid may be another program's by now, left in the new one's way. */
const clearRemains = async (place: Place) => {
  const { home, cluster, socket, runsAs } = place
  if (socket) {
    await rm(socket, { recursive: true, force: true })
    await makePrivate(socket, runsAs)
  }
  const file = join(cluster, 'postmaster.pid')
  const text = await readFile(file, 'utf8').catch(() => null)
  if (text === null) return
  const [pid = ''] = text.split('\n')
  if (!/^-?\d+$/.test(pid)) {
    // empty: another is being started just now, or the machine lost power while it was
    if (Date.now() - (await stat(file)).mtimeMs > 5000) await rm(file)
    return
  }
  if (!(await processOf(Math.abs(Number(pid))))) return
  // started an instant ago by a server that was killed right after: the next look adopts it
  if (await isPostmaster(place, Number(pid))) return
  // a pid in use makes Postgres refuse to start; that of its own parent does not, and the rest of the file stays to
  // protect the data from processes of the former postmaster that may live on
  const draft = join(home, 'draft-postmaster.pid')
  await writeFile(draft, text.replace(pid, `${process.pid}`), { mode: 0o600 })
  if (runsAs) await chown(draft, runsAs.uid, runsAs.gid)
  await rename(draft, file)
}

/** Keeps at most two files of the log. It is emptied in place, because Postgres holds it open and appends. */
const boundLog = async (file: string) => {
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  )
  if (size < 16 * 1024 * 1024) return
  await copyFile(file, `${file}.1`)
  await chmod(`${file}.1`, 0o600)
  await truncate(file)
}

// sslmode, because dbmate's driver requires TLS by default
const urlOf = (port: number, password: string) =>
  `postgres://${superuser}:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres?sslmode=disable`

/** One connection, which proves that it accepts them and that our password is still the cluster's. */
const isAccepting = async ({ port }: Postmaster, options: EmbeddedOptions): Promise<boolean> => {
  const connectionString = urlOf(port, options.superuserPassword)
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 10_000 })
  try {
    await client.connect()
    return true
  } catch (error) {
    const [tooMany, startingOrStopping, wrongPassword] = ['53300', '57P03', '28P01']
    // any other error is of the connection: refused, or cut by a restart
    const code = error instanceof pg.DatabaseError ? error.code : startingOrStopping
    if (code === tooMany) return true
    if (code === startingOrStopping) return false
    if (code !== wrongPassword) throw error
    throw new StartError(
      `Postgres in ${options.dataDir} refuses our password: start Trellis with the SECRETS_KEY that this data was made with.`,
    )
  } finally {
    await client.end().catch(() => undefined)
  }
}

const stopPostmaster = async (place: Place, pid: number, log: (message: string) => void) => {
  const hasEnded = async (milliseconds: number) => {
    for (const deadline = Date.now() + milliseconds; Date.now() < deadline; await sleep(10)) {
      if (!(await isPostmaster(place, pid))) return true
    }
    return false
  }
  for (const [signal, patience] of [
    ['SIGINT', 30_000],
    ['SIGQUIT', 10_000],
  ] as const) {
    if (!(await isPostmaster(place, pid))) return
    try {
      process.kill(pid, signal)
    } catch (error) {
      // it has ended just now
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
    if (await hasEnded(patience)) return
    log(`Postgres (process ${pid}) has not ended ${patience / 1000} s after ${signal}.`)
  }
}

const handle = (place: Place, running: Postmaster, options: EmbeddedOptions): EmbeddedPostgres => {
  const inUse = join(place.home, 'use.lock')
  const unuse = use(inUse)
  const tidying = setInterval(() => {
    boundLog(place.logFile).catch((error) => options.log(`The log of Postgres could not be bounded: ${error}`))
  }, 60_000).unref()
  let isReleased = false
  const release = () => {
    if (isReleased) return
    isReleased = true
    clearInterval(tidying)
    unuse()
  }
  const stop = async () => {
    release()
    // its folder was removed: no other process can share it any more
    if (!(await stat(place.home).catch(() => null))) return stopPostmaster(place, running.pid, options.log)
    return alone(join(place.home, 'start.lock'), async () => {
      if (isInUse(inUse)) return options.log(`Postgres (process ${running.pid}) goes on: another process uses it.`)
      // it may have crashed since, and another process have started it again
      const { pid } = (await readPostmaster(place.cluster)) ?? running
      await stopPostmaster(place, pid, options.log)
    })
  }
  let stopping: Promise<void> | undefined
  return {
    url: urlOf(running.port, options.superuserPassword),
    port: running.port,
    socketDirectory: running.socketDirectory,
    pid: running.pid,
    stop() {
      stopping ??= stop()
      return stopping
    },
    release,
  }
}
