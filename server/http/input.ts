import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { refusal } from '#server/errors.ts'
import { unsupported } from '#server/http/errors.ts'
import { parseJson } from '#server/http/json.ts'
import { type Area, type Input, invalidBodyCode, invalidCode, invalidJsonCode, type Route } from '#server/http/route.ts'

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
  const field = issue?.path.map(String).join('.') ?? ''
  const reason = reasonOf(issue, value)
  if (part === 'params') {
    // a malformed id names nothing: 404 in the contract's areas, INVALID_ID in the supplement's
    const source = route.source ?? area.source
    throw source === 'contract'
      ? refusal(404, 'NOT_FOUND', 'There is nothing under this id.')
      : invalid('INVALID_ID', field, reason)
  }
  throw invalid(code, field, reason)
}

const reasonOf = (issue: z.core.$ZodIssue | undefined, value: unknown): string => {
  if (!issue) return 'is not valid'
  // issues do not say what was there
  if (issue.code === 'invalid_type' && at(value, issue.path) === undefined) return 'is required'
  return issue.message.replace(/^Invalid input: /, '').replace(/^Too (big|small): /, '')
}

const at = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce((held, key) => (typeof held === 'object' && held !== null ? Reflect.get(held, key) : undefined), value)

const objects = new WeakMap<Readonly<Record<string, z.ZodType>>, z.ZodType>()

/** The schema of a route's parameters: made once, for zod compiles each one that it meets. */
const objectOf = (shape: Readonly<Record<string, z.ZodType>>): z.ZodType => {
  const known = objects.get(shape)
  if (known) return known
  const made = z.object(shape)
  objects.set(shape, made)
  return made
}

/** U+0000 is in no name, key or id that Postgres holds: what is under it is missing, as the route says that of others. */
const nothingNamed = ({ refusals }: Route) =>
  refusal(404, refusals?.[404]?.[0] ?? 'NOT_FOUND', 'There is nothing under this name.')

/** Reads and checks all of a request: refuses the first thing that is wrong, by its field. */
export const readInput = (area: Area, route: Route, request: FastifyRequest): Input => {
  const sentParams = request.params as Record<string, unknown>
  const params = route.params
    ? { ...sentParams, ...check(objectOf(route.params), sentParams, '', area, route, 'params') }
    : sentParams
  if (Object.values(params).some((part) => String(part).includes('\0'))) throw nothingNamed(route)
  const queryCode = invalidCode(area, route, 'query')
  const query = route.query
    ? check(objectOf(route.query), plainQuery(request.query, route.query, queryCode), queryCode, area, route, 'query')
    : {}
  return { params, query, body: readBody(area, route, request) }
}

/**
 * A parameter that was sent twice is a list; where one value is wanted, that is a mistake worth naming. U+0000 is in no text that
 * Postgres holds, so no schema need think of it.
 */
const plainQuery = (query: unknown, shape: Readonly<Record<string, z.ZodType>>, code: string) => {
  const sent = Object.entries(query as Record<string, unknown>).filter(([name]) => Object.hasOwn(shape, name))
  const [unstorable] = sent.find(([, value]) => [value].flat().some((text) => String(text).includes('\0'))) ?? []
  if (unstorable !== undefined) throw invalid(code, unstorable, 'must be text without U+0000')
  return Object.fromEntries(sent)
}

const readBody = (area: Area, route: Route, request: FastifyRequest): Record<string, unknown> => {
  if (!route.body) return {}
  const text = typeof request.body === 'string' ? request.body : ''
  if (text === '') {
    const type = request.headers['content-type']
    if (type && !/^application\/json\b/i.test(type)) throw unsupported(type)
    return check(route.body, {}, invalidCode(area, route, 'body'), area, route, 'body')
  }
  const parsed = parseJson(text)
  if (parsed.kind === 'broken')
    throw refusal(400, invalidJsonCode(area, route), parsed.reason, { field: '', reason: parsed.reason })
  if (typeof parsed.value !== 'object' || parsed.value === null || Array.isArray(parsed.value)) {
    throw refusal(400, invalidBodyCode(area, route), 'The body must be a JSON object.', {
      field: '',
      reason: 'must be a JSON object',
    })
  }
  return check(route.body, parsed.value, invalidCode(area, route, 'body'), area, route, 'body')
}
