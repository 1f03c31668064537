export type Line = { readonly kind: 'same' | 'gone' | 'new'; readonly text: string }

const most = 400

/** The lines of two texts, in their order: those of both, those that went and those that came, by the longest common subsequence. */
export const linesOf = (before: string, after: string): readonly Line[] => {
  const [a, b] = [before, after].map((text) => (text === '' ? [] : text.split('\n'))) as [string[], string[]]
  const gone = (text: string): Line => ({ kind: 'gone', text })
  const made = (text: string): Line => ({ kind: 'new', text })
  // a table of the two would be too large
  if (a.length > most || b.length > most) return before === after ? [] : [...a.map(gone), ...b.map(made)]
  const common = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0))
  const at = (i: number, j: number) => common[i]?.[j] ?? 0
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const row = common[i]
      if (row) row[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  const lines: Line[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i] ?? '' })
      i += 1
      j += 1
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) {
      lines.push(gone(a[i] ?? ''))
      i += 1
    } else {
      lines.push(made(b[j] ?? ''))
      j += 1
    }
  }
  return lines
}
