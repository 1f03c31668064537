/** Messages of Phoenix channels as realtime-js has them, version 2.0.0 of the protocol: lists in JSON, and broadcasts as bytes. */
export type Message = {
  readonly joinRef: string | null
  readonly ref: string | null
  readonly topic: string
  readonly event: string
  readonly payload: unknown
}

const kinds = { push: 3, broadcast: 4 }
const encodings = { bytes: 0, json: 1 }
/** Bytes that are published, as JSON has them. */
const bytesKey = '$base64'

const textOf = (value: unknown): string | null | undefined =>
  value === null || value === undefined ? null : typeof value === 'string' && value.length <= 255 ? value : undefined

/** What a client sent; null where it is no message. */
export const readMessage = (data: Buffer, isBinary: boolean): Message | null => {
  try {
    return isBinary ? readPush(data) : readList(data)
  } catch {
    return null
  }
}

const readList = (data: Buffer): Message | null => {
  const list: unknown = JSON.parse(data.toString())
  if (!Array.isArray(list) || list.length !== 5) return null
  const [joinRef, ref, topic, event] = list.slice(0, 4).map(textOf)
  if (joinRef === undefined || ref === undefined || !topic || !event) return null
  return { joinRef, ref, topic, event, payload: list[4] }
}

/** One byte for each length (join ref, ref, topic, event, metadata), one for the encoding, then the texts and the payload. */
const readPush = (data: Buffer): Message | null => {
  const [kind, ...lengths] = data.subarray(0, 6)
  const encoding = data[6]
  if (kind !== kinds.push || lengths.length !== 5) return null
  let at = 7
  const [joinRef = '', ref = '', topic = '', event = '', metadata = ''] = lengths.map((length) => {
    at += length
    return data.subarray(at - length, at).toString()
  })
  if (at > data.length || topic === '') return null
  const rest = data.subarray(at)
  const payload = encoding === encodings.json ? JSON.parse(rest.toString()) : { [bytesKey]: rest.toString('base64') }
  return {
    joinRef: joinRef || null,
    ref: ref || null,
    topic,
    event: 'broadcast',
    payload: { type: 'broadcast', event, payload, ...(metadata === '' ? {} : { metadata }) },
  }
}

export const listOf = ({ joinRef, ref, topic, event, payload }: Message): string =>
  JSON.stringify([joinRef, ref, topic, event, payload])

const bytesOf = (payload: unknown): Buffer | null => {
  if (typeof payload !== 'object' || payload === null) return null
  const [[key, text] = [], ...others] = Object.entries(payload)
  return key === bytesKey && others.length === 0 && typeof text === 'string' ? Buffer.from(text, 'base64') : null
}

/** A broadcast as clients read it: kind, lengths of topic, event and metadata, the encoding, the texts, the payload. */
export const broadcastOf = (topic: string, event: string, payload: unknown): Buffer => {
  const bytes = bytesOf(payload)
  const texts = [Buffer.from(topic), Buffer.from(event)] as const
  const head = [kinds.broadcast, texts[0].length, texts[1].length, 0, bytes ? encodings.bytes : encodings.json]
  return Buffer.concat([Buffer.from(head), ...texts, bytes ?? Buffer.from(JSON.stringify(payload ?? null))])
}
