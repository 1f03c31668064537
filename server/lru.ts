import { LRUCache } from 'lru-cache'

export type Lru<T extends {}> = LRUCache<string, T>

export type LruOptions<T extends {}> = {
  /** Entries expire this long after they were set; never by default. */
  readonly ttlMs?: number
  /** Called with each value that is evicted, replaced or deleted. */
  readonly dispose?: (value: T) => void
  /** What an entry takes, in bytes: `most` then is bytes too. By default each entry counts as 1. */
  readonly bytesOf?: (value: T, key: string) => number
}

const clock = () => performance.now()

/** Expired entries go when they are asked for, or evicted; those that nobody asks for again would stay, as those of users who have left do. */
class SweptCache<T extends {}> extends LRUCache<string, T> {
  #sweepAt = 0
  override set(...args: Parameters<LRUCache<string, T>['set']>): this {
    if (this.ttl > 0 && clock() >= this.#sweepAt) {
      this.#sweepAt = clock() + this.ttl
      this.purgeStale()
    }
    return super.set(...args)
  }
}

/**
 * A map of at most `most` entries, or bytes, from which the least recently used is evicted. It grows with its entries: the `max` of lru-cache allocates
 * room for all of them when the map is made, 20 MB for the maps of a server, so each entry is counted by its size instead, which is 1.
 */
export const createLru = <T extends {}>(most: number, { ttlMs, dispose, bytesOf }: LruOptions<T> = {}): Lru<T> =>
  new SweptCache<T>({
    maxSize: most,
    sizeCalculation: bytesOf ?? (() => 1),
    ...(ttlMs === undefined ? {} : { ttl: ttlMs, perf: { now: clock } }),
    ...(dispose ? { dispose } : {}),
  })
