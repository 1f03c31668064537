import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import cors from '@fastify/cors'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { ApiError, refusal } from '#server/errors.ts'
import { argumentsOf } from '#server/http/arguments.ts'
import { corsFor } from '#server/http/cors.ts'
import { answerOf, envelopeOf, nothingHere, send, unsupported, unsupportedEncoding } from '#server/http/errors.ts'
import { readInput, type Sent } from '#server/http/input.ts'
import { mostBytes } from '#server/http/json.ts'
import { fullPath } from '#server/http/openapi.ts'
import {
  commonHeaders,
  guardProtocol,
  limitBodies,
  pathOf,
  refuseUnparsed,
  requestIdOf,
  usualHeaders,
} from '#server/http/protocol.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import { reference } from '#server/http/reference.ts'
import {
  type Accounted,
  type Answer,
  type Area,
  type HandlerContext,
  type Input,
  invalidCode,
  type Resolved,
  type Route,
} from '#server/http/route.ts'
import { streamedTypes } from '#server/http/stream.ts'
import { endTrace, traceRequests } from '#server/http/trace.ts'
import { routeUpgrades, wantsWebSocket } from '#server/http/upgrade.ts'
import { varyOf } from '#server/http/vary.ts'
import type { Services } from '#server/services.ts'
import type { Stopping } from '#server/stopping.ts'

/** Observes every response of a declared route (of a stream its head); the test harness checks them against the declarations. */
export type Observer = (
  route: Route,
  area: Area,
  status: number,
  body: string,
  headers: Record<string, unknown>,
) => void

export type AppOptions = { readonly areas: readonly Area[]; readonly services: Services; readonly observe?: Observer }

const usual = Object.entries(usualHeaders)

