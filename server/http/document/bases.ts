import { isSchema, type Schema } from '#server/http/document/json_schemas.ts'

type Properties = Readonly<Record<string, unknown>>
type Row = {
  readonly name: string
  readonly noun: string
  readonly isInput: boolean
  readonly texts: ReadonlyMap<string, string>
  /** The same without defaults, which a change has not. */
  readonly changed: ReadonlyMap<string, string>
  readonly required: ReadonlySet<string>
}

const plain = new Set(['type', 'properties', 'required'])

/** Less than this is not worth a reader's second look. */
const leastSaving = 80

/** What a name is about: CreateStreakInput and UpdateStreakInput are about Streak. */
const nounOf = (name: string) => name.replace(/^(Create|Update)/, '').replace(/(Input|Result|Definition|Detail)$/, '')

const withoutDefault = (part: unknown): unknown => {
  if (!isSchema(part)) return part
  const { default: _, 'x-unset': __, ...rest } = part
  return rest
}

/** What a property says beside the words that the base has already: what it accepts, and its default. */
const wordless = (part: unknown): unknown => {
  if (!isSchema(part)) return part
  const { title: _, description: __, 'x-form': ___, ...rest } = part
  return rest
}

const rowOf = (name: string, schema: Schema): Row | null => {
  const { type, properties, required } = schema
  if (type !== 'object' || !isSchema(properties) || Object.keys(schema).some((keyword) => !plain.has(keyword)))
    return null
  return {
    name,
    noun: nounOf(name),
    isInput: name.endsWith('Input'),
    texts: new Map(Object.entries(properties).map(([key, part]) => [key, JSON.stringify(part)])),
    changed: new Map(Object.entries(properties).map(([key, part]) => [key, JSON.stringify(withoutDefault(part))])),
    required: new Set(Array.isArray(required) ? (required as string[]) : []),
  }
}

/** Whether every value of the one is a value of the other, which is about the same. */
const isBaseOf = (base: Row, row: Row): boolean =>
  base !== row &&
  base.isInput === row.isInput &&
  base.texts.size <= row.texts.size &&
  row.name.includes(base.noun) &&
  [...base.texts].every(([key, text]) => row.texts.get(key) === text || row.changed.get(key) === text) &&
  [...base.required].every((key) => row.required.has(key)) &&
  (base.texts.size < row.texts.size || base.required.size < row.required.size)

const onBase = (base: Row, row: Row, schema: Schema): Schema => {
  const isOwn = (key: string) =>
    base.texts.get(key) !== row.texts.get(key) || (row.required.has(key) && !base.required.has(key))
  const properties = Object.entries(schema['properties'] as Properties)
    .filter(([key]) => isOwn(key))
    .map(([key, part]) => [key, base.texts.has(key) ? wordless(part) : part])
  const required = [...row.required].filter((key) => !base.required.has(key))
  const own = {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required } : {}),
  }
  return { allOf: [{ $ref: `#/components/schemas/${base.name}` }, own] }
}

/**
 * Schemas by name, of which those that say more than another one refer to it and name the rest: StreakDetail is Streak and its users,
 * CreateStreakInput is UpdateStreakInput of which something is required.
 */
export const onBases = (schemas: Readonly<Record<string, Schema>>): Record<string, Schema> => {
  const rows = Object.entries(schemas).flatMap(([name, schema]) => rowOf(name, schema) ?? [])
  const byName = new Map(rows.map((row) => [row.name, row]))
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const row = byName.get(name)
      if (!row) return [name, schema]
      const shortest = rows
        .filter((base) => isBaseOf(base, row))
        .map((base) => onBase(base, row, schema))
        .map((made) => ({ made, length: JSON.stringify(made).length }))
        .sort((a, b) => a.length - b.length)[0]
      return [name, shortest && shortest.length + leastSaving <= JSON.stringify(schema).length ? shortest.made : schema]
    }),
  )
}
