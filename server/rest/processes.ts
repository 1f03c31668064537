import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { Config } from '#server/config.ts'
import type { Place } from '#server/database/cluster.ts'
import { restUri } from '#server/database/cluster.ts'
import type { Database } from '#server/database/database.ts'
import { keysChanged } from '#server/database/keys.ts'
import { refusal } from '#server/errors.ts'
import { findPostgrest } from '#server/rest/binary.ts'
import { createNotices, type Notices } from '#server/rest/notices.ts'
import { type Postgrest, startPostgrest } from '#server/rest/process.ts'
import { createQueue, type Queue } from '#server/rest/queue.ts'
import { createRestTokens, type RestTokens } from '#server/rest/tokens.ts'
import type { RestProcesses } from '#server/rest/types.ts'
import type { Secrets } from '#server/secrets.ts'

export type RestProcessesOptions = {
  readonly config: Pick<
    Config,
    | 'POSTGREST_BIN'
    | 'REST_PROCESSES'
    | 'REST_CONNECTIONS'
    | 'REST_MEMORY_MB'
    | 'REST_IDLE_SECONDS'
    | 'STATEMENT_TIMEOUT_MS'
  >
  readonly database: Pick<Database, 'call'>
  readonly secrets: Secrets
  readonly log: Pick<Logger, 'warn'>
  readonly clock: () => string | null
}

type RestProcess = {
  readonly place: Place
  readonly organizationId: string | undefined
  readonly started: Promise<Postgrest>
  readonly tokens: RestTokens
  process: Postgrest | null
  leases: number
  usedAt: number
  readonly notices: Notices
  readonly strangersTurn: Queue
  /** Not for new requests: its database is another one, or it has ended. */
  isStale: boolean
  idle: NodeJS.Timeout | undefined
}

/** So many requests without a session wait for their turn. */
const mostStrangers = 100

/** After a start that failed: the next one may be tried. */
const pauseMs = 2_000

const unavailable = (message: string, seconds: number) =>
  refusal(503, 'REST_UNAVAILABLE', message, null, { 'Retry-After': String(seconds) })

const busy = () =>
  refusal(503, 'REST_BUSY', 'Too many projects use their REST access at the moment.', null, { 'Retry-After': '2' })

