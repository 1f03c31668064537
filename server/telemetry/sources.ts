import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Meter, Observable, ObservableResult } from '@opentelemetry/api'
import type { Logger } from 'pino'
import type { Place } from '#server/database/cluster.ts'
import { type Database, dataOf } from '#server/database/database.ts'
import type { PoolState } from '#server/database/pools.ts'
import type { CacheState } from '#server/http/cache.ts'
import { type InstrumentKey, instruments } from '#server/telemetry/instruments.ts'

/** How many tenants have series of their own: a metric for each of thousands would cost more than what it measures. */
export const mostTenants = 10
const mostRows = 10_000

/** What metrics are read from when they are collected. */
export type Sources = {
  readonly database: Database
  readonly control: Place
  readonly maxConnections: number
  readonly caches: () => Readonly<Record<string, CacheState>>
  readonly contentHash: () => string
  readonly placeOf: (projectId: string) => Promise<Place | null>
  readonly log: Logger
}

type Task = { readonly task: string; readonly ready: number; readonly failed: number; readonly oldest_seconds: number }
type Counts = {
  readonly queue: { readonly tasks: readonly Task[]; readonly drains: readonly string[] }
  readonly postgres: Readonly<
    Record<
      | 'backends'
      | 'connections'
      | 'commits'
      | 'rollbacks'
      | 'blocks_read'
      | 'blocks_hit'
      | 'deadlocks'
      | 'temporary_bytes'
      | 'transaction_age',
      number
    >
  >
  readonly projects: Readonly<Record<string, number>>
  readonly behind: { readonly older: number; readonly failed: number }
}
type Outbox = { readonly rows: number; readonly oldest_seconds: number }

const settings = { readOnly: true, timeoutMs: 2000, background: true }
const noProjects = { provisioning: 0, ready: 0, failed: 0 }

/** The queues of the tenants that wait longest; a tenant that cannot be asked is left out. */
const outboxesOf = async ({ database, placeOf }: Sources, projectIds: readonly string[]) => {
  const asked = projectIds.map(async (projectId) => {
    const place = await placeOf(projectId)
    if (!place) return null
    const claims = { caller: 'worker', projectId }
    return {
      name: place.database,
      ...dataOf<Outbox>(await database.call(place, 'app_worker', claims, 'outbox_due', { most: mostRows }, settings)),
    }
  })
  const found = await Promise.all(asked.map((each) => each.catch(() => null)))
  return found.filter((each) => each !== null)
}

