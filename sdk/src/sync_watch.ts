import { platform } from './platform.ts'
import type { Row } from './sync_calls.ts'

type Channel = {
  onmessage: ((event: { data: unknown }) => void) | null
  postMessage(data: unknown): void
  close(): void
}
type Listener = { readonly collection: string; refresh(): Promise<void> }

/** What has become different of the rows that a listener was shown. `rows` are all. */
export type RowChanges<T extends Row = Row> = {
  readonly inserted: readonly T[]
  readonly updated: readonly T[]
  /** As they were shown last. */
  readonly deleted: readonly T[]
  readonly rows: readonly T[]
}

/** Who looks at rows: told when these change, in each tab of a page, for all read the same store. */
export const createWatch = (
  place: string,
  read: (collection: string) => Promise<Row[]>,
  onError: (error: unknown) => void,
) => {
  const listeners = new Set<Listener>()
  const { document, BroadcastChannel } = platform as {
    document?: unknown
    BroadcastChannel?: new (name: string) => Channel
  }
  const tabs = document && BroadcastChannel ? new BroadcastChannel(place) : undefined
  const refresh = async (names?: readonly string[]): Promise<void> => {
    await Promise.all(
      [...listeners].filter((one) => !names || names.includes(one.collection)).map((one) => one.refresh()),
    )
  }
  if (tabs) tabs.onmessage = ({ data }) => void refresh((data as string[] | null) ?? undefined)

  const subscribe = (collection: string, listener: (rows: Row[]) => void): (() => void) => {
    let isDirty = false
    let isStopped = false
    let reading: Promise<void> | undefined
    const run = async () => {
      while (isDirty && !isStopped) {
        isDirty = false
        const rows = await read(collection)
        if (!isDirty && !isStopped) listener(rows)
      }
    }
    const one: Listener = {
      collection,
      refresh() {
        isDirty = true
        // a listener that fails is its own matter: what was written is written, and others are shown it
        reading ??= run()
          .catch(onError)
          .finally(() => {
            reading = undefined
            // told after the last look, and before this
            if (isDirty && !isStopped) return one.refresh()
          })
        return reading
      },
    }
    listeners.add(one)
    void one.refresh()
    return () => {
      isStopped = true
      listeners.delete(one)
    }
  }

  return {
    subscribe,
    changes(collection: string, listener: (changes: RowChanges) => void): () => void {
      let shown = new Map<string, string>()
      return subscribe(collection, (rows) => {
        const next = new Map(rows.map((row) => [row.id, JSON.stringify(row)]))
        const gone = [...shown].filter(([id]) => !next.has(id))
        const changes: RowChanges = {
          inserted: rows.filter(({ id }) => !shown.has(id)),
          updated: rows.filter(({ id }) => shown.has(id) && shown.get(id) !== next.get(id)),
          deleted: gone.map(([, text]) => JSON.parse(text) as Row),
          rows,
        }
        shown = next
        listener(changes)
      })
    },
    /** Rows of these collections have changed, without names of any. */
    async tell(names?: readonly string[]): Promise<void> {
      tabs?.postMessage(names ?? null)
      await refresh(names)
    },
    close: () => tabs?.close(),
  }
}
