// Sockets that listen, in a process of their own: ours, or those of a Parse LiveQuery server. Counts what arrives, and how long after it was sent.
import { WebSocket } from 'ws'
import { answer } from './child.ts'
import { percentile } from './numbers.ts'

export type ListenCommand =
  | {
      readonly kind: 'trellis'
      readonly url: string
      readonly headers: readonly Record<string, string>[]
      readonly channel: string
    }
  | {
      readonly kind: 'parse'
      readonly url: string
      readonly appId: string
      readonly className: string
      readonly sockets: number
    }
  | { readonly kind: 'begin' }
  /** Resolves when this many deliveries have arrived since `begin`, or none has for ten seconds. */
  | { readonly kind: 'count'; readonly wanted: number }
  | { readonly kind: 'close' }

export type Counted = {
  readonly deliveries: number
  readonly p50: number
  readonly p99: number
  readonly first: number
  readonly last: number
}

/** Epoch milliseconds with fractions: the same in every process of a machine. */
const now = () => performance.timeOrigin + performance.now()

let sockets: WebSocket[] = []
let latencies: number[] = []
let first = 0
let last = 0
let begun = 0

/**
 * What all readers of an event get is nearly the same text: the time in it is read by a search, not by a parser. A poke of sync has none:
 * its time is counted from `begin`.
 */
const arrived = (data: Buffer): void => {
  const at = data.indexOf('"sent":')
  if (at < 0 && !data.includes('"poke"')) return
  const sent = at < 0 ? begun : Number.parseFloat(data.toString('latin1', at + 7, at + 32))
  last = now()
  first ||= last
  latencies.push(last - sent)
}

const open = (
  url: string,
  headers: Record<string, string>,
  greet: (socket: WebSocket) => void,
  isReady: (text: string) => boolean,
) =>
  new Promise<WebSocket>((resolve, reject) => {
    const socket = new WebSocket(url, { headers, perMessageDeflate: false })
    socket.once('error', reject)
    socket.once('open', () => greet(socket))
    const ready = (data: Buffer) => {
      if (!isReady(data.toString())) return
      socket.off('message', ready)
      socket.on('message', arrived)
      resolve(socket)
    }
    socket.on('message', ready)
  })

/** Some at a time: a thousand handshakes at once would be measured as one long pause. */
const openAll = async (count: number, one: (n: number) => Promise<WebSocket>): Promise<void> => {
  for (let from = 0; from < count; from += 20)
    sockets.push(...(await Promise.all(Array.from({ length: Math.min(20, count - from) }, (_, n) => one(from + n)))))
}

let ping: NodeJS.Timeout | undefined

answer(async (command: ListenCommand): Promise<unknown> => {
  switch (command.kind) {
    case 'trellis': {
      const { url, headers, channel } = command
      // from the first on: on a busy machine the last is opened a minute later
      ping = setInterval(() => {
        for (const socket of sockets) socket.send('{"type":"ping"}')
      }, 25_000)
      const subscribe = JSON.stringify({ type: 'subscribe', ref: 1, channel })
      await openAll(headers.length, (n) =>
        open(
          url,
          headers[n] ?? {},
          (socket) => socket.send(subscribe),
          (text) => text.includes('"ack"'),
        ),
      )
      return sockets.length
    }
    case 'parse': {
      const { url, appId, className } = command
      const subscribe = JSON.stringify({ op: 'subscribe', requestId: 1, query: { className, where: {} } })
      await openAll(command.sockets, () =>
        open(
          url,
          {},
          (socket) => {
            socket.send(JSON.stringify({ op: 'connect', applicationId: appId }))
            socket.once('message', () => socket.send(subscribe))
          },
          (text) => text.includes('"subscribed"'),
        ),
      )
      return sockets.length
    }
    case 'begin':
      latencies = []
      first = 0
      last = now()
      begun = last
      return null
    case 'count': {
      while (latencies.length < command.wanted && now() - last < 10_000)
        await new Promise((resolve) => setTimeout(resolve, 20))
      const figures = { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) }
      return { deliveries: latencies.length, ...figures, first, last } satisfies Counted
    }
    case 'close': {
      clearInterval(ping)
      const closed = sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)))
      for (const socket of sockets) socket.terminate()
      await Promise.all(closed)
      sockets = []
      return null
    }
  }
})
