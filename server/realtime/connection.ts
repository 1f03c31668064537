import { randomUUID } from 'node:crypto'
import { dataOf } from '#server/database/database.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { jsonSize } from '#server/http/json.ts'

import {
  ackFrame,
  type ClientFrame,
  closing,
  errorFrame,
  type Frame,
  limits,
  pongFrame,
  type Reference,
  readEvent,
  resyncFrame,
  stateFrame,
} from '#server/realtime/protocol.ts'
import { applyScope, createSubscription, goLive, isPoked, pokeFrame } from '#server/realtime/subscription.ts'
import type { Connection, Credential, Hub, Scope, Subscribed, Subscription, Transport } from '#server/realtime/types.ts'

/** Of a subscription, where more is handed out than is kept until the answer comes. */
const mostAttempts = 5

/** Asked again after each wait. */
const isOver = ({ state }: Subscription): boolean => state === 'closed'

/** One token bucket: whether a client that does things at this rate may do one more. */
export const createPace = (perSecond: number, now: () => number) => {
  let tokens = perSecond
  let at = now()
  return () => {
    const later = now()
    tokens = Math.min(perSecond, tokens + (Math.max(later - at, 0) / 1000) * perSecond)
    at = later
    if (tokens < 1) return false
    tokens -= 1
    return true
  }
}

