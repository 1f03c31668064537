/** The identities of an end user: linking, passwords, merging two accounts. */
import { type IdTokenBody, identityFrom } from '#server/accounts/identity_tokens.ts'
import { codeHash } from '#server/accounts/one_time_codes.ts'
import { refuseWeak } from '#server/accounts/passwords.ts'
import { profileOf, projectOf } from '#server/accounts/sessions.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { perSubject, refundLimits, takeLimits } from '#server/http/limits.ts'
import type { HandlerContext } from '#server/http/route.ts'

const userIdOf = ({ resolved }: HandlerContext): string => resolved.claims.userId ?? ''

/**
 * The hash that the new password may replace: none is set, or the current password was sent. With `trustsYoung`, a session that has just
 * signed in need not send it, so that a forgotten password can be reset.
 */
const checkedHash = async (context: HandlerContext, current: string | undefined, trustsYoung: boolean) => {
  const { password_hash, is_young } = dataOf<{ password_hash: string | null; is_young: boolean }>(
    await context.call('auth_password_state', {}),
  )
  if (password_hash === null) return null
  if (current === undefined) {
    if (trustsYoung && is_young) return password_hash
    throw refusal(400, 'INVALID_INPUT', 'current_password: is required, because a password is set', {
      field: 'current_password',
      reason: 'is required, because a password is set',
    })
  }
  // limits guesses of the password by a person who found an open session
  const guesses = perSubject('client current password', userIdOf(context), [10, 'quarter'], [100, 'day'])
  await takeLimits(context, guesses, 'RATE_LIMITED')
  const { matches } = await context.services.passwords.check(password_hash, current)
  if (!matches) throw refusal(401, 'UNAUTHORIZED', 'The current password is wrong.')
  await refundLimits(context, guesses)
  return password_hash
}

type Passwords = { readonly password: string; readonly current_password?: string }

const newPassword = async (context: HandlerContext, trustsYoung: boolean) => {
  const { password, current_password } = context.body as Passwords
  const checked_hash = await checkedHash(context, current_password, trustsYoung)
  return { password_hash: await context.services.passwords.hash(password), checked_hash }
}

export const setPassword = async (context: HandlerContext) => {
  refuseWeak((context.body as Passwords).password)
  return context.call('auth_password_set', { ...(await newPassword(context, true)), ...profileOf(context) })
}

const linkHash = (context: HandlerContext, channel: 'email' | 'phone') => {
  const address = context.body[channel] as string
  const { projectId } = projectOf(context.resolved)
  const scope = { projectId, purpose: 'link', channel, address, userId: userIdOf(context) } as const
  return codeHash(context.services.secrets, scope, context.body['code'] as string)
}

const linkEmail = async (context: HandlerContext) =>
  context.call('auth_link_email', {
    email: context.body['email'],
    secret_hash: linkHash(context, 'email'),
    ...(context.body['password'] === undefined ? {} : await newPassword(context, false)),
    ...profileOf(context),
  })

const linkSocial = async (context: HandlerContext) => {
  const body = context.body as IdTokenBody
  const identity = await identityFrom(context, body, 'UPDATE_FAILED')
  return context.call('auth_link_social', {
    provider: body.provider,
    provider_id: identity.providerId,
    email: identity.email,
  })
}

export const link = async (context: HandlerContext) => {
  const { password } = context.body as Partial<Passwords>
  if (password !== undefined) refuseWeak(password)
  await takeLimits(context, perSubject('client link', userIdOf(context), [10, 'minute']), 'RATE_LIMITED')
  switch (context.body['provider']) {
    case 'email':
      return linkEmail(context)
    case 'phone':
      return context.call('auth_link_phone', {
        phone: context.body['phone'],
        secret_hash: linkHash(context, 'phone'),
        ...profileOf(context),
      })
    case 'password':
      return context.call('auth_link_password', await newPassword(context, false))
    default:
      return linkSocial(context)
  }
}

/** A token that cannot be read has no user: SQL refuses both cases in the same way. */
export const merge = async (context: HandlerContext) => {
  const verified = await context.services.tokens.verifySession(
    projectOf(context.resolved),
    context.body['from_session_token'] as string,
  )
  const from = verified.kind === 'valid' ? verified.claims : null
  // up to a hundred thousand events move in one transaction: merged completely, or not at all
  return context.call(
    'auth_merge',
    { from_user_id: from?.userId ?? null, from_sid: from?.sid ?? null },
    { readOnly: false, timeoutMs: 60_000 },
  )
}
