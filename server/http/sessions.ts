import { createCache } from '#server/http/cache.ts'
import type { OrganizationRole } from '#server/http/ranks.ts'
import type { SessionClaims } from '#server/http/tokens.ts'

export type ServiceAccount = { readonly id: string; readonly name: string }

/** A personal access token as a request presents it. */
export type HeldToken = {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
  /** Null: every project. */
  readonly projectIds: readonly string[] | null
}

/** Who an operator token acts for. Its own id stands in the place of the developer's: it is nobody's session. */
export type HeldOperator = {
  readonly organizationId: string
  readonly serviceAccountId: string | null
  readonly developerId: string | null
}

/** A verified Bearer of /v1/admin: a session's access token, a personal access token, or an operator token. */
export type DeveloperCredential = {
  readonly developerId: string
  /** The session id; null for a token. */
  readonly sid: string | null
  readonly token: HeldToken | null
  readonly operator?: HeldOperator
  /** Unix seconds; null if it never expires. */
  readonly expiresAt: number | null
  /** The developer's role in each organization, by its id. */
  readonly roles: Roles
}

export type Roles = Readonly<Record<string, OrganizationRole>>

/** Caches of verified credentials, for at most 30 seconds; logout and deactivation evict them sooner. */
export type Sessions = ReturnType<typeof createSessions>

declare module '#server/services.ts' {
  interface Services {
    readonly sessions: Sessions
  }
}

export const createSessions = () => {
  /** With since when its project was in development when it was looked up: that decides whether a session for tests lives. */
  const users = createCache<SessionClaims & { projectId: string; testsSince?: string | null }>(50_000, 30_000)
  const developers = createCache<DeveloperCredential>(10_000, 30_000)
  /** Verifying a signature is the most expensive part of a request: a verified token is cached until it expires. */
  const signatures = createCache<SessionClaims & { projectId: string }>(50_000, 3600_000)
  const serviceAccounts = createCache<ServiceAccount>(10_000, 30_000)
  const onBehalf = createCache<{ userId: string; isBanned: boolean }>(50_000, 30_000)
  return {
    users,
    developers,
    serviceAccounts,
    signatures,
    onBehalf,
    /** By name, for metrics. */
    caches: () => ({
      users: users.state,
      developers: developers.state,
      signatures: signatures.state,
      service_accounts: serviceAccounts.state,
      on_behalf: onBehalf.state,
    }),
    clear() {
      users.clear()
      developers.clear()
      serviceAccounts.clear()
      onBehalf.clear()
    },
    drop(changed: string) {
      const [kind, id = ''] = changed.split(':')
      if (kind === 'session') {
        users.dropWhere((claims) => claims.sid === id)
        developers.dropWhere((held) => held.sid === id)
      }
      if (kind === 'service_account' || kind === 'service_account_key')
        serviceAccounts.dropWhere((known) => known.id === id)
      if (kind === 'service_account') developers.dropWhere((held) => held.operator?.serviceAccountId === id)
      if (kind === 'token' || kind === 'operator_token') developers.dropWhere((held) => held.token?.id === id)
      if (kind === 'developer') {
        developers.dropWhere((held) => held.developerId === id || held.operator?.developerId === id)
      }
      // the database of a project was lost or replaced: drops all of its users from the cache
      if (kind === 'tenant') {
        users.dropWhere((claims) => claims.projectId === id)
        onBehalf.clear()
      }
      if (kind === 'user') {
        users.dropWhere((claims) => claims.userId === id)
        onBehalf.dropWhere((known) => known.userId === id)
      }
    },
  }
}
