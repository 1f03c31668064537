// The database call without HTTP: from the pools of the program, and in sequence as most backends make it.
import { Session } from 'node:inspector/promises'
import pg from 'pg'
import { pino } from 'pino'
import { type Claims, runOneSync, type Statement } from '#server/database/call.ts'
import type { Place, Target } from '#server/database/cluster.ts'
import { type Cluster, targetOf } from '#server/database/cluster.ts'
import { createDatabase, type Database } from '#server/database/database.ts'
import { shareOf } from '#server/database/shares.ts'
import { createSecrets } from '#server/secrets.ts'
import { answer } from './child.ts'
import { percentile } from './numbers.ts'

export type Frame = { readonly functionName: string; readonly url: string; readonly lineNumber: number }

export type Profile = {
  readonly nodes: readonly { readonly id: number; readonly callFrame: Frame }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

export type Way =
  /** database.call: an api function in one Sync. */
  | { readonly kind: 'call'; readonly name: string; readonly args: Record<string, unknown>; readonly readOnly: boolean }
  /** Any statement in one Sync, over the same pools. */
  | { readonly kind: 'one sync'; readonly statement: Statement }
  /** BEGIN, set_config, the statement, COMMIT: each waits for the one before. */
  | { readonly kind: 'sequence'; readonly setup: Statement; readonly statement: Statement }

export type CallerCommand =
  | {
      readonly kind: 'begin'
      readonly cluster: Cluster
      readonly database: string
      readonly secretsKey: string
      readonly projectId: string
      readonly users: readonly { readonly userId: string; readonly sessionId: string }[]
    }
  | { readonly kind: 'statements' }
  /** `profile` answers where the time of this process went instead of how much it did. */
  | {
      readonly kind: 'run' | 'profile'
      readonly way: Way
      readonly concurrency: number
      readonly seconds: number
    }

export type Called = {
  readonly calls: number
  readonly perSecond: number
  /** Microseconds of this process's CPU for each call. */
  readonly cpu: number
  /** Milliseconds. */
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

type Ready = {
  readonly database: Database
  readonly place: Place
  readonly target: Target
  readonly claims: readonly Omit<Claims, 'role'>[]
  /** As many connections as the program gives to one tenant. */
  readonly pool: pg.Pool
}

/** As many connections as each contestant has; of 17, a kind of caller alone may use ten. */
const connections = 10
const limits = { total: 80, perTenant: 17, perUser: connections }

const begin = (command: Extract<CallerCommand, { kind: 'begin' }>): Ready => {
  const { cluster, database: name, secretsKey, projectId, users } = command
  const secrets = createSecrets(secretsKey)
  const database = createDatabase({ secrets, limits, timeoutMs: 5000, log: pino({ level: 'warn' }) })
  const place: Place = { cluster, database: name, kind: 'tenant' }
  const target = targetOf(cluster, name, 'app_user', secrets)
  const { host, port, user, password } = target
  const pool = new pg.Pool({ host, port, user, password, database: name, max: connections })
  pool.on('error', () => undefined)
  return {
    database,
    place,
    target,
    claims: users.map((claimed) => ({ caller: 'user', ...claimed, projectId })),
    pool,
  }
}

const once = (way: Way, ready: Ready, index: number): Promise<unknown> => {
  const claims = ready.claims[index % ready.claims.length] ?? {}
  if (way.kind === 'call')
    return ready.database.call(ready.place, 'app_user', claims, way.name, way.args, { readOnly: way.readOnly })
  if (way.kind === 'one sync') return oneSync(way.statement, ready, claims)
  return inSequence(way.setup, way.statement, ready.pool)
}

const oneSync = async (statement: Statement, ready: Ready, claims: Omit<Claims, 'role'>) => {
  const lease = await ready.database.pools.lease(ready.target, shareOf('app_user', 'user'))
  try {
    const options = { readOnly: true, timeoutMs: 5000, clock: null }
    return await runOneSync(lease.client, { ...claims, role: 'app_user' }, statement, options)
  } finally {
    lease.release()
  }
}

const inSequence = async (setup: Statement, statement: Statement, pool: pg.Pool) => {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query({ ...setup, values: [...setup.values] })
    const { rows } = await client.query({ ...statement, values: [...statement.values], rowMode: 'array' })
    await client.query('commit')
    return rows
  } finally {
    client.release()
  }
}

const run = async (way: Way, concurrency: number, seconds: number, ready: Ready): Promise<Called> => {
  const latencies: number[] = []
  const cpu = process.cpuUsage()
  const began = performance.now()
  const until = began + seconds * 1000
  await Promise.all(
    Array.from({ length: concurrency }, async (_, index) => {
      for (let now = performance.now(); now < until; ) {
        await once(way, ready, index)
        const next = performance.now()
        latencies.push(next - now)
        now = next
      }
    }),
  )
  const { user, system } = process.cpuUsage(cpu)
  return {
    calls: latencies.length,
    perSecond: (latencies.length * 1000) / (performance.now() - began),
    cpu: (user + system) / latencies.length,
    p50: percentile(latencies, 0.5),
    p95: percentile(latencies, 0.95),
    p99: percentile(latencies, 0.99),
  }
}

/** The texts that the program itself prepared, so that the contestants run the very same ones. */
const statements = async ({ database, place, target, claims }: Ready): Promise<Record<string, string>> => {
  await database.call(place, 'app_user', claims[0] ?? {}, 'me_get', {}, { readOnly: true })
  const lease = await database.pools.lease(target, shareOf('app_user', 'user'))
  try {
    const { rows } = await lease.client.query<{ name: string; statement: string }>(
      'select name, statement from pg_prepared_statements',
    )
    return Object.fromEntries(rows.map(({ name, statement }) => [name, statement]))
  } finally {
    lease.release()
  }
}

const profile = async (work: () => Promise<unknown>): Promise<Profile> => {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.start')
  await work()
  const { profile } = await session.post('Profiler.stop')
  session.disconnect()
  return profile as Profile
}

let ready: Ready | undefined

answer(async (command: CallerCommand) => {
  if (command.kind === 'begin') {
    ready = begin(command)
    return true
  }
  if (!ready) throw new Error('not begun')
  if (command.kind === 'statements') return statements(ready)
  const { kind, way, concurrency, seconds } = command
  if (kind === 'run') return run(way, concurrency, seconds, ready)
  return profile(() => run(way, concurrency, seconds, ready as Ready))
})
