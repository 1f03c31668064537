import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { dataOf, type Reply } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { anyone, developer } from '#server/http/callers.ts'
import { giveBack, perIp, perSubject, takeLimits } from '#server/http/limits.ts'
import { checkPassword, hashPassword, NewPassword, Password, refuseWeak } from '#server/http/passwords.ts'
import { area, type HandlerContext, route } from '#server/http/route.ts'
import { data, Email, Text, Time, Uuid } from '#server/http/schemas.ts'
import { sha256 } from '#server/secrets.ts'

export const Developer = z.strictObject({
  id: Uuid,
  email: z.string(),
  name: z.string().nullable(),
  oauth_providers: z.array(z.string()),
  email_verified: z.boolean(),
  has_password: z.boolean(),
  account_state: z.enum(['sandbox', 'verified_free', 'paid']),
  can_provision: z.boolean(),
  created_at: Time,
  updated_at: Time,
})

const SignedIn = data(z.strictObject({ access_token: z.string(), refresh_token: z.string(), developer: Developer }))
const limited = { 429: ['RATE_LIMIT_EXCEEDED'] }

/** Who asks, as a session remembers it. */
const visitor = ({ request }: HandlerContext) => ({
  ip: request.ip,
  user_agent: request.headers['user-agent']?.slice(0, 500),
})

/** A sign-in function answered {developer}: adds the tokens of the session that it stored. */
const withTokens = async ({ services }: HandlerContext, reply: Reply, sid: string, refresh: string) => {
  const { developer } = dataOf<{ developer: { id: string } }>(reply)
  const access_token = await services.tokens.developerAccess(developer.id, sid)
  return { status: reply.status, body: JSON.stringify({ data: { access_token, refresh_token: refresh, developer } }) }
}

const signup = async (context: HandlerContext) => {
  const { email, password, name } = context.body as { email: string; password: string; name?: string }
  refuseWeak(password)
  await takeLimits(context, perIp('developer signup', context.request.ip, [5, 'minute'], [50, 'day']))
  const sid = randomUUID()
  const refresh = await context.services.tokens.developerRefresh(sid)
  const reply = await context.call('developer_signup', {
    sid,
    refresh_hash: refresh.hash,
    email,
    password_hash: await hashPassword(password),
    name,
    ...visitor(context),
  })
  return withTokens(context, reply, sid, refresh.token)
}

const login = async (context: HandlerContext) => {
  const { email, password } = context.body as { email: string; password: string }
  const known = dataOf<{ mailbox: string; developer_id: string | null; password_hash: string | null }>(
    await context.call('developer_password', { email }, { readOnly: true }),
  )
  // by mailbox whether or not it has an account: else aliases that share a budget would tell that it has one
  const failures = perSubject('developer password', sha256(known.mailbox), [20, 'hour'], [100, 'day'])
  // the budget of failures is taken before the password is looked at, and given back on success
  await takeLimits(context, [
    ...perIp('developer login', context.request.ip, [10, 'minute'], [100, 'day']),
    ...failures,
  ])
  if (!(await checkPassword(known.password_hash, password))) {
    throw refusal(401, 'INVALID_CREDENTIALS', 'The email or the password is wrong.')
  }
  const sid = randomUUID()
  const refresh = await context.services.tokens.developerRefresh(sid)
  const reply = await context.call('developer_login', {
    sid,
    refresh_hash: refresh.hash,
    developer_id: known.developer_id,
    password_hash: known.password_hash,
    ...visitor(context),
  })
  await giveBack(context, failures)
  return withTokens(context, reply, sid, refresh.token)
}

