import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Place } from '#server/database/cluster.ts'
import { between, JsonObject, Key, Line, Moment, Text, Time, Uuid } from '#server/http/schemas.ts'

type Refusals = Readonly<Record<number, readonly string[]>>
type Shape = string | null | { readonly [key: string]: Shape }
type Kind = Place['kind']
type Fields = Readonly<Record<string, string | null>>
type Definition = {
  readonly singular: string
  readonly plural: string
  readonly most: number
  readonly fixed: Fields
  readonly fields: Fields
  readonly required: readonly string[]
  /** The constants that a row has where a column is left out. */
  readonly defaults: Readonly<Record<string, unknown>>
}
type Named<T> = Readonly<Record<string, T>>
type Interface = Readonly<
  Record<
    Kind,
    {
      readonly refusals: Named<Refusals>
      readonly defaults: Named<Readonly<Record<string, unknown>>>
      readonly answers: Named<Shape>
      readonly definitions: Named<Definition>
    }
  >
>

let known: Interface | undefined

/** What the databases say of their interface: `npm run docs` writes the file. */
const readInterface = (): Interface => {
  known ??= JSON.parse(readFileSync(new URL('../interface.json', import.meta.url), 'utf8')) as Interface
  return known
}

/** What a function of `api` refuses, by status, after its comment in the database. */
export const refusalsOf = (kind: Kind, name: string): Refusals => readInterface()[kind].refusals[name] ?? {}

/** The constants that a function of `api` takes for parameters that are left out. */
export const parameterDefaults = (kind: Kind, name: string): Readonly<Record<string, unknown>> =>
  readInterface()[kind].defaults[name] ?? {}

/** Refusals of two sources, by status. */
export const mergeRefusals = (one: Refusals, other: Refusals = {}): Refusals => {
  const merged: Record<number, readonly string[]> = { ...one }
  for (const [status, codes] of Object.entries(other))
    merged[Number(status)] = [...new Set([...(merged[Number(status)] ?? []), ...codes])]
  return merged
}

const schemas: Readonly<Record<string, z.ZodType>> = {
  uuid: Uuid,
  text: z.string(),
  integer: z.int(),
  numeric: z.number(),
  boolean: z.boolean(),
  time: Time,
  date: z.string(),
  object: JsonObject,
}

const schemaOf = (shape: string): z.ZodType => {
  const [, some] = /^(.*) \| null$/.exec(shape) ?? []
  if (some !== undefined) return schemaOf(some).nullable()
  if (shape.startsWith("'")) return z.enum(shape.slice(1, -1).split("' | '"))
  const schema = schemas[shape]
  if (!schema) throw new Error(`server/interface.json: there is no schema for ${shape}`)
  return schema
}

type Rest = Readonly<Record<string, z.ZodType>>
type Answer = z.ZodObject<Record<string, z.ZodType>, z.core.$strict>

const objectOf = (name: string, shape: Readonly<Record<string, Shape>>, rest: Rest): Answer =>
  z.strictObject(
    Object.fromEntries(
      Object.entries(shape).map(([key, known]) => {
        const said = rest[key]
        if (said) return [key, said]
        if (known === null)
          throw new Error(
            `internal.${name}: the catalog does not know the type of ${key}. Say it where a route names the builder: answer('${name}', { ${key}: ... })`,
          )
        return [key, typeof known === 'string' ? schemaOf(known) : objectOf(name, known, {})]
      }),
    ),
  )

/**
 * The object that a function of `internal` builds from rows: keys, types, enumerations and what may be null are those of the columns. `rest` says what the
 * catalog cannot know, such as the type of an expression, or knows less exactly.
 */
export const answer = (name: string, rest: Rest = {}, kind: Kind = 'tenant'): Answer => {
  const shape = readInterface()[kind].answers[name]
  if (typeof shape !== 'object' || shape === null)
    throw new Error(
      `server/interface.json has no answer of internal.${name}. A new one comes with npm run docs, if its body is select json_build_object(...) of the columns of a row; else correct the name in answer('${name}')`,
    )
  const unknown = Object.keys(rest).find((key) => !(key in shape))
  if (unknown !== undefined) throw new Error(`internal.${name} has no ${unknown}`)
  return objectOf(name, shape, rest)
}

/** `line 1..200` and the like as the schema of a request. */
const requestOf = (field: string): z.ZodType => {
  const [, some] = /^(.*) \| null$/.exec(field) ?? []
  if (some !== undefined) return requestOf(some).nullable()
  if (field.startsWith("'")) {
    const values = field.slice(1, -1).split("' | '")
    return z.enum(values, `must be ${values.join(', ').replace(/, ([^,]*)$/, ' or $1')}`)
  }
  const [, type, least = '', most = ''] = /^(\w+) (-?\d*)\.\.(-?\d+)$/.exec(field) ?? []
  if (type === 'line') return Line(Number(most), Number(least))
  if (type === 'text') return Text(Number(most), Number(least))
  if (type === 'integer') return between(Number(least), Number(most))
  const schema = { key: Key, time: Moment }[field] ?? schemas[field]
  if (!schema) throw new Error(`server/interface.json: there is no schema for ${field}`)
  return schema
}

const withTypes = (kind: string, columns: Fields, rest: Rest): Rest =>
  Object.fromEntries(
    Object.entries(columns).map(([name, field]) => {
      const said = rest[name]
      if (said) return [name, said]
      if (field === null)
        throw new Error(
          `${kind}: the column ${name} has no check that bounds it as docs/definitions.md lists. Add one, or say it: fieldsOf('${kind}', { ${name}: ... })`,
        )
      return [name, requestOf(field)]
    }),
  )

/** What the registry and the catalog say of an entity that developers define. */
export const definitionOf = (kind: string): Definition => {
  const found = readInterface().tenant.definitions[kind]
  if (!found) throw new Error(`server/interface.json has no definition ${kind}; npm run docs writes it`)
  return found
}

/** The constants that a row of an entity has where columns are left out. */
export const columnDefaults = (kind: string): Readonly<Record<string, unknown>> => definitionOf(kind).defaults

/**
 * The fields of an entity that developers define, as requests send them: types and bounds are those of the columns that may be changed. `rest` says what the
 * catalog cannot know, such as what a list holds, or knows less exactly.
 */
export const fieldsOf = (kind: string, rest: Rest = {}): Rest => {
  const { fields } = definitionOf(kind)
  const unknown = Object.keys(rest).find((name) => !(name in fields))
  if (unknown !== undefined) throw new Error(`${kind} has no ${unknown} that may be changed`)
  return withTypes(kind, fields, rest)
}

/** The fields that are set once, such as the key. */
export const fixedFieldsOf = (kind: string): Rest => withTypes(kind, definitionOf(kind).fixed, {})
