import type { Target } from '#server/database/cluster.ts'
import type { Asking, Response, Run } from '#server/graphql/messages.ts'
import type { NamedTable } from '#server/graphql/naming.ts'
import { ProcessEnded, type SchemaProcess } from '#server/graphql/schema_process.ts'
import { createLru } from '#server/lru.ts'

/** What a schema is made of. */
export type Wanted = {
  readonly hash: string
  readonly tables: readonly NamedTable[]
  readonly target: Target
  readonly asking: Asking
}

/** A schema could not be made. `retryAfterMs`: it is not begun again before. */
export class NotMade extends Error {
  readonly retryAfterMs: number
  constructor(message: string, retryAfterMs: number) {
    super(message)
    this.retryAfterMs = retryAfterMs
  }
}
/** The database of the schema was not there; nothing is remembered of that. */
export class NotThere extends Error {}

export type SchemasOptions = {
  readonly start: () => SchemaProcess
  /** Processes at most: each has one schema. */
  readonly processes: number
  /** Schemas that are made at the same time. */
  readonly builds: number
  /** The longest making of one. */
  readonly buildMs: number
  /** After so long without a question a process ends, and its memory with it. */
  readonly idleMs: number
  readonly onFailure?: (projectId: string, error: string) => void
  readonly now?: () => number
}

export type Schemas = {
  /**
   * Answers with this schema, which is made first if no process has it; null where the database was not there. `isWanted` is asked before the answer begins.
   * Rejects with NotMade, NotThere and ProcessEnded.
   */
  run(
    wanted: Wanted,
    question: Omit<Run, 'kind' | 'id'>,
    timeoutMs: number,
    isWanted?: () => boolean,
  ): Promise<Response | null>
  /** Ends all processes: their connections are to a machine that is gone. */
  reset(): void
  readonly pids: readonly number[]
  close(): Promise<void>
}

type Worker = {
  readonly process: SchemaProcess
  hash: string | null
  isMaking: boolean
  /** Ended by us, and not by its work. */
  isRemoved: boolean
  /** Whose schema it made. */
  readonly developerId: string
  readonly projects: Set<string>
  usedAt: number
  idle: NodeJS.Timeout | undefined
}
type Build = Wanted & {
  readonly promise: Promise<Worker>
  readonly resolve: (worker: Worker) => void
  readonly reject: (error: Error) => void
  isRunning: boolean
}

/** A schema that failed is tried again after half a minute, then after twice as long each time, up to an hour. */
const firstRetryMs = 30_000
const longestRetryMs = 3_600_000
const rememberedFailures = 1000
const rememberedTurns = 1000

/**
 * Which process has which schema. A schema is made by a process of its own, which answers with it afterwards: making a large one holds up, and at worst
 * ends, the answers of the projects with that very schema. Of the builds that wait, the one of the developer whose turn was longest ago is next, and no
 * developer and no project has two at once; of the processes half is a developer's share. A schema that could not be made is remembered by its hash, which a
 * change of a collection changes.
 */
