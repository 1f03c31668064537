import { importPKCS8, SignJWT } from 'jose'
import { type Dispatcher, Pool } from 'undici'
import type { Outbound } from '#server/providers/outbound.ts'
import {
  type Answer,
  type Claimed,
  codeOf,
  type Device,
  dataOf,
  fitted,
  type Provider,
  retried,
  timeoutMs,
  tooLarge,
  ttlOf,
} from '#server/providers/push/message.ts'

export type FcmConfig = { readonly service_account_json: unknown }
type Options = { readonly url: string; readonly outbound: Outbound; readonly now: () => Date }
type Account = {
  readonly project_id: string
  readonly client_email: string
  readonly private_key: string
  readonly token_uri: string
}

const scope = 'https://www.googleapis.com/auth/firebase.messaging'
const maxAnswerBytes = 64 * 1024
/** "If no retry-after header is set, default to 60 seconds", FCM says of a quota that is used up. */
const quotaSeconds = 60
/** Of a token endpoint: a longer Retry-After holds the messages, and not the request for a token. */
const longestSilenceSeconds = 600
/** Errors of a connection that was never made: nothing was sent. */
const unsent = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])
const dead = new Set(['UNREGISTERED', 'NotRegistered'])

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** The fields of a service account that are used; null when one is missing. */
const accountOf = ({ service_account_json: given }: FcmConfig): Account | null => {
  const json = (typeof given === 'string' ? JSON.parse(given) : given) as Partial<Account>
  const { project_id, client_email, private_key, token_uri } = json
  if (!isText(project_id) || !isText(client_email) || !isText(private_key) || !isText(token_uri)) return null
  return { project_id, client_email, private_key, token_uri }
}

type ErrorBody = { error?: { status?: string; details?: { '@type'?: string; errorCode?: string }[] } }

/** The answer of FCM by its status, the error code in the details of its body and Retry-After, as Google documents them. */
export const fcmAnswer = (status: number, body: string, retryAfter?: string | null): Answer => {
  if (status === 200) return { outcome: 'sent', status, code: null }
  const error = errorOf(body)
  const ofFcm = error?.details?.find((detail) => detail['@type']?.endsWith('FcmError'))?.errorCode
  const code = codeOf(ofFcm ?? error?.status, `HTTP_${status}`)
  if (dead.has(code)) return { outcome: 'failed', status, code, is_dead: true }
  if (status === 429) return retried(status, code, retryAfter, retryAfter ? 0 : quotaSeconds)
  if (status >= 500) return retried(status, code, retryAfter)
  if (code === 'SENDER_ID_MISMATCH') return { outcome: 'failed', status, code }
  if (status === 401 || status === 403) return { outcome: 'refused', status, code }
  return { outcome: 'failed', status, code }
}

const errorOf = (body: string): ErrorBody['error'] => {
  try {
    return (JSON.parse(body) as ErrorBody | null)?.error
  } catch {
    return undefined
  }
}

export const fcmMessage = (delivery: Claimed, ttl: number) => {
  const { message, badge } = delivery
  const { title, body, image_url: image, sound, collapse_key, priority } = message
  const data = Object.entries(dataOf(delivery)).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ])
  return {
    notification: { title, body, ...(image ? { image } : {}) },
    data: Object.fromEntries(data) as Record<string, string>,
    android: {
      priority: priority === 'normal' ? 'NORMAL' : 'HIGH',
      ttl: `${ttl}s`,
      ...(collapse_key ? { collapse_key } : {}),
      ...(sound || badge !== null
        ? { notification: { ...(sound ? { sound } : {}), ...(badge === null ? {} : { notification_count: badge }) } }
        : {}),
    },
  }
}

/** What comes of a body in time. The status says what became of the message, also where the rest of the answer does not come. */
const startOf = async (body: Dispatcher.ResponseData['body']): Promise<string> => {
  // bodyTimeout is the longest pause: a server that sends a byte now and then makes none
  const late = setTimeout(() => body.destroy(new Error('late')), timeoutMs)
  let text = ''
  try {
    for await (const chunk of body) if (text.length < maxAnswerBytes) text += chunk
  } catch {
  } finally {
    clearTimeout(late)
  }
  return text
}

type Access = { readonly token: string; readonly expiresAt: number } | Answer
const isAnswer = (access: Access): access is Answer => 'outcome' in access

