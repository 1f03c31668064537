/** The value at a share of the sorted values: 0.5 is the median. */
export const percentile = (values: readonly number[], share: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const upper = sorted[Math.floor(middle)] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** The median of one figure over the rounds of a contestant. */
export const medianOf = <T>(rounds: readonly T[], figure: (round: T) => number): number => median(rounds.map(figure))

/** A table of text in Markdown; columns after the first are figures, set to the right. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`
  const rule = `|${widths.map((width, column) => (column === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`
  return [line(head), rule, ...rows.map(line)].join('\n')
}

/** A figure with as many decimals as it needs to show three digits. */
export const figure = (value: number): string => {
  if (!Number.isFinite(value)) return '-'
  if (Math.abs(value) >= 100) return String(Math.round(value))
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2)
}

/** The median of the ratios round by round: both sides of a ratio met the same minute of the machine. */
export const medianRatio = (values: readonly number[], to: readonly number[]): number =>
  median(values.map((value, index) => value / (to[index] ?? Number.NaN)))
