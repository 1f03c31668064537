import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { WebSocketServer } from 'ws'
import { type ApiError, refusal } from '#server/errors.ts'
import { keyOf } from '#server/http/client_credentials.ts'
import { answerOf, envelopeOf, send } from '#server/http/errors.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import { takeUpgrade, type Upgrade, upgradeOf } from '#server/http/upgrade.ts'
import { credentialOfHeaders } from '#server/realtime/credentials.ts'
import { checkHandshake } from '#server/realtime/handlers.ts'
import { closing, limits } from '#server/realtime/protocol.ts'
import { invalid } from '#server/rest/auth_shapes.ts'
import { readCredentials, written } from '#server/rest/caller.ts'
import { type Channels, createChannels } from '#server/rest/channels.ts'
import { type Format, formats } from '#server/rest/phoenix.ts'
import type { Services } from '#server/services.ts'

const server = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: limits.frameBytes,
})

/** So many sockets of one address may be open without a user. */
const mostStrangers = 50
const closeMs = 1000

/** `/realtime/v1/websocket`: channels in the form of realtime-js. The key is in the URL, as it sends it; session tokens are not. */
export const serveChannels = (services: Services) => async (app: FastifyInstance) => {
  const strangers = new Map<string, number>()
  app.setErrorHandler((error, request, reply) => {
    const answer = answerOf(error, request, services)
    return send(reply, { status: answer.status, body: envelopeOf(answer), headers: answer.headers })
  })
  app.route({
    method: 'GET',
    url: '/realtime/v1/websocket',
    exposeHeadRoute: false,
    handler: async (request, reply) => connect(services, strangers, request, reply),
  })
}

const connect = async (
  services: Services,
  strangers: Map<string, number>,
  request: FastifyRequest,
  reply: FastifyReply,
) => {
  services.rateLimiter.take([{ key: `ip ${addressKey(request.ip)}`, perSecond: 60, burst: 200 }])
  const upgrade = upgradeOf(request.raw)
  if (upgrade) checkHandshake(request)
  try {
    const admitted = await admit(services, strangers, request, upgrade)
    reply.hijack()
    takeOver(services, request, admitted)
  } catch (error) {
    if (!upgrade) throw error
    reply.hijack()
    refuse(upgrade, answerOf(error, request, services))
  }
  return reply
}

/** A browser is told nothing of an upgrade that fails: it is made, and closed with what refuses it. */
const refuse = ({ request, socket, head }: Upgrade, { status, code, message }: ApiError) => {
  takeUpgrade(request)
  server.handleUpgrade(request, socket, head, (opened) => {
    opened.on('error', () => undefined)
    opened.close(closeCodes[status] ?? closing.failure, reasonOf(`${code}: ${message}`))
    setTimeout(() => opened.terminate(), closeMs).unref()
  })
}

const closeCodes: Readonly<Record<number, number>> = {
  400: closing.badFrame,
  401: closing.unauthorized,
  403: closing.forbidden,
  429: closing.tooFast,
  // try again later
  503: 1013,
}

/** The reason of a close frame has at most 123 bytes (RFC 6455, 5.5). */
const reasonOf = (text: string) => {
  const bytes = Buffer.from(text)
  return bytes.length <= 123
    ? text
    : bytes
        .subarray(0, 120)
        .toString()
        .replace(/\uFFFD*$/, '')
}

const admit = async (
  services: Services,
  strangers: Map<string, number>,
  request: FastifyRequest,
  upgrade: Upgrade | undefined,
): Promise<UpgradeRequest> => {
  const address = addressKey(request.ip)
  const { apikey, vsn } = request.query as { apikey?: unknown; vsn?: unknown }
  if (typeof apikey === 'string') request.headers['x-api-key'] = apikey
  delete request.headers.authorization
  await readCredentials(request, services)
  const { project } = await keyOf(request, services)
  request.trellisProject = project.projectId
  const format = typeof vsn === 'string' && Object.hasOwn(formats, vsn) ? formats[vsn] : undefined
  if (!format) throw invalid('vsn', 'must be 2.0.0 or 1.0.0')
  if (!upgrade)
    throw refusal(426, 'UPGRADE_REQUIRED', 'This path speaks WebSocket: send Upgrade: websocket.', null, {
      Upgrade: 'websocket',
    })
  const count = strangers.get(address) ?? 0
  if (count >= mostStrangers)
    throw refusal(429, 'RATE_LIMITED', 'Too many connections of this address have no user.', null, {
      'Retry-After': '5',
    })
  strangers.set(address, count + 1)
  let isStranger = true
  const known = () => {
    if (!isStranger) return
    isStranger = false
    const left = (strangers.get(address) ?? 1) - 1
    if (left > 0) strangers.set(address, left)
    else strangers.delete(address)
  }
  upgrade.socket.once('close', known)
  return { upgrade, projectId: project.projectId, format, known }
}

type UpgradeRequest = {
  readonly upgrade: Upgrade
  readonly projectId: string
  readonly format: Format
  readonly known: () => void
}

const takeOver = (
  services: Services,
  request: FastifyRequest,
  { upgrade, projectId, format, known }: UpgradeRequest,
) => {
  const { headers } = request
  takeUpgrade(upgrade.request)
  server.handleUpgrade(upgrade.request, upgrade.socket, upgrade.head, (socket) => {
    const close = (code: number, reason: string) => {
      socket.close(code, reason)
      setTimeout(() => socket.terminate(), closeMs).unref()
    }
    const unknown = setTimeout(() => close(closing.idle, 'nobody has signed in'), limits.idleMs).unref()
    const channels: Channels = createChannels({
      format,
      socket: {
        send: (data) => socket.send(data),
        close,
        terminate: () => socket.terminate(),
        get unreadBytes() {
          return socket.bufferedAmount
        },
        get isGone() {
          return socket.readyState !== socket.OPEN
        },
      },
      credentialOf: (token) =>
        credentialOfHeaders(
          Object.create(request, { headers: { value: { ...headers, authorization: `Bearer ${token}` } } }),
          services,
          written,
        ),
      open: (credential, transport) => services.realtime.open(credential, transport),
      opened() {
        clearTimeout(unknown)
        known()
      },
      now: services.now,
    })
    const check = async () => {
      const project = await services.projectCache.byProject(projectId)
      if (!project?.restEnabled) close(closing.unauthorized, 'the REST access of this project is off')
    }
    const unwatch = services.rest.watch(projectId, () => void check().catch(() => undefined))
    // it may have been switched off since the key was read
    void check().catch(() => undefined)
    socket.on('message', (data: Buffer, isBinary) => channels.receive(data, isBinary))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(unknown)
      unwatch()
      channels.ended()
    })
  })
}
