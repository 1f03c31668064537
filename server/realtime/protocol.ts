import { z } from 'zod'
import { Text } from '#server/http/schemas.ts'

/** Close codes: our own from 4000 on, and those of RFC 6455 for what they mean already. */
export const closing = {
  badFrame: 4400,
  unauthorized: 4401,
  forbidden: 4403,
  idle: 4408,
  tooFast: 4429,
  /** The server stops, or its tables are new: connect again, with `since`. */
  restart: 1012,
  /** Something failed here: connect again, with `since`. */
  failure: 1011,
} as const

export const limits = {
  channels: 100,
  publishesPerSecond: 20,
  framesPerSecond: 100,
  payloadBytes: 32_768,
  /** A frame of a payload that is refused may still be read, so that its sender hears why. */
  frameBytes: 262_144,
  idleMs: 60_000,
  /** What a client may leave unread: more than the longest row of a collection. */
  unreadBytes: 4_194_304,
  /** What is collected for one write: more than that is written at once. */
  writeBytes: 262_144,
  /** Events that wait for one subscription to be authorised. */
  waiting: 10_000,
} as const

const Ref = z.union([Text(128), z.number()]).optional()
const Channel = Text(128, 1)

/** What a client may send. */
export const ClientFrame = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('subscribe'),
    ref: Ref,
    channel: Channel,
    params: z.record(z.string(), z.unknown()).nullish(),
    since: z.int().min(0).nullish(),
  }),
  z.object({ type: z.literal('unsubscribe'), ref: Ref, channel: Channel }),
  z.object({
    type: z.literal('publish'),
    ref: Ref,
    channel: Channel,
    event: z.string().regex(/^[A-Za-z0-9_.:-]{1,64}$/),
    payload: z.unknown(),
  }),
  z.object({ type: z.literal('presence'), ref: Ref, channel: Channel, state: z.unknown() }),
  z.object({ type: z.literal('auth'), ref: Ref, token: z.string().min(1).max(4096) }),
  z.object({ type: z.literal('ping') }),
])
export type ClientFrame = z.infer<typeof ClientFrame>

export type Reference = string | number | undefined

/** The columns of a collection row that determine its recipients; for other events only `only`, `except`, or `actor` and `action`, do. */
type Owner = { readonly user_id: string | null; readonly group_id: string | null }
export type Meta = {
  readonly now?: Owner | null
  readonly was?: Owner | null
  readonly id?: string
  /** The row as it is and as it was, where a subscriber has a filter. */
  readonly rows?: readonly [unknown, unknown] | null
  readonly only?: string
  /** For all but this user. */
  readonly except?: string
  /** For these users, for members of these groups, for who has one of these roles. */
  readonly to?: {
    readonly users?: readonly string[]
    readonly groups?: readonly string[]
    readonly roles?: readonly string[]
  }
  /** Of an entry of a feed. */
  readonly actor?: string | null
  readonly action?: string
  /** Of a publication: who knows it by that as their own. */
  readonly sender?: string
}

/** An event as SQL answers it: [channel, seq, event, payload, meta, at]; payload and meta are JSON texts. */
export type EventRow = readonly [string, number | null, string, string, string | null, string]

export type ChannelEvent = {
  readonly channel: string
  readonly seq: number | null
  readonly event: string
  readonly payload: string
  readonly meta: Meta | null
  readonly at: string
  /** Whether the row is, and was, what a filter means: by the filter's text. */
  readonly matches: Map<string, readonly [boolean, boolean]>
  /** Frames that were made of it: the subscribers of a channel share them. */
  readonly frames: Map<string, Frame>
  /** The one that was asked for last: most subscribers of an event are sent the same. */
  last: { readonly shown: string; readonly event: string; readonly frame: Frame } | null
}

/** A frame to a client. `seq` is where a stream is resumed that ends after it. */
export type Frame = {
  readonly text: string
  readonly kind: string
  readonly channel: string | null
  readonly seq: number | null
  readonly sender?: string
  bytes?: Buffer
}

export const readEvent = ([channel, seq, event, payload, meta, at]: EventRow): ChannelEvent => ({
  channel,
  seq,
  event,
  payload,
  meta: meta === null ? null : (JSON.parse(meta) as Meta),
  at,
  matches: new Map(),
  frames: new Map(),
  last: null,
})

/** The frame of an event for subscribers who call the channel `shown` and are told `event`. Payloads stay the text that SQL made. */
export const eventFrame = (of: ChannelEvent, shown: string, event: string): Frame => {
  if (of.last?.shown === shown && of.last.event === event) return of.last.frame
  const key = `${shown} ${event}`
  const known = of.frames.get(key)
  if (known) {
    of.last = { shown, event, frame: known }
    return known
  }
  const payload = event === 'delete' && of.event !== 'delete' ? JSON.stringify({ id: of.meta?.id }) : of.payload
  const names = `"channel":${JSON.stringify(shown)}`
  const text =
    of.seq === null
      ? `{"type":"presence",${names},${payload.slice(1)}`
      : `{"type":"event",${names},"seq":${of.seq},"event":${JSON.stringify(event)},"payload":${payload},"at":"${of.at}"}`
  const sender = of.meta?.sender === undefined ? {} : { sender: of.meta.sender }
  const frame = { text, kind: of.seq === null ? 'presence' : event, channel: shown, seq: of.seq, ...sender }
  of.frames.set(key, frame)
  return frame
}

const frame = (kind: string, fields: object, channel: string | null = null, seq: number | null = null): Frame => ({
  text: JSON.stringify({ type: kind, ...fields }),
  kind,
  channel,
  seq,
})

/** `place` is where a client goes on when it hears nothing after the ack: at its own place while what it missed is not sent. */
export const ackFrame = (ref: Reference, channel?: string, seq?: number, place = seq) =>
  frame('ack', { ref, channel, seq }, channel ?? null, place ?? null)
export const resyncFrame = (channel: string, place: number | null = null) =>
  frame('resync', { channel }, channel, place)
export const stateFrame = (channel: string, state: unknown) =>
  frame('presence', { channel, state, joins: [], leaves: [] }, channel)
export const errorFrame = (ref: Reference, code: string, message: string, channel?: string) =>
  frame('error', { ref, channel, code, message }, channel ?? null)
export const pongFrame = frame('pong', {})

/** The WebSocket message of a frame, as a server sends it: unmasked and whole (RFC 6455, 5.2). Made once for all who get it. */
export const messageOf = (of: Frame): Buffer => {
  if (of.bytes) return of.bytes
  const length = Buffer.byteLength(of.text)
  const start = length < 126 ? 2 : length < 65_536 ? 4 : 10
  const bytes = Buffer.allocUnsafe(start + length)
  // a text message, with no fragment after it
  bytes[0] = 0x81
  if (start === 2) bytes[1] = length
  else if (start === 4) {
    bytes[1] = 126
    bytes.writeUInt16BE(length, 2)
  } else {
    bytes[1] = 127
    bytes.writeBigUInt64BE(BigInt(length), 2)
  }
  bytes.write(of.text, start)
  of.bytes = bytes
  return bytes
}
