import { spelledJson } from '#server/json/lossless_json.ts'

/** A column: its name in the row; or with the type of a collection's column; or a name and a function that computes its cell. */
export type Column =
  | string
  | { readonly name: string; readonly type: string }
  | { readonly name: string; readonly cell: (row: Readonly<Record<string, unknown>>) => unknown }

const nameOf = (column: Column) => (typeof column === 'string' ? column : column.name)

/** First line of a CSV file (RFC 4180). */
export const csvHead = (columns: readonly Column[]): string => line(columns.map(nameOf))

/** The line of a row, given as the text of a JSON object. */
export const csvRow = (columns: readonly Column[], row: string): string => {
  const parsed = parseRow(row)
  return line(
    columns.map((column) => {
      if (typeof column === 'string') return cellText(parsed[column])
      return 'cell' in column ? cellText(column.cell(parsed)) : cellText(parsed[column.name], column.type)
    }),
  )
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

/**
 * The beginning of a text that a spreadsheet would treat as a formula (CSV injection), also in full-width letters. Quotes before it are counted in: what has
 * one quote more than another is another text, so that a reader takes exactly one away.
 */
const formula = /^'*[=+\-@\t\r\uFF1D\uFF0B\uFF0D\uFF20]/
const escapedFormula = /^''*[=+\-@\t\r\uFF1D\uFF0B\uFF0D\uFF20]/
const numbers = new Set(['integer', 'bigint', 'numeric', 'double'])

/** Types of columns whose cells are JSON: a string in them has its quotes, so that a text is never taken for a number, or the reverse. */
export const isJsonCell = (type: string | undefined): boolean =>
  type === 'jsonb' || type === 'vector' || type?.endsWith('[]') === true

/**
 * Text of a cell: null, which is an empty cell without quotes; JSON for objects, lists and columns of JSON. A text that a spreadsheet would treat as a formula
 * gets a leading quote, a number never.
 */
export const cellText = (value: unknown, type?: string): string | null => {
  // an empty text is told from null where a file can be imported
  if (value === null || value === undefined || (value === '' && type === undefined)) return null
  if (typeof value === 'string' && !isJsonCell(type))
    return formula.test(value) && !numbers.has(type ?? '') ? `'${value}` : value
  if (typeof value !== 'object' && !isJsonCell(type)) return String(value)
  return exact.isRawJSON(value) ? value.rawJSON : JSON.stringify(value)
}

const number = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/

/** The way back of a cell that is not of JSON: its value as JSON. A text that is not of the column's type remains a string, which the insert refuses by name. */
export const cellJson = (cell: string | null, type: string | undefined): string => {
  if (cell === null || (cell === '' && type !== undefined && type !== 'text')) return 'null'
  if (type === 'boolean' && /^(true|false)$/.test(cell)) return cell
  if (numbers.has(type ?? '') && number.test(cell)) return cell.replace(/^(-?)0+(?=\d)/, '$1')
  return JSON.stringify(escapedFormula.test(cell) ? cell.slice(1) : cell)
}

const line = (cells: readonly (string | null)[]): string => `${cells.map(quoted).join(',')}\r\n`

/** An empty text is an empty cell in quotes. */
const quoted = (cell: string | null): string => {
  if (cell === null) return ''
  return cell === '' || /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell
}
