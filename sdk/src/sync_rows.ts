import { TrellisError } from './errors.ts'
import { newId } from './platform.ts'
import type { Mutation, Pulled, Row, Verdict } from './sync_calls.ts'
import type { SyncStore } from './sync_store.ts'
import { managed } from './sync_write.ts'

/** A mutation that waits for its verdict, or, `until` a pull has reached this checkpoint, for what it wrote. */
export type Queued = Mutation & { readonly until?: string | undefined }

type State = {
  readonly clientId: string
  readonly checkpoint: string | null
  /** Counts the whole pulls: rows that the last one did not bring have a lower number, and go at its end. */
  readonly generation: number
  readonly isWhole: boolean
  readonly collections: readonly string[]
  /** The version of each collection's columns, of which the rows are. */
  readonly schema?: Readonly<Record<string, number>> | undefined
}
type Held = { readonly row: Row; readonly generation: number }

/** A row as the user sees it: that of the server, and what was written to it here since. */
const overlaid = (row: Row | undefined, { op, row_id, data }: Mutation): Row | undefined => {
  if (op === 'delete') return undefined
  if (op === 'patch') return row && { ...row, ...data }
  const kept = Object.entries(row ?? {}).filter(([name]) => managed.has(name))
  return { ...data, ...Object.fromEntries(kept), id: row_id }
}

export type Rows = ReturnType<typeof rowsOf>

