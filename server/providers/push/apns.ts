import { type ClientHttp2Session, connect, constants } from 'node:http2'
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
  timeoutMs,
  tooLarge,
} from '#server/providers/push/message.ts'

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
/** An idle connection is closed; the next message opens another. */
const idleMs = 5 * 60_000
const maxAnswerBytes = 16 * 1024

const dead = new Set(['BadDeviceToken', 'Unregistered', 'ExpiredToken'])
/** The key, the team or the bundle id is wrong: no message will be accepted. */
const refused = new Set(['BadTopic', 'TopicDisallowed', 'MissingTopic', 'BadCertificate', 'BadCertificateEnvironment'])

const urlOf = ({ sandbox }: ApnsConfig) =>
  sandbox === true || sandbox === 'true' ? 'https://api.sandbox.push.apple.com' : 'https://api.push.apple.com'

/** The answer of APNs by its status and the `reason` of its body, as Apple documents them. */
export const apnsAnswer = (status: number, reason: string | null): Answer => {
  const code = codeOf(reason, `HTTP_${status}`)
  if (status === 200) return { outcome: 'sent', status, code: null }
  if (status === 410 || dead.has(code)) return { outcome: 'failed', status, code, is_dead: true }
  if (code === 'ExpiredProviderToken' || status === 429 || status >= 500) return { outcome: 'retry', status, code }
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

type Sent = { readonly status: number | null; readonly body: string }

/** One request; a broken connection is an answer without a status. */
const request = (
  session: ClientHttp2Session,
  headers: Record<string, string>,
  body: string,
  over: () => void,
): Promise<Sent> =>
  new Promise((done) => {
    let status: number | null = null
    let answer = ''
    const stream = session.request({ [constants.HTTP2_HEADER_METHOD]: 'POST', ...headers })
    const end = (sent: Sent) => {
      clearTimeout(timer)
      over()
      done(sent)
    }
    const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), timeoutMs)
    stream.setEncoding('utf8')
    stream.on('response', (received) => {
      status = Number(received[':status'])
    })
    stream.on('data', (chunk: string) => {
      if (answer.length < maxAnswerBytes) answer += chunk
    })
    // 'close' follows; without a listener the error would end the process
    stream.on('error', () => undefined)
    stream.on('close', () => end({ status, body: answer }))
    stream.end(body)
  })

const reasonOf = (body: string): string | null => {
  try {
    return (JSON.parse(body) as { reason?: string }).reason ?? null
  } catch {
    return null
  }
}

/** A connection that is opened when it is needed, and again after the server closed it or said that it goes away. */
const createConnection = (url: string) => {
  let session: ClientHttp2Session | null = null
  let running = 0
  const forget = (gone: ClientHttp2Session) => {
    if (session === gone) session = null
  }
  const opened = (): ClientHttp2Session => {
    if (session && !session.closed && !session.destroyed) return session
    const made = connect(url)
    session = made
    made.on('error', () => forget(made))
    made.on('goaway', () => {
      forget(made)
      // what is in progress ends first
      made.close()
    })
    made.on('close', () => forget(made))
    made.setTimeout(idleMs, () => made.close())
    made.unref()
    return made
  }
  return {
    async post(headers: Record<string, string>, body: string): Promise<Sent> {
      const used = opened()
      // the process lives for as long as an answer is awaited
      running += 1
      used.ref()
      return request(used, headers, body, () => {
        running -= 1
        if (running === 0) used.unref()
      })
    },
    close() {
      session?.close()
      session = null
    },
  }
}

/** APNs over HTTP/2 with a token of ES256. A message that is sent again has the same collapse id, so devices show it once. */
export const createApns = (config: ApnsConfig, { url, now }: Options): Provider => {
  const connection = createConnection(url ?? urlOf(config))
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
      const { status, body } = await connection.post(
        {
          ':path': `/3/device/${encodeURIComponent(deviceToken)}`,
          authorization: `bearer ${bearer}`,
          'apns-topic': config.bundle_id,
          'apns-push-type': 'alert',
          ...headers,
        },
        JSON.stringify(payload),
      )
      if (status === null) return { outcome: 'retry', status, code: 'NO_ANSWER' }
      const answer = apnsAnswer(status, reasonOf(body))
      if (answer.code === 'ExpiredProviderToken') token = null
      return answer
    } catch {
      return { outcome: 'retry', status: null, code: 'NO_ANSWER' }
    }
  }

  return {
    async send(delivery: Claimed, device: Device) {
      const payload = fitted(delivery, apnsPayload)
      if (payload === null) return tooLarge
      const { collapse_key, ttl_seconds = 86_400, priority } = delivery.message
      const expires = ttl_seconds === 0 ? 0 : Math.floor(now().getTime() / 1000) + ttl_seconds
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
