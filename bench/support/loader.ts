// Closed load: each connection sends its next request when the last one is answered.
import autocannon from 'autocannon'
import { answer } from './child.ts'
import { percentile } from './numbers.ts'

export type Load = {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly connections: number
  readonly seconds: number
  /** So many requests instead, however long they take. */
  readonly amount?: number
  /** Connection n sends those of index n, over and over from the first. */
  readonly headers: readonly Readonly<Record<string, string>>[]
  readonly body?: string
}

export type Loaded = {
  readonly requests: number
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
}

answer(async ({ url, method, connections, seconds, amount, headers, body }: Load): Promise<Loaded> => {
  let next = 0
  const run = autocannon({
    url,
    method,
    connections,
    timeout: 60,
    ...(amount === undefined ? { duration: seconds } : { amount }),
    ...(body === undefined ? {} : { body }),
    setupClient(client) {
      client.setHeaders({ ...headers[next % headers.length] })
      next += 1
    },
  })
  // autocannon's own histogram holds whole milliseconds
  const latencies: number[] = []
  run.on('response', (_client: unknown, _status: number, _bytes: number, milliseconds: number) => {
    latencies.push(milliseconds)
  })
  const { non2xx, errors, timeouts, duration } = await run
  if (non2xx + errors + timeouts > 0)
    throw new Error(`${method} ${url}: ${non2xx} refused, ${errors} errors, ${timeouts} timeouts`)
  return {
    requests: latencies.length,
    perSecond: latencies.length / duration,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  }
})