const refresh = async (context: HandlerContext) => {
  const { tokens } = context.services
  const token = context.body['refresh_token'] as string
  await takeLimits(context, perIp('developer refresh', context.request.ip, [30, 'minute']))
  const verified = await tokens.verifyDeveloperRefresh(token)
  if (verified.kind !== 'valid') throw refusal(401, 'INVALID_TOKEN', 'The refresh token is not valid any more.')
  const { sid } = verified.claims
  const next = await tokens.developerRefresh(sid)
  const reply = await context.call('developer_refresh', { sid, presented_hash: sha256(token), next_hash: next.hash })
  if (reply.status !== 200) return reply
  const { developer_id } = dataOf<{ developer_id: string }>(reply)
  const access_token = await tokens.developerAccess(developer_id, sid)
  return { status: 200, body: JSON.stringify({ data: { access_token, refresh_token: next.token } }) }
}

const logout = async (context: HandlerContext) => {
  const verified = await context.services.tokens.verifyDeveloperRefresh(context.body['refresh_token'] as string)
  // an expired or foreign token has no session that could still be ended
  if (verified.kind !== 'valid') return { status: 200, body: '{"data":{"success":true}}' }
  return context.call('developer_logout', { sid: verified.claims.sid })
}

const RefreshToken = z.object({ refresh_token: z.string().min(1, 'is required').max(4096, 'is too long') })

export const developers = area({
  stem: 'developers',
  title: 'Developer accounts',
  source: 'contract',
  invalid: 'INVALID_INPUT',
  routes: [
    route('POST /auth/developer/signup', {
      caller: anyone,
      summary: 'Open a developer account and sign in to it',
      body: z.object({
        email: Email,
        password: NewPassword,
        name: Text(200).optional(),
      }),
      example: { email: 'you@example.com', password: 'a long passphrase', name: 'You' },
      handle: signup,
      replies: { 201: SignedIn },
      refusals: { 400: ['INVALID_INPUT', 'WEAK_PASSWORD', 'DISPOSABLE_EMAIL'], 409: ['EMAIL_EXISTS'], ...limited },
      failure: 'CREATE_FAILED',
    }),
    route('POST /auth/developer/login', {
      caller: anyone,
      summary: 'Sign in with email and password',
      body: z.object({ email: Email, password: Password }),
      example: { email: 'you@example.com', password: 'a long passphrase' },
      handle: login,
      replies: { 200: SignedIn },
      refusals: { 400: ['INVALID_INPUT'], 401: ['INVALID_CREDENTIALS'], ...limited },
      failure: 'LOGIN_FAILED',
    }),
    route('POST /auth/developer/refresh', {
      caller: anyone,
      summary: 'Replace both tokens of a sign-in',
      body: RefreshToken,
      example: { refresh_token: 'eyJ…' },
      handle: refresh,
      replies: { 200: data(z.strictObject({ access_token: z.string(), refresh_token: z.string() })) },
      refusals: { 400: ['INVALID_INPUT'], 401: ['INVALID_TOKEN', 'REFRESH_TOKEN_REUSED'], ...limited },
      failure: 'REFRESH_FAILED',
    }),
    route('POST /auth/developer/logout', {
      caller: anyone,
      summary: 'End a sign-in',
      body: RefreshToken,
      example: { refresh_token: 'eyJ…' },
      handle: logout,
      replies: { 200: data(z.strictObject({ success: z.literal(true) })) },
      refusals: { 400: ['INVALID_INPUT'] },
      failure: 'LOGOUT_FAILED',
    }),
    route('GET /auth/developer/me', {
      caller: developer,
      summary: 'The current developer, and what token is held',
      call: 'developer_me',
      args: ({ resolved }) => ({
        token: { type: 'session', scopes: null, expires_at: new Date((resolved.expiresAt ?? 0) * 1000).toISOString() },
      }),
      replies: {
        200: data(
          Developer.extend({
            organizations: z.array(z.strictObject({ id: Uuid, name: z.string(), role: z.string() })),
            token: z.strictObject({
              type: z.enum(['session', 'pat']),
              scopes: z.array(z.string()).nullable(),
              expires_at: Time.nullable(),
            }),
          }),
        ),
      },
      failure: 'FETCH_FAILED',
    }),
  ],
})
