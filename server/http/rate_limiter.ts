import ipaddr from 'ipaddr.js'
import { refusal } from '#server/errors.ts'
import { createLru } from '#server/lru.ts'

type Wanted = { readonly key: string; readonly perSecond: number; readonly burst: number }
type Bucket = { tokens: number; at: number }

/** Token buckets in memory for the general rate limits: they protect one process and need not be exact. */
export type RateLimiter = {
  /** Takes one token from each of these buckets, or refuses with 429 RATE_LIMITED. */
  take(buckets: readonly Wanted[]): void
  /** Refuses as take does, without taking a token. */
  check(buckets: readonly Wanted[]): void
}

declare module '#server/services.ts' {
  interface Services {
    readonly rateLimiter: RateLimiter
  }
}

const most = 100_000

export const createRateLimiter = (isOn: boolean): RateLimiter => {
  const buckets = createLru<Bucket>(most)
  const fill = (key: string, perSecond: number, burst: number, now: number): Bucket => {
    const known = buckets.get(key)
    const bucket = known ?? { tokens: burst, at: now }
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * perSecond)
    bucket.at = now
    if (!known) buckets.set(key, bucket)
    return bucket
  }
  const visit = (wanted: readonly Wanted[], cost: number) => {
    if (!isOn) return
    const now = performance.now()
    const filled = wanted.map(({ key, perSecond, burst }) => ({
      bucket: fill(key, perSecond, burst, now),
      perSecond,
    }))
    const empty = filled.find(({ bucket }) => bucket.tokens < 1)
    if (empty) {
      const wait = Math.max(1, Math.ceil((1 - empty.bucket.tokens) / empty.perSecond))
      throw refusal(
        429,
        'RATE_LIMITED',
        'Too many requests: slow down.',
        { retry_after_seconds: wait },
        { 'Retry-After': String(wait) },
      )
    }
    for (const { bucket } of filled) bucket.tokens -= cost
  }
  return { take: (wanted) => visit(wanted, 1), check: (wanted) => visit(wanted, 0) }
}

/**
 * The rate-limit key of an IP address: for IPv6 the /64 prefix, in one spelling. Proxies that add the port would
 * otherwise give each connection a budget of its own.
 */
export const addressKey = (ip: string): string => {
  const known = addressKeys.get(ip)
  if (known !== undefined) return known
  // cached because parsing an address takes longer than the rest of its rate limit
  const made = keyOfAddress(ip)
  addressKeys.set(ip, made)
  return made
}

const addressKeys = createLru<string>(10_000)

const keyOfAddress = (ip: string): string => {
  const plain = ip.replace(/^\[([^\]]*)\](:\d+)?$/, '$1').replace(/^([\d.]+):\d+$/, '$1')
  if (!ipaddr.isValid(plain)) return plain.slice(0, 100)
  const address = ipaddr.process(plain)
  if (address.kind() === 'ipv4') return address.toString()
  const { parts } = address as ipaddr.IPv6
  return `${parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}
