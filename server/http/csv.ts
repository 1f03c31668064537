import { spelledJson } from '#server/json/lossless_json.ts'

/** A column: its name in the row, or a name and a function that computes its cell. */
export type Column =
  | string
  | { readonly name: string; readonly cell: (row: Readonly<Record<string, unknown>>) => unknown }

const nameOf = (column: Column) => (typeof column === 'string' ? column : column.name)

/** First line of a CSV file (RFC 4180). */
export const csvHead = (columns: readonly Column[]): string => line(columns.map(nameOf))

/** The line of a row, given as the text of a JSON object. */
export const csvRow = (columns: readonly Column[], row: string): string => {
  const parsed = parseRow(row)
  return line(columns.map((column) => cellText(typeof column === 'string' ? parsed[column] : column.cell(parsed))))
}

/** Rows that are JSON texts, as the lines of a file; CSV has the columns' names before its first rows. */
export const linesOf = (
  format: 'csv' | 'ndjson',
  columns: readonly Column[],
  rows: readonly string[],
  isFirst: boolean,
): Buffer =>
  Buffer.from(
    format === 'ndjson'
      ? rows.map(ndjsonRow).join('')
      : (isFirst ? csvHead(columns) : '') + rows.map((row) => csvRow(columns, row)).join(''),
  )

/** One line: a JSON text can have line breaks only between its tokens. */
const ndjsonRow = (row: string): string => (/[\r\n]/.test(row) ? `${row.replaceAll(/[\r\n]/g, ' ')}\n` : `${row}\n`)

// Node 24 has these, but TypeScript's types do not yet
type ExactJson = { rawJSON(text: string): unknown; isRawJSON(value: unknown): value is { readonly rawJSON: string } }
const exact = JSON as unknown as ExactJson

/** The beginning of a number that JavaScript may write differently: a fraction, an exponent, a negative zero, or 16 digits. A match within a string is harmless. */
const numberToKeep = /(?:[,[\s]|":)(?:-?\d+[.eE]|-?\d{16}|-0)/

/** Numbers are written as they were read: a bigint or a numeric has more digits than a double holds. */
const parseRow = (row: string): Readonly<Record<string, unknown>> => {
  if (!numberToKeep.test(row) && !row.includes('\\')) return JSON.parse(row)
  return spelledJson(row) as Readonly<Record<string, unknown>>
}

/** The beginning of a text that a spreadsheet would treat as a formula (CSV injection). */
const formula = /^[=+\-@\t\r]/

/** Text of a cell: empty for null, JSON for objects and lists. A text that a spreadsheet would treat as a formula gets a leading quote, a number never. */
export const cellText = (value: unknown): string => {
  if (typeof value === 'string') return formula.test(value) ? `'${value}` : value
  if (value === null || value === undefined) return ''
  if (typeof value !== 'object') return String(value)
  return exact.isRawJSON(value) ? value.rawJSON : JSON.stringify(value)
}

const line = (cells: readonly string[]): string => `${cells.map(quoted).join(',')}\r\n`

const quoted = (cell: string): string => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)
