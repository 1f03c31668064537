import type { App } from './app.ts'
import { isTemporary, TrellisError } from './errors.ts'
import { exclusively, later, newId, platform } from './platform.ts'
import type { Realtime } from './realtime.ts'
import { createSyncCalls, type Mutation, nextBatch, onPoke, ownColumns, type Row, type Verdict } from './sync_calls.ts'
import { nobody, type Rows, rowsOf } from './sync_rows.ts'
import { defaultSyncStore, type SyncStore } from './sync_store.ts'
import { backoff } from './transport.ts'

export type SyncOptions = {
  /** The collections that this app keeps; without it all with `sync: true`. */
  readonly collections?: readonly string[] | undefined
  /** What became of each write: told after the rows have changed accordingly, in the tab that sent it. */
  readonly onVerdict?: ((verdict: Verdict) => void) | undefined
  /** A refusal of the server that waiting does not end, such as an unknown collection. */
  readonly onError?: ((error: unknown) => void) | undefined
  /** Brings what others write at once. */
  readonly realtime?: Realtime | undefined
  readonly store?: SyncStore | undefined
  /** Milliseconds from a write to its sending, with those that come meanwhile: 50. */
  readonly delay?: number | undefined
  /** Milliseconds between pulls that nothing has asked for: 60,000. */
  readonly every?: number | undefined
}

export type Write = {
  readonly op: 'put' | 'patch' | 'delete'
  readonly collection: string
  readonly row_id: string
  readonly data?: Readonly<Record<string, unknown>> | undefined
  /** Not applied, `conflict`, when somebody else has changed the row meanwhile. Otherwise the last write of a column wins. */
  readonly ifUnchanged?: boolean | undefined
}
type WriteOptions = Pick<Write, 'ifUnchanged'>

export type SyncCollection<T extends Row> = {
  /** The rows as they are here: those of the server, with what was written since. */
  rows(): Promise<T[]>
  get(id: string): Promise<T | undefined>
  /** Makes a row and answers its id. `group_id` names the group in a collection of groups. */
  insert(data: Partial<T>): Promise<string>
  /** Makes the row or sets all of its columns. */
  put(id: string, data: Partial<T>, options?: WriteOptions): Promise<void>
  patch(id: string, data: Partial<T>, options?: WriteOptions): Promise<void>
  remove(id: string, options?: WriteOptions): Promise<void>
  /** Called with the rows now and after each change, until the function that it answers is called. */
  subscribe(listener: (rows: T[]) => void): () => void
}

export type Sync = {
  collection<T extends Row = Row>(name: string): SyncCollection<T>
  /** Writes all of it or nothing, here and on the server. When this has resolved, it is shown and outlives a restart. */
  transaction(writes: readonly Write[]): Promise<void>
  /** Sends and fetches now; throws when the server cannot be reached. */
  now(): Promise<void>
  /** How many writes wait. */
  size(): Promise<number>
  /** Stops syncing by itself; what is stored stays. */
  close(): void
}

type Listener = { readonly collection: string; refresh(): Promise<void> }
type Channel = {
  onmessage: ((event: { data: unknown }) => void) | null
  postMessage(data: unknown): void
  close(): void
}

