import { type ChildProcess, fork } from 'node:child_process'
import { setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import type { FromProcess, Make, Response, Run, ToProcess } from '#server/graphql/messages.ts'

export type Log = Pick<Logger, 'error' | 'warn'>

export type ProcessOptions = {
  readonly log: Log
  /** Megabytes of its heap. */
  readonly memory: number
  /** The program; tests pass others. */
  readonly program?: string | undefined
}

/** The process has ended before it answered. */
export class ProcessEnded extends Error {}

/** A process that makes a schema and answers with it. */
export type SchemaProcess = {
  readonly pid: number | undefined
  /** Makes a schema, in place of the one that the process has. Rejects with ProcessEnded when it takes longer, and the process is gone then. */
  make(input: Omit<Make, 'kind' | 'id'>, timeoutMs: number): Promise<{ error: string | null; isUnreachable: boolean }>
  /** Answers with the schema that was made last; null where the database was not there. */
  run(question: Omit<Run, 'kind' | 'id'>, timeoutMs: number): Promise<Response | null>
  /** Whether anybody waits for it. */
  isBusy(): boolean
  kill(): void
  readonly gone: Promise<void>
}

type Waiting = {
  readonly resolve: (message: FromProcess) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

export const startSchemaProcess = ({ log, memory, program }: ProcessOptions): SchemaProcess => {
  const file = program ?? fileURLToPath(new URL('./process.ts', import.meta.url))
  const waiting = new Map<number, Waiting>()
  let asked = 0
  const child: ChildProcess = fork(file, {
    // nothing of ours is for this process
    env: { PATH: process.env['PATH'] ?? '', NODE_ENV: 'production', GRAPHILE_ENV: 'production' },
    execArgv: [`--max-old-space-size=${memory}`],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  try {
    // the API goes first where both want a processor
    if (child.pid) setPriority(child.pid, 5)
  } catch (error) {
    log.warn({ error: (error as Error).message }, 'the process of GraphQL has the priority of the server')
  }
  const kill = () => void child.kill('SIGKILL')

  const settle = (id: number): Waiting | undefined => {
    const found = waiting.get(id)
    if (!found) return undefined
    waiting.delete(id)
    clearTimeout(found.timer)
    if (waiting.size > 0) return found
    // an idle process keeps nobody alive
    child.unref()
    child.channel?.unref()
    return found
  }

  child.on('message', (message: FromProcess) => {
    if (message.kind === 'problem')
      log.error({ sqlstate: message.code, error: message.message }, 'a GraphQL query failed')
    if (message.kind === 'answered' || message.kind === 'made') settle(message.id)?.resolve(message)
  })
  child.on('error', kill)
  const gone = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      if (waiting.size > 0) log.warn({ code, signal, questions: waiting.size }, 'a process of GraphQL has ended')
      for (const id of [...waiting.keys()])
        settle(id)?.reject(new ProcessEnded('the process that answers it was ended'))
      resolve()
    })
  })

  const send = <T extends FromProcess>(message: ToProcess, timeoutMs: number): Promise<T> => {
    child.ref()
    child.channel?.ref()
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => {
        log.warn(
          { project: message.asking.projectId, work: message.kind },
          'GraphQL held its process up, which is ended',
        )
        kill()
      }, timeoutMs)
      waiting.set(message.id, { resolve: resolve as (message: FromProcess) => void, reject, timer })
      if (child.exitCode !== null || child.signalCode !== null || !child.connected) {
        settle(message.id)?.reject(new ProcessEnded('the process that answers it was ended'))
        return
      }
      child.send(message, (error) => {
        if (error) kill()
      })
    })
  }
  const nextId = () => {
    asked += 1
    return asked
  }

  return {
    get pid() {
      return child.pid
    },
    async make(input, timeoutMs) {
      const { error, isUnreachable } = await send<Extract<FromProcess, { kind: 'made' }>>(
        { kind: 'make', id: nextId(), ...input },
        timeoutMs,
      )
      return { error, isUnreachable }
    },
    async run(question, timeoutMs) {
      const { response } = await send<Extract<FromProcess, { kind: 'answered' }>>(
        { kind: 'run', id: nextId(), ...question },
        timeoutMs,
      )
      return response
    },
    isBusy: () => waiting.size > 0,
    kill,
    gone,
  }
}
