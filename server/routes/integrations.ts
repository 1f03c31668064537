import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { administrator } from '#server/http/callers.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { Cursor, cursorPage, Deleted, data, JsonObject, Limit, Time, Uuid } from '#server/http/schemas.ts'
import type { SmtpConfig } from '#server/providers/mail.ts'
import { integrationPurpose } from '#server/providers/project_mail.ts'
import { type FcmConfig, serviceAccountProblem } from '#server/providers/push/fcm.ts'
import { providerOf, type Sealed } from '#server/providers/push/gateway.ts'
import type { Services } from '#server/services.ts'

/** The required fields of each provider's config; other fields are kept unchanged. */
const required: Readonly<Record<string, readonly string[]>> = {
  revenuecat: ['secret_api_key'],
  superwall: ['api_key'],
  apns: ['key_id', 'team_id', 'bundle_id', 'private_key'],
  fcm: ['service_account_json'],
  log: [],
  google_play: ['service_account_json'],
  smtp: ['host', 'port'],
  sms: ['url', 'body_template'],
  storage_s3: ['endpoint', 'bucket', 'access_key_id', 'secret_access_key'],
  payments: ['secret_key'],
}

const Integration = z.strictObject({
  id: Uuid,
  provider: z.string(),
  is_active: z.boolean(),
  has_credentials: z.boolean(),
  webhook_url: z.string().nullable(),
  created_at: Time,
  updated_at: Time,
})

const Inbound = z.strictObject({
  id: Uuid,
  provider: z.string(),
  event_key: z.string(),
  outcome: z.string().nullable(),
  body: z.string().describe('As it was received'),
  received_at: Time,
  processed_at: Time.nullable(),
})

const isMissing = (value: unknown) =>
  value === undefined || value === null || (typeof value === 'string' && value.trim() === '')

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)

const isJsonObject = (value: unknown) => {
  if (typeof value !== 'string') return isObject(value)
  try {
    return isObject(JSON.parse(value))
  } catch {
    return false
  }
}

/** A number, or its digits as text, which forms send. */
const isPort = (value: unknown) =>
  (typeof value === 'number' || (typeof value === 'string' && /^\d{1,5}$/.test(value))) &&
  Number.isInteger(Number(value)) &&
  Number(value) > 0 &&
  Number(value) < 65_536

/** Fields that are not texts; all other required fields are, and so are the contract's two optional ones. */
const kinds: Readonly<Record<string, readonly [is: (value: unknown) => boolean, reason: string]>> = {
  service_account_json: [isJsonObject, 'must be a JSON object, or a text of one'],
  port: [isPort, 'must be a port'],
  // a header carries it, which ends without spaces
  webhook_secret: [
    (value) => typeof value === 'string' && /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value),
    'must be ASCII text without spaces around it',
  ],
  // it is part of a path
  project_id: [(value) => typeof value === 'string' && /^[\w-]{1,255}$/.test(value), 'must be an id of the provider'],
}
const text = [(value: unknown) => typeof value === 'string', 'must be a string'] as const
const optional = ['webhook_secret', 'secret_api_key_write', 'project_id']

const checkConfig = (fields: readonly string[], config: Readonly<Record<string, unknown>>): void => {
  const missing = fields.filter((field) => isMissing(config[field]))
  if (missing.length > 0) {
    throw refusal(400, 'INVALID_CONFIG', `The config lacks ${missing.join(', ')}.`, { missing })
  }
  for (const field of [...fields, ...optional.filter((name) => !isMissing(config[name]))]) {
    const [is, reason] = kinds[field] ?? text
    if (!is(config[field])) {
      throw refusal(400, 'INVALID_CONFIG', `config.${field}: ${reason}`, { field: `config.${field}`, reason })
    }
  }
}

const put = (context: HandlerContext) => {
  const { provider, config } = context.body as { provider: string; config: Record<string, unknown> }
  const fields = Object.hasOwn(required, provider) ? required[provider] : undefined
  if (!fields) {
    throw refusal(400, 'PROVIDER_UNKNOWN', 'There is no such provider.', { field: 'provider', reason: 'is not known' })
  }
  checkConfig(fields, config)
  const { secrets, publicUrl } = context.services
  return context.call('integration_put', {
    provider,
    config_sealed: secrets.encrypt(
      integrationPurpose(context.resolved.project?.projectId ?? '', provider),
      JSON.stringify(config),
    ),
    key_id: secrets.current,
    root_url: publicUrl,
  })
}

const notConfigured = { 404: ['NOT_CONFIGURED'] }
const rootUrl = ({ services }: Pick<HandlerContext, 'services'>) => ({ root_url: services.publicUrl })

/** Calls the provider with the stored credentials, which only workers may read. */
const test = async (context: HandlerContext) => {
  const { services, resolved, params } = context
  const provider = String(params['provider'])
  const asked = await context.call('integration_sealed', { provider }, { role: 'app_worker', readOnly: true })
  if (provider === 'log') return tested(true, 0, null)
  const projectId = resolved.project?.projectId ?? ''
  const { config_sealed } = dataOf<{ config_sealed: string }>(asked)
  const began = performance.now()
  const error = await problemOf(services, projectId, provider, config_sealed)
  return tested(error === null, Math.round(performance.now() - began), error)
}

