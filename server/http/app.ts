import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import cors from '@fastify/cors'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { z } from 'zod'
import { failureOf } from '#server/database/failures.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { addressKey } from '#server/http/ceilings.ts'
import { parseJson } from '#server/http/json.ts'
import { fullPath } from '#server/http/openapi.ts'
import { reference } from '#server/http/reference.ts'
import {
  type Answer,
  type Area,
  type Input,
  invalidBodyCode,
  invalidCode,
  type Resolved,
  type Route,
} from '#server/http/route.ts'
import type { Services } from '#server/services.ts'

/** Sees every answer of a declared route; the test harness checks them against the declarations. */
export type Observer = (
  route: Route,
  area: Area,
  status: number,
  body: string,
  headers: Record<string, unknown>,
) => void

export type AppOptions = { readonly areas: readonly Area[]; readonly services: Services; readonly observe?: Observer }

/** Requests under way outlive this; uploads raise it for their own routes. */
const bodyLimit = 1_048_576

/** The Fastify app: envelope, errors, ceilings, and every declared route under /v1. */
export const createApp = ({ areas, services, observe }: AppOptions): FastifyInstance => {
  const { config } = services
  const app: FastifyInstance = Fastify({
    loggerInstance: services.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request' }),
    bodyLimit,
    trustProxy: trustOf(config.TRUST_PROXY),
    requestIdHeader: false,
    genReqId: (request) => {
      const sent = request.headers['x-request-id']
      return typeof sent === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(sent) ? sent : randomUUID()
    },
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: 16_384 },
    exposeHeadRoutes: true,
    // a path that cannot be decoded names nothing
    frameworkErrors: (_error, request, reply) => {
      send(reply.header('x-request-id', request.id), { status: 404, body: envelopeOf(nothingHere) })
    },
    clientErrorHandler: notHttp,
    forceCloseConnections: 'idle',
    connectionTimeout: 0,
    requestTimeout: 30_000,
    return503OnClosing: false,
  })

  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) => done(null, text))
  // any other type is kept as text and refused by the routes that want JSON
  app.addContentTypeParser('*', { parseAs: 'string' }, (request, text, done) => {
    if (text === '') done(null, '')
    else done(unsupported(request.headers['content-type']), undefined)
  })

  void app.register(cors, { delegator: corsFor(config.CORS_ORIGINS) })
  void app.register(reference)
  closeInTime(app)
  app.addHook('onSend', async (request, reply, payload) => {
    reply.header('x-request-id', request.id)
    reply.header('x-content-type-options', 'nosniff')
    reply.header('referrer-policy', 'no-referrer')
    reply.header('cross-origin-resource-policy', 'cross-origin')
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
    if (!reply.hasHeader('content-security-policy'))
      reply.header('content-security-policy', "default-src 'none'; frame-ancestors 'none'")
    return payload
  })
  app.addHook('onResponse', async (request, reply) => {
    const route = (request.routeOptions.config as { trellis?: { route: Route } }).trellis?.route
    request.log.info(
      {
        project: request.trellisProject,
        caller: request.trellisCaller,
        route: route ? `${route.method} ${route.path}` : undefined,
        status: reply.statusCode,
        milliseconds: Math.round(reply.elapsedTime * 10) / 10,
        database: request.trellisDatabase === undefined ? undefined : Math.round(request.trellisDatabase * 10) / 10,
      },
      'request',
    )
  })
  app.setErrorHandler((error: FastifyError, request, reply) => sendError(error, request, reply, services))
  app.setNotFoundHandler((request, reply) => notFound(request, reply, app))

  app.decorateRequest('trellisProject', undefined)
  app.decorateRequest('trellisCaller', undefined)
  app.decorateRequest('trellisDatabase', undefined)
  for (const area of areas) for (const route of area.routes) addRoute(app, area, route, services, observe)
  return app
}

/** Requests under way are finished; a client that keeps its connection busy is told to open another, and at last cut off. */
const closeInTime = (app: FastifyInstance): void => {
  let closing = false
  app.addHook('preClose', async () => {
    closing = true
    setTimeout(() => app.server.closeAllConnections(), 10_000).unref()
  })
  app.addHook('onSend', async (_request, reply, payload) => {
    if (closing) reply.header('connection', 'close')
    return payload
  })
}

