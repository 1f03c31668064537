import { type ChildProcess, fork } from 'node:child_process'
import { setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { onMoved } from '#server/database/hosts.ts'
import type { Target } from '#server/database/pools.ts'
import { refusal } from '#server/errors.ts'
import type { Asking, FromProcess, Run, ToProcess } from '#server/graphql/messages.ts'

export type Question = Pick<Run, 'target' | 'asking' | 'query' | 'operationName' | 'variables'>

export type GraphQL = {
  /** The response to a query. Refuses 429 RATE_LIMITED and 503 GRAPHQL_UNAVAILABLE, TENANT_UNAVAILABLE. */
  ask(question: Question): Promise<string>
  /** A change of a collection (`collection:<project>/<name>`) or of a database (`tenant:<project>`): its schema is looked at again. */
  drop(changed: string): void
  /** The process that answers, while there is one. */
  readonly processId: number | undefined
  close(): Promise<void>
}

export type GraphQLOptions = {
  readonly log: Pick<Logger, 'error' | 'warn'>
  /** Longest time from question to answer, the making of a schema included. */
  readonly timeoutMs?: number
  /** After so long without a question the process ends, and its memory with it. */
  readonly idleMs?: number
  /** Megabytes of the heap of the process. */
  readonly memory?: number
  /** The program of the process; tests pass others. */
  readonly program?: string
}

export type { Asking, Target }

/** Questions that may be under way, of one project and of all. */
const perProject = 4
const inTotal = 12

const retryAfter = { 'Retry-After': '2' }
const unavailable = (why: string) =>
  refusal(503, 'GRAPHQL_UNAVAILABLE', `GraphQL is not available: ${why}.`, null, retryAfter)

type Waiting = {
  readonly projectId: string
  readonly resolve: (body: string) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

/**
 * One process that answers GraphQL, started by the first question and ended when it is idle. Making a schema takes a second of computing and tens of
 * megabytes, and a query is planned in JavaScript: in this process either would hold up every request.
 */
export const createGraphQL = (options: GraphQLOptions): GraphQL => {
  const { log, timeoutMs = 40_000, idleMs = 300_000, memory = 640 } = options
  const file = options.program ?? fileURLToPath(new URL('./process.ts', import.meta.url))
  const waiting = new Map<number, Waiting>()
  const busy = new Map<string, number>()
  let child: ChildProcess | undefined
  let idle: NodeJS.Timeout | undefined
  let asked = 0
  let isClosed = false

  const settle = (id: number): Waiting | undefined => {
    const found = waiting.get(id)
    if (!found) return undefined
    waiting.delete(id)
    clearTimeout(found.timer)
    const left = (busy.get(found.projectId) ?? 1) - 1
    if (left > 0) busy.set(found.projectId, left)
    else busy.delete(found.projectId)
    if (waiting.size === 0) rest()
    return found
  }

  const kill = () => {
    clearTimeout(idle)
    child?.kill('SIGKILL')
  }

  // questions may wait for a machine that is gone; the next one starts another process
  const unfollow = onMoved(kill)

  const rest = () => {
    clearTimeout(idle)
    idle = setTimeout(kill, idleMs).unref()
    // an idle process keeps nobody alive
    child?.unref()
    child?.channel?.unref()
  }

  const read = (message: FromProcess) => {
    if (message.kind === 'problem')
      log.error({ sqlstate: message.code, error: message.message }, 'a GraphQL query failed')
    if (message.kind !== 'answered') return
    const found = settle(message.id)
    if (message.body !== null) found?.resolve(message.body)
    else
      found?.reject(
        refusal(503, 'TENANT_UNAVAILABLE', 'The database of this project is not available.', null, retryAfter),
      )
  }

  const start = (): ChildProcess => {
    const started = fork(file, {
      // nothing of ours is for this process
      env: { PATH: process.env['PATH'] ?? '', NODE_ENV: 'production', GRAPHILE_ENV: 'production' },
      execArgv: [`--max-old-space-size=${memory}`],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    child = started
    try {
      // the API goes first where both want a processor
      if (started.pid) setPriority(started.pid, 5)
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'the process of GraphQL has the priority of the server')
    }
    started.on('message', read)
    started.on('error', () => started.kill('SIGKILL'))
    started.once('exit', (code, signal) => {
      if (child === started) child = undefined
      clearTimeout(idle)
      if (waiting.size > 0) log.warn({ code, signal, questions: waiting.size }, 'the process of GraphQL has ended')
      for (const id of [...waiting.keys()]) settle(id)?.reject(unavailable('the process that answers it was ended'))
    })
    return started
  }

  const tell = (message: ToProcess) => {
    const process = child ?? start()
    process.send(message, (error) => {
      if (error) process.kill('SIGKILL')
    })
  }

  return {
    get processId() {
      return child?.pid
    },
    ask(question) {
      const { projectId } = question.asking
      if (isClosed) return Promise.reject(unavailable('the server is stopping'))
      const own = busy.get(projectId) ?? 0
      if (own >= perProject || waiting.size >= inTotal) {
        const message = 'Too many queries are under way at once.'
        return Promise.reject(refusal(429, 'RATE_LIMITED', message, null, retryAfter))
      }
      asked += 1
      const id = asked
      clearTimeout(idle)
      return new Promise((resolve, reject) => {
        const late = () => {
          log.warn({ project: projectId }, 'a GraphQL query held its process up, which is ended')
          kill()
        }
        busy.set(projectId, own + 1)
        waiting.set(id, { projectId, resolve, reject, timer: setTimeout(late, timeoutMs) })
        tell({ kind: 'run', id, ...question })
        child?.ref()
        child?.channel?.ref()
      })
    },
    drop(changed) {
      const [kind, rest = ''] = changed.split(':')
      if (!child || (kind !== 'collection' && kind !== 'tenant')) return
      tell({ kind: 'changed', projectId: rest.split('/')[0] ?? '' })
    },
    async close() {
      unfollow()
      isClosed = true
      clearTimeout(idle)
      const ending = child
      if (!ending) return
      const gone = new Promise<void>((resolve) => ending.once('exit', () => resolve()))
      ending.ref()
      ending.kill('SIGKILL')
      await gone
    },
  }
}
