import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Dispatcher } from 'undici'
import { type ApiError, refusal } from '#server/errors.ts'
import { takeRateLimits } from '#server/http/app.ts'
import { answerOf } from '#server/http/errors.ts'
import { mostBytes } from '#server/http/json.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import { sendStream } from '#server/http/stream.ts'
import { callerOf, isRead } from '#server/rest/caller.ts'
import { type Exchanged, exchange } from '#server/rest/exchange.ts'
import {
  failureTold,
  mayBeStale,
  missingReference,
  referenceTold,
  strangerTold,
  type Told,
} from '#server/rest/failure.ts'
import { checkBody, checkFilter, checkSelect, headersFor, pathFor } from '#server/rest/request.ts'
import type { Lease } from '#server/rest/types.ts'
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
  const table = (request.params as { '*'?: string })['*'] ?? ''
  const resolved = await callerOf(request, services, { takesStrangers: isRead(request) || isCall(request, table) })
  const { claims, place, project } = resolved
  const projectId = project?.projectId ?? ''
  request.trellisProject = projectId
  request.trellisCaller = claims.caller
  takeRateLimits({}, resolved, services)
  const asked = askedFor(request)
  const lease = await services.rest.lease(projectId, place, project?.organizationId)
  whenClosed(reply, lease.release)
  const isWrite = !isRead(request)
  if (isWrite) services.waker.written(projectId)
  const role = resolved.role === 'app_server' || resolved.role === 'app_anon' ? resolved.role : 'app_rest'
  if (role === 'app_anon') whenClosed(reply, await lease.strangersTurn())
  const response = await ask(lease, asked, lease.tokenFor({ ...claims, role }))
  if (isWrite && response.status < 300) {
    // what triggers queued and published is not in the response of PostgREST
    services.waker.wake(projectId, new Date().toISOString())
    services.realtime.published(projectId)
  }
  const { status, body } = response
  // 300 is a refusal too: several functions that a call could mean
  if (status < 300 || !Buffer.isBuffer(body) || request.method === 'HEAD') return passOn(response, request, reply)
  const reference = missingReference(status, body.toString())
  const found =
    reference &&
    (await services.database.call(place, 'app_worker', { caller: 'worker', projectId }, 'rest_reference', {
      collection: reference.table,
      constraint_name: reference.key,
    }))
  const { data } = (found ? JSON.parse(found.body.toString()) : {}) as { data?: { column: string; collection: string } }
  if (data) return fail(response, reply, referenceTold(data.column, data.collection))
  const told = failureTold(status, body.toString(), table, isWrite)
  return fail(response, reply, role === 'app_anon' ? strangerTold(told) : told)
}

/** When the response has been sent, or its client is gone, which it may be already. */
const whenClosed = ({ raw }: FastifyReply, work: () => void) => {
  if (raw.destroyed) work()
  else raw.once('close', work)
}

/** A call of a function that a DBA has granted: clients send it by POST, also where it only reads. */
const isCall = ({ method }: FastifyRequest, path: string) => method === 'POST' && /^rpc\/[^/]+$/.test(path)

const fail = (response: Exchanged, reply: FastifyReply, { status, body, headers = {} }: Told) => {
  passHeaders(response, reply)
  reply.headers(headers)
  return reply.removeHeader('content-length').status(status).type('application/json; charset=utf-8').send(body)
}

type AskedFor = Omit<Dispatcher.DispatchOptions, 'headers'> & { readonly headers: Record<string, string> }

/** A request as PostgREST gets it, without credentials. Refuses what PostgREST would take amiss. */
const askedFor = (request: FastifyRequest): AskedFor => {
  const path = pathFor((request.raw.url ?? '').slice(prefix.length))
  const headers = headersFor(request)
  checkFilter(request.method, path)
  checkSelect(path)
  checkBody(request)
  const body = request.body as Buffer | undefined
  const method = request.method as Dispatcher.HttpMethod
  return { path, method, headers, ...(body && body.length > 0 ? { body } : {}) }
}

const ask = async (lease: Lease, asked: AskedFor, token: string): Promise<Exchanged> => {
  const headers = { ...asked.headers, authorization: `Bearer ${token}` }
  for (;;) {
    const seen = lease.loads()
    const response = await exchange(lease.http, { ...asked, headers }).catch(() => {
      throw refusal(503, 'REST_UNAVAILABLE', 'PostgREST did not answer: try again in a moment.', null, {
        'Retry-After': '2',
      })
    })
    const { status, body } = response
    // a table or column that was added just now: asked again once PostgREST has read the schema
    if (status < 400 || !Buffer.isBuffer(body) || !mayBeStale(status, body.toString())) return response
    if (!(await lease.readAgain(seen))) return response
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

const passHeaders = (response: Exchanged, reply: FastifyReply) => {
  for (const name of returnedHeaders) {
    const value = response.headers[name]
    if (typeof value === 'string') reply.header(name, value)
  }
  const profile = response.headers['content-profile']
  if (profile === 'rest') reply.header('content-profile', 'public')
}

const passOn = (response: Exchanged, request: FastifyRequest, reply: FastifyReply) => {
  passHeaders(response, reply)
  reply.status(response.status)
  const { body } = response
  if (!Buffer.isBuffer(body)) return sendStream(reply, body)
  if (request.method === 'HEAD') return reply.send('')
  return reply.send(body)
}
