/** What the console reads of JSON Schema, as the document of the server uses it. */
export type Schema = {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly format?: string
  readonly pattern?: string
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly items?: Schema
}
export type Named = Readonly<Record<string, Schema>>

/** A schema with its references and `allOf` resolved one level deep; what stands later in an `allOf` wins. */
export const resolved = (schema: Schema, named: Named): Schema => {
  const { $ref, allOf, ...own } = schema
  const parts = [...($ref ? [named[$ref.split('/').at(-1) ?? ''] ?? {}] : []), ...(allOf ?? [])]
  const all = [...parts.map((part) => resolved(part, named)), own]
  const properties = Object.assign({}, ...all.map((part) => part.properties))
  const required = [...new Set(all.flatMap((part) => part.required ?? []))]
  return Object.assign({}, ...all, {
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
    ...(required.length > 0 ? { required } : {}),
  })
}

export type Kind = 'text' | 'longtext' | 'integer' | 'number' | 'boolean' | 'choice' | 'json'
export type Field = {
  readonly name: string
  readonly kind: Kind
  readonly isRequired: boolean
  readonly isNullable: boolean
  readonly schema: Schema
}

const kindOf = (schema: Schema, types: readonly string[]): Kind => {
  if (schema.enum?.every((value) => typeof value === 'string' || value === null)) return 'choice'
  if (types.length !== 1) return 'json'
  const [type] = types
  if (type === 'string') return (schema.maxLength ?? 0) > 500 ? 'longtext' : 'text'
  if (type === 'integer' || type === 'number' || type === 'boolean') return type
  return 'json'
}

/** The fields of a form for this schema of an object, the required ones first. */
export const fieldsOf = (schema: Schema, named: Named): readonly Field[] => {
  const { properties = {}, required = [] } = resolved(schema, named)
  const fields = Object.entries(properties).map(([name, property]): Field => {
    const outer = resolved(property, named)
    const choices = (outer.anyOf ?? []).map((choice) => resolved(choice, named))
    const some = choices.filter((choice) => choice.type !== 'null')
    const inner: Schema = some.length === 1 && some[0] ? { ...outer, ...some[0] } : outer
    const types = ([inner.type ?? []].flat() as string[]).filter((type) => type !== 'null')
    const isNullable = [outer.type].flat().includes('null') || choices.some((choice) => choice.type === 'null')
    return { name, kind: kindOf(inner, types), isRequired: required.includes(name), isNullable, schema: inner }
  })
  return [...fields.filter((field) => field.isRequired), ...fields.filter((field) => !field.isRequired)]
}

/** How a value stands in its control. */
export const textOf = (kind: Kind, value: unknown): string => {
  if (value === undefined || value === null) return ''
  return kind === 'json' ? JSON.stringify(value, null, 2) : String(value)
}

/** What a control's text means; throws SyntaxError where it is no JSON. */
export const valueIn = (kind: Kind, text: string): unknown => {
  if (kind === 'json') return JSON.parse(text)
  if (kind === 'boolean') return text === 'true'
  return kind === 'integer' || kind === 'number' ? Number(text) : text
}

export type Read = { readonly body: Record<string, unknown>; readonly wrong: readonly string[] }

/** The body that a form sends: what differs from the row as it was. An emptied control is null where null is allowed, else absent. */
export const bodyOf = (
  fields: readonly Field[],
  texts: Readonly<Record<string, string>>,
  before: Readonly<Record<string, unknown>>,
): Read => {
  const body: Record<string, unknown> = {}
  const wrong: string[] = []
  for (const { name, kind, isNullable } of fields) {
    const text = texts[name] ?? ''
    if (text === textOf(kind, before[name])) continue
    if (text.trim() === '') {
      if (isNullable) body[name] = null
      continue
    }
    try {
      body[name] = valueIn(kind, text)
    } catch {
      wrong.push(name)
    }
  }
  return { body, wrong }
}

/** The field that a refusal is about, or none: the field of a nested value is its outermost one. */
export const fieldOfRefusal = (
  details: Readonly<Record<string, unknown>> | undefined,
  fields: readonly Field[],
): string | undefined => {
  const path = typeof details?.['field'] === 'string' ? details['field'] : ''
  const [outer = ''] = path.split(/[.[]/)
  return fields.find(({ name }) => name === path || name === outer)?.name
}
