import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { codesText, failureOf, failures, specificCodes } from '#server/http/document/failures.ts'
import { type Schema, schemaOf } from '#server/http/document/json_schemas.ts'
import { schemaNames, shared } from '#server/http/document/names.ts'
import { pascal, upperFirst } from '#server/http/document/operation_ids.ts'
import { wordedBody } from '#server/http/document/words.ts'
import { rankOf } from '#server/http/ranks.ts'
import type { Area, Route } from '#server/http/route.ts'
import { ErrorEnvelope } from '#server/http/schemas.ts'
import { isDelegable, scopeOf } from '#server/http/scopes.ts'
import { mayStreamEvents, streamedTypes } from '#server/http/stream.ts'

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
  for (const [name, failure] of Object.entries(failures)) responses.known(failure, name)

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
    return responses.note(content, ...(short ? [short] : []), ...proposed, `${upperFirst(id)}${status}`)
  }

  /** A parameter as it is transferred: a numeric one of the query is text. */
  const parameter = (id: string, name: string, where: 'path' | 'query' | 'header', schema: z.ZodType): object => {
    const { description, ...whole } = schemaOf(schema, 'input') as { description?: string } & Schema
    const content = {
      name,
      in: where,
      ...(where === 'path' || !schema.safeParse(undefined).success ? { required: true } : {}),
      ...(description ? { description } : {}),
      schema: whole,
    }
    const word = pascal([name])
    return parameters.note(content, word, `${word}In${upperFirst(where)}`, `${upperFirst(id)}${word}`)
  }

  return { schemas, responses, parameters, refusal, parameter }
}

type Components = ReturnType<typeof components>

const ofText = { type: 'string' }
/** A form is fields by name. */
const ofForm = { additionalProperties: { type: 'string' } }

/** Contents that are no JSON. */
const text = (types: readonly string[]) =>
  Object.fromEntries(types.map((type) => [type, { schema: /form-(data|urlencoded)$/.test(type) ? ofForm : ofText }]))

/** Whether a content type is that of JSON, whose schema is noted and later written by reference. */
type Content = Record<string, { schema: Schema }>

const success: Readonly<Record<number, string>> = {
  101: 'The connection is a WebSocket from here on',
  304: 'Not modified: the response has no body',
}

const responsesOf = (
  area: Area,
  route: Route,
  id: string,
  { schemas, refusal }: Components,
): Readonly<Record<string, object>> => {
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
  if (!isRefused) found[429] = failureOf(route)
  const ordered = Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1))
  return { ...Object.fromEntries(ordered), default: failureOf(route) }
}

const requestBody = (area: Area, route: Route, id: string, { schemas }: Components) => {
  if (route.uploads) return { required: true, content: text(route.uploads) }
  const body = route.documentedBody ?? route.body
  if (!body) return null
  const schema = wordedBody(area, route, schemaOf(body, 'input'))
  schemas.body(id, schema)
  return {
    required: !body.safeParse({}).success,
    content: { 'application/json': { schema, ...(route.example ? { example: route.example } : {}) } },
  }
}

const pathParameters = (route: Route, id: string, { parameter }: Components) =>
  [...route.path.matchAll(/:([A-Za-z]+)/g)].map(([, name = '']) =>
    parameter(id, name, 'path', route.params?.[name] ?? (name === 'projectId' ? z.uuid() : z.string())),
  )

/** What a route says of itself, or what its caller needs: more than the summary over again. */
const descriptionOf = (area: Area, route: Route): string => {
  if (route.description) return route.description
  if (!route.caller.takesTokens) return route.summary
  const scope = scopeOf(area, route)
  const least = rankOf(area, route)
  const needs = [
    ...(route.sessionOnly ? ['a session'] : scope ? [`scope \`${scope}\``] : []),
    ...(least ? [`role ${least}`] : []),
  ]
  return needs.length > 0 ? `Needs ${needs.join(', ')}.` : route.summary
}

/** What the caller of most operations needs: told once, for the whole document. */
export const usualSecurity = [{ Developer: [] }]

/** An operation whose schemas are still written out. */
export const operation = (area: Area, route: Route, id: string, shared: Components) => ({
  /** Of the path; parameters that all its operations have are told there. */
  path: pathParameters(route, id, shared),
  told: {
    operationId: id,
    tags: [area.title],
    summary: route.summary,
    description: descriptionOf(area, route),
    ...(isDeepStrictEqual(route.caller.security, usualSecurity) ? {} : { security: route.caller.security }),
    ...(route.caller.takesTokens ? { 'x-scope': route.sessionOnly ? 'session only' : scopeOf(area, route) } : {}),
    ...(route.caller.takesTokens && isDelegable(area, route) ? { 'x-delegable': true } : {}),
    ...(rankOf(area, route) ? { 'x-role': rankOf(area, route) } : {}),
  },
  parameters: [
    ...Object.entries(route.query ?? {}).map(([name, schema]) => shared.parameter(id, name, 'query', schema)),
    ...Object.entries(route.headers ?? {}).map(([name, schema]) => shared.parameter(id, name, 'header', schema)),
  ],
  body: requestBody(area, route, id, shared),
  responses: responsesOf(area, route, id, shared),
  /** The statuses that are no refusals. */
  answers: new Set(Object.keys(route.replies)),
})

export type Operation = ReturnType<typeof operation>
type WithContent = { readonly content?: Content }

const byReference = <T extends object>(holder: T, { schemas }: Components): T => {
  const { content } = holder as WithContent
  if (!content) return holder
  const referred = Object.entries(content).map(([type, media]) => [
    type,
    { ...media, schema: schemas.refer(media.schema) },
  ])
  return { ...holder, content: Object.fromEntries(referred) }
}

/** The operation with its schemas by reference; the names of schemas are decided. Responses of equal content are noted. */
export const referring = (made: Operation, shared: Components): Operation => ({
  ...made,
  body: made.body ? byReference(made.body, shared) : null,
  responses: Object.fromEntries(
    Object.entries(made.responses).map(([status, response]) => {
      if (!made.answers.has(status)) return [status, response]
      const referred = byReference(response, shared)
      const { $ref } = (referred as WithContent).content?.['application/json']?.schema ?? {}
      const name =
        String($ref ?? '')
          .split('/')
          .at(-1) ?? ''
      return [status, shared.responses.note(referred, ...(name ? [name] : []))]
    }),
  ),
})

/** The operation as it stands in the document: what several have is by reference; all names are decided. */
export const written = (made: Operation, shared: Components, isOfPath: (parameter: object) => boolean): object => {
  const own = [...made.path.filter((parameter) => !isOfPath(parameter)), ...made.parameters]
  return {
    ...made.told,
    ...(own.length > 0 ? { parameters: own.map(shared.parameters.refer) } : {}),
    ...(made.body ? { requestBody: made.body } : {}),
    responses: Object.fromEntries(
      Object.entries(made.responses).map(([status, response]) => [status, shared.responses.refer(response)]),
    ),
  }
}