/** Exchanges a signed assertion for an access token (RFC 7523). The address is the tenant's own, so the request passes the SSRF filter. */
const authorize = async (
  account: Account,
  { outbound, now }: Pick<Options, 'outbound' | 'now'>,
  of = scope,
): Promise<Access> => {
  const at = Math.floor(now().getTime() / 1000)
  let assertion: string
  try {
    assertion = await new SignJWT({ scope: of })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
      .setIssuer(account.client_email)
      .setAudience(account.token_uri)
      .setIssuedAt(at)
      .setExpirationTime(at + 3600)
      .sign(await importPKCS8(account.private_key, 'RS256'))
  } catch {
    return { outcome: 'refused', status: null, code: 'INVALID_CREDENTIALS' }
  }
  const answer = await outbound.post({
    url: account.token_uri,
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'user-agent': 'Service-Push/1' },
    body: new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }).toString(),
    excerptBytes: 16 * 1024,
    purpose: 'push_token',
  })
  const { statusCode: status } = answer
  if (answer.refused) return { outcome: 'refused', status: null, code: 'TOKEN_URI_NOT_ALLOWED' }
  if (status === null || status === 429 || status >= 500) {
    const asked = answer.retryAfter === null ? null : String(answer.retryAfter)
    return retried(status, 'NO_ACCESS_TOKEN', asked)
  }
  try {
    const granted = JSON.parse(answer.responseExcerpt) as { access_token?: string; expires_in?: number }
    if (status === 200 && isText(granted.access_token)) {
      // a minute less, for clocks that differ
      const lives = Math.max(0, (granted.expires_in ?? 3600) - 60)
      return { token: granted.access_token, expiresAt: now().getTime() + lives * 1000 }
    }
  } catch {}
  return { outcome: 'refused', status, code: 'NO_ACCESS_TOKEN' }
}

/** Asks for a token of a service account, and answers why there is none; null when there is one. */
export const serviceAccountProblem = async (
  config: FcmConfig,
  of: string,
  options: Pick<Options, 'outbound' | 'now'>,
): Promise<string | null> => {
  const account = accountOf(config)
  const access = account && (await authorize(account, options, of))
  if (!access) return 'INVALID_CREDENTIALS'
  return isAnswer(access) ? (access.code ?? access.outcome) : null
}

/** FCM's HTTP v1 API. It has no idempotency key: a request whose outcome is unknown has failed, and is never sent again. */
export const createFcm = (config: FcmConfig, options: Options): Provider => {
  const account = accountOf(config)
  const pool = new Pool(new URL(options.url).origin, {
    connections: 64,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  })
  let access: Promise<Access> | null = null
  /** Where `access` is an answer of the endpoint that asks for that. */
  let leftAloneUntil: number | null = null
  const forgetAnswer = () => {
    access = null
    leftAloneUntil = null
  }

  const granted = async (account: Account): Promise<Access> => {
    access ??= authorize(account, options)
    const pending = access
    const held = await pending
    const at = options.now().getTime()
    if (!isAnswer(held) && held.expiresAt > at) return held
    if (isAnswer(held)) {
      const { retry_after = 0 } = held
      // none is asked for while the endpoint asks to be left alone
      leftAloneUntil ??= at + Math.min(retry_after, longestSilenceSeconds) * 1000
      if (retry_after === 0 || at < leftAloneUntil) {
        if (retry_after === 0 && access === pending) forgetAnswer()
        return held
      }
      if (access === pending) forgetAnswer()
    } else if (access === pending) access = null
    // one request for all that found an expired one
    access ??= authorize(account, options)
    return access
  }
  /** Forgets a token that was refused, unless another has replaced it already. */
  const forget = async (token: string): Promise<void> => {
    const pending = access
    const held = await pending
    if (held && !isAnswer(held) && held.token === token && access === pending) access = null
  }

  const post = async (of: Account, token: string, body: object): Promise<Answer> => {
    try {
      const response = await pool.request({
        method: 'POST',
        path: `/v1/projects/${encodeURIComponent(of.project_id)}/messages:send`,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      const { 'retry-after': asked } = response.headers
      return fcmAnswer(response.statusCode, await startOf(response.body), typeof asked === 'string' ? asked : null)
    } catch (error) {
      const isUnsent = unsent.has((error as NodeJS.ErrnoException).code ?? '')
      return isUnsent ? retried(null, 'NO_CONNECTION') : { outcome: 'failed', status: null, code: 'OUTCOME_UNKNOWN' }
    }
  }

  const call = async (body: object): Promise<Answer> => {
    if (!account) return { outcome: 'refused', status: null, code: 'INVALID_CREDENTIALS' }
    const held = await granted(account)
    if (isAnswer(held)) return held
    const answer = await post(account, held.token, body)
    if (answer.status !== 401 || answer.code !== 'UNAUTHENTICATED') return answer
    // the token may have been revoked: once more with another
    await forget(held.token)
    const renewed = await granted(account)
    return isAnswer(renewed) ? renewed : post(account, renewed.token, body)
  }

  return {
    async send(delivery: Claimed, device: Device) {
      // measured without the token, which is an address and no part of the message
      const message = fitted(delivery, (shown) => fcmMessage(shown, ttlOf(delivery, options.now())))
      return message === null ? tooLarge : call({ message: { ...message, token: device.token } })
    },
    async check() {
      const answer = await call({ validate_only: true, message: { token: 'test', notification: { title: 'test' } } })
      const isAccepted = answer.outcome === 'sent' || answer.status === 400 || answer.status === 404
      return isAccepted ? { outcome: 'sent', status: answer.status, code: null } : answer
    },
    close: () => void pool.close(),
  }
}
