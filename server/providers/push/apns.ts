import { importPKCS8, SignJWT } from 'jose'
import {
  type Answer,
  type Claimed,
  codeOf,
  type Device,
  dataOf,
  fitted,
  idOf,
  type Provider,
  retried,
  tooLarge,
  ttlOf,
} from '#server/providers/push/message.ts'
import { createSessions } from '#server/providers/push/sessions.ts'

export type ApnsConfig = {
  readonly key_id: string
  readonly team_id: string
  readonly bundle_id: string
  readonly private_key: string
  readonly sandbox?: unknown
}
type Options = { readonly url: string | undefined; readonly now: () => Date }

/** Apple refuses tokens older than an hour, and new ones more often than every 20 minutes. */
const tokenMs = 50 * 60_000

const dead = new Set(['BadDeviceToken', 'Unregistered', 'ExpiredToken'])
/** The key, the team or the bundle id is wrong: no message will be accepted. */
const refused = new Set(['BadTopic', 'TopicDisallowed', 'MissingTopic', 'BadCertificate', 'BadCertificateEnvironment'])

const urlOf = ({ sandbox }: ApnsConfig) =>
  sandbox === true || sandbox === 'true' ? 'https://api.sandbox.push.apple.com' : 'https://api.push.apple.com'

/** The answer of APNs by its status, the `reason` of its body and Retry-After, as Apple documents them. */
export const apnsAnswer = (status: number, reason: string | null, retryAfter?: string | null): Answer => {
  const code = codeOf(reason, `HTTP_${status}`)
  if (status === 200) return { outcome: 'sent', status, code: null }
  if (status === 410 || dead.has(code)) return { outcome: 'failed', status, code, is_dead: true }
  if (code === 'ExpiredProviderToken' || status === 429 || status >= 500) return retried(status, code, retryAfter)
  if (status === 403 || refused.has(code)) return { outcome: 'refused', status, code }
  return { outcome: 'failed', status, code }
}

export const apnsPayload = (delivery: Claimed) => {
  const { message, badge } = delivery
  const { image_url: image, sound, category } = message
  return {
    ...dataOf(delivery),
    ...(image ? { image_url: image } : {}),
    aps: {
      alert: { title: message.title, body: message.body },
      ...(sound ? { sound } : {}),
      ...(badge === null ? {} : { badge }),
      'mutable-content': 1,
      ...(category ? { category, 'thread-id': category } : {}),
    },
  }
}

const reasonOf = (body: string): string | null => {
  try {
    return (JSON.parse(body) as { reason?: string }).reason ?? null
  } catch {
    return null
  }
}

/** APNs over HTTP/2 with a token of ES256. A message that is sent again has the same collapse id, so devices show it once. */
export const createApns = (config: ApnsConfig, { url, now }: Options): Provider => {
  const connection = createSessions(url ?? urlOf(config))
  let token: { readonly text: Promise<string>; readonly madeAt: number } | null = null

  const sign = async (): Promise<string> =>
    new SignJWT({})
      .setProtectedHeader({ alg: 'ES256', kid: config.key_id })
      .setIssuer(config.team_id)
      .setIssuedAt(Math.floor(now().getTime() / 1000))
      .sign(await importPKCS8(config.private_key, 'ES256'))
  const authorization = (): Promise<string> => {
    if (!token || now().getTime() - token.madeAt > tokenMs) token = { text: sign(), madeAt: now().getTime() }
    return token.text
  }

  const post = async (deviceToken: string, headers: Record<string, string>, payload: object): Promise<Answer> => {
    const bearer = await authorization().catch(() => null)
    if (bearer === null) {
      token = null
      return { outcome: 'refused', status: null, code: 'INVALID_CREDENTIALS' }
    }
    try {
      const { status, body, retryAfter } = await connection.post(
        {
          ':path': `/3/device/${encodeURIComponent(deviceToken)}`,
          authorization: `bearer ${bearer}`,
          'apns-topic': config.bundle_id,
          'apns-push-type': 'alert',
          ...headers,
        },
        JSON.stringify(payload),
      )
      if (status === null) return retried(null, 'NO_ANSWER')
      const answer = apnsAnswer(status, reasonOf(body), retryAfter)
      if (answer.code === 'ExpiredProviderToken') token = null
      return answer
    } catch {
      return retried(null, 'NO_ANSWER')
    }
  }

  return {
    async send(delivery: Claimed, device: Device) {
      const payload = fitted(delivery, apnsPayload)
      if (payload === null) return tooLarge
      const { collapse_key, priority } = delivery.message
      const ttl = ttlOf(delivery, now())
      const expires = ttl === 0 ? 0 : Math.floor(now().getTime() / 1000) + ttl
      const headers = {
        'apns-id': idOf(delivery.id, device.id),
        'apns-collapse-id': collapse_key ?? delivery.id,
        'apns-priority': priority === 'normal' ? '5' : '10',
        'apns-expiration': String(expires),
      }
      return post(device.token, headers, payload)
    },
    // accepted credentials get as far as the device token, which is none
    async check() {
      const answer = await post('00', { 'apns-priority': '5' }, { aps: { alert: 'test' } })
      return answer.code === 'BadDeviceToken' ? { outcome: 'sent', status: answer.status, code: null } : answer
    },
    close: connection.close,
  }
}
