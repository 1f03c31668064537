import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { refusal } from '#server/errors.ts'
import { contextOf } from '#server/http/app.ts'
import { tenantPlace } from '#server/http/client_credentials.ts'
import { answerOf } from '#server/http/errors.ts'
import type { CachedProject } from '#server/http/project_cache.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import { namedProject } from '#server/http/root.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { answerFlow, beginFlow, unreachable } from '#server/oauth/flows.ts'
import { withAnswer } from '#server/oauth/redirects.ts'
import { sendRefusal } from '#server/rest/auth.ts'
import { invalid } from '#server/rest/auth_shapes.ts'
import { disabled } from '#server/rest/caller.ts'
import { routeOf } from '#server/rest/through.ts'
import type { Services } from '#server/services.ts'

type Query = Readonly<Record<string, string | string[] | undefined>>

/** Parameters of signInWithOAuth that are passed to the provider's page; none of them is part of the protocol. */
const passed = ['access_type', 'domain_hint', 'hd', 'login_hint', 'prompt', 'ui_locales']

const textIn = (query: Query, name: string, most: number): string | undefined => {
  const value = query[name]
  if (value === undefined || value === '') return undefined
  if (typeof value !== 'string' || value.length > most || /[\0\ud800-\udfff]/.test(value))
    throw invalid(name, `must be one text of at most ${most} characters`)
  return value
}

/**
 * The two addresses of a sign-in by redirect that a browser opens, without headers of an app: `/auth/v1/authorize` of auth-js, and `/auth/v1/callback`, to
 * which every provider sends the browser back, whether the REST access is on or off.
 */
export const serveRedirects = (services: Services) => async (app: FastifyInstance) => {
  const route = routeOf(services.areas, 'POST /client/auth/oauth/begin')
  const area = services.areaOf(route)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: mostBytes }, (_request, bytes, done) =>
    done(null, bytes),
  )
  app.setErrorHandler((error, request, reply) =>
    sendRefusal(reply, request, isTooLarge(error) ? tooLarge() : answerOf(error, request, services)),
  )

  const contextFor = (request: FastifyRequest, project: CachedProject): HandlerContext => {
    const { projectId } = project
    request.trellisProject = projectId
    request.trellisCaller = 'sign_in'
    const claims = { caller: 'sign_in', projectId }
    const resolved = { place: tenantPlace(services, project, route), role: 'app_auth', claims, project } as const
    const input = { params: {}, query: {}, body: {}, sent: {}, text: '' }
    return contextOf(area, route, input, request, resolved, services)
  }
  const limited = async (request: FastifyRequest) =>
    services.rateLimiter.take([{ key: `ip ${addressKey(request.ip)}`, perSecond: 60, burst: 200 }])

  // what only looks at an address must neither begin a sign-in nor ask a provider
  app.get('/auth/v1/authorize', { preHandler: limited, exposeHeadRoute: false }, async (request, reply) => {
    const project = await projectOf(services, request)
    if (!project.restEnabled) throw disabled()
    return authorize(contextFor(request, project), request.query as Query, reply)
  })
  app.route({
    method: ['GET', 'POST'],
    url: '/auth/v1/callback',
    // what only looks at an address, such as the preview of a message, must not spend the answer of a provider
    exposeHeadRoute: false,
    preHandler: limited,
    handler: async (request, reply) => {
      const named = namedProject(request.raw)
      const project = named === undefined ? null : await services.projectCache.byProject(named)
      if (!project) throw notNamed('The callback is under the root of a project, <server>/p/<project id>.')
      const form = request.method === 'POST' ? String(request.body ?? '') : queryOf(request.raw.url ?? '')
      // after a form that was posted the browser goes on with a GET
      return reply.redirect(await answerFlow(contextFor(request, project), new URLSearchParams(form)), 303)
    },
  })
}

/** What a provider has a browser post is small. */
const mostBytes = 64 * 1024
const isTooLarge = (error: unknown) => (error as { code?: unknown }).code === 'FST_ERR_CTP_BODY_TOO_LARGE'
const tooLarge = () => refusal(413, 'PAYLOAD_TOO_LARGE', 'The body has more than 64 KB.')

/** All that follows the first question mark: a provider may send another one as it is (RFC 3986, 3.4). */
const queryOf = (url: string): string => url.replace(/^[^?]*\??/, '')

const notNamed = (message: string) => refusal(404, 'PROJECT_NOT_NAMED', message)

/** A browser that opens an address sends no key: the root names the project, or `apikey` in the query, which may be a client key alone. */
const projectOf = async (services: Services, request: FastifyRequest): Promise<CachedProject> => {
  const named = namedProject(request.raw)
  const key = textIn(request.query as Query, 'apikey', 200) ?? request.headers['apikey']
  const found = typeof key === 'string' && key.length <= 200 ? await services.projectCache.byKey(key) : null
  if (
    key !== undefined &&
    (found?.keyType !== 'client' || (named ?? found.project.projectId) !== found.project.projectId)
  )
    throw refusal(401, 'UNAUTHORIZED', 'The key is no client key of this project.')
  const project = found?.project ?? (named === undefined ? null : await services.projectCache.byProject(named))
  if (project) return project
  throw notNamed(
    'Give createClient the root of the project, <server>/p/<project id>, or the client key as apikey in queryParams.',
  )
}

/** GoTrue's method is in small letters, that of RFC 7636 is not. */
const methods = new Map<string, 'S256' | 'plain'>([
  ['s256', 'S256'],
  ['plain', 'plain'],
])

const challengeIn = (query: Query) => {
  const code_challenge = textIn(query, 'code_challenge', 128)
  if (code_challenge === undefined) {
    const message =
      'The implicit flow, whose tokens stand in an address, is not served: give createClient { auth: { flowType: "pkce" } }.'
    throw refusal(400, 'INVALID_INPUT', message, { field: 'code_challenge', reason: 'is required' })
  }
  if (!/^[A-Za-z0-9._~-]{43,128}$/.test(code_challenge))
    throw invalid('code_challenge', 'must be 43 to 128 of A-Z a-z 0-9 . _ ~ -')
  const code_challenge_method = methods.get((textIn(query, 'code_challenge_method', 10) ?? 'plain').toLowerCase())
  if (!code_challenge_method) throw invalid('code_challenge_method', 'must be s256 or plain')
  return { code_challenge, code_challenge_method }
}

const authorize = async (context: HandlerContext, query: Query, reply: FastifyReply) => {
  const provider = textIn(query, 'provider', 64)
  if (provider === undefined) throw invalid('provider', 'is required')
  const scopes = (textIn(query, 'scopes', 2000) ?? '').split(/[ ,]+/).filter(Boolean)
  if (scopes.length > 20 || scopes.some((scope) => !/^[!#-[\]-~]{1,100}$/.test(scope)))
    throw invalid('scopes', 'must be at most 20 words')
  const more = passed.flatMap((name) => {
    const value = textIn(query, name, 254)
    return value === undefined ? [] : [[name, value] as const]
  })
  const asked = { provider, redirect_to: textIn(query, 'redirect_to', 2000), scopes, ...challengeIn(query) }
  const { url, returning } = await beginFlow(context, asked, Object.fromEntries(more))
  const isAsked = query['skip_http_redirect'] === 'true'
  if (isAsked && url === null) throw unreachable()
  if (isAsked) return reply.send({ provider, url })
  return reply.redirect(url ?? withAnswer(returning, away), 302)
}

const away = {
  error: 'temporarily_unavailable',
  error_code: 'unexpected_failure',
  error_description: 'The identity provider cannot be reached: try again.',
}
