/** Accounts of developers: sign-up, sign-in, sessions, passwords and deletion. */

import { consoleMark } from '#server/accounts/console_mark.ts'
import { inviteHash, isBlank, requestAccess } from '#server/accounts/invite_codes.ts'
import { refuseWeak } from '#server/accounts/passwords.ts'
import { signInTokens, visitor, withTokens } from '#server/accounts/sign_in.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { sessionRequired } from '#server/http/credentials.ts'
import { asSignIn, perIp, perSubject, refundLimits, takeLimits } from '#server/http/limits.ts'
import type { HandlerContext, Resolved } from '#server/http/route.ts'
import { sha256 } from '#server/secrets.ts'

/** The credential of the request, so that a program can show it. */
export const heldToken = ({ developer: held }: Resolved) => ({
  type: held?.token ? 'pat' : 'session',
  scopes: held?.token?.scopes ?? null,
  expires_at: held?.expiresAt ? new Date(held.expiresAt * 1000).toISOString() : null,
})

export const signup = async (context: HandlerContext) => {
  const { email, password, name, invite_code } = context.body as {
    email: string
    password: string
    name?: string
    invite_code?: string
  }
  refuseWeak(password)
  await takeLimits(context, perIp('developer signup', context.request.ip, [5, 'minute'], [50, 'day']))
  const tokens = await signInTokens(context)
  const reply = await context.call('developer_signup', {
    ...tokens.stored,
    email,
    password_hash: await context.services.passwords.hash(password),
    name,
    signup_mode: context.services.config.SIGNUP_MODE,
    request_access: requestAccess(context.services),
    ...(invite_code === undefined || isBlank(invite_code) ? {} : { invite_hash: inviteHash(invite_code) }),
    ...visitor(context),
  })
  return withTokens(context, reply, tokens)
}

/** The limit on failed passwords of an account, shared by all routes that check one. */
const failedPasswords = (mailbox: string) =>
  perSubject('developer password', sha256(mailbox), [20, 'hour'], [100, 'day'])

export const login = async (context: HandlerContext) => {
  const { email, password } = context.body as { email: string; password: string }
  const known = dataOf<{ mailbox: string; developer_id: string | null; password_hash: string | null }>(
    await context.call('developer_password', { email }, { readOnly: true }),
  )
  // by mailbox, whether or not it has an account: otherwise aliases that share a limit would reveal that it has one
  const failures = failedPasswords(known.mailbox)
  // the limit of failures is taken before the password is checked, and refunded on success
  await takeLimits(context, [
    ...perIp('developer login', context.request.ip, [10, 'minute'], [100, 'day']),
    ...failures,
  ])
  const { matches, renewed } = await context.services.passwords.check(known.password_hash, password)
  if (!matches) throw refusal(401, 'INVALID_CREDENTIALS', 'The email or the password is wrong.')
  await refundLimits(context, failures)
  const tokens = await signInTokens(context)
  const reply = await context.call('developer_login', {
    ...tokens.stored,
    developer_id: known.developer_id,
    password_hash: known.password_hash,
    ...(renewed === undefined ? {} : { renewed_hash: renewed }),
    ...visitor(context),
  })
  return withTokens(context, reply, tokens)
}

const isConsole = ({ request }: HandlerContext) => request.headers[consoleMark.name] === consoleMark.value

/** Each full load of the console renews its session: behind the address of an office those of many people are renewed, each with an allowance of its own. */
const refreshLimits = (context: HandlerContext, sid: string | undefined) =>
  sid !== undefined && isConsole(context)
    ? perSubject('console refresh', sid, [30, 'minute'])
    : perIp('developer refresh', context.request.ip, [30, 'minute'])

export const refresh = async (context: HandlerContext) => {
  const { tokens } = context.services
  const token = context.body['refresh_token'] as string
  const verified = await tokens.verifyDeveloperRefresh(token)
  // a token that this installation has not signed is a guess, and counts for the address
  await takeLimits(context, refreshLimits(context, verified.kind === 'valid' ? verified.claims.sid : undefined))
  if (verified.kind !== 'valid')
    throw refusal(401, 'INVALID_TOKEN', 'The refresh token is invalid or its session has ended: sign in again.')
  const { sid } = verified.claims
  const next = await tokens.developerRefresh(sid)
  const reply = await context.call('developer_refresh', {
    sid,
    presented_hash: sha256(token),
    next_hash: next.hash,
    is_browser: isConsole(context),
  })
  if (reply.status !== 200) return reply
  const { developer_id } = dataOf<{ developer_id: string }>(reply)
  const access_token = await tokens.developerAccess(developer_id, sid)
  return { status: 200, body: JSON.stringify({ data: { access_token, refresh_token: next.token } }) }
}

export const logout = async (context: HandlerContext) => {
  const verified = await context.services.tokens.verifyDeveloperRefresh(context.body['refresh_token'] as string)
  // an expired or foreign token has no session that could still be ended
  if (verified.kind !== 'valid') return { status: 200, body: '{"data":{"success":true}}' }
  return context.call('developer_logout', { sid: verified.claims.sid })
}

/**
 * Checks the current password of the account, where one is set, and returns the hash that it was checked against. A right one is not counted as a
 * failure, also where the request is refused for another reason afterwards.
 */
const checkOwnPassword = async (context: HandlerContext, current: string | undefined, purpose: string) => {
  const signIn = asSignIn(context)
  const known = dataOf<{ mailbox: string; password_hash: string | null } | null>(
    await signIn.call(
      'developer_own_password',
      { developer_id: context.resolved.developer?.developerId },
      { readOnly: true },
    ),
  )
  if (known?.password_hash) {
    const failures = failedPasswords(known.mailbox)
    if (current === undefined) {
      const reason = `is required to ${purpose}`
      throw refusal(400, 'VALIDATION_ERROR', `current_password: ${reason}`, { field: 'current_password', reason })
    }
    await takeLimits(signIn, failures)
    const { matches } = await context.services.passwords.check(known.password_hash, current)
    if (!matches) throw refusal(401, 'INVALID_CREDENTIALS', 'The current password is wrong.')
    await refundLimits(signIn, failures)
  }
  return known?.password_hash
}

export const patch = async (context: HandlerContext) => {
  const { name, password, current_password } = context.body as {
    name?: string | null
    password?: string
    current_password?: string
  }
  const changes = { patch: name === undefined ? {} : { name }, token: heldToken(context.resolved) }
  if (password === undefined) return context.call('developer_patch', changes)
  if (context.resolved.developer?.token) throw sessionRequired()
  refuseWeak(password)
  const checked_hash = await checkOwnPassword(context, current_password, 'change the password')
  return context.call('developer_patch', {
    ...changes,
    checked_hash,
    password_hash: await context.services.passwords.hash(password),
  })
}

export const removeAccount = async (context: HandlerContext) => {
  const { confirm, current_password } = context.body as { confirm: string; current_password?: string }
  const checked_hash = await checkOwnPassword(context, current_password, 'delete the account')
  return context.call('account_delete', { confirmation: confirm, checked_hash })
}
