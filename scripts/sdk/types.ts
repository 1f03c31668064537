/** A JSON Schema as TypeScript: the keywords that the document uses, and an error for any other that would change the type. */
export type Schema = {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema | boolean
  readonly prefixItems?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
}

export type Printing = {
  /** An enum may have further values: for what the server answers. */
  readonly open: boolean
  readonly indent: string
  /** In front of the names of schemas. */
  readonly prefix?: string
}

const unsupported = ['not', 'if', 'then', 'else', 'patternProperties', 'dependentSchemas', 'contains']

export const isName = (text: string) => /^[A-Za-z_$][\w$]*$/.test(text)

const keyOf = (name: string) => (isName(name) ? name : JSON.stringify(name))

const unique = (types: readonly string[]) => [...new Set(types)]

const joined = (types: readonly string[], by: '|' | '&'): string => {
  const all = unique(types)
  if (all.length === 1) return all[0] ?? 'never'
  return all.map((type) => (/ [|&] /.test(type) ? `(${type})` : type)).join(` ${by} `)
}

/** What an editor shows at a field: its title, what it does, and what counts where it is left out. */
const commentOf = ({ title, description, default: usual }: Schema): string => {
  const sentences = [
    ...(title ? [`${title}.`] : []),
    ...(description ? [description] : []),
    ...(title && usual !== undefined ? [`Default: \`${JSON.stringify(usual)}\`.`] : []),
  ]
  return sentences.join(' ').replaceAll('*/', '*\\/')
}

const objectOf = (schema: Schema, printing: Printing): string => {
  const inner = { ...printing, indent: `${printing.indent}  ` }
  const required = new Set(schema.required ?? [])
  const fields = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const comment = commentOf(property)
    const told = comment ? `${inner.indent}/** ${comment} */\n` : ''
    return `${told}${inner.indent}${keyOf(name)}${required.has(name) ? '' : '?'}: ${typeOf(property, inner)}\n`
  })
  const others = schema.additionalProperties
  const index = typeof others === 'object' ? `Record<string, ${typeOf(others, printing)}>` : 'Record<string, unknown>'
  if (fields.length === 0) return others === false ? 'Record<string, never>' : index
  const known = `{\n${fields.join('')}${printing.indent}}`
  // fields that are not named have any value: a narrower type would contradict the named ones
  return typeof others === 'object' || others === true ? `${known} & Record<string, unknown>` : known
}

const arrayOf = (schema: Schema, printing: Printing): string => {
  const rest = typeof schema.items === 'object' ? typeOf(schema.items, printing) : 'unknown'
  if (!schema.prefixItems) return `Array<${rest}>`
  const first = schema.prefixItems.map((item) => typeOf(item, printing))
  return `[${[...first, ...(schema.items === false ? [] : [`...Array<${rest}>`])].join(', ')}]`
}

const ofKind = (kind: string, schema: Schema, printing: Printing): string => {
  if (kind === 'object') return objectOf(schema, printing)
  if (kind === 'array') return arrayOf(schema, printing)
  if (kind === 'integer') return 'number'
  if (['string', 'number', 'boolean', 'null'].includes(kind)) return kind
  throw new Error(`The type ${kind} has no TypeScript.`)
}

const valuesOf = (values: readonly unknown[], printing: Printing): string => {
  const types = values.map((value) => JSON.stringify(value))
  const isText = values.some((value) => typeof value === 'string')
  return joined(printing.open && isText ? [...types, '(string & {})'] : types, '|')
}

export const typeOf = (schema: Schema, printing: Printing): string => {
  const strange = unsupported.find((keyword) => keyword in schema)
  if (strange) throw new Error(`The keyword ${strange} has no TypeScript.`)
  if (schema.$ref) return `${printing.prefix ?? ''}${schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)}`
  if ('const' in schema) return JSON.stringify(schema.const)
  if (schema.enum) return valuesOf(schema.enum, printing)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices)
    return joined(
      choices.map((choice) => typeOf(choice, printing)),
      '|',
    )
  if (schema.allOf)
    return joined(
      schema.allOf.map((part) => typeOf(part, printing)),
      '&',
    )
  const kinds = [schema.type ?? (schema.properties ? 'object' : [])].flat()
  return kinds.length === 0
    ? 'unknown'
    : joined(
        kinds.map((kind) => ofKind(kind, schema, printing)),
        '|',
      )
}