const nothingHere = refusal(404, 'NOT_FOUND', 'There is nothing at this path.')

/** What is not HTTP, or has more than 16 KB of headers, gets a last line in our form and no further request. */
const notHttp = (error: Error & { code?: string }, socket: Socket): void => {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const isTooLarge = error.code === 'HPE_HEADER_OVERFLOW'
  const [status, code, message] = isTooLarge
    ? (['431 Request Header Fields Too Large', 'HEADERS_TOO_LARGE', 'The headers have more than 16 KB.'] as const)
    : (['400 Bad Request', 'INVALID_INPUT', 'This is not HTTP.'] as const)
  const body = JSON.stringify({ error: { code, message } })
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}

/** A number trusts that many proxies in front of us. */
const trustOf = (trust: Services['config']['TRUST_PROXY']) =>
  typeof trust === 'number' ? (_address: string, hop: number) => hop < trust : trust

declare module 'fastify' {
  interface FastifyRequest {
    trellisProject: string | undefined
    trellisCaller: string | undefined
    trellisDatabase: number | undefined
  }
}

const unsupported = (type: string | undefined) =>
  refusal(415, 'UNSUPPORTED_MEDIA_TYPE', `Send application/json${type ? `, not ${type.slice(0, 100)}` : ''}.`)

/** Apps call from any origin, with tokens in headers; consoles only from the origins that are configured. */
const corsFor =
  (origins: readonly string[]) => (request: FastifyRequest, done: (error: Error | null, options: object) => void) => {
    const isOpen = /^\/(v1\/client|storage)\//.test(request.url)
    done(null, {
      origin: isOpen ? '*' : origins.length > 0 ? origins : false,
      credentials: false,
      maxAge: 600,
      methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
      exposedHeaders: ['X-Request-Id', 'Retry-After', 'ETag', 'Idempotency-Replayed'],
    })
  }

const send = (reply: FastifyReply, answer: Answer) => {
  if (answer.headers) reply.headers(answer.headers)
  return reply.status(answer.status).type('application/json; charset=utf-8').send(answer.body)
}

export const envelopeOf = (error: ApiError): string =>
  JSON.stringify({
    error: { code: error.code, message: error.message, ...(error.details ? { details: error.details } : {}) },
  })

/** What a thrown error means to whoever called. A 500 says nothing of the inside. */
const answerOf = (
  error: unknown,
  request: FastifyRequest,
  services: Services,
  route?: Route,
  area?: Area,
): ApiError => {
  if (error instanceof ApiError) return error
  const code = (error as FastifyError).code
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return refusal(413, 'PAYLOAD_TOO_LARGE', 'The body has more than 1 MB.')
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return unsupported(request.headers['content-type'])
  if ((error as FastifyError).statusCode === 400) {
    return refusal(400, area && route ? invalidBodyCode(area, route) : 'INVALID_INPUT', 'The request cannot be read.')
  }
  if (failureOf(error).kind === 'unavailable') {
    const isTenant = request.trellisProject !== undefined
    return refusal(
      503,
      isTenant ? 'TENANT_UNAVAILABLE' : 'SERVICE_UNAVAILABLE',
      'The database is not available at the moment.',
      null,
      {
        'Retry-After': '2',
      },
    )
  }
  services.log.error({ request: request.id, error: String((error as Error)?.stack ?? error) }, 'a request failed')
  return refusal(500, route?.failure ?? 'INTERNAL_ERROR', 'Something went wrong here. The request id helps us find it.')
}