/** The Fastify app: envelope, errors, rate limits, and every declared route under /v1. */
export const createApp = ({ areas, services, observe }: AppOptions): FastifyInstance => {
  const { config } = services
  const app: FastifyInstance = Fastify({
    // a child logger, so that its level can be set separately
    loggerInstance: services.log.child({}) as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    // a logger of its own for each request is made at each, for a line that most levels leave out
    childLoggerFactory: (logger) => logger,
    bodyLimit: mostBytes,
    trustProxy: trustOf(config.TRUST_PROXY),
    requestIdHeader: false,
    genReqId: requestIdOf,
    rewriteUrl: pathOf,
    // a request without a Host header is refused with our own envelope
    http: { requireHostHeader: false, headersTimeout: 30_000, shouldUpgradeCallback: wantsWebSocket },
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: 16_384 },
    exposeHeadRoutes: true,
    // a path that cannot be decoded is treated as not found
    frameworkErrors: (_error, request, reply) => {
      // of a signed URL: it was altered
      const isSigned = request.raw.url?.startsWith('/storage/')
      const answer = isSigned ? refusal(403, 'FORBIDDEN', 'The URL was altered.') : nothingHere
      send(reply.headers({ 'x-request-id': request.id, ...commonHeaders, ...usualHeaders }), {
        status: answer.status,
        body: envelopeOf(answer),
      })
    },
    clientErrorHandler: refuseUnparsed,
    forceCloseConnections: 'idle',
    connectionTimeout: 0,
    // of the whole request it would cut off the upload of a file over a slow line: bodies have a limit of their own
    requestTimeout: 0,
    return503OnClosing: false,
  })

  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes))
  app.addHook('preParsing', (request, _reply, payload, done) => {
    const encoding = request.headers['content-encoding']?.trim().toLowerCase() || 'identity'
    const { 'content-length': length, 'transfer-encoding': transfer } = request.headers
    const hasBody = transfer !== undefined || Number(length ?? 0) > 0
    if (hasBody && encoding !== 'identity') done(unsupportedEncoding(encoding))
    else done(null, payload)
  })
  // files are passed as streams, to the routes that accept them
  app.addContentTypeParser(['text/csv', 'application/x-ndjson', 'application/gzip'], (request, payload, done) => {
    const { trellis } = request.routeOptions.config as { trellis?: { route: Route } }
    const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase() ?? ''
    if (trellis?.route.uploads?.includes(type)) done(null, payload)
    else done(unsupported(type), undefined)
  })
  // any other content type is refused, unless there is no body
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request, bytes, done) => {
    const { trellis } = request.routeOptions.config as { trellis?: { route: Route } }
    const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase() ?? ''
    if (bytes.length === 0 || trellis?.route.uploads?.includes(type)) done(null, bytes)
    else done(unsupported(request.headers['content-type']), undefined)
  })

  // pages too, whoever serves them
  app.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) if (url !== '*') remember(app, one, url)
  })
  traceRequests(app, services)
  guardProtocol(app)
  limitBodies(app, 30_000)
  routeUpgrades(app)
  void app.register(cors, { delegator: corsFor(config.CORS_ORIGINS) })
  void app.register(reference)
  closeInTime(app, services.stopping)
  app.addHook('onSend', (request, reply, payload, done) => {
    reply.header('x-request-id', request.id)
    reply.headers(commonHeaders)
    for (const [name, value] of usual) if (!reply.hasHeader(name)) reply.header(name, value)
    done(null, payload)
  })
  app.addHook('onResponse', (request, reply, done) => {
    const { trellisProject: project, trellisCaller: caller, raw } = request
    // signed URLs of files have no caller; developers' own requests are not an app's
    if (project && caller !== 'developer') services.traffic.count(project, raw.socket, reply.statusCode)
    else services.traffic.pass(raw.socket)
    const route = (request.routeOptions.config as { trellis?: { route: Route } }).trellis?.route
    app.log.info(
      {
        request: request.id,
        ...endTrace(request, reply.statusCode),
        project: request.trellisProject,
        caller: request.trellisCaller,
        route: route ? `${route.method} ${route.path}` : undefined,
        status: reply.statusCode,
        milliseconds: Math.round(reply.elapsedTime * 10) / 10,
        database: request.trellisDatabase === undefined ? undefined : Math.round(request.trellisDatabase * 10) / 10,
      },
      'request',
    )
    if (route) services.telemetry.measures.request(request.method, route.path, reply.statusCode, reply.elapsedTime)
    done()
  })
  app.setErrorHandler((error: FastifyError, request, reply) => sendError(error, request, reply, services))
  app.setNotFoundHandler((request, reply) => notFound(request, reply, app))

  app.decorateRequest('trellisProject', undefined)
  app.decorateRequest('trellisCaller', undefined)
  app.decorateRequest('trellisDatabase', undefined)
  for (const area of areas) for (const route of area.routes) addRoute(app, area, route, services, observe)
  return app
}

/**
 * Requests in flight are finished, and their connections closed after the response. Responses that are not complete at the end of the stop are
 * reset: half of an export must not look complete, also to an HTTP/1.0 client, for which the end of the connection ends the response.
 */
const closeInTime = (app: FastifyInstance, { over }: Stopping): void => {
  let closing = false
  const sockets = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const reset = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  app.addHook('preClose', async () => {
    closing = true
    if (over.aborted) reset()
    else over.addEventListener('abort', reset, { once: true })
  })
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (closing) reply.header('connection', 'close')
    done(null, payload)
  })
}

/** A number is how many proxies in front of the server are trusted. */
const trustOf = (trust: Services['config']['TRUST_PROXY']) =>
  typeof trust === 'number' ? (_address: string, hop: number) => hop < trust : trust

declare module 'fastify' {
  interface FastifyRequest {
    trellisProject: string | undefined
    trellisCaller: string | undefined
    trellisDatabase: number | undefined
  }
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
      body: envelopeOf(
        refusal(405, 'METHOD_NOT_ALLOWED', 'This path does not support this method: see the header Allow.'),
      ),
    })
  }
  return send(reply, { status: 404, body: envelopeOf(nothingHere) })
}

