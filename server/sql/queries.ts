import pg from 'pg'
import { cancelStatement } from '#server/database/cancel.ts'
import { address, type Cluster, loginPassword } from '#server/database/cluster.ts'
import { cutWhenMoved, destroy, locateOnce } from '#server/database/hosts.ts'
import { interceptorOf } from '#server/database/row_interceptor.ts'
import { type ApiError, refusal } from '#server/errors.ts'
import type { Secrets } from '#server/secrets.ts'
import { type Description, describe, type Field } from '#server/sql/describe.ts'
import { invalidSql, notThere, readsOnly, refusalOf, sqlUnavailable, tookTooLong } from '#server/sql/failures.ts'
import { createPlaces } from '#server/sql/places.ts'
import { collectRows, type Value } from '#server/sql/rows.ts'
import { type Wrapped, wrapped } from '#server/sql/statement.ts'

export type Question = {
  readonly cluster: Cluster
  readonly database: string
  readonly projectId: string
  readonly developerId: string
  readonly sql: string
  /** `plan` says how it would run and runs nothing, `analyze` runs it and says how it ran. */
  readonly explain?: 'plan' | 'analyze' | undefined
  /** Rows at most. */
  readonly limit: number
}

export type Answered = {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly (readonly Value[])[]
  readonly row_count: number
  readonly is_cut: boolean
  readonly duration_ms: number
  readonly plan: Record<string, unknown> | null
}

export type SqlQueries = {
  /** Refuses what docs/sql.md lists. */
  run(question: Question): Promise<Answered>
  close(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly sqlQueries: SqlQueries
  }
}

/** The longest statement, where the database has no shorter `statement_timeout` of its own. */
const statementMs = 10_000
/** Beyond the time of the statement itself: what Postgres has not ended by then is cut. */
const graceMs = 2_000

/**
 * What the session begins with. `role` in the packet that opens it: there is no moment in which it is another. A statement may change the settings that any
 * login may change; none of them opens anything (docs/decisions.md), and the connection ends with the query.
 */
const settings = {
  role: 'app_dashboard',
  default_transaction_read_only: 'on',
  search_path: 'app,collections,extensions',
  lock_timeout: '2s',
  idle_in_transaction_session_timeout: '15s',
  // a query whose server is gone ends
  client_connection_check_interval: '1s',
  work_mem: '16MB',
  hash_mem_multiplier: '1',
  jit: 'off',
  max_parallel_workers_per_gather: '0',
  timezone: 'UTC',
  datestyle: 'ISO',
  intervalstyle: 'postgres',
  bytea_output: 'hex',
  standard_conforming_strings: 'on',
}
const options = Object.entries(settings)
  .map(([name, value]) => `-c ${name}=${value}`)
  .join(' ')

/**
 * The first statement of a transaction. What keeps projects apart is asked of Postgres and not believed: this login's texts are hidden from the same login in
 * other databases, and it may end no session.
 */
const begun = `
  select pg_catalog.set_config('statement_timeout', least(nullif(s.setting::int, 0), $1::int)::text, true) is not null as is_set,
         pg_catalog.current_setting('track_activities') = 'off'
           and not pg_catalog.has_function_privilege('pg_catalog.pg_cancel_backend(int)', 'execute') as "isApart"
    from pg_catalog.pg_settings s
   where s.name = 'statement_timeout'`

const typesOf = `
  select pg_catalog.format_type(f.type, f.modifier) as type
    from unnest($1::oid[], $2::int[]) with ordinality f (type, modifier, position)
   order by f.position`

const disabled = (why: string) => refusal(403, 'SQL_DISABLED', why)

type Bounds = { readonly mode: 'on' | 'trusted' | 'off'; readonly secrets: Secrets }

/**
 * Runs what developers write as SQL, one statement that reads, as the role of dashboards. Each query has a connection of its own, which ends with it: whatever a
 * statement leaves in a session meets nobody. The connection is not through a pooler, which would keep the session.
 */
export const createSqlQueries = ({ mode, secrets }: Bounds): SqlQueries => {
  const places = createPlaces()
  const open = new Set<pg.Client>()
  let isClosed = false

  const connect = async (cluster: Cluster, database: string): Promise<pg.Client> => {
    await locateOnce(cluster.dsn)
    const { host, port, ssl } = address(cluster)
    const client = new pg.Client({
      host,
      port,
      database,
      user: 'login_app_dashboard',
      password: loginPassword(secrets, 'login_app_dashboard'),
      ...(ssl === undefined ? {} : { ssl }),
      application_name: 'trellis_sql',
      connectionTimeoutMillis: 5_000,
      options,
    })
    client.on('error', () => undefined)
    cutWhenMoved(client)
    open.add(client)
    try {
      await client.connect()
    } catch {
      await end(client)
      throw notThere()
    }
    return client
  }
  const end = async (client: pg.Client): Promise<void> => {
    open.delete(client)
    await client.end().catch(() => undefined)
  }

  return {
    async run(question) {
      if (mode === 'off') throw disabled('SQL queries are off on this server (SQL_QUERIES).')
      if (isClosed) throw sqlUnavailable('the server is stopping')
      const release = await places.take(question.projectId, question.developerId)
      try {
        const client = await connect(question.cluster, question.database)
        try {
          return await withDeadline(client, () => answer(client, question, mode))
        } finally {
          await end(client)
        }
      } finally {
        release()
      }
    },
    async close() {
      isClosed = true
      await Promise.all(
        [...open].map(async (client) => {
          await cancelStatement(client)
          await end(client)
        }),
      )
    },
  }
}

