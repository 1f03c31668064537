import {
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isObjectType,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from 'postgraphile/graphql'

/** A page without `first`, and the largest one. */
export const usualPage = 50
export const largestPage = 200

/** What one request may ask for. */
export const limits = {
  /** Words and signs of the document. */
  tokens: 4000,
  /** Levels of fields, `nodes` and `edges` among them. */
  depth: 14,
  /** Fields, each use of a fragment counted. */
  fields: 1000,
  /** Lists: each is a statement of its own at most. */
  lists: 50,
  /** Rows, if every list is full. */
  rows: 20_000,
  offset: 100_000,
  /** Keys of one `orderBy`. */
  orders: 8,
} as const

export const refused = (message: string, code = 'QUERY_TOO_LARGE') =>
  new GraphQLError(message, { extensions: { code } })

type Variables = Readonly<Record<string, unknown>>

/** Names of introspection: their answers are made in memory, and aliases would multiply them. */
const isIntrospection = (name: string) => name === '__schema' || name === '__type'

/** The operation that runs, and an error where the document does not say which. */
export const operationOf = (document: DocumentNode, name: string | null | undefined): OperationDefinitionNode => {
  const operations = document.definitions.filter((one) => one.kind === 'OperationDefinition')
  const found = name ? operations.find((one) => one.name?.value === name) : operations[0]
  if (!found || (!name && operations.length > 1))
    throw refused('operationName must name an operation.', 'INVALID_QUERY')
  if (found.operation !== 'query') throw refused('Only queries are answered.', 'INVALID_QUERY')
  return found
}

/** Throws when a valid document asks for too much. The rows are those of full lists: what a hostile query can make the database read. */
export const checkCost = (
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
): void => {
  const fragments = new Map<string, FragmentDefinitionNode>()
  for (const one of document.definitions) if (one.kind === 'FragmentDefinition') fragments.set(one.name.value, one)
  const defaults = new Map(operation.variableDefinitions?.map((one) => [one.variable.name.value, one.defaultValue]))
  let fields = 0
  let lists = 0
  let rows = 0

  const constantOf = (node: ValueNode | undefined): unknown => {
    if (!node) return undefined
    if (node.kind === 'Variable') {
      const name = node.name.value
      return name in variables ? variables[name] : constantOf(defaults.get(name))
    }
    if (node.kind === 'ListValue') return node.values
    return node.kind === 'IntValue' ? Number(node.value) : node.kind === 'NullValue' ? null : undefined
  }
  const argument = (node: FieldNode, name: string) =>
    constantOf(node.arguments?.find((one: ArgumentNode) => one.name.value === name)?.value)
  const count = (value: unknown, name: string, most: number, usual: number): number => {
    if (value === undefined) return usual
    if (typeof value !== 'number' || value < 0 || value > most) throw refused(`${name} must be 0 to ${most}.`)
    return value
  }

  /** The rows that a field is asked for, once for each of `times` rows above it. */
  const rowsOf = (node: FieldNode, parent: GraphQLObjectType, times: number): number => {
    const isList = parent.getFields()[node.name.value]?.args.some(({ name }) => name === 'first')
    if (!isList) return times
    lists += 1
    if (lists > limits.lists) throw refused(`A query has at most ${limits.lists} lists.`)
    const first = count(argument(node, 'first'), 'first', largestPage, usualPage)
    count(argument(node, 'offset'), 'offset', limits.offset, 0)
    const orders = argument(node, 'orderBy')
    if (Array.isArray(orders) && orders.length > limits.orders)
      throw refused(`orderBy has at most ${limits.orders} keys.`)
    const asked = times * first
    rows += asked
    if (rows > limits.rows)
      throw refused(`The query asks for more than ${limits.rows} rows: ask for fewer with first, or for less at once.`)
    return asked
  }

  const walk = (
    set: SelectionSetNode,
    parent: GraphQLObjectType | null,
    times: number,
    depth: number,
    isMeta: boolean,
  ): void => {
    if (depth > limits.depth) throw refused(`A query has at most ${limits.depth} levels of fields.`)
    for (const node of set.selections) {
      fields += 1
      if (fields > limits.fields) throw refused(`A query has at most ${limits.fields} fields.`)
      if (node.kind === 'FragmentSpread') {
        const fragment = fragments.get(node.name.value)
        if (fragment) walk(fragment.selectionSet, parent, times, depth, isMeta)
        continue
      }
      if (node.kind === 'InlineFragment') {
        walk(node.selectionSet, parent, times, depth, isMeta)
        continue
      }
      const within = isMeta || isIntrospection(node.name.value)
      if (within && node.alias && node.alias.value !== node.name.value)
        throw refused('Fields of the introspection have no aliases.')
      if (!node.selectionSet) continue
      const field = parent?.getFields()[node.name.value]
      const type = field ? getNamedType(field.type) : null
      const asked = within || !parent ? times : rowsOf(node, parent, times)
      walk(node.selectionSet, within || !isObjectType(type) ? null : type, asked, depth + 1, within)
    }
  }
  walk(operation.selectionSet, schema.getQueryType() ?? null, 1, 1, false)
}
