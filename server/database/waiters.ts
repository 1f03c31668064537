import type pg from 'pg'
import type { Target } from '#server/database/cluster.ts'
import type { Lease, Requester } from '#server/database/pool_types.ts'
import type { Share } from '#server/database/shares.ts'

// What the pools know of a database: its connections, and who waits for one.

export type Slot = {
  readonly client: pg.Client
  readonly target: Target
  calls: number
  idleSince: number
  dead: boolean
  closing: Promise<void> | undefined
}

export type Waiter = {
  readonly target: Target
  readonly share: Share
  readonly user: string | undefined
  readonly requester: Requester | undefined
  readonly resolve: (lease: Lease | Promise<Lease>) => void
  readonly reject: (error: Error) => void
  timer: NodeJS.Timeout | undefined
  /** Called when the requester goes. */
  gone: (() => void) | undefined
  /** The queue that holds it. */
  queue: Set<Waiter> | undefined
}

/**
 * An end user with calls under way: those that were admitted, those that wait for the user's own calls to end, and how long the
 * last calls held a connection (a moving average, in milliseconds).
 */
export type UserCalls = { admitted: number; meanMs: number; readonly waiting: Set<Waiter> }

/** One database. `busy` counts leases by kind and by group; `queues` hold waiters by kind, first come first served. */
export type Tenant = {
  open: number
  idle: Slot[]
  generation: number
  waiting: number
  readonly busy: Map<string, number>
  readonly queues: Map<string, Set<Waiter>>
  readonly users: Map<string, UserCalls>
}

/** Who waits, in whatever queue. */
export const allWaiters = ({ queues, users }: Tenant): Waiter[] =>
  [...queues.values(), ...[...users.values()].map(({ waiting }) => waiting)].flatMap((queue) => [...queue])

export const waitersOf = ({ queues, users }: Tenant, kind: Share['kind']): number => {
  let waiters = queues.get(kind)?.size ?? 0
  for (const { waiting } of users.values()) for (const { share } of waiting) if (share.kind === kind) waiters += 1
  return waiters
}
