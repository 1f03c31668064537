import { connect } from 'node:net'
import type pg from 'pg'

/** The properties of pg's connection that a CancelRequest needs: the address, and the backend's process id and secret key. */
type Known = { host: string; port: number; processID: number | null; secretKey: number | null }

const request = (processId: number, secretKey: number): Buffer => {
  const message = Buffer.alloc(16)
  message.writeInt32BE(16, 0)
  // the code of a CancelRequest, sent in place of a protocol version
  message.writeInt32BE(80_877_102, 4)
  message.writeInt32BE(processId, 8)
  message.writeInt32BE(secretKey, 12)
  return message
}

const patienceMs = 1000

/**
 * Asks the server, or the pooler in between, to cancel what this connection runs, over a connection of its own. Resolves when that
 * is closed: the signal is sent by then, and a backend that runs nothing ignores it. Never rejects: a statement that is not cancelled
 * runs to its end. Closing a connection cancels nothing: Postgres notices only when it has something to answer.
 */
export const cancelStatement = (client: pg.Client): Promise<void> =>
  new Promise((resolve) => {
    const { host, port, processID, secretKey } = client as unknown as Known
    if (processID === null || secretKey === null) return resolve()
    const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
    socket.setTimeout(patienceMs, () => socket.destroy())
    socket.once('connect', () => socket.write(request(processID, secretKey)))
    // the server closes without an answer, whether it found something to cancel or not
    socket.on('error', () => socket.destroy())
    socket.once('close', () => resolve())
    socket.resume()
  })
