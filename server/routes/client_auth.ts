import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { appKey } from '#server/http/callers.ts'
import { perIp, perSubject, takeLimits } from '#server/http/limits.ts'
import { NewPassword, Password, refuseWeak } from '#server/http/passwords.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { Credential, Deleted, data, Email, Line, Page, page, Time, Uuid } from '#server/http/schemas.ts'
import {
  AuthResult,
  deviceOf,
  newcomers,
  projectOf,
  Success,
  sessionCaller,
  signIn,
} from '#server/routes/client_auth/result.ts'
import { sha256 } from '#server/secrets.ts'

export { User } from '#server/routes/client_auth/result.ts'

const anonymous = async (context: HandlerContext) => {
  await newcomers(context)
  return signIn(context, 'auth_anonymous', { anonymous_id: context.body['anonymous_id'] })
}

const emailSignup = async (context: HandlerContext) => {
  const { email, password, display_name } = context.body as { email: string; password: string; display_name?: string }
  refuseWeak(password)
  await newcomers(context)
  return signIn(context, 'auth_email_signup', {
    email,
    display_name,
    password_hash: await context.services.passwords.hash(password),
  })
}

/** Contract, Limits: per IP, per account, per app; successes count too. */
const emailLogin = async (context: HandlerContext) => {
  const { email, password } = context.body as { email: string; password: string }
  const perMinute = projectOf(context.resolved).effectiveTier === 'free' ? 60 : 600
  const known = dataOf<{ email: string; user_id: string | null; password_hash: string | null }>(
    await context.call('auth_email_password', { email }, { readOnly: true }),
  )
  await takeLimits(context, [
    ...perIp('client login', context.request.ip, [20, 'minute'], [200, 'hour']),
    ...perSubject('client login account', sha256(known.email), [10, 'quarter'], [100, 'day']),
    ...perSubject('client login', 'app', [perMinute, 'minute']),
  ])
  const { matches, renewed } = await context.services.passwords.check(known.password_hash, password)
  if (!matches) throw refusal(401, 'UNAUTHORIZED', 'The email or the password is wrong.')
  return signIn(context, 'auth_email_login', {
    user_id: known.user_id,
    password_hash: known.password_hash,
    ...(renewed === undefined ? {} : { renewed_hash: renewed }),
  })
}

const refresh = async (context: HandlerContext) => {
  const { tokens } = context.services
  const project = projectOf(context.resolved)
  const token = context.body['refresh_token'] as string
  const verified = await tokens.verifyClientRefresh(project, token)
  if (verified.kind !== 'valid')
    throw refusal(401, 'INVALID_TOKEN', 'The refresh token is invalid or its session has ended: sign in again.')
  const { sid } = verified.claims
  const next = await tokens.clientRefresh(project, sid)
  const reply = await context.call('auth_refresh', {
    sid,
    presented_hash: sha256(token),
    next_hash: next.hash,
    tests_since: project.developmentSince,
    device: deviceOf(context),
  })
  if (reply.status !== 200) return reply
  const { user_id, anonymous_id } = dataOf<{ user_id: string; anonymous_id: string | null }>(reply)
  const session_token = await tokens.session(project, { userId: user_id, sid, anon: anonymous_id })
  return { status: 200, body: JSON.stringify({ data: { session_token, refresh_token: next.token } }) }
}

/** An ended or unknown token is not an error; ending all sessions requires a live one. */
const logout = async (context: HandlerContext) => {
  const { request, services, body, resolved, route } = context
  const { refresh_token, all } = body as { refresh_token: string; all: boolean }
  const as = all ? await sessionCaller.resolve(request, services, route) : resolved
  const verified = await services.tokens.verifyClientRefresh(projectOf(resolved), refresh_token)
  const sid = verified.kind === 'valid' ? verified.claims.sid : null
  if (!all && sid === null) return { status: 200, body: '{"data":{"success":true}}' }
  return context.call('auth_logout', { sid, all }, { as })
}

