/** Accounts of end users: anonymous ones, mail address and password, renewal, sign-out and deletion. */

import { deletionCodeHash } from '#server/accounts/one_time_codes.ts'
import { refuseWeak } from '#server/accounts/passwords.ts'
import { deviceOf, newcomers, profileOf, projectOf, sessionCaller, signIn } from '#server/accounts/sessions.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { perIp, perSubject, takeLimits } from '#server/http/limits.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { sha256 } from '#server/secrets.ts'

export const anonymous = async (context: HandlerContext) => {
  await newcomers(context)
  return signIn(context, 'auth_anonymous', { anonymous_id: context.body['anonymous_id'], ...profileOf(context) })
}

export const emailSignup = async (context: HandlerContext) => {
  const { email, password, display_name } = context.body as { email: string; password: string; display_name?: string }
  refuseWeak(password)
  await newcomers(context)
  return signIn(context, 'auth_email_signup', {
    email,
    display_name,
    password_hash: await context.services.passwords.hash(password),
    ...profileOf(context),
  })
}

/** Contract, Limits: per IP, per account, per app; successes count too. */
export const emailLogin = async (context: HandlerContext) => {
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

export const refresh = async (context: HandlerContext) => {
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
export const logout = async (context: HandlerContext) => {
  const { request, services, body, resolved, route } = context
  const { refresh_token, all } = body as { refresh_token: string; all: boolean }
  const as = all ? await sessionCaller.resolve(request, services, route) : resolved
  const verified = await services.tokens.verifyClientRefresh(projectOf(resolved), refresh_token)
  const sid = verified.kind === 'valid' ? verified.claims.sid : null
  if (!all && sid === null) return { status: 200, body: '{"data":{"success":true}}' }
  return context.call('auth_logout', { sid, all }, { as })
}

/** Both may be in the query, for clients that drop the bodies of DELETE requests. */
export const deleteAccount = ({ body, query, call, services, resolved }: HandlerContext) => {
  const confirm = body['confirm'] ?? query['confirm']
  const code = (body['code'] ?? query['code']) as string | undefined
  const userId = resolved.claims.userId ?? ''
  return call(
    'me_delete',
    {
      confirm: typeof confirm === 'string' ? confirm : undefined,
      code_hash: code && deletionCodeHash(services.secrets, projectOf(resolved).projectId, userId, code),
    },
    { readOnly: false, timeoutMs: 60_000 },
  )
}
