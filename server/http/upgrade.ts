import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'

/** A connection that its client wants to speak another protocol on. */
export type Upgrade = { readonly request: IncomingMessage; readonly socket: Duplex; readonly head: Buffer }

const upgrades = new WeakMap<IncomingMessage, Upgrade & { readonly response: ServerResponse }>()

/** Node asks for each request with an Upgrade header; the header of any other protocol is ignored, as HTTP says. */
export const wantsWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === 'websocket'

/** Requests for a WebSocket pass the way of all others: routing, credentials, limits and refusals in our envelope are the same. */
export const routeUpgrades = (app: FastifyInstance): void => {
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
    // an answer, which can only be a refusal, ends the connection
    response.once('finish', () => socket.end())
    socket.on('error', () => socket.destroy())
    upgrades.set(request, { request, socket, head, response })
    app.routing(request, response)
  })
}

/** The upgrade that a request asks for, or undefined. */
export const upgradeOf = (request: IncomingMessage): Upgrade | undefined => upgrades.get(request)

/** From here on the connection is its new protocol's. */
export const takeUpgrade = (request: IncomingMessage): void => {
  const upgrade = upgrades.get(request)
  if (upgrade) upgrade.response.detachSocket(upgrade.socket as Parameters<ServerResponse['detachSocket']>[0])
}
