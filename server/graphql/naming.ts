import pluralize from 'pluralize'

/**
 * The names of tables and columns in GraphQL. The generator makes many names of one: a type, its connection, edge, condition and order, a field for the list
 * and one for a row, each in camel case, singular or plural. Two tables whose names differ may so get the same name. Here all names that a table would get are
 * made by the generator's rules and compared, in a fixed order, before the generator runs: the later table gets another name. Column names likewise.
 */

/** What decides names; internal.graphql_tables() returns the tables in the order in which they take their names. */
export type NamedTable = {
  readonly name: string
  /** A table of `app`. Its names come first, and are never changed. */
  readonly ours: boolean
  /** The columns by which GraphQL finds a row, besides the id. */
  readonly keys: readonly string[]
  /** Of a collection: the name that the definition tells, null before it has one. */
  readonly graphql_name: string | null
  /** Whether a name of it is not kept yet. */
  readonly is_unnamed?: boolean
  readonly columns: readonly { readonly name: string; readonly graphql_name: string | null }[]
}

export type TableNames = {
  /** What the generator takes for the table's name. */
  readonly base: string
  /** The field of the list: what the definition tells. */
  readonly list: string
  readonly type: string
  readonly columns: ReadonlyMap<string, ColumnNames>
}
/** `base` is what the generator takes for the column's name, `field` what the definition tells. */
export type ColumnNames = { readonly base: string; readonly field: string }

// the generator's own rules; test/graphql/names.test.ts compares them with it
const words =
  /\d*(?:1st|2nd|3rd|(?![123])\dth)(?=\b|[A-Z_])|[A-Z]?[a-z]+|[A-Z]+(?=[A-Z][a-z]|[^A-Za-z0-9]|$)|[A-Z]+|\d+/g
const upperFirst = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
const insideUnderscores = (change: (text: string) => string, text: string): string => {
  const [, start = '', middle = '', end = ''] = /^(_*)([\s\S]*?)(_*)$/.exec(text) ?? []
  return `${start}${change(middle)}${end}`
}
const joined = (text: string) =>
  (text.match(words) ?? []).map((word, n) => (n === 0 ? word.toLowerCase() : upperFirst(word.toLowerCase()))).join('')
const lowerPlural = (text: string) => text.replace(/[0-9]S(?=[A-Z]|$)/g, (found) => found.toLowerCase())
export const camelCase = (text: string) => lowerPlural(insideUnderscores(joined, text))
export const upperCamelCase = (text: string) =>
  lowerPlural(insideUnderscores((middle) => upperFirst(joined(middle)), text))
export const constantCase = (text: string) =>
  insideUnderscores(
    (middle) =>
      middle
        .replace(/[^a-zA-Z0-9_]+/g, '_')
        .replace(/[A-Z]+/g, '_$&')
        .replace(/__+/g, '_')
        .replace(/^[^a-zA-Z0-9]+/, '')
        .replace(/^[0-9]/, '_$&')
        .toUpperCase(),
    text,
  )
/** Only the last word has a number. */
const onLastWord = (change: (word: string) => string, text: string): string => {
  const found = /([A-Z]|_[a-z0-9])[a-z0-9]*_*$/.exec(text)
  const from = found ? found.index + (found[1] as string).length - 1 : 0
  const to = text.length - (/_*$/.exec(text)?.[0].length ?? 0)
  return `${text.slice(0, from)}${change(text.slice(from, to))}${text.slice(to)}`
}
export const singularize = (text: string) => onLastWord(pluralize.singular, text)
const plural = (text: string) => onLastWord((word) => pluralize(word), text)
export const distinctPluralize = (text: string): string => {
  const single = singularize(text)
  const many = plural(single)
  if (single !== many) return many
  if (/(ch|s|sh|x|z)$/.test(many)) return `${many}es`
  return many.endsWith('y') ? `${many.slice(0, -1)}ies` : `${many}s`
}
const record = (text: string) => text.replace(/.(?:(?:[_-]i|I)nput|(?:[_-]p|P)atch)$/, '$&_record')
const rowOf = (base: string) => record(singularize(camelCase(base)))
const listOf = (base: string) => camelCase(distinctPluralize(record(singularize(base))))

/** Types that are there without any table, or that a client takes for the roots of a schema. */
const scalars =
  'Cursor BigInt BigFloat Datetime Date UUID JSON XML Time BitString JSONPath InternetAddress TSVector TSQuery Oid RegProc RegProcedure RegOper RegOperator RegClass RegType RegRole RegNamespace RegConfig RegDictionary Base64EncodedBinary CidrAddress MacAddress MacAddress8 KeyValueHash Interval Point Line LineSegment Box Path Polygon Circle LTree Int Float String Boolean ID Void'
