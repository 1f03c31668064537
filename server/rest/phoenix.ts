/** A message of Phoenix channels. */
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
export const bytesKey = '$base64'

const textOf = (value: unknown): string | null | undefined =>
  value === null || value === undefined ? null : typeof value === 'string' && value.length <= 255 ? value : undefined

const messageOf = (fields: readonly unknown[], payload: unknown): Message | null => {
  const [joinRef, ref, topic, event] = fields.map(textOf)
  if (joinRef === undefined || ref === undefined || !topic || !event) return null
  return { joinRef, ref, topic, event, payload }
}

const readList = (data: Buffer): Message | null => {
  const list: unknown = JSON.parse(data.toString())
  return Array.isArray(list) && list.length === 5 ? messageOf(list.slice(0, 4), list[4]) : null
}

const readObject = (data: Buffer): Message | null => {
  const sent: unknown = JSON.parse(data.toString())
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) return null
  const { join_ref, ref, topic, event, payload } = sent as { [key: string]: unknown }
  return messageOf([join_ref, ref, topic, event], payload)
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
    payload: { ...(metadata === '' ? {} : (JSON.parse(metadata) as object)), type: 'broadcast', event, payload },
  }
}

const listOf = ({ joinRef, ref, topic, event, payload }: Message): string =>
  JSON.stringify([joinRef, ref, topic, event, payload])

const bytesOf = (payload: unknown): Buffer | null => {
  if (typeof payload !== 'object' || payload === null) return null
  const [[key, text] = [], ...others] = Object.entries(payload)
  return key === bytesKey && others.length === 0 && typeof text === 'string' ? Buffer.from(text, 'base64') : null
}

/** A broadcast as bytes: kind, lengths of topic, event and metadata, the encoding, the texts, the payload. */
const broadcastOf = (topic: string, event: string, payload: unknown): Buffer => {
  const bytes = bytesOf(payload)
  const texts = [Buffer.from(topic), Buffer.from(event)] as const
  const head = [kinds.broadcast, texts[0].length, texts[1].length, 0, bytes ? encodings.bytes : encodings.json]
  return Buffer.concat([Buffer.from(head), ...texts, bytes ?? Buffer.from(JSON.stringify(payload ?? null))])
}

/** Messages as one version of the protocol writes them. */
export type Format = {
  /** What a client sent; null where it is no message. */
  read(data: Buffer, isBinary: boolean): Message | null
  write(message: Message): string
  broadcast(topic: string, event: string, payload: unknown): string | Buffer
}

const orNull = (read: () => Message | null): Message | null => {
  try {
    return read()
  } catch {
    return null
  }
}

const writeObject = ({ joinRef, ...rest }: Message): string => JSON.stringify({ join_ref: joinRef, ...rest })

/** By the `vsn` of the URL: objects in JSON (supabase-js before 2.91); lists in JSON, and broadcasts as bytes (since then). */
export const formats: Readonly<Record<string, Format>> = {
  '1.0.0': {
    read: (data, isBinary) => (isBinary ? null : orNull(() => readObject(data))),
    write: writeObject,
    broadcast: (topic, event, payload) =>
      writeObject({
        joinRef: null,
        ref: null,
        topic,
        event: 'broadcast',
        payload: { type: 'broadcast', event, payload },
      }),
  },
  '2.0.0': {
    read: (data, isBinary) => orNull(() => (isBinary ? readPush(data) : readList(data))),
    write: listOf,
    broadcast: broadcastOf,
  },
}
