import type { FastifyRequest } from 'fastify'
import type { ApiError } from '#server/errors.ts'

/** What a refusal of ours is called in GoTrue, wherever it comes from: clients know these words, and auth-js acts on some by itself. */
const words: Readonly<Record<string, string>> = {
  AUDIENCE_NOT_CONFIGURED: 'provider_disabled',
  CODE_VERIFIER_INVALID: 'bad_code_verifier',
  CONTENT_REJECTED: 'validation_failed',
  EMAIL_EXISTS: 'user_already_exists',
  FLOW_EXPIRED: 'flow_state_expired',
  FLOW_NOT_FOUND: 'flow_state_not_found',
  FORBIDDEN: 'not_admin',
  IDENTITY_IN_USE: 'identity_already_exists',
  IDENTITY_NOT_FOUND: 'identity_not_found',
  INVALID_BODY: 'bad_json',
  INVALID_INPUT: 'validation_failed',
  INVALID_USER_ID: 'validation_failed',
  INVALID_TIMEZONE: 'validation_failed',
  LAST_IDENTITY: 'single_identity_not_deletable',
  LINK_REQUIRED: 'email_exists',
  OAUTH_STATE_INVALID: 'bad_oauth_state',
  OTP_INVALID: 'otp_expired',
  PROVIDER_DISABLED: 'provider_disabled',
  PROVIDER_NOT_CONFIGURED: 'phone_provider_disabled',
  PROVIDER_UNKNOWN: 'oauth_provider_not_supported',
  RATE_LIMITED: 'over_request_rate_limit',
  RATE_LIMIT_EXCEEDED: 'over_request_rate_limit',
  REDIRECT_NOT_ALLOWED: 'validation_failed',
  REFRESH_TOKEN_REUSED: 'refresh_token_already_used',
  TOKEN_EXPIRED: 'bad_jwt',
  USER_BANNED: 'user_banned',
  USER_NOT_FOUND: 'user_not_found',
  VALIDATION_ERROR: 'validation_failed',
  WEAK_PASSWORD: 'weak_password',
}

/** And what it is called where one word of ours stands for several of GoTrue's: by the method and path, with the kind of grant. */
const wordsOf: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'POST /token password': { UNAUTHORIZED: 'invalid_credentials' },
  'POST /token id_token': { INVALID_TOKEN: 'bad_jwt' },
  'POST /token refresh_token': { INVALID_TOKEN: 'refresh_token_not_found', UNAUTHORIZED: 'session_not_found' },
  'POST /verify': { INVALID_TOKEN: 'otp_expired' },
  'GET /user': { UNAUTHORIZED: 'session_not_found', INVALID_TOKEN: 'bad_jwt' },
  // also where the current password that was sent is wrong
  'PUT /user': { UNAUTHORIZED: 'invalid_credentials', INVALID_TOKEN: 'bad_jwt' },
  'POST /logout': { UNAUTHORIZED: 'session_not_found', INVALID_TOKEN: 'bad_jwt' },
}
const wordsOfAdmin: Readonly<Record<string, string>> = {
  INVALID_BODY: 'validation_failed',
  NOT_FOUND: 'user_not_found',
}
const ofSession = /^(GET|PUT) \/user$|^GET \/user\/identities\/|^POST \/logout$|^DELETE \/user\//

/** Requests whose API key is one: what is refused after that is not the key. */
const keyed = new WeakSet<FastifyRequest>()
export const noteKey = (request: FastifyRequest): void => void keyed.add(request)

/** The code of a refusal as auth-js knows it; ours where GoTrue has no word for it. */
export const codeFor = ({ code, details }: ApiError, request: FastifyRequest): string => {
  const { '*': path } = request.params as { '*'?: string }
  const { grant_type } = request.query as { grant_type?: unknown }
  const place = `${request.method} /${path}`
  if (!keyed.has(request)) return words[code] ?? code
  if (code === 'UNAUTHORIZED' && ofSession.test(place) && request.headers.authorization === undefined)
    return 'no_authorization'
  if (code === 'USER_ALREADY_EXISTS') return `${details?.['field']}_exists`
  if (/^\w+ \/(admin\/|invite$)/.test(place) && code in wordsOfAdmin) return wordsOfAdmin[code] as string
  const own = wordsOf[path === 'token' ? `${place} ${String(grant_type)}` : place]
  return own?.[code] ?? words[code] ?? code
}

/**
 * What GoTrue says, where apps compare the text: they did so before it had codes, and many still do. By its code, or by the method and path with the kind of
 * grant. Ours stands in `details.message` then.
 */
const messages: Readonly<Record<string, string>> = {
  otp_expired: 'Token has expired or is invalid',
  refresh_token_already_used: 'Invalid Refresh Token: Already Used',
  refresh_token_not_found: 'Invalid Refresh Token: Refresh Token Not Found',
  user_already_exists: 'User already registered',
  'POST /token password invalid_credentials': 'Invalid login credentials',
  'POST /token id_token bad_jwt': 'Bad ID token',
  'POST /token id_token provider_disabled': 'Provider is not enabled',
}

/** The message of a refusal for clients that compare it; null where ours is as good. */
export const messageFor = ({ details }: ApiError, word: string, request: FastifyRequest): string | null => {
  const { '*': path } = request.params as { '*'?: string }
  const { grant_type } = request.query as { grant_type?: unknown }
  if (word === 'weak_password') return `Password should be at ${String(details?.['reason']).replace(/^.* at /, '')}.`
  if (word === 'validation_failed' && details?.['reason'] === 'must be a mail address')
    return 'Unable to validate email address: invalid format'
  if (word === 'validation_failed' && String(details?.['reason']).startsWith('must be a phone number'))
    return 'Invalid phone number format (E.164 required)'
  return messages[`${request.method} /${path} ${String(grant_type)} ${word}`] ?? messages[word] ?? null
}
