import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { operationIds } from '#server/http/operation_ids.ts'
import { rankOf, rankRefusals } from '#server/http/ranks.ts'
import { type Area, invalidBodyCode, invalidCode, invalidJsonCode, type Route } from '#server/http/route.ts'
import { ErrorEnvelope } from '#server/http/schemas.ts'
import { scopeOf, tokenRefusals } from '#server/http/scopes.ts'
import { mayStreamEvents, streamedTypes } from '#server/http/stream.ts'

/** A part of the path that accepts any text, such as an id or a key, is never malformed. */
const mayRefuse = (schema: z.ZodType) => !schema.safeParse('~ no id ~').success

/** Every code that a route may return, by status: its own, its caller's, its area's, and those of all routes. */
export const declaredCodes = (area: Area, route: Route): ReadonlyMap<number, ReadonlySet<string>> => {
  const codes = new Map<number, Set<string>>()
  const add = (status: number, ...names: readonly string[]) => {
    codes.set(status, new Set([...(codes.get(status) ?? []), ...names]))
  }
  for (const declared of [route.refusals ?? {}, route.caller.refusals]) {
    for (const [status, names] of Object.entries(declared)) {
      // the users administration responds with 502 where others respond with 503
      const moved: readonly string[] =
        area.unavailable === 502 && status === '503' ? [...names].filter((name) => name === 'TENANT_UNAVAILABLE') : []
      if (moved.length > 0) add(502, ...moved)
      const renamed = area.notMigrated && names.includes('TENANT_MIGRATION_PENDING') ? area.notMigrated : null
      if (renamed) add(409, renamed)
      const kept = names.filter((name) => !moved.includes(name) && !(renamed && name === 'TENANT_MIGRATION_PENDING'))
      if (kept.length > 0) add(Number(status), ...kept)
    }
  }
  const forbidden = [...tokenRefusals(area, route), ...rankRefusals(area, route)]
  if (forbidden.length > 0) add(403, ...forbidden)
  if (route.body) {
    add(400, invalidCode(area, route, 'body'), invalidBodyCode(area, route), invalidJsonCode(area, route))
    add(413, 'PAYLOAD_TOO_LARGE')
    add(415, 'UNSUPPORTED_MEDIA_TYPE')
  }
  if (route.uploads || (route.documentedBody && !route.body)) {
    add(413, 'PAYLOAD_TOO_LARGE')
    add(415, 'UNSUPPORTED_MEDIA_TYPE')
  }
  if (route.query) add(400, invalidCode(area, route, 'query'))
  if (route.params && Object.values(route.params).some(mayRefuse)) {
    if ((route.source ?? area.source) === 'contract') add(404, 'NOT_FOUND')
    else add(400, 'INVALID_ID')
  }
  if (route.ceiling !== 'none') add(429, 'RATE_LIMITED')
  if (route.failure) add(500, route.failure)
  return codes
}

const schemaOf = (schema: z.ZodType, io: 'input' | 'output'): object => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    target: 'draft-2020-12',
  }) as Record<string, unknown>
  return rest
}

/** Types as they are transferred: a numeric query parameter is text. */
const parameter = (name: string, where: 'path' | 'query' | 'header', schema: z.ZodType) => ({
  name,
  in: where,
  required: where === 'path' || !schema.safeParse(undefined).success,
  schema: documented(schema),
})

const documented = (schema: z.ZodType): object => {
  const whole = schemaOf(schema, 'input') as Record<string, unknown>
  const { pattern, ...rest } = whole
  return rest['type'] === 'string' && pattern ? { ...rest, pattern } : rest
}

const pathParameters = (route: Route) =>
  [...route.path.matchAll(/:([A-Za-z]+)/g)].map(([, name = '']) =>
    parameter(name, 'path', route.params?.[name] ?? (name === 'projectId' ? z.uuid() : z.string())),
  )

const codesText = (codes: ReadonlySet<string>) =>
  [...codes]
    .sort()
    .map((code) => `\`${code}\``)
    .join(', ')

