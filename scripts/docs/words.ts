import { fullPath } from '#server/http/openapi.ts'
import type { Area, Route } from '#server/http/route.ts'

type Schema = { readonly [keyword: string]: unknown }
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A schema with its reference and `allOf` resolved; what stands beside a reference wins. */
const resolved = (document: Document, schema: Schema): Schema => {
  const { $ref, allOf, ...own } = schema
  const referred = typeof $ref === 'string' ? document.components.schemas[$ref.split('/').at(-1) ?? ''] : undefined
  const parts = [...(referred ? [referred] : []), ...((allOf ?? []) as Schema[])].map((part) =>
    resolved(document, part),
  )
  const properties: Record<string, Schema> = {}
  for (const part of [...parts, own])
    for (const [name, property] of Object.entries((part['properties'] ?? {}) as Record<string, Schema>))
      properties[name] = { ...properties[name], ...property }
  const required = [...parts, own].flatMap((part) => (part['required'] ?? []) as string[])
  return Object.assign({}, ...parts, own, Object.keys(properties).length > 0 ? { properties, required } : {})
}

const alternativesOf = (schema: Schema): Schema[] => [schema['anyOf'] ?? schema['oneOf'] ?? []].flat() as Schema[]

const typesOf = (document: Document, schema: Schema): string[] =>
  [
    ...[schema['type'] ?? []].flat(),
    ...alternativesOf(schema).flatMap((one) => typesOf(document, resolved(document, one))),
  ].map(String)

const countable = ['number', 'integer', 'boolean']

/** What a person could not know of a field: its name, its unit or effect, and what counts where it is left out. */
const problemsOf = (
  document: Document,
  name: string,
  property: Schema,
  { isDefinition, isTop, isCreated, isRequired }: Readonly<Record<string, boolean>>,
): string[] => {
  const whole = resolved(document, property)
  const types = typesOf(document, whole).filter((type) => type !== 'null')
  const isCounted = types.length > 0 && types.every((type) => countable.includes(type))
  const isChoice = 'enum' in whole || (types.length === 1 && types[0] === 'boolean')
  // a reference to a schema with a title of its own says which grammar it is, not what it is for
  if (!property['title']) return [`${name} has no title`]
  const needsHelp = (isDefinition && isTop) || isCounted || isChoice || types.includes('object')
  return [
    ...(needsHelp && !property['description'] ? [`${name} has a title and no description`] : []),
    ...(isCreated && !isRequired && (isCounted || isChoice) && !('default' in whole) && !('x-unset' in whole)
      ? [`${name} is optional, and has neither a default nor x-unset, which says what follows without it`]
      : []),
    ...(isDefinition && isTop && !isSchema(property['x-form']) && isCreated
      ? [`${name} is in no section of the form`]
      : []),
  ]
}

const bodyProblems = (document: Document, route: Route, body: Schema): string[] => {
  const isDefinition = route.definition !== undefined || route.form !== undefined
  const isCreated = route.method !== 'PATCH'
  const visit = (schema: Schema, path: readonly string[], above: readonly string[]): string[] => {
    const name = typeof schema['$ref'] === 'string' ? schema['$ref'] : ''
    if (name && above.includes(name)) return []
    const within = name ? [...above, name] : above
    const whole = resolved(document, schema)
    const required = (whole['required'] ?? []) as string[]
    const properties = Object.entries((whole['properties'] ?? {}) as Record<string, Schema>)
    return [
      ...properties.flatMap(([key, property]) => [
        ...problemsOf(document, [...path, key].join('.'), property, {
          isDefinition,
          isTop: path.length === 0,
          // what is left out of a nested object is said by its help
          isCreated: isCreated && path.length === 0,
          isRequired: required.includes(key),
        }),
        ...visit(property, [...path, key], within),
      ]),
      ...[whole['items'], whole['additionalProperties'], ...alternativesOf(whole)]
        .filter(isSchema)
        .flatMap((part) => visit(part, path, within)),
    ]
  }
  return [...new Set(visit(body, [], []))]
}

/** What is missing so that a person who has never read the API understands the forms made of its bodies. */
export const wordProblems = (areas: readonly Area[], document: object): string[] =>
  areas.flatMap((area) =>
    area.routes.flatMap((route) => {
      const path = fullPath(area, route)
      const item = (document as Document).paths[path.replace(/:([A-Za-z]+)/g, '{$1}')]
      const operation = item?.[route.method.toLowerCase()] as
        | { requestBody?: { content: Record<string, { schema: Schema }> } }
        | undefined
      const schema = operation?.requestBody?.content['application/json']?.schema
      if (!schema) return []
      return bodyProblems(document as Document, route, schema).map(
        (problem) => `${area.stem}: ${route.method} ${path}: ${problem}`,
      )
    }),
  )
