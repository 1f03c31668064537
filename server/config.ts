import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { z } from 'zod'
import { withHosts } from '#server/database/hosts.ts'
import { StartError } from '#server/errors.ts'

const flag = z.enum(['true', 'false']).transform((value) => value === 'true')
const list = z.string().transform((value) =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean),
)
const optional = z.string().min(1).optional()

/** Every environment variable that Trellis reads, with its default: the table of docs/configuration.md is made from these descriptions. */
export const environment = z.object({
  HOST: z.string().default('127.0.0.1').describe('Address to listen on.'),
  PORT: z.coerce.number().int().min(0).max(65535).default(4000).describe('Port to listen on; 0 takes a free one.'),
  PUBLIC_URL: z
    .url()
    .optional()
    .describe('Root URL in links, upload URLs and webhook URLs. Default: from host and port.'),
  DATA_DIR: z.string().default('./data').describe('Embedded Postgres, stored media, unsent mail, generated secrets.'),
  ARCHIVE_TO: z
    .string()
    .min(1)
    .transform((path) => resolve(path))
    .optional()
    .describe(
      'Folder to which embedded Postgres copies each finished segment of its write-ahead log, to restore a moment (docs/backups.md). Read when Postgres starts.',
    ),
  BACKUP_TO: optional.describe(
    'Where `npm run backup` and `npm run restore` find backups when no option says it: a file, a folder or `s3://KEY:SECRET@host/bucket/prefix`.',
  ),
  DATABASE_URL: optional.describe(
    'Postgres 15 to 18 to use instead of the embedded one; the role needs CREATEDB and CREATEROLE. Of several hosts (`a:5432,b:5432`) the one that takes writes is used (docs/failover.md).',
  ),
  DATABASE_REPLICA_URL: optional.describe(
    'A streaming standby of DATABASE_URL, with the same role, that answers exports and statistics.',
  ),
  DATABASE_REPLICA_LAG_SECONDS: z.coerce
    .number()
    .min(0)
    .max(86_400)
    .default(10)
    .describe('How far behind that standby may be; while it is further, DATABASE_URL is read.'),
  DATABASE_PREFIX: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,20}$/)
    .default('trellis')
    .describe('Prefix of the names of all databases.'),
  DATABASE_CONNECTIONS: z.coerce
    .number()
    .int()
    .min(10)
    .default(80)
    .describe('Connections that one server process may hold in total.'),
  DATABASE_CONNECTIONS_PER_TENANT: z.coerce
    .number()
    .int()
    .min(2)
    .default(12)
    .describe(
      'Connections that one server process may hold to one database. A third of them is kept for apps and a third for administrators and workers.',
    ),
  DATABASE_STATEMENTS: z
    .enum(['named', 'unnamed'])
    .default('named')
    .describe('`unnamed` for a transaction pooler that cannot hold prepared statements.'),
  STATEMENT_CACHE_MB: z.coerce
    .number()
    .int()
    .min(1)
    .max(4096)
    .default(64)
    .describe('Memory of one server process for the compiled queries of collections, of all projects together.'),
  STATEMENT_TIMEOUT_MS: z.coerce.number().int().min(100).default(5000).describe('Longest database call of a request.'),
  SECRETS_KEY: optional.describe(
    '32 bytes in base64, or several such keys, newest first, with commas between (docs/keys.md): encrypts stored credentials; logins and signing keys derive from it. Required with DATABASE_URL; otherwise generated once into DATA_DIR.',
  ),
  WEB_CONCURRENCY: z.coerce.number().int().min(1).max(64).default(1).describe('Server processes.'),
  WORKER: z.enum(['inline', 'off']).default('inline').describe('`off` leaves background jobs to `npm run worker`.'),
  SHUTDOWN_SECONDS: z.coerce
    .number()
    .min(0)
    .max(3600)
    .default(30)
    .describe('After a stop is requested: how long requests in progress may take before they are cut off.'),
  SIGNUP_MODE: z
    .enum(['open', 'invite', 'closed'])
    .default('open')
    .describe('Who may sign up as a developer: everybody, holders of an invite code, or nobody.'),
  REQUEST_ACCESS_URL: z
    .url()
    .optional()
    .describe('Page where people ask for access, named when a sign-up is refused. Default: /docs of PUBLIC_URL.'),
  SMTP_URL: optional.describe(
    'Server that sends mail: `smtp://user:password@host:587` (STARTTLS) or `smtps://…:465`; `?tls=off` for a server without TLS. Without this variable mail is written to DATA_DIR/mail, one .eml file each.',
  ),
  MAIL_FROM: z
    .string()
    .default('Trellis <no-reply@localhost.localdomain>')
    .describe('Sender of mail that has none of its own: an address, or `Name <address>`.'),
  STORAGE_URL: optional.describe(
    'Where media are stored: `s3://KEY:SECRET@host/bucket?region=eu-central-1`, any S3 API; `tls=off` for one without TLS, `path=/s3` where the API begins at a path. Without this variable media are files under DATA_DIR/media.',
  ),
  MAIL_HOST: optional.describe(
    'Host name that the SPF and MX records of sending domains name: the servers that send for this installation. Default: the host of PUBLIC_URL.',
  ),
  DNS_SERVERS: list
    .default([])
    .describe(
      "Name servers that verify domains, addresses with or without a port, comma-separated. Default: the machine's own.",
    ),
  APPLE_JWKS_URL: z.url().default('https://appleid.apple.com/auth/keys').describe("Where Apple's public keys are."),
  APPLE_ISSUER: z.string().min(1).default('https://appleid.apple.com').describe('Issuer of identity tokens of Apple.'),
  GOOGLE_JWKS_URL: z
    .url()
    .default('https://www.googleapis.com/oauth2/v3/certs')
    .describe("Where Google's public keys are."),
  GOOGLE_ISSUER: z
    .string()
    .min(1)
    .default('https://accounts.google.com')
    .describe('Issuer of identity tokens of Google, taken with and without https://.'),
  GITHUB_CLIENT_ID: optional.describe('Client id of a GitHub application with which developers sign in.'),
  GITHUB_CLIENT_SECRET: optional.describe('Its client secret.'),
  GITHUB_URL: z.url().default('https://github.com').describe('Where developers sign in to GitHub.'),
  GITHUB_API_URL: z.url().default('https://api.github.com').describe('Where the API of GitHub is.'),
  APNS_BASE_URL: z
    .url()
    .optional()
    .describe('Where APNs is, instead of the production or sandbox server that an integration names.'),
  FCM_BASE_URL: z.url().default('https://fcm.googleapis.com').describe('Where the HTTP v1 API of FCM is.'),
  REVENUECAT_BASE_URL: z.url().default('https://api.revenuecat.com').describe('Where the API of RevenueCat is.'),
  SUPERWALL_BASE_URL: z.url().default('https://api.superwall.com').describe('Where the API of Superwall is.'),
  ANTHROPIC_BASE_URL: z.url().default('https://api.anthropic.com').describe('Where the API of Anthropic is.'),
  OPENAI_BASE_URL: z.url().default('https://api.openai.com').describe('Where the API of OpenAI is.'),
  GOOGLE_AI_BASE_URL: z
    .url()
    .default('https://generativelanguage.googleapis.com')
    .describe('Where the Gemini API of Google is.'),
  MISTRAL_BASE_URL: z.url().default('https://api.mistral.ai').describe('Where the API of Mistral is.'),
  AI_TIMEOUT_MS: z.coerce
    .number()
    .int()
    .min(100)
    // a call that outlasts its reservation would count as abandoned
    .max(840_000)
    .default(60_000)
    .describe('Longest call of an AI provider, and longest pause of a stream.'),
  AI_STREAM_MS: z.coerce
    .number()
    .int()
    .min(100)
    // the reservation of a call ends after 15 minutes
    .max(840_000)
    .default(840_000)
    .describe('Longest stream of a prompt, from its call to its end: at most 14 minutes.'),
  AI_PRICES_FILE: optional.describe(
    'A JSON file with prices of AI models over the built-in ones, in USD per million tokens: `{"openai": {"gpt-x": {"input_usd": 1, "output_usd": 4}}}`.',
  ),
  BILLING_MODULE: optional.describe(
    'An ES module whose default export makes the billing provider of this installation (docs/billing.md). Without it nothing can be bought.',
  ),
  WEBHOOK_ALLOWED_CIDRS: z
    .string()
    .optional()
    .describe('For development: networks exempt from the refusal of private addresses and of ports other than 443.'),
  WEBHOOK_CA_FILE: optional.describe('For development: a certificate authority to trust besides the public ones.'),
  POSTGRES_BIN: optional.describe(
    'The folder of an installed Postgres 15 to 18, such as `/usr/lib/postgresql/18`: its programs run the data of DATA_DIR, in place of those that npm installed.',
  ),
  POSTGREST_BIN: optional.describe(
    'PostgREST 12 or newer for the REST access. Default: the one that npm installed, if there is one for this platform.',
  ),
  REST_PROCESSES: z.coerce
    .number()
    .int()
    .min(1)
    .max(500)
    .default(8)
    .describe(
      'Processes of PostgREST that one server process runs: one for each project that uses its REST access at the moment.',
    ),
  REST_CONNECTIONS: z.coerce
    .number()
    .int()
    .min(1)
    .max(100)
    .default(4)
    .describe('Connections of each PostgREST, besides the one with which it listens for changes of the schema.'),
  REST_MEMORY_MB: z.coerce
    .number()
    .int()
    .min(32)
    .default(192)
    .describe('Heap of each PostgREST; one that needs more ends, and starts again.'),
  REST_IDLE_SECONDS: z.coerce
    .number()
    .int()
    .min(1)
    .default(300)
    .describe('A PostgREST that served no request for so long is stopped.'),
  SQL_QUERIES: z
    .enum(['on', 'trusted', 'off'])
    .default('on')
    .describe(
      'Whether developers may query the database of a project with SQL (docs/sql.md): `on` where Postgres keeps projects apart, `trusted` also where it does not, because the role of DATABASE_URL is no superuser, `off` nowhere.',
    ),
  SANDBOX_PROJECTS: z.coerce
    .number()
    .int()
    .min(0)
    .default(3)
    .describe('Projects, and organizations, that an account may have whose address is not verified.'),
  SANDBOX_INVITES: flag
    .default(false)
    .describe('Whether such an account may invite others into an organization, by mail.'),
  SANDBOX_MAIL: z
    .enum(['own', 'any'])
    .default('own')
    .describe(
      'To whom the installation sends mail for projects of such accounts: `own`, to verified addresses of their members alone, besides codes and links of sign-in. Read where SMTP_URL is set.',
    ),
  SANDBOX_MAIL_PER_DAY: z.coerce
    .number()
    .int()
    .min(0)
    .default(50)
    .describe('Messages that the installation sends in 24 hours for all projects of such an account.'),
  ACCOUNT_MAIL_PER_DAY: z.coerce
    .number()
    .int()
    .min(0)
    .default(1000)
    .describe(
      'Messages that the installation sends in 24 hours for all projects of any other account, from its own address: a project with a verified domain, or with a mail server of its own, has no such bound.',
    ),
  ACCOUNT_PROJECTS: z.coerce
    .number()
    .int()
    .min(0)
    .default(100)
    .describe('Projects that an account with a verified address may have; one with a paid project has no such bound.'),
  ACCOUNT_PROJECTS_PER_DAY: z.coerce
    .number()
    .int()
    .min(1)
    .default(50)
    .describe('Projects that an account may make in 24 hours, deleted ones too.'),
  GENERAL_RATE_LIMITS: z
    .enum(['on', 'off'])
    .default('on')
    .transform((value) => value === 'on')
    .describe('`off` disables the general rate limits, but not the named limits of sign-in and codes.'),
  METRICS_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65535)
    .optional()
    .describe(
      'Port on HOST that answers GET /metrics in the text format of Prometheus; 0 takes a free one. Off by default.',
    ),
  METRICS_TOKEN: z
    .string()
    .min(16)
    .optional()
    .describe(
      'Answers GET /metrics on PORT too, to who sends this token as Bearer; then METRICS_PORT wants it as well.',
    ),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url()
    .optional()
    .describe(
      'Base URL of an OpenTelemetry collector, to which metrics are sent every minute and traces every five seconds, by OTLP over HTTP.',
    ),
  OTEL_TRACES_EXPORTER: z
    .enum(['otlp', 'none'])
    .default('otlp')
    .describe('`none` sends the collector no traces, and metrics alone.'),
  OTEL_TRACES_SAMPLER: z
    .enum([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ])
    .default('parentbased_always_on')
    .describe(
      'Which traces are exported, by the names of OpenTelemetry; those without `parentbased_` do not ask what the `traceparent` of a request says.',
    ),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('The part of all traces that the two `traceidratio` samplers export.'),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Lowest level that is logged.'),
  CORS_ORIGINS: list
    .default([])
    .describe('Origins that may call /v1/admin and /v1/auth from a browser, comma-separated.'),
  TRUST_PROXY: z
    .union([flag, z.coerce.number().int().min(1), list])
    .default(false)
    .describe(
      'Trusted sources of X-Forwarded-For: the number of proxies in front of the server, their addresses, comma-separated, or true for every client (then callers choose their own address).',
    ),
})

