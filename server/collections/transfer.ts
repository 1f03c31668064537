/** Import and export of the rows of a collection as files. */
import { Readable } from 'node:stream'
import {
  boundedRows,
  csvRows,
  type ImportRow,
  mostFileBytes,
  ndjsonRows,
  textOf,
  tooLarge,
} from '#server/collections/import_lines.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { linesOf } from '#server/http/csv.ts'
import { callControl } from '#server/http/project.ts'
import type { Answer, HandlerContext } from '#server/http/route.ts'
import { streamRows } from '#server/http/stream.ts'

type Part = {
  readonly rows: readonly string[]
  readonly next_cursor: string | null
  readonly columns: readonly string[]
  /** Of the developer's columns. */
  readonly types: Readonly<{ [column: string]: string }>
}

/** Rows in the order of their creation: rows written after the export began may appear at its end. */
export const exportRows = async (context: HandlerContext) => {
  const { format, include_deleted } = context.query as { format: 'csv' | 'ndjson'; include_deleted: boolean }
  const name = String(context.params['name'])
  const read = async (after: string | null) =>
    dataOf<Part>(await context.call('collection_export', { name, include_deleted, ...(after ? { after } : {}) }))
  const first = await read(null)
  const columns = first.columns.map((column) => {
    const type = Object.hasOwn(first.types, column) ? first.types[column] : undefined
    return type === undefined ? column : { name: column, type }
  })
  return streamRows({
    format,
    filename: name,
    async read(cursor) {
      const { rows, next_cursor } = cursor === null ? first : await read(cursor)
      return { lines: linesOf(format, columns, rows, cursor === null), next_cursor }
    },
  })
}

export const fileTypes = { ndjson: 'application/x-ndjson', csv: 'text/csv' } as const
const partRows = 500

type Begun = {
  readonly import_id: string
  readonly columns: Readonly<{ [column: string]: string }>
}

/** Stages the file as it is received, some hundred rows at a time; a job inserts the rows. */
export const importRows = async (context: HandlerContext): Promise<Answer> => {
  const { request, call, params } = context
  const { format } = context.query as { format: keyof typeof fileTypes }
  const file = request.body
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (!(file instanceof Readable) || type !== fileTypes[format]) {
    throw refusal(415, 'UNSUPPORTED_MEDIA_TYPE', `Send the file as ${fileTypes[format]}.`)
  }
  if (Number(request.headers['content-length']) > mostFileBytes) {
    file.resume()
    throw tooLarge()
  }
  const begun = dataOf<Begun>(await call('collection_import_begin', { name: params['name'] }))
  const { import_id } = begun
  try {
    const text = textOf(file)
    const rows = format === 'csv' ? csvRows(text, begun.columns) : ndjsonRows(text)
    await stage(context, import_id, boundedRows(rows))
    const input = { collection: params['name'], import_id }
    return await callControl(context, 'collection_operation', { type: 'collections.import', input })
  } catch (error) {
    // the rest of the upload is read and discarded: a client that is still sending does not read the response
    file.resume()
    await call('collection_import_drop', { import_id })
    throw error
  }
}

const stage = async ({ call }: HandlerContext, import_id: string, rows: AsyncIterable<ImportRow>) => {
  let part: string[] = []
  let size = 0
  let place = 0
  const flush = async () => {
    if (part.length === 0) return
    // as text, so that numbers keep their digits
    await call('collection_import_add', { import_id, place, rows: `[${part.join(',')}]` })
    part = []
    size = 0
    place += 1
  }
  for await (const { line, row, size: rowSize } of rows) {
    part.push(`{"line":${line},"row":${row}}`)
    size += rowSize
    if (part.length === partRows || size > 1_048_576) await flush()
  }
  await flush()
}