const fixedTypes = [
  'Query',
  'PageInfo',
  'Node',
  ...scalars.split(' ').flatMap((name) => [name, `${name}Connection`, `${name}Edge`, `${name}Input`]),
]
const fixedFields = ['query', 'node', 'nodeId']
/** What the generator makes of the name of a type: some by appending a word, some by camel case, which takes `AB` for one word. */
const typesOf = (type: string): string[] => [
  ...['', 'Connection', 'Edge', 'Input'].map((suffix) => type + suffix),
  ...['condition', 'order-by', 'patch', 'base-input'].map((suffix) => upperCamelCase(`${type}-${suffix}`)),
]

const candidatesOf = function* (kind: 'collection' | 'column', name: string, startsAt = 0) {
  if (startsAt === 0) yield name
  for (let n = 1; ; n += 1) yield n === 1 ? `${kind}_${name}` : `${kind}_${n}_${name}`
}

type Made = {
  readonly base: string
  readonly list: string
  readonly type: string
  readonly types: string[]
  readonly fields: string[]
}

const namesOf = (base: string, keys: readonly string[]): Made => {
  const row = rowOf(base)
  const type = upperCamelCase(row)
  const list = listOf(base)
  return {
    base,
    list,
    type,
    types: typesOf(type),
    fields: [list, camelCase(row), ...keys.map((key) => camelCase(`${type}-by-${key}`))],
  }
}

/** Values of every order that are no column's. */
const fixedOrders = ['PRIMARY_KEY', 'NATURAL']
/** Columns of every collection. */
const managed = new Set(['id', 'user_id', 'group_id', 'created_at', 'updated_at', 'deleted_at'])
const columnNames = (table: NamedTable): ReadonlyMap<string, ColumnNames> => {
  const taken = new Set<string>(fixedOrders)
  const names = new Map<string, ColumnNames>()
  const take = (name: string, given: string | null) => {
    let tries = 0
    for (const base of candidatesOf('column', name)) {
      const made = { base, field: camelCase(base) }
      const all = [made.field, constantCase(base)]
      tries += 1
      // a name that was given before stays, as long as it is free
      const isOther = given !== null && made.field !== given && tries < 100
      if (isOther || all.some((one) => taken.has(one))) continue
      for (const one of all) taken.add(one)
      names.set(name, made)
      return
    }
  }
  const isManaged = ({ name }: { name: string }) => managed.has(name)
  for (const { name } of table.columns.filter(isManaged)) take(name, null)
  const others = table.columns.filter((column) => !isManaged(column))
  for (const { name, graphql_name } of others) if (graphql_name) take(name, graphql_name)
  for (const { name, graphql_name } of others) if (!graphql_name) take(name, null)
  return names
}

/** The names of all tables: ours, then those of collections that have been told, then the others; each in the order of `tables`. */
export const planNames = (tables: readonly NamedTable[]): ReadonlyMap<string, TableNames> => {
  const types = new Set(fixedTypes)
  const fields = new Set(fixedFields)
  const ours = new Set<string>()
  const isFree = (made: Made) =>
    !made.types.some((one) => types.has(one)) && !made.fields.some((one) => fields.has(one))
  const take = (made: Made) => {
    for (const one of made.types) types.add(one)
    for (const one of made.fields) fields.add(one)
  }
  for (const { name, ours: isOurs, keys } of tables) {
    if (!isOurs) continue
    ours.add(name)
    take(namesOf(name, keys))
  }
  const plan = new Map<string, TableNames>()
  const name = (table: NamedTable, given: string | null) => {
    const columns = columnNames(table)
    const keys = table.keys.map((key) => columns.get(key)?.base ?? key)
    let tries = 0
    for (const base of candidatesOf('collection', table.name, ours.has(table.name) ? 1 : 0)) {
      const made = namesOf(base, keys)
      tries += 1
      if ((given !== null && made.list !== given && tries < 300) || !isFree(made)) continue
      take(made)
      plan.set(table.name, { base, list: made.list, type: made.type, columns })
      return
    }
  }
  const collections = tables.filter((table) => !table.ours)
  for (const table of collections) if (table.graphql_name) name(table, table.graphql_name)
  for (const table of collections) if (!table.graphql_name) name(table, null)
  return plan
}
