import { ApiError, type Refusal, refusal } from '#server/errors.ts'

/** The error that node-postgres rejects with when Postgres returned an ErrorResponse. */
export type DatabaseError = Error & {
  code?: string
  detail?: string
  schema?: string
  table?: string
  column?: string
  constraint?: string
  where?: string
}

/** An error of the database as a refusal, before the route's own codes apply. */
export type Failure =
  | { readonly kind: 'refusal'; readonly error: ApiError }
  | { readonly kind: 'constraint'; readonly schema: string; readonly table: string; readonly constraint: string }
  /** A value that Postgres cannot hold, which no schema caught: bad input, never a 500. */
  | { readonly kind: 'input'; readonly message: string }
  /** A table, column or function that is not there: the schema may be behind. */
  | { readonly kind: 'missing' }
  | { readonly kind: 'unavailable'; readonly connectionLost: boolean }
  | { readonly kind: 'defect' }

const missing = new Set(['42P01', '42703', '42883', '42704', '3F000'])
const busy = new Set(['40001', '40P01', '55P03', '57014', '53000', '53100', '53200', '53300', '53400', '25P04'])
const gone = new Set(['57P01', '57P02', '57P03', '57P04', '57P05', '3D000'])
const network = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOENT', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENOTFOUND'])

/** Whether a statement failed because of the server's state, or took too long: sent again, it may succeed. */
export const isTransient = (code: string): boolean => busy.has(code) || gone.has(code)

/** What a caller is told of a failure that is no fault of the request. A call that is too slow would be too slow again: the words are other ones. */
export const sentenceOfUnavailable = (error: unknown): string =>
  (error as DatabaseError)?.code === '57014'
    ? 'The call took longer than the database gives it, and was cancelled. It may ask for too much at once.'
    : 'The database is not available at the moment.'

/** Sorts an error by its SQLSTATE: one table for the whole program. */
export const failureOf = (error: unknown): Failure => {
  if (error instanceof ApiError) return { kind: 'refusal', error }
  if (!(error instanceof Error)) return { kind: 'defect' }
  const { code = '', constraint, schema, table, detail, message } = error as DatabaseError
  if (code === 'TR000') return { kind: 'refusal', error: raised(message, detail) }
  if (code.startsWith('23') && constraint && schema && table) return { kind: 'constraint', schema, table, constraint }
  if (missing.has(code)) return { kind: 'missing' }
  if (busy.has(code)) return { kind: 'unavailable', connectionLost: false }
  // a database that somebody maintains
  if (code === '55000' && /not currently accepting connections/.test(message))
    return { kind: 'unavailable', connectionLost: true }
  // the login is refused, or may not connect to this database: an operator must repair it, and there is no connection
  if (code.startsWith('28') || (code === '42501' && message.startsWith('permission denied for database')))
    return { kind: 'unavailable', connectionLost: true }
  if (gone.has(code) || code.startsWith('08') || network.has(code)) return { kind: 'unavailable', connectionLost: true }
  if (/^Connection terminated|timeout expired|not queryable|server closed the connection/.test(message)) {
    return { kind: 'unavailable', connectionLost: true }
  }
  // 22: data exceptions; 54: a nesting or a text longer than Postgres takes
  if (code.startsWith('22') || code.startsWith('54')) return { kind: 'input', message: 'A value cannot be stored.' }
  return { kind: 'defect' }
}

/** Whether a call that failed may have been committed all the same: its connection was lost before the answer came. */
export const mayBeCommitted = (error: unknown): boolean => {
  const failure = failureOf(error instanceof ApiError ? error.cause : error)
  return failure.kind === 'unavailable' && failure.connectionLost
}

/** The refusal that internal.fail raised. */
const raised = (message: string, detail: string | undefined): ApiError => {
  const { status, code, details, headers } = JSON.parse(detail ?? '{}') as Refusal
  return refusal(status, code, message, details, headers)
}

const refusalComment = /^(\d{3}) ([A-Z_]+)(?: ([a-z0-9_.]+))?: (.+)$/s

/** Reads the comment of a constraint, `409 CONFLICT key: A streak with this key exists.`; null when it is none of these. */
export const refusalOfComment = (comment: string | null): ApiError | null => {
  const [, status, code, field, message] = refusalComment.exec(comment ?? '') ?? []
  if (!status || !code || !message) return null
  const details = field ? (status === '400' ? { field, reason: message } : { field }) : null
  return refusal(Number(status), code, message, details)
}
