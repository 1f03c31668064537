import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type ApiError, refusal } from '#server/errors.ts'
import { keyOf } from '#server/http/client_credentials.ts'
import { answerOf, nothingHere } from '#server/http/errors.ts'
import { mostBytes, parseJson } from '#server/http/json.ts'
import type { Route } from '#server/http/route.ts'
import {
  changeOf,
  claimsFor,
  claimsOf,
  invalid,
  type OurUser,
  sessionOf,
  type Tokens,
  userOf,
} from '#server/rest/auth_shapes.ts'
import { readCredentials } from '#server/rest/caller.ts'
import { type Asked, routeOf, through } from '#server/rest/through.ts'
import type { Services } from '#server/services.ts'

const prefix = '/auth/v1'
/** Our own routes that sign-in is made of. */
const signatures = {
  anonymous: 'POST /client/auth/anonymous',
  signup: 'POST /client/auth/email/signup',
  login: 'POST /client/auth/email/login',
  social: 'POST /client/auth/social',
  refresh: 'POST /client/auth/refresh',
  emailCode: 'POST /client/auth/email/otp/request',
  emailVerify: 'POST /client/auth/email/otp/verify',
  phoneCode: 'POST /client/auth/phone/otp/request',
  phoneVerify: 'POST /client/auth/phone/otp/verify',
  linkVerify: 'POST /client/auth/magic-link/verify',
  link: 'POST /client/auth/link',
  password: 'POST /client/auth/password',
  logout: 'POST /client/auth/logout',
  sessions: 'GET /client/auth/sessions',
  endSession: 'DELETE /client/auth/sessions/:sessionId',
  jwks: 'GET /client/auth/jwks',
  me: 'GET /client/users/me',
  update: 'PATCH /client/users/me',
} as const

type Fields = Readonly<Record<string, unknown>>
/** One request: what it says, and our routes as its sender. */
type Context = {
  readonly request: FastifyRequest
  readonly query: Readonly<Record<string, string | undefined>>
  readonly body: Fields
  readonly now: () => Date
  /** The same session as a token with the claims that auth-js reads. */
  readonly sign: (token: string, user: OurUser) => Promise<string>
  readonly ask: <T>(name: keyof typeof signatures, asked?: Asked) => Promise<T>
}
type Handler = (context: Context) => Promise<unknown>

const signedIn = async (context: Context, tokens: Tokens & { readonly user: OurUser }, metadata?: unknown) => {
  const change = changeOf(metadata)
  const session = tokens.session_token
  const user = change ? await context.ask<OurUser>('update', { body: change, session }) : tokens.user
  return sessionFor(context, tokens, user)
}
const sessionFor = async ({ sign, now }: Context, tokens: Tokens, user: OurUser) =>
  sessionOf({ ...tokens, session_token: await sign(tokens.session_token, user) }, user, now())
type SignedIn = Parameters<typeof signedIn>[1]

const signUp: Handler = async (context) => {
  const { email, phone, password, data } = context.body
  changeOf(data)
  if (phone !== undefined && phone !== '') throw invalid('phone', 'has no password here: sign in with a code')
  if (email === undefined && password === undefined)
    return signedIn(context, await context.ask<SignedIn>('anonymous', { body: {} }), data)
  return signedIn(context, await context.ask<SignedIn>('signup', { body: { email, password } }), data)
}

/** Of a refresh, whose route answers tokens alone: auth-js keeps the user beside them. */
const refresh: Handler = async (context) => {
  const tokens = await context.ask<Tokens>('refresh', { body: { refresh_token: context.body['refresh_token'] } })
  return sessionFor(context, tokens, await context.ask<OurUser>('me', { session: tokens.session_token }))
}

const idToken: Handler = async (context) => {
  const { provider, id_token, nonce, link_identity } = context.body
  const body = { provider, id_token, ...(nonce === undefined ? {} : { nonce }) }
  if (link_identity === true) throw invalid('link_identity', 'is made by POST /v1/client/auth/link')
  return signedIn(context, await context.ask<SignedIn>('social', { body }))
}

const token: Handler = async (context) => {
  const { grant_type } = context.query
  if (grant_type === 'refresh_token') return refresh(context)
  if (grant_type === 'id_token') return idToken(context)
  if (grant_type !== 'password') throw invalid('grant_type', 'must be password, refresh_token or id_token')
  const { email, password, phone } = context.body
  if (phone !== undefined) throw invalid('phone', 'has no password here: sign in with a code')
  return signedIn(context, await context.ask<SignedIn>('login', { body: { email, password } }))
}

/** A code: by mail, or as a text message. */
const requestCode: Handler = async ({ body, ask }) => {
  const { email, phone, create_user, channel } = body
  if (create_user === false)
    throw invalid('create_user', 'must not be false: whoever proves an address may sign in with it')
  if (channel === 'whatsapp') throw invalid('channel', 'must be sms')
  if (email !== undefined) await ask('emailCode', { body: { email } })
  else await ask('phoneCode', { body: { phone } })
  return {}
}

const recover: Handler = async ({ body, ask }) => {
  await ask('emailCode', { body: { email: body['email'] } })
  return {}
}

const emailTypes = ['email', 'magiclink', 'signup', 'recovery', 'invite']

const verify: Handler = async (context) => {
  const { type, email, phone, token: code, token_hash } = context.body
  if (typeof type !== 'string' || ![...emailTypes, 'sms'].includes(type))
    throw invalid('type', `must be one of ${emailTypes.join(', ')}, sms: a change of address takes its code as nonce`)
  if (token_hash !== undefined)
    return signedIn(context, await context.ask<SignedIn>('linkVerify', { body: { token: token_hash } }))
  const asked = type === 'sms' ? { body: { phone, code } } : { body: { email, code } }
  return signedIn(context, await context.ask<SignedIn>(type === 'sms' ? 'phoneVerify' : 'emailVerify', asked))
}

