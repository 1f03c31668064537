import { createLru, type Lru } from '#server/lru.ts'
import { type ApnsConfig, apnsPayload, createApns } from '#server/providers/push/apns.ts'
import { createFcm, type FcmConfig } from '#server/providers/push/fcm.ts'
import {
  type Answer,
  type Claimed,
  type Device,
  fitted,
  type Provider,
  tooLarge,
} from '#server/providers/push/message.ts'
import type { Services } from '#server/services.ts'
import type { Measures } from '#server/telemetry/measures.ts'
import { spanned } from '#server/telemetry/spans.ts'

/** A connected provider with its config, which only this server can read. */
export type Sealed = { readonly provider: 'apns' | 'fcm'; readonly config_sealed: string }

/** Open connections and access tokens of each integration; a config that is replaced is another one. */
const opened = new WeakMap<object, Lru<Provider>>()

type Needed = Pick<Services, 'config' | 'now' | 'outbound' | 'secrets'>

const cacheOf = (services: object): Lru<Provider> => {
  const known = opened.get(services)
  if (known) return known
  const made = createLru<Provider>(500, { ttlMs: 30 * 60_000, dispose: (provider) => provider.close() })
  opened.set(services, made)
  return made
}

const broken: Answer = { outcome: 'refused', status: null, code: 'INVALID_CREDENTIALS' }
const unusable: Provider = { send: async () => broken, check: async () => broken, close: () => undefined }

const openProvider = (services: Needed, projectId: string, { provider, config_sealed }: Sealed): Provider => {
  const { secrets, config, outbound, now } = services
  try {
    const text = secrets.decrypt(`integration ${projectId} ${provider}`, config_sealed)
    return provider === 'apns'
      ? createApns(JSON.parse(text) as ApnsConfig, { url: config.APNS_BASE_URL, now })
      : createFcm(JSON.parse(text) as FcmConfig, { url: config.FCM_BASE_URL, outbound, now })
  } catch {
    return unusable
  }
}

export const providerOf = (services: Needed, projectId: string, sealed: Sealed): Provider => {
  const cache = cacheOf(services)
  const key = `${projectId} ${sealed.config_sealed}`
  const known = cache.get(key)
  if (known) return known
  const made = openProvider(services, projectId, sealed)
  cache.set(key, made)
  return made
}

/** The provider of development and tests: keeps what would be sent in the attempts of the delivery. */
const log: Pick<Provider, 'send'> = {
  send: async (delivery) => {
    const payload = fitted(delivery, apnsPayload)
    return payload === null ? tooLarge : { outcome: 'sent', status: null, code: null, payload }
  },
}

/** One notification to one device: not to which. */
const sendTraced = (
  measures: Pick<Measures, 'delivery'>,
  projectId: string,
  provider: string,
  send: () => Promise<Answer>,
): Promise<Answer> =>
  spanned(
    `send ${provider}`,
    'client',
    { 'trellis.provider': provider, 'trellis.project': projectId },
    async (span) => {
      const answer = await send()
      span.set({
        'http.response.status_code': answer.status ?? undefined,
        'trellis.outcome': answer.outcome,
        'trellis.code': answer.code ?? undefined,
      })
      measures.delivery('push', answer.outcome === 'sent' ? 'delivered' : 'failed')
      return answer
    },
  )

type Result = {
  readonly id: string
  readonly attempt_id: string
  readonly expires_at: string
  readonly tokens: readonly (Answer & { readonly push_token_id: string; readonly provider: Device['provider'] })[]
}

/** Sends claimed deliveries to all their devices at once and answers what became of them, for api.push_record. */
export const sendAll = (
  services: Needed & Pick<Services, 'telemetry'>,
  projectId: string,
  connected: readonly Sealed[],
  deliveries: readonly Claimed[],
): Promise<Result[]> => {
  const providers = new Map<string, Pick<Provider, 'send'>>([['log', log]])
  for (const sealed of connected) providers.set(sealed.provider, providerOf(services, projectId, sealed))
  const toDevice = async (delivery: Claimed, device: Device) => {
    // disconnected since the claim: nothing was sent
    const absent: Answer = { outcome: 'failed', status: null, code: 'PUSH_NOT_CONFIGURED' }
    const send = providers.get(device.provider)?.send
    const answer = send
      ? await sendTraced(services.telemetry.measures, projectId, device.provider, () => send(delivery, device))
      : absent
    return { ...answer, push_token_id: device.id, provider: device.provider }
  }
  return Promise.all(
    deliveries.map(async (delivery) => ({
      id: delivery.id,
      attempt_id: delivery.attempt_id,
      expires_at: delivery.expires_at,
      tokens: await Promise.all(delivery.tokens.map((device) => toDevice(delivery, device))),
    })),
  )
}
