import { createLru } from '#server/lru.ts'

/**
 * Looked-up values, cached for a limited time: at most `max` of them, the least recently used is evicted first. lru-cache holds the values; its
 * own `fetch` is not used, because an invalidation must also reach callers that wait for a load which began before it.
 */
export type Cache<T> = {
  /** The cached value, or the result of `load`: one load at a time for each key. Null is never cached, nor a value that `isKept` refuses. */
  get(key: string, load: () => Promise<T | null>, isKept?: (value: T) => boolean): Promise<T | null>
  peek(key: string): T | undefined
  set(key: string, value: T): void
  drop(key: string): void
  dropWhere(test: (value: T) => boolean): void
  clear(): void
  readonly state: CacheState
}

/** How often `get` found a value, how often it had to load one, and how many values there are. */
export type CacheState = { readonly hits: number; readonly misses: number; readonly entries: number }

export const createCache = <T extends object | string | number>(max: number, ttlMs: number): Cache<T> => {
  const kept = createLru<T>(max, { ttlMs })
  const loading = new Map<string, Promise<T | null>>()
  // an invalidation during a load wins: the loaded value may be older than the change
  let dropped = 0
  let hits = 0
  let misses = 0

  const peek = (key: string): T | undefined => kept.get(key)
  const set = (key: string, value: T) => void kept.set(key, value)
  const drop = (key: string) => {
    dropped += 1
    kept.delete(key)
    loading.delete(key)
  }
  return {
    get state() {
      return { hits, misses, entries: kept.size }
    },
    peek,
    set,
    drop,
    async get(key, load, isKept = () => true) {
      const value = peek(key)
      if (value !== undefined) {
        hits += 1
        return value
      }
      misses += 1
      let running = loading.get(key)
      if (!running) {
        const before = dropped
        running = load()
          .then((found) => {
            if (found !== null && dropped === before && isKept(found)) set(key, found)
            return found
          })
          .finally(() => {
            if (loading.get(key) === running) loading.delete(key)
          })
        loading.set(key, running)
      }
      return running
    },
    dropWhere(test) {
      dropped += 1
      const gone: string[] = []
      kept.forEach((value, key) => void (test(value) && gone.push(key)))
      for (const key of gone) kept.delete(key)
      // a load under way may bring a value that is dropped here: later callers load again
      loading.clear()
    },
    clear() {
      dropped += 1
      kept.clear()
      loading.clear()
    },
  }
}
