/** The first 64 primes, whose roots give the constants of SHA-256 (FIPS 180-4, 4.2.2 and 5.3.3). */
const primes: number[] = []
for (let number = 2; primes.length < 64; number += 1)
  if (primes.every((prime) => number % prime !== 0)) primes.push(number)

/** The first 32 bits of the fraction of a root. */
const fraction = (root: number) => ((root - Math.floor(root)) * 2 ** 32) | 0
const rounds = primes.map((prime) => fraction(Math.cbrt(prime)))
const start = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)))

const rotated = (word: number, by: number) => (word >>> by) | (word << (32 - by))

/** The message with its padding (5.1.1), as words of 32 bits. */
const wordsOf = (text: string): number[] => {
  const words = new Array<number>((((text.length + 8) >> 6) + 1) * 16).fill(0)
  for (let at = 0; at < text.length; at += 1) words[at >> 2]! |= text.charCodeAt(at) << (24 - (at & 3) * 8)
  words[text.length >> 2]! |= 128 << (24 - (text.length & 3) * 8)
  words[words.length - 1] = text.length * 8
  return words
}

/** SHA-256 of ASCII text, as bytes: React Native has no `crypto.subtle`, nor has a page on http. */
export const sha256 = (text: string): number[] => {
  const hash = [...start]
  const words = wordsOf(text)
  for (let block = 0; block < words.length; block += 16) {
    const schedule = words.slice(block, block + 16)
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = hash
    for (let round = 0; round < 64; round += 1) {
      if (round >= 16) {
        const [near = 0, far = 0] = [schedule[round - 2], schedule[round - 15]]
        const small = rotated(far, 7) ^ rotated(far, 18) ^ (far >>> 3)
        const large = rotated(near, 17) ^ rotated(near, 19) ^ (near >>> 10)
        schedule[round] = ((schedule[round - 16] ?? 0) + small + (schedule[round - 7] ?? 0) + large) | 0
      }
      const chosen = (e & f) ^ (~e & g)
      const first = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + chosen + rounds[round]! + schedule[round]!
      const second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
      ;[a, b, c, d, e, f, g, h] = [(first + second) | 0, a, b, c, (d + first) | 0, e, f, g]
    }
    for (const [index, word] of [a, b, c, d, e, f, g, h].entries()) hash[index] = ((hash[index] ?? 0) + word) | 0
  }
  return hash.flatMap((word) => [word >>> 24, (word >>> 16) & 255, (word >>> 8) & 255, word & 255])
}