/** auth-js removes what it keeps of a session by this code. */
const getUser: Handler = async ({ ask, request }) => {
  if (request.headers.authorization === undefined) throw noSession()
  return userOf(await ask<OurUser>('me'))
}

const noSession = () => refusal(401, 'UNAUTHORIZED', 'Sign in first.')

/** A new address takes two steps: the first sends a code to it, the second brings the code as `nonce`. */
const linkAddress = async ({ body, ask }: Context, channel: 'email' | 'phone'): Promise<object> => {
  const [address, code] = [body[channel], body['nonce']]
  if (code !== undefined) {
    await ask('link', { body: { provider: channel, [channel]: address, code } })
    return {}
  }
  await ask(channel === 'email' ? 'emailCode' : 'phoneCode', { body: { [channel]: address, purpose: 'link' } })
  return { [`new_${channel}`]: address }
}

const updateUser: Handler = async (context) => {
  const { body, ask, request } = context
  if (request.headers.authorization === undefined) throw noSession()
  const { email, phone, password, current_password, data } = body
  const change = changeOf(data)
  let more = {}
  if (email !== undefined) more = await linkAddress(context, 'email')
  if (phone !== undefined && phone !== '') more = { ...more, ...(await linkAddress(context, 'phone')) }
  if (password !== undefined)
    await ask('password', { body: { password, ...(current_password === undefined ? {} : { current_password }) } })
  return userOf(change ? await ask<OurUser>('update', { body: change }) : await ask<OurUser>('me'), more)
}

const bearerOf = ({ headers }: FastifyRequest) => (headers.authorization ?? '').replace(/^Bearer\s+/i, '')

const logout: Handler = async ({ ask, query, request }) => {
  if (request.headers.authorization === undefined) throw noSession()
  const scope = query['scope'] ?? 'global'
  if (!['global', 'local', 'others'].includes(scope)) throw invalid('scope', 'must be global, local or others')
  // all: the session token decides; the refresh token of one session is not asked for
  if (scope === 'global') await ask('logout', { body: { refresh_token: 'none', all: true } })
  else {
    // the list checks the token, whose claims are then known to be ours
    const own = { query: { limit: '100' } }
    const listed = await ask<{ id: string; current: boolean }[]>('sessions', own)
    const ended = scope === 'local' ? [{ id: claimsOf(bearerOf(request)).sid }] : listed.filter((one) => !one.current)
    for (const { id } of ended) await ask('endSession', { params: { sessionId: id } })
  }
  return null
}

const handlers: Readonly<Record<string, Handler>> = {
  'POST /signup': signUp,
  'POST /token': token,
  'POST /otp': requestCode,
  'POST /resend': requestCode,
  'POST /recover': recover,
  'POST /verify': verify,
  'GET /user': getUser,
  'PUT /user': updateUser,
  'POST /logout': logout,
  // auth-js reads the keys at the top
  'GET /.well-known/jwks.json': ({ ask }) => ask('jwks'),
}

/** `/auth/v1/*`: sign-in in the form of auth-js, by our own routes. */
export const serveAuth = (services: Services) => async (app: FastifyInstance) => {
  const routes = Object.fromEntries(
    Object.entries(signatures).map(([name, signature]) => [name, routeOf(services.areas, signature)]),
  ) as Readonly<Record<keyof typeof signatures, Route>>
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
      const handler = handlers[`${request.method} /${(request.params as { '*': string })['*']}`]
      if (!handler) throw nothingHere
      const answered = await handler({
        request,
        query: request.query as Context['query'],
        body: bodyOf(request),
        now: services.now,
        async sign(token, user) {
          const { project } = await keyOf(request, services)
          const { sid, anon } = claimsOf(token)
          return services.tokens.session(
            project,
            { userId: user.id, sid, anon },
            claimsFor(user, sid, services.publicUrl),
          )
        },
        ask: async (name, asked) => (await through(services, request, routes[name], asked)).body.data as never,
      })
      return answered === null ? reply.status(204).send() : reply.send(answered)
    },
  })
}

const bodyOf = ({ body }: FastifyRequest): Fields => {
  const bytes = body as Buffer | undefined
  if (!bytes || bytes.length === 0) return {}
  const parsed = parseJson(bytes)
  if (parsed.kind === 'broken' || typeof parsed.value !== 'object' || Array.isArray(parsed.value) || !parsed.value)
    throw invalid('body', 'must be a JSON object')
  return parsed.value as Fields
}

/** auth-js itself acts on these two, which it knows by names of its own. */
const codeOf = ({ code, status }: ApiError, { headers, url, method }: FastifyRequest): string => {
  if (code === 'WEAK_PASSWORD') return 'weak_password'
  // a change of the user has a refusal of the current password too
  const isOfSession = method !== 'PUT' && /\/(user|logout)(\?|$)/.test(url) && headers.authorization !== undefined
  return status === 401 && code === 'UNAUTHORIZED' && isOfSession ? 'session_not_found' : code
}

const sendRefusal = (reply: FastifyReply, request: FastifyRequest, error: ApiError) => {
  if (error.headers) reply.headers(error.headers)
  const { status, code, message, details } = error
  const isWeak = code === 'WEAK_PASSWORD'
  return reply.status(status).send({
    code: status,
    error_code: codeOf(error, request),
    msg: message,
    ...(isWeak ? { weak_password: { reasons: ['length'] } } : {}),
    ...(details ? { details } : {}),
  })
}