export const createRestProcesses = ({ config, database, secrets, log, clock }: RestProcessesOptions): RestProcesses => {
  const processes = new Map<string, RestProcess>()
  const failedAt = new Map<string, number>()
  /** What checks the open sockets of a project. */
  const checks = new Map<string, Set<() => void>>()
  /** Also those that no new request gets, until they have ended. */
  const living = new Map<RestProcess, string>()
  let isStopped = false

  const end = (projectId: string, entry: RestProcess): Promise<void> => {
    if (processes.get(projectId) === entry) processes.delete(projectId)
    entry.isStale = true
    clearTimeout(entry.idle)
    return entry.started.then((process) => process.stop()).catch(() => undefined)
  }

  const start = (projectId: string, place: Place, organizationId: string | undefined): RestProcess => {
    const binary = findPostgrest(config.POSTGREST_BIN)
    if (!binary) throw unavailable('There is no PostgREST for this server: see POSTGREST_BIN.', 3600)
    if (performance.now() - (failedAt.get(projectId) ?? Number.NEGATIVE_INFINITY) < pauseMs)
      throw unavailable('PostgREST did not start: try again in a moment.', 2)
    const room = makeRoom(organizationId)
    const secret = randomBytes(32).toString('hex')
    const begin = async () => {
      await room
      await database.call(place, 'app_worker', { caller: 'worker', projectId }, 'rest_prepare', {})
      return startPostgrest({
        binary,
        databaseUri: restUri(place.cluster, place.database, secrets),
        secret,
        connections: config.REST_CONNECTIONS,
        memoryMb: config.REST_MEMORY_MB,
      })
    }
    const entry: RestProcess = {
      place,
      organizationId,
      started: begin(),
      tokens: createRestTokens({ secret, timeoutMs: config.STATEMENT_TIMEOUT_MS, clock }),
      process: null,
      leases: 0,
      usedAt: performance.now(),
      notices: createNotices(),
      strangersTurn: createQueue(Math.max(1, Math.floor(config.REST_CONNECTIONS / 2)), mostStrangers),
      isStale: false,
      idle: undefined,
    }
    processes.set(projectId, entry)
    living.set(entry, projectId)
    entry.started.then(
      (process) => {
        entry.process = process
        failedAt.delete(projectId)
        void process.ended.then(() => {
          if (!entry.isStale) log.warn({ project: projectId }, 'PostgREST ended; the next request starts it again')
          entry.isStale = true
          living.delete(entry)
          if (processes.get(projectId) === entry) processes.delete(projectId)
        })
      },
      (error: Error) => {
        living.delete(entry)
        if (processes.get(projectId) === entry) processes.delete(projectId)
        if (failedAt.size > 1000) failedAt.clear()
        failedAt.set(projectId, performance.now())
        log.warn({ project: projectId, error: error.message }, 'PostgREST did not start')
      },
    )
    return entry
  }

  /**
   * The one that was not used for the longest time ends for another project; none that serves a request does. An organization has three quarters of the
   * processes at most: requests that last in many projects of one leave others a way in.
   */
  const share = Math.ceil(config.REST_PROCESSES * 0.75)
  const makeRoom = (organizationId: string | undefined): Promise<void> => {
    const isTheirs = ([, entry]: [string, RestProcess]) => entry.organizationId === organizationId
    const hasShare = organizationId !== undefined && [...processes].filter(isTheirs).length >= share
    if (!hasShare && processes.size < config.REST_PROCESSES) return Promise.resolve()
    let oldest: [string, RestProcess] | undefined
    for (const [id, entry] of hasShare ? [...processes].filter(isTheirs) : processes)
      if (entry.leases === 0 && entry.usedAt < (oldest?.[1].usedAt ?? Number.POSITIVE_INFINITY)) oldest = [id, entry]
    if (!oldest) throw busy()
    return end(...oldest).then(() => undefined)
  }

  const isCurrent = (entry: RestProcess, place: Place) =>
    !entry.isStale && entry.place.database === place.database && entry.place.cluster.id === place.cluster.id

  const release = (projectId: string, entry: RestProcess) => {
    entry.leases -= 1
    entry.usedAt = performance.now()
    if (entry.leases > 0) return
    if (entry.isStale) void end(projectId, entry)
    else {
      clearTimeout(entry.idle)
      entry.idle = setTimeout(() => void end(projectId, entry), config.REST_IDLE_SECONDS * 1000).unref()
    }
  }

  return {
    async lease(projectId, place, organizationId) {
      if (isStopped) throw unavailable('The server is stopping.', 2)
      const known = processes.get(projectId)
      if (known && !isCurrent(known, place) && known.leases === 0) await end(projectId, known)
      const now = processes.get(projectId)
      const entry = now && isCurrent(now, place) ? now : start(projectId, place, organizationId)
      clearTimeout(entry.idle)
      entry.leases += 1
      try {
        const { http, pid, loads, loadedAfter } = entry.process ?? (await entry.started)
        let isReleased = false
        return {
          http,
          pid,
          loads,
          readAgain: (seen) => entry.notices.readAgain((ms) => loadedAfter(seen, ms)),
          strangersTurn: entry.strangersTurn,
          tokenFor: (claims) => entry.tokens.tokenFor(claims),
          release() {
            if (isReleased) return
            isReleased = true
            release(projectId, entry)
          },
        }
      } catch (error) {
        entry.leases -= 1
        // of the database: its own refusal
        if (error instanceof Error && 'status' in error) throw error
        throw unavailable('PostgREST did not start: try again in a moment.', 2)
      }
    },
    drop(changed) {
      const [kind, id = ''] = changed.split(':')
      // each was started with the password of the former key: those that serve requests end with them
      if (kind === keysChanged)
        for (const [projectId, entry] of [...processes]) {
          entry.isStale = true
          if (entry.leases === 0) void end(projectId, entry)
        }
      if (kind === 'collection') processes.get(id.split('/')[0] ?? '')?.notices.changed()
      if (kind !== 'project' && kind !== 'tenant') return
      for (const check of checks.get(id) ?? []) check()
      const entry = processes.get(id)
      if (!entry) return
      entry.isStale = true
      if (entry.leases === 0) void end(id, entry)
    },
    watch(projectId, check) {
      const watching = checks.get(projectId) ?? new Set()
      checks.set(projectId, watching.add(check))
      return () => {
        watching.delete(check)
        if (watching.size === 0 && checks.get(projectId) === watching) checks.delete(projectId)
      }
    },
    checkAll() {
      for (const watching of checks.values()) for (const check of watching) check()
    },
    running: () => new Map([...processes].flatMap(([id, entry]) => (entry.process ? [[id, entry.process.pid]] : []))),
    async stop() {
      isStopped = true
      await Promise.all([...living].map(([entry, id]) => end(id, entry)))
    },
  }
}
