import { isSchema, type Schema, withParts } from '#server/http/document/json_schemas.ts'
import { columnDefaults, parameterDefaults } from '#server/http/interface.ts'
import type { Area, Route } from '#server/http/route.ts'
import {
  commonWords,
  type Dictionary,
  type Form,
  type Said,
  type Words,
  wordsKey,
  wordsOf,
} from '#server/http/words.ts'

/** Words with the place of the field in its form. */
type Placed = Words & { readonly section?: string; readonly order?: number }

const own = <T>(of: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(of, name) ? of[name] : undefined

/** The words for a path: those of the longest end of it, and of the first dictionary that has it. */
const found = (
  dictionaries: readonly Readonly<Record<string, Said | true>>[],
  path: readonly string[],
): Said | undefined => {
  for (let start = 0; start < path.length; start += 1) {
    const name = path.slice(start).join('.')
    for (const dictionary of dictionaries) {
      const said = own(dictionary, name)
      if (said !== undefined) return said === true ? own(commonWords, name) : said
    }
  }
  return undefined
}

const fieldsOfForm = (form: Form): Readonly<Record<string, Said | true>> =>
  Object.assign({}, ...Object.values(form).reverse())

const dictionaries = new WeakMap<Area, readonly Dictionary[]>()

/** The same in the body of another route, such as a trial of changed rules: there a field that is left out is what it is already. */
const elsewhere = (said: Said): Said => (typeof said === 'string' ? said : [said[0], said[1]])

/** What an area says: its own words, then those of its forms. */
const ofArea = (area: Area): readonly Dictionary[] => {
  const known = dictionaries.get(area)
  if (known) return known
  const forms = area.routes.flatMap(({ form }) => (form ? [fieldsOfForm(form)] : []))
  const said = forms.map((fields) =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, some]) => (some === true ? [] : [[name, elsewhere(some)] as const])),
    ),
  )
  const made = [...(area.words ? [area.words] : []), ...said]
  dictionaries.set(area, made)
  return made
}

/** The places of the fields of a form, counted from 1. */
const placesOf = (form: Form): ReadonlyMap<string, Pick<Placed, 'section' | 'order'>> =>
  new Map(
    Object.entries(form)
      .flatMap(([section, fields]) => Object.keys(fields).map((name) => ({ section, name })))
      .map(({ section, name }, index) => [name, { section, order: index + 1 }]),
  )

/** What the database takes where a field of the body is left out: the default of a column, or of a parameter. */
const defaultsOf = (route: Route): Readonly<Record<string, unknown>> => {
  const kind = route.defaultsOf ?? (route.definition?.verb === 'create' ? route.definition.kind : undefined)
  const [called] = route.call && !route.patch ? [route.call] : (route.calls ?? [])
  return {
    ...(kind ? columnDefaults(kind) : {}),
    ...(called ? parameterDefaults(route.caller.reaches.kind, called) : {}),
  }
}

const allows = (schema: Schema, value: unknown): boolean => {
  if (value !== null) return true
  const choices = [schema['anyOf'] ?? schema['oneOf'] ?? []].flat() as Schema[]
  return [schema['type']].flat().includes('null') || choices.some((choice) => choice['type'] === 'null')
}

/** Words that an alternative to null brought stand at the whole. */
const hoisted = (schema: Schema): Schema => {
  if (wordsKey in schema || !Array.isArray(schema['anyOf'])) return schema
  const some = (schema['anyOf'] as Schema[]).filter((choice) => choice['type'] !== 'null')
  const words = some.length === 1 ? some[0]?.[wordsKey] : undefined
  return words ? { ...schema, [wordsKey]: words } : schema
}

/** The body of a route with words at every field that has any. */
export const wordedBody = (area: Area, route: Route, body: Schema): Schema => {
  const fields = route.form ? fieldsOfForm(route.form) : {}
  const places = placesOf(route.form ?? {})
  const said = [fields, route.words ?? {}, ...ofArea(area), commonWords]
  const isChange = route.method === 'PATCH'
  const defaults = isChange ? {} : defaultsOf(route)

  const wordsAt = (path: readonly string[], schema: Schema, siblings: Schema): Placed | undefined => {
    const some = found(said, path)
    const words = (schema[wordsKey] as Placed | undefined) ?? (some === undefined ? undefined : wordsOf(some))
    if (!words) return undefined
    const { default: usual, unset, from, ...rest } = words
    const isTop = path.length === 1
    const name = path.at(-1) ?? ''
    // a default that is a value says it better than words
    const hasDefault = schema['default'] !== undefined && schema['default'] !== null
    const isLeftOut = !isChange || !isTop
    const isOptional = !(Array.isArray(siblings['required']) && siblings['required'].includes(name))
    const stored = isTop ? own(defaults, name) : undefined
    const value = usual ?? ('default' in schema ? undefined : stored)
    return {
      ...rest,
      ...(from && isSchema(siblings['properties']) && from in siblings['properties'] ? { from } : {}),
      ...(isTop ? places.get(name) : {}),
      ...(isLeftOut && isOptional && value !== undefined && allows(schema, value) && !(value === null && unset)
        ? { default: value }
        : {}),
      ...(isLeftOut && isOptional && unset !== undefined && !hasDefault ? { unset } : {}),
    }
  }

  const worded = (schema: Schema, path: readonly string[]): Schema =>
    withParts(schema, (part, name) => {
      if (name === '' || name === 'item' || !isSchema(schema['properties']) || schema['properties'][name] !== part)
        return worded(part, path)
      const whole = hoisted(part)
      const at = [...path, name]
      const words = wordsAt(at, whole, schema)
      return { ...worded(whole, at), ...(words ? { [wordsKey]: words } : {}) }
    })
  return worded(body, [])
}

/** A schema as the document has it: its words as title, description, default and the place in a form. */
export const spoken = (schema: Schema): Schema => {
  const { [wordsKey]: words, ...rest } = schema
  if (!words) return rest
  const { title, help, default: value, unset, ...place } = words as Placed
  return {
    ...rest,
    title,
    ...(help ? { description: help } : {}),
    ...(value === undefined ? {} : { default: value }),
    ...(unset === undefined ? {} : { 'x-unset': unset }),
    ...(Object.keys(place).length > 0 ? { 'x-form': place } : {}),
  }
}

const withoutWords = (key: string, value: unknown) => (key === wordsKey ? undefined : value)

/** The JSON text of a schema without any words: schemas that differ in words only have one name. */
export const bareText = (schema: object): string => JSON.stringify(schema, withoutWords)

const withoutPlaces = (key: string, value: unknown) => {
  if (key !== wordsKey) return value
  const { section: _, order: __, from: ___, ...words } = value as Placed
  return words
}

/** The JSON text of a schema with words, wherever it stands in a form. */
export const unplacedText = (schema: object): string => JSON.stringify(schema, withoutPlaces)

/** A schema without the words of its place: those within it stay. */
export const placeless = (schema: Schema): Schema => {
  if (!(wordsKey in schema)) return schema
  const { [wordsKey]: _, ...rest } = schema
  return rest
}
