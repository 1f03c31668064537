import type { App } from './app.ts'
import { TrellisError } from './errors.ts'
import { exclusively, newId, platform } from './platform.ts'
import type { Realtime } from './realtime.ts'
import { createSyncCalls, type Mutation, nextBatch, type Row, type Verdict } from './sync_calls.ts'
import { createPasses } from './sync_passes.ts'
import { onPoke } from './sync_poke.ts'
import { nobody, type Rows, rowsOf } from './sync_rows.ts'
import { defaultSyncStore, type SyncStore } from './sync_store.ts'
import { createWatch, type RowChanges } from './sync_watch.ts'
import { mutationOf, type Write } from './sync_write.ts'

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
  /** As `subscribe`, with what differs from the call before: at first all rows are inserted. */
  changes(listener: (changes: RowChanges<T>) => void): () => void
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

/** Rows of collections on the device: read and written without a network, and brought together with those of the server when there is one. */
export const createSync = (app: App, options: SyncOptions = {}): Sync => {
  const { sessions, transport, prefix } = app.inside
  const { delay = 50, every = 60_000, collections, onVerdict, onError, realtime } = options
  const store = options.store ?? defaultSyncStore()
  const place = `${prefix}:sync-rows`
  const tellError = (error: unknown) => onError?.(error)

  const current = async (): Promise<string | undefined> => (await sessions.current())?.userId
  const ofUser = (user: string): Rows => rowsOf(store, `${prefix}/${user}`)
  const mine = async (): Promise<Rows | undefined> => {
    const user = await current()
    return user === undefined ? undefined : ofUser(user)
  }
  /** Nobody sees rows of who was signed in before. */
  const shown = async (collection: string): Promise<Row[]> => {
    for (;;) {
      const user = await current()
      const rows = user === undefined ? [] : await ofUser(user).list(collection)
      if ((await current()) === user) return rows
    }
  }
  const watch = createWatch(place, shown, tellError)

  /** Reads and writes for this user alone, unless another one has signed in. */
  const change = (user: string, work: (rows: Rows) => Promise<void>) =>
    exclusively(place, async () => {
      if ((await current()) !== user) throw nobody()
      await work(ofUser(user))
    })

  /** Whose rows are on the device: those of one who left go, also where the app ended before they were gone. */
  const ownerKey = `${place}:owner`
  const clearOthers = async (user: string | undefined): Promise<void> => {
    const owner = (await store.get(ownerKey)) as string | undefined
    if (owner === user) return
    if (owner !== undefined) await ofUser(owner).forget(false)
    await store.write(new Map([[ownerKey, user]]))
  }

  let isMissingTold = false
  const tellMissing = (error: unknown) => {
    if (!isMissingTold) tellError(error)
    isMissingTold = true
  }
  const callsFor = async (user: string) => {
    let clientId = ''
    await change(user, async (rows) => {
      await clearOthers(user)
      clientId = (await rows.begin()).clientId
    })
    return createSyncCalls(app, async () => ({ userId: user, clientId }), collections, tellMissing)
  }

  const isKept = (collection: string) => !collections || collections.includes(collection)
  /** What the app does with a verdict does not keep it from the next one. */
  const tellVerdict = (verdict: Verdict) => {
    try {
      onVerdict?.(verdict)
    } catch (error) {
      tellError(error)
    }
  }

  /** A row is sent again only with the time that its write before has given it. */
  const mustWait = (unit: readonly Mutation[], batch: readonly Mutation[]) =>
    unit.some(
      ({ base_updated_at, collection, row_id }) =>
        base_updated_at && batch.some((one) => one.collection === collection && one.row_id === row_id),
    )

  const work = async (): Promise<void> => {
    const user = await current()
    if (user === undefined) return
    const calls = await callsFor(user)
    const rows = ofUser(user)
    for (;;) {
      const waiting = (await rows.queue()).filter(({ until }) => until === undefined)
      const batch = nextBatch(waiting, mustWait)
      if (batch.length === 0) break
      const { verdicts, hint } = await calls.push(batch)
      await change(user, () => rows.settle(verdicts, hint, isKept))
      await watch.tell([...new Set(batch.map(({ collection }) => collection))])
      for (const verdict of verdicts) tellVerdict(verdict)
    }
    for (let hasMore = true; hasMore; ) {
      const page = await calls.pullPage((await rows.state()).checkpoint)
      await change(user, () => rows.take(page))
      const isSome = ({ created, updated, deleted }: (typeof page.changes)[string]) =>
        created.length + updated.length + deleted.length > 0
      hasMore = page.has_more || (await rows.state()).checkpoint === null
      const names = Object.entries(page.changes).flatMap(([name, lists]) => (isSome(lists) ? [name] : []))
      // the end of a whole pull may take rows of any
      await watch.tell(page.isWhole || !hasMore ? undefined : names)
    }
  }
  const { random } = transport
  const passes = createPasses({ place, work, onError: tellError, random, delay, every })
  const { schedule } = passes

  const transaction = async (writes: readonly Write[]): Promise<void> => {
    const user = await current()
    if (user === undefined) throw nobody()
    const stranger = writes.find(({ collection }) => !isKept(collection))
    if (stranger) throw new TrellisError('COLLECTION_NOT_FOUND', `createSync does not keep "${stranger.collection}".`)
    await change(user, async (rows) => {
      const tx = writes.length > 1 ? newId() : undefined
      const touched = new Set<string>()
      const mutations: Mutation[] = []
      for (const write of writes) {
        const row = `${write.collection}/${write.row_id.toLowerCase()}`
        const isBased = write.ifUnchanged && !touched.has(row)
        touched.add(row)
        const held = isBased ? await rows.held(write.collection, write.row_id.toLowerCase()) : undefined
        mutations.push(mutationOf(write, { base: held?.['updated_at'], tx }))
      }
      await rows.add(mutations)
    })
    await watch.tell([...new Set(writes.map(({ collection }) => collection))])
    schedule(delay)
  }

  let user: string | undefined
  const started = current().then((id) => {
    user ??= id
    if (id !== undefined) return schedule(delay)
    return exclusively(place, async () => {
      if ((await current()) === undefined) await clearOthers(undefined)
    })
  })
  started.catch(tellError)
  const forget = sessions.onChange((session, end) => {
    const gone = user
    user = session?.userId
    if (session) schedule(delay)
    const isOver = end === 'deleted' || end === 'signed out'
    const clear = () =>
      exclusively(place, async () => {
        await ofUser(gone as string).forget(end === 'deleted')
        if ((await store.get(ownerKey)) === gone) await store.write(new Map([[ownerKey, undefined]]))
      })
    const cleared = isOver && gone !== undefined ? clear() : Promise.resolve()
    cleared.then(() => watch.tell()).catch(() => undefined)
  })
  const isOnline = passes.news
  platform.addEventListener?.('online', isOnline)
  const unpoke = realtime ? onPoke(realtime, passes.news) : undefined

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
        subscribe: (listener) => watch.subscribe(name, listener as (rows: Row[]) => void),
        changes: (listener) => watch.changes(name, listener as (changes: RowChanges) => void),
      }
    },
    transaction,
    now: passes.pass,
    size: async () => ((await (await mine())?.queue()) ?? []).filter(({ until }) => until === undefined).length,
    close() {
      passes.close()
      forget()
      unpoke?.()
      watch.close()
      platform.removeEventListener?.('online', isOnline)
    },
  }
}
