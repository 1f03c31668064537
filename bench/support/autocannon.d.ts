declare module 'autocannon' {
  import type { EventEmitter } from 'node:events'

  type Options = {
    readonly url: string
    readonly connections: number
    readonly duration?: number
    readonly amount?: number
    /** Seconds. */
    readonly timeout?: number
    readonly method: string
    readonly body?: string
    readonly setupClient?: (client: { setHeaders(headers: Record<string, string>): void }) => void
  }
  type Result = {
    readonly errors: number
    readonly timeouts: number
    readonly non2xx: number
    /** Seconds. */
    readonly duration: number
  }
  const autocannon: (options: Options) => EventEmitter & PromiseLike<Result>
  export = autocannon
}
