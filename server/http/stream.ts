import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { type Column, csvHead, csvRow } from '#server/http/csv.ts'
import type { Answer } from '#server/http/route.ts'

export type StreamFormat = 'csv' | 'ndjson'

/** Some rows as JSON texts, and where to go on, null after the last: what the function of an export answers as `data`. */
export type Batch = { readonly rows: readonly string[]; readonly next_cursor: string | null }

/** How many rows the functions of exports answer at most, as the contract says. */
export const batchSize = 500

export type StreamOptions = {
  readonly format: StreamFormat
  /** Name of the file that a browser saves, without its ending. */
  readonly filename: string
  /** Columns of CSV; NDJSON has the rows as they are. */
  readonly columns: readonly Column[]
  /** The batch after `cursor`: one call, as the request's own caller. */
  readonly read: (cursor: string | null) => Promise<Batch>
}

const contentTypes: Readonly<Record<StreamFormat, string>> = {
  csv: 'text/csv; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
}

/** A client that takes nothing for this long is cut off. */
const stalledMs = 60_000

/**
 * Answers a list of any length in constant memory. Batches are read one after the other, each when the client has taken most of those
 * before, so that two are held at most, and no connection to the database is held between two. The first is read before anything is sent, so that what
 * it refuses is an ordinary refusal; a later failure breaks the connection off, and what arrived never looks whole.
 */
export const streamRows = async (options: StreamOptions): Promise<Answer> => {
  const first = await options.read(null)
  return {
    status: 200,
    headers: {
      'content-type': contentTypes[options.format],
      'content-disposition': `attachment; filename="${safeName(options.filename)}.${options.format}"`,
    },
    body: Readable.from(chunks(options, first), { objectMode: false }),
  }
}

async function* chunks(options: StreamOptions, first: Batch): AsyncGenerator<Buffer> {
  const write = options.format === 'csv' ? (row: string) => csvRow(options.columns, row) : ndjsonRow
  if (options.format === 'csv') yield Buffer.from(csvHead(options.columns))
  for (let batch = first; ; ) {
    // the database reads the next batch while this one is written and sent
    const next = batch.next_cursor === null ? null : options.read(batch.next_cursor)
    // its failure is thrown where it is awaited, or is nobody's when the client has gone
    next?.catch(() => undefined)
    // an empty chunk would end the stream
    if (batch.rows.length > 0) yield Buffer.from(batch.rows.map(write).join(''))
    if (next === null) return
    batch = await next
  }
}

/** One line: a line break in a JSON text can only be between its tokens. */
const ndjsonRow = (row: string): string => (/[\r\n]/.test(row) ? `${row.replaceAll(/[\r\n]/g, ' ')}\n` : `${row}\n`)

const safeName = (name: string) => name.replaceAll(/[^A-Za-z0-9._-]/g, '_')

/** Hands a stream to Fastify. Whatever ends it early resets the connection: an HTTP/1.0 client knows no other sign of it. */
export const sendStream = (reply: FastifyReply, body: Readable) => {
  if (reply.request.method === 'HEAD') {
    body.destroy()
    return reply.send('')
  }
  const { raw } = reply
  body.once('error', () => {
    if (raw.headersSent) raw.socket?.resetAndDestroy()
  })
  raw.setTimeout(stalledMs, () => raw.socket?.resetAndDestroy())
  return reply.send(body)
}

/** Declares a reply that is a stream of these types, in place of the schema of a JSON body. */
export const streamed = (...formats: readonly StreamFormat[]) =>
  z.string().meta({ [mark]: formats.map((format) => contentTypes[format].split(';')[0] ?? '') })

/** Declares a reply that is a page for people. */
export const htmlPage = () => z.string().meta({ [mark]: ['text/html'] })

const mark = 'x-trellis-stream'

/** The types that a streamed reply may have; null when the reply is JSON. */
export const streamedTypes = (schema: z.ZodType): readonly string[] | null =>
  (z.globalRegistry.get(schema)?.[mark] as string[] | undefined) ?? null