const responses = (area: Area, route: Route) => {
  const found: Record<string, object> = {}
  const declared = declaredCodes(area, route)
  const text = (types: readonly string[]) =>
    Object.fromEntries(types.map((type) => [type, { schema: { type: 'string' } }]))
  const json = (schema: object) => ({ 'application/json': { schema } })
  for (const [status, schema] of Object.entries(route.replies)) {
    if (status === '101') {
      found[status] = { description: 'The connection is a WebSocket from here on' }
      continue
    }
    if (status === '304') {
      found[status] = { description: 'Not modified: the response has no body' }
      continue
    }
    found[status] = {
      description: Number(status) < 300 ? 'Success' : 'As described',
      content: streamedTypes(schema)
        ? text(streamedTypes(schema) ?? [])
        : { ...json(schemaOf(schema, 'output')), ...(mayStreamEvents(schema) ? text(['text/event-stream']) : {}) },
    }
  }
  for (const [status, codes] of declared) {
    if (found[status]) continue
    found[status] = {
      description: codesText(codes),
      ...(status === 429 || status === 503
        ? { headers: { 'Retry-After': { description: 'Seconds to wait', schema: { type: 'integer' } } } }
        : {}),
      content: json({
        allOf: [
          { $ref: '#/components/schemas/Error' },
          { properties: { error: { properties: { code: { enum: [...codes].sort() } } } } },
        ],
      }),
    }
  }
  return Object.fromEntries(Object.entries(found).sort(([a], [b]) => Number(a) - Number(b)))
}

const requestBody = (route: Route) => {
  const schema = route.documentedBody ?? route.body
  if (!schema) return {}
  return {
    requestBody: {
      required: !schema.safeParse({}).success,
      content: {
        'application/json': {
          schema: schemaOf(schema, 'input'),
          ...(route.example ? { example: route.example } : {}),
        },
      },
    },
  }
}

const operation = (area: Area, route: Route, id: string) => ({
  operationId: id,
  tags: [area.title],
  summary: route.summary,
  ...(route.description ? { description: route.description } : {}),
  security: route.caller.security,
  ...(route.caller.takesTokens ? { 'x-scope': route.sessionOnly ? 'session only' : scopeOf(area, route) } : {}),
  ...(rankOf(area, route) ? { 'x-role': rankOf(area, route) } : {}),
  parameters: [
    ...pathParameters(route),
    ...Object.entries(route.query ?? {}).map(([name, schema]) => parameter(name, 'query', schema)),
    ...Object.entries(route.headers ?? {}).map(([name, schema]) => parameter(name, 'header', schema)),
  ],
  ...requestBody(route),
  ...(route.uploads
    ? {
        requestBody: {
          required: true,
          content: Object.fromEntries(route.uploads.map((type) => [type, { schema: { type: 'string' } }])),
        },
      }
    : {}),
  responses: responses(area, route),
})

/** The full path of a route. */
export const fullPath = (area: Area, route: Route) => (area.unversioned ? route.path : `/v1${route.path}`)

/** The OpenAPI 3.1 document of the live routes. Building it takes hundreds of milliseconds: it yields to requests between two routes. */
export const openApi = async (areas: readonly Area[], publicUrl: string): Promise<object> => {
  const paths: Record<string, Record<string, object>> = {}
  const ids = operationIds(areas)
  for (const area of areas) {
    for (const route of area.routes) {
      const path = fullPath(area, route).replace(/:([A-Za-z]+)/g, '{$1}')
      paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(area, route, ids.get(route) ?? '') }
      await nextTurn()
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Trellis',
      version: '1.0.0',
      summary: 'A multi-tenant application backend.',
      description:
        'A successful response has `data`; a failure has `error` with `code`, `message` and sometimes `details`. Every response has `X-Request-Id`. Each operation lists the codes of each status.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl }],
    tags: [...new Set(areas.map((area) => area.title))].map((name) => ({ name })),
    paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => a.localeCompare(b))),
    components: {
      securitySchemes: {
        Developer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'Access token of a developer, or a personal access token (`svc_dpat_…`) with the scope that `x-scope` of the operation names.',
        },
        ApiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Api-Key',
          description: 'Client key or server key of a project.',
        },
        Session: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: "An end user's session token." },
        OnBehalfOf: {
          type: 'apiKey',
          in: 'header',
          name: 'X-On-Behalf-Of',
          description: 'With a server key: the id of the user to act for.',
        },
      },
      schemas: { Error: schemaOf(ErrorEnvelope, 'output') },
    },
  }
}
