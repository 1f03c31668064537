import { platform } from './platform.ts'

/** Where `createSync` keeps rows and writes: values by keys, in the order of the keys. */
export type SyncStore = {
  get(key: string): Promise<unknown>
  /** All whose keys begin so. */
  list(prefix: string): Promise<(readonly [key: string, value: unknown])[]>
  /** Writes all or nothing; undefined deletes. */
  write(changes: ReadonlyMap<string, unknown>): Promise<void>
}

/** Forgets everything when the program ends. */
export const memorySyncStore = (): SyncStore => {
  const values = new Map<string, string>()
  return {
    get: async (key) => (values.has(key) ? JSON.parse(values.get(key) as string) : undefined),
    list: async (prefix) =>
      [...values]
        .filter(([key]) => key.startsWith(prefix))
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, value]) => [key, JSON.parse(value)] as const),
    async write(changes) {
      for (const [key, value] of changes) {
        if (value === undefined) values.delete(key)
        else values.set(key, JSON.stringify(value))
      }
    },
  }
}

/** IndexedDB, as far as it is used here. */
type Request<T> = {
  readonly result: T
  readonly error: unknown
  onsuccess: (() => void) | null
  onerror: (() => void) | null
}
type Values = {
  get(key: string): Request<unknown>
  getAll(range: unknown): Request<unknown[]>
  getAllKeys(range: unknown): Request<string[]>
  put(value: unknown, key: string): unknown
  delete(key: string): unknown
}
type Transaction = {
  readonly error: unknown
  oncomplete: (() => void) | null
  onabort: (() => void) | null
  objectStore(name: string): Values
  abort(): void
}
type Database = {
  onclose: (() => void) | null
  onversionchange: (() => void) | null
  createObjectStore(name: string): unknown
  transaction(name: string, mode: 'readonly' | 'readwrite'): Transaction
  close(): void
}
type Indexed = { open(name: string, version: number): Request<Database> & { onupgradeneeded: (() => void) | null } }
type Ranges = { bound(from: string, to: string): unknown }

const name = 'trellis-sync'
const values = 'values'

const indexedSyncStore = (indexed: Indexed, ranges: Ranges): SyncStore => {
  let opened: Promise<Database> | undefined
  const open = (): Promise<Database> => {
    opened ??= new Promise<Database>((resolve, reject) => {
      const request = indexed.open(name, 1)
      request.onupgradeneeded = () => request.result.createObjectStore(values)
      request.onerror = () => {
        opened = undefined
        reject(request.error)
      }
      request.onsuccess = () => {
        const database = request.result
        const forget = () => {
          opened = undefined
        }
        database.onclose = forget
        database.onversionchange = () => {
          forget()
          database.close()
        }
        resolve(database)
      }
    })
    return opened
  }
  const begin = async (mode: 'readonly' | 'readwrite'): Promise<Transaction> => {
    try {
      return (await open()).transaction(values, mode)
    } catch (error) {
      // a browser that has closed the database, as one does in the background, does not always tell
      if ((error as { name?: unknown } | null)?.name !== 'InvalidStateError') throw error
      opened = undefined
      return (await open()).transaction(values, mode)
    }
  }
  const run = async <T>(mode: 'readonly' | 'readwrite', work: (store: Values) => () => T): Promise<T> => {
    const transaction = await begin(mode)
    return new Promise<T>((resolve, reject) => {
      transaction.onabort = () => reject(transaction.error)
      try {
        const answer = work(transaction.objectStore(values))
        transaction.oncomplete = () => resolve(answer())
      } catch (error) {
        // a value that cannot be stored: what came before it is not stored either
        reject(error)
        transaction.abort()
      }
    })
  }
  return {
    get: (key) =>
      run('readonly', (store) => {
        const asked = store.get(key)
        return () => asked.result
      }),
    list: (prefix) =>
      run('readonly', (store) => {
        const range = ranges.bound(prefix, `${prefix}\uffff`)
        const [keys, all] = [store.getAllKeys(range), store.getAll(range)]
        return () => keys.result.map((key, index) => [key, all.result[index]] as const)
      }),
    write: (changes) =>
      run('readwrite', (store) => {
        for (const [key, value] of changes) {
          if (value === undefined) store.delete(key)
          else store.put(value, key)
        }
        return () => undefined
      }),
  }
}

/** IndexedDB of a page, which all its tabs share; elsewhere, and where a browser forbids it, memory. */
export const defaultSyncStore = (): SyncStore => {
  const memory = memorySyncStore()
  let kept = memory
  try {
    const { indexedDB, IDBKeyRange } = platform as { indexedDB?: Indexed; IDBKeyRange?: Ranges }
    if (indexedDB && IDBKeyRange) kept = indexedSyncStore(indexedDB, IDBKeyRange)
  } catch {
    // a page without access to its storage
  }
  // asked once: what one call has written the next one must find
  let chosen: Promise<SyncStore> | undefined
  const store = () => {
    chosen ??= kept.get('').then(
      () => kept,
      () => memory,
    )
    return chosen
  }
  return {
    get: async (key) => (await store()).get(key),
    list: async (prefix) => (await store()).list(prefix),
    write: async (changes) => (await store()).write(changes),
  }
}
