/** A table cell: on one line, and no bar that would end it. */
const cell = (text: string) => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|')

/** A table of Markdown. */
export const table = (heads: readonly string[], rows: readonly (readonly string[])[]) =>
  [heads, heads.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n')
