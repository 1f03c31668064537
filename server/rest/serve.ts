import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Dispatcher } from 'undici'
import { type ApiError, refusal } from '#server/errors.ts'
import { takeRateLimits } from '#server/http/app.ts'
import { answerOf } from '#server/http/errors.ts'
import { mostBytes } from '#server/http/json.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import { sendStream } from '#server/http/stream.ts'
import { callerOf } from '#server/rest/caller.ts'
import type { Lease } from '#server/rest/doors.ts'
import { type Exchanged, exchange } from '#server/rest/exchange.ts'
import type { Services } from '#server/services.ts'

const methods = ['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE'] as const
const prefix = '/rest/v1'

/**
 * `/rest/v1/*`: PostgREST, over the collections of the project whose key a request has, with the policies of its caller. Errors have PostgREST's
 * form, also those that the server itself answers: clients of PostgREST read `code` and `message` at the top.
 */
export const serveRest = (services: Services) => async (app: FastifyInstance) => {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: mostBytes }, (_request, bytes, done) =>
    done(null, bytes),
  )
  app.setErrorHandler((error, request, reply) => sendRefusal(reply, answerOf(error, request, services)))
  app.route({
    method: [...methods],
    url: `${prefix}/*`,
    handler: (request, reply) => answer(services, request, reply),
  })
}

const sendRefusal = (reply: FastifyReply, { status, code, message, details, headers }: ApiError) => {
  if (headers) reply.headers(headers)
  const body = { code, message, details: details ?? null, hint: null }
  return reply.status(status).type('application/json; charset=utf-8').send(JSON.stringify(body))
}

const answer = async (services: Services, request: FastifyRequest, reply: FastifyReply) => {
  services.rateLimiter.take([{ key: `ip ${addressKey(request.ip)}`, perSecond: 60, burst: 200 }])
  const resolved = await callerOf(request, services)
  const { claims, place, project } = resolved
  const projectId = project?.projectId ?? ''
  request.trellisProject = projectId
  request.trellisCaller = claims.caller
  takeRateLimits({}, resolved, services)
  const lease = await services.rest.lease(projectId, place, project?.organizationId)
  reply.raw.once('close', lease.release)
  const isWrite = request.method !== 'GET' && request.method !== 'HEAD'
  if (isWrite) services.waker.written(projectId)
  const role = resolved.role === 'app_server' ? 'app_server' : 'app_rest'
  const response = await ask(lease, request, lease.tokenFor({ ...claims, role }))
  if (isWrite && response.status < 400) {
    // what triggers queued and published is not in the response of PostgREST
    services.waker.wake(projectId, new Date().toISOString())
    services.realtime.published(projectId)
  }
  return passOn(response, request, reply)
}

/** Of what a client sends, PostgREST gets these: neither credentials nor what proxies add. */
const passedHeaders = ['accept', 'content-type', 'prefer', 'range', 'range-unit', 'if-none-match', 'if-match']

const ask = async (lease: Lease, request: FastifyRequest, token: string): Promise<Exchanged> => {
  const headers: Record<string, string> = { authorization: `Bearer ${token}` }
  for (const name of passedHeaders) {
    const value = request.headers[name]
    if (typeof value === 'string') headers[name] = value
  }
  // clients name the schema public, which is that of the collections here
  for (const name of ['accept-profile', 'content-profile']) {
    const value = request.headers[name]
    if (typeof value === 'string') headers[name] = value === 'public' ? 'rest' : value
  }
  const body = request.body as Buffer | undefined
  const path = (request.raw.url ?? '').slice(prefix.length)
  try {
    return await exchange(lease.http, {
      path,
      method: request.method as Dispatcher.HttpMethod,
      headers,
      ...(body && body.length > 0 ? { body } : {}),
    })
  } catch {
    throw refusal(503, 'REST_UNAVAILABLE', 'PostgREST did not answer: try again in a moment.', null, {
      'Retry-After': '2',
    })
  }
}

const returnedHeaders = [
  'content-type',
  'content-range',
  'content-location',
  'location',
  'preference-applied',
  'range-unit',
  'content-length',
  'www-authenticate',
  'allow',
]

const passOn = (response: Exchanged, request: FastifyRequest, reply: FastifyReply) => {
  for (const name of returnedHeaders) {
    const value = response.headers[name]
    if (typeof value === 'string') reply.header(name, value)
  }
  const profile = response.headers['content-profile']
  if (profile === 'rest') reply.header('content-profile', 'public')
  reply.status(response.status)
  const { body } = response
  if (!Buffer.isBuffer(body)) return sendStream(reply, body)
  if (request.method === 'HEAD') return reply.send('')
  return response.status >= 400 ? sendFailure(body.toString(), reply) : reply.send(body)
}

/** A refusal of the project's own rules (internal.fail) gets its status and code; the others are PostgREST's words. */
const sendFailure = (text: string, reply: FastifyReply) => {
  reply.removeHeader('content-length')
  const { code, message, details } = fieldsOf(text)
  if (code !== 'TR000') return reply.send(text)
  const raised = JSON.parse(details ?? '{}') as { status: number; code: string; details?: unknown }
  return reply
    .status(raised.status)
    .send(JSON.stringify({ code: raised.code, message, details: raised.details ?? null, hint: null }))
}

const fieldsOf = (text: string): { code?: string; message?: string; details?: string | null } => {
  try {
    return JSON.parse(text) as ReturnType<typeof fieldsOf>
  } catch {
    return {}
  }
}