/** What the provider has against its credentials, null when nothing. */
const problemOf = async (services: Services, projectId: string, provider: string, config_sealed: string) => {
  if (provider === 'smtp') {
    const config = services.secrets.decrypt(integrationPurpose(projectId, provider), config_sealed)
    return services.mail.verify(JSON.parse(config) as SmtpConfig).then(
      () => null,
      // a server answers what it likes
      (error: Error) => error.message.slice(0, 1000),
    )
  }
  if (provider === 'apns' || provider === 'fcm') {
    const sealed: Sealed = { provider, config_sealed }
    const { outcome, code } = await providerOf(services, projectId, sealed).check()
    return outcome === 'sent' ? null : (code ?? outcome)
  }
  const opened = () =>
    JSON.parse(services.secrets.decrypt(integrationPurpose(projectId, provider), config_sealed)) as Record<
      string,
      string
    >
  if (provider === 'google_play') {
    const config = opened() as unknown as FcmConfig
    return serviceAccountProblem(config, 'https://www.googleapis.com/auth/androidpublisher', services)
  }
  if (provider === 'revenuecat' || provider === 'superwall') return keyProblem(services, projectId, provider, opened())
  throw refusal(400, 'PROVIDER_UNKNOWN', 'The credentials of this provider cannot be tested.')
}

/** Reads the smallest list that the key opens. */
const keyProblem = async (
  { upstream }: Services,
  projectId: string,
  provider: 'revenuecat' | 'superwall',
  config: Readonly<Record<string, string>>,
) => {
  const { project_id: rcProject, secret_api_key, api_key } = config
  const answer = await upstream.call({
    provider,
    projectId,
    method: 'GET',
    ...(rcProject && provider === 'revenuecat'
      ? { path: '/v2/projects/{project}/customers', params: { project: rcProject }, query: { limit: 1 } }
      : { path: '/v2/projects', query: { limit: 1 } }),
    headers: { authorization: `Bearer ${provider === 'revenuecat' ? secret_api_key : api_key}` },
    timeoutMs: 10_000,
  })
  if (answer.failure !== null) return answer.reason
  if (answer.status === 401 || answer.status === 403) return 'INVALID_CREDENTIALS'
  return answer.status === 200 ? null : `HTTP_${answer.status}`
}

const tested = (ok: boolean, latency_ms: number, error: string | null) => ({
  status: 200,
  body: JSON.stringify({ data: { ok, latency_ms, error } }),
})

export const integrations = area({
  stem: 'integrations',
  title: 'Integrations',
  part: 'Connections',
  about: 'Credentials of other services, and what they reported.',
  source: 'contract',
  invalid: 'INVALID_CONFIG',
  rank: 'admin',
  routes: [
    ...group('/admin/projects/:projectId/integrations', administrator, [
      route('POST /', 'Connect a provider, or replace its config', {
        handle: put,
        body: z.object({ provider: z.string().max(100, 'must have at most 100 characters'), config: JsonObject }),
        example: { provider: 'revenuecat', config: { secret_api_key: 'sk_…', webhook_secret: 'a secret' } },
        replies: { 200: data(Integration), 201: data(Integration) },
        refusals: { 400: ['PROVIDER_UNKNOWN'] },
      }),
      route('GET /', 'Connected providers, without their configs', {
        call: 'integration_list',
        source: 'supplement',
        args: rootUrl,
        replies: { 200: data(z.array(Integration)) },
      }),
      route('GET /:provider', 'A connected provider, without its config', {
        call: 'integration_get',
        source: 'supplement',
        args: rootUrl,
        replies: { 200: data(Integration) },
      }),
      route('PATCH /:provider', 'Switch a provider on or off', {
        call: 'integration_update',
        source: 'supplement',
        body: z.object({ is_active: z.boolean('must be true or false').optional() }),
        patch: true,
        example: { is_active: false },
        args: rootUrl,
        replies: { 200: data(Integration) },
      }),
      route('DELETE /:provider', 'Disconnect a provider and forget its credentials', {
        call: 'integration_delete',
        source: 'supplement',
        replies: { 200: Deleted },
      }),
      route('POST /:provider/test', 'Try the credentials of revenuecat, superwall, apns, fcm, google_play or smtp', {
        handle: test,
        source: 'supplement',
        description: 'Bad credentials are `ok: false` and not a refusal. Sends no message.',
        replies: {
          200: data(z.strictObject({ ok: z.boolean(), latency_ms: z.int(), error: z.string().nullable() })),
        },
        refusals: { 400: ['PROVIDER_UNKNOWN'], ...notConfigured },
        failure: 'FETCH_FAILED',
      }),
      route('GET /:provider/events', 'Received webhooks of a provider, newest first', {
        call: 'inbound_events',
        source: 'supplement',
        description: 'Kept for 90 days. `outcome` is null until the webhook has been processed.',
        query: { cursor: Cursor, limit: Limit(), outcome: z.string().max(64).optional() },
        replies: { 200: cursorPage(Inbound) },
      }),
      route('POST /:provider/events/:eventId/replay', 'Process a received webhook again', {
        call: 'inbound_replay',
        source: 'supplement',
        description: 'What was applied is not applied twice.',
        replies: { 202: data(Inbound) },
        failure: 'UPDATE_FAILED',
      }),
    ]),
  ],
})
