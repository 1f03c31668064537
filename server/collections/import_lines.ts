/** Rows of a file of CSV or JSON lines, read as it arrives. */
import type { Readable } from 'node:stream'
import { refusal } from '#server/errors.ts'
import { cellJson, isJsonCell } from '#server/http/csv.ts'
import { checkJson } from '#server/http/json.ts'

/** A row of a file: the text of a JSON object, the line on which it begins, and its size in bytes with its numbers written out. */
export type ImportRow = { readonly line: number; readonly row: string; readonly size: number }

const mostLength = 1_048_576
/** 50 MB: the limit of a file, both as sent and with its numbers written out. */
export const mostFileBytes = 50 * 1_048_576

const broken = (line: number, reason: string) =>
  refusal(400, 'INVALID_BODY', `Line ${line}: ${reason}`, { field: `line ${line}`, reason })

export const tooLarge = () => refusal(413, 'PAYLOAD_TOO_LARGE', 'The file has more than 50 MB.')

/** Text of a stream of bytes, which must be UTF-8, of at most `most` bytes. */
export async function* textOf(stream: Readable, most = mostFileBytes): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let bytes = 0
  try {
    // even after an early end the client gets its response on the same connection
    for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > most) throw tooLarge()
      yield decoder.decode(chunk, { stream: true })
    }
    yield decoder.decode()
  } catch (error) {
    if (error instanceof TypeError) throw refusal(400, 'INVALID_BODY', 'The file is not UTF-8.')
    throw error
  }
}

/** The size of a row with its numbers written out. */
const sizeOf = (row: string, line: number): number => {
  const checked = checkJson(Buffer.from(row), 'the line')
  if (checked.kind === 'broken') throw broken(line, checked.reason.replace(/^the line (.*)\.$/, '$1'))
  if (!checked.isObject) throw broken(line, 'must be a JSON object')
  return checked.size
}

/** Rows of a file, up to the limit of a file with their numbers written out. */
export async function* boundedRows(rows: AsyncIterable<ImportRow>): AsyncGenerator<ImportRow> {
  let bytes = 0
  for await (const row of rows) {
    bytes += row.size
    if (bytes > mostFileBytes) throw tooLarge()
    yield row
  }
}

/** One JSON object per line (NDJSON); empty lines are skipped. */
export async function* ndjsonRows(text: AsyncIterable<string>): AsyncGenerator<ImportRow> {
  let rest = ''
  let line = 0
  const rowOf = (one: string): ImportRow | null => {
    line += 1
    if (one.trim() === '') return null
    if (one.length > mostLength) throw broken(line, 'has more than 1 MB')
    return { line, row: one, size: sizeOf(one, line) }
  }
  for await (const chunk of text) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > mostLength) throw broken(line + 1, 'has more than 1 MB')
    for (const one of lines) {
      const row = rowOf(one)
      if (row) yield row
    }
  }
  const last = rowOf(rest)
  if (last) yield last
}

/** A cell is null where there is nothing, not even quotes. */
type Record = { readonly line: number; readonly cells: readonly (string | null)[] }

/** Records of RFC 4180: cells in quotes may hold commas, quotes and line breaks. */
async function* csvRecords(text: AsyncIterable<string>): AsyncGenerator<Record> {
  let cells: (string | null)[] = []
  let cell = ''
  let hasQuotes = false
  let isQuoted = false
  let wasQuote = false
  let line = 1
  let began = 1
  let length = 0
  const endCell = () => {
    cells.push(cell === '' && !hasQuotes ? null : cell)
    cell = ''
    hasQuotes = false
  }
  const record = () => {
    endCell()
    const made = { line: began, cells }
    cells = []
    length = 0
    return made
  }
  for await (const chunk of text) {
    for (const letter of chunk) {
      length += letter.length
      if (length > mostLength) throw broken(began, 'has more than 1 MB')
      if (letter === '\n') line += 1
      if (isQuoted && !wasQuote) {
        if (letter === '"') wasQuote = true
        else cell += letter
        continue
      }
      if (wasQuote && letter === '"') {
        cell += letter
        wasQuote = false
        continue
      }
      if (wasQuote) {
        isQuoted = false
        wasQuote = false
      }
      if (letter === '"' && cell === '' && !hasQuotes) {
        isQuoted = true
        hasQuotes = true
      } else if (letter === ',') endCell()
      else if (letter === '\n') {
        yield record()
        began = line
      } else if (letter !== '\r') cell += letter
    }
  }
  if (isQuoted && !wasQuote) throw broken(began, 'has a quote that does not end')
  if (cells.length > 0 || cell !== '' || hasQuotes) yield record()
}

/** A cell as JSON: the reverse of what an export writes (server/http/csv.ts). */
const jsonOf = (cell: string | null, type: string | undefined, line: number, column: string): string => {
  if (cell?.includes('\0')) throw broken(line, `${column} has a character that cannot be stored`)
  if (!cell || !isJsonCell(type)) return cellJson(cell, type)
  const checked = checkJson(Buffer.from(cell), column)
  if (checked.kind === 'broken') throw broken(line, checked.reason.replace(/\.$/, ''))
  return cell
}

const managed = ['id', 'user_id', 'group_id', 'created_at', 'updated_at', 'deleted_at']

/** Rows of a CSV file whose first line names the columns. An empty cell is null. */
export async function* csvRows(
  text: AsyncIterable<string>,
  types: Readonly<{ [column: string]: string }>,
): AsyncGenerator<ImportRow> {
  let head: readonly string[] | undefined
  for await (const { line, cells } of csvRecords(text)) {
    if (!head) {
      head = cells.map((cell) => (cell ?? '').replace(/^\uFEFF/, ''))
      const unknown = head.find((column) => !(column in types) && !managed.includes(column))
      if (unknown !== undefined)
        throw refusal(400, 'INVALID_COLUMN', 'The first line must name columns of the collection.', { column: unknown })
      if (new Set(head).size < head.length) throw broken(line, 'names a column twice')
      continue
    }
    if (cells.length === 1 && cells[0] === null) continue
    if (cells.length !== head.length) throw broken(line, `has ${cells.length} cells, not ${head.length}`)
    const row = head.map(
      (column, n) => `${JSON.stringify(column)}:${jsonOf(cells[n] ?? null, types[column], line, column)}`,
    )
    const text = `{${row.join(',')}}`
    yield { line, row: text, size: sizeOf(text, line) }
  }
}
