import type { App } from './app.ts'
import { exclusively, newId } from './platform.ts'
import {
  createSyncCalls,
  type Mutation,
  type Owner,
  otherUser,
  type PulledAll,
  type Refusal,
  type Row,
  type Verdict,
} from './sync_calls.ts'
import { mutationOf, type Write } from './sync_write.ts'

type Kept = readonly [collection: string, id: string, row: Row | null]
type Columns = Readonly<Record<string, unknown>>

/** A write that a library keeps until the server has it. */
export type LibraryWrite = Omit<Write, 'ifUnchanged'> & {
  /** What the library tries again with: a write whose answer was lost counts once. */
  readonly key?: object | undefined
  readonly tx?: string | undefined
  /** The row as it is here after the write. */
  readonly row?: Columns | undefined
  /** The row that the write was made on: where the server has another one, the write is a conflict. Without it the last write of a column wins. */
  readonly assumed?: Columns | undefined
}

export type LibraryPull = PulledAll & {
  /** Whether a row that is here has left the server, or the sight of this user. */
  isGone(collection: string, id: string): boolean
}

export type LibraryOptions = {
  readonly collections?: readonly string[] | undefined
  /** By these a row is the same as another. */
  readonly columns?: readonly string[] | undefined
  /** The library takes rows of the server with a pull alone: those of refusals are in each pull until `forget`, for it may be interrupted. */
  readonly isKeeping?: boolean | undefined
  readonly onRejected?: ((refusal: Refusal) => void) | undefined
}

/** Some of the columns, as far as the row has them. */
export const pick = (row: Columns, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(names.filter((name) => row[name] !== undefined).map((name) => [name, row[name]]))

export const isSame = (a: Columns | null | undefined, b: Columns | null | undefined, names: readonly string[]) =>
  !!a && !!b && names.every((name) => JSON.stringify(a[name] ?? null) === JSON.stringify(b[name] ?? null))

/**
 * The user who is signed in, and the id of this installation for that user, kept in the app's store. A database of another library holds rows of one user: once
 * it was used for one, it is refused to another.
 */
const ownerOf = (app: App): (() => Promise<Owner>) => {
  const { sessions, store, prefix } = app.inside
  let user: string | undefined
  return () =>
    exclusively(`${prefix}:sync`, async () => {
      const session = await sessions.current()
      user ??= session?.userId
      if (!user || session?.userId !== user) throw otherUser()
      const place = `${prefix}:sync:${user}`
      const known = await store.getItem(place)
      const clientId = known || newId()
      if (!known) await store.setItem(place, clientId)
      return { userId: user, clientId }
    })
}

/** What adapters of other libraries have in common: they keep the rows, and this brings them together with the server's. */
export const createLibrary = (app: App, options: LibraryOptions) => {
  const { collections, columns = [], isKeeping = false, onRejected } = options
  const owner = ownerOf(app)
  const calls = createSyncCalls(app, owner, collections)
  const { store, prefix } = app.inside
  const keptPlace = async () => `${prefix}:sync:undo:${(await owner()).userId}`

  const ids = new WeakMap<object, string>()
  const idOf = ({ key }: LibraryWrite): string => {
    const id = (key && ids.get(key)) ?? newId()
    if (key) ids.set(key, id)
    return id
  }
  /** Rows that are being pushed, and for each pull those that were since it began: what it has of them may be older than the push. */
  const pushing = new Set<string>()
  const pulls = new Set<Set<string>>()

  const pushAll = async (writes: readonly LibraryWrite[]): Promise<Refusal[]> => {
    const written = new Map<string, LibraryWrite>()
    const mutation = (write: LibraryWrite, base: unknown, id = newId()) => {
      written.set(id, write)
      return mutationOf(write, { id, base, tx: write.tx })
    }
    /** What is as it should be is not refused: the deletion of what is gone, and what has been applied under another id. */
    const isDone = ({ status, mutation: { id, op }, row, code }: Verdict) =>
      status === 'applied' ||
      (op === 'delete' ? code === 'NOT_FOUND' : status === 'conflict' && isSame(row, written.get(id)?.row, columns))
    const send = async (mutations: readonly Mutation[]) =>
      (await calls.push(mutations)).verdicts.filter((one): one is Refusal => !isDone(one))

    const refused = await send(writes.map((write) => mutation(write, write.assumed?.['updated_at'], idOf(write))))
    // a library that does not know the new time of what it has pushed names the old one: while the row is what it assumes, nobody else has written it
    const isOwn = ({ status, mutation: { id }, row }: Refusal) =>
      status === 'conflict' && isSame(row, written.get(id)?.assumed, columns)
    const isRepeated = (one: Refusal) => {
      const { tx } = one.mutation
      const unit = refused.filter((other) => other === one || (tx !== undefined && other.mutation.tx === tx))
      return unit.some(isOwn) && unit.every((other) => isOwn(other) || other.code === 'TRANSACTION_ROLLED_BACK')
    }
    const repeated = new Set(refused.filter(isRepeated))
    const again = [...repeated].map((one) => {
      const write = written.get(one.mutation.id) as LibraryWrite
      const isThere = isSame(one.row, write.assumed, columns)
      return mutation(write, isThere ? one.row?.['updated_at'] : one.mutation.base_updated_at)
    })
    const left = refused.filter((one) => !repeated.has(one)).concat(again.length > 0 ? await send(again) : [])
    if (isKeeping) {
      const rows = left.map(({ mutation, row }): Kept => [mutation.collection, mutation.row_id, row])
      await store.setItem(await keptPlace(), JSON.stringify(rows))
    }
    for (const one of left) if (one.status === 'rejected') onRejected?.(one)
    return left
  }

  const push = async (writes: readonly LibraryWrite[]): Promise<Refusal[]> => {
    const rows = writes.map(({ collection, row_id }) => `${collection}/${row_id}`)
    for (const touched of [pushing, ...pulls]) for (const row of rows) touched.add(row)
    try {
      return await pushAll(writes)
    } finally {
      for (const row of rows) pushing.delete(row)
    }
  }

  const pull = async (checkpoint: string | null, enough?: number): Promise<LibraryPull> => {
    const touched = new Set(pushing)
    pulls.add(touched)
    try {
      const isCounted = (collection: string, id: string) => !touched.has(`${collection}/${id}`)
      const pulled = await calls.pullAll(checkpoint, enough === undefined ? undefined : { enough, isCounted })
      const kept = isKeeping ? (JSON.parse((await store.getItem(await keptPlace())) || '[]') as Kept[]) : []
      const rowsOf = (name: string, rows: Iterable<readonly [string, Row | null]>) => {
        const own = kept.filter(([collection]) => collection === name).map(([, id, row]) => [id, row] as const)
        // a push changes the row or has a verdict on it: the next pull or the verdict tells
        return new Map([...own, ...rows].filter(([id]) => isCounted(name, id)))
      }
      const changes = new Map([...pulled.changes].map(([name, rows]) => [name, rowsOf(name, rows)] as const))
      return {
        ...pulled,
        changes,
        isGone(name, id) {
          const row = changes.get(name)?.get(id)
          return row === null || (pulled.isReplaced && row === undefined && isCounted(name, id))
        },
      }
    } finally {
      pulls.delete(touched)
    }
  }

  return {
    /** All that has changed, or about as many rows as are enough. */
    pull,
    /** Answers what the server has not taken, with its rows, and tells the app what is refused. */
    push,
    /** The library has what the last pull has brought. */
    forget: async (): Promise<void> => void (await store.removeItem(await keptPlace())),
  }
}
