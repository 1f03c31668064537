import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { dataOf } from '#server/database/database.ts'
import type { ApiError } from '#server/errors.ts'
import { keyOf, tenantPlace } from '#server/http/client_credentials.ts'
import { answerOf, nothingHere } from '#server/http/errors.ts'
import { mostBytes, parseJson } from '#server/http/json.ts'
import type { CachedProject } from '#server/http/project_cache.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import type { Route } from '#server/http/route.ts'
import { linkSettings, makeLink, serverAdministrator } from '#server/rest/auth_admin.ts'
import { codeFor, messageFor, noteKey } from '#server/rest/auth_codes.ts'
import { type Asks, adminSignatures, type Context, type Fields, signatures } from '#server/rest/auth_context.ts'
import { handlerOf } from '#server/rest/auth_handlers.ts'
import { claimsFor, claimsOf, invalid } from '#server/rest/auth_shapes.ts'
import { readCredentials } from '#server/rest/caller.ts'
import { type Asked, routeOf, through } from '#server/rest/through.ts'
import type { Services } from '#server/services.ts'

const prefix = '/auth/v1'

/** `/auth/v1/*`: sign-in in the form of auth-js, by our own routes. */
export const serveAuth = (services: Services) => async (app: FastifyInstance) => {
  const routes = Object.fromEntries(
    Object.entries({ ...signatures, ...adminSignatures }).map(([name, signature]) => [
      name,
      routeOf(services.areas, signature),
    ]),
  ) as Readonly<Record<Asks, Route>>
  /** Routes of administrators are asked with a server key. */
  const asked = (name: Asks, request: FastifyRequest, given: Asked = {}) =>
    through(services, request, routes[name], name in adminSignatures ? { ...given, as: serverAdministrator } : given)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: mostBytes }, (_request, bytes, done) =>
    done(null, bytes),
  )
  app.setErrorHandler((error, request, reply) => sendRefusal(reply, request, answerOf(error, request, services)))
  app.route({
    method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    url: `${prefix}/*`,
    handler: async (request, reply) => {
      await readCredentials(request, services)
      const handler = handlerOf(request.method, (request.params as { '*': string })['*'])
      if (!handler) throw nothingHere
      const perAddress = [{ key: `ip ${addressKey(request.ip)}`, perSecond: 60, burst: 200 }]
      services.rateLimiter.check(perAddress)
      const { project } = await keyOf(request, services).catch((error) => {
        services.rateLimiter.take(perAddress)
        throw error
      })
      noteKey(request)
      const answered = await handler({
        request,
        query: queryOf(request),
        body: bodyOf(request),
        now: services.now,
        async sign(token, user) {
          const { sid, anon } = claimsOf(token)
          return services.tokens.session(
            project,
            { userId: user.id, sid, anon },
            claimsFor(user, sid, services.publicUrl),
          )
        },
        offered: () => offered(services, project, routes.emailCode),
        ask: async (name, given) => (await asked(name, request, given)).body.data as never,
        list: async (name, given) => (await asked(name, request, given)).body as never,
        header: (name, value) => void reply.header(name, value),
        link: (email) => makeLink(request, services, routes.userCreate, email),
        mailed: () => linkSettings(services, project.projectId),
      })
      return answered === null ? reply.status(204).send() : reply.send(answered)
    },
  })
}

/** With what users of the project may sign in. */
const offered = async (services: Services, project: CachedProject, route: Route) => {
  const { database, control } = services
  const asSignIn = { caller: 'sign_in', projectId: project.projectId }
  const place = tenantPlace(services, project, route)
  const [keys, messages, redirects] = await Promise.all([
    database.call(
      control,
      'control_auth',
      { caller: 'sign_in' },
      'sign_in_settings',
      { project_id: project.projectId },
      read,
    ),
    database.call(place, 'app_auth', asSignIn, 'auth_offered', {}, read),
    database.call(place, 'app_auth', asSignIn, 'oauth_offered', {}, read),
  ])
  const settings = dataOf<{ bundle_id: string | null; google_oauth_client_id: string | null } | null>(keys)
  return {
    apple: Boolean(settings?.bundle_id),
    google: Boolean(settings?.google_oauth_client_id),
    ...Object.fromEntries(dataOf<string[]>(redirects).map((name) => [name, true])),
    phone: dataOf<{ phone: boolean }>(messages).phone,
  }
}
const read = { readOnly: true } as const

/** Each name once: of two values nobody could say which one is meant. */
const queryOf = ({ query }: FastifyRequest): Context['query'] => {
  const given = query as Readonly<Record<string, string | string[]>>
  for (const [name, value] of Object.entries(given))
    if (typeof value !== 'string') throw invalid(name.slice(0, 100), 'must be given once')
  return given as Context['query']
}

const bodyOf = ({ body }: FastifyRequest): Fields => {
  const bytes = body as Buffer | undefined
  if (!bytes || bytes.length === 0) return {}
  const parsed = parseJson(bytes)
  if (parsed.kind === 'broken' || typeof parsed.value !== 'object' || Array.isArray(parsed.value) || !parsed.value)
    throw invalid('body', 'must be a JSON object')
  const fields = parsed.value as Fields
  const { phone } = fields
  // GoTrue takes a number without its plus too, and clients send it so
  return typeof phone === 'string' && /^[1-9]\d{6,14}$/.test(phone) ? { ...fields, phone: `+${phone}` } : fields
}

/** A refusal in the form of GoTrue. */
export const sendRefusal = (reply: FastifyReply, request: FastifyRequest, error: ApiError) => {
  if (error.headers) reply.headers(error.headers)
  const { status, code, message, details } = error
  const isWeak = code === 'WEAK_PASSWORD'
  const word = codeFor(error, request)
  const theirs = messageFor(error, word, request)
  return reply.status(status).send({
    code: status,
    error_code: word,
    msg: theirs ?? message,
    ...(isWeak ? { weak_password: { reasons: ['length'] } } : {}),
    // our own word for it, and what it means
    details: { ...details, code, ...(theirs ? { message } : {}) },
  })
}
