import { z } from 'zod'
import { type Arguments, dataOf, type Reply } from '#server/database/database.ts'
import { pageBytes } from '#server/database/row_encoder.ts'
import { refusal } from '#server/errors.ts'
import { organizationMember, projectOwner } from '#server/http/callers.ts'
import { type Column, linesOf } from '#server/http/csv.ts'
import { readCursor, writeCursor } from '#server/http/cursors.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { cursorPage, data, Limit, Moment, Text, Time, Uuid, uuidPattern } from '#server/http/schemas.ts'
import { batchSize, streamed, streamRows } from '#server/http/stream.ts'

const AuditEvent = z.strictObject({
  id: Uuid,
  occurred_at: Time,
  actor: z.strictObject({
    type: z.enum(['developer', 'pat', 'service_account', 'operator_token', 'server_key', 'system']),
    id: z.string().nullable(),
    label: z.string().nullable(),
  }),
  action: z.string(),
  target: z.strictObject({ type: z.string(), id: z.string().nullable() }),
  changes: z.record(z.string(), z.tuple([z.unknown(), z.unknown()])),
  ip: z.string().nullable(),
  user_agent: z.string().nullable(),
  request_id: z.string().nullable(),
  status: z.int(),
})

const keyForm = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3})\d{3}Z (\d{19}) (\S+)$/

/** Whether a text is a key in the format of the SQL functions: an existing day, a bigint and an id; otherwise Postgres could not read it. */
const isKey = (text: string): boolean => {
  const [, time = '', position = '', id = ''] = keyForm.exec(text) ?? []
  const isTime = new Date(`${time}Z`).getTime() > 0 && new Date(`${time}Z`).toISOString() === `${time}Z`
  return isTime && BigInt(position) < 2n ** 63n && uuidPattern.test(id)
}

const order = 'occurred_at,position,id'

/** The sort key of a row, which the functions write as text that sorts; opaque to clients. */
const Cursor = z
  .string()
  .max(200)
  // a cursor of the former version is the key alone
  .transform((text) => readCursor(order, text)?.join(' ') ?? Buffer.from(text, 'base64url').toString())
  .refine(isKey, 'is not a cursor of this list')
const cursorOf = (key: string) => writeCursor(order, key.split(' '))

const range = { since: Moment.optional(), until: Moment.optional() }

/** `is_cut`: the 8 MB limit left out older rows of this database. */
type Row = { readonly key: string; readonly event: string; readonly is_cut?: boolean }
type Ask = (name: string, args: Arguments) => Promise<Reply>

/**
 * A project's trail is in two databases: changes of the project itself in control, all others in the project's own database, once it exists. An
 * organization's trail is in control.
 */
