/** Webhooks of subscription providers: verified, deduplicated and stored. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { tenantPlace } from '#server/http/callers.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import { numberText, spelledJson } from '#server/json/lossless_json.ts'
import { integrationPurpose } from '#server/providers/project_mail.ts'

type Provider = 'revenuecat' | 'superwall'
type Body = Readonly<Record<string, unknown>>

const digest = (text: string) => createHash('sha256').update(text).digest()

/** `Authorization: Bearer <secret>`, compared by hash, so that neither content nor length shows in the time. */
const isBearer = ({ request }: HandlerContext, secret: string): boolean => {
  const given = /^Bearer +(\S.*)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
  return timingSafeEqual(digest(given.trimEnd()), digest(secret))
}

const hexDigits = /^[0-9a-f]{64}$/i
const toleranceSeconds = 300

/** HMAC-SHA-256 of the raw body, in hexadecimal; the vendor's own deliveries are signed as Standard Webhooks instead. */
const isSigned = (context: HandlerContext, secret: string, body: Buffer): boolean => {
  const given = context.request.headers['x-superwall-signature']
  if (given === undefined) return isStandardSigned(context, secret, body)
  if (typeof given !== 'string' || !hexDigits.test(given)) return false
  return timingSafeEqual(createHmac('sha256', secret).update(body).digest(), Buffer.from(given, 'hex'))
}

/** `svix-signature`: HMAC of `<id>.<time>.<body>` under the base64 after `whsec_`, at most five minutes old. */
const isStandardSigned = ({ request, services }: HandlerContext, secret: string, body: Buffer): boolean => {
  const { 'svix-id': id, 'svix-timestamp': time, 'svix-signature': given } = request.headers
  const key = /^whsec_([A-Za-z0-9+/]{16,}={0,2})$/.exec(secret)?.[1]
  if (!key || typeof id !== 'string' || typeof time !== 'string' || typeof given !== 'string') return false
  if (!/^\d{1,12}$/.test(time) || Math.abs(services.now().getTime() / 1000 - Number(time)) > toleranceSeconds)
    return false
  const right = createHmac('sha256', Buffer.from(key, 'base64')).update(`${id}.${time}.`).update(body).digest()
  return given.split(' ').some((each) => {
    const bytes = Buffer.from(each.replace(/^v1,/, ''), 'base64')
    return each.startsWith('v1,') && bytes.length === right.length && timingSafeEqual(bytes, right)
  })
}

const isObject = (value: unknown): value is Body => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The body as text and as an object. Throws 400 INVALID_BODY. */
const parsedBody = (bytes: Buffer): { text: string; body: Body } => {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    const body: unknown = JSON.parse(text)
    if (isObject(body)) return { text, body }
  } catch {}
  throw refusal(400, 'INVALID_BODY', 'The body must be a JSON object.')
}

const idText = (value: unknown): string | null => {
  const id = typeof value === 'string' ? value : (numberText(value) ?? '')
  return /^[^\0]{1,255}$/u.test(id) ? id : null
}

/** Where a provider puts the id of an event. */
const idsIn = (provider: Provider, { id, event_id, object, event, data: details }: Body): readonly unknown[] =>
  provider === 'revenuecat'
    ? [isObject(event) ? event['id'] : null]
    : [id, event_id, object === 'event' && isObject(details) ? details['id'] : null]

/** The provider's id of the event, by which it is deduplicated; without one the hash of the body. */
const keyOf = (provider: Provider, body: Body, text: string): string => {
  const read = idsIn(provider, body)
  // two long numbers may be one number of JavaScript: then the digits count that were sent
  const isExact = read.every((id) => typeof id !== 'number' || Number.isSafeInteger(id))
  const ids = isExact ? read : idsIn(provider, spelledJson(text) as Body)
  const known = ids.map(idText).find((each) => each !== null)
  return known ? `id ${known}` : `sha256 ${digest(text).toString('hex')}`
}

export const receive = async (context: HandlerContext, provider: Provider) => {
  const { services, request, query, route: at } = context
  const projectId = query['project_id']
  if (typeof projectId !== 'string' || !uuidPattern.test(projectId))
    throw refusal(400, 'MISSING_PROJECT', 'project_id must name the project.')
  // genuine webhooks of many projects come from few addresses: only refused ones are counted by address
  const perAddress = [{ key: `webhooks ip ${addressKey(request.ip)}`, perSecond: 60, burst: 200 }]
  services.rateLimiter.check(perAddress)
  const refused = (status: number, code: string, message: string) => {
    services.rateLimiter.take(perAddress)
    return refusal(status, code, message)
  }
  const notConfigured = () =>
    refused(404, 'NOT_CONFIGURED', `The project has no active ${provider} with a webhook_secret.`)
  const project = await services.projectCache.byProject(projectId.toLowerCase())
  if (!project) throw notConfigured()
  const place = tenantPlace(services, project, at)
  const call = (name: string, args: Record<string, unknown>) =>
    services.database.call(place, 'app_worker', { caller: 'worker', projectId: project.projectId }, name, args, {
      failure: at.failure ?? 'WEBHOOK_PROCESSING_FAILED',
    })
  const stored = dataOf<{ config_sealed: string } | null>(await call('inbound_config', { provider }))
  if (!stored) throw notConfigured()
  const opened = services.secrets.decrypt(integrationPurpose(project.projectId, provider), stored.config_sealed)
  const { webhook_secret: secret } = JSON.parse(opened) as { webhook_secret?: unknown }
  if (typeof secret !== 'string' || secret === '') throw notConfigured()
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  const isGenuine = provider === 'revenuecat' ? isBearer(context, secret) : isSigned(context, secret, bytes)
  if (!isGenuine) throw refused(401, 'INVALID_SIGNATURE', 'The secret or the signature of the webhook is wrong.')
  const { text, body } = parsedBody(bytes)
  if (provider === 'revenuecat' && !isObject(body['event']))
    throw refusal(400, 'INVALID_BODY', 'event must be an object.')
  const reply = await call('inbound_receive', { provider, event_key: keyOf(provider, body, text), body: text })
  services.waker.written(project.projectId)
  if (reply.dueAt) services.waker.wake(project.projectId, reply.dueAt)
  return reply
}
