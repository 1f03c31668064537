import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Place } from '#server/database/database.ts'
import { JsonObject, Time, Uuid } from '#server/http/schemas.ts'

type Refusals = Readonly<Record<number, readonly string[]>>
type Shape = string | null | { readonly [key: string]: Shape }
type Kind = Place['kind']
type Interface = Readonly<
  Record<
    Kind,
    { readonly refusals: Readonly<Record<string, Refusals>>; readonly answers: Readonly<Record<string, Shape>> }
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
        if (known === null) throw new Error(`internal.${name}: the catalog does not know the type of ${key}`)
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
  if (typeof shape !== 'object' || shape === null) throw new Error(`internal.${name} builds no answer from rows`)
  const unknown = Object.keys(rest).find((key) => !(key in shape))
  if (unknown !== undefined) throw new Error(`internal.${name} has no ${unknown}`)
  return objectOf(name, shape, rest)
}
