// Sends and fetches files over raw sockets: a client that parses and copies little, so that what is measured is the server.
import { connect, type Socket } from 'node:net'
import { answer } from './child.ts'

export type Transfer = {
  readonly method: 'GET' | 'PUT'
  /** Connection n takes those of its index, one after the other. */
  readonly urls: readonly (readonly string[])[]
  readonly headers?: Readonly<Record<string, string>>
  /** Of each file. */
  readonly bytes: number
}

export type Transferred = { readonly seconds: number; readonly bytes: number }

const headOf = ({ method, headers = {}, bytes }: Transfer, url: URL) =>
  [
    `${method} ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(method === 'PUT' ? [`Content-Length: ${bytes}`] : []),
    '\r\n',
  ].join('\r\n')

/** One response at a time: its head is read as text, its body only counted. */
const fetchAll = (transfer: Transfer, urls: readonly string[], content: Buffer): Promise<number> =>
  new Promise((resolve, reject) => {
    let next = 0
    let head = ''
    /** Bytes of the body that are still to come; null before the head is complete. */
    let left: number | null = null
    let total = 0
    const first = new URL(urls[0] ?? '')
    const send = (socket: Socket) => {
      const url = urls[next]
      if (url === undefined) {
        socket.end()
        return resolve(total)
      }
      next += 1
      ;[head, left] = ['', null]
      socket.write(headOf(transfer, new URL(url)))
      if (transfer.method === 'PUT') socket.write(content)
    }
    const take = (socket: Socket, chunk: Buffer) => {
      let body = chunk.length
      if (left === null) {
        const seen = head.length
        head += chunk.toString('latin1')
        const end = head.indexOf('\r\n\r\n')
        if (end < 0) return
        const [, status] = /^HTTP\/1\.1 (\d+)/.exec(head) ?? []
        const [, length] = /\r\ncontent-length: (\d+)/i.exec(head.slice(0, end)) ?? []
        // 100 Continue is not what is waited for
        if (!status?.startsWith('2')) return reject(new Error(`${urls[next - 1]}: ${head.slice(0, 500)}`))
        left = Number(length ?? 0)
        body = seen + chunk.length - (end + 4)
      }
      left -= body
      total += transfer.method === 'GET' ? body : 0
      if (left > 0) return
      total += transfer.method === 'PUT' ? transfer.bytes : 0
      send(socket)
    }
    const socket: Socket = connect({
      host: first.hostname,
      port: Number(first.port),
      onread: {
        buffer: Buffer.allocUnsafe(1 << 18),
        callback(length, buffer) {
          take(socket, (buffer as Buffer).subarray(0, length))
          return true
        },
      },
    })
    socket.on('connect', () => send(socket)).on('error', reject)
    socket.on('close', () => reject(new Error(`${urls[next - 1]}: the connection ended`)))
  })

answer(async (transfer: Transfer): Promise<Transferred> => {
  const content = Buffer.alloc(transfer.method === 'PUT' ? transfer.bytes : 0, 'file ')
  const began = performance.now()
  const totals = await Promise.all(transfer.urls.map((urls) => fetchAll(transfer, urls, content)))
  return { seconds: (performance.now() - began) / 1000, bytes: totals.reduce((sum, bytes) => sum + bytes, 0) }
})
