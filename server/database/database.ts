import type pg from 'pg'
import type { Logger } from 'pino'
import { type Claims, runOneSync, type Statement } from '#server/database/call.ts'
import { callSpan, endFailed, leaseSpan } from '#server/database/call_span.ts'
import { cancelStatement } from '#server/database/cancel.ts'
import type { Place, Target } from '#server/database/cluster.ts'
import { learnLogins, type Role, targetOf } from '#server/database/cluster.ts'
import { type DatabaseError, failureOf, refusalOfComment, sentenceOfUnavailable } from '#server/database/failures.ts'
import { onMoved } from '#server/database/hosts.ts'
import { createPools, type PoolLimits, type Pools, type Requester } from '#server/database/pools.ts'
import type { Replica } from '#server/database/replica.ts'
import type { TakeRow } from '#server/database/row_interceptor.ts'
import { bookings, shareOf } from '#server/database/shares.ts'
import type { Arguments } from '#server/database/statements.ts'
import { callStatement } from '#server/database/statements.ts'
import { type ApiError, refusal } from '#server/errors.ts'
import { exactJson } from '#server/json/lossless_json.ts'
import { createLru } from '#server/lru.ts'
import type { Secrets } from '#server/secrets.ts'
import { type Measures, noMeasures } from '#server/telemetry/measures.ts'

/** What an api function answered. `body` is the JSON envelope as it is sent. */
export type Reply = {
  readonly status: number
  readonly body: string
  readonly headers: Record<string, string> | null
  /** When this database next has due work, if the call made some. */
  readonly dueAt: string | null
  /** Cached credentials to drop: `key:<hash>`, `session:<id>`, `user:<id>`, `project:<id>`, `token:<id>`, `developer:<id>`. */
  readonly changed: readonly string[]
  readonly milliseconds: number
}

/** Lines as their bytes came, which are not read, and where to go on, null after the last. */
export type Lines = Pick<Reply, 'milliseconds' | 'dueAt' | 'changed'> & {
  readonly lines: Buffer
  readonly next_cursor: string | null
}

export type CallSettings = {
  readonly readOnly?: boolean
  readonly timeoutMs?: number
  /** Code of an answer 500, and of bad values that only Postgres noticed. */
  readonly failure?: string
  readonly invalid?: string
  /** How often a call that lost a deadlock is made again: it was undone whole, and is safe to make again. */
  readonly retries?: number
  /** May be answered by a replica, some seconds late. It reads only. */
  readonly stale?: boolean
  /** A step of background work: safe to cancel at any time and to run again. */
  readonly background?: boolean
  /**
   * Is given the answer before its transaction is committed, for work beside the commit. Of it nothing may reach a client before the call has resolved.
   */
  readonly beforeCommit?: (reply: Omit<Reply, 'milliseconds'>) => void
  /**
   * Records what somebody was paid for, and so waits behind nobody's calls: not those of the user whom its claims name, who could make it wait in vain.
   */
  readonly isBooking?: boolean
  /** The id of the request, for the log. */
  readonly request?: string
  /** Who waits for the answer: a call that has no connection yet is given up when its requester has gone. */
  readonly requester?: Requester
}

export type Database = {
  /** One round trip: `api.name(arguments)` in this place, as this role, under these claims. */
  call(
    place: Place,
    role: Role,
    claims: Omit<Claims, 'role'>,
    name: string,
    args: Arguments,
    settings?: CallSettings,
  ): Promise<Reply>
  /**
   * The first row of one statement, in one round trip under these claims. Rejects with the error of Postgres, for callers that
   * knows better than `call` what it means.
   */
  execute(
    place: Place,
    role: Role,
    claims: Omit<Claims, 'role'>,
    prepare: (client: object) => Statement,
    settings?: CallSettings,
  ): Promise<{ readonly row: (string | null)[]; readonly milliseconds: number }>
  /** A batch of an export, in one round trip: what `api.name(arguments)` returns as `api.lines`. It writes nothing. */
  lines(
    place: Place,
    role: Role,
    claims: Omit<Claims, 'role'>,
    name: string,
    args: Arguments,
    settings?: CallSettings,
  ): Promise<Lines>
  /** What an error means to the caller; logs it when it is a defect. */
  explain(error: unknown, place: Place, role: Role, name: string, settings?: CallSettings): Promise<ApiError>
  readonly pools: Pools
  /**
   * Cancels what runs for longer than `olderThanMs`: all of it, or background work alone. What is cancelled is undone whole, and
   * answers 503. Resolves with how many statements that were.
   */
  cancel(wanted?: { readonly olderThanMs?: number; readonly background?: boolean }): Promise<number>
  close(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly database: Database
    /** Where control is. */
    readonly control: Place
  }
}

