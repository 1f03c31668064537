import { z } from 'zod'
import type { Route } from '#server/http/route.ts'

type Schema = {
  type?: string
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
  enum?: unknown[]
  pattern?: string
  format?: string
}
export const schemaOf = (route: Route) =>
  z.toJSONSchema(route.body ?? z.object({}), { io: 'input', unrepresentable: 'any' }) as Schema
/** A schema without a type accepts any JSON. */
export const isNullable = (schema: Schema) =>
  schema.anyOf?.some(({ type }) => type === 'null') ?? Object.keys(schema).every((name) => name === 'description')
const coreOf = (schema: Schema): Schema => schema.anyOf?.find(({ type }) => type !== 'null') ?? schema
const beyond = 9_007_199_254_740_991

/** Values that a field must refuse, according to its declared bounds. */
export const wrongOf = (declared: Schema): unknown[] => {
  const { type, minimum, maximum, exclusiveMinimum, minLength, maxLength, maxItems, enum: known } = coreOf(declared)
  if (type === 'boolean') return ['true', 1, {}]
  if (type === 'array') return [{}, 'text', ...(maxItems && maxItems < 300 ? [Array(maxItems + 1).fill('a')] : [])]
  if (type === 'object') return [[], 'text', 5]
  if (type === 'integer' || type === 'number')
    return [
      ...['text', true, {}],
      ...(type === 'integer' ? [1.5] : []),
      ...(minimum !== undefined && minimum > -beyond ? [minimum - 1] : []),
      ...(exclusiveMinimum !== undefined ? [exclusiveMinimum] : []),
      ...(maximum !== undefined && maximum < beyond ? [maximum + 1] : []),
    ]
  if (type !== 'string') return []
  return [
    ...[5, true, {}],
    ...(minLength ? ['x'.repeat(minLength - 1)] : []),
    ...(maxLength ? ['x'.repeat(maxLength + 1)] : []),
    ...(known ? ['no such value'] : []),
    ...(coreOf(declared).pattern || coreOf(declared).format ? ['~ nothing of the kind ~'] : []),
  ]
}

/** Values at the bounds of a field. */
export const edgesOf = (declared: Schema): unknown[] => {
  const { type, minimum, maximum, maxLength, minLength, enum: known, pattern, format } = coreOf(declared)
  if (type === 'boolean') return [true, false]
  if (type === 'integer' || type === 'number') return [minimum, maximum].filter((edge) => edge !== undefined)
  if (known) return known
  if (type !== 'string' || pattern || format) return []
  return [minLength, maxLength].filter((length) => length !== undefined).map((length) => 'x'.repeat(length))
}
