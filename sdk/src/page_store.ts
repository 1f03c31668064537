import { memoryStore, platform, type Store } from './platform.ts'

/** IndexedDB, as far as it is used here: its types differ between platforms. */
type Request<T> = {
  readonly result: T
  readonly error: unknown
  onsuccess: (() => void) | null
  onerror: (() => void) | null
}
type Values = {
  get(key: string): Request<string | undefined>
  put(value: string, key: string): Request<unknown>
  delete(key: string): Request<undefined>
}
type Transaction = {
  readonly error: unknown
  oncomplete: (() => void) | null
  onabort: (() => void) | null
  objectStore(name: string): Values
}
type Database = {
  onclose: (() => void) | null
  onversionchange: (() => void) | null
  createObjectStore(name: string): unknown
  transaction(name: string, mode: 'readonly' | 'readwrite'): Transaction
  close(): void
}
export type Indexed = {
  open(name: string, version: number): Request<Database> & { onupgradeneeded: (() => void) | null }
}

const name = 'trellis'
const values = 'values'

/**
 * What a page keeps, in IndexedDB: once a write has resolved, every tab reads it. A browser shows what one tab wrote into `localStorage` to another tab
 * some moments later, even if that waited for a lock: of two tabs that store events, one would overwrite the other's.
 */
export const pageStore = (indexed: Indexed): Store => {
  let opened: Promise<Database> | undefined
  const open = (): Promise<Database> => {
    opened ??= new Promise<Database>((resolve, reject) => {
      const request = indexed.open(name, 1)
      request.onupgradeneeded = () => request.result.createObjectStore(values)
      request.onerror = () => reject(request.error)
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
  const run = async <T>(mode: 'readonly' | 'readwrite', work: (store: Values) => Request<T>): Promise<T> => {
    const database = await open()
    return new Promise<T>((resolve, reject) => {
      const transaction = database.transaction(values, mode)
      const request = work(transaction.objectStore(values))
      transaction.oncomplete = () => resolve(request.result)
      transaction.onabort = () => reject(transaction.error)
    })
  }
  // a browser may forbid it: then a page keeps everything until it is closed
  const memory = memoryStore()
  const either = async <T>(kept: () => Promise<T>, instead: () => unknown): Promise<T> => {
    const isThere = await open().then(
      () => true,
      () => false,
    )
    return isThere ? kept() : ((await instead()) as T)
  }
  return {
    getItem: (key) =>
      either<string | null | undefined>(
        () => run('readonly', (store) => store.get(key)),
        () => memory.getItem(key),
      ),
    setItem: (key, value) =>
      either<unknown>(
        () => run('readwrite', (store) => store.put(value, key)),
        () => memory.setItem(key, value),
      ),
    removeItem: (key) =>
      either<unknown>(
        () => run('readwrite', (store) => store.delete(key)),
        () => memory.removeItem(key),
      ),
  }
}

/** That of a page; elsewhere memory. */
export const defaultStore = (): Store => {
  try {
    if (platform.document && platform.indexedDB) return pageStore(platform.indexedDB as Indexed)
  } catch {
    // a page without access to its storage keeps the session until it is closed
  }
  return memoryStore()
}