/** A call that holds a connection; one that was cancelled does not give it to another, whom a late request would hit. */
type RunningCall = {
  readonly client: pg.Client
  readonly began: number
  readonly background: boolean
  isCancelled: boolean
}

export type DatabaseOptions = {
  readonly secrets: Secrets
  readonly limits: PoolLimits
  readonly timeoutMs: number
  readonly log: Pick<Logger, 'error' | 'warn'>
  /** Time passed by a test harness, ISO 8601, or null. No request reaches this. */
  readonly clock?: () => string | null
  /** Whether a place runs an older program than ours: then what is missing is pending, not a defect. */
  readonly isBehind?: (place: Place) => boolean
  /** Called after a call to control that wrote audit rows: they wait for their seal. */
  readonly onUnsealed?: () => void
  readonly measures?: Pick<Measures, 'call' | 'refusedLease'>
  /** A standby of the cluster `own`. */
  readonly replica?: Pick<Replica, 'usable' | 'onLost'> | undefined
}

export const createDatabase = (options: DatabaseOptions): Database => {
  const { measures = noMeasures } = options
  learnLogins(options.secrets)
  const pools = createPools({ ...options.limits, onRefused: measures.refusedLease })
  const running = new Set<RunningCall>()
  const named = options.limits.named !== false
  // the password of a login is derived: a tenth of a request's time, were it done each time
  const targets = createLru<Target>(20_000)
  const target = (place: Place, role: Role): Target => {
    const key = `${place.cluster.id} ${place.database} ${role} ${place.mostConnections ?? ''}`
    const known = targets.get(key)
    if (known) return known
    const login = targetOf(place.cluster, place.database, role, options.secrets)
    const { kind, mostConnections } = place
    const made = { ...login, isControl: kind === 'control', ...(mostConnections ? { mostConnections } : {}) }
    targets.set(key, made)
    return made
  }

  const unfollow = onMoved((from) => {
    targets.clear()
    pools.abandon(({ host, port }) => host === from.host && port === from.port)
  })
  const unlisten = options.replica?.onLost(() => pools.abandon(({ key }) => key.startsWith(replicaKey)))

  /** The same login at the replica, where the place is one of its primary's. */
  const staleTarget = (place: Place, role: Role): Target | null => {
    const address = place.cluster.isOwn ? options.replica?.usable() : null
    if (!address) return null
    const found = target(place, role)
    return { ...found, ...address, key: replicaKey + found.key }
  }

  const execute: Database['execute'] = async (place, role, claims, prepare, settings = {}) => {
    const stale = settings.stale && settings.readOnly ? staleTarget(place, role) : null
    if (stale) {
      try {
        return await executeAt(stale, place, role, claims, prepare, settings)
      } catch (error) {
        // a refusal is an answer; what was cancelled, or took too long, would take as long again
        if (failureOf(error).kind === 'refusal' || (error as DatabaseError).code === '57014') throw error
        // what a replica cannot do, or loses to the replay, the primary does
        options.log.warn(
          { database: place.database, ...loggable(error) },
          'the replica did not answer: the primary does',
        )
      }
    }
    return executeAt(target(place, role), place, role, claims, prepare, settings)
  }

  const executeAt = async (
    at: Target,
    place: Place,
    role: Role,
    claims: Omit<Claims, 'role'>,
    prepare: (client: object) => Statement,
    settings: CallSettings,
  ) => {
    const share = settings.isBooking ? bookings : shareOf(role, claims.caller)
    const asked = performance.now()
    // control is everybody's: a developer's calls that wait for each other's locks leave other developers their connections
    const own = place.kind === 'control' ? claims.developerId : null
    const user = settings.isBooking ? null : (claims.userId ?? own)
    const lease = await pools.lease(at, share, user, settings.requester).catch((error) => {
      leaseSpan(asked, performance.now(), error)
      throw error
    })
    const began = performance.now()
    leaseSpan(asked, began)
    const statement = prepare(lease.client)
    const span = callSpan(place, role, statement.operation, began - asked)
    const held: RunningCall = {
      client: lease.client,
      began,
      background: settings.background ?? false,
      isCancelled: false,
    }
    running.add(held)
    let broken = false
    try {
      const late: Record<string, string> = {}
      const [row = []] = await runOneSync(
        lease.client,
        { ...claims, role },
        statement,
        {
          readOnly: settings.readOnly ?? false,
          timeoutMs: settings.timeoutMs ?? options.timeoutMs,
          clock: options.clock?.() ?? null,
        },
        named,
        (setting, value) => {
          late[setting] = value
        },
      )
      const milliseconds = performance.now() - began
      measures.call(place.kind, share.kind, 'ok', milliseconds)
      span.end()
      return { row: amended(row, late), milliseconds }
    } catch (error) {
      measures.call(place.kind, share.kind, 'failed', performance.now() - began)
      const failure = failureOf(error)
      endFailed(span, failure, error)
      broken = (failure.kind === 'unavailable' && failure.connectionLost) || isOfStandby(error, settings)
      throw error
    } finally {
      running.delete(held)
      lease.release(broken || held.isCancelled)
    }
  }

  const cancel: Database['cancel'] = async ({ olderThanMs = 0, background = false } = {}) => {
    const before = performance.now() - olderThanMs
    const found = [...running].filter((held) => held.began <= before && (held.background || !background))
    await Promise.all(
      found.map((held) => {
        held.isCancelled = true
        return cancelStatement(held.client)
      }),
    )
    return found.length
  }

  const run = async (
    place: Place,
    role: Role,
    claims: Omit<Claims, 'role'>,
    name: string,
    args: Arguments,
    settings: CallSettings,
  ): Promise<Reply> => {
    const { beforeCommit } = settings
    const called = callStatement('reply', name, args)
    const statement: Statement = beforeCommit
      ? { ...called, beforeCommit: (early) => beforeCommit(replyOf(early, `api.${name}`)) }
      : called
    const { row, milliseconds } = await execute(place, role, claims, () => statement, settings)
    const reply = replyOf(row, `api.${name}`)
    // in control nothing but the audit trail sets a due time
    if (reply.dueAt && place.kind === 'control') options.onUnsealed?.()
    return { ...reply, milliseconds }
  }

  const lines: Database['lines'] = async (place, role, claims, name, args, settings = {}) => {
    let taken: Lines['lines'] | undefined
    let next: string | null = null
    const take: TakeRow = (bytes, start) => {
      // the number of columns, then each with its length before it
      const end = start + 6 + Math.max(0, bytes.readInt32BE(start + 2))
      const size = bytes.readInt32BE(end)
      taken = bytes.subarray(start + 6, end)
      next = size < 0 ? null : bytes.toString('utf8', end + 4, end + 4 + size)
    }
    try {
      const statement = { ...callStatement('lines', name, args), take }
      const { milliseconds } = await execute(place, role, claims, () => statement, { ...settings, readOnly: true })
      if (!taken) throw new Error(`api.${name} answered nothing`)
      return { lines: taken, next_cursor: next, dueAt: null, changed: [], milliseconds }
    } catch (error) {
      throw await explain(error, place, role, name, settings)
    }
  }

  /** Turns what went wrong into what the caller may know of it. */
  const explain = async (
    error: unknown,
    place: Place,
    role: Role,
    name: string,
    settings: CallSettings,
  ): Promise<ApiError> => {
    const failure = failureOf(error)
    const { code } = (error ?? {}) as DatabaseError
    const failed = settings.failure ?? 'INTERNAL_ERROR'
    const where = () => ({
      request: settings.request,
      function: name,
      database: place.database,
      ...loggable(error),
    })
    const unavailable = () => {
      const of = place.kind === 'tenant' ? 'TENANT_UNAVAILABLE' : 'SERVICE_UNAVAILABLE'
      const told = refusal(503, of, sentenceOfUnavailable(error), null, { 'Retry-After': '2' })
      return Object.assign(told, { cause: error })
    }
    // a server that has become a standby; the next call finds the primary
    if (isOfStandby(error, settings)) return unavailable()
    switch (failure.kind) {
      case 'refusal':
        return failure.error
      case 'constraint': {
        const answer = await constraintRefusal(failure, place, role)
        if (answer) return answer
        break
      }
      case 'input':
        options.log.warn({ function: name, sqlstate: code }, 'a value that no schema caught')
        return refusal(400, settings.invalid ?? 'INVALID_INPUT', failure.message)
      case 'missing':
        if (place.kind === 'tenant' && options.isBehind?.(place)) {
          options.log.warn(where(), 'a migration is pending, and this call needs it')
          return migrationPending()
        }
        break
      case 'unavailable':
        // not a transient error: every call fails until an operator repairs the login
        if (/^(28|42501)/.test(code ?? ''))
          options.log.error({ role, database: place.database, ...loggable(error) }, 'a login is refused')
        return unavailable()
    }
    options.log.error(where(), 'a database call failed')
    return refusal(500, failed, 'Something went wrong here. The request id helps us find it.')
  }

  const constraintRefusal = async (
    violated: { schema: string; table: string; constraint: string },
    place: Place,
    role: Role,
  ): Promise<ApiError | null> => {
    const lease = await pools.lease(target(place, role), shareOf(role, undefined))
    try {
      const rows = await runOneSync(
        lease.client,
        { role },
        {
          name: 'trellis_constraint_refusal',
          text: 'select internal.constraint_refusal($1, $2, $3)',
          values: [violated.schema, violated.table, violated.constraint],
        },
        { readOnly: true, timeoutMs: options.timeoutMs, clock: null },
        named,
      )
      return refusalOfComment(rows[0]?.[0] ?? null)
    } finally {
      lease.release()
    }
  }

  return {
    pools,
    execute,
    lines,
    explain: (error, place, role, name, settings = {}) => explain(error, place, role, name, settings),
    async call(place, role, claims, name, args, settings = {}) {
      for (let attempt = 0; ; attempt += 1) {
        try {
          return await run(place, role, claims, name, args, settings)
        } catch (error) {
          if (!isDeadlock(error) || attempt >= (settings.retries ?? 0))
            throw await explain(error, place, role, name, settings)
          await waitBeforeRetry(attempt)
        }
      }
    },
    cancel,
    close: () => {
      unfollow()
      unlisten?.()
      return pools.close()
    },
  }
}

