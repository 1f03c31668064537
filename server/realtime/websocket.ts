import type { Duplex } from 'node:stream'
import { WebSocket, WebSocketServer } from 'ws'
import { parseJson } from '#server/http/json.ts'
import { takeUpgrade, type Upgrade } from '#server/http/upgrade.ts'
import { ClientFrame, closing, type Frame, limits, messageOf } from '#server/realtime/protocol.ts'
import type { Realtime } from '#server/realtime/realtime.ts'
import { atEndOfTurn, joinedOf } from '#server/realtime/turns.ts'
import type { Connection, Credential, Transport } from '#server/realtime/types.ts'

const server = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  // a compressor for each socket would hold ten times the memory of all else that a socket has
  perMessageDeflate: false,
  maxPayload: limits.frameBytes,
})

/** How long a client has to answer a closing frame. */
const closeMs = 1000

/**
 * The transport exists before its socket: a connection is admitted first, so that a refusal is an HTTP response. Messages are written
 * to the connection as they are, made once for all subscribers; `ws`, which would make each one anew, does all the rest.
 */
const createTransport = (connection: Duplex) => {
  let socket: WebSocket | undefined
  /** What is written at the end of this turn, or as soon as there is a socket. */
  let frames: Frame[] = []
  let bytes = 0
  let ended: [number, string] | undefined
  const write = () => {
    const [first, ...others] = frames
    if (!socket || !first) return
    frames = []
    bytes = 0
    if (socket.readyState === WebSocket.OPEN) connection.write(joinedOf([first, ...others]))
  }
  const transport: Transport = {
    send(frame) {
      bytes += messageOf(frame).length
      if (frames.push(frame) === 1 && socket) atEndOfTurn(write)
      else if (bytes > limits.writeBytes) write()
    },
    close(code, reason) {
      if (!socket) ended = [code, reason]
      else {
        write()
        socket.close(code, reason)
        const closed = socket
        setTimeout(() => closed.terminate(), closeMs).unref()
      }
    },
    terminate() {
      frames = []
      if (socket) socket.terminate()
      else ended = [closing.failure, 'ended']
    },
    get unreadBytes() {
      return socket ? connection.writableLength + bytes : 0
    },
    get isGone() {
      return socket ? socket.readyState !== WebSocket.OPEN : connection.destroyed
    },
  }
  return {
    transport,
    attach(made: WebSocket) {
      socket = made
      write()
      if (ended) transport.close(...ended)
    },
  }
}

const read = (connection: Connection, data: Buffer, isBinary: boolean): void => {
  const parsed = isBinary ? null : parseJson(data)
  const frame = ClientFrame.safeParse(parsed?.kind === 'value' ? parsed.value : undefined)
  if (frame.success) connection.receive(frame.data)
  else connection.close(closing.badFrame, 'this is no frame of the protocol')
}

/** Admits a connection and answers how its socket is taken over; rejects with what refuses it. */
export const openWebSocket = async (
  realtime: Realtime,
  credential: Credential,
  upgrade: Upgrade,
): Promise<() => void> => {
  const { transport, attach } = createTransport(upgrade.socket)
  const connection = await realtime.open(credential, transport)
  const gone = () => connection.ended()
  upgrade.socket.once('close', gone)
  if (upgrade.socket.destroyed) gone()
  return () => {
    takeUpgrade(upgrade.request)
    server.handleUpgrade(upgrade.request, upgrade.socket, upgrade.head, (socket) => {
      socket.on('message', (data: Buffer, isBinary) => read(connection, data, isBinary))
      socket.on('ping', () => connection.touch())
      socket.on('pong', () => connection.touch())
      // what is no WebSocket frame, or too long a one, ends the connection; ws has sent the code of RFC 6455
      socket.on('error', () => undefined)
      socket.on('close', () => connection.ended())
      attach(socket)
    })
  }
}
