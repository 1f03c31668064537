/** The characters of a cell, as a terminal counts them: one that takes two units of UTF-16 is one. */
const widthOf = (cell: string) => [...cell].length

/** Rows as lines of aligned columns. The last cell of a row may be longer than the cells above it: nothing follows it. */
export const columns = (rows: readonly (readonly string[])[]): string[] => {
  const widths: number[] = []
  for (const row of rows)
    for (const [column, cell] of row.slice(0, -1).entries())
      widths[column] = Math.max(widths[column] ?? 0, widthOf(cell))
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === row.length - 1 ? cell : cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell)),
      )
      .join('  ')
      .trimEnd(),
  )
}
