import type pg from 'pg'
import type { Target } from '#server/database/cluster.ts'
import type { Share } from '#server/database/shares.ts'

/** The client socket of a call. When it has closed, the result of the call is not needed any more. */
export type Requester = {
  readonly destroyed: boolean
  once(event: 'close', listener: () => void): unknown
  off(event: 'close', listener: () => void): unknown
}

export type Lease = { readonly client: pg.Client; release(broken?: boolean): void }

export type Pools = {
  /**
   * A connection of this login, within `waitMs`, else 503 TENANT_UNAVAILABLE; 429 RATE_LIMITED for an end user whose own calls
   * use all that one user may. Who waits gives the place up at once when its requester has gone.
   */
  lease(target: Target, share: Share, user?: string | null, requester?: Requester): Promise<Lease>
  /** Closes idle connections to a database at once and the busy ones when they are given back. */
  forget(databaseKey: string): Promise<void>
  /** Cuts every connection to servers that are gone, busy ones too: their calls fail at once. */
  abandon(isGone: (target: Target) => boolean): void
  readonly open: number
  /** What the pools hold now, with the databases that use most connections, at most so many of them. */
  state(mostDatabases: number): PoolState
  close(): Promise<void>
}

/** Leases and waiting calls. */
export type Use = { readonly leases: number; readonly waiters: number }

export type PoolState = {
  readonly open: number
  readonly idle: number
  /** By kind of caller, of all databases. */
  readonly callers: Readonly<Record<Share['kind'], Use>>
  readonly busiest: readonly (Use & { readonly name: string })[]
}

export type PoolLimits = {
  readonly total: number
  readonly perTenant: number
  /** Calls of one end user that may hold a connection at once. */
  readonly perUser?: number
  /** A user whose calls hold a connection longer than this, on average, has one at a time. */
  readonly slowMs?: number
  /** Milliseconds of a clock that never goes back. */
  readonly clock?: () => number
  readonly idleMs?: number
  readonly waitMs?: number
  readonly callsPerConnection?: number
  readonly connectMs?: number
  readonly named?: boolean
  /** Called for each call that gets no connection: it waited in vain, its user has too many under way, or its requester has gone. */
  readonly onRefused?: (kind: Share['kind'], reason: 'busy' | 'user' | 'gone') => void
}
