// How late a poke reaches the sockets of everybody.
import { startChild } from './child.ts'
import type { Scenario } from './installation.ts'
import type { Counted, ListenCommand } from './listeners.ts'
import { deviceOf, requestsOf } from './sync_requests.ts'

/** Milliseconds from the request that writes a row which everybody reads, until the pokes have come. */
export const measurePokes = async (
  { server, users }: Scenario,
  { sockets, perUser, pokes }: { readonly sockets: number; readonly perUser: number; readonly pokes: number },
): Promise<{ p50: number; p99: number }[]> => {
  const listeners = startChild('listeners.ts')
  try {
    const headers = Array.from({ length: sockets }, (_, n) => ({
      ...users[Math.floor(n / perUser) % users.length]?.headers,
    }))
    const url = `${server.url.replace('http', 'ws')}/v1/client/realtime`
    await listeners.ask({ kind: 'trellis', url, headers, channel: 'sync' } satisfies ListenCommand)
    const insert = requestsOf(server.url).insert('news')
    const writer = deviceOf(users[0])
    const rounds: { p50: number; p99: number }[] = []
    for (let n = 0; n <= pokes; n += 1) {
      await listeners.ask({ kind: 'begin' } satisfies ListenCommand)
      await insert(writer)
      const counted = await listeners.ask<Counted>({ kind: 'count', wanted: sockets } satisfies ListenCommand)
      if (counted.deliveries < sockets) throw new Error(`${counted.deliveries} of ${sockets} pokes came`)
      if (n > 0) rounds.push(counted)
    }
    return rounds
  } finally {
    await listeners.end()
  }
}
