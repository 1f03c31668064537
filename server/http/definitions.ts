import { z } from 'zod'
import { definitionOf, fieldsOf, fixedFieldsOf } from '#server/http/interface.ts'
import { type Declaration, type Declared, type OfDefinition, route } from '#server/http/route.ts'
import { Deleted, data, Moment, Page, page, Time, Uuid } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

type Shape = Readonly<Record<string, z.ZodType>>
type Verb = OfDefinition['verb']
type Summary = string | Pick<Declaration, 'summary' | 'description'>

export type Definition = {
  /** The path below the group's, if it is not that: `/rules` in the group of `/xp`. */
  readonly path?: `/${string}`
  /** Fields that can be set on creation and changed later, if they are not those of the table's columns (`fieldsOf`). */
  readonly fields?: Shape
  /** Fields that are set on creation only, such as the key, if they are not the columns that may not be changed. */
  readonly fixed?: Shape
  /** The body of a creation, unless it consists of `fixed` and `fields`. */
  readonly creation?: z.ZodType
  /** Required fields of a creation, if they are not the columns that may not be null and have no default; all others are optional. */
  readonly required?: readonly string[]
  /** The row in responses, unless it consists of id, `fixed`, `fields`, created_at and updated_at. */
  readonly row?: z.ZodType
  /** The path parameter that identifies a definition; by default `{ idOrKey: z.string() }`. */
  readonly id?: Shape
  /** Filters of the list, passed to internal.<kind>_listed as `filter`. */
  readonly filters?: Shape
  /** The fields with their words, in the sections and the order of a form. */
  readonly form?: Form
  /** Examples of valid bodies. */
  readonly example?: { readonly create: Record<string, unknown>; readonly update: Record<string, unknown> }
  /** Summaries, or summaries with descriptions, of the generated routes, if not the usual ones of all five; no route is generated for a verb without one. */
  readonly summaries?: Partial<Readonly<Record<Verb, Summary>>>
  /** Additional refusals of a route; for a creation they replace the usual 409 CONFLICT and LIMIT_REACHED if they name that status. */
  readonly refusals?: Partial<Readonly<Record<Verb, NonNullable<Declaration['refusals']>>>>
  /** Codes of a 500, if they are not the usual ones. */
  readonly failures?: Partial<Readonly<Record<Verb, string>>>
  /** Properties that all routes share. */
  readonly shared?: Partial<Pick<Declaration, 'codes' | 'invalid' | 'invalidBody' | 'invalidQuery'>>
}

/**
 * The routes of a group by which administrators create, list, get, change and delete the definitions of a kind: see docs/definitions.md. For an
 * omitted verb the area declares its own route.
 */
export const definitions = (kind: string, of: Definition): Declared[] => {
  const many = of.path ?? '/'
  const id = of.id ?? { idOrKey: z.string() }
  const one = `${of.path ?? ''}/:${Object.keys(id)[0]}` as const
  const fields = () => of.fields ?? fieldsOf(kind)
  const fixed = () => of.fixed ?? fixedFieldsOf(kind)
  const row = () => of.row ?? rowOf({ ...fixed(), ...fields() })
  const summaries: NonNullable<Definition['summaries']> = of.summaries ?? usualSummaries(kind)
  const made = (
    verb: Verb,
    signature: `${'GET' | 'POST' | 'PATCH' | 'DELETE'} /${string}`,
    more: () => More,
  ): Declared[] => {
    const said = summaries[verb]
    if (!said) return []
    const { refusals, ...others } = more()
    const { summary, ...described } = typeof said === 'string' ? { summary: said } : said
    return [
      route(signature, summary, {
        ...of.shared,
        ...described,
        definition: { kind, verb },
        call: `definition_${verb}`,
        ...others,
        refusals: { ...refusals, ...of.refusals?.[verb] },
        ...(of.failures?.[verb] ? { failure: of.failures[verb] } : {}),
      }),
    ]
  }
  const form = of.form ? { form: of.form } : {}
  const found = { params: id, args: foundBy(kind, id) }
  return [
    ...made('create', `POST ${many}`, () => ({
      body: of.creation ?? creationOf({ ...fixed(), ...fields() }, of.required ?? definitionOf(kind).required),
      patch: true,
      ...form,
      ...(of.example ? { example: of.example.create } : {}),
      args: () => ({ kind }),
      replies: { 201: data(row()) },
      refusals: { 409: ['CONFLICT', 'LIMIT_REACHED'] },
    })),
    ...made('list', `GET ${many}`, () => ({
      query: { ...Page, ...of.filters },
      args: filteredBy(kind, Object.keys(of.filters ?? {})),
      replies: { 200: page(row()) },
    })),
    ...made('get', `GET ${one}`, () => ({ ...found, replies: { 200: data(row()) } })),
    ...made('update', `PATCH ${one}`, () => ({
      ...found,
      body: z.object(fields()).partial(),
      patch: true,
      ...form,
      ...(of.example ? { example: of.example.update } : {}),
      replies: { 200: data(row()) },
    })),
    ...made('delete', `DELETE ${one}`, () => ({ ...found, replies: { 200: Deleted } })),
  ]
}

const usualSummaries = (kind: string): Readonly<Record<Verb, string>> => {
  const { singular, plural, most } = definitionOf(kind)
  const one = `${/^[aeiou]/.test(singular) ? 'an' : 'a'} ${singular}`
  return {
    create: `Define ${one}; at most ${most}`,
    list: `${plural[0]?.toUpperCase()}${plural.slice(1)}, newest first`,
    get: `${one[0]?.toUpperCase()}${one.slice(1)}`,
    update: `Change ${one}`,
    delete: `Delete ${one}`,
  }
}

type More = Pick<
  Declaration,
  'params' | 'query' | 'body' | 'patch' | 'form' | 'example' | 'args' | 'replies' | 'refusals'
>

/** Required fields come first, as in the document. */
const creationOf = (shape: Shape, required: readonly string[]) => {
  const optional = Object.keys(shape).filter((name) => !required.includes(name))
  const ordered = [...required, ...optional].map((name) => [name, shape[name] ?? z.never()] as const)
  return z
    .object(Object.fromEntries(ordered))
    .partial(Object.fromEntries(optional.map((name) => [name, true as const])))
}

/** The row of most entities; times are in Postgres' own format. */
const rowOf = (shape: Shape) =>
  z.strictObject({
    id: Uuid,
    ...Object.fromEntries(Object.entries(shape).map(([name, schema]) => [name, answered(schema)])),
    created_at: Time,
    updated_at: Time,
  })

const answered = (schema: z.ZodType): z.ZodType => {
  if (schema === Moment) return Time
  return schema instanceof z.ZodNullable && schema.unwrap() === Moment ? Time.nullable() : schema
}

/** The functions of definitions take the parameter as id_or_key, whatever its name in the path. */
const foundBy =
  (kind: string, id: Shape): NonNullable<Declaration['args']> =>
  ({ params }) => {
    const [name = ''] = Object.keys(id)
    const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    return { kind, [snake]: undefined, id_or_key: params[name] }
  }

const filteredBy =
  (kind: string, names: readonly string[]): NonNullable<Declaration['args']> =>
  ({ query }) => ({
    kind,
    ...(names.length > 0 ? { filter: Object.fromEntries(names.map((name) => [name, query[name]])) } : {}),
    ...Object.fromEntries(names.map((name) => [name, undefined])),
  })
