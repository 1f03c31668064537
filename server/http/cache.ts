/** Values that were looked up, kept for a short time: at most `max`, those that were looked up first go first. */
export type Cache<T> = {
  /** The kept value, or what `load` answers; one load at a time for a key. Null is never kept, nor what `isKept` refuses. */
  get(key: string, load: () => Promise<T | null>, isKept?: (value: T) => boolean): Promise<T | null>
  peek(key: string): T | undefined
  set(key: string, value: T): void
  drop(key: string): void
  dropWhere(test: (value: T) => boolean): void
  clear(): void
}

export const createCache = <T>(max: number, ttlMs: number): Cache<T> => {
  const kept = new Map<string, { value: T; until: number }>()
  const loading = new Map<string, Promise<T | null>>()
  // a drop while a load is under way must win: what it brings may be older than the change
  let dropped = 0

  const peek = (key: string): T | undefined => {
    const entry = kept.get(key)
    if (!entry) return undefined
    if (entry.until <= performance.now()) {
      kept.delete(key)
      return undefined
    }
    return entry.value
  }
  const set = (key: string, value: T) => {
    kept.delete(key)
    kept.set(key, { value, until: performance.now() + ttlMs })
    if (kept.size > max) kept.delete(kept.keys().next().value as string)
  }
  const drop = (key: string) => {
    dropped += 1
    kept.delete(key)
    loading.delete(key)
  }
  return {
    peek,
    set,
    drop,
    async get(key, load, isKept = () => true) {
      const value = peek(key)
      if (value !== undefined) return value
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
      for (const [key, entry] of kept) if (test(entry.value)) kept.delete(key)
      // what is being looked up may be what is dropped: whoever asks from now on looks again
      loading.clear()
    },
    clear() {
      dropped += 1
      kept.clear()
      loading.clear()
    },
  }
}
