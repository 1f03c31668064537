import { randomUUID } from 'node:crypto'
import { refusal } from '#server/errors.ts'
import { createPace } from '#server/realtime/connection.ts'
import { type ClientFrame, closing, type Frame, limits } from '#server/realtime/protocol.ts'
import type { Connection, Credential, Transport } from '#server/realtime/types.ts'
import { invalid } from '#server/rest/auth_shapes.ts'
import { changeOf } from '#server/rest/changes.ts'
import { createDelivery, prefix, type Topic } from '#server/rest/delivery.ts'
import {
  Broadcast,
  checked,
  Join,
  Presence,
  read,
  reasonOf,
  refusedBy,
  roomName,
  Token,
  type Told,
} from '#server/rest/messages.ts'
import type { Format, Message } from '#server/rest/phoenix.ts'

/** The socket of one client of realtime-js. */
export type Channels = {
  receive(data: Buffer, isBinary: boolean): void
  /** The socket is gone. */
  ended(): void
}

export type ChannelsOptions = {
  readonly format: Format
  readonly socket: {
    send(data: string | Buffer): void
    close(code: number, reason: string): void
    terminate(): void
    readonly unreadBytes: number
    readonly isGone: boolean
  }
  /** Verifies a session token; rejects with what refuses it. */
  readonly credentialOf: (token: string) => Promise<Credential>
  readonly open: (credential: Credential, transport: Transport) => Promise<Connection>
  /** A user has signed in: the socket need not be closed for that nobody has. */
  readonly opened: () => void
  readonly now: () => Date
}

