import { Readable } from 'node:stream'
import { type Frame, limits } from '#server/realtime/protocol.ts'
import type { Realtime } from '#server/realtime/realtime.ts'
import { atEndOfTurn } from '#server/realtime/turns.ts'
import type { Connection, Credential, Transport } from '#server/realtime/types.ts'

/** Proxies and browsers end a connection on which nothing comes. */
const keepAliveMs = 20_000

/** Where a client stopped: the number of the last event that it had of each channel. */
export type Places = ReadonlyMap<string, number>

/** Reads `channel=seq,channel=seq`; null when it is something else. */
export const readPlaces = (text: string): Places | null => {
  const places = new Map<string, number>()
  for (const part of text.split(',').filter(Boolean)) {
    const [, channel, seq] = /^(.{1,128})=(\d{1,16})$/.exec(part) ?? []
    if (channel === undefined || seq === undefined) return null
    places.set(channel, Number(seq))
  }
  return places
}

const writePlaces = (places: Places) => [...places].map(([channel, seq]) => `${channel}=${seq}`).join(',')

const stream = (since: Places) => {
  // a client that hears of some of its channels and is cut off still knows where it was in the others
  const places = new Map(since)
  const body = new Readable({ read: () => undefined, objectMode: false, highWaterMark: limits.unreadBytes })
  // an app that has nothing to show for an hour, and a client that is there all the same
  const keepAlive = setInterval(() => body.push(': \n\n'), keepAliveMs)
  keepAlive.unref()
  body.once('close', () => clearInterval(keepAlive))
  const text = ({ text, kind, channel, seq }: Frame): string => {
    if (channel !== null && seq !== null) places.set(channel, seq)
    // the comma and the equals sign are in no name of a channel
    const id = places.size > 0 ? `id: ${writePlaces(places)}\n` : ''
    // a line break in a JSON text can only be between its tokens
    return `${id}event: ${kind}\ndata: ${text.replaceAll(/[\r\n]/g, ' ')}\n\n`
  }
  let texts: string[] = []
  let length = 0
  const write = () => {
    if (!body.destroyed && texts.length > 0) body.push(texts.join(''))
    texts = []
    length = 0
  }
  const transport: Transport = {
    send(frame) {
      const made = text(frame)
      length += made.length
      if (texts.push(made) === 1) atEndOfTurn(write)
      else if (length > limits.writeBytes) write()
    },
    close() {
      write()
      if (!body.destroyed) body.push(null)
    },
    terminate: () => void body.destroy(new Error('the client does not read')),
    get unreadBytes() {
      return body.readableLength + length
    },
    get isGone() {
      return body.destroyed
    },
    isOneWay: true,
  }
  return { body, transport }
}

/** A connection that only listens, as server-sent events. Every channel is authorised before anything is sent: what refuses one refuses the request. */
export const openStream = async (
  realtime: Realtime,
  credential: Credential,
  channels: readonly string[],
  since: Places,
): Promise<Readable> => {
  const { body, transport } = stream(new Map([...since].filter(([channel]) => channels.includes(channel))))
  const connection: Connection = await realtime.open(credential, transport)
  body.once('close', () => connection.ended())
  try {
    for (const channel of channels) await connection.subscribe(channel, {}, since.get(channel) ?? null)
  } catch (error) {
    connection.ended()
    body.destroy()
    throw error
  }
  return body
}
