import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { refusal } from '#server/errors.ts'
import { unsupported } from '#server/http/errors.ts'
import { checkJson } from '#server/http/json.ts'
import {
  type Area,
  choosesByPart,
  type Input,
  invalidBodyCode,
  invalidCode,
  invalidJsonCode,
  type Route,
} from '#server/http/route.ts'
import { isExactNumber, lostNumber, parseExact } from '#server/json/lossless_json.ts'

const invalid = (code: string, field: string, reason: string, status = 400) =>
  refusal(status, code, field ? `${field}: ${reason}` : reason, { field, reason })

const check = (
  schema: z.ZodType,
  value: unknown,
  code: string,
  area: Area,
  route: Route,
  part: string,
): Record<string, unknown> => {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data as Record<string, unknown>
  const [issue] = parsed.error.issues
  const place = placeOf(issue, value)
  const field = place.map(String).join('.')
  const reason = reasonOf(issue, value, place)
  if (part === 'params') {
    throw choosesByPart(area, route)
      ? invalid('INVALID_ID', field, reason)
      : refusal(404, 'NOT_FOUND', 'There is nothing with this id.')
  }
  throw invalid(code, field, reason)
}

/** The path of the invalid value: a number in place of an object is itself invalid, not the fields that the object would have. */
const placeOf = (issue: z.core.$ZodIssue | undefined, value: unknown): readonly PropertyKey[] => {
  const path = issue?.path ?? []
  const end = path.findIndex((_, index) => isExactNumber(at(value, path.slice(0, index))))
  return end < 0 ? path : path.slice(0, end)
}

const reasonOf = (issue: z.core.$ZodIssue | undefined, value: unknown, place: readonly PropertyKey[]): string => {
  if (!issue) return 'is not valid'
  const found = at(value, place)
  // issues do not include the value
  if (issue.code === 'invalid_type' && found === undefined) return 'is required'
  if (isExactNumber(found)) return reasonOfNumber(issue, place)
  if (issue.code === 'invalid_value' && /^Invalid (option|input): expected/.test(issue.message))
    return `must be ${anyOf(issue.values.map(String))}`
  return issue.message.replace(/^Invalid input: /, '').replace(/^Too (big|small): /, '')
}

/** `a`, `a or b`, `a, b or c`. */
const anyOf = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

/** To the schema, a number that a double cannot hold is an object; messages must not show that. */
const reasonOfNumber = (issue: z.core.$ZodIssue, place: readonly PropertyKey[]): string => {
  if (issue.path.length > place.length || issue.code === 'unrecognized_keys') return 'must be an object'
  if (issue.code !== 'invalid_type') return issue.message
  const reason = issue.message.replace(/^Invalid input: expected (\w+), received object$/, 'must be a $1')
  return issue.expected !== 'number' || reason.includes('whole number') ? reason : `${reason}, ${ofDouble}`
}

const ofDouble = 'of double precision (15 significant digits)'

const at = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce((held, key) => (typeof held === 'object' && held !== null ? Reflect.get(held, key) : undefined), value)

const objects = new WeakMap<Readonly<Record<string, z.ZodType>>, z.ZodType>()

/** The schema of a route's parameters, created once because zod compiles every new schema. */
const objectOf = (shape: Readonly<Record<string, z.ZodType>>): z.ZodType => {
  const known = objects.get(shape)
  if (known) return known
  const made = z.object(shape)
  objects.set(shape, made)
  return made
}

/** Postgres stores no U+0000 in any name, key or id, so nothing with this name exists; the code is that of the route. */
const nothingNamed = ({ refusals }: Route) =>
  refusal(404, refusals?.[404]?.[0] ?? 'NOT_FOUND', 'There is nothing with this name.')

/** What is asked of a route: what the request itself says, or what another API says in its own form. */
export type Sent = Pick<FastifyRequest, 'params' | 'query' | 'body'>

/** Reads and validates a whole request: refuses at the first invalid field. */
export const readInput = (area: Area, route: Route, request: FastifyRequest, sent: Sent = request): Input => {
  const sentParams = sent.params as Record<string, unknown>
  const params = route.params
    ? { ...sentParams, ...check(objectOf(route.params), sentParams, '', area, route, 'params') }
    : sentParams
  if (Object.values(params).some((part) => String(part).includes('\0'))) throw nothingNamed(route)
  const queryCode = invalidCode(area, route, 'query')
  const query = route.query
    ? check(objectOf(route.query), plainQuery(sent.query, route.query, queryCode), queryCode, area, route, 'query')
    : {}
  return { params, query, ...readBody(area, route, request, sent) }
}

/**
 * A parameter that was sent twice is a list; if one value is expected, the refusal says so. U+0000 is refused here because
 * Postgres cannot store it, so that no schema has to check for it.
 */
