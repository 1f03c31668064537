import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A cable between a client and a server: cut, connections break and new ones are refused, as by a server that was killed. */
export type Cable = {
  readonly url: string
  /** Connections that were made so far. */
  connections(): number
  cut(): Promise<void>
  mend(): Promise<void>
}

export const layCable = async (to: string): Promise<Cable> => {
  const { hostname, port } = new URL(to)
  const open = new Set<Socket>()
  let made = 0
  let own = 0
  let server: Server | undefined
  const mend = async () => {
    server = createServer((client) => {
      made += 1
      const behind = connect(Number(port), hostname)
      for (const socket of [client, behind]) {
        open.add(socket)
        socket.on('error', () => socket.destroy())
        socket.on('close', () => open.delete(socket))
      }
      client.pipe(behind).pipe(client)
    })
    server.listen(own, '127.0.0.1')
    await once(server, 'listening')
    own = (server.address() as AddressInfo).port
  }
  await mend()
  return {
    url: `http://127.0.0.1:${own}`,
    connections: () => made,
    async cut() {
      const closing = server
      server = undefined
      if (!closing) return
      const closed = once(closing, 'close')
      closing.close()
      for (const socket of open) socket.destroy()
      await closed
    },
    mend,
  }
}