const served = new WeakMap<FastifyInstance, { method: string; pattern: RegExp }[]>()

/** Whether a path is served under this method. */
const isServed = (app: FastifyInstance, method: string, path: string): boolean =>
  (served.get(app) ?? []).some((entry) => entry.method === method && entry.pattern.test(path))

const remember = (app: FastifyInstance, method: string, path: string) => {
  const literal = path.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  const pattern = new RegExp(`^${literal.replace(/:[A-Za-z]+/g, '[^/]+').replace(/\*$/, '.+')}$`)
  const entries = served.get(app) ?? []
  entries.push({ method, pattern })
  served.set(app, entries)
}

const addRoute = (app: FastifyInstance, area: Area, route: Route, services: Services, observe?: Observer) => {
  const url = fullPath(area, route)
  const withVary = varyOf(route)
  app.route({
    method: route.method,
    url,
    config: { trellis: { route, area, observe } },
    handler: async (request, reply) => {
      const answer = withVary(await serve(area, route, request, services))
      const { status, body } = answer
      const isText = !(body instanceof Readable) && answer.headers?.['content-encoding'] === undefined
      observe?.(route, area, status, isText ? body.toString() : '', { ...answer.headers })
      if (answer.takeOver) {
        reply.hijack()
        answer.takeOver()
        return reply
      }
      return send(reply, answer)
    },
  })
}

/**
 * Serves one request: resolves the caller, applies rate limits, validates the input, and makes the one call. Another API names the route, and what is
 * asked of it.
 */
export const serve = async (
  area: Area,
  route: Route,
  request: FastifyRequest,
  services: Services,
  sent: Sent = request,
): Promise<Answer> => {
  const perAddress = [{ key: `ip ${addressKey(request.ip)}`, perSecond: 60, burst: 200 }]
  // events have a budget of their own, because one server posts those of a thousand users from one address: by address, only
  // refused credentials are counted
  if (route.ceiling === 'events') services.rateLimiter.check(perAddress)
  else if (route.ceiling !== 'none') services.rateLimiter.take(perAddress)
  const resolved = await route.caller.resolve(request, services, route).catch((error) => {
    if (route.ceiling === 'events') services.rateLimiter.take(perAddress)
    throw error
  })
  request.trellisProject = resolved.project?.projectId
  request.trellisCaller = resolved.claims.caller
  takeRateLimits(route, resolved, services)
  const input = readInput(area, route, request, sent)
  const context = contextOf(area, route, input, request, resolved, services)
  const answered = route.handle
    ? await route.handle(context)
    : await context.call(route.call ?? '', argumentsOf(route, { ...input, request, services, resolved }))
  if (resolved.developer?.operator && answered.status < 300 && leavesRow(route))
    await recordRead(context, route, answered)
  return answered
}

/** What cannot be recorded is not sent. */
const recordRead = async ({ call, params, services }: HandlerContext, route: Route, { body }: Answer) => {
  const read = { area: services.areaOf(route).stem, operation: `${route.method} ${route.path}` }
  const target_id = params['userId'] ?? null
  try {
    await call('audit_read', { ...read, target_id }, { role: 'app_admin', readOnly: false })
  } catch (error) {
    if (body instanceof Readable) body.destroy()
    throw error
  }
}

/**
 * Whether a read of an operator token is recorded: of one user, and of what leaves as a file. Lists are not: a row for each would make every
 * read a write.
 */
export const leavesRow = (route: Route): boolean => {
  const reply = route.replies[200]
  const isExport = reply !== undefined && streamedTypes(reply) !== null
  return route.method === 'GET' && route.caller.guards === 'project' && (isExport || route.path.includes(':userId'))
}

