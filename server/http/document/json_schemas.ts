import { z } from 'zod'
import { wordsKey } from '#server/http/words.ts'

/** A JSON Schema, or a part of one. */
export type Schema = { readonly [keyword: string]: unknown }

export const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const lists = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const singles = ['items', 'additionalProperties', 'not', 'contains']
const maps = ['properties', 'patternProperties']

/** A copy of a schema with its direct parts replaced. Values such as `default` and `enum` are no schemas, whatever they look like. */
export const withParts = (schema: Schema, change: (part: Schema, name: string) => unknown): Schema =>
  Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      if (lists.includes(keyword) && Array.isArray(value)) {
        return [keyword, value.map((part) => (isSchema(part) ? change(part, '') : part))]
      }
      if (singles.includes(keyword) && isSchema(value))
        return [keyword, change(value, keyword === 'items' ? 'item' : '')]
      if (maps.includes(keyword) && isSchema(value)) {
        return [
          keyword,
          Object.fromEntries(
            Object.entries(value).map(([name, part]) => [name, isSchema(part) ? change(part, name) : part]),
          ),
        ]
      }
      return [keyword, value]
    }),
  )

/** Bounds of what is accepted. In a response they tell a client nothing, and a later version may widen them. */
const bounds = ['minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems', 'pattern']

const formats = new Set(['uuid', 'date-time', 'date', 'email'])
const safe = Number.MAX_SAFE_INTEGER

/** `null` as one more type of a scalar, in place of a union with it. */
const withoutUnionWithNull = (schema: Schema): Schema => {
  const { anyOf, ...rest } = schema as Schema & { anyOf?: readonly Schema[] }
  const [value, nothing] = anyOf ?? []
  if (anyOf?.length !== 2 || !value || nothing?.['type'] !== 'null' || typeof value['type'] !== 'string') return schema
  if (['object', 'array'].includes(value['type']) || 'const' in value) return schema
  const named = Array.isArray(value['enum']) ? { enum: [...value['enum'], null] } : {}
  return { ...value, ...named, type: [value['type'], 'null'], ...rest }
}

/**
 * What Zod writes, made short and true for clients: bounds that every integer has and patterns that a format already says are left out;
 * a boolean of a query is a boolean; every required property is declared; objects in responses may get properties in a later version.
 */
const tidied = (schema: Schema, io: 'input' | 'output'): Schema => {
  const { $schema: _, ...made } = withoutUnionWithNull(withParts(schema, (part) => tidied(part, io)))
  const drop = new Set<string>()
  const types = [made['type']].flat()
  if (made['minimum'] === -safe) drop.add('minimum')
  if (made['maximum'] === safe) drop.add('maximum')
  if (formats.has(String(made['format'])) || !types.includes('string')) drop.add('pattern')
  if (types.includes('boolean')) drop.add('enum')
  if (isSchema(made['propertyNames']) && Object.keys(made['propertyNames']).join() === 'type') drop.add('propertyNames')
  if (io === 'output' && made['additionalProperties'] === false) drop.add('additionalProperties')
  if (io === 'output') for (const bound of bounds) drop.add(bound)
  const kept = Object.fromEntries(
    Object.entries(made).filter(
      ([keyword]) =>
        !drop.has(keyword) &&
        // responses have no words: their fields are those of requests, and a row of a table says the rest
        (!keyword.startsWith('x-trellis') || (keyword === wordsKey && io === 'input')),
    ),
  )
  const places = Array.isArray(kept['prefixItems']) && !kept['items'] ? kept['prefixItems'].length : null
  const tuple = places === null ? {} : { items: {}, minItems: places, maxItems: places }
  const required = kept['required']
  if (!Array.isArray(required)) return { ...kept, ...tuple }
  const declared = isSchema(kept['properties']) ? kept['properties'] : {}
  const any = isSchema(kept['additionalProperties']) ? kept['additionalProperties'] : {}
  const missing = required.filter((name) => !(name in declared)).map((name) => [name, any] as const)
  return {
    ...kept,
    ...tuple,
    ...(missing.length > 0 ? { properties: { ...declared, ...Object.fromEntries(missing) } } : {}),
  }
}

const known = { input: new WeakMap<z.ZodType, Schema>(), output: new WeakMap<z.ZodType, Schema>() }

/** The JSON Schema of a request or a response. Routes share schemas, so each is made once. */
export const schemaOf = (schema: z.ZodType, io: 'input' | 'output'): Schema => {
  const before = known[io].get(schema)
  if (before) return before
  const made = tidied(
    z.toJSONSchema(schema, { io, unrepresentable: 'any', target: 'draft-2020-12' }) as Record<string, unknown>,
    io,
  )
  known[io].set(schema, made)
  return made
}
