import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import type { Answer } from '#server/http/route.ts'

export type StreamFormat = 'csv' | 'ndjson'

/** Lines as the client gets them, and the cursor of the next batch, null after the last. */
export type Batch = { readonly lines: Buffer; readonly next_cursor: string | null }

/** The maximum number of rows in a batch of an export. */
export const batchSize = 500

export type StreamOptions = {
  readonly format: StreamFormat
  /** Name of the downloaded file, without its extension. */
  readonly filename: string
  /** The batch after `cursor`: one call, as the caller of the request. */
  readonly read: (cursor: string | null) => Promise<Batch>
}

const contentTypes: Readonly<Record<StreamFormat, string>> = {
  csv: 'text/csv; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
}

/** A client that reads nothing for this long is disconnected. */
const stalledMs = 60_000

/**
 * Sends a list of any length in constant memory. Each batch is read when the client has read most of the previous one, so that at most
 * two are in memory, and no connection to the database is held between batches. The first is read before anything is sent, so that its
 * refusals are ordinary responses; a later failure resets the connection, so that an incomplete response never looks complete.
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

async function* chunks({ read }: StreamOptions, first: Batch): AsyncGenerator<Buffer> {
  for (let batch = first; ; ) {
    // the database reads the next batch while this one is sent
    const next = batch.next_cursor === null ? null : read(batch.next_cursor)
    // its failure is thrown where it is awaited, or ignored when the client has disconnected
    next?.catch(() => undefined)
    // an empty chunk would end the stream
    if (batch.lines.length > 0) yield batch.lines
    if (next === null) return
    batch = await next
  }
}

const safeName = (name: string) => name.replaceAll(/[^A-Za-z0-9._-]/g, '_')

/** Hands a stream to Fastify. An early end resets the connection, which is the only sign of failure that an HTTP/1.0 client has. */
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

/** Declares a reply that is a stream of these content types, instead of a JSON schema. */
export const streamed = (...formats: readonly StreamFormat[]) =>
  z.string().meta({ [mark]: formats.map((format) => contentTypes[format].split(';')[0] ?? '') })

/** Declares a reply that is a stream of server-sent events. */
export const eventStream = () => z.string().meta({ [mark]: ['text/event-stream'] })

/** Declares a reply that is JSON, or a stream of server-sent events if the request asks for one. */
export const orEventStream = <T extends z.ZodType>(schema: T): T => schema.meta({ [alternative]: true })

/** Whether a reply may also be a stream of server-sent events. */
export const mayStreamEvents = (schema: z.ZodType): boolean => z.globalRegistry.get(schema)?.[alternative] === true

/** Declares a reply that is a page for people. */
export const htmlPage = () => z.string().meta({ [mark]: ['text/html'] })

/** Declares a reply that is a picture. */
export const picture = (type: `image/${string}`) => z.string().meta({ [mark]: [type] })

const mark = 'x-trellis-stream'
const alternative = 'x-trellis-or-events'

/** The types that a streamed reply may have; null when the reply is JSON. */
export const streamedTypes = (schema: z.ZodType): readonly string[] | null =>
  (z.globalRegistry.get(schema)?.[mark] as string[] | undefined) ?? null
