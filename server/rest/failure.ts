import { isTransient } from '#server/database/failures.ts'

/** What PostgREST answers in the body of an error. */
type Failure = {
  readonly code?: string
  readonly message?: string
  readonly details?: unknown
  readonly hint?: string | null
}

export type Told = {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

const told = (status: number, code: string, message: string, details: unknown = null, hint: string | null = null) => ({
  status,
  body: JSON.stringify({ code, message, details, hint }),
})

const readFailure = (text: string): Failure | null => {
  try {
    const read: unknown = JSON.parse(text)
    return typeof read === 'object' && read !== null ? (read as Failure) : null
  } catch {
    return null
  }
}

const staleCodes = ['PGRST200', 'PGRST204', 'PGRST205']

/** Whether a request was refused for a table, column or relationship that PostgREST may not have read yet. Nothing has been written then. */
export const mayBeStale = (status: number, text: string): boolean => {
  if (status !== 404 && status !== 400) return false
  const failure = readFailure(text)
  if (!failure) return false
  return failure.code === undefined ? status === 404 : staleCodes.includes(failure.code)
}

/** The collection and the foreign key of a reference that no row has; null of other errors. */
export const missingReference = (status: number, text: string): { table: string; key: string } | null => {
  if (status !== 409) return null
  const failure = readFailure(text)
  const words = /^insert or update on table "(.+)" violates foreign key constraint "(.+)"$/.exec(failure?.message ?? '')
  return failure?.code === '23503' && words ? { table: words[1] as string, key: words[2] as string } : null
}

/** As internal.collection_reference_refusal: whether a row is missing, deleted or hidden, nobody can tell from the answer. */
export const referenceTold = (column: string, collection: string): Told => {
  const reason = `must be the id of a row of ${collection}`
  return told(400, 'INVALID_BODY', `${column}: ${reason}.`, { column, field: column, reason })
}

/** The names of a message in the schema that clients know. Only messages about the schema are changed: others may quote values. */
const inPublic = (code: string, text: string) => {
  if (code === '42P01' || code === '42883') return text.replace(/\brest\.(?=[\w"])/g, 'public.')
  if (code === 'PGRST106') return text.replace(/: rest$/, ': public')
  return code.startsWith('PGRST20')
    ? text.replace(/\brest\.(?=[\w"])/g, 'public.').replace("schema 'rest'", "schema 'public'")
    : text
}

/** As current releases of PostgREST say it, which look for a table before they ask for it. */
const missingTable = (table: string): Told =>
  told(404, 'PGRST205', `Could not find the table 'public.${table}' in the schema cache`)

/** Why something of PostgREST is not served, and what is in its place. */
const refusedFor: Readonly<Record<string, string>> = {
  PGRST122: 'maxAffected needs PostgREST 13: count the rows that a filter means first, or write them by their ids.',
}

const tooLong = 'It took longer than a request may: ask for less, by filters and orders that an index serves.'

/**
 * An error of PostgREST as clients get it. A refusal of the project's own rules (internal.fail) has its status and code. PostgREST answers 500 for every
 * statement that Postgres did not finish: a read that takes too long is what its caller asked for, anything else of that kind is the server's state.
 */
export const failureTold = (status: number, text: string, table: string, isWrite: boolean): Told => {
  const failure = readFailure(text)
  // an exception of PostgREST itself, which it answers as text
  if (!failure) return told(status, 'INTERNAL_ERROR', 'Something went wrong here.')
  const { code, message = '', details = null, hint = null } = failure
  if (code === undefined) return status === 404 ? missingTable(table) : { status, body: text }
  if (code === '42P01' && message === `relation "rest.${table}" does not exist`) return missingTable(table)
  if (code === 'TR000') {
    const raised = JSON.parse(String(details ?? '{}')) as { status: number; code: string; details?: unknown }
    return told(raised.status, raised.code, message, raised.details ?? null)
  }
  if (code === '57014' && !isWrite) return told(400, code, message, null, tooLong)
  if (isTransient(code)) return { ...told(503, code, message), headers: { 'retry-after': '2' } }
  if (code === '42883' && message.includes('st_asgeojson'))
    return told(406, 'PGRST107', 'None of these media types are available: application/geo+json')
  const words = (value: unknown) => (typeof value === 'string' ? inPublic(code, value) : value)
  const why = Object.hasOwn(refusedFor, code) ? (refusedFor[code] as string) : hint
  return told(status, code, inPublic(code, message), words(details), words(why) as string | null)
}

/** What a stranger may not read is refused as PostgREST refuses it to whoever has not signed in: with 401. */
export const strangerTold = (refused: Told): Told =>
  refused.status === 403 && readFailure(refused.body)?.code === '42501'
    ? { ...refused, status: 401, headers: { 'www-authenticate': 'Bearer' } }
    : refused