const sendError = (error: unknown, request: FastifyRequest, reply: FastifyReply, services: Services) => {
  const known = (
    request.routeOptions.config as { trellis?: { route: Route; area: Area; observe?: Observer } } | undefined
  )?.trellis
  const answer = answerOf(error, request, services, known?.route, known?.area)
  const body = envelopeOf(answer)
  known?.observe?.(known.route, known.area, answer.status, body, { ...answer.headers })
  return send(reply, { status: answer.status, body, headers: answer.headers })
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

const notFound = (request: FastifyRequest, reply: FastifyReply, app: FastifyInstance) => {
  const path = request.url.split('?')[0] ?? ''
  const allowed = methods.filter((method) => app.findRoute !== undefined && isServed(app, method, path))
  if (allowed.length > 0 && request.method !== 'HEAD') {
    reply.header(
      'allow',
      allowed.includes('GET') ? ['GET', 'HEAD', ...allowed.slice(1)].join(', ') : allowed.join(', '),
    )
    return send(reply, {
      status: 405,
      body: envelopeOf(refusal(405, 'METHOD_NOT_ALLOWED', 'This path knows other methods.')),
    })
  }
  return send(reply, { status: 404, body: envelopeOf(nothingHere) })
}

const served = new WeakMap<FastifyInstance, { method: string; pattern: RegExp }[]>()

/** Whether a path would be served under another method. */
const isServed = (app: FastifyInstance, method: string, path: string): boolean =>
  (served.get(app) ?? []).some((entry) => entry.method === method && entry.pattern.test(path))

const remember = (app: FastifyInstance, method: string, path: string) => {
  const pattern = new RegExp(`^${path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/:[A-Za-z]+/g, '[^/]+')}$`)
  served.set(app, [...(served.get(app) ?? []), { method, pattern }])
}

const addRoute = (app: FastifyInstance, area: Area, route: Route, services: Services, observe?: Observer) => {
  const url = fullPath(area, route)
  remember(app, route.method, url)
  app.route({
    method: route.method,
    url,
    config: { trellis: { route, area, observe } },
    handler: async (request, reply) => {
      const answer = await serve(area, route, request, services)
      observe?.(route, area, answer.status, answer.body, { ...answer.headers })
      return send(reply, answer)
    },
  })
}

/** One request: who calls, within the ceilings, with what, and then the one call. */
const serve = async (area: Area, route: Route, request: FastifyRequest, services: Services): Promise<Answer> => {
  const perAddress = [{ key: `ip ${addressKey(request.ip)}`, perSecond: 60, burst: 200 }]
  // events have a budget of their own, and a server posts those of a thousand users from one address: there only refused
  // credentials count
  if (route.ceiling === 'events') services.ceilings.check(perAddress)
  else if (route.ceiling !== 'none') services.ceilings.take(perAddress)
  const resolved = await route.caller.resolve(request, services, route).catch((error) => {
    if (route.ceiling === 'events') services.ceilings.take(perAddress)
    throw error
  })
  request.trellisProject = resolved.edge?.projectId
  request.trellisCaller = resolved.claims.caller
  takeCeilings(route, resolved, services)
  const input = readInput(area, route, request)
  const call = callAs(area, route, request, resolved, services)
  if (route.handle) return route.handle({ ...input, request, services, resolved, call })
  const args = {
    ...named(input.params),
    ...pageNames(input.query),
    ...(route.patch ? { patch: input.body } : input.body),
    ...route.args?.({ ...input, request, services, resolved }),
  }
  return call(route.call ?? '', args)
}

const takeCeilings = (route: Route, { claims, edge }: Resolved, services: Services) => {
  if (!edge || route.ceiling === 'none' || claims.caller === 'developer') return
  const perUser = route.ceiling === 'events' ? { perSecond: 50, burst: 50 } : { perSecond: 20, burst: 60 }
  services.ceilings.take([
    { key: `project ${edge.projectId} ${route.ceiling ?? 'general'}`, perSecond: 1000, burst: 1000 },
    ...(claims.userId ? [{ key: `user ${claims.userId} ${route.ceiling ?? 'general'}`, ...perUser }] : []),
  ])
}

const callAs =
  (area: Area, route: Route, request: FastifyRequest, resolved: Resolved, services: Services) =>
  async (
    name: string,
    args: Record<string, unknown>,
    settings: { role?: Resolved['role']; readOnly?: boolean } = {},
  ) => {
    const { role = resolved.role, ...others } = settings
    const { edge } = resolved
    const isTenant = resolved.place.kind === 'tenant' && edge
    const readOnly = settings.readOnly ?? route.readOnly ?? route.method === 'GET'
    if (isTenant && !readOnly) services.waker.written(edge.projectId)
    try {
      const reply = await services.database.call(resolved.place, role, resolved.claims, name, args, {
        readOnly,
        ...(route.failure ? { failure: route.failure } : {}),
        invalid: invalidCode(area, route, 'body'),
        ...others,
      })
      request.trellisDatabase = (request.trellisDatabase ?? 0) + reply.milliseconds
      if (reply.dueAt && isTenant) services.waker.wake(edge.projectId, reply.dueAt)
      if (reply.changed.length > 0) await services.notifier.publish(reply.changed)
      return reply
    } catch (error) {
      if (area.unavailable && error instanceof ApiError && error.code === 'TENANT_UNAVAILABLE') {
        throw refusal(area.unavailable, error.code, error.message, error.details, error.headers)
      }
      throw error
    }
  }

/** idOrKey becomes id_or_key; the project is in the claims already. */
const named = (params: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(params)
      .filter(([name]) => name !== 'projectId')
      .map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]),
  )

