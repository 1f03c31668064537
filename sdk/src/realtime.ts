import type { App } from './app.ts'
import { isTemporary, TrellisError } from './errors.ts'
import { createRealtimeTicket } from './generated/client.ts'
import { later, platform, type Socket } from './platform.ts'
import { backoff } from './transport.ts'

export type RealtimeEvent = {
  readonly channel: string
  readonly seq: number
  readonly event: string
  readonly payload: unknown
  readonly at: string
}
export type Presence = {
  readonly state?: readonly { readonly user_id: string; readonly state: unknown }[]
  readonly joins: readonly { readonly user_id: string; readonly state: unknown }[]
  readonly leaves: readonly { readonly user_id: string; readonly state: unknown }[]
}

/** Ends the subscription. `live` is kept when the server has confirmed it: what is read afterwards lacks nothing that is not sent. */
export type Listening = (() => void) & { readonly live: Promise<void> }

export type Subscriber = {
  /** The server has confirmed the subscription: for the first time, or again after a break. What commits from now on comes. */
  onLive?: ((live: { readonly isAgain: boolean }) => void) | undefined
  onEvent?: ((event: RealtimeEvent) => void) | undefined
  /** Events are missing: fetch what they are about again. */
  onResync?: (() => void) | undefined
  onPresence?: ((presence: Presence) => void) | undefined
  /** The subscription was refused, or has ended, as `FORBIDDEN` for who left a group. */
  onEnd?: ((error: TrellisError) => void) | undefined
  readonly params?: Readonly<Record<string, unknown>> | undefined
  /** Where to go on: the last `seq` that was handled, by this program or the one before. */
  readonly since?: number | undefined
}

export type Realtime = {
  /** Listens to a channel until the function that it answers is called, through every break of the connection. */
  subscribe(channel: string, subscriber: Subscriber): Listening
  publish(channel: string, event: string, payload: unknown): Promise<void>
  /** Shows the user as present with this state; null leaves. Shown again after a break. */
  present(channel: string, state: unknown): Promise<void>
  close(): void
}

export type RealtimeOptions = {
  readonly WebSocket?: (new (url: string) => Socket) | undefined
  readonly onStatus?: ((status: 'connecting' | 'open' | 'closed') => void) | undefined
  /** Milliseconds between pings, 25,000; without an answer until the next one the connection is given up. */
  readonly pingEvery?: number | undefined
}

type Frame = {
  type: string
  ref?: number
  channel?: string
  seq?: number
  code?: string
  message?: string
  [key: string]: unknown
}
type Waiting = { resolve(frame: Frame): void; reject(error: TrellisError): void }
type Subscription = {
  readonly subscriber: Subscriber
  seq: number | undefined
  acked: number | undefined
  isAgain: boolean
  readonly live: { resolve(): void; reject(error: TrellisError): void }
}

const lost = () => new TrellisError('NETWORK_ERROR', 'The connection has broken off.')

