import type { App } from './app.ts'
import { newId } from './platform.ts'
import { createSyncCalls, type Mutation, ownColumns, ownerOf, type Refusal, type Row } from './sync_calls.ts'

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

const atOf = (time: unknown) => (typeof time === 'string' ? Date.parse(time) : time)
/** `@date` columns are numbers in WatermelonDB. */
const withDates = (_: string, row: Row): Raw => ({
  ...row,
  ...('created_at' in row ? { created_at: atOf(row['created_at']) } : {}),
  ...('updated_at' in row ? { updated_at: atOf(row['updated_at']) } : {}),
})

/** What WatermelonDB's `synchronize` takes beside the database: `synchronize({ database, ...watermelonSync(app) })`. */
export const watermelonSync = (app: App, options: WatermelonOptions = {}) => {
  const { toLocal = withDates, toServer = (_, columns) => columns, tx, onRejected } = options
  const owner = ownerOf(app)
  const calls = createSyncCalls(app, owner, options.collections)
  const { store, prefix } = app.inside
  /** Rows of the server for what it has refused, until they are in the local tables. */
  const placeOf = async () => `${prefix}:sync:undo:${(await owner()).userId}`

  return {
    // a refused row that is to come back, and all rows of a whole pull, are there or not: WatermelonDB logs neither as an error
    sendCreatedAsUpdated: true,
    async pullChanges({
      lastPulledAt,
    }: {
      lastPulledAt?: number | null
    }): Promise<{ changes: Changes; timestamp: number }> {
      const { changes, checkpoint, isWhole } = await calls.pullAll(lastPulledAt ? String(lastPulledAt) : null)
      const undone = JSON.parse((await store.getItem(await placeOf())) || '[]') as [string, string, Row | null][]
      const all = new Map([...changes].map(([table, rows]) => [table, new Map(rows)] as const))
      for (const [table, id, row] of undone) if (!all.get(table)?.has(id)) all.get(table)?.set(id, row)
      const tables = [...all].map(([table, rows]): [string, Changes[string]] => {
        const updated = [...rows.values()].flatMap((row) => (row ? [toLocal(table, row)] : []))
        return [table, { created: [], updated, deleted: [...rows].flatMap(([id, row]) => (row ? [] : [id])) }]
      })
      const strategy = isWhole && lastPulledAt ? { experimentalStrategy: 'replacement' as const } : {}
      return { changes: Object.fromEntries(tables), timestamp: Number(checkpoint), ...strategy }
    },
    async pushChanges({ changes }: { changes: Changes }): Promise<void> {
      const write = (op: Mutation['op'], collection: string, raw: Raw, names?: readonly string[]): Mutation => {
        const { _status, _changed, ...row } = raw
        const columns = toServer(collection, ownColumns(row, op === 'put'))
        const data = names
          ? Object.fromEntries(Object.entries(columns).filter(([name]) => names.includes(name)))
          : columns
        const group = tx?.(collection, raw)
        return {
          id: newId(),
          op,
          collection,
          row_id: raw['id'] as string,
          ...(op === 'delete' ? {} : { data }),
          ...(group ? { tx: group } : {}),
        }
      }
      const named = Object.entries(changes).filter(
        ([table]) => !options.collections || options.collections.includes(table),
      )
      const mutations = named.flatMap(([table, { created, updated, deleted }]) => [
        ...created.map((raw) => write('put', table, raw)),
        ...updated.map((raw) => write('patch', table, raw, String(raw['_changed']).split(','))),
        ...deleted.map((id) => write('delete', table, { id })),
      ])
      const { verdicts } = await calls.push(mutations)
      // what was deleted twice is deleted
      const refused = verdicts.filter(
        (one): one is Refusal =>
          one.status !== 'applied' && !(one.mutation.op === 'delete' && one.code === 'NOT_FOUND'),
      )
      const undone = refused.map(({ mutation, row }) => [mutation.collection, mutation.row_id, row])
      await store.setItem(await placeOf(), JSON.stringify(undone))
      for (const refusal of refused) onRejected?.(refusal)
    },
    /** They are in the tables now. */
    onDidPullChanges: async () => void (await store.removeItem(await placeOf())),
  }
}