/** Postgres's own limit holds for one statement at a time, and a statement could set it for a later one; this one is for all together. */
const withDeadline = async <T>(client: pg.Client, work: () => Promise<T>): Promise<T> => {
  const { promise: over, reject } = Promise.withResolvers<never>()
  let cut: NodeJS.Timeout | undefined
  const cancel = setTimeout(() => {
    void cancelStatement(client)
    cut = setTimeout(() => {
      destroy(client)
      reject(tookTooLong())
    }, graceMs)
  }, statementMs + graceMs)
  try {
    return await Promise.race([work(), over])
  } finally {
    clearTimeout(cancel)
    clearTimeout(cut)
  }
}

/** All of it is one transaction, which is rolled back: what a statement sends to listeners at its end (pg_notify) is never sent. */
const answer = async (client: pg.Client, question: Question, mode: Bounds['mode']): Promise<Answered> => {
  const { sql, explain, limit } = question
  const refusing = <T>(work: Promise<T>, shift = 0): Promise<T> =>
    work.catch((error: unknown) => {
      throw (error as ApiError).name === 'ApiError' ? error : (refusalOf(error, sql, shift) ?? lost(error))
    })
  await refusing(begin(client, mode))
  const { fields, parameters } = await refusing(describe(client, sql))
  if (parameters > 0) throw invalidSql('A statement here has no parameters ($1): write the values into it.')
  if (fields === null) throw isBlank(sql) ? invalidSql('There is no statement.') : readsOnly()
  // one more, to see whether there are more
  const query = wrapped(sql, fields.length, limit + 1)
  await refusing(describeInside(client, query), query.shift)
  const columns = await refusing(named(client, fields))
  const began = performance.now()
  const isRun = explain !== 'plan'
  const { rows, isCut } = isRun
    ? await refusing(fetch(client, query, fields, limit), query.shift)
    : { rows: [], isCut: false }
  const ran = performance.now() - began
  const plan = explain ? await explained(client, explain, sql, refusing, statementMs - ran) : null
  return {
    columns,
    rows,
    row_count: rows.length,
    is_cut: isCut,
    duration_ms: Math.round(isRun ? ran : performance.now() - began),
    plan,
  }
}

const lost = (error: unknown): ApiError => {
  const { code = '' } = (error ?? {}) as { code?: string }
  return code.startsWith('53') ? sqlUnavailable('Postgres has too little room for it') : notThere()
}

const begin = async (client: pg.Client, mode: Bounds['mode']): Promise<void> => {
  await client.query('begin read only')
  const { rows } = await client.query<{ isApart: boolean }>(begun, [statementMs])
  if (mode === 'trusted' || rows[0]?.isApart) return
  throw disabled(
    'SQL queries are off on this server: Postgres does not keep the sessions of its projects apart. SQL_QUERIES=trusted allows them.',
  )
}

const isBlank = (sql: string) => /^(\s|;|--[^\n]*(\n|$)|\/\*[^*]*\*\/)*$/.test(sql)

/** What cannot stand in parentheses is no query: EXPLAIN, SHOW, INSERT ... RETURNING, WITH with a part that writes. */
const describeInside = async (client: pg.Client, { text }: Wrapped): Promise<Description> => {
  try {
    return await describe(client, text)
  } catch (error) {
    if ((error as { code?: string }).code === '42601') throw readsOnly()
    throw error
  }
}

const named = async (client: pg.Client, fields: readonly Field[]) => {
  const { rows } = await client.query<{ type: string }>(typesOf, [
    fields.map(({ dataTypeID }) => dataTypeID),
    fields.map(({ dataTypeModifier }) => dataTypeModifier),
  ])
  return fields.map(({ name }, index) => ({ name, type: rows[index]?.type ?? 'unknown' }))
}

/** Reads rows as they come, and cancels the rest once there are enough. */
const fetch = async (client: pg.Client, { text }: Wrapped, fields: readonly Field[], limit: number) => {
  const collected = collectRows(fields, limit)
  let cancelled: Promise<void> | undefined
  const { stream } = (client as unknown as { connection: { stream: Parameters<typeof interceptorOf>[0] } }).connection
  const close = interceptorOf(stream).open(() => (bytes, start, end) => {
    collected.take(bytes, start, end)
    if (collected.isFull()) cancelled ??= cancelStatement(client)
  })
  try {
    // a name makes pg use the protocol that takes one statement alone
    await client.query({ name: 'trellis_sql', text })
  } catch (error) {
    if (!cancelled || (error as { code?: string }).code !== '57014') throw error
  } finally {
    close()
    await cancelled
  }
  return { rows: collected.rows, isCut: collected.isCut() }
}

type Refusing = <T>(work: Promise<T>, shift?: number) => Promise<T>

/**
 * How Postgres runs the author's statement, which has been found to be a query by now. With `analyze` it runs in the same transaction that only reads, under the
 * same role and what is left of the time, so that it may do nothing that the query may not; its rows stay in Postgres.
 */
const explained = async (
  client: pg.Client,
  explain: 'plan' | 'analyze',
  sql: string,
  refusing: Refusing,
  leftMs: number,
): Promise<Record<string, unknown> | null> => {
  const words = explain === 'analyze' ? 'analyze, buffers, format json' : 'format json'
  const start = `explain (${words}) `
  await client.query('rollback')
  await client.query('begin read only')
  await client.query(begun, [Math.max(100, Math.round(leftMs))])
  const { rows } = await refusing(
    client.query<{ 'QUERY PLAN': readonly Record<string, unknown>[] }>({ name: 'trellis_explain', text: start + sql }),
    start.length,
  )
  return rows[0]?.['QUERY PLAN'][0] ?? null
}
