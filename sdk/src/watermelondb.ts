import type { App } from './app.ts'
import type { Refusal, Row } from './sync_calls.ts'
import { createLibrary, type LibraryWrite, pick } from './sync_library.ts'
import { ownColumns } from './sync_write.ts'

type Raw = Record<string, unknown>
type Changes = Record<string, { created: Raw[]; updated: Raw[]; deleted: string[] }>

export type WatermelonOptions = {
  /** The synced tables; without it all collections with `sync: true`. */
  readonly collections?: readonly string[] | undefined
  /** What a row of the server is in the local table, such as an object as JSON in a text column. */
  readonly toLocal?: ((table: string, row: Row) => Raw) | undefined
  /** The other way: columns that only the local table has are left out here. */
  readonly toServer?: ((table: string, columns: Raw) => Raw) | undefined
  /** Rows with the same answer, in any table, are applied together or not at all. */
  readonly tx?: ((table: string, row: Raw) => string | undefined) | undefined
  /** The server has not taken a write. Its row takes the place of the local one at the next `synchronize`. */
  readonly onRejected?: ((refusal: Refusal) => void) | undefined
}

/** `@date` columns are numbers in WatermelonDB. */
const withDates = (_: string, row: Row): Raw => {
  const times = Object.entries(pick(row, ['created_at', 'updated_at']))
  return { ...row, ...Object.fromEntries(times.map(([name, at]) => [name, Date.parse(String(at))])) }
}

/** What WatermelonDB's `synchronize` takes beside the database: `synchronize({ database, ...watermelonSync(app) })`. */
export const watermelonSync = (app: App, options: WatermelonOptions = {}) => {
  const { collections, toLocal = withDates, toServer = (_, columns) => columns, tx, onRejected } = options
  const library = createLibrary(app, { collections, onRejected, isKeeping: true })

  const writeOf = (op: 'put' | 'patch' | 'delete', collection: string, raw: Raw): LibraryWrite => {
    const { _status, _changed, ...row } = raw
    const data = toServer(collection, ownColumns(row, op === 'put'))
    const changed = op === 'patch' ? pick(data, String(_changed).split(',')) : data
    return { op, collection, row_id: raw['id'] as string, data: changed, tx: tx?.(collection, raw) }
  }

  return {
    // a refused row that is to come back, and all rows of a whole pull, are there or not: WatermelonDB logs neither as an error
    sendCreatedAsUpdated: true,
    async pullChanges(last: { lastPulledAt?: number | null }): Promise<{ changes: Changes; timestamp: number }> {
      const pulled = await library.pull(last.lastPulledAt ? String(last.lastPulledAt) : null)
      const tables = [...pulled.changes].map(([table, rows]): [string, Changes[string]] => {
        const updated = [...rows.values()].flatMap((row) => (row ? [toLocal(table, row)] : []))
        return [table, { created: [], updated, deleted: [...rows].flatMap(([id, row]) => (row ? [] : [id])) }]
      })
      const strategy = pulled.isReplaced ? { experimentalStrategy: 'replacement' as const } : {}
      return { changes: Object.fromEntries(tables), timestamp: Number(pulled.checkpoint), ...strategy }
    },
    async pushChanges({ changes }: { changes: Changes }): Promise<void> {
      const known = Object.entries(changes).filter(([table]) => !collections || collections.includes(table))
      const writes = known.flatMap(([table, { created, updated, deleted }]) => [
        ...created.map((raw) => writeOf('put', table, raw)),
        ...updated.map((raw) => writeOf('patch', table, raw)),
        ...deleted.map((id) => writeOf('delete', table, { id })),
      ])
      await library.push(writes)
    },
    /** They are in the tables now. */
    onDidPullChanges: library.forget,
  }
}
