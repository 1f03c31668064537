import { createHash } from 'node:crypto'
import { retryAfterMs } from '#server/providers/upstream.ts'

/** A message as internal.push_rendered makes it for one user. */
export type Message = {
  readonly title: string
  readonly body: string
  readonly data?: Readonly<Record<string, unknown>>
  readonly image_url?: string | null
  readonly deep_link?: string | null
  readonly sound?: string
  readonly category?: string
  readonly collapse_key?: string
  readonly ttl_seconds?: number
  readonly priority?: 'high' | 'normal'
}

export type Device = { readonly id: string; readonly token: string; readonly provider: 'apns' | 'fcm' | 'log' }

/** A claimed delivery: api.push_claim answers these. */
export type Claimed = {
  readonly id: string
  readonly attempt_id: string
  readonly campaign_id: string | null
  readonly message: Message
  readonly badge: number | null
  readonly tokens: readonly Device[]
  /** Until when the message is worth it: its `ttl_seconds` after the first attempt. */
  readonly expires_at: string
}

/**
 * What became of one message to one device. `retry`: certainly not delivered, or a repetition shows nothing twice. `refused`: the provider does
 * not accept the credentials. `failed` is final.
 */
export type Answer = {
  readonly outcome: 'sent' | 'failed' | 'retry' | 'refused'
  /** HTTP status, null when there was no answer. */
  readonly status: number | null
  /** The provider's reason, or one of ours. */
  readonly code: string | null
  /** The device is gone for good. */
  readonly is_dead?: boolean
  /** Seconds for which the provider asks to be left alone. */
  readonly retry_after?: number
  readonly payload?: object
}

export type Provider = {
  send(delivery: Claimed, device: Device): Promise<Answer>
  /** Calls the cheapest endpoint that checks the credentials. */
  check(): Promise<Answer>
  close(): void
}

export const timeoutMs = 10_000

/** The answer of a provider that is to be tried again, with the seconds of its Retry-After where it has one. */
export const retried = (status: number | null, code: string, header?: string | null, least = 0): Answer => {
  const asked = retryAfterMs(header ?? undefined)
  const seconds = Math.max(least, asked === null ? 0 : Math.ceil(asked / 1000))
  return { outcome: 'retry', status, code, ...(seconds > 0 ? { retry_after: seconds } : {}) }
}

/** Seconds that are left of a message. */
export const ttlOf = ({ expires_at, message }: Claimed, now: Date): number => {
  const { ttl_seconds = 86_400 } = message
  return Math.min(ttl_seconds, Math.max(0, Math.floor((Date.parse(expires_at) - now.getTime()) / 1000)))
}

/** Fields of ours win over an app's data of the same names. */
export const dataOf = ({ id, campaign_id, message }: Claimed): Record<string, unknown> => ({
  ...message.data,
  _did: id,
  ...(campaign_id ? { _cid: campaign_id } : {}),
  ...(message.deep_link ? { deep_link: message.deep_link } : {}),
})

/** The same uuid for each attempt to send a delivery to a device. */
export const idOf = (deliveryId: string, deviceId: string): string => {
  const bytes = createHash('sha256').update(`${deliveryId} ${deviceId}`).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** A reason of a provider as a code: short, without anything that could be a secret. */
export const codeOf = (reason: unknown, fallback: string): string =>
  typeof reason === 'string' && /^[A-Za-z_]{1,64}$/.test(reason) ? reason : fallback

/** What APNs and FCM take of one message, in bytes of its JSON. */
export const maxPayloadBytes = 4096
const bytesOf = (payload: object): number => Buffer.byteLength(JSON.stringify(payload))

/**
 * The payload of a delivery, within the providers' limit: a body that is too long ends at a whole character, with an ellipsis. Null when title
 * and data leave no place for any of it. Placeholders make the size known only now.
 */
export const fitted = <Payload extends object>(
  delivery: Claimed,
  make: (shown: Claimed) => Payload,
): Payload | null => {
  const whole = make(delivery)
  if (bytesOf(whole) <= maxPayloadBytes) return whole
  const withBody = (body: string) => make({ ...delivery, message: { ...delivery.message, body } })
  const characters = Array.from(new Intl.Segmenter().segment(delivery.message.body), ({ segment }) => segment)
  // the longest beginning that fits: its length is at least `fits`, and below `fails`
  let [fits, fails] = [0, characters.length]
  while (fails - fits > 1) {
    const middle = (fits + fails) >> 1
    if (bytesOf(withBody(`${characters.slice(0, middle).join('')}…`)) <= maxPayloadBytes) fits = middle
    else fails = middle
  }
  return fits === 0 ? null : withBody(`${characters.slice(0, fits).join('').trimEnd()}…`)
}

export const tooLarge: Answer = { outcome: 'failed', status: null, code: 'PAYLOAD_TOO_LARGE' }
