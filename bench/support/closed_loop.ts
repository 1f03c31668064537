// Closed load in this process, for answers that are no success: a 304 is what is measured.
import { Pool } from 'undici'
import { percentile } from './numbers.ts'

export type Asked = {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: 'GET' | 'POST' | 'PUT'
  readonly body?: string
}
export type Looped = {
  readonly requests: number
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

/** Each of so many callers sends its next request when its last one is answered. Any other status ends the bench. */
export const closedLoop = async (
  origin: string,
  next: (n: number) => Asked,
  wanted: number,
  { callers, seconds, most = Number.POSITIVE_INFINITY }: { callers: number; seconds: number; most?: number },
): Promise<Looped> => {
  const pool = new Pool(origin, { connections: callers })
  const latencies: number[] = []
  const began = performance.now()
  let n = 0
  const call = async () => {
    while (performance.now() - began < seconds * 1000 && n < most) {
      const { path, headers = {}, method = 'GET', body } = next(n)
      n += 1
      const sent = performance.now()
      const answer = await pool.request({
        path,
        method,
        headers: { ...headers },
        ...(body === undefined ? {} : { body }),
      })
      const text = await answer.body.text()
      if (answer.statusCode !== wanted) throw new Error(`${method} ${path}: ${answer.statusCode} ${text.slice(0, 500)}`)
      latencies.push(performance.now() - sent)
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  const took = performance.now() - began
  await pool.close()
  return {
    requests: latencies.length,
    perSecond: (latencies.length * 1000) / took,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  }
}
