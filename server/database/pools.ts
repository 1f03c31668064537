import pg from 'pg'
import { prepareConnection } from '#server/database/call.ts'
import type { Target } from '#server/database/cluster.ts'
import { destroy, serverGone } from '#server/database/hosts.ts'
import type { Lease, PoolLimits, PoolState, Pools } from '#server/database/pool_types.ts'
import {
  bookings,
  groupLimit,
  kindsOfControl,
  kindsOfTenant,
  leavesEnough,
  type Share,
} from '#server/database/shares.ts'
import { allWaiters, type Slot, type Tenant, type UserCalls, type Waiter, waitersOf } from '#server/database/waiters.ts'
import { refusal } from '#server/errors.ts'

export type { Lease, PoolLimits, PoolState, Pools, Requester } from '#server/database/pool_types.ts'

const retryAfter = { 'Retry-After': '2' }
const unavailable = (why: string) =>
  refusal(503, 'TENANT_UNAVAILABLE', `The database is not available: ${why}.`, null, retryAfter)
const reasons = {
  busy: 'all its connections are busy',
  gone: 'the connection of the request has closed',
} as const
const tooManyAtOnce = () =>
  refusal(429, 'RATE_LIMITED', 'Too many requests of this user are under way at once.', null, retryAfter)

const count = (counts: Map<string, number>, key: string, by: number) => counts.set(key, (counts.get(key) ?? 0) + by)

/**
 * Connections to many databases under one bound, in fair shares, so that a caller who waits (for a lock, for a slow statement)
 * does not use up the connections of other callers:
 * - a database has at most `perTenant` connections, whatever its logins, and each group of callers at most two thirds of them; one
 *   is kept for each kind of caller that has none, so that several kinds that wait leave the others theirs;
 * - one end user holds at most `perUser`, and one while that user's calls are slow: two sorts of one user would keep two cores busy;
 * - of the total, tenants leave room for the control database, and each group of callers for the other;
 * - when all are open, the connection that has been idle longest makes room;
 * - waiters are served in their order, the kind with the fewest connections and the tenant with the fewest first.
 */
