import { z } from 'zod'
import { declaredCodes } from '#server/http/document/codes.ts'
import { type Schema, schemaOf } from '#server/http/document/json_schemas.ts'
import { schemaNames, shared } from '#server/http/document/names.ts'
import { pascal, upperFirst } from '#server/http/document/operation_ids.ts'
import { rankOf } from '#server/http/ranks.ts'
import type { Area, Route } from '#server/http/route.ts'
import { ErrorEnvelope } from '#server/http/schemas.ts'
import { isDelegable, scopeOf } from '#server/http/scopes.ts'
import { mayStreamEvents, streamedTypes } from '#server/http/stream.ts'

const codesText = (codes: readonly string[]) => codes.map((code) => `\`${code}\``).join(', ')

/** Refusals that most operations share, by the words that a person would use. */
const usual: Readonly<Record<string, string>> = {
  'PROJECT_FORBIDDEN SCOPE_REQUIRED': 'NotAllowed',
  'PROJECT_FORBIDDEN ROLE_FORBIDDEN SCOPE_REQUIRED': 'NotAllowedForRole',
  'DELEGATION_NOT_ALLOWED PROJECT_FORBIDDEN SCOPE_REQUIRED': 'NotDelegable',
  'DELEGATION_NOT_ALLOWED PROJECT_FORBIDDEN ROLE_FORBIDDEN SCOPE_REQUIRED': 'NotDelegableNorForRole',
  'DELEGATION_NOT_ALLOWED ROLE_FORBIDDEN SESSION_REQUIRED': 'SessionAndRoleRequired',
  'TOKEN_EXPIRED UNAUTHORIZED': 'NotSignedIn',
  'INVALID_BODY VALIDATION_ERROR': 'BadBody',
  'INVALID_BODY INVALID_ID VALIDATION_ERROR': 'BadBodyOrId',
}

/** Parts of the document that operations use by reference. */
export const components = () => {
  const schemas = schemaNames()
  const responses = shared('responses')
  const parameters = shared('parameters')
  schemas.known(schemaOf(ErrorEnvelope, 'output'), 'Error')
  responses.refer(failure, 'Failure')

  /** A refusal: the error envelope with the codes that this status may have. */
  const refusal = (id: string, status: number, codes: readonly string[]): object => {
    const content = {
      description: codesText(codes),
      ...(status === 429 || status === 503
        ? { headers: { 'Retry-After': { description: 'Seconds to wait', schema: { type: 'integer' } } } }
        : {}),
      content: {
        'application/json': {
          schema: {
            allOf: [
              { $ref: '#/components/schemas/Error' },
              { properties: { error: { properties: { code: { enum: codes } } } } },
            ],
          },
        },
      },
    }
    const short = usual[codes.join(' ')]
    const joined = codes.map((code) => pascal([code.toLowerCase()])).join('Or')
    const proposed = joined.length <= 48 ? [joined, `${joined}${status}`] : []
    return responses.refer(content, ...(short ? [short] : []), ...proposed, `${upperFirst(id)}${status}`) ?? content
  }

  /** A parameter as it is transferred: a numeric one of the query is text. */
  const parameter = (name: string, where: 'path' | 'query' | 'header', schema: z.ZodType): object => {
    const { description, ...whole } = schemaOf(schema, 'input') as { description?: string } & Schema
    const content = {
      name,
      in: where,
      ...(where === 'path' || !schema.safeParse(undefined).success ? { required: true } : {}),
      ...(description ? { description } : {}),
      schema: whole,
    }
    // what a filter of one area accepts is written there; these are everywhere the same
    const word = pascal([name])
    return everywhere.has(name) ? (parameters.refer(content, word) ?? content) : content
  }

  return { schemas, responses, parameters, refusal, parameter }
}

type Components = ReturnType<typeof components>

const everywhere = new Set(['projectId', 'idOrKey', 'userId', 'limit', 'offset', 'cursor', 'include_system'])

const text = (types: readonly string[]) =>
  Object.fromEntries(types.map((type) => [type, { schema: { type: 'string' } }]))

/** Whether a content type is that of JSON, whose schema is noted and later written by reference. */
type Content = Record<string, { schema: Schema }>

const success: Readonly<Record<number, string>> = {
  101: 'The connection is a WebSocket from here on',
  304: 'Not modified: the response has no body',
}

/** Codes that any operation may return, and that are told once. */
const general = new Set([
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'RATE_LIMITED',
  'SERVICE_UNAVAILABLE',
  'TENANT_UNAVAILABLE',
  'TENANT_MIGRATION_PENDING',
])