const plainQuery = (query: unknown, shape: Readonly<Record<string, z.ZodType>>, code: string) => {
  const sent = Object.entries(query as Record<string, unknown>).filter(([name]) => Object.hasOwn(shape, name))
  const [unstorable] = sent.find(([, value]) => [value].flat().some((text) => String(text).includes('\0'))) ?? []
  if (unstorable !== undefined) throw invalid(code, unstorable, 'must be text without U+0000')
  return Object.fromEntries(sent)
}

const mayHaveProto = /__proto__|\\u005f/i

/**
 * The path of the key `__proto__` in an object that keeps unknown keys: zod omits it from its copy, so it would be lost.
 * An object that drops unknown keys drops this one as well.
 */
const protoKey = (schema: z.core.$ZodType, value: unknown, path: readonly PropertyKey[] = []): PropertyKey[] | null => {
  const { def } = (schema as z.core.$ZodTypes)._zod
  if ('innerType' in def) return protoKey(def.innerType, value, path)
  if (def.type === 'pipe') return protoKey(def.in, value, path)
  const within = (inner: z.core.$ZodType, key: PropertyKey) =>
    protoKey(inner, Reflect.get(value as object, key), [...path, key])
  if (def.type === 'array' && Array.isArray(value)) return firstOf(value.keys(), (index) => within(def.element, index))
  if (def.type === 'union') return firstOf(def.options, (option) => protoKey(option, value, path))
  if (def.type !== 'object' || typeof value !== 'object' || value === null) return null
  const isLoose = def.catchall?._zod.def.type === 'unknown'
  if (isLoose && Object.hasOwn(value, '__proto__')) return [...path, '__proto__']
  return firstOf(Object.entries(def.shape), ([key, inner]) => (Object.hasOwn(value, key) ? within(inner, key) : null))
}

const firstOf = <T, R>(items: Iterable<T>, find: (item: T) => R | null): R | null => {
  for (const item of items) {
    const found = find(item)
    if (found) return found
  }
  return null
}

type Body = Pick<Input, 'body' | 'sent' | 'text'>

const pairOrEscape = /\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..|\\u0000|\\[\s\S]/g

/** JSON without the escapes that Postgres cannot store: a mark in their place, or U+0000 is removed and half of a pair becomes U+FFFD. */
const cleaned = (bytes: Buffer, mark: string | true): Buffer => {
  if (!bytes.includes('\\u')) return bytes
  const text = bytes.toString('latin1').replace(pairOrEscape, (found) => {
    if (found === '\\u0000') return mark === true ? '' : mark
    return found.length === 6 && /^\\u[dD][89a-fA-F]/.test(found) ? (mark === true ? '\\ufffd' : mark) : found
  })
  return Buffer.from(text, 'latin1')
}

const readBody = (area: Area, route: Route, request: FastifyRequest, given: Sent): Body => {
  if (!route.body) return { body: {}, sent: {}, text: '' }
  const sentBytes = Buffer.isBuffer(given.body) ? given.body : null
  const bytes = sentBytes && route.cleansText ? cleaned(sentBytes, route.cleansText) : sentBytes
  if (!bytes?.length) return { body: readNoBody(area, route, request), sent: {}, text: '' }
  const checked = checkJson(bytes)
  if (checked.kind === 'broken') throw notJson(area, route, checked.reason)
  if (!checked.isObject) throw notObject(area, route)
  const text = bytes.toString()
  if (route.takesText) return { body: {}, sent: {}, text }
  const sent = parseExact(bytes, checked.scan, text)
  const code = invalidCode(area, route, 'body')
  const body = check(route.body, sent, code, area, route, 'body')
  const unkept = mayHaveProto.test(text) ? protoKey(route.body, sent) : null
  if (unkept) throw invalid(code, unkept.join('.'), 'is not allowed as the name of a field')
  const lost = checked.scan.inexact.length > 0 ? lostNumber(sent, body) : null
  if (lost) throw invalid(code, lost.join('.'), 'must be an object')
  return { body, sent, text }
}

const readNoBody = (area: Area, route: Route, request: FastifyRequest): Record<string, unknown> => {
  const type = request.headers['content-type']
  if (type && !/^application\/json\b/i.test(type)) throw unsupported(type)
  if (route.needsBody) throw notJson(area, route, 'The body is empty.')
  return route.body ? check(route.body, {}, invalidCode(area, route, 'body'), area, route, 'body') : {}
}

const notJson = (area: Area, route: Route, reason: string) =>
  refusal(400, invalidJsonCode(area, route), reason, { field: '', reason })

const notObject = (area: Area, route: Route) =>
  refusal(400, invalidBodyCode(area, route), 'The body must be a JSON object.', {
    field: '',
    reason: 'must be a JSON object',
  })
