/** The audit trail of a project or an organization, read from both databases: lists, single events and exports. */
import { z } from 'zod'
import { dataOf, type Reply } from '#server/database/database.ts'
import type { Arguments } from '#server/database/statements.ts'
import { refusal } from '#server/errors.ts'
import { type Column, linesOf } from '#server/http/csv.ts'
import { pageBytes, readCursor, writeCursor } from '#server/http/cursors.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import { batchSize, streamRows } from '#server/http/stream.ts'

const keyForm = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3})\d{3}Z (\d{19}) (\S+)$/

/** Whether a text is a key in the format of the SQL functions: an existing day, a bigint and an id; otherwise Postgres could not read it. */
const isKey = (text: string): boolean => {
  const [, time = '', position = '', id = ''] = keyForm.exec(text) ?? []
  const isTime = new Date(`${time}Z`).getTime() > 0 && new Date(`${time}Z`).toISOString() === `${time}Z`
  return isTime && BigInt(position) < 2n ** 63n && uuidPattern.test(id)
}

const order = 'occurred_at,position,id'

/** The sort key of a row, which the functions write as text that sorts; opaque to clients. */
export const Cursor = z
  .string()
  .max(200)
  .transform((text) => readCursor(order, text)?.join(' ') ?? '')
  .refine(isKey, 'is not a cursor of this list')
const cursorOf = (key: string) => writeCursor(order, key.split(' '))

/** `is_cut`: the 8 MB limit left out older rows of this database. */
type Row = { readonly key: string; readonly event: string; readonly is_cut?: boolean }
export type Ask = (name: string, args: Arguments) => Promise<Reply>

/**
 * A project's trail is in two databases: changes of the project itself in control, all others in the project's own database, once it exists. An
 * organization's trail is in control.
 */
export const placesOf = ({ call, resolved, services }: HandlerContext, failure: string): readonly Ask[] => {
  const place = resolved.project?.place
  if (!place) return [call]
  const inTenant: Ask = (name, args) =>
    services.database.call(place, 'app_admin', resolved.claims, name, args, { readOnly: true, failure })
  return [call, inTenant]
}

type Rows = { readonly rows: readonly Row[]; readonly isCut: boolean }

/** The newest `count` rows of both, merged by their keys, or as many as fit into 8 MB: then they are cut. */
const readRows = async (places: readonly Ask[], count: number, args: Arguments): Promise<Rows> => {
  const replies = await Promise.all(places.map((ask) => ask('audit_rows', { ...args, page_limit: count })))
  const parts = replies.map((reply) => dataOf<Row[]>(reply))
  // a part that was cut has no information about rows older than its last one
  const ends = parts.flatMap((part) => part.filter(({ is_cut }) => is_cut).map(({ key }) => key))
  const oldest = ends.sort().at(-1) ?? ''
  const known = parts
    .flat()
    .filter(({ key }) => key >= oldest)
    .sort((a, b) => (a.key < b.key ? 1 : -1))
    .slice(0, count)
  const rows = fitting(known)
  return { rows, isCut: rows.length < known.length || (ends.length > 0 && rows.length < count) }
}

/** The first rows that fit on a page, and at least one. */
const fitting = (rows: readonly Row[]): readonly Row[] => {
  let bytes = 0
  const end = rows.findIndex(({ event }, index) => {
    bytes += Buffer.byteLength(event)
    return bytes > pageBytes && index > 0
  })
  return end < 0 ? rows : rows.slice(0, end)
}

export const list = async (context: HandlerContext) => {
  const { limit, cursor, ...filters } = context.query as { limit: number; cursor?: string }
  const { rows, isCut } = await readRows(placesOf(context, 'LIST_FAILED'), limit + 1, { ...filters, after: cursor })
  const page = rows.slice(0, limit)
  const last = isCut || rows.length > limit ? page.at(-1) : undefined
  const pagination = { next_cursor: last ? cursorOf(last.key) : null, total: null }
  // the rows are JSON already
  const events = page.map(({ event }) => event).join(',')
  return { status: 200, body: `{"data":[${events}],"pagination":${JSON.stringify(pagination)}}` }
}

export const get = async (context: HandlerContext) => {
  const ask = (place: Ask) => place('audit_row', { event_id: context.params['eventId'] })
  const found = await Promise.all(placesOf(context, 'FETCH_FAILED').map(ask))
  const reply = found.find((answer) => dataOf<object | null>(answer) !== null)
  if (!reply) throw refusal(404, 'NOT_FOUND', 'There is no such event.')
  return reply
}

const columns: readonly Column[] = [
  'id',
  'occurred_at',
  ...['type', 'id', 'label'].map((name) => partOf('actor', name)),
  'action',
  ...['type', 'id'].map((name) => partOf('target', name)),
  'changes',
  'ip',
  'user_agent',
  'request_id',
  'status',
]

function partOf(whole: string, name: string): Column {
  return { name: `${whole}_${name}`, cell: (row) => (row[whole] as Readonly<Record<string, unknown>>)[name] }
}

/** Newest first, as the list: rows written after the export began are not in it. */
export const exportAll = (context: HandlerContext) => {
  const { format, ...bounds } = context.query as { format: 'csv' | 'ndjson'; since?: string; until?: string }
  const places = placesOf(context, 'FETCH_FAILED')
  return streamRows({
    format,
    filename: `project-${context.resolved.project?.projectId}-audit`,
    async read(cursor) {
      const { rows, isCut } = await readRows(places, batchSize, { ...bounds, after: cursor ?? undefined })
      return {
        lines: linesOf(
          format,
          columns,
          rows.map(({ event }) => event),
          cursor === null,
        ),
        next_cursor: isCut || rows.length === batchSize ? (rows.at(-1)?.key ?? null) : null,
      }
    },
  })
}