/** The codes of a route by status, sorted, without the statuses that the document tells once for all operations. */
export const specificCodes = (area: Area, route: Route): [number, string[]][] =>
  [...declaredCodes(area, route)]
    .filter(([status, codes]) => status !== 500 && [...codes].some((code) => !general.has(code)))
    .map(([status, codes]) => [status, [...codes].sort()])

const failure = {
  description:
    'What any operation may answer: 413 `PAYLOAD_TOO_LARGE`, 415 `UNSUPPORTED_MEDIA_TYPE`, 429 `RATE_LIMITED`, 500 with a code such as `FETCH_FAILED`, ' +
    '503 `SERVICE_UNAVAILABLE`, `TENANT_UNAVAILABLE` or `TENANT_MIGRATION_PENDING` (users administration: 502 `TENANT_UNAVAILABLE`)',
  headers: { 'Retry-After': { description: 'With 429 and 503: seconds to wait', schema: { type: 'integer' } } },
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
}

const responsesOf = (area: Area, route: Route, id: string, { schemas, refusal }: Components) => {
  const found: Record<string, object> = {}
  for (const [status, schema] of Object.entries(route.replies)) {
    const told = success[Number(status)]
    if (told) {
      found[status] = { description: told }
      // RFC 8441: where a proxy speaks HTTP/2, an accepted WebSocket has this status
      if (status === '101') found[200] = { description: `${told} (over HTTP/2)` }
      continue
    }
    const types = streamedTypes(schema)
    const json = () => {
      const made = schemaOf(schema, 'output')
      schemas.reply(id, made)
      return { 'application/json': { schema: made } }
    }
    const content: Content = types
      ? text(types)
      : { ...json(), ...(mayStreamEvents(schema) ? text(['text/event-stream']) : {}) }
    found[status] = { description: Number(status) < 300 ? 'Success' : 'As described', content }
  }
  for (const [status, codes] of specificCodes(area, route)) {
    found[status] ??= refusal(id, status, codes)
  }
  const isRefused = Object.keys(found).some((status) => status.startsWith('4'))
  if (!isRefused) found[429] = { $ref: '#/components/responses/Failure' }
  const ordered = Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1))
  return { ...Object.fromEntries(ordered), default: { $ref: '#/components/responses/Failure' } }
}

const requestBody = (route: Route, id: string, { schemas }: Components) => {
  if (route.uploads) return { requestBody: { required: true, content: text(route.uploads) } }
  const body = route.documentedBody ?? route.body
  if (!body) return {}
  const schema = schemaOf(body, 'input')
  schemas.body(id, schema)
  return {
    requestBody: {
      required: !body.safeParse({}).success,
      content: { 'application/json': { schema, ...(route.example ? { example: route.example } : {}) } },
    },
  }
}

const pathParameters = (route: Route, { parameter }: Components) =>
  [...route.path.matchAll(/:([A-Za-z]+)/g)].map(([, name = '']) =>
    parameter(name, 'path', route.params?.[name] ?? (name === 'projectId' ? z.uuid() : z.string())),
  )

/** An operation whose schemas are still written out. */
export const operation = (area: Area, route: Route, id: string, shared: Components) => ({
  operationId: id,
  tags: [area.title],
  summary: route.summary,
  description: route.description ?? route.summary,
  security: route.caller.security,
  ...(route.caller.takesTokens ? { 'x-scope': route.sessionOnly ? 'session only' : scopeOf(area, route) } : {}),
  ...(route.caller.takesTokens && isDelegable(area, route) ? { 'x-delegable': true } : {}),
  ...(rankOf(area, route) ? { 'x-role': rankOf(area, route) } : {}),
  parameters: [
    ...pathParameters(route, shared),
    ...Object.entries(route.query ?? {}).map(([name, schema]) => shared.parameter(name, 'query', schema)),
    ...Object.entries(route.headers ?? {}).map(([name, schema]) => shared.parameter(name, 'header', schema)),
  ],
  ...requestBody(route, id, shared),
  responses: responsesOf(area, route, id, shared),
})

type Operation = ReturnType<typeof operation>
type WithContent = { readonly content?: Content }

const byReference = (holder: object, { schemas }: Components): object => {
  const { content, ...rest } = holder as WithContent
  if (!content) return holder
  const referred = Object.entries(content).map(([type, media]) => [
    type,
    { ...media, schema: schemas.refer(media.schema) },
  ])
  return { ...rest, content: Object.fromEntries(referred) }
}

/** The operation with its schemas by reference; all names are decided. */
export const referring = (made: Operation, shared: Components): object => {
  const { requestBody: body, responses, ...rest } = made as Operation & { requestBody?: object }
  return {
    ...rest,
    ...(body ? { requestBody: byReference(body, shared) } : {}),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [status, byReference(response, shared)]),
    ),
  }
}