/** What a handler works with: the input, the caller, and calls as this caller. */
export const contextOf = (
  area: Area,
  route: Route,
  input: Input,
  request: FastifyRequest,
  resolved: Resolved,
  services: Services,
): HandlerContext => ({
  ...input,
  request,
  services,
  resolved,
  route,
  call: callAs(area, route, request, resolved, services),
  accounted: (call) => {
    const readOnly = isReading(route)
    const settings = settingsOf(area, route, request, readOnly)
    return accounted(area, request, resolved, services, readOnly, () => call(settings))
  },
  lines: linesAs(area, route, request, resolved, services),
})

export const takeRateLimits = (
  route: Pick<Route, 'ceiling'>,
  { claims, project, developer }: Resolved,
  services: Services,
) => {
  if (route.ceiling === 'none') return
  // the same for a developer, from all addresses together, as for an address
  if (developer) services.rateLimiter.take([{ key: `developer ${developer.developerId}`, perSecond: 60, burst: 200 }])
  if (!project || claims.caller === 'developer') return
  const perUser = route.ceiling === 'events' ? { perSecond: 50, burst: 50 } : { perSecond: 20, burst: 60 }
  services.rateLimiter.take([
    { key: `project ${project.projectId} ${route.ceiling ?? 'general'}`, perSecond: 1000, burst: 1000 },
    ...(claims.userId ? [{ key: `user ${claims.userId} ${route.ceiling ?? 'general'}`, ...perUser }] : []),
  ])
}

const callAs =
  (area: Area, route: Route, request: FastifyRequest, resolved: Resolved, services: Services) =>
  (
    name: string,
    args: Record<string, unknown>,
    settings: { role?: Resolved['role']; as?: Resolved; readOnly?: boolean } = {},
  ) => {
    const { as = resolved, role = as.role, ...others } = settings
    const readOnly = settings.readOnly ?? isReading(route)
    return accounted(area, request, resolved, services, readOnly, () =>
      services.database.call(resolved.place, role, as.claims, name, args, {
        ...settingsOf(area, route, request, readOnly),
        ...others,
      }),
    )
  }

/** A batch may take longer than a response: it is sent while the next one is read. */
const batchMs = 30_000

const linesAs =
  (area: Area, route: Route, request: FastifyRequest, resolved: Resolved, services: Services) =>
  (name: string, args: Record<string, unknown>) =>
    accounted(area, request, resolved, services, true, () =>
      services.database.lines(resolved.place, resolved.role, resolved.claims, name, args, {
        ...settingsOf(area, route, request, true),
        timeoutMs: batchMs,
      }),
    )

const isReading = (route: Route) => route.readOnly ?? route.method === 'GET'

const settingsOf = (area: Area, route: Route, request: FastifyRequest, readOnly: boolean) => ({
  readOnly,
  requester: request.raw.socket,
  request: String(request.id),
  ...(route.stale ? { stale: true } : {}),
  ...(route.failure ? { failure: route.failure } : {}),
  invalid: invalidCode(area, route, 'body'),
})

/** After every call: counts its time, wakes the workers, drops changed credentials from the caches. */
const accounted = async <T extends Accounted>(
  area: Area,
  request: FastifyRequest,
  { place, project }: Resolved,
  services: Services,
  readOnly: boolean,
  run: () => Promise<T>,
): Promise<T> => {
  const isTenant = place.kind === 'tenant' && project
  if (isTenant && !readOnly) services.waker.written(project.projectId)
  try {
    const reply = await run()
    request.trellisDatabase = (request.trellisDatabase ?? 0) + reply.milliseconds
    if (reply.dueAt && isTenant) services.waker.wake(project.projectId, reply.dueAt)
    if (reply.changed.length > 0) await services.notifier.publish(reply.changed)
    return reply
  } catch (error) {
    if (area.unavailable && error instanceof ApiError && error.code === 'TENANT_UNAVAILABLE') {
      throw refusal(area.unavailable, error.code, error.message, error.details, error.headers)
    }
    throw error
  }
}
