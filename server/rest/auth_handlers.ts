/** What auth-js asks for, by our own routes: one handler for each path. */
import type { FastifyRequest } from 'fastify'
import { refusal } from '#server/errors.ts'
import { adminHandlerOf } from '#server/rest/auth_admin.ts'
import type { Context, Handler } from '#server/rest/auth_context.ts'
import { changeOf, claimsOf, invalid, type OurUser, sessionOf, type Tokens, userOf } from '#server/rest/auth_shapes.ts'

const signedIn = (context: Context, tokens: Tokens & { readonly user: OurUser }) =>
  sessionFor(context, tokens, tokens.user)
const sessionFor = async ({ sign, now }: Context, tokens: Tokens, user: OurUser) =>
  sessionOf({ ...tokens, session_token: await sign(tokens.session_token, user) }, user, now())
type SignedIn = Parameters<typeof signedIn>[1]

const signUp: Handler = async (context) => {
  const { email, phone, password, data } = context.body
  const profile = changeOf(data)
  if (phone !== undefined && phone !== '') throw invalid('phone', 'has no password here: sign in with a code')
  // with its profile, or not at all: an address that is taken cannot sign up again
  const beside = profile ? { beside: { profile } } : {}
  if (email === undefined && password === undefined)
    return signedIn(context, await context.ask<SignedIn>('anonymous', { body: {}, ...beside }))
  return signedIn(context, await context.ask<SignedIn>('signup', { body: { email, password }, ...beside }))
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

/** The end of a sign-in by redirect. */
const redirected: Handler = async (context) => {
  const { auth_code: code, code_verifier } = context.body
  if (typeof code !== 'string' || code === '') throw invalid('auth_code', 'is required')
  return signedIn(context, await context.ask<SignedIn>('exchange', { body: { code, code_verifier } }))
}

const token: Handler = async (context) => {
  const { grant_type } = context.query
  if (grant_type === 'refresh_token') return refresh(context)
  if (grant_type === 'id_token') return idToken(context)
  if (grant_type === 'pkce') return redirected(context)
  if (grant_type !== 'password') throw invalid('grant_type', 'must be password, refresh_token, id_token or pkce')
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

type Channel = 'email' | 'phone'
const addressed = (body: Context['body']): readonly Channel[] =>
  (['email', 'phone'] as const).filter((name) => body[name] !== undefined && (name === 'email' || body[name] !== ''))

/** The first step of a new address: a code is sent to it. Nothing of the user changes. */
const requestLink = async ({ body, ask }: Context, channel: Channel): Promise<object> => {
  await ask(channel === 'email' ? 'emailCode' : 'phoneCode', { body: { [channel]: body[channel], purpose: 'link' } })
  return { [`new_${channel}`]: body[channel] }
}

/** All that changes, changes in one transaction: the second step of a new address, which brings the code as `nonce`, or the password; and the profile. */
const change = async ({ body, ask }: Context, proved: Channel | undefined): Promise<OurUser> => {
  const { nonce: code, password, current_password, data } = body
  const profile = changeOf(data)
  const beside = profile ? { beside: { profile } } : {}
  if (proved) return ask<OurUser>('link', { body: { provider: proved, [proved]: body[proved], code }, ...beside })
  if (password === undefined) return profile ? ask<OurUser>('update', { body: profile }) : ask<OurUser>('me')
  await ask('password', {
    body: { password, ...(current_password === undefined ? {} : { current_password }) },
    ...beside,
  })
  return ask<OurUser>('me')
}

const updateUser: Handler = async (context) => {
  const { body, request } = context
  if (request.headers.authorization === undefined) throw noSession()
  changeOf(body['data'])
  const [first, second] = addressed(body)
  const isProved = first !== undefined && body['nonce'] !== undefined
  if (isProved && second)
    throw invalid('nonce', 'is the code of one address: change email and phone one after the other')
  if (isProved && body['password'] !== undefined)
    throw invalid('password', 'is changed by a call of its own, not with the code of an address')
  let more = {}
  if (!isProved) for (const channel of addressed(body)) more = { ...more, ...(await requestLink(context, channel)) }
  return userOf(await change(context, isProved ? first : undefined), more)
}

/** The code of the answer is exchanged as that of a sign-in. */
const linkIdentity: Handler = async ({ ask, query, request }) => {
  if (request.headers.authorization === undefined) throw noSession()
  const { provider, redirect_to, scopes, code_challenge, code_challenge_method, login_hint, prompt } = query
  if (code_challenge === undefined)
    throw invalid('code_challenge', 'is required: give createClient { auth: { flowType: "pkce" } }')
  if (code_challenge_method?.toLowerCase() !== 's256') throw invalid('code_challenge_method', 'must be s256')
  const asked = { provider, redirect_to, code_challenge, login_hint, prompt }
  const { url } = await ask<{ url: string }>('linkBegin', {
    body: {
      ...Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined && value !== '')),
      ...(scopes ? { scopes: scopes.split(/[ ,]+/).filter(Boolean) } : {}),
    },
  })
  return { provider, url }
}

const identities = 'user/identities/'

/** The identity is named by the id that `userOf` shows. */
const unlinkIdentity: Handler = async ({ ask, request }) => {
  if (request.headers.authorization === undefined) throw noSession()
  const id = (request.params as { '*': string })['*'].slice(identities.length)
  const { auth_providers } = await ask<OurUser>('me')
  const found = auth_providers.find(({ provider_id }) => provider_id === id)
  if (!found) throw refusal(404, 'IDENTITY_NOT_FOUND', 'This identity is not linked to the user.')
  const { provider, provider_id } = found
  await ask('unlink', { body: { provider, provider_id } })
  return {}
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

const settings: Handler = async ({ offered }) => {
  return {
    external: { anonymous_users: true, email: true, ...(await offered()) },
    disable_signup: false,
    // whoever signs up has a session at once; email_confirmed_at says whether the address is proved
    mailer_autoconfirm: true,
    phone_autoconfirm: false,
    saml_enabled: false,
    passkeys_enabled: false,
  }
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
  'GET /user/identities/authorize': linkIdentity,
  'POST /logout': logout,
  'GET /settings': settings,
  'GET /health': async () => ({ name: 'Trellis', version: '1.0.0', description: 'Sign-in in the form of auth-js' }),
  // auth-js reads the keys at the top
  'GET /.well-known/jwks.json': ({ ask }) => ask('jwks'),
}

/** The handler of a path below /auth/v1. */
export const handlerOf = (method: string, path: string): Handler | undefined =>
  method === 'DELETE' && path.startsWith(identities)
    ? unlinkIdentity
    : (handlers[`${method} /${path}`] ?? adminHandlerOf(method, path))
