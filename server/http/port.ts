import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Throws EADDRINUSE or EACCES when the port cannot be listened on, before a database is started or a file written. Another
 * program may still take the port before the server listens; the same error is thrown then.
 */
export const requireFreePort = async (host: string, port: number): Promise<void> => {
  if (port === 0) return
  const server = createServer().listen({ host, port, exclusive: true })
  await once(server, 'listening')
  server.close()
  await once(server, 'close')
}
