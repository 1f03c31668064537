import { LRUCache } from 'lru-cache'

export type Lru<T extends {}> = LRUCache<string, T>

export type LruOptions<T extends {}> = {
  /** Entries expire this long after they were set; never by default. */
  readonly ttlMs?: number
  /** Called with each value that is evicted, replaced or deleted. */
  readonly dispose?: (value: T) => void
}

/**
 * A map of at most `most` entries, from which the least recently used is evicted. It grows with its entries: the `max` of lru-cache allocates
 * room for all of them when the map is made, 20 MB for the maps of a server, so each entry is counted by its size instead, which is 1.
 */
export const createLru = <T extends {}>(most: number, { ttlMs, dispose }: LruOptions<T> = {}): Lru<T> =>
  new LRUCache<string, T>({
    maxSize: most,
    sizeCalculation: () => 1,
    ...(ttlMs === undefined ? {} : { ttl: ttlMs, perf: { now: () => performance.now() } }),
    ...(dispose ? { dispose } : {}),
  })
