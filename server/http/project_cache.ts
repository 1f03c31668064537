import type { Cluster, Place } from '#server/database/cluster.ts'
import { type Database, dataOf } from '#server/database/database.ts'
import { type CacheState, createCache } from '#server/http/cache.ts'
import { sha256 } from '#server/secrets.ts'

export type SigningKey = {
  readonly keyId: string
  readonly publicJwk: JsonWebKey
  readonly sealed: string
  /** Milliseconds of the epoch. */
  readonly useFrom: number
}

/** A project in the cache: where its database is and how its tokens are signed. */
export type CachedProject = {
  readonly projectId: string
  readonly organizationId: string
  readonly environment: 'development' | 'production'
  /** Sessions for tests that began before it have ended; null outside of development: all of them have. */
  readonly developmentSince: string | null
  /** Nobody who owns it has verified their address. */
  readonly isSandbox: boolean
  readonly effectiveTier: 'free' | 'pro' | 'enterprise'
  /** The spend ceiling does not bind it. */
  readonly isComped: boolean
  readonly userSearchEnabled: boolean
  readonly graphqlEnabled: boolean
  readonly restEnabled: boolean
  /** Whether a client key without a session reads public collections and files through the REST access. */
  readonly anonymousReads: boolean
  /** The keys of session tokens, newest first; the newest whose time has come signs. */
  readonly signing: readonly SigningKey[]
  /** Null while the database is being created, and while it is held. */
  readonly place: Place | null
  readonly hold: Hold | null
  readonly schemaVersion: string
  readonly contentHash: string
  /** Whether its database has yet to be brought to what new projects are made of. */
  readonly isBehind: boolean
}

/** Why a project is not served although it has a database. */
export type Hold = 'paused' | 'moving'

type JsonWebKey = Record<string, string>

export type CachedKey = {
  readonly keyId: string
  readonly keyType: 'client' | 'server'
  readonly project: CachedProject
  /** A key that was rotated, in its last minute: no copy of it is kept. */
  readonly expiresSoon: boolean
}

type CachedProjectRow = {
  project_id: string
  organization_id: string
  environment: CachedProject['environment']
  development_since: string | null
  is_sandbox: boolean
  effective_tier: CachedProject['effectiveTier']
  comped: boolean
  user_search_enabled: boolean
  graphql_enabled: boolean
  rest_enabled: boolean
  anonymous_reads: boolean
  signing_keys: { key_id: string; public_jwk: JsonWebKey; sealed: string; use_from: string }[]
  tenant: {
    status: string
    cluster_id: string
    database_name: string
    schema_version: string
    content_hash: string
    is_behind: boolean
    hold: Hold | null
    most_connections: number | null
  } | null
}

type CachedKeyRow = {
  key_id: string
  key_type: CachedKey['keyType']
  project: CachedProjectRow
  expires_soon: boolean
}

type TenantPlace = Pick<NonNullable<CachedProjectRow['tenant']>, 'database_name' | 'most_connections'>

export type ProjectCache = {
  /** The project of an API key, by the key's text; null when it is unknown or inactive. */
  byKey(key: string): Promise<CachedKey | null>
  byProject(projectId: string): Promise<CachedProject | null>
  /** Invalidates the entries of a change: `key:<hash>` or `project:<id>`. */
  drop(changed: string): void
  clear(): void
  /** By name, for metrics. */
  caches(): Readonly<Record<string, CacheState>>
}

declare module '#server/services.ts' {
  interface Services {
    readonly projectCache: ProjectCache
  }
}

/** One that is paused is asked for as often as before; one that moves is back in a moment. */
const isKept = ({ place, hold }: CachedProject) => place !== null || hold === 'paused'

/** Loads projects from control and caches them for at most 30 seconds; a project that is not ready is never cached. */
export const createProjectCache = (
  database: Database,
  control: Place,
  clusterOf: (id: string) => Promise<Cluster | null>,
): ProjectCache => {
  const keys = createCache<CachedKey>(20_000, 30_000)
  const projects = createCache<CachedProject>(20_000, 30_000)

  const projectOf = async (row: CachedProjectRow): Promise<CachedProject> => {
    const ready = row.tenant?.status === 'ready' ? row.tenant : null
    const served = ready && !ready.hold ? ready : null
    const cluster = served ? await clusterOf(served.cluster_id) : null
    return {
      projectId: row.project_id,
      organizationId: row.organization_id,
      environment: row.environment,
      developmentSince: row.development_since ?? null,
      isSandbox: row.is_sandbox ?? false,
      effectiveTier: row.effective_tier,
      isComped: row.comped,
      userSearchEnabled: row.user_search_enabled,
      graphqlEnabled: row.graphql_enabled,
      restEnabled: row.rest_enabled,
      anonymousReads: row.anonymous_reads,
      signing: row.signing_keys.map(({ key_id, public_jwk, sealed, use_from }) => ({
        keyId: key_id,
        publicJwk: public_jwk,
        sealed,
        useFrom: Date.parse(use_from),
      })),
      place: served && cluster ? placeOn(cluster, served) : null,
      hold: ready?.hold ?? null,
      schemaVersion: ready?.schema_version ?? '',
      contentHash: ready?.content_hash ?? '',
      isBehind: ready?.is_behind ?? false,
    }
  }
  const placeOn = (cluster: Cluster, { database_name, most_connections }: TenantPlace): Place => ({
    cluster,
    database: database_name,
    kind: 'tenant',
    ...(most_connections === null ? {} : { mostConnections: most_connections }),
  })
  const ask = async <T>(name: string, args: Record<string, string>) =>
    dataOf<T | null>(await database.call(control, 'control_auth', { caller: 'edge' }, name, args))

  return {
    byKey(key) {
      const hash = sha256(key)
      const load = async (): Promise<CachedKey | null> => {
        const row = await ask<CachedKeyRow>('edge_key', { key_hash: hash })
        if (!row) return null
        return {
          keyId: row.key_id,
          keyType: row.key_type,
          project: await projectOf(row.project),
          expiresSoon: row.expires_soon,
        }
      }
      return keys.get(hash, load, (entry) => isKept(entry.project) && !entry.expiresSoon)
    },
    byProject(projectId) {
      const load = async (): Promise<CachedProject | null> => {
        const row = await ask<CachedProjectRow>('edge_project', { project_id: projectId })
        return row ? projectOf(row) : null
      }
      return projects.get(projectId, load, isKept)
    },
    drop(changed) {
      const [kind, id = ''] = changed.split(':')
      if (kind === 'key') keys.drop(id)
      if (kind === 'project') {
        projects.drop(id)
        keys.dropWhere((entry) => entry.project.projectId === id)
      }
    },
    clear() {
      keys.clear()
      projects.clear()
    },
    caches: () => ({ keys: keys.state, projects: projects.state }),
  }
}