/** Channels of realtime-js over one connection of ours, which opens with the first session token that a join brings. */
export const createChannels = (options: ChannelsOptions): Channels => {
  const { format, socket, credentialOf, open, opened, now } = options
  const sender = randomUUID()
  const topics = new Map<string, Topic>()
  const mayReceive = createPace(limits.framesPerSecond, () => now().getTime())
  const asked = new Map<string, (answer: Told) => void>()
  let refs = 0
  let connection: Connection | undefined
  let token: string | undefined
  let isEnded = false
  /** Joins and leaves take effect one after the other. */
  let order: Promise<void> = Promise.resolve()

  const { message, tell } = createDelivery(format, socket, sender)
  const reply = ({ joinRef, ref, topic }: Message, error: unknown = null, response: object = {}) => {
    const payload = error === null ? { status: 'ok', response } : { status: 'error', response: reasonOf(error) }
    socket.send(format.write({ joinRef, ref, topic, event: 'phx_reply', payload }))
  }

  const transport: Transport = {
    send: (frame) => pass(frame),
    close: (code, reason) => socket.close(code, reason),
    terminate: () => socket.terminate(),
    get unreadBytes() {
      return socket.unreadBytes
    },
    get isGone() {
      return socket.isGone
    },
  }

  const pass = (frame: Frame) => {
    const of = read(frame)
    if (of.ref !== undefined) return answered(of)
    if (of.type === 'ack' || of.channel === undefined) return
    const { channel } = of
    for (const to of [...topics.values()].filter(({ listens }) => listens.has(channel))) tell(to, channel, of, frame)
  }
  const answered = (of: Told) => {
    const settle = asked.get(of.ref ?? '')
    asked.delete(of.ref ?? '')
    settle?.(of)
  }

  const signIn = async (given: string | null | undefined): Promise<Connection> => {
    if (!given) throw refusal(401, 'UNAUTHORIZED', 'Sign in first: channels are for users.')
    if (connection && !connection.isClosed) {
      if (given !== token) await renew(connection, given)
      return connection
    }
    const credential = await credentialOf(given)
    connection = await open(credential, transport)
    token = given
    if (isEnded) connection.ended()
    opened()
    return connection
  }
  const ask = (on: Connection, frame: ClientFrame): Promise<Told> =>
    new Promise((resolve) => {
      refs += 1
      const ref = String(refs)
      asked.set(ref, resolve)
      on.receive({ ...frame, ref } as ClientFrame, sender)
    })
  const renew = async (on: Connection, given: string) => {
    token = given
    refusedBy(await ask(on, { type: 'auth', token: given }))
  }

  const isUsed = (channel: string) => [...topics.values()].some(({ listens }) => listens.has(channel))

  const listen = async (on: Connection, to: Topic, channel: string) => {
    const isNew = !isUsed(channel)
    to.listens.add(channel)
    const params = channel === to.room && to.isPrivate ? { private: true } : {}
    if (isNew) await on.subscribe(channel, params, null)
  }
  const leave = async (to: Topic) => {
    topics.delete(to.topic)
    if (!connection || connection.isClosed) return
    for (const channel of to.listens) {
      if (isUsed(channel)) continue
      if (channel === to.room && to.isHere) await ask(connection, { type: 'presence', channel, state: null })
      await ask(connection, { type: 'unsubscribe', channel })
    }
  }

  const join = async (of: Message) => {
    const former = topics.get(of.topic)
    if (former) await leave(former)
    const { access_token, config } = checked(Join, of.payload)
    if (topics.size >= limits.channels)
      throw refusal(409, 'LIMIT_REACHED', `A connection has at most ${limits.channels} channels.`)
    const changes = (config?.postgres_changes ?? []).map((one, index) => changeOf(one, index + 1))
    const name = of.topic.slice(prefix.length)
    const isRoom = roomName.test(name)
    if (!of.topic.startsWith(prefix) || (!isRoom && (changes.length === 0 || config?.presence?.enabled)))
      throw invalid('topic', 'must name a room: 1 to 64 letters, digits and _.:-')
    const on = await signIn(access_token)
    const to: Topic = {
      topic: of.topic,
      joinRef: of.joinRef,
      changes,
      isSelf: config?.broadcast?.self === true,
      // clients before 2.51 do not say whether they want it
      hasPresence: config?.presence != null && config.presence.enabled !== false,
      isPrivate: config?.private === true,
      room: isRoom ? `room:${name}` : null,
      isHere: false,
      listens: new Set(),
      held: [],
    }
    topics.set(of.topic, to)
    try {
      for (const channel of new Set([
        ...(to.room ? [to.room] : []),
        ...changes.map(({ table }) => `collection:${table}`),
      ]))
        await listen(on, to, channel)
    } catch (error) {
      await leave(to)
      throw error
    }
    const echoed = changes.map(({ id, sent }) => ({ id, ...sent }))
    reply(of, null, { postgres_changes: echoed })
    for (const held of to.held ?? []) socket.send(held)
    to.held = null
    if (changes.length > 0)
      message(to, 'system', {
        channel: name,
        extension: 'postgres_changes',
        status: 'ok',
        message: 'Subscribed to PostgreSQL',
      })
  }

  const write = async (of: Message) => {
    const to = topics.get(of.topic)
    if (!to || !connection) throw refusal(409, 'CONFLICT', 'Join the channel first.')
    if (!to.room) throw invalid('topic', 'must name a room: 1 to 64 letters, digits and _.:-')
    if (of.event === 'broadcast') {
      const { event, payload } = checked(Broadcast, of.payload)
      return refusedBy(await ask(connection, { type: 'publish', channel: to.room, event, payload }))
    }
    const { event, payload } = checked(Presence, of.payload)
    const state = event === 'track' ? (payload ?? {}) : null
    to.isHere = state !== null
    return refusedBy(await ask(connection, { type: 'presence', channel: to.room, state }))
  }

  const inOrder = (of: Message, work: () => Promise<unknown>, isAnswering = false) => {
    order = order.then(async () => {
      if (isEnded) return
      try {
        await work()
        if (!isAnswering) reply(of)
      } catch (error) {
        reply(of, error)
      }
    })
  }

  const answer = (of: Message) => {
    switch (of.event) {
      case 'heartbeat':
        return reply(of)
      case 'phx_join':
        return inOrder(of, () => join(of), true)
      case 'phx_leave':
        return inOrder(of, async () => {
          const to = topics.get(of.topic)
          if (to) await leave(to)
        })
      case 'access_token':
        return inOrder(of, async () => {
          const { access_token } = checked(Token, of.payload)
          if (connection && access_token !== token) await renew(connection, access_token)
        })
      case 'broadcast':
      case 'presence':
        // in the order of sending, which the connection keeps; a join is waited for
        order = order.then(() => {
          void write(of).then(
            () => reply(of),
            (error: unknown) => reply(of, error),
          )
        })
        return
      default:
        return reply(of, invalid('event', 'is none that is served'))
    }
  }

  return {
    receive(data, isBinary) {
      if (!mayReceive()) return socket.close(closing.tooFast, 'too many frames')
      connection?.touch()
      const of = format.read(data, isBinary)
      if (of) answer(of)
      else socket.close(closing.badFrame, 'this is no frame of the protocol')
    },
    ended() {
      isEnded = true
      connection?.ended()
      // nobody waits for an answer any more
      asked.clear()
    },
  }
}
