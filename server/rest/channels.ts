import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { ApiError, refusal } from '#server/errors.ts'
import { createPace } from '#server/realtime/connection.ts'
import { type ClientFrame, closing, type Frame, limits } from '#server/realtime/protocol.ts'
import type { Connection, Credential, Transport } from '#server/realtime/types.ts'
import { invalid } from '#server/rest/auth_shapes.ts'
import { Binding, type Change, changeOf, shownChange } from '#server/rest/changes.ts'
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

const Join = z.object({
  access_token: z.string().max(4096).nullish(),
  config: z
    .object({
      broadcast: z.object({ ack: z.boolean().nullish(), self: z.boolean().nullish() }).nullish(),
      presence: z.object({ enabled: z.boolean().nullish() }).nullish(),
      postgres_changes: z.array(Binding).max(100, 'must have at most 100 entries').nullish(),
    })
    .nullish(),
})

const Broadcast = z.object({
  event: z.string().regex(/^[A-Za-z0-9_.:-]{1,64}$/, 'must have 1 to 64 letters, digits and _.:-'),
  payload: z.unknown().optional(),
})
const Presence = z.object({ event: z.enum(['track', 'untrack']), payload: z.unknown().optional() })
const Token = z.object({ access_token: z.string().min(1).max(4096) })

type Topic = {
  readonly topic: string
  readonly joinRef: string | null
  readonly changes: readonly Change[]
  readonly isSelf: boolean
  readonly hasPresence: boolean
  /** The channel of ours for broadcasts and presence. */
  room: string | null
  isHere: boolean
  /** Our channels that it listens to. */
  readonly listens: Set<string>
  /** What came before the answer to the join, which is the first that a client hears. */
  held: (string | Buffer)[] | null
}

type Event = { readonly event: string; readonly payload: never; readonly at: string }
type Here = { readonly user_id: string; readonly state: unknown }
type Told = Event & {
  readonly type: string
  readonly ref?: string
  readonly channel?: string
  readonly code?: string
  readonly message?: string
  readonly state?: readonly Here[]
  readonly joins: readonly Here[]
  readonly leaves: readonly Here[]
}

const told = new WeakMap<Frame, Told>()
/** Read once for all who get the frame. */
const read = (frame: Frame): Told => {
  const known = told.get(frame)
  if (known) return known
  const made = JSON.parse(frame.text) as Told
  told.set(frame, made)
  return made
}

/** By user, who is there once: the newest state takes the place of the one before. */
const metasOf = (users: readonly Here[]) =>
  Object.fromEntries(
    users.map(({ user_id, state }) => {
      const isObject = typeof state === 'object' && state !== null && !Array.isArray(state)
      return [user_id, { metas: [{ ...(isObject ? state : { state }), phx_ref: user_id }] }]
    }),
  )

const roomName = /^[A-Za-z0-9_.:-]{1,64}$/
const prefix = 'realtime:'
const mostTopics = limits.channels

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

  const push = (to: Topic, message: string | Buffer) => {
    if (to.held) to.held.push(message)
    else socket.send(message)
  }
  const message = (to: Topic, event: string, payload: unknown) =>
    push(to, format.write({ joinRef: to.joinRef, ref: null, topic: to.topic, event, payload }))
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

  const tell = (to: Topic, channel: string, of: Told, frame: Frame) => {
    switch (of.type) {
      case 'event': {
        if (channel === to.room) {
          if (frame.sender !== sender || to.isSelf) push(to, format.broadcast(to.topic, of.event, of.payload))
          return
        }
        const shown = shownChange(to.changes, channel.slice('collection:'.length), of.event, of.payload, of.at)
        if (shown) message(to, 'postgres_changes', shown)
        return
      }
      case 'presence':
        if (!to.hasPresence || channel !== to.room) return
        if (of.state) return message(to, 'presence_state', metasOf(of.state))
        return message(to, 'presence_diff', { joins: metasOf(of.joins), leaves: metasOf(of.leaves) })
      case 'resync':
        return message(to, 'system', {
          ...systemOf(to, channel),
          status: 'error',
          message: 'Events are missing: fetch again.',
        })
      case 'error':
        // the client joins again, and is told by the answer what refuses it
        to.listens.delete(channel)
        message(to, 'system', { ...systemOf(to, channel), status: 'error', message: `${of.code}: ${of.message}` })
        return message(to, 'phx_error', { reason: of.code })
    }
  }
  const systemOf = (to: Topic, channel: string) => ({
    channel: to.topic.slice(prefix.length),
    extension: channel === to.room ? 'broadcast' : 'postgres_changes',
  })

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
    if (isNew) await on.subscribe(channel, {}, null)
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
    if (topics.size >= mostTopics)
      throw refusal(409, 'LIMIT_REACHED', `A connection has at most ${mostTopics} channels.`)
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
      hasPresence: config?.presence?.enabled === true,
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

const refusedBy = ({ type, code, message }: Told): void => {
  if (type === 'error') throw refusal(400, code ?? '', message ?? '')
}

const checked = <T extends z.ZodType>(shape: T, value: unknown): z.output<T> => {
  const parsed = shape.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw invalid(issue?.path.join('.') || 'payload', issue?.message ?? 'is not valid')
}

/** realtime-js shows the texts of a refusal, joined: the code is the first. */
const reasonOf = (error: unknown) =>
  error instanceof ApiError && error.status < 500
    ? { code: error.code, reason: error.message }
    : { code: error instanceof ApiError ? error.code : 'INTERNAL_ERROR', reason: 'This did not work: try again.' }
