import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { type ApiError, refusal } from '#server/errors.ts'
import { envelopeOf, send } from '#server/http/errors.ts'
import { underRoot } from '#server/http/root.ts'

/** Refusals of HTTP itself, before a route is found: with the envelope and the headers of every response. */

/** Headers of every response. */
export const commonHeaders = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'cross-origin',
}
/** Default headers of responses. */
export const usualHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

/** The X-Request-Id that a caller sent, or a new one. */
export const requestIdOf = (request: Pick<IncomingMessage, 'headers'>): string => {
  const sent = request.headers['x-request-id']
  return typeof sent === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(sent) ? sent : randomUUID()
}

/** Absolute form, as sent to proxies, names the same path (RFC 9112, 3.2.2); so does a path under the root of a project. */
export const pathOf = (request: IncomingMessage): string => {
  const { url = '/' } = request
  return underRoot(request, url.charCodeAt(0) === 47 ? url : url.replace(/^https?:\/\/[^/?#]*\/?/i, '/'))
}

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Payload Too Large',
  431: 'Request Header Fields Too Large',
}

/** Writes a response to a socket for which Node has no response object, and closes the connection. */
const endWith = (socket: Duplex, answer: ApiError, requestId: string): void => {
  const body = envelopeOf(answer)
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
    ...commonHeaders,
    ...usualHeaders,
    ...answer.headers,
    connection: 'close',
  }
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${answer.status} ${reasons[answer.status]}\r\n${head.join('')}\r\n${body}`)
}

const parserRefusals: Readonly<Record<string, ApiError>> = {
  HPE_HEADER_OVERFLOW: refusal(431, 'HEADERS_TOO_LARGE', 'The headers have more than 16 KB.'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: refusal(413, 'PAYLOAD_TOO_LARGE', 'The chunk extensions have more than 16 KB.'),
  ERR_HTTP_REQUEST_TIMEOUT: refusal(408, 'REQUEST_TIMEOUT', 'The request was not complete in time.'),
}
const notHttp = refusal(400, 'INVALID_INPUT', 'The request is not valid HTTP.')

/** The response that a connection is working on; earlier requests are answered already. */
const workOf = (socket: Duplex): ServerResponse | null =>
  (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? null

/** Sends this response and closes the connection, after the responses to complete earlier requests, whose work is done. */
const endAfterOthers = (socket: Duplex, answer: ApiError, requestId: string): void => {
  const earlier = workOf(socket)
  if (!socket.writable) socket.destroy()
  else if (!earlier?.req.complete) endWith(socket, answer, requestId)
  // by then the connection works on the next pipelined request, if there is one
  else earlier.once('close', () => setImmediate(endAfterOthers, socket, answer, requestId))
}

/** A request that Node's parser refuses gets a last response, unless its own response has begun. */
export const refuseUnparsed = (error: Error & { code?: string }, socket: Duplex): void => {
  const inFlight = workOf(socket)
  if (error.code === 'ECONNRESET' || !socket.writable || (inFlight?.headersSent && !inFlight.req.complete)) {
    socket.destroy()
    return
  }
  endAfterOthers(socket, parserRefusals[error.code ?? ''] ?? notHttp, randomUUID())
}

const countHosts = ({ rawHeaders }: IncomingMessage): number => {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  return count
}

/** RFC 9112, 3.2: exactly one Host header in HTTP/1.1. With two, a proxy may have used the other one (request smuggling). */
const refusedOf = (request: IncomingMessage): ApiError | null => {
  const hosts = countHosts(request)
  if (hosts > 1) return refusal(400, 'INVALID_INPUT', 'The request has more than one Host header.')
  if (hosts === 0 && request.httpVersion === '1.1')
    return refusal(400, 'INVALID_INPUT', 'The request has no Host header.')
  const { expect } = request.headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue' && request.httpVersion === '1.1')
    return refusal(417, 'EXPECTATION_FAILED', 'The only supported expectation is 100-continue.')
  return null
}

/** Handles requests that Node would answer by itself or not at all: without a Host, with another expectation, CONNECT. */
export const guardProtocol = (app: FastifyInstance): void => {
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    const allow = { allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' }
    socket.on('error', () => socket.destroy())
    endAfterOthers(
      socket,
      refusal(405, 'METHOD_NOT_ALLOWED', 'This server is not a proxy.', null, allow),
      requestIdOf(request),
    )
  })
  app.addHook('onRequest', (request, reply, done) => {
    const refused = refusedOf(request.raw)
    if (!refused) return done()
    send(reply.header('connection', 'close'), { status: refused.status, body: envelopeOf(refused) })
  })
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0

/**
 * Bodies must come whole in this time, except those of routes that are slow and look after it themselves. Node's own limit is one for the
 * whole server. The time begins before any hook: a request that is answered early (a preflight, an unsupported encoding, a path that
 * cannot be decoded) would otherwise hold its connection for as long as its sender likes.
 */
export const limitBodies = (app: FastifyInstance, milliseconds: number): void => {
  const timers = new WeakMap<IncomingMessage, NodeJS.Timeout>()
  app.server.prependListener('request', (raw: IncomingMessage) => {
    if (!hasBody(raw)) return
    const late = () => {
      if (!raw.complete) refuseUnparsed({ name: '', message: '', code: 'ERR_HTTP_REQUEST_TIMEOUT' }, raw.socket)
    }
    const timer = setTimeout(late, milliseconds)
    timers.set(raw, timer)
    raw.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer))
  })
  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (request.routeOptions.config.isSlow) clearTimeout(timers.get(request.raw))
    done(null, payload)
  })
}

/**
 * Throws away the rest of a body whose request is refused before it came: a sender that writes into a closed connection often does not see the
 * response. Closes the connection when the rest does not come in this time.
 */
export const discardBody = (raw: IncomingMessage, milliseconds: number): void => {
  if (raw.complete) return
  raw.resume()
  const timer = setTimeout(() => raw.socket.destroy(), milliseconds)
  raw.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer))
}
