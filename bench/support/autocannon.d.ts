declare module 'autocannon' {
  import type { EventEmitter } from 'node:events'

  export type Client = { setHeaders(headers: Record<string, string>): void }
  export type Options = {
    readonly url: string
    readonly connections: number
    readonly duration: number
    readonly method: string
    readonly headers?: Record<string, string>
    readonly body?: string
    readonly setupClient?: (client: Client) => void
  }
  export type Result = {
    readonly requests: { readonly total: number }
    readonly errors: number
    readonly timeouts: number
    readonly non2xx: number
    /** Seconds. */
    readonly duration: number
  }
  type Run = EventEmitter & PromiseLike<Result>
  export default function autocannon(options: Options): Run
}
