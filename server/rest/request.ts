import { isUtf8 } from 'node:buffer'
import type { FastifyRequest } from 'fastify'
import { refusal } from '#server/errors.ts'
import { checkJson } from '#server/http/json.ts'

/** Of what a client sends, PostgREST gets these: neither credentials nor what proxies add. */
const passedHeaders = ['accept', 'content-type', 'prefer', 'range', 'range-unit', 'if-none-match', 'if-match']
/** W3C Trace Context and Baggage: a function reads them in the setting request.headers. */
const traceHeaders = ['traceparent', 'tracestate', 'baggage']
/** Clients name the schema public, which is that of the collections here. */
const profileHeaders = ['accept-profile', 'content-profile']

/** The headers of a request for PostgREST. Refuses 400 INVALID_INPUT: PostgREST answers 500 to bytes that are not ASCII. */
export const headersFor = (request: FastifyRequest): Record<string, string> => {
  const headers: Record<string, string> = {}
  for (const name of [...passedHeaders, ...traceHeaders, ...profileHeaders]) {
    const value = request.headers[name]
    if (typeof value !== 'string') continue
    if (!/^[\t -~]*$/.test(value))
      throw refusal(400, 'INVALID_INPUT', `The header ${name} has a character that is not ASCII.`, { field: name })
    headers[name] = profileHeaders.includes(name) && value === 'public' ? 'rest' : value
  }
  return headers
}

/** Decodes percent-encoded bytes; what is no encoding stays. */
const bytesOf = (text: string): Buffer =>
  Buffer.from(
    text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )

/** The path and query of a request below /rest/v1. Refuses 400 INVALID_INPUT: PostgREST breaks off, or answers 500. */
export const pathFor = (url: string): string => {
  const bytes = bytesOf(url)
  if (bytes.includes(0) || !isUtf8(bytes))
    throw refusal(400, 'INVALID_INPUT', 'The URL has a character that cannot be stored, or bytes that are not UTF-8.')
  return url
}

/** Each quote of CSV has its partner, within a value too. PostgREST leaves out what follows one that has none, and answers 201. */
const quotesOf = (body: Buffer): number => {
  let count = 0
  for (let at = body.indexOf(34); at >= 0; at = body.indexOf(34, at + 1)) count += 1
  return count
}

/**
 * JSON is checked as the body of every other route is: what Postgres would write out a thousand times as long, or cannot store, is refused before it
 * reaches PostgREST. Values of the other forms are texts, which the table checks; of bytes that are none PostgREST makes a 500. Refuses 400 INVALID_JSON,
 * INVALID_INPUT, and PGRST102 as PostgREST does.
 */
export const checkBody = (request: FastifyRequest): void => {
  const body = request.body as Buffer | undefined
  if (!body || body.length === 0) return
  const [, media] =
    /^\s*(text\/csv|application\/x-www-form-urlencoded)\s*(;|$)/i.exec(request.headers['content-type'] ?? '') ?? []
  if (media?.toLowerCase() === 'text/csv' && quotesOf(body) % 2 === 1)
    throw refusal(400, 'PGRST102', 'The CSV has a quote that is not closed.')
  // the bytes of a form may be encoded
  const text = media?.toLowerCase() === 'text/csv' ? body : media ? bytesOf(body.toString('latin1')) : null
  if (text && (text.includes(0) || !isUtf8(text)))
    throw refusal(400, 'INVALID_INPUT', 'The body has a character that cannot be stored, or bytes that are not UTF-8.')
  if (text) return
  const checked = checkJson(body)
  if (checked.kind === 'broken')
    throw refusal(400, checked.problem === 'syntax' ? 'PGRST102' : 'INVALID_JSON', checked.reason)
}

/** So often a list of columns may name the same one, whatever it is called in the answer. */
const mostOfColumn = 10

/** So many aggregates a query has, as the aggregates of our own routes. */
const mostAggregates = 10
const isAggregate = (name: string) => /(^|\.)(avg|count|max|min|sum)$/.test(name)

/** The first step of a JSON path, within which lies what the further ones choose. */
const stepOf = (path: string) => /^->>?((?:(?!->|::).)+)/s.exec(path)?.[1]?.replace(/^(-?)0+(?=\d)/, '$1') ?? ''

/** Names in quotes as names without: what is not of a name itself is written otherwise. */
const withoutQuotes = (list: string) =>
  list.replace(/"((?:[^"\\]|\\.)*)"/gs, (_, name: string) => name.replace(/\W/g, (c) => `_${c.charCodeAt(0)}_`))

/**
 * A row has at most 1 MB, and the columns of a `select` that names one of them a thousand times would have a gigabyte, which Postgres holds several times
 * before it could be counted. Refuses 400 RESPONSE_TOO_LARGE, and INVALID_INPUT of more than ten aggregates.
 */
export const checkSelect = (path: string): void => {
  const query = path.includes('?') ? path.slice(path.indexOf('?') + 1) : ''
  for (const part of query.split(/[&;]/)) {
    const [key = '', ...value] = part.split('=')
    if (bytesOf(key).toString().split('.').at(-1) !== 'select') continue
    const counts = new Map<string, number>()
    const within: string[] = []
    let aggregates = 0
    for (const [, item = '', end] of withoutQuotes(bytesOf(value.join('=')).toString()).matchAll(
      /([^,()]*)([,()]|$)/g,
    )) {
      const [, named = '', json = ''] = /^(?:[^:]*:(?!:))?([^:!-]*)(?:![^:-]*)?(.*)$/s.exec(item) ?? []
      const name = named.trim()
      const column = [...within, `${name} ${stepOf(json)}`].join('(')
      const count = (counts.get(column) ?? 0) + (item.trim() === '' ? 0 : 1)
      if (count > mostOfColumn)
        throw refusal(400, 'RESPONSE_TOO_LARGE', `The query names ${name} more than ${mostOfColumn} times.`)
      counts.set(column, count)
      if (end === '(') within.push(name)
      // an aggregate has nothing in its parentheses
      if (end === ')' && item.trim() === '' && isAggregate(within.at(-1) ?? '')) aggregates += 1
      if (aggregates > mostAggregates)
        throw refusal(400, 'INVALID_INPUT', `A query has at most ${mostAggregates} aggregates.`, { field: 'select' })
      if (end === ')') within.pop()
    }
  }
}

/** Keys of the query that do not choose rows. */
const keywords = new Set(['select', 'columns', 'order', 'limit', 'offset', 'on_conflict'])

/** Whether a part of the query chooses rows of the table that a request names: a filter of it, or a limit. */
const isFilter = (part: string): boolean => {
  const at = part.indexOf('=')
  // PostgREST passes over a key without a value
  if (at < 1) return false
  const key = bytesOf(part.slice(0, at)).toString()
  if (key === 'limit') return /^\d+$/.test(part.slice(at + 1))
  // a dot leads to an embedded table, whose filter leaves the rows of this one as they are
  return !keywords.has(key) && (!key.includes('.') || key === 'not.and' || key === 'not.or')
}

/**
 * An update or a delete without a filter would take every row: refused with the error that Postgres gives with the module safeupdate, which Supabase
 * loads. Whoever means every row says so: `id=not.is.null`.
 */
export const checkFilter = (method: string, path: string): void => {
  if (method !== 'PATCH' && method !== 'DELETE') return
  const query = path.includes('?') ? path.slice(path.indexOf('?') + 1) : ''
  if (query.split(/[&;]/).some(isFilter)) return
  throw refusal(400, '21000', `${method === 'PATCH' ? 'UPDATE' : 'DELETE'} requires a WHERE clause`)
}
