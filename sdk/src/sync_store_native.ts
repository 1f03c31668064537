import type { SyncStore } from './sync_store.ts'

/** Runs one statement of SQLite and answers its rows: `(sql, params) => db.getAllAsync(sql, params)` of expo-sqlite, for one. */
export type SqliteQuery = (sql: string, params: string[]) => Promise<readonly object[]>

/**
 * Rows and writes in a SQLite database of the app: one table, `trellis_sync`. A write is one statement, so that it is all or nothing without a transaction, which
 * would take in what else the app does with the database meanwhile.
 */
export const sqliteSyncStore = (query: SqliteQuery): SyncStore => {
  let made: Promise<unknown> | undefined
  const run = async (sql: string, params: string[]) => {
    made ??= query('create table if not exists trellis_sync (key text primary key, value text) without rowid', [])
    await made.catch((error: unknown) => {
      made = undefined
      throw error
    })
    return (await query(sql, params)) as readonly { readonly key: string; readonly value: string }[]
  }
  return {
    async get(key) {
      const [row] = await run('select key, value from trellis_sync where key = ? and value is not null', [key])
      return row && JSON.parse(row.value)
    },
    async list(prefix) {
      const where = 'key >= ? and key < ? and value is not null'
      const rows = await run(`select key, value from trellis_sync where ${where} order by key`, [
        prefix,
        `${prefix}\uffff`,
      ])
      return rows.map(({ key, value }) => [key, JSON.parse(value)] as const)
    },
    async write(changes) {
      const texts = [...changes].map(([key, value]) => [key, value === undefined ? null : JSON.stringify(value)])
      if (texts.length === 0) return
      await run(
        `insert or replace into trellis_sync (key, value)
         select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each(?)`,
        [JSON.stringify(texts)],
      )
      // what has no value is gone already: this only makes room
      if (texts.some(([, text]) => text === null)) await run('delete from trellis_sync where value is null', [])
    },
  }
}

/** What is used of `@react-native-async-storage/async-storage`: its default export is that. */
export type AsyncStorageLike = {
  getItem(key: string): Promise<string | null>
  setItem(key: string, value: string): Promise<void>
  removeItem(key: string): Promise<void>
  getAllKeys(): Promise<readonly string[]>
  multiGet(keys: string[]): Promise<readonly (readonly [string, string | null])[]>
  multiSet(pairs: [string, string][]): Promise<void>
  multiRemove(keys: string[]): Promise<void>
}

/** Android reads no value that is much larger than a million characters. */
const longest = 500_000

/**
 * Rows and writes in AsyncStorage, for some hundred rows: each list reads the names of all keys. AsyncStorage writes many values one after the other, so what is
 * to be written goes into a journal first, and an app that ends in the middle finishes at its next start. One store at a time for a storage.
 */
export const asyncStorageSyncStore = (storage: AsyncStorageLike): SyncStore => {
  const place = 'trellis-sync:'
  const journal = 'trellis-sync-journal'
  const partKey = (n: number) => `${journal}:${n}`
  const partKeys = (count: number) => Array.from({ length: count }, (_, n) => partKey(n))

  const apply = async (texts: readonly (readonly [string, string | null])[]): Promise<void> => {
    const kept = texts.flatMap(([key, text]): [string, string][] => (text === null ? [] : [[place + key, text]]))
    const gone = texts.flatMap(([key, text]) => (text === null ? [place + key] : []))
    if (kept.length > 0) await storage.multiSet(kept)
    if (gone.length > 0) await storage.multiRemove(gone)
  }
  /** What the journal has is decided: it is written, however often it takes. */
  const finish = async (): Promise<void> => {
    const count = Number((await storage.getItem(journal)) ?? 0)
    if (count === 0) return
    const parts = new Map(await storage.multiGet(partKeys(count)))
    await apply(
      JSON.parse(
        partKeys(count)
          .map((key) => parts.get(key))
          .join(''),
      ),
    )
    await storage.removeItem(journal)
    await storage.multiRemove(partKeys(count))
  }

  let turn: Promise<unknown> = Promise.resolve()
  let isClean = false
  /** One after the other: nobody reads the half of a write. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const next = turn.then(async () => {
      if (!isClean) await finish()
      isClean = true
      return work()
    })
    turn = next.catch(() => undefined)
    return next
  }

  return {
    get: (key) =>
      inTurn(async () => {
        const text = await storage.getItem(place + key)
        return text === null ? undefined : JSON.parse(text)
      }),
    list: (prefix) =>
      inTurn(async () => {
        const keys = (await storage.getAllKeys()).filter((key) => key.startsWith(place + prefix))
        const found = keys.length === 0 ? [] : await storage.multiGet(keys)
        return found
          .flatMap(([key, text]) => (text === null ? [] : [[key.slice(place.length), JSON.parse(text)] as const]))
          .sort(([a], [b]) => (a < b ? -1 : 1))
      }),
    write: (changes) =>
      inTurn(async () => {
        const texts = [...changes].map(
          ([key, value]) => [key, value === undefined ? null : JSON.stringify(value)] as const,
        )
        // a part may end anywhere, and a storage keeps no half of a surrogate pair
        const all = JSON.stringify(texts).replace(/[\ud800-\udfff]/g, (half) => `\\u${half.charCodeAt(0).toString(16)}`)
        const parts = Array.from({ length: Math.ceil(all.length / longest) }, (_, n): [string, string] => [
          partKey(n),
          all.slice(n * longest, (n + 1) * longest),
        ])
        await storage.multiSet(parts)
        isClean = false
        await storage.setItem(journal, String(parts.length))
        await finish()
        isClean = true
      }),
  }
}
