/** What the console reads of JSON Schema, as the OpenAPI document of the server uses it. */
export type Schema = {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly format?: string
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  /** What follows where the property is left out, in words. */
  readonly 'x-unset'?: string
  readonly 'x-form'?: { readonly section?: string; readonly order?: number; readonly from?: string }
  /** Added by `resolved`: the name of the schema that was referred to. */
  readonly named?: string
  /** Added by `resolved`: null is allowed. */
  readonly isNullable?: boolean
}

export type Operation = {
  readonly requestBody?: {
    readonly required?: boolean
    readonly content: Readonly<Record<string, { readonly schema: Schema }>>
  }
}
/** The OpenAPI document, or the part of it that a form needs. */
export type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** A schema with its references, `allOf`, and the alternative null resolved, one level deep. */
export const resolved = (schema: Schema, document: Document): Schema => {
  const { $ref, allOf, ...own } = schema
  const name = $ref?.split('/').at(-1)
  const parts = [...(name ? [document.components.schemas[name] ?? {}] : []), ...(allOf ?? [])]
  const all = [...parts.map((part) => resolved(part, document)), own]
  // a part that says more about a property does not take its words away
  const properties: Record<string, Schema> = {}
  for (const part of all)
    for (const [property, of] of Object.entries(part.properties ?? {}))
      properties[property] = { ...properties[property], ...of }
  const required = [...new Set(all.flatMap((part) => part.required ?? []))]
  const whole: Schema = {
    ...Object.assign({}, ...all),
    ...(name ? { named: name } : {}),
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
    ...(required.length > 0 ? { required } : {}),
  }
  const alternatives = whole.anyOf ?? whole.oneOf
  if (alternatives) {
    const some = alternatives.filter(({ type }) => type !== 'null')
    const isNullable = some.length < alternatives.length || whole.isNullable === true
    const { anyOf: _, oneOf: __, ...outer } = whole
    const [only] = some
    if (some.length === 1 && only) {
      const inner = resolved(only, document)
      return { ...inner, ...outer, ...(inner.properties ? { properties: inner.properties } : {}), isNullable }
    }
    return { ...outer, oneOf: some.map((one) => resolved(one, document)), isNullable }
  }
  const types = [whole.type ?? []].flat() as string[]
  if (!types.includes('null')) return whole
  const rest = types.filter((type) => type !== 'null')
  return { ...whole, type: rest.length === 1 ? (rest[0] as string) : rest, isNullable: true }
}

/** The schema of the JSON body of `POST /v1/...`. */
export const bodySchema = (operation: string, document: Document): Schema | undefined => {
  const [method = '', path = ''] = operation.split(' ')
  const schema = document.paths[path]?.[method.toLowerCase()]?.requestBody?.content['application/json']?.schema
  return schema && resolved(schema, document)
}

/** The type that a form shows for a schema: `object` and `array` also where only their parts are said. */
export const typeOf = ({ type, properties, items, oneOf }: Schema): string | undefined => {
  // a number, or a text where it has more digits than JavaScript keeps
  const types = oneOf ? oneOf.map((one) => one.type) : [type].flat()
  if (types.length === 2 && types.includes('string') && (types.includes('number') || types.includes('integer')))
    return 'number'
  return typeof type === 'string' ? type : properties ? 'object' : items ? 'array' : undefined
}

/** A name of the API in words: `max_per_minute` as `Max per minute`. */
export const wordsOf = (name: string): string => {
  const words = name
    .replace(/[._-]+/g, ' ')
    .replace(/\bid\b/g, 'ID')
    .trim()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isBlank = (value: unknown) => value === undefined || value === null || value === ''
const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

/** The values that a form begins with: those of the row, else the defaults of the schema. */
export const initialOf = (
  schema: Schema,
  document: Document,
  row: Readonly<Record<string, unknown>>,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(schema.properties ?? {}).map(([name, property]) => [
      name,
      row[name] ?? resolved(property, document).default ?? undefined,
    ]),
  )

/** Without what was left empty inside: a control that was never touched sends nothing. */
const pruned = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(pruned)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => (isBlank(inner) ? [] : [[name, pruned(inner)]])),
  )
}

/** What was emptied inside an object and may be null: an object that is merged would keep it if it were only absent. */
const emptied = (schema: Schema, document: Document, value: unknown, before: unknown): Record<string, null> =>
  isObject(value) && isObject(before)
    ? Object.fromEntries(
        Object.entries(resolved(schema, document).properties ?? {}).flatMap(([name, property]) =>
          isBlank(value[name]) && !isBlank(before[name]) && resolved(property, document).isNullable
            ? [[name, null]]
            : [],
        ),
      )
    : {}

/** The body that a form sends: what differs from how it began. An emptied control is null where null is allowed, else absent. */
export const bodyOf = (
  schema: Schema,
  document: Document,
  values: Readonly<Record<string, unknown>>,
  before: Readonly<Record<string, unknown>>,
): Record<string, unknown> => {
  const body: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const value = values[name]
    if (isSame(value, before[name]) || (isBlank(value) && isBlank(before[name]))) continue
    if (isObject(value))
      body[name] = { ...(pruned(value) as object), ...emptied(property, document, value, before[name]) }
    else if (!isBlank(value)) body[name] = pruned(value)
    else if (resolved(property, document).isNullable) body[name] = null
  }
  return body
}

/** The path of a form's value that a refusal names: `rewards[0].rank` as `rewards.0.rank`. */
export const fieldOf = (details: Readonly<Record<string, unknown>> | undefined): string | undefined =>
  typeof details?.['field'] === 'string'
    ? details['field'].replace(/\[(\d+)\]/g, '.$1').replace(/^body\./, '')
    : undefined