/** Rows of collections on the device: read and written without a network, and brought together with those of the server when there is one. */
export const createSync = (app: App, options: SyncOptions = {}): Sync => {
  const { sessions, transport, prefix } = app.inside
  const { delay = 50, every = 60_000, onVerdict, onError, realtime } = options
  const store = options.store ?? defaultSyncStore()
  const place = `${prefix}:sync-rows`
  const listeners = new Set<Listener>()
  let stop: (() => void) | undefined
  let due = 0
  let failures = 0
  let isClosed = false

  const current = async (): Promise<string | undefined> => (await sessions.current())?.userId
  const ofUser = (user: string): Rows => rowsOf(store, `${prefix}/${user}`)
  const mine = async (): Promise<Rows | undefined> => {
    const user = await current()
    return user === undefined ? undefined : ofUser(user)
  }

  // other tabs of a page read the same store
  const { document, BroadcastChannel } = platform as {
    document?: unknown
    BroadcastChannel?: new (name: string) => Channel
  }
  const tabs = document && BroadcastChannel ? new BroadcastChannel(place) : undefined
  const refresh = (names?: readonly string[]) =>
    Promise.all([...listeners].filter((one) => !names || names.includes(one.collection)).map((one) => one.refresh()))
  const tell = async (names?: readonly string[]) => {
    tabs?.postMessage(names ?? null)
    await refresh(names)
  }
  if (tabs) tabs.onmessage = ({ data }) => void refresh((data as string[] | null) ?? undefined)

  /** Reads and writes for this user alone, unless another one has signed in. */
  const change = (user: string, work: (rows: Rows) => Promise<void>) =>
    exclusively(place, async () => {
      if ((await current()) !== user) throw nobody()
      await work(ofUser(user))
    })

  const callsFor = async (user: string) => {
    let clientId = ''
    await change(user, async (rows) => {
      clientId = (await rows.begin()).clientId
    })
    return createSyncCalls(app, async () => ({ userId: user, clientId }), options.collections)
  }

  /** A row is sent again only with the time that its write before has given it. */
  const mustWait = (unit: readonly Mutation[], batch: readonly Mutation[]) =>
    unit.some(
      ({ base_updated_at, collection, row_id }) =>
        base_updated_at && batch.some((one) => one.collection === collection && one.row_id === row_id),
    )

  const pass = (): Promise<void> =>
    exclusively(`${place}:pass`, async () => {
      const user = await current()
      if (user === undefined) return
      const calls = await callsFor(user)
      const rows = ofUser(user)
      for (;;) {
        const batch = nextBatch(
          (await rows.queue()).filter(({ until }) => until === undefined),
          mustWait,
        )
        if (batch.length === 0) break
        const { verdicts, hint } = await calls.push(batch)
        await change(user, () => rows.settle(verdicts, hint))
        await tell([...new Set(batch.map(({ collection }) => collection))])
        for (const verdict of verdicts) onVerdict?.(verdict)
      }
      for (let hasMore = true; hasMore; ) {
        const page = await calls.pullPage((await rows.state()).checkpoint)
        await change(user, () => rows.take(page))
        const isSome = ({ created, updated, deleted }: (typeof page.changes)[string]) =>
          created.length + updated.length + deleted.length > 0
        hasMore = page.has_more || (await rows.state()).checkpoint === null
        const names = Object.entries(page.changes).flatMap(([name, lists]) => (isSome(lists) ? [name] : []))
        // the end of a whole pull may take rows of any
        await tell(page.isWhole || !hasMore ? undefined : names)
      }
      failures = 0
    })

  const schedule = (ms: number) => {
    if (isClosed || (stop && due <= transport.now() + ms)) return
    stop?.()
    due = transport.now() + ms
    stop = later(() => {
      stop = undefined
      pass().then(
        () => schedule(every),
        (error: unknown) => {
          failures += 1
          const isPassing = isTemporary(error)
          schedule(isPassing ? delay + backoff(failures, transport.random, 1000, 300_000) : every)
          // another user has signed in meanwhile: the next pass is theirs
          if (!isPassing && !(error instanceof TrellisError && error.code === 'ABORTED')) onError?.(error)
        },
      )
    }, ms)
  }

  const transaction = async (writes: readonly Write[]): Promise<void> => {
    const user = await current()
    if (user === undefined) throw nobody()
    await change(user, async (rows) => {
      const tx = writes.length > 1 ? { tx: newId() } : {}
      const touched = new Set<string>()
      const mutations: Mutation[] = []
      for (const { op, collection, data = {}, ifUnchanged, ...write } of writes) {
        // as the server writes it
        const row_id = write.row_id.toLowerCase()
        const isFirst = !touched.has(`${collection}/${row_id}`)
        touched.add(`${collection}/${row_id}`)
        const base = ifUnchanged && isFirst ? (await rows.held(collection, row_id))?.['updated_at'] : undefined
        mutations.push({
          id: newId(),
          op,
          collection,
          row_id,
          ...(op === 'delete' ? {} : { data: ownColumns(data, op === 'put') }),
          ...(typeof base === 'string' ? { base_updated_at: base } : {}),
          ...tx,
        })
      }
      await rows.add(mutations)
    })
    await tell([...new Set(writes.map(({ collection }) => collection))])
    schedule(delay)
  }

  const subscribe = (collection: string, listener: (rows: Row[]) => void): (() => void) => {
    let isDirty = false
    let isStopped = false
    let reading: Promise<void> | undefined
    const read = async () => {
      while (isDirty && !isStopped) {
        isDirty = false
        const user = await current()
        const rows = user === undefined ? [] : await ofUser(user).list(collection)
        // nobody sees rows of who was signed in before
        if ((await current()) !== user) isDirty = true
        else if (!isDirty && !isStopped) listener(rows)
      }
    }
    const one: Listener = {
      collection,
      refresh() {
        isDirty = true
        reading ??= read().finally(() => {
          reading = undefined
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

  let user: string | undefined
  const started = current().then((id) => {
    user ??= id
    if (id !== undefined) schedule(delay)
  })
  started.catch(() => undefined)
  const forget = sessions.onChange((session, end) => {
    const gone = user
    user = session?.userId
    if (session) schedule(delay)
    const isOver = end === 'deleted' || end === 'signed out'
    const clear = () => exclusively(place, () => ofUser(gone as string).forget(end === 'deleted'))
    const cleared = isOver && gone !== undefined ? clear() : Promise.resolve()
    cleared.then(() => tell()).catch(() => undefined)
  })
  const isOnline = () => schedule(0)
  platform.addEventListener?.('online', isOnline)
  const unpoke = realtime ? onPoke(realtime, () => schedule(0)) : undefined

  return {
    collection: <T extends Row>(name: string): SyncCollection<T> => {
      const write = (op: Write['op'], row_id: string, data?: Partial<T>, more: WriteOptions = {}) =>
        transaction([{ op, collection: name, row_id, data, ...more }])
      return {
        rows: async () => ((await (await mine())?.list(name)) ?? []) as T[],
        get: async (id) => (await (await mine())?.get(name, id.toLowerCase())) as T | undefined,
        async insert(data) {
          const id = newId()
          await write('put', id, data)
          return id
        },
        put: (id, data, more) => write('put', id, data, more),
        patch: (id, data, more) => write('patch', id, data, more),
        remove: (id, more) => write('delete', id, undefined, more),
        subscribe: (listener) => subscribe(name, listener as (rows: Row[]) => void),
      }
    },
    transaction,
    now: pass,
    size: async () => ((await (await mine())?.queue()) ?? []).filter(({ until }) => until === undefined).length,
    close() {
      isClosed = true
      stop?.()
      forget()
      unpoke?.()
      tabs?.close()
      platform.removeEventListener?.('online', isOnline)
    },
  }
}