/** What is kept for one user. Whoever writes does so exclusively. */
export const rowsOf = (store: SyncStore, place: string) => {
  const stateKey = `${place}/state`
  const rowPlace = `${place}/row/`
  const queuePlace = `${place}/queue/`
  const lastKey = `${place}/last`
  const keyOf = (collection: string, id: string) => `${rowPlace}${collection}/${id}`

  const state = async (): Promise<State> =>
    ((await store.get(stateKey)) as State | undefined) ?? {
      clientId: newId(),
      checkpoint: null,
      generation: 0,
      isWhole: false,
      collections: [],
    }
  const queue = async () => (await store.list(queuePlace)) as (readonly [string, Queued])[]
  const held = async (collection: string, id: string) =>
    ((await store.get(keyOf(collection, id))) as Held | undefined)?.row

  return {
    state,
    async begin(): Promise<State> {
      const found = await state()
      await store.write(new Map([[stateKey, found]]))
      return found
    },
    queue: async () => (await queue()).map(([, queued]) => queued),
    held,
    async list(collection: string): Promise<Row[]> {
      // first the queue: a write that is answered in between is shown twice rather than not at all
      const written = (await queue()).map(([, queued]) => queued).filter((one) => one.collection === collection)
      const rows = (await store.list(`${rowPlace}${collection}/`)) as (readonly [string, Held])[]
      const all = new Map(rows.map(([, { row }]) => [row.id, row] as const))
      for (const one of written) {
        const row = overlaid(all.get(one.row_id), one)
        if (row) all.set(row.id, row)
        else all.delete(one.row_id)
      }
      return [...all.values()]
    },
    async get(collection: string, id: string): Promise<Row | undefined> {
      const written = (await queue()).map(([, queued]) => queued)
      const own = written.filter((one) => one.collection === collection && one.row_id === id)
      let row = await held(collection, id)
      for (const one of own) row = overlaid(row, one)
      return row
    },

    async add(mutations: readonly Mutation[]): Promise<void> {
      // the number of the last write: a queue that was made without a network may be long
      const last = (await store.get(lastKey)) as number | undefined
      const before = last ?? Number((await queue()).at(-1)?.[0].slice(queuePlace.length).split('-')[0] ?? 0)
      const keyAt = (n: number, id: string) => `${queuePlace}${String(before + 1 + n).padStart(12, '0')}-${id}`
      const changes = new Map<string, unknown>(mutations.map((mutation, n) => [keyAt(n, mutation.id), mutation]))
      await store.write(changes.set(lastKey, before + mutations.length))
    },

    /** Puts the rows of the server in the place of what was written, in collections that are kept. */
    async settle(verdicts: readonly Verdict[], hint: string, isKept: (name: string) => boolean): Promise<void> {
      const { generation } = await state()
      const waiting = new Map((await queue()).map(([key, queued]) => [queued.id, [key, queued] as const]))
      const changes = new Map<string, unknown>()
      /** The times that the rows have now: later writes to a row were made on top of those before. */
      const times = new Map<string, unknown>()
      for (const { mutation, status, isCurrent, row } of verdicts) {
        const [key, queued] = waiting.get(mutation.id) ?? []
        if (!key) continue
        const place = keyOf(mutation.collection, mutation.row_id)
        changes.set(key, status === 'applied' && !isCurrent ? { ...queued, until: hint } : undefined)
        if (isCurrent) changes.set(place, row && isKept(mutation.collection) ? { row, generation } : undefined)
        if (status === 'applied' && row) times.set(place, row['updated_at'])
      }
      for (const [key, one] of waiting.values()) {
        const base_updated_at = times.get(keyOf(one.collection, one.row_id))
        if (base_updated_at && one.base_updated_at && !changes.has(key)) changes.set(key, { ...one, base_updated_at })
      }
      await store.write(changes)
    },

    /** Takes a page of a pull, with its checkpoint; without one, everything is to be pulled again. */
    async take(page: Pulled): Promise<void> {
      const before = await state()
      const generation = before.generation + (page.isWhole ? 1 : 0)
      const isWhole = page.isWhole || before.isWhole
      const changes = new Map<string, unknown>()
      const names = Object.keys(page.changes)
      // one that is off or dropped is not named any more, and comes whole when it is back
      for (const name of before.collections.filter((one) => !names.includes(one))) {
        for (const [key] of await store.list(`${rowPlace}${name}/`)) changes.set(key, undefined)
      }
      for (const [name, { created, updated, deleted }] of Object.entries(page.changes)) {
        for (const row of [...created, ...updated] as Row[]) changes.set(keyOf(name, row.id), { row, generation })
        for (const id of deleted) changes.set(keyOf(name, id), undefined)
      }
      if (!page.has_more) {
        if (isWhole) {
          for (const [key, value] of await store.list(rowPlace)) {
            if ((value as Held).generation < generation && !changes.has(key)) changes.set(key, undefined)
          }
        }
      }
      for (const [key, queued] of await queue()) {
        if (!queued.until) continue
        // a whole pull has all that was written before it, also of a server that counts anew; what was written while its pages come waits on
        const until = page.isWhole ? '1' : queued.until
        if (!page.has_more && Number(until) <= Number(page.checkpoint)) changes.set(key, undefined)
        else if (until !== queued.until) changes.set(key, { ...queued, until })
      }
      const { has_more, schema } = page
      // no pull tells what other columns mean for rows that nobody has written since: they come anew
      const isOld = !page.isWhole && names.some((name) => (before.schema?.[name] ?? schema[name]) !== schema[name])
      const checkpoint = isOld ? null : page.checkpoint
      const after: State = {
        ...before,
        checkpoint,
        generation,
        isWhole: isWhole && has_more,
        collections: names,
        schema,
      }
      await store.write(changes.set(stateKey, after))
    },

    /** The rows go; what was not sent stays, unless it is of a user who is no more. */
    async forget(isAll: boolean): Promise<void> {
      const gone = await store.list(isAll ? `${place}/` : rowPlace)
      const { clientId, generation } = await state()
      const changes = new Map<string, unknown>(gone.map(([key]) => [key, undefined]))
      const fresh: State = { clientId, checkpoint: null, generation, isWhole: false, collections: [] }
      await store.write(isAll ? changes : changes.set(stateKey, fresh))
    },
  }
}

export const nobody = () => new TrellisError('ABORTED', 'Nobody is signed in: `ensureSignedIn` comes first.')
