import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Area, Route } from '#server/http/route.ts'
import { upgradeOf } from '#server/http/upgrade.ts'
import type { Services } from '#server/services.ts'
import { type Span, traceparentOf, within } from '#server/telemetry/spans.ts'

declare module 'fastify' {
  interface FastifyRequest {
    trellisSpan: Span | undefined
  }
}

/** Methods that semantic conventions know; any other is a value that a caller made up. */
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE', 'QUERY'])

const routeOf = (request: FastifyRequest): string | undefined =>
  (request.routeOptions.config as { trellis?: { route: Route; area: Area } } | undefined)?.trellis?.route.path ??
  request.routeOptions.url

/**
 * The span of each request. It has the route's pattern and never the path, and of the caller only the kind. The answer names it in
 * `traceresponse`, beside the request id that an error tells its reader to report.
 */
export const traceRequests = (app: FastifyInstance, { telemetry: { traces } }: Pick<Services, 'telemetry'>): void => {
  app.decorateRequest('trellisSpan', undefined)
  if (!traces.isOn) return
  app.addHook('onRequest', (request, reply, done) => {
    // a connection that is upgraded lives for hours: what happens on it is no part of the request
    if (upgradeOf(request.raw)) return done()
    const method = knownMethods.has(request.method) ? request.method : '_OTHER'
    const route = routeOf(request)
    const span = traces.request(route ? `${method} ${route}` : method, request.headers.traceparent, {
      'http.request.method': method,
      'http.route': route,
      'trellis.request_id': request.id,
    })
    request.trellisSpan = span
    reply.header('traceresponse', traceparentOf(span))
    // where the client hangs up nobody is answered any more
    reply.raw.once('close', () => span.end('client_closed'))
    within(span, done)
  })
  // a body arrives in events of its socket, which know nothing of the hook above
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.trellisSpan) within(request.trellisSpan, done)
    else done()
  })
}

/** Ends the span of a request that was answered, and says what its log line has of it. */
export const endTrace = (request: FastifyRequest, status: number): { trace_id?: string; span_id?: string } => {
  const span = request.trellisSpan
  if (!span) return {}
  span.set({
    'http.response.status_code': status,
    'trellis.project': request.trellisProject,
    'trellis.caller': request.trellisCaller,
  })
  span.end(status >= 500 ? String(status) : undefined)
  return { trace_id: span.traceId, span_id: span.spanId }
}