/** The series of the metrics that are read, and not reported as they happen. */
export const observe = (meter: Meter, sources: Sources): { close(): void } => {
  const { database, control, log } = sources
  const made: Observable[] = []
  const observed = <K extends InstrumentKey>(...keys: K[]) =>
    Object.fromEntries(
      keys.map((key) => {
        const { kind, name, unit, description } = instruments[key]
        const options = { unit, description }
        const one =
          kind === 'counter' ? meter.createObservableCounter(name, options) : meter.createObservableGauge(name, options)
        made.push(one)
        return [key, one]
      }),
    ) as Record<K, Observable>

  const pool = observed('connectionsOpen', 'connectionsMost', 'leases', 'waiters', 'busiestLeases', 'busiestWaiters')
  const caches = observed('cacheHits', 'cacheMisses', 'cacheEntries')
  const queue = observed(
    'jobsReady',
    'jobsOldest',
    'jobsFailed',
    'outboxDue',
    'outboxOldest',
    'projects',
    'projectsBehind',
  )
  const postgres = observed(
    'postgresBackends',
    'postgresMost',
    'postgresCommits',
    'postgresRollbacks',
    'postgresBlocks',
    'postgresDeadlocks',
    'postgresTemporary',
    'postgresFreeze',
  )
  const own = observed('loopDelay', 'loopUse', 'processCpu', 'processMemory', 'heapUsed')

  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  let before = performance.eventLoopUtilization()

  const observeOwn = (result: Result) => {
    // the histogram counts the resolution, too
    for (const [quantile, percentile] of [
      ['0.5', 50],
      ['0.99', 99],
      ['1', 100],
    ] as const)
      result.observe(own.loopDelay, Math.max(0, delay.percentile(percentile) / 1e9 - 0.02), { quantile })
    delay.reset()
    const now = performance.eventLoopUtilization()
    result.observe(own.loopUse, performance.eventLoopUtilization(now, before).utilization)
    before = now
    const { user, system } = process.cpuUsage()
    result.observe(own.processCpu, user / 1e6, { 'cpu.mode': 'user' })
    result.observe(own.processCpu, system / 1e6, { 'cpu.mode': 'system' })
    result.observe(own.processMemory, process.memoryUsage.rss())
    result.observe(own.heapUsed, getHeapStatistics().used_heap_size)
  }

  const observePools = (result: Result) => {
    const state: PoolState = database.pools.state(mostTenants)
    result.observe(pool.connectionsMost, sources.maxConnections)
    result.observe(pool.connectionsOpen, state.open - state.idle, { state: 'used' })
    result.observe(pool.connectionsOpen, state.idle, { state: 'idle' })
    for (const [caller, { leases, waiters }] of Object.entries(state.callers)) {
      result.observe(pool.leases, leases, { 'trellis.caller': caller })
      result.observe(pool.waiters, waiters, { 'trellis.caller': caller })
    }
    // while none is in use there is a series that names none
    const busiest = state.busiest.length > 0 ? state.busiest : [{ name: '', leases: 0, waiters: 0 }]
    for (const { name, leases, waiters } of busiest) {
      result.observe(pool.busiestLeases, leases, { 'trellis.tenant': name })
      result.observe(pool.busiestWaiters, waiters, { 'trellis.tenant': name })
    }
  }

  const observeCaches = (result: Result) => {
    for (const [cache, { hits, misses, entries }] of Object.entries(sources.caches())) {
      result.observe(caches.cacheHits, hits, { cache })
      result.observe(caches.cacheMisses, misses, { cache })
      result.observe(caches.cacheEntries, entries, { cache })
    }
  }

  const observePostgres = (result: Result, counts: Counts['postgres']) => {
    result.observe(postgres.postgresBackends, counts.backends)
    result.observe(postgres.postgresMost, counts.connections)
    result.observe(postgres.postgresCommits, counts.commits)
    result.observe(postgres.postgresRollbacks, counts.rollbacks)
    result.observe(postgres.postgresBlocks, counts.blocks_read, { source: 'disk' })
    result.observe(postgres.postgresBlocks, counts.blocks_hit, { source: 'buffers' })
    result.observe(postgres.postgresDeadlocks, counts.deadlocks)
    result.observe(postgres.postgresTemporary, counts.temporary_bytes)
    result.observe(postgres.postgresFreeze, counts.transaction_age)
  }

  const observeInstallation = async (result: Result) => {
    const args = { content_hash: sources.contentHash(), most: mostTenants }
    const reply = await database.call(control, 'control_worker', { caller: 'worker' }, 'metrics', args, settings)
    const counts = dataOf<Counts>(reply)
    observePostgres(result, counts.postgres)
    const none = { task: '', ready: 0, failed: 0, oldest_seconds: 0 }
    for (const { task, ready, failed, oldest_seconds } of counts.queue.tasks.length > 0 ? counts.queue.tasks : [none]) {
      result.observe(queue.jobsReady, ready, { task })
      result.observe(queue.jobsFailed, failed, { task })
      result.observe(queue.jobsOldest, oldest_seconds, { task })
    }
    for (const [status, count] of Object.entries({ ...noProjects, ...counts.projects }))
      result.observe(queue.projects, count, { status })
    for (const [state, count] of Object.entries(counts.behind)) result.observe(queue.projectsBehind, count, { state })
    const outboxes = await outboxesOf(sources, counts.queue.drains)
    const nothing = { name: '', rows: 0, oldest_seconds: 0 }
    for (const { name, rows, oldest_seconds } of outboxes.length > 0 ? outboxes : [nothing]) {
      result.observe(queue.outboxDue, rows, { 'trellis.tenant': name })
      result.observe(queue.outboxOldest, oldest_seconds, { 'trellis.tenant': name })
    }
  }

  const collect = async (result: Result) => {
    observeOwn(result)
    observePools(result)
    observeCaches(result)
    // without the control database what this process knows by itself is still exported, and the series of the database end
    await observeInstallation(result).catch((error: Error) =>
      log.warn({ error: error.message }, 'metrics of the installation were not read'),
    )
  }
  meter.addBatchObservableCallback(collect, made)
  return {
    close() {
      delay.disable()
      meter.removeBatchObservableCallback(collect, made)
    },
  }
}

type Result = {
  observe(metric: Observable, value: number, attributes?: Parameters<ObservableResult['observe']>[1]): void
}
