/** An independent implementation of the formula of buckets (docs/config.md, docs/flags.md), as an SDK would have it. */
const fnv1a32 = (text: string) => {
  let value = 0x811c9dc5
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0
  return value
}

/** The bucket of a user, 0 to 9999, for a seed: the key of a flag, or that of a config key with its colon. */
export const bucketOf = (seed: string, userId: string) => fnv1a32(String(fnv1a32(seed + userId))) % 10_000