/** The connection of an authenticated user: handles the client's requests and delivers events to it. */
export const createConnection = (hub: Hub, first: Credential, transport: Transport, id = randomUUID()): Connection => {
  const subscriptions = new Map<string, Subscription>()
  /** Where the client is present, as it calls the channel: the name under which events are published there. */
  const present = new Map<string, string>()
  const mayPublish = createPace(limits.publishesPerSecond, () => hub.now().getTime())
  const maySend = createPace(limits.framesPerSecond, () => hub.now().getTime())
  let credential = first
  let isClosed = false
  let seenAt = hub.now().getTime()
  /** Channels that are left: whoever listens to one again waits for that. */
  const leaving = new Map<string, Promise<void>>()
  /** Publications and presence of a client take effect in the order in which they were sent. */
  let order: Promise<void> = Promise.resolve()

  const call = async <T>(name: string, args: Record<string, unknown>): Promise<T> => {
    const { place, role, claims } = credential.resolved
    return dataOf<T>(await hub.call(place, role, claims, name, args))
  }

  const send = (frame: Frame) => {
    if (isClosed) return
    transport.send(frame)
    if (transport.unreadBytes > limits.unreadBytes) dropSlow()
  }
  const refuse = (ref: Reference, error: unknown, channel?: string) => {
    if (error instanceof ApiError && error.status < 500) send(errorFrame(ref, error.code, error.message, channel))
    else
      send(
        errorFrame(
          ref,
          error instanceof ApiError ? error.code : 'INTERNAL_ERROR',
          'This did not work: try again.',
          channel,
        ),
      )
  }

  const forget = (subscription: Subscription) => {
    const { asked } = subscription
    subscription.state = 'closed'
    subscription.waiting = []
    if (subscriptions.get(subscription.shown) === subscription) subscriptions.delete(subscription.shown)
    hub.leave(subscription)
    // a connection that ends takes all of its own with it
    if (!isClosed && asked) stopReading(subscription.shown, asked)
  }
  /** Also of a channel that is left before the answer to its subscription is there: that may have been noted by then. */
  const stopReading = (shown: string, asked: Promise<Subscribed | null>) => {
    const stopped = asked
      .then(async (begun) => {
        if (begun?.is_noted && !isClosed) await call('realtime_leave', { connection_id: id, channel: begun.name })
      })
      .catch((error: Error) =>
        hub.log.warn(
          { project: hub.projectId, error: error.message },
          'a channel that was left still counts as listened to',
        ),
      )
      .finally(() => {
        if (leaving.get(shown) === stopped) leaving.delete(shown)
      })
    leaving.set(shown, stopped)
  }
  const finish = () => {
    if (isClosed) return
    isClosed = true
    for (const subscription of [...subscriptions.values()]) forget(subscription)
    hub.remove(connection)
  }
  const close = (code: number, reason: string) => {
    if (isClosed) return
    finish()
    transport.close(code, reason)
  }
  const dropSlow = () => {
    if (isClosed) return
    hub.log.info({ project: hub.projectId }, 'a client of realtime does not read: its connection is cut off')
    finish()
    transport.terminate()
  }

  const subscribe: Connection['subscribe'] = async (channel, params, since, ref) => {
    if (subscriptions.has(channel)) throw refusal(409, 'CONFLICT', 'This connection listens to the channel already.')
    if (subscriptions.size >= limits.channels)
      throw refusal(409, 'LIMIT_REACHED', `A connection listens to at most ${limits.channels} channels.`)
    const subscription = createSubscription(connection, channel, params)
    subscriptions.set(channel, subscription)
    try {
      await begin(subscription, since, ref)
    } catch (error) {
      forget(subscription)
      throw error
    }
  }

  const begin = async (subscription: Subscription, since: number | null, ref: Reference): Promise<void> => {
    const { shown } = subscription
    await leaving.get(shown)
    const begun = await takePlace(subscription, since)
    if (!begun) return
    const left = begun.is_new ? await hub.settle() : []
    const missed = begun.missed.map(readEvent)
    await hub.match([...missed, ...subscription.waiting], [subscription])
    if (isOver(subscription)) return
    send(ackFrame(ref, shown, begun.seq, subscription.seq))
    if (begun.present) send(stateFrame(shown, begun.present))
    if (begun.is_lost) send(resyncFrame(shown, begun.seq))
    // first what was missed, then what came meanwhile
    subscription.seq = begun.is_lost || since === null ? begun.seq : since
    subscription.waiting = [...missed, ...subscription.waiting.filter(({ seq }) => seq === null || seq > begun.seq)]
    if (subscription.isCheckDue) {
      subscription.state = 'checking'
      recheck([subscription])
    } else live(subscription)
    // what they have published is not known
    hub.afterThose(left, () => {
      if (!isOver(subscription)) send(resyncFrame(shown))
    })
  }

  /** Asks for the subscription's place in its channel and joins the hub. What the hub hands out meanwhile waits with what comes afterwards. */
  const takePlace = async (subscription: Subscription, since: number | null): Promise<Subscribed | null> => {
    const { shown: channel, params } = subscription
    for (let n = 0; n < mostAttempts && !isOver(subscription); n += 1) {
      const retained = hub.retain()
      try {
        const asked = call<Subscribed>('realtime_subscribe', {
          channel,
          params,
          since: since ?? undefined,
          connection_id: id,
        })
        subscription.asked = asked.catch(() => null)
        const begun = await asked
        if (isOver(subscription)) return null
        const meanwhile = retained.eventsOf(begun.name)
        if (!meanwhile) continue
        subscription.name = begun.name
        subscription.seq = since ?? begun.seq
        applyScope(subscription, begun.scope)
        hub.join(subscription)
        if (meanwhile.some(({ event }) => event === '~check')) subscription.isCheckDue = true
        subscription.waiting = meanwhile.filter(({ event }) => event !== '~check')
        return begun
      } finally {
        retained.end()
      }
    }
    if (isOver(subscription)) return null
    throw refusal(503, 'SERVICE_UNAVAILABLE', 'Too much is published: try again.')
  }

  const live = (subscription: Subscription) => {
    goLive(subscription)
    hub.join(subscription)
  }

  const recheck: Connection['recheck'] = (which) => {
    const checked: Subscription[] = []
    for (const subscription of which) {
      subscription.checks += 1
      subscription.isCheckDue = subscription.state === 'starting'
      if (subscription.state === 'live') {
        subscription.state = 'checking'
        hub.join(subscription)
      }
      if (subscription.state === 'checking') checked.push(subscription)
    }
    if (checked.length > 0) void authoriseAgain(checked)
  }

  const authoriseAgain = async (which: readonly Subscription[]): Promise<void> => {
    const rounds = which.map(({ checks }) => checks)
    let scopes: readonly (Scope | null)[]
    try {
      scopes = await call('realtime_check', { channels: which.map(({ shown, params }) => [shown, params]) })
    } catch {
      return close(closing.failure, 'try again')
    }
    for (const [index, subscription] of which.entries()) {
      // meanwhile something else has changed: the later answer counts
      if (subscription.state !== 'checking' || subscription.checks !== rounds[index]) continue
      const scope = scopes[index]
      if (scope) {
        hub.leave(subscription)
        const isOther = isPoked(subscription, hub.now())
        applyScope(subscription, scope)
        hub.join(subscription)
        // where that fails, the client is told to fetch again
        await hub.match(subscription.waiting, [subscription]).catch(() => undefined)
        if (subscription.state === 'checking' && subscription.checks === rounds[index]) {
          live(subscription)
          if (isOther) send(pokeFrame(subscription, hub.now()))
        }
      } else {
        forget(subscription)
        send(errorFrame(undefined, 'FORBIDDEN', 'You may not listen to this channel any more.', subscription.shown))
      }
    }
  }

  const leave = async (channel: string): Promise<void> => {
    await call('presence_set', { connection_id: id, channel: present.get(channel) ?? channel, state: 'null' })
    present.delete(channel)
  }
  const enter = async (channel: string, state: string): Promise<void> => {
    const { name } = await call<{ name: string }>('presence_set', { connection_id: id, channel, state })
    present.set(channel, name)
  }
  const leaveForbidden = async (): Promise<void> => {
    const channels = [...present.keys()]
    if (isClosed || channels.length === 0) return
    const scopes = await call<readonly (Scope | null)[]>('realtime_check', {
      channels: channels.map((one) => [one, {}]),
    })
    for (const [index, channel] of channels.entries()) if (!scopes[index]) await leave(channel)
  }
  const recheckAll = () => {
    recheck([...subscriptions.values()])
    // after what the client asked for before: that may have been allowed just before the right ended
    order = order.then(leaveForbidden).catch(() => close(closing.failure, 'try again'))
  }

  const inOrder = (ref: Reference, channel: string, work: () => Promise<unknown>) => {
    order = order
      .then(async () => {
        if (isClosed) return
        await work()
        send(ackFrame(ref, channel))
      })
      .catch((error: unknown) => refuse(ref, error, channel))
  }

  const renew = async (ref: Reference, token: string): Promise<void> => {
    const renewed = await hub.renew(credential, token)
    if (isClosed) return
    if (!renewed) return close(closing.unauthorized, 'the token is not valid')
    credential = renewed
    // the end of a session is looked up by the credential that a connection has: until here it was the former one
    await hub.checkCredentials((held) => held === renewed)
    send(ackFrame(ref))
  }

  const receive: Connection['receive'] = (frame, sender) => {
    connection.touch()
    if (!maySend()) return close(closing.tooFast, 'too many frames')
    switch (frame.type) {
      case 'ping':
        return send(pongFrame)
      case 'subscribe':
        void subscribe(frame.channel, frame.params ?? {}, frame.since ?? null, frame.ref).catch((error: unknown) =>
          refuse(frame.ref, error, frame.channel),
        )
        return
      case 'unsubscribe': {
        const subscription = subscriptions.get(frame.channel)
        if (subscription) forget(subscription)
        return send(ackFrame(frame.ref, frame.channel))
      }
      case 'auth':
        void renew(frame.ref, frame.token).catch((error: unknown) => refuse(frame.ref, error))
        return
      case 'publish':
      case 'presence':
        return write(frame, sender)
    }
  }

  const write = (frame: Extract<ClientFrame, { type: 'publish' | 'presence' }>, sender: string | undefined) => {
    const { ref, channel } = frame
    if (!mayPublish()) {
      send(
        errorFrame(
          ref,
          'RATE_LIMITED',
          `A connection publishes at most ${limits.publishesPerSecond} times a second.`,
          channel,
        ),
      )
      return close(closing.tooFast, 'too many publications')
    }
    const sent = (frame.type === 'publish' ? frame.payload : frame.state) ?? null
    // with its numbers written out, as jsonb makes them: 1e999 has a thousand digits
    if (jsonSize(sent).bytes > limits.payloadBytes)
      return send(errorFrame(ref, 'PAYLOAD_TOO_LARGE', 'A payload has at most 32 KB.', channel))
    const value = JSON.stringify(sent)
    inOrder(ref, channel, () => {
      if (frame.type === 'publish')
        return call('realtime_publish', { channel, event: frame.event, payload: value, sender })
      return sent === null ? leave(channel) : enter(channel, value)
    })
  }

  const connection: Connection = {
    id,
    userId: first.userId,
    get credential() {
      return credential
    },
    subscriptions,
    subscribe,
    receive,
    touch() {
      seenAt = hub.now().getTime()
    },
    get seenAt() {
      return transport.isOneWay ? Number.POSITIVE_INFINITY : seenAt
    },
    send,
    recheck,
    recheckAll,
    close,
    dropSlow,
    ended: finish,
    endIfGone() {
      if (transport.isGone) finish()
    },
    get isClosed() {
      return isClosed
    },
  }
  return connection
}
