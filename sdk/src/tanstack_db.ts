import type { Sync } from './sync.ts'
import type { Row } from './sync_calls.ts'
import type { Write } from './sync_write.ts'

/** What is used of TanStack DB. */
type Change<T> = { readonly type: 'insert' | 'update' | 'delete'; readonly value: T }
type Handles<T> = { begin(): void; write(change: Change<T>): void; commit(): unknown; markReady(): void }
type Pending = {
  readonly type: 'insert' | 'update' | 'delete'
  readonly key: unknown
  readonly modified: object
  readonly changes: object
  readonly collection: { readonly id: string }
}
type Persisting = { readonly transaction: { readonly mutations: readonly Pending[] } }

const ops = { insert: 'put', update: 'patch', delete: 'delete' } as const

/**
 * The `mutationFn` of a transaction over several collections: the server applies all of it or nothing. It resolves when the writes are stored on the device; a
 * refusal of the server takes them back, and comes to `onVerdict` of the sync.
 */
export const tanstackMutation =
  (sync: Sync) =>
  ({ transaction }: Persisting): Promise<void> =>
    sync.transaction(
      transaction.mutations.map(({ type, key, modified, changes, collection }): Write => {
        const data = { ...(type === 'insert' ? modified : changes) }
        return { op: ops[type], collection: collection.id, row_id: String(key), data }
      }),
    )

/** The options of a collection of TanStack DB: `createCollection(tanstackSync<Note>(createSync(app), 'notes'))`. */
export const tanstackSync = <T extends Row>(sync: Sync, name: string) => {
  const persist = tanstackMutation(sync)
  return {
    id: name,
    getKey: (row: T): string => row.id,
    sync: {
      rowUpdateMode: 'full' as const,
      sync: ({ begin, write, commit, markReady }: Handles<T>): (() => void) =>
        sync.collection<T>(name).changes(({ inserted, updated, deleted }) => {
          begin()
          for (const value of inserted) write({ type: 'insert', value })
          for (const value of updated) write({ type: 'update', value })
          for (const value of deleted) write({ type: 'delete', value })
          commit()
          markReady()
        }),
    },
    onInsert: persist,
    onUpdate: persist,
    onDelete: persist,
  }
}
