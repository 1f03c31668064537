import pg from 'pg'
import type { WithPgClient } from 'postgraphile/@dataplan/pg'
import { runOneSync } from '#server/database/call.ts'
import type { Target } from '#server/database/cluster.ts'
import type { TakeRow } from '#server/database/row_interceptor.ts'
import type { Asking } from '#server/graphql/messages.ts'

/** The database could not be reached, or has no connection left. */
export class Unreachable extends Error {}
/** The rows of one request are too large together. */
export class TooLarge extends Error {}
/** The time of a request is over. */
export class TooLate extends Error {}

/** Connections of one project's database that one process of GraphQL may hold. */
const usualPerDatabase = 2

/** What the statements of one request may take together, and each of them. */
export type Budget = { readonly requestMs: number; readonly statementMs: number; readonly bytes: number }

export type Connections = {
  /** For the statements of one request, which begins now. */
  request(target: Target, asking: Asking, budget: Budget): WithPgClient
  close(): Promise<void>
}

const unreachable = /^(08|28|3D|53|57P)|^E[A-Z]+$/

/** The values of a DataRow as text. */
const textsOf = (bytes: Buffer, start: number): (string | null)[] => {
  const columns = bytes.readInt16BE(start)
  const row: (string | null)[] = new Array(columns)
  let at = start + 2
  for (let index = 0; index < columns; index += 1) {
    const size = bytes.readInt32BE(at)
    at += 4
    row[index] = size < 0 ? null : bytes.toString('utf8', at, at + size)
    if (size > 0) at += size
  }
  return row
}

const encoded = (value: unknown): string | null => {
  if (value === null || value === undefined) return null
  if (typeof value === 'string') return value
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/**
 * Runs the statements that PostGraphile makes as those of every other caller: one round trip and one transaction each, which reads only, with all
 * settings set anew (server/database/call.ts). Nothing is prepared, so that a pooler may be between.
 */
export const createConnections = (perDatabase = usualPerDatabase): Connections => {
  const pools = new Map<string, pg.Pool>()

  const poolOf = (target: Target): pg.Pool => {
    // a primary that has moved is another server
    const key = `${target.key} ${target.host}:${target.port}`
    const known = pools.get(key)
    if (known) return known
    const pool = new pg.Pool({
      host: target.host,
      port: target.port,
      database: target.database,
      user: target.user,
      password: target.password,
      ...(target.ssl === undefined ? {} : { ssl: target.ssl }),
      application_name: 'trellis_graphql',
      max: perDatabase,
      idleTimeoutMillis: 10_000,
      connectionTimeoutMillis: 5_000,
    })
    pool.on('error', () => undefined)
    pool.on('connect', (client) => client.on('error', () => undefined))
    // the last connection went: a project that nobody asks of leaves nothing here
    pool.on('remove', () => {
      if (pool.totalCount > 0 || pool.waitingCount > 0) return
      pools.delete(key)
      void pool.end().catch(() => undefined)
    })
    pools.set(key, pool)
    return pool
  }

  const connect = (target: Target): Promise<pg.PoolClient> =>
    poolOf(target)
      .connect()
      .catch((error: Error) => {
        // others of the same project hold both
        if (error.message === 'timeout exceeded when trying to connect') throw new TooLate()
        throw new Unreachable(error.message)
      })

  return {
    request(target, asking, { requestMs, statementMs, bytes: mostBytes }) {
      const deadline = performance.now() + requestMs
      let size = 0
      const claims = { ...asking, role: 'app_dashboard', caller: 'developer' }

      const run = async (text: string, values: readonly unknown[] | undefined) => {
        const client = await connect(target)
        let isBroken = false
        try {
          const left = Math.floor(deadline - performance.now())
          if (left <= 0) throw new TooLate()
          const rows: (string | null)[][] = []
          const take: TakeRow = (bytes, start, end) => {
            size += end - start
            if (size <= mostBytes) rows.push(textsOf(bytes, start))
          }
          const statement = {
            name: '',
            text,
            values: (values ?? []).map(encoded),
            take,
            isEnough: () => size > mostBytes,
          }
          await runOneSync(
            client,
            claims,
            statement,
            { readOnly: true, timeoutMs: Math.min(left, statementMs), clock: null },
            false,
          )
          if (size > mostBytes) throw new TooLarge()
          return rows
        } catch (error) {
          const { code = '' } = error as { code?: string }
          isBroken = unreachable.test(code)
          throw isBroken ? new Unreachable((error as Error).message) : error
        } finally {
          client.release(isBroken)
        }
      }

      // no connection is held between two statements
      const client = {
        async query({ text, values, arrayMode }: { text: string; values?: readonly unknown[]; arrayMode?: boolean }) {
          const rows = await run(text, values)
          // only the introspection of the catalog asks for objects, of one column
          const shaped = arrayMode ? rows : rows.map(([introspection]) => ({ introspection }))
          return { rows: shaped, rowCount: rows.length, notices: [] }
        },
        withTransaction: (work: (inner: unknown) => Promise<unknown>): Promise<unknown> => work(client),
      }
      return (async (_settings: unknown, work: (inner: unknown) => unknown) => work(client)) as unknown as WithPgClient
    },
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.end().catch(() => undefined)))
    },
  }
}