/** Before the keys of the pools of a replica. */
const replicaKey = 'replica/'

/** Whether a call that writes met a server that takes no writes: its first statement refuses the settings of such a call (25001) or a later one the write. */
const isOfStandby = (error: unknown, { readOnly }: CallSettings): boolean =>
  !readOnly && ['25001', '25006'].includes((error as DatabaseError)?.code ?? '')

/** A row with the settings that triggers returned after it was built. */
const amended = (row: (string | null)[], late: Readonly<Record<string, string>>): (string | null)[] => {
  const { 'app.due_at': dueAt, 'app.changed': changed } = late
  if (dueAt === undefined && changed === undefined) return row
  const [status = null, body = null, headers = null, due = null, before = null, ...rest] = row
  return [status, body, headers, dueAt ?? due, changed ?? before, ...rest]
}

/** The five columns that every statement answers: status, envelope, headers, due time, changed credentials. */
export const replyOf = (row: readonly (string | null)[], name: string): Omit<Reply, 'milliseconds'> => {
  const [status, body, headers, dueAt, changed] = row
  if (!status || body === null || body === undefined) throw new Error(`${name} answered nothing`)
  return {
    status: Number(status),
    body,
    headers: headers ? (JSON.parse(headers) as Record<string, string>) : null,
    dueAt: dueAt || null,
    changed: changed ? changed.split(',') : [],
  }
}

