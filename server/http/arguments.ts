import { z } from 'zod'
import type { Arguments } from '#server/database/statements.ts'
import type { Declaration, Input, Route } from '#server/http/route.ts'

type Given = Pick<Input, 'params' | 'query' | 'body'>
type Context = Parameters<NonNullable<Declaration['args']>>[0]

/** The arguments of a route's call, by the names of the function's parameters. */
export const argumentsOf = (route: Route, context: Context): Arguments => ({
  ...declaredArguments(route, context),
  ...route.args?.(context),
})

const declaredArguments = (route: Route, { params, query, body }: Given): Arguments => ({
  ...named(params),
  ...pageNames(query),
  ...(route.patch ? { patch: body } : body),
})

/** idOrKey becomes id_or_key; the project is in the claims already. */
const named = (params: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(params)
      .filter(([name]) => name !== 'projectId')
      .map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]),
  )

/** limit and offset are keywords of SQL: list functions call them page_limit and page_offset. */
const pageNames = ({ limit, offset, ...query }: Record<string, unknown>) => ({
  ...query,
  ...(limit === undefined ? {} : { page_limit: limit }),
  ...(offset === undefined ? {} : { page_offset: offset }),
})

/** Returns itself for every property and call: `args` of a route may read the request, and only the names of its result are needed. */
const stub: unknown = new Proxy(() => undefined, {
  get: (_target, key) => (key === Symbol.toPrimitive ? () => '' : stub),
  apply: () => stub,
})

/**
 * The names that a route sends to its function, each with its schema if the declaration has one; null if they depend on
 * the request. Names that `args` sets to undefined are omitted.
 */
export const namesOf = (route: Route): Map<string, z.ZodType | null> | null => {
  const body = route.body ? fieldsOf(route.body) : {}
  if (route.takesText || (!body && !route.patch)) return null
  const schemas = declaredArguments(route, {
    params: { ...inPath(route) },
    query: { ...route.query },
    body: route.patch ? {} : { ...body },
  }) as Record<string, z.ZodType>
  const names = new Map<string, z.ZodType | null>(
    Object.entries(schemas).map(([name, schema]) => [name, name === 'patch' && route.patch ? null : schema]),
  )
  if (!route.args) return names
  try {
    const context = {
      params: {},
      query: {},
      body: {},
      sent: {},
      text: '',
      request: stub,
      services: stub,
      resolved: stub,
    }
    const filled = {
      ...context,
      params: samples(inPath(route)),
      query: samples(route.query),
      body: samples(body ?? {}),
    }
    for (const [name, value] of Object.entries(route.args(filled as unknown as Context))) {
      if (value === undefined) names.delete(name)
      else names.set(name, null)
    }
  } catch {
    return null
  }
  return names
}

const samples = (shape: Readonly<Record<string, unknown>> = {}) =>
  Object.fromEntries(Object.keys(shape).map((name) => [name, 'x']))

/** Parameters of the path; a route need not declare those that accept any text. */
const inPath = ({ path, params }: Route) => {
  const names = [...path.matchAll(/:([A-Za-z]+)/g)].map(([, name = '']) => name)
  return { ...Object.fromEntries(names.map((name) => [name, z.string()])), ...params }
}

/** The fields of a body that is an object; null for any other body. */
const fieldsOf = (schema: z.ZodType): Readonly<Record<string, z.ZodType>> | null => {
  if (schema instanceof z.ZodObject) return schema.shape as Record<string, z.ZodType>
  if (schema instanceof z.ZodPipe) return fieldsOf(schema.in as z.ZodType)
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return fieldsOf(schema.unwrap() as z.ZodType)
  return null
}

/** The JSON Schema of a schema's output; null if JSON Schema cannot express it. */
export const readInputShape = (schema: z.ZodType): Record<string, unknown> | null => {
  try {
    return z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' }) as Record<string, unknown>
  } catch {
    return null
  }
}