/** limit and offset are words of SQL: list functions call them page_limit and page_offset. */
const pageNames = ({ limit, offset, ...query }: Record<string, unknown>) => ({
  ...query,
  ...(limit === undefined ? {} : { page_limit: limit }),
  ...(offset === undefined ? {} : { page_offset: offset }),
})

const invalid = (code: string, field: string, reason: string, status = 400) =>
  refusal(status, code, field ? `${field}: ${reason}` : reason, { field, reason })

const check = (
  schema: z.ZodType,
  value: unknown,
  code: string,
  area: Area,
  route: Route,
  part: string,
): Record<string, unknown> => {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data as Record<string, unknown>
  const [issue] = parsed.error.issues
  const field = issue?.path.map(String).join('.') ?? ''
  const reason = reasonOf(issue)
  if (part === 'params') {
    // a malformed id names nothing: 404 in the contract's areas, INVALID_ID in the supplement's
    const source = route.source ?? area.source
    throw source === 'contract'
      ? refusal(404, 'NOT_FOUND', 'There is nothing under this id.')
      : invalid('INVALID_ID', field, reason)
  }
  throw invalid(code, field, reason)
}

const reasonOf = (issue: z.core.$ZodIssue | undefined): string => {
  if (!issue) return 'is not valid'
  if (issue.code === 'invalid_type' && issue.input === undefined) return 'is required'
  return issue.message.replace(/^Invalid input: /, '').replace(/^Too (big|small): /, '')
}

const readInput = (area: Area, route: Route, request: FastifyRequest): Input => {
  const sentParams = request.params as Record<string, unknown>
  const params = route.params
    ? { ...sentParams, ...check(z.object(route.params), sentParams, '', area, route, 'params') }
    : sentParams
  const query = route.query
    ? check(
        z.object(route.query),
        plainQuery(request.query, route.query),
        invalidCode(area, route, 'query'),
        area,
        route,
        'query',
      )
    : {}
  return { params, query, body: readBody(area, route, request) }
}

/** A parameter that was sent twice is a list; where one value is wanted, that is a mistake worth naming. */
const plainQuery = (query: unknown, shape: Readonly<Record<string, z.ZodType>>) =>
  Object.fromEntries(Object.entries(query as Record<string, unknown>).filter(([name]) => name in shape))

const readBody = (area: Area, route: Route, request: FastifyRequest): Record<string, unknown> => {
  if (!route.body) return {}
  const text = typeof request.body === 'string' ? request.body : ''
  if (text === '') {
    const type = request.headers['content-type']
    if (type && !/^application\/json\b/i.test(type)) throw unsupported(type)
    return check(route.body, {}, invalidCode(area, route, 'body'), area, route, 'body')
  }
  const parsed = parseJson(text)
  if (parsed.kind === 'broken')
    throw refusal(400, invalidBodyCode(area, route), parsed.reason, { field: '', reason: parsed.reason })
  if (typeof parsed.value !== 'object' || parsed.value === null || Array.isArray(parsed.value)) {
    throw refusal(400, invalidBodyCode(area, route), 'The body must be a JSON object.', {
      field: '',
      reason: 'must be a JSON object',
    })
  }
  return check(route.body, parsed.value, invalidCode(area, route, 'body'), area, route, 'body')
}
