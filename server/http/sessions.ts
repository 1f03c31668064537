import { createCache } from '#server/http/cache.ts'
import type { DeveloperCredential, ServiceAccount } from '#server/http/credentials.ts'
import type { SessionClaims } from '#server/http/tokens.ts'

/** Caches of verified credentials, for at most 30 seconds; logout and deactivation evict them sooner. */
export type Sessions = ReturnType<typeof createSessions>

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
