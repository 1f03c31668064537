import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Checked, Lacking, Refused, Reply, Request, Trace, Traced } from '#server/diagnostics/source_map_work.ts'

/** A question that got no answer: the process took too long or too much, or others wait already. */
export class NoAnswer extends Error {
  readonly isBusy: boolean
  constructor(message: string, isBusy: boolean) {
    super(message)
    this.isBusy = isBusy
  }
}

export type SourceMaps = {
  /** What a map of gzip is, or why it is none. Throws a NoAnswer. */
  check(projectId: string, bytes: Uint8Array): Promise<Checked | Refused>
  /** The sources of places; or which maps are lacking, with which the question is asked again. Throws a NoAnswer. */
  trace(projectId: string, places: Trace['places'], maps: Trace['maps']): Promise<Traced | Lacking | Refused>
  close(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly sourceMaps: SourceMaps
  }
}

export type SourceMapsOptions = {
  /** Longest work on one question. */
  readonly timeoutMs?: number
  /** The program of the process; tests pass others. */
  readonly program?: string
}

type Work = {
  readonly projectId: string
  readonly request: Request
  readonly resolve: (reply: Reply) => void
  readonly reject: (error: Error) => void
}

const idleMs = 60_000
/** So many questions wait, and so many of one project: each holds its maps in memory. */
const mostWaiting = { project: 4, total: 12 }

/**
 * One process that reads source maps. A hostile map harms only the question that has it: the process is killed when it takes too long, ends itself when it
 * needs too much memory, and another takes its place.
 */
export const createSourceMaps = ({ timeoutMs = 10_000, program }: SourceMapsOptions = {}): SourceMaps => {
  const file = program ?? fileURLToPath(new URL('./source_map_worker.ts', import.meta.url))
  const waiting: Work[] = []
  let child: ChildProcess | null = null
  let current: Work | null = null
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const start = (): ChildProcess => {
    const started = fork(file, {
      // nothing of ours is for this process
      env: { PATH: process.env['PATH'] ?? '' },
      execArgv: ['--max-old-space-size=1024'],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    started.on('error', () => started.kill('SIGKILL'))
    started.once('exit', () => {
      // one that was idle works at nothing
      if (child !== started) return
      child = null
      end()?.reject(new NoAnswer('the map takes too much time or memory', false))
      next()
    })
    started.on('message', (reply: Reply) => {
      end()?.resolve(reply)
      rest(started)
      next()
    })
    return started
  }
  const end = (): Work | null => {
    const ended = current
    current = null
    clearTimeout(timer)
    return ended
  }
  /** An idle process keeps nobody alive, and does not stay. */
  const rest = (rested: ChildProcess) => {
    rested.unref()
    rested.channel?.unref()
    timer = setTimeout(() => {
      child = null
      rested.kill('SIGKILL')
    }, idleMs).unref()
  }
  const next = (): void => {
    if (isClosed || current) return
    const work = waiting.shift()
    if (!work) return
    clearTimeout(timer)
    current = work
    child ??= start()
    child.ref()
    child.channel?.ref()
    const asked = child
    timer = setTimeout(() => asked.kill('SIGKILL'), timeoutMs)
    asked.send(work.request, (error) => {
      if (error) asked.kill('SIGKILL')
    })
  }
  const ask = <T extends Reply>(projectId: string, request: Request): Promise<T> => {
    const ofProject = waiting.filter((work) => work.projectId === projectId).length
    if (isClosed || waiting.length >= mostWaiting.total || ofProject >= mostWaiting.project)
      return Promise.reject(new NoAnswer('many source maps are being read', true))
    return new Promise<Reply>((resolve, reject) => {
      waiting.push({ projectId, request, resolve, reject })
      next()
    }) as Promise<T>
  }

  return {
    check: (projectId, bytes) => ask(projectId, { kind: 'check', bytes }),
    trace: (projectId, places, maps) => ask(projectId, { kind: 'trace', places, maps }),
    async close() {
      isClosed = true
      for (const { reject } of waiting.splice(0)) reject(new NoAnswer('the server is stopping', true))
      const last = child
      if (!last || last.exitCode !== null || last.signalCode !== null) return
      await new Promise<void>((resolve) => {
        last.once('exit', () => resolve())
        last.kill('SIGKILL')
      })
    },
  }
}
