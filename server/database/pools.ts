import pg from 'pg'
import { prepareConnection } from '#server/database/call.ts'
import { refusal } from '#server/errors.ts'

/** How one login reaches one database. */
export type Target = {
  readonly key: string
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password: string
  readonly ssl?: pg.ClientConfig['ssl'] | undefined
}

export type Lease = { readonly client: pg.Client; release(broken?: boolean): void }

export type Pools = {
  /** A connection of this login, within `waitMs`, else 503 TENANT_UNAVAILABLE. */
  lease(target: Target): Promise<Lease>
  /** Closes idle connections to a database at once and the busy ones when they are given back. */
  forget(databaseKey: string): Promise<void>
  readonly open: number
  close(): Promise<void>
}

type Slot = {
  readonly client: pg.Client
  readonly target: Target
  calls: number
  idleSince: number
  dead: boolean
  closing: Promise<void> | undefined
}

type Tenant = { open: number; idle: Slot[]; generation: number }
type Waiter = { target: Target; resolve: (lease: Lease) => void; reject: (error: Error) => void; timer: NodeJS.Timeout }

export type PoolLimits = {
  readonly total: number
  readonly perTenant: number
  readonly idleMs?: number
  readonly waitMs?: number
  readonly callsPerConnection?: number
  readonly connectMs?: number
  readonly named?: boolean
}

const unavailable = (why: string) =>
  refusal(503, 'TENANT_UNAVAILABLE', `The database is not available: ${why}.`, null, { 'Retry-After': '2' })

/**
 * Connections to many databases under one bound. A tenant holds at most `perTenant` of them whatever its logins, so a
 * slow one cannot take the others' share; when all are open, the one that has been idle longest makes room; and of those
 * who wait, the tenant with the fewest connections is served first.
 */
export const createPools = (limits: PoolLimits): Pools => {
  const { total, perTenant, idleMs = 30_000, waitMs = 3_000, callsPerConnection = 20_000, connectMs = 5_000 } = limits
  const tenants = new Map<string, Tenant>()
  const waiting: Waiter[] = []
  let open = 0
  let closed = false

  const tenantOf = (key: string): Tenant => {
    let tenant = tenants.get(key)
    if (!tenant) {
      tenant = { open: 0, idle: [], generation: 0 }
      tenants.set(key, tenant)
    }
    return tenant
  }

  const discard = (slot: Slot): Promise<void> => {
    if (slot.closing) return slot.closing
    slot.dead = true
    slot.closing = slot.client.end().catch(() => undefined)
    // the place is free at once: the server sees the old connection end before it would refuse a new one
    const tenant = tenantOf(slot.target.key)
    tenant.open -= 1
    open -= 1
    tenant.idle = tenant.idle.filter((other) => other !== slot)
    if (tenant.open === 0 && !waiting.some((waiter) => waiter.target.key === slot.target.key)) {
      tenants.delete(slot.target.key)
    }
    return slot.closing
  }

  const longestIdle = (): Slot | undefined => {
    let oldest: Slot | undefined
    for (const tenant of tenants.values()) {
      const slot = tenant.idle[0]
      if (slot && (!oldest || slot.idleSince < oldest.idleSince)) oldest = slot
    }
    return oldest
  }

  /** Makes room for one more connection of this tenant, or says that there is none. */
  const makeRoom = (tenant: Tenant): boolean => {
    if (tenant.open >= perTenant) {
      const other = tenant.idle[0]
      if (!other) return false
      void discard(other)
    }
    if (open >= total) {
      const oldest = longestIdle()
      if (!oldest) return false
      void discard(oldest)
    }
    return true
  }

  const lend = (slot: Slot): Lease => {
    const generation = tenantOf(slot.target.key).generation
    let returned = false
    return {
      client: slot.client,
      release(broken = false) {
        if (returned) return
        returned = true
        slot.calls += 1
        const isOutdated = slot.calls >= callsPerConnection || generation !== tenantOf(slot.target.key).generation
        if (broken || slot.dead || closed || isOutdated) void discard(slot)
        else {
          slot.idleSince = Date.now()
          tenantOf(slot.target.key).idle.push(slot)
        }
        serve()
      },
    }
  }

  const connect = async (target: Target): Promise<Lease> => {
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
    // an unhandled 'error' of a client that nobody is using would end the process
    client.on('error', () => {
      void discard(slot)
    })
    try {
      await client.connect()
      if (limits.named !== false) await prepareConnection(client)
      return lend(slot)
    } catch (error) {
      void discard(slot)
      serve()
      throw error
    }
  }

  const take = (target: Target): Promise<Lease> | undefined => {
    const tenant = tenantOf(target.key)
    for (let index = tenant.idle.length - 1; index >= 0; index -= 1) {
      const slot = tenant.idle[index]
      if (slot?.target.user !== target.user) continue
      tenant.idle.splice(index, 1)
      if (!slot.dead) return Promise.resolve(lend(slot))
    }
    return makeRoom(tenant) ? connect(target) : undefined
  }

  const serve = () => {
    if (waiting.length === 0) return
    const fairest = [...waiting].sort((a, b) => tenantOf(a.target.key).open - tenantOf(b.target.key).open)
    for (const waiter of fairest) {
      const lease = take(waiter.target)
      if (!lease) continue
      waiting.splice(waiting.indexOf(waiter), 1)
      clearTimeout(waiter.timer)
      lease.then(waiter.resolve, waiter.reject)
    }
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
    lease(target) {
      if (closed) return Promise.reject(unavailable('the server is stopping'))
      const lease = take(target)
      if (lease) return lease
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.splice(waiting.indexOf(waiter), 1)
          reject(unavailable('all its connections are busy'))
        }, waitMs)
        const waiter: Waiter = { target, resolve, reject, timer }
        waiting.push(waiter)
      })
    },
    async forget(databaseKey) {
      const tenant = tenants.get(databaseKey)
      if (!tenant) return
      tenant.generation += 1
      await Promise.all(tenant.idle.slice().map(discard))
    },
    async close() {
      closed = true
      clearInterval(sweep)
      for (const waiter of waiting.splice(0)) {
        clearTimeout(waiter.timer)
        waiter.reject(unavailable('the server is stopping'))
      }
      const all = [...tenants.values()].flatMap((tenant) => tenant.idle.slice())
      await Promise.all(all.map(discard))
    },
  }
}
