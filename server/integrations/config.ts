/** The configs of providers: checked, and stored encrypted. */
import { refusal } from '#server/errors.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { integrationPurpose } from '#server/providers/project_mail.ts'

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

/** Fields that are not texts; all other required fields are, and so are the two optional ones. */
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

export const put = (context: HandlerContext) => {
  const { provider, config } = context.body as { provider: string; config: Record<string, unknown> }
  const fields = Object.hasOwn(required, provider) ? required[provider] : undefined
  if (!fields) {
    throw refusal(400, 'PROVIDER_UNKNOWN', 'There is no such provider.', { field: 'provider', reason: 'is not known' })
  }
  checkConfig(fields, config)
  const { secrets, publicUrl } = context.services
  return context.call('integration_put', {
    provider,
    config_sealed: secrets.encrypt(integrationPurpose(projectIdOf(context), provider), JSON.stringify(config)),
    key_id: secrets.current,
    root_url: publicUrl,
  })
}
