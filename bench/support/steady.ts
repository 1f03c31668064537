// Open load: so many requests a second whatever the answers take. A latency counts from the moment that was due.
import { Agent, request } from 'undici'
import { answer } from './child.ts'

export type Target = {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

export type SteadyCommand =
  | { readonly kind: 'begin'; readonly targets: readonly Target[]; readonly perSecond: number }
  | { readonly kind: 'end' }

export type Steady = {
  /** Milliseconds, one for each request. */
  readonly latencies: readonly number[]
  /** Answers by status; `failed` are those that never came. */
  readonly statuses: Readonly<Record<string, number>>
}

const dispatcher = new Agent({ connections: 64, pipelining: 1 })

const start = (targets: readonly Target[], perSecond: number) => {
  const latencies: number[] = []
  const statuses: Record<string, number> = {}
  const running = new Set<Promise<void>>()
  const began = performance.now()
  let sent = 0
  const send = async (target: Target, due: number): Promise<void> => {
    const { url, ...options } = target
    const status = await request(url, { ...options, dispatcher }).then(
      async (response) => {
        await response.body.dump()
        return String(response.statusCode)
      },
      () => 'failed',
    )
    latencies.push(performance.now() - due)
    statuses[status] = (statuses[status] ?? 0) + 1
  }
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - began) * perSecond) / 1000)
    for (; sent < due; sent += 1) {
      const target = targets[sent % targets.length]
      if (!target) continue
      const promise = send(target, began + ((sent + 1) * 1000) / perSecond).finally(() => running.delete(promise))
      running.add(promise)
    }
  }, 1)
  return async (): Promise<Steady> => {
    clearInterval(timer)
    await Promise.all(running)
    return { latencies, statuses }
  }
}

let end: (() => Promise<Steady>) | undefined

answer(async (command: SteadyCommand) => {
  if (command.kind === 'begin') {
    end = start(command.targets, command.perSecond)
    return true
  }
  return end?.()
})
