import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'

/** One process of PostgREST, which answers over a socket that only this user may open. */
export type Postgrest = {
  readonly pid: number
  readonly http: Pool
  /** When it has ended, by itself or stopped: its socket is gone then. */
  readonly ended: Promise<void>
  /** How often it has read the schema. */
  loads(): number
  /** When it has read the schema more often than `seen` times; false when it has not after that many milliseconds. */
  loadedAfter(seen: number, ms: number): Promise<boolean>
  stop(): Promise<void>
}

export type PostgrestOptions = {
  readonly binary: string
  readonly databaseUri: string
  readonly secret: string
  readonly connections: number
  readonly memoryMb: number
}

/** Longest start: connecting, and reading the schema of 200 collections. */
const startMs = 15_000
/** Requests that wait beside those that have a connection of the database each. */
const waitingPerConnection = 8

/**
 * Ends PostgREST when the server is gone, also when that was killed and could end nothing itself: the pipe closes then. PostgREST's own
 * end is passed on.
 */
const guarded = `
exec 3<&0
"$0" </dev/null & child=$!
( read -r _ <&3; kill -KILL $child ) 2>/dev/null & watcher=$!
wait $child; status=$?
kill $watcher 2>/dev/null
exit $status`

const environmentOf = (options: PostgrestOptions, socket: string) => ({
  PATH: process.env['PATH'],
  PGRST_DB_URI: options.databaseUri,
  PGRST_DB_SCHEMAS: 'rest',
  PGRST_DB_EXTRA_SEARCH_PATH: '',
  PGRST_DB_PRE_REQUEST: 'internal.rest_begin',
  PGRST_DB_CONFIG: 'false',
  PGRST_DB_MAX_ROWS: '1000',
  PGRST_DB_AGGREGATES_ENABLED: 'true',
  // Prefer: tx=rollback, the dry run of a client
  PGRST_DB_TX_END: 'commit-allow-override',
  PGRST_DB_POOL: String(options.connections),
  PGRST_DB_POOL_ACQUISITION_TIMEOUT: '5',
  PGRST_JWT_SECRET: options.secret,
  // the root would describe every collection to whoever has a session
  PGRST_OPENAPI_MODE: 'disabled',
  PGRST_LOG_LEVEL: 'crit',
  PGRST_SERVER_UNIX_SOCKET: socket,
  PGRST_SERVER_UNIX_SOCKET_MODE: '600',
  // its heap is bounded, and it works on as many cores as a server process does
  GHCRTS: `-N1 -M${options.memoryMb}m`,
})

/** Ends a whole group: the guard, and PostgREST in it. */
const killGroup = (child: ChildProcess, signal: NodeJS.Signals) => {
  try {
    if (child.pid && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, signal)
  } catch {
    // it has ended
  }
}

type Loading = Pick<Postgrest, 'loads' | 'loadedAfter'>

/** Resolves when PostgREST has read the schema, which it says each time that it does; rejects when it ends before, or takes too long. */
const untilReady = (child: ChildProcess): Promise<Loading> =>
  new Promise((resolve, reject) => {
    let said = ''
    let loads = 0
    const waiting = new Set<() => void>()
    const loading: Loading = {
      loads: () => loads,
      loadedAfter: (seen, ms) =>
        new Promise((done) => {
          if (loads > seen) return done(true)
          const settle = (isLoaded: boolean) => {
            clearTimeout(timer)
            waiting.delete(loaded)
            done(isLoaded)
          }
          const loaded = () => settle(true)
          const timer = setTimeout(() => settle(false), ms)
          waiting.add(loaded)
        }),
    }
    const fail = (reason: string) => {
      clearTimeout(timer)
      reject(new Error(`PostgREST ${reason}: ${said.trim().slice(-500)}`))
    }
    const timer = setTimeout(() => fail('does not become ready'), startMs)
    child.once('error', (error) => fail(error.message))
    child.once('exit', () => fail('ended'))
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      said = (said + chunk).slice(-4000)
      const times = said.split(loadedLine).length - 1
      if (times === 0) return
      said = said.slice(said.lastIndexOf(loadedLine) + loadedLine.length)
      loads += times
      clearTimeout(timer)
      resolve(loading)
      for (const loaded of [...waiting]) loaded()
    })
  })

const loadedLine = 'Schema cache loaded'

export const startPostgrest = async (options: PostgrestOptions): Promise<Postgrest> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-rest-'))
  const socket = join(folder, 's')
  const child = spawn('/bin/sh', ['-c', guarded, options.binary], {
    env: environmentOf(options, socket),
    stdio: ['pipe', 'ignore', 'pipe'],
    // a group of its own: signals of a terminal are for the server, which ends what it started
    detached: true,
  })
  child.stdin?.on('error', () => undefined)
  const exited = once(child, 'exit').catch(() => undefined)
  const ended = exited.then(() => rm(folder, { recursive: true, force: true }))
  const end = async () => {
    killGroup(child, 'SIGKILL')
    await ended
  }
  let loading: Loading
  try {
    loading = await untilReady(child)
  } catch (error) {
    await end()
    throw error
  }
  const http = new Pool('http://postgrest', {
    socketPath: socket,
    connections: options.connections * waitingPerConnection,
    pipelining: 1,
    headersTimeout: 30_000,
    bodyTimeout: 30_000,
  })
  void ended.then(() => http.destroy())
  return { pid: child.pid ?? 0, http, ended, ...loading, stop: end }
}