export type Config = z.output<typeof environment> & { readonly processors: number }

/** Reads the environment once. Throws a StartError that names every bad variable. */
export const readConfig = (variables: Record<string, string | undefined> = process.env): Config => {
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== undefined && value !== ''))
  const parsed = environment.safeParse(given)
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`)
    throw new StartError(`These environment variables cannot be used:\n${problems.join('\n')}`)
  }
  if (parsed.data.DATABASE_URL && !parsed.data.SECRETS_KEY) {
    throw new StartError(
      'DATABASE_URL needs SECRETS_KEY beside it: 32 random bytes in base64, kept as long as the data. Make one with: openssl rand -base64 32',
    )
  }
  if (parsed.data.METRICS_TOKEN !== undefined && parsed.data.WEB_CONCURRENCY > 1) {
    throw new StartError(
      'METRICS_TOKEN answers on PORT, where any of the WEB_CONCURRENCY processes may answer: use METRICS_PORT, which gives each a port.',
    )
  }
  const { DATABASE_URL: url, DATABASE_REPLICA_URL: replica } = parsed.data
  if (replica !== undefined && url === undefined)
    throw new StartError('DATABASE_REPLICA_URL is a standby of DATABASE_URL, which is not set.')
  for (const [name, value] of Object.entries({ DATABASE_URL: url, DATABASE_REPLICA_URL: replica }))
    if (value !== undefined && !URL.canParse(withHosts(value, name)))
      throw new StartError(`${name} is no URL of the form postgres://user:password@host:5432/postgres.`)
  if (replica !== undefined && withHosts(replica, 'DATABASE_REPLICA_URL') !== replica)
    throw new StartError('DATABASE_REPLICA_URL has one host.')
  if (url !== undefined) parsed.data.DATABASE_URL = withHosts(url, 'DATABASE_URL')
  return { ...parsed.data, DATA_DIR: resolve(parsed.data.DATA_DIR), processors: availableParallelism() }
}