/** One connection for all channels, made at the first subscription, and made again with `since` whenever it breaks. */
export const createRealtime = (app: App, options: RealtimeOptions = {}): Realtime => {
  const { transport, sessions, send } = app.inside
  const pingEvery = options.pingEvery ?? 25_000
  const subscriptions = new Map<string, Subscription>()
  const states = new Map<string, unknown>()
  const waiting = new Map<number, Waiting>()
  let socket: Socket | undefined
  let isOpen = false
  let isConnecting = false
  let isClosed = false
  let failures = 0
  let nextRef = 1
  let stopRetry: (() => void) | undefined
  let stopPing: (() => void) | undefined
  let isAnswered = true
  let whenOpen: Waiting[] = []

  const ask = (frame: Record<string, unknown>): Promise<Frame> =>
    new Promise((resolve, reject) => {
      if (!socket || !isOpen) return reject(lost())
      const ref = nextRef++
      waiting.set(ref, { resolve, reject })
      socket.send(JSON.stringify({ ...frame, ref }))
    })

  const end = (channel: string, error: TrellisError) => {
    const ended = subscriptions.get(channel)
    if (!ended) return
    subscriptions.delete(channel)
    states.delete(channel)
    ended.live.reject(error)
    ended.subscriber.onEnd?.(error)
  }

  const listen = async (channel: string, subscription: Subscription) => {
    const { subscriber, seq } = subscription
    const { params } = subscriber
    subscription.acked = undefined
    try {
      const ack = await ask({
        type: 'subscribe',
        channel,
        ...(params ? { params } : {}),
        ...(seq === undefined ? {} : { since: seq }),
      })
      subscription.acked = ack.seq
      // the first number, from which a break goes on; what was replayed has moved it already
      subscription.seq ??= ack.seq
      if (subscriptions.get(channel) !== subscription) return void (await ask({ type: 'unsubscribe', channel }))
      const { isAgain } = subscription
      subscription.isAgain = true
      subscription.live.resolve()
      subscriber.onLive?.({ isAgain })
      if (states.has(channel)) await ask({ type: 'presence', channel, state: states.get(channel) })
    } catch (error) {
      if ((error as TrellisError).code !== 'NETWORK_ERROR' && subscriptions.get(channel) === subscription) {
        end(channel, error as TrellisError)
      }
    }
  }

  const take = (frame: Frame) => {
    const asked = frame.ref === undefined ? undefined : waiting.get(frame.ref)
    if (frame.ref !== undefined) waiting.delete(frame.ref)
    const subscription = frame.channel === undefined ? undefined : subscriptions.get(frame.channel)
    if (frame.type === 'ack') asked?.resolve(frame)
    else if (frame.type === 'error') {
      const error = new TrellisError(frame.code ?? 'UNEXPECTED_ANSWER', frame.message ?? '')
      if (asked) asked.reject(error)
      else if (frame.channel !== undefined) end(frame.channel, error)
    } else if (frame.type === 'event' && subscription) {
      const seq = frame.seq as number
      // the same event again, after a break while it was on its way
      if (subscription.seq !== undefined && seq <= subscription.seq) return
      subscription.seq = seq
      subscription.subscriber.onEvent?.(frame as unknown as RealtimeEvent)
    } else if (frame.type === 'resync' && subscription) {
      // after a crash of the database the numbers begin again: the old one must not hide the new events
      subscription.seq = subscription.acked
      subscription.subscriber.onResync?.()
    } else if (frame.type === 'presence' && subscription)
      subscription.subscriber.onPresence?.(frame as unknown as Presence)
  }

  const ping = (current: Socket) => {
    stopPing = later(() => {
      if (socket !== current) return
      if (!isAnswered) return current.close()
      isAnswered = false
      current.send('{"type":"ping"}')
      ping(current)
    }, pingEvery)
  }

  const broken = () => {
    isOpen = false
    socket = undefined
    stopPing?.()
    for (const one of waiting.values()) one.reject(lost())
    waiting.clear()
    options.onStatus?.('closed')
    for (const one of whenOpen) one.reject(lost())
    whenOpen = []
    if (isClosed || subscriptions.size === 0) return
    failures += 1
    stopRetry = later(connect, backoff(failures - 1, transport.random, 500, 30_000))
  }

  const opened = (current: Socket) => {
    isOpen = true
    isAnswered = true
    options.onStatus?.('open')
    ping(current)
    for (const [channel, subscription] of subscriptions) void listen(channel, subscription)
    for (const one of whenOpen) one.resolve({ type: 'open' })
    whenOpen = []
  }

  const open = (ticket: string) => {
    const Made = options.WebSocket ?? platform.WebSocket
    if (!Made) throw new TypeError('This platform has no WebSocket: pass one to createRealtime.')
    const url = `${transport.root.replace(/^http/, 'ws')}/v1/client/realtime?ticket=${encodeURIComponent(ticket)}`
    const current = new Made(url)
    socket = current
    current.onopen = () => opened(current)
    current.onmessage = ({ data }) => {
      isAnswered = true
      failures = 0
      take(JSON.parse(String(data)) as Frame)
    }
    current.onerror = () => undefined
    current.onclose = () => {
      if (socket === current) broken()
    }
  }

  /** Of whom the connection is; after a sign-out subscriptions wait for the next user, and nobody is signed in for them. */
  let user: string | undefined
  let isWaiting = false

  const connect = () => {
    if (isConnecting || socket || isClosed || isWaiting) return
    stopRetry?.()
    isConnecting = true
    options.onStatus?.('connecting')
    const asked = [...subscriptions]
    const ticket = async () => {
      const session = await sessions.begin()
      if (!session) return null
      user = session.userId
      return (await send(createRealtimeTicket, { retries: 0 })).body.data.ticket
    }
    ticket()
      .then((value) => {
        isConnecting = false
        if (value === null) isWaiting = true
        else if (!isClosed) open(value)
      })
      .catch((error: unknown) => {
        isConnecting = false
        // a refusal stays one: nobody is signed in any more, or the project is gone. What was subscribed meanwhile may be for whoever comes next
        if (error instanceof TrellisError && !isTemporary(error)) {
          for (const [channel, one] of asked) if (subscriptions.get(channel) === one) end(channel, error)
        }
        broken()
      })
  }

  /** The server closes the connection when its token expires: the next ticket is of the new one. Another user needs another connection. */
  const forget = sessions.onChange((session) => {
    isWaiting = session === null
    if (user !== undefined && session?.userId !== user) {
      // nothing more is asked for over it, until it has closed
      isOpen = false
      socket?.close()
    }
    user = session?.userId
    if (session && subscriptions.size > 0) connect()
  })

  const connected = async () => {
    if (isOpen) return
    await new Promise<Frame>((resolve, reject) => {
      whenOpen.push({ resolve, reject })
      connect()
    })
  }

  const isOnline = () => {
    if (subscriptions.size > 0) connect()
  }
  platform.addEventListener?.('online', isOnline)

  return {
    subscribe(channel, subscriber) {
      if (subscriptions.has(channel)) throw new TypeError(`There is a subscription to ${channel} already.`)
      let settle: Subscription['live'] | undefined
      const live = new Promise<void>((resolve, reject) => {
        settle = { resolve, reject }
      })
      // not everybody waits for it
      live.catch(() => undefined)
      const subscription: Subscription = {
        subscriber,
        seq: subscriber.since,
        acked: undefined,
        isAgain: false,
        live: settle as unknown as Subscription['live'],
      }
      subscriptions.set(channel, subscription)
      if (isOpen) void listen(channel, subscription)
      else connect()
      const stop = () => {
        if (subscriptions.get(channel) !== subscription) return
        subscriptions.delete(channel)
        states.delete(channel)
        subscription.live.reject(new TrellisError('ABORTED', 'The subscription was ended.'))
        if (isOpen) ask({ type: 'unsubscribe', channel }).catch(() => undefined)
      }
      return Object.assign(stop, { live })
    },
    async publish(channel, event, payload) {
      await connected()
      await ask({ type: 'publish', channel, event, payload })
    },
    async present(channel, state) {
      if (state === null) states.delete(channel)
      else states.set(channel, state)
      await connected()
      await ask({ type: 'presence', channel, state })
    },
    close() {
      isClosed = true
      stopRetry?.()
      stopPing?.()
      forget()
      platform.removeEventListener?.('online', isOnline)
      socket?.close()
    },
  }
}