export const clientAuth = area({
  stem: 'client_auth',
  title: 'Sign-in of end users',
  part: 'People',
  about: 'Anonymous accounts, mail address and password, sessions and their renewal.',
  source: 'contract',
  invalid: 'INVALID_INPUT',
  routes: [
    ...group('/client/auth', appKey, [
      route('POST /anonymous', 'Sign in without an identity, or again by anonymous id', {
        handle: anonymous,
        operationId: 'signInAnonymously',
        body: z.object({
          anonymous_id: z
            .string()
            .regex(/^anon_[A-Za-z0-9_-]{32,128}$/, 'must be anon_ and 32 to 128 of A-Z a-z 0-9 _ -')
            .optional(),
        }),
        replies: { 200: AuthResult, 201: AuthResult },
        refusals: { 403: ['USER_BANNED'] },
      }),
      route('POST /email/signup', 'Sign up with email and password', {
        handle: emailSignup,
        operationId: 'signUpWithPassword',
        body: z.object({
          email: Email,
          password: NewPassword,
          display_name: Line(100, 1).optional(),
        }),
        example: { email: 'user@example.com', password: 'a long passphrase', display_name: 'Ada' },
        replies: { 201: AuthResult },
        refusals: { 400: ['CONTENT_REJECTED', 'WEAK_PASSWORD'], 409: ['EMAIL_EXISTS'] },
      }),
      route('POST /email/login', 'Sign in with email and password', {
        handle: emailLogin,
        operationId: 'signInWithPassword',
        body: z.object({ email: Email, password: Password }),
        example: { email: 'user@example.com', password: 'a long passphrase' },
        replies: { 200: AuthResult },
        refusals: { 403: ['USER_BANNED'], 429: ['RATE_LIMIT_EXCEEDED'] },
        failure: 'LOGIN_FAILED',
      }),
      route('POST /refresh', 'Replace both tokens of a session', {
        handle: refresh,
        operationId: 'refreshSession',
        body: z.object({ refresh_token: Credential }),
        example: { refresh_token: 'eyJ…' },
        replies: { 200: data(z.strictObject({ session_token: z.string(), refresh_token: z.string() })) },
        refusals: { 401: ['INVALID_TOKEN', 'REFRESH_TOKEN_REUSED'], 403: ['USER_BANNED'] },
        failure: 'REFRESH_FAILED',
      }),
      route('POST /logout', 'End a session, or with its own access token all sessions of its user', {
        handle: logout,
        operationId: 'signOut',
        body: z.object({ refresh_token: Credential, all: z.boolean().default(false) }),
        example: { refresh_token: 'eyJ…' },
        replies: { 200: Success },
        refusals: { 401: ['TOKEN_EXPIRED'], 403: ['SESSION_REQUIRED'] },
        failure: 'LOGOUT_FAILED',
      }),
      route('GET /sessions', "The user's live sessions, newest first", {
        call: 'auth_sessions',
        operationId: 'listSessions',
        caller: sessionCaller,
        query: Page,
        replies: {
          200: page(
            z.strictObject({
              id: Uuid,
              created_at: Time,
              last_used_at: Time,
              platform: z.string().nullable(),
              app_version: z.string().nullable(),
              ip_country: z.string().nullable(),
              current: z.boolean(),
            }),
          ),
        },
        source: 'supplement',
      }),
      route('DELETE /sessions/:sessionId', "End one of the user's sessions", {
        call: 'auth_session_end',
        operationId: 'revokeSession',
        caller: sessionCaller,
        replies: { 200: Deleted },
        source: 'supplement',
      }),
      route('GET /jwks', "Public keys of the project's session tokens", {
        operationId: 'getJwks',
        handle: async ({ resolved }) => ({
          status: 200,
          body: JSON.stringify({ data: { keys: projectOf(resolved).signing.map(({ publicJwk }) => publicJwk) } }),
          headers: { 'cache-control': 'private, max-age=300' },
        }),
        replies: { 200: data(z.strictObject({ keys: z.array(z.record(z.string(), z.string())) })) },
        failure: null,
      }),
    ]),
  ],
})