export const createSchemas = (options: SchemasOptions): Schemas => {
  const { start, processes, builds: mostBuilds, buildMs, idleMs, onFailure, now = () => performance.now() } = options
  const workers = new Set<Worker>()
  const builds = new Map<string, Build>()
  const failures = createLru<{ readonly until: number; readonly times: number; readonly message: string }>(
    rememberedFailures,
  )
  const turns = createLru<number>(rememberedTurns)
  let turn = 0
  let isClosed = false

  const remove = (worker: Worker) => {
    worker.isRemoved = true
    clearTimeout(worker.idle)
    workers.delete(worker)
    worker.process.kill()
  }
  const rest = (worker: Worker) => {
    clearTimeout(worker.idle)
    worker.usedAt = now()
    worker.idle = setTimeout(() => {
      if (worker.process.isBusy()) rest(worker)
      else remove(worker)
    }, idleMs).unref()
  }
  const begin = (developerId: string): Worker => {
    const process = start()
    const worker: Worker = {
      process,
      hash: null,
      isMaking: false,
      isRemoved: false,
      developerId,
      projects: new Set(),
      usedAt: now(),
      idle: undefined,
    }
    workers.add(worker)
    void process.gone.then(() => {
      clearTimeout(worker.idle)
      workers.delete(worker)
      next()
    })
    return worker
  }

  /** A process for this build: that of the project, if no other uses it, a new one, or that of the schema that was not used for longest. */
  const takeWorker = ({ asking: { projectId, developerId } }: Build): Worker | null => {
    const all = [...workers]
    const own = all.find(
      ({ isMaking, projects: [first], projects }) => !isMaking && projects.size === 1 && first === projectId,
    )
    if (own) return own
    const theirs = all.filter((worker) => worker.developerId === developerId)
    const isShareTaken = theirs.length >= Math.max(1, Math.floor(processes / 2))
    if (isShareTaken || all.length >= processes) {
      const [oldest] = (isShareTaken ? theirs : all)
        .filter(({ isMaking, process }) => !isMaking && !process.isBusy())
        .sort((a, b) => a.usedAt - b.usedAt)
      if (!oldest) return null
      remove(oldest)
    }
    return begin(developerId)
  }

  const fail = (build: Build, message: string) => {
    const times = (failures.get(build.hash)?.times ?? 0) + 1
    const waits = Math.min(firstRetryMs * 2 ** (times - 1), longestRetryMs)
    failures.set(build.hash, { until: now() + waits, times, message })
    onFailure?.(build.asking.projectId, message)
    build.reject(new NotMade(message, waits))
  }

  const make = async (build: Build, worker: Worker) => {
    const { tables, target, asking, hash } = build
    build.isRunning = true
    worker.isMaking = true
    try {
      const { error, isUnreachable } = await worker.process.make({ tables, target, asking }, buildMs)
      if (isUnreachable) build.reject(new NotThere())
      else if (error !== null) fail(build, error)
      else {
        failures.delete(hash)
        worker.hash = hash
        worker.projects.clear()
        worker.projects.add(asking.projectId)
        rest(worker)
        build.resolve(worker)
        return
      }
      // what it had before is not asked for any more
      if (!worker.process.isBusy()) remove(worker)
    } catch (error) {
      if (!(error instanceof ProcessEnded)) throw error
      // it took too long or too much memory, unless it was ended by us
      if (worker.isRemoved) build.reject(error)
      else fail(build, 'its making took too long, or too much memory')
      remove(worker)
    } finally {
      worker.isMaking = false
      builds.delete(hash)
      // those who waited for this schema ask first
      setImmediate(next)
    }
  }

  /** Begins what may begin. */
  const next = () => {
    if (isClosed) return
    const all = [...builds.values()]
    const running = all.filter(({ isRunning }) => isRunning)
    const turnOf = ({ asking }: Build) => turns.get(asking.developerId) ?? 0
    for (const build of all.filter(({ isRunning }) => !isRunning).sort((a, b) => turnOf(a) - turnOf(b))) {
      if (running.length >= mostBuilds) return
      const { developerId, projectId } = build.asking
      if (running.some(({ asking }) => asking.developerId === developerId || asking.projectId === projectId)) continue
      const worker = takeWorker(build)
      if (!worker) continue
      running.push(build)
      turn += 1
      turns.set(developerId, turn)
      void make(build, worker)
    }
  }

  const build = (wanted: Wanted): Promise<Worker> => {
    const known = builds.get(wanted.hash)
    if (known) return known.promise
    const failed = failures.get(wanted.hash)
    if (failed && failed.until > now()) return Promise.reject(new NotMade(failed.message, failed.until - now()))
    const { promise, resolve, reject } = Promise.withResolvers<Worker>()
    promise.catch(() => undefined)
    builds.set(wanted.hash, { ...wanted, promise, resolve, reject, isRunning: false })
    next()
    return promise
  }

  return {
    async run(wanted, question, timeoutMs, isWanted = () => true) {
      const { projectId } = wanted.asking
      const found =
        [...workers].find(({ hash, isMaking }) => hash === wanted.hash && !isMaking) ?? (await build(wanted))
      if (!isWanted()) throw new ProcessEnded('the answer would have come too late')
      for (const other of workers) if (other !== found) other.projects.delete(projectId)
      found.projects.add(projectId)
      rest(found)
      try {
        return await found.process.run(question, timeoutMs)
      } finally {
        next()
      }
    },
    reset() {
      for (const worker of [...workers]) remove(worker)
    },
    get pids() {
      return [...workers].flatMap(({ process: { pid } }) => (pid === undefined ? [] : [pid]))
    },
    async close() {
      isClosed = true
      for (const build of builds.values())
        if (!build.isRunning) build.reject(new ProcessEnded('the server is stopping'))
      const all = [...workers]
      for (const worker of all) remove(worker)
      await Promise.all(all.map(({ process }) => process.gone))
    },
  }
}
