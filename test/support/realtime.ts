import { onTestFinished } from 'vitest'
import WebSocket from 'ws'
import { freshIp, type Harness, type User } from '#test/support/harness.ts'

type Frame = Record<string, any>

/** A WebSocket client of its own, as an app would be: frames that came, and the close code. */
export type Socket = {
  readonly frames: Frame[]
  send(frame: Frame | string): void
  /** The first frame, already there or yet to come, that fits and was not taken before. */
  next(fits?: Wanted): Promise<Frame>
  /** Sends a frame and resolves with the ack or the error that refers to it. */
  ask(frame: Frame): Promise<Frame>
  subscribe(channel: string, more?: Frame): Promise<Frame>
  /** The code with which the socket was closed. */
  readonly closed: Promise<number>
  close(): Promise<number>
  readonly raw: WebSocket
}

type Wanted = Partial<Frame> | ((frame: Frame) => boolean)

const fitting = (wanted: Wanted): ((frame: Frame) => boolean) =>
  typeof wanted === 'function'
    ? (wanted as (frame: Frame) => boolean)
    : (frame) => Object.entries(wanted).every(([key, value]) => frame[key] === value)

/** A frame that has not come by then does not come: it names those that did. */
const lateMs = 20_000

/** How an upgrade was refused. */
export class Refused extends Error {
  readonly status: number
  readonly body: any
  constructor(status: number, text: string) {
    super(`${status} ${text}`)
    this.status = status
    this.body = JSON.parse(text)
  }
}

export const openSocket = async (url: string, headers: Record<string, string>, query = ''): Promise<Socket> => {
  const raw = new WebSocket(`${url.replace('http', 'ws')}/v1/client/realtime${query}`, {
    headers: { 'x-forwarded-for': freshIp(), ...headers },
  })
  const frames: Frame[] = []
  const untaken: Frame[] = []
  const waiting: {
    fits: (frame: Frame) => boolean
    resolve: (frame: Frame) => void
    reject: (error: Error) => void
  }[] = []
  raw.on('message', (data) => {
    const frame = JSON.parse(data.toString()) as Frame
    frames.push(frame)
    const at = waiting.findIndex(({ fits }) => fits(frame))
    if (at < 0) untaken.push(frame)
    else waiting.splice(at, 1)[0]?.resolve(frame)
  })
  const closed = new Promise<number>((resolve) =>
    raw.on('close', (code) => {
      for (const { reject } of waiting.splice(0)) reject(new Error(`the socket was closed with ${code}`))
      resolve(code)
    }),
  )
  raw.on('error', () => undefined)
  await new Promise<void>((resolve, reject) => {
    raw.once('open', resolve)
    raw.once('error', reject)
    raw.once('unexpected-response', (_request, response) => {
      let text = ''
      response.on('data', (part) => {
        text += String(part)
      })
      response.on('end', () => reject(new Refused(response.statusCode ?? 0, text)))
    })
  })
  let refs = 0
  const next: Socket['next'] = (wanted = {}) => {
    const fits = fitting(wanted)
    const at = untaken.findIndex(fits)
    const [known] = at < 0 ? [] : untaken.splice(at, 1)
    if (known) return Promise.resolve(known)
    return new Promise((resolve, reject) => {
      const late = setTimeout(
        () => reject(new Error(`no frame fits ${JSON.stringify(wanted)} in ${JSON.stringify(frames.slice(-12))}`)),
        lateMs,
      )
      waiting.push({
        fits,
        resolve: (frame) => {
          clearTimeout(late)
          resolve(frame)
        },
        reject: (error) => {
          clearTimeout(late)
          reject(error)
        },
      })
    })
  }
  const send: Socket['send'] = (frame) => raw.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  const ask: Socket['ask'] = (frame) => {
    refs += 1
    const ref = `r${refs}`
    send({ ...frame, ref })
    return next((answer) => answer['ref'] === ref)
  }
  const socket: Socket = {
    frames,
    send,
    next,
    ask,
    subscribe: (channel, more = {}) => ask({ type: 'subscribe', channel, ...more }),
    closed,
    async close() {
      raw.close()
      return closed
    },
    raw,
  }
  try {
    onTestFinished(async () => {
      raw.terminate()
      await closed
    })
  } catch {
    // opened outside of a test: whoever opened it ends it
  }
  return socket
}

export const openSocketOf = (harness: Harness, user: User, query = '') => openSocket(harness.url, user.headers, query)