const placesOf = ({ call, resolved, services }: HandlerContext, failure: string): readonly Ask[] => {
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

const list = async (context: HandlerContext) => {
  const { limit, cursor, ...filters } = context.query as { limit: number; cursor?: string }
  const { rows, isCut } = await readRows(placesOf(context, 'LIST_FAILED'), limit + 1, { ...filters, after: cursor })
  const page = rows.slice(0, limit)
  const last = isCut || rows.length > limit ? page.at(-1) : undefined
  const pagination = { next_cursor: last ? cursorOf(last.key) : null, total: null }
  // the rows are JSON already
  const events = page.map(({ event }) => event).join(',')
  return { status: 200, body: `{"data":[${events}],"pagination":${JSON.stringify(pagination)}}` }
}

const get = async (context: HandlerContext) => {
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
const exportAll = (context: HandlerContext) => {
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

type Key = { readonly id: string; readonly key: string }

type Sealed = { readonly unsealed: number; readonly first_unsealed: string | null; readonly through: Key | null }

type Verified = {
  readonly checked: number
  readonly last_position: number | null
  readonly is_over: boolean
  readonly first_broken: Key | null
  readonly is_cut: boolean
  /** In the last step only: how many rows wait for their seal, and the row up to which all have one. */
  readonly sealed: Sealed | null
}

/** Verifies one database's chain in batches, up to the first row that does not follow from the previous one. */
const verifyPlace = async (ask: Ask, args: Arguments, isWanted: () => boolean) => {
  let checked = 0
  for (let after = 0; ; ) {
    const step = async () => dataOf<Verified>(await ask('audit_verify', { ...args, after_position: after }))
    const first = await step()
    // a statement that begins while a month gets its partition may miss the rows that move: a real break is found again
    const part = first.first_broken ? await step() : first
    checked += part.checked
    after = part.last_position ?? after
    if (part.first_broken || part.is_over || !isWanted()) return { ...part, checked }
  }
}

const byKey = (a: Key, b: Key) => (a.key < b.key ? -1 : 1)

/** The row of the list up to which all are sealed: the newest in both databases that is older than every unsealed one. */
const sealedThrough = async (places: readonly Ask[], parts: readonly (Sealed | null)[]): Promise<string | null> => {
  const first = parts
    .map((part) => part?.first_unsealed ?? null)
    .filter((key) => key !== null)
    .sort()[0]
  const sealed = first
    ? await Promise.all(places.map(async (ask) => dataOf<Sealed>(await ask('audit_sealed', { before: first }))))
    : parts
  const through = sealed.flatMap((part) => part?.through ?? [])
  return through.sort(byKey).at(-1)?.id ?? null
}

const verify = async (context: HandlerContext) => {
  const isWanted = () => !context.request.raw.destroyed
  const places = placesOf(context, 'FETCH_FAILED')
  const parts = await Promise.all(places.map((ask) => verifyPlace(ask, context.query, isWanted)))
  const [first] = parts.flatMap(({ first_broken }) => first_broken ?? []).sort(byKey)
  const sealed = parts.map((part) => part.sealed)
  const result = {
    verified: !first && parts.every(({ is_cut }) => !is_cut),
    checked: parts.reduce((sum, part) => sum + part.checked, 0),
    first_broken_id: first?.id ?? null,
    sealed_through_id: await sealedThrough(places, sealed),
    unsealed: sealed.reduce((sum, part) => sum + (part?.unsealed ?? 0), 0),
  }
  return { status: 200, body: JSON.stringify({ data: result }) }
}

const filtered = {
  limit: Limit(),
  cursor: Cursor.optional(),
  ...range,
  actor_id: Text(200).optional(),
  action: Text(200).optional(),
  target_type: Text(200).optional(),
  target_id: Text(200).optional(),
}

const reachable = { 503: ['TENANT_UNAVAILABLE', 'TENANT_MIGRATION_PENDING'] }

export const audit = area({
  stem: 'audit',
  title: 'Audit events',
  part: 'Platform',
  about: 'Who changed what in a project, in a chain that shows tampering.',
  source: 'supplement',
  routes: [
    ...group('/admin/organizations', organizationMember, [
      route(
        'GET /:orgId/audit-events',
        'Who changed what in an organization: its members, invites and projects, newest first',
        {
          handle: list,
          description: 'Changes inside of a project are in the trail of the project. `action` is a prefix.',
          query: filtered,
          replies: { 200: cursorPage(AuditEvent) },
        },
      ),
    ]),
    ...group('/admin/projects/:projectId/audit-events', projectOwner, [
      route('GET /', 'Who changed what in a project, newest first', {
        handle: list,
        description: '`action` is a prefix: `streaks.` finds all changes of streaks.',
        query: filtered,
        replies: { 200: cursorPage(AuditEvent) },
        refusals: reachable,
      }),
      route('GET /export', 'The whole trail as a file, newest first', {
        handle: exportAll,
        stale: true,
        query: { format: z.enum(['ndjson', 'csv'], 'must be ndjson or csv').default('ndjson'), ...range },
        replies: { 200: streamed('ndjson', 'csv') },
        refusals: reachable,
      }),
      route(
        'GET /verify',
        'Verify that no row of the trail was changed, removed, inserted or cut off, and up to which row it is sealed',
        {
          handle: verify,
          query: range,
          replies: {
            200: data(
              z.strictObject({
                verified: z.boolean(),
                checked: z.int(),
                first_broken_id: Uuid.nullable(),
                sealed_through_id: Uuid.nullable(),
                unsealed: z.int(),
              }),
            ),
          },
          refusals: reachable,
        },
      ),
      route('GET /:eventId', 'One change', { handle: get, replies: { 200: data(AuditEvent) }, refusals: reachable }),
    ]),
  ],
})