/** Whether Postgres chose this statement to end a deadlock, or a conflict of two transactions. */
export const isDeadlock = (error: unknown): boolean => ['40P01', '40001'].includes((error as DatabaseError)?.code ?? '')

/** A moment for the others to finish, a different one for each. */
export const waitBeforeRetry = (attempt: number) =>
  new Promise<void>((resolve) => setTimeout(resolve, 5 + Math.random() * 20 * 2 ** attempt))

/** Classes whose messages speak of the program (42, P0, 0A, ...) and not of the values that a caller sent. */
const speaksOfProgram = /^(0A|25|2B|39|42|57|P0|XX)/

/** What the log may have of an error: where it was, and never a value. */
const loggable = (error: unknown) => {
  const { code, table, constraint, where, message, stack } = error as DatabaseError
  if (!code) return { error: stack ?? message }
  return { sqlstate: code, table, constraint, where, ...(speaksOfProgram.test(code) ? { message } : {}) }
}

export const migrationPending = () =>
  refusal(503, 'TENANT_MIGRATION_PENDING', 'The database of this project is being migrated.', null, {
    'Retry-After': '5',
  })

/** The `data` of an envelope, for the few callers that must read it. A number that a double would change stays its text. */
export const dataOf = <T>(reply: Pick<Reply, 'body'>): T => (exactJson(reply.body) as { data: T }).data
