import type { Logger } from 'pino'
import type { Fleet } from '#fleet/fleet.ts'
import type { Passwords } from '#server/accounts/passwords.ts'
import type { Statements } from '#server/collections/statements.ts'
import type { Config } from '#server/config.ts'
import type { Database, Place } from '#server/database/database.ts'
import type { Notifier } from '#server/database/notifier.ts'
import type { Waker } from '#server/database/waker.ts'
import type { GraphQL } from '#server/graphql/graphql.ts'
import type { CachedProject, ProjectCache } from '#server/http/project_cache.ts'
import type { RateLimiter } from '#server/http/rate_limiter.ts'
import type { Area, Route } from '#server/http/route.ts'
import type { Sessions } from '#server/http/sessions.ts'
import type { Tokens } from '#server/http/tokens.ts'
import type { Media } from '#server/media/media.ts'
import type { Prices } from '#server/providers/ai/prices.ts'
import type { BillingProvider } from '#server/providers/billing.ts'
import type { DomainChecks } from '#server/providers/domains.ts'
import type { IdentityProviders } from '#server/providers/identity.ts'
import type { Mail } from '#server/providers/mail.ts'
import type { Outbound } from '#server/providers/outbound.ts'
import type { ProjectFiles } from '#server/providers/project_files.ts'
import type { Upstream } from '#server/providers/upstream.ts'
import type { Realtime } from '#server/realtime/realtime.ts'
import type { Doors } from '#server/rest/doors.ts'
import type { Secrets } from '#server/secrets.ts'
import type { Stopping } from '#server/stopping.ts'
import type { Telemetry } from '#server/telemetry/telemetry.ts'
import type { Traffic } from '#server/traffic.ts'

/** What a request handler and a worker's task may use: made once at start, closed in order at the end. */
export type Services = {
  readonly config: Config
  readonly publicUrl: string
  readonly log: Logger
  readonly secrets: Secrets
  readonly database: Database
  readonly statements: Statements
  readonly control: Place
  readonly fleet: Fleet
  readonly projectCache: ProjectCache
  readonly sessions: Sessions
  readonly tokens: Tokens
  readonly passwords: Passwords
  readonly rateLimiter: RateLimiter
  readonly outbound: Outbound
  readonly upstream: Upstream
  readonly aiPrices: Prices
  readonly mail: Mail
  readonly domains: DomainChecks
  readonly billing: BillingProvider
  readonly traffic: Traffic
  readonly files: ProjectFiles
  readonly media: Media
  readonly identity: IdentityProviders
  readonly waker: Waker
  readonly notifier: Notifier
  readonly realtime: Realtime
  readonly graphql: GraphQL
  readonly rest: Doors
  readonly telemetry: Telemetry
  /** When the server stops: background work looks between its steps. */
  readonly stopping: Stopping
  /** The clock: real, or the one that a test harness passes. */
  readonly now: () => Date
  readonly areas: readonly Area[]
  readonly areaOf: (route: Route) => Area
  /** Throws 503 TENANT_MIGRATION_PENDING when a route's area needs a newer schema than the tenant has. */
  readonly checkMigrated: (project: CachedProject, route: Route) => void
}
