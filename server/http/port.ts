import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Errors of an address family that the machine does not have; the server does not listen on it either. */
const isMissing = (error: unknown) =>
  ['EAFNOSUPPORT', 'EADDRNOTAVAIL'].includes((error as NodeJS.ErrnoException).code ?? '')

const requireFree = async (host: string, port: number): Promise<void> => {
  const server = createServer().listen({ host, port, exclusive: true })
  await once(server, 'listening')
  server.close()
  await once(server, 'close')
}

const addressesOf = async (host: string): Promise<string[]> =>
  (await lookup(host, { all: true })).map(({ address }) => address)

/**
 * Throws EADDRINUSE or EACCES when the port cannot be listened on, before a database is started or a file written. A name such as
 * localhost has an address in each family, and the server listens on all of them. Another program may still take the port before
 * the server listens; the same error is thrown then.
 */
export const requireFreePort = async (host: string, port: number, resolve = addressesOf): Promise<void> => {
  if (port === 0) return
  const addresses = new Set(await resolve(host))
  for (const address of addresses) {
    await requireFree(address, port).catch((error) => {
      if (addresses.size === 1 || !isMissing(error)) throw error
    })
  }
}
