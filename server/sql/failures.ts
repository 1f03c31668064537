import type { DatabaseError } from 'pg'
import { isTransient } from '#server/database/failures.ts'
import { type ApiError, refusal } from '#server/errors.ts'

const retryAfter = { 'Retry-After': '2' }

export const sqlUnavailable = (why: string) =>
  refusal(503, 'SQL_UNAVAILABLE', `No query can be run now: ${why}.`, null, retryAfter)
export const notThere = () =>
  refusal(503, 'TENANT_UNAVAILABLE', 'The database of this project is not available.', null, retryAfter)

/** What Postgres said, for whoever wrote the statement. A position counts characters, from 1. */
const detailsOf = (error: Partial<DatabaseError>, sql: string, shift: number) => {
  const position = Number(error.position ?? 0) - shift
  return {
    sqlstate: error.code ?? null,
    // what stands in parentheses around the author's text is not theirs
    position: position >= 1 && position <= [...sql].length + 1 ? position : null,
    hint: error.hint ?? null,
    detail: error.detail ?? null,
  }
}

export const invalidSql = (message: string, details: Partial<ReturnType<typeof detailsOf>> = {}) =>
  refusal(400, 'INVALID_SQL', message, { sqlstate: null, position: null, hint: null, detail: null, ...details })

export const readsOnly = (details: Partial<ReturnType<typeof detailsOf>> = {}) =>
  refusal(400, 'SQL_READ_ONLY', 'Only one statement that reads is run: SELECT, VALUES, TABLE or WITH.', {
    sqlstate: null,
    position: null,
    hint: null,
    detail: null,
    ...details,
  })

export const tookTooLong = () => timeout('The query took too long and was cancelled.', '57014')
const timeout = (message: string, sqlstate: string) => refusal(400, 'SQL_TIMEOUT', message, { sqlstate })

/** The statement writes (25006), or would leave the transaction (25001, 25P01); or a part of it writes where a query stands (0A000). */
const writes = /^25/

/**
 * The refusal of an error of Postgres; null where it is none of the statement's: a connection that is lost, a server without memory. Only a statement's author
 * gets it, and they may read whatever the message could name.
 */
export const refusalOf = (error: unknown, sql: string, shift = 0): ApiError | null => {
  const { code = '', message = '', severity } = (error ?? {}) as Partial<DatabaseError>
  if (severity === undefined) return null
  const details = detailsOf(error as Partial<DatabaseError>, sql, shift)
  if (writes.test(code)) return readsOnly(details)
  if (code === '0A000' && /data-modifying|multiple commands/.test(message)) return readsOnly(details)
  if (code === '42601' && message.includes('multiple commands')) return invalidSql('One statement at a time.', details)
  if (code === '42501') return refusal(403, 'SQL_FORBIDDEN', sentence(message), details)
  if (code === '57014') return tookTooLong()
  if (code === '55P03') return timeout('The query waited too long for a lock.', code)
  // more temporary files than temp_file_limit: the statement's own
  if (code === '53400') return invalidSql(sentence(message), details)
  if (isTransient(code) || /^(08|28|58|XX|F0)/.test(code)) return null
  return invalidSql(sentence(message), details)
}

/** A message of Postgres as a sentence. */
const sentence = (message: string) =>
  `${message.charAt(0).toUpperCase()}${message.slice(1)}${/[.?!]$/.test(message) ? '' : '.'}`