export const createPools = (limits: PoolLimits): Pools => {
  const { total, idleMs = 30_000, waitMs = 3_000, callsPerConnection = 20_000, connectMs = 5_000 } = limits
  const { perUser = 2, slowMs = 100, clock = () => performance.now(), onRefused } = limits
  const forTenants = total - Math.min(limits.perTenant, Math.floor(total / 4))
  const perTenant = Math.min(limits.perTenant, forTenants)
  const mostOf = ({ mostConnections = perTenant }: Target) => Math.min(mostConnections, perTenant)
  const tenants = new Map<string, Tenant>()
  const slots = new Set<Slot>()
  const withWaiters = new Set<Tenant>()
  // leases of all tenants, without control's, by group
  const busy = new Map<string, number>()
  let open = 0
  let closed = false

  const tenantOf = (key: string): Tenant => {
    let tenant = tenants.get(key)
    if (!tenant) {
      const nothing = { busy: new Map(), queues: new Map(), users: new Map() }
      tenant = { open: 0, idle: [], generation: 0, waiting: 0, ...nothing }
      tenants.set(key, tenant)
    }
    return tenant
  }

  const forgetUnused = (key: string, tenant: Tenant) => {
    if (tenant.open === 0 && tenant.waiting === 0 && tenants.get(key) === tenant) tenants.delete(key)
  }

  const discard = (slot: Slot): Promise<void> => {
    if (slot.closing) return slot.closing
    slot.dead = true
    slots.delete(slot)
    slot.closing = slot.client.end().catch(() => undefined)
    // the place is free at once: the server sees the old connection end before it would refuse a new one
    const tenant = tenantOf(slot.target.key)
    tenant.open -= 1
    open -= 1
    tenant.idle = tenant.idle.filter((other) => other !== slot)
    forgetUnused(slot.target.key, tenant)
    return slot.closing
  }

  const leastRecentlyUsed = (): Slot | undefined => {
    let oldest: Slot | undefined
    for (const tenant of tenants.values()) {
      const slot = tenant.idle[0]
      if (slot && (!oldest || slot.idleSince < oldest.idleSince)) oldest = slot
    }
    return oldest
  }

  /** Makes room for one more connection of this tenant, or says that there is none. */
  const evictIdle = (tenant: Tenant, target: Target): boolean => {
    while (tenant.open >= mostOf(target)) {
      const other = tenant.idle[0]
      if (!other) return false
      void discard(other)
    }
    if (open >= total) {
      const oldest = leastRecentlyUsed()
      if (!oldest) return false
      void discard(oldest)
    }
    return true
  }

  /** Whether this kind of caller may hold one more connection: of the database, and of all that tenants may hold. */
  const hasShare = (tenant: Tenant, target: Target, share: Share): boolean => {
    const { group, kind } = share
    const { isControl } = target
    const most = mostOf(target)
    if ((tenant.busy.get(group) ?? 0) >= groupLimit(most)) return false
    const kinds = isControl ? kindsOfControl : kindsOfTenant
    if ((tenant.busy.get(kind) ?? 0) > 0 && !leavesEnough(most, kinds, tenant.busy, share)) return false
    if (isControl) return true
    const [front = 0, back = 0] = [busy.get('front'), busy.get('back')]
    return front + back < forTenants && (group === 'front' ? front : back) < groupLimit(forTenants)
  }

  const occupy = (tenant: Tenant, target: Target, share: Share, by: 1 | -1) => {
    count(tenant.busy, share.group, by)
    count(tenant.busy, share.kind, by)
    if (!target.isControl) count(busy, share.group, by)
  }

  const lend = (slot: Slot, share: Share, user: string | undefined): Lease => {
    const tenant = tenantOf(slot.target.key)
    const { generation } = tenant
    const since = clock()
    let returned = false
    return {
      client: slot.client,
      release(broken = false) {
        if (returned) return
        returned = true
        slot.calls += 1
        occupy(tenant, slot.target, share, -1)
        const isOutdated = slot.calls >= callsPerConnection || generation !== tenantOf(slot.target.key).generation
        if (broken || slot.dead || closed || isOutdated) void discard(slot)
        else {
          slot.idleSince = Date.now()
          tenant.idle.push(slot)
        }
        dismiss(tenant, user, clock() - since)
        serve()
      },
    }
  }

  const connect = async (target: Target, share: Share, user: string | undefined): Promise<Lease> => {
    const tenant = tenantOf(target.key)
    tenant.open += 1
    open += 1
    const client = new pg.Client({
      host: target.host,
      port: target.port,
      database: target.database,
      user: target.user,
      password: target.password,
      connectionTimeoutMillis: connectMs,
      application_name: 'trellis',
      keepAlive: true,
      ...(target.ssl === undefined ? {} : { ssl: target.ssl }),
    })
    const slot: Slot = { client, target, calls: 0, idleSince: 0, dead: false, closing: undefined }
    slots.add(slot)
    // an unhandled 'error' of a client that nobody is using would end the process
    client.on('error', () => {
      void discard(slot)
    })
    try {
      await client.connect()
      if (limits.named !== false) await prepareConnection(client)
      return lend(slot, share, user)
    } catch (error) {
      occupy(tenant, target, share, -1)
      void discard(slot)
      dismiss(tenant, user)
      serve()
      throw error
    }
  }

  const take = (target: Target, share: Share, user: string | undefined): Promise<Lease> | undefined => {
    const tenant = tenantOf(target.key)
    if (!hasShare(tenant, target, share)) return undefined
    for (let index = tenant.idle.length - 1; index >= 0; index -= 1) {
      const slot = tenant.idle[index]
      if (slot?.target.user !== target.user) continue
      tenant.idle.splice(index, 1)
      if (slot.dead) continue
      occupy(tenant, target, share, 1)
      return Promise.resolve(lend(slot, share, user))
    }
    if (!evictIdle(tenant, target)) return undefined
    occupy(tenant, target, share, 1)
    return connect(target, share, user)
  }

  /** Waits in a queue until it is served or its time is over; the time counts from the first queue. */
  const enqueue = (waiter: Waiter, queue: Set<Waiter>) => {
    const tenant = tenantOf(waiter.target.key)
    waiter.queue = queue
    queue.add(waiter)
    if (waiter.timer) return
    tenant.waiting += 1
    withWaiters.add(tenant)
    waiter.timer = setTimeout(() => giveUp(waiter, 'busy'), waitMs)
    if (!waiter.requester) return
    waiter.gone = () => giveUp(waiter, 'gone')
    waiter.requester.once('close', waiter.gone)
    // it may have gone while the caller's credentials were looked up
    if (waiter.requester.destroyed) waiter.gone()
  }

  /** Ends a wait in vain. */
  const giveUp = (waiter: Waiter, why: keyof typeof reasons | Error) => {
    const tenant = tenantOf(waiter.target.key)
    const isOwn = waiter.user !== undefined && waiter.queue === tenant.users.get(waiter.user)?.waiting
    leave(waiter)
    // one that was admitted makes room for another call of its user
    if (!isOwn) dismiss(tenant, waiter.user)
    if (why instanceof Error) waiter.reject(why)
    else {
      onRefused?.(waiter.share.kind, isOwn && why === 'busy' ? 'user' : why)
      waiter.reject(isOwn ? tooManyAtOnce() : unavailable(reasons[why]))
    }
    forgetUnused(waiter.target.key, tenant)
  }

  const leave = (waiter: Waiter) => {
    const tenant = tenantOf(waiter.target.key)
    waiter.queue?.delete(waiter)
    clearTimeout(waiter.timer)
    if (waiter.gone) waiter.requester?.off('close', waiter.gone)
    tenant.waiting -= 1
    if (tenant.waiting === 0) withWaiters.delete(tenant)
  }

  const queueOf = (tenant: Tenant, { kind }: Share): Set<Waiter> => {
    let queue = tenant.queues.get(kind)
    if (!queue) {
      queue = new Set()
      tenant.queues.set(kind, queue)
    }
    return queue
  }

  const userLimit = ({ meanMs }: UserCalls) => (meanMs > slowMs ? 1 : perUser)

  /** Counts a call of a user as admitted, or says that the user has as many as one may. */
  const admit = (tenant: Tenant, user: string | undefined): boolean => {
    if (user === undefined) return true
    const calls = tenant.users.get(user)
    if (!calls) tenant.users.set(user, { admitted: 1, meanMs: 0, waiting: new Set() })
    else if (calls.waiting.size > 0 || calls.admitted >= userLimit(calls)) return false
    else calls.admitted += 1
    return true
  }

  /** A call of a user has ended: those that wait for it and may be admitted now join the queue of their kind. */
  const dismiss = (tenant: Tenant, user: string | undefined, tookMs?: number) => {
    const calls = user === undefined ? undefined : tenant.users.get(user)
    if (user === undefined || !calls) return
    if (tookMs !== undefined) calls.meanMs += (tookMs - calls.meanMs) / 4
    calls.admitted -= 1
    for (const next of calls.waiting) {
      if (calls.admitted >= userLimit(calls)) break
      calls.waiting.delete(next)
      calls.admitted += 1
      enqueue(next, queueOf(tenant, next.share))
    }
    if (calls.admitted === 0) tenant.users.delete(user)
  }

  /** Serves one tenant's waiters as far as its shares go. */
  const serveTenant = (tenant: Tenant) => {
    const kinds = [...tenant.queues].filter(([, queue]) => queue.size > 0)
    kinds.sort(([a], [b]) => (tenant.busy.get(a) ?? 0) - (tenant.busy.get(b) ?? 0))
    for (const [, queue] of kinds) {
      for (const waiter of queue) {
        const lease = take(waiter.target, waiter.share, waiter.user)
        if (!lease) break
        leave(waiter)
        waiter.resolve(lease)
      }
    }
  }

  const serve = () => {
    if (withWaiters.size === 0) return
    for (const tenant of [...withWaiters].sort((a, b) => a.open - b.open)) serveTenant(tenant)
  }

  const sweep = setInterval(
    () => {
      const before = Date.now() - idleMs
      for (const tenant of [...tenants.values()]) {
        for (const slot of [...tenant.idle]) if (slot.idleSince < before) void discard(slot)
      }
    },
    Math.max(250, idleMs / 4),
  )
  sweep.unref()

  return {
    get open() {
      return open
    },
    lease(target, share, named = null, requester = undefined) {
      if (closed) return Promise.reject(unavailable('the server is stopping'))
      const user = named ?? undefined
      const tenant = tenantOf(target.key)
      const isAdmitted = admit(tenant, user)
      // behind those who wait already
      if (isAdmitted && !tenant.queues.get(share.kind)?.size) {
        const lease = take(target, share, user)
        if (lease) return lease
      }
      return new Promise((resolve, reject) => {
        const nothing = { timer: undefined, gone: undefined, queue: undefined }
        const waiter: Waiter = { target, share, user, requester, resolve, reject, ...nothing }
        const own = user === undefined ? undefined : tenant.users.get(user)?.waiting
        enqueue(waiter, !isAdmitted && own ? own : queueOf(tenant, share))
      })
    },
    state(mostDatabases) {
      const all = [...tenants.values()]
      const used = [...kindsOfTenant.front, ...kindsOfTenant.back, bookings.kind].map((kind) => {
        const leases = all.reduce((sum, tenant) => sum + (tenant.busy.get(kind) ?? 0), 0)
        const waiters = all.reduce((sum, tenant) => sum + waitersOf(tenant, kind), 0)
        return [kind, { leases, waiters }] as const
      })
      const busiest = [...tenants].map(([key, tenant]) => {
        const leases = (tenant.busy.get('front') ?? 0) + (tenant.busy.get('back') ?? 0)
        // a key is the cluster and the database
        return { name: key.slice(key.lastIndexOf('/') + 1), leases, waiters: tenant.waiting }
      })
      busiest.sort((a, b) => b.leases + b.waiters - (a.leases + a.waiters))
      return {
        open,
        idle: all.reduce((sum, tenant) => sum + tenant.idle.length, 0),
        callers: Object.fromEntries(used) as PoolState['callers'],
        busiest: busiest.slice(0, mostDatabases),
      }
    },
    async forget(databaseKey) {
      const tenant = tenants.get(databaseKey)
      if (!tenant) return
      tenant.generation += 1
      await Promise.all(tenant.idle.slice().map(discard))
    },
    abandon(isGone) {
      // first: they would connect there as soon as one is cut
      for (const tenant of [...withWaiters])
        for (const waiter of allWaiters(tenant)) if (isGone(waiter.target)) giveUp(waiter, serverGone())
      for (const slot of [...slots]) {
        if (!isGone(slot.target)) continue
        // the error discards it, or fails the connect; an orderly end beside it would hide the error from both
        destroy(slot.client)
      }
    },
    async close() {
      closed = true
      clearInterval(sweep)
      for (const tenant of [...withWaiters]) {
        for (const waiter of allWaiters(tenant)) {
          leave(waiter)
          waiter.reject(unavailable('the server is stopping'))
        }
      }
      const all = [...tenants.values()].flatMap((tenant) => tenant.idle.slice())
      await Promise.all(all.map(discard))
    },
  }
}
