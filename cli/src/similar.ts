/** Insertions, deletions, replacements and swaps of neighbours between two words: what a slip of a finger does is 1. */
const distance = (a: string, b: string): number => {
  const rows: number[][] = Array.from({ length: a.length + 1 }, (_, i) => [i])
  const at = (i: number, j: number) => rows[i]?.[j] ?? 0
  for (let j = 1; j <= b.length; j += 1) (rows[0] as number[])[j] = j
  for (let i = 1; i <= a.length; i += 1) {
    for (let j = 1; j <= b.length; j += 1) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      let least = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + cost)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, at(i - 2, j - 2) + 1)
      ;(rows[i] as number[])[j] = least
    }
  }
  return at(a.length, b.length)
}

/** The words that somebody may have meant, nearest first: at most three. */
export const similar = (word: string, words: readonly string[]): string[] => {
  // what is no word of anybody's need not be compared letter by letter
  const typed = word.toLowerCase().slice(0, 40)
  return words
    .map((one) => ({ one, far: one.startsWith(typed) && typed.length > 1 ? 0.5 : distance(typed, one) }))
    .filter(({ one, far }) => far <= Math.max(1, Math.floor(Math.min(one.length, typed.length) / 2.5)))
    .sort((a, b) => a.far - b.far || (a.one < b.one ? -1 : 1))
    .slice(0, 3)
    .map(({ one }) => one)
}

export const didYouMean = (word: string, words: readonly string[]): string | undefined => {
  const found = similar(word, words)
  return found.length === 0 ? undefined : `Did you mean ${found.join(', or ')}?`
}
