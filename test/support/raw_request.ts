import { connect } from 'node:net'

/** A request as bytes: nothing of it is corrected by a client. Each character is one byte. */
export type RawRequest = {
  readonly method: string
  readonly path: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

/** The start of an answer: its status, and as much of the text as helps a person who reads a failed test. */
export type RawAnswer = { readonly status: number; readonly text: string }

/** No request of the tests takes this long to be answered. */
const lateMs = 60_000

/** Sends the bytes over a connection of their own; status 0 when the server closes it without an answer. */
export const sendRaw = (url: string, { method, path, headers, body }: RawRequest): Promise<RawAnswer> =>
  new Promise((resolve, reject) => {
    const { hostname, port, host } = new URL(url)
    const lines = [
      `${method} ${path} HTTP/1.1`,
      `Host: ${host}`,
      'Connection: close',
      ...headers.map(([name, value]) => `${name}: ${value}`),
      ...(body === '' ? [] : [`Content-Length: ${body.length}`]),
    ]
    let text = ''
    const socket = connect({ host: hostname, port: Number(port) })
    const late = setTimeout(() => {
      socket.destroy()
      reject(new Error(`no answer in time: ${method} ${JSON.stringify(path)}`))
    }, lateMs)
    const settle = () => {
      clearTimeout(late)
      socket.destroy()
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), text: text.slice(0, 2000) })
    }
    socket.on('connect', () => socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1'))
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      // a stream of events does not end by itself
      if (text.length > 100_000 || text.includes('text/event-stream') || /^HTTP\/1\.1 101/.test(text)) settle()
    })
    // a reset after the answer takes nothing of it away
    socket.on('error', () => undefined)
    socket.on('close', settle)
  })
