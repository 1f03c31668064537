import { isExactNumber } from '#server/json/lossless_json.ts'

/**
 * What the text of a statement depends on: a request with its values taken out and their kinds put in. Two requests of one shape are
 * one statement; the shape contains everything that internal.collection_compile reads.
 */
export type Request = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isExactNumber(value)

const kindOf = (value: unknown): string => {
  if (value === null) return '0'
  if (value === undefined) return ''
  if (Array.isArray(value)) return `[${[...new Set(value.map(kindOf))].sort().join()}]`
  if (isObject(value)) return 'o'
  if (typeof value === 'string') return 's'
  return typeof value === 'boolean' ? 'b' : 'n'
}

const json = (value: unknown) => JSON.stringify(value) ?? ''

/** Elements of lists and objects, those of nested ones included, up to `most` of them. */
const countElements = (value: unknown, most: number): number => {
  if (!Array.isArray(value) && !isObject(value)) return 0
  let count = 0
  for (const item of Array.isArray(value) ? value : Object.values(value)) {
    count += 1 + countElements(item, most - count)
    if (count > most) break
  }
  return count
}

/** Values that internal.filter_leaf_problem refuses by their size have a shape of their own, which is never compiled. */
const isTooMuch = (op: unknown, value: unknown): boolean =>
  op === 'like' || op === 'ilike'
    ? typeof value === 'string' && (value.length > 1000 || value.split('%').length > 101)
    : countElements(value, 1000) > 1000

const shapeOfFilter = (node: unknown): string => {
  if (!isObject(node)) return json(node)
  const keys = Object.keys(node)
  const [only] = keys
  if (keys.length === 1 && (only === 'and' || only === 'or') && Array.isArray(node[only])) {
    return `${only}(${(node[only] as unknown[]).map(shapeOfFilter).join()})`
  }
  if (keys.length === 1 && only === 'not') return `not(${shapeOfFilter(node['not'])})`
  if (keys.length > 0 && keys.every((key) => key === 'column' || key === 'op' || key === 'value')) {
    const { column, op, value } = node
    return `${json([column, op])}${isTooMuch(op, value) ? '%' : kindOf(value)}`
  }
  return json(node)
}

const shapeOfMap = (map: unknown): string =>
  isObject(map)
    ? Object.keys(map)
        .sort()
        .map((key) => {
          if (key === '$unset') return `$unset${json(map[key])}`
          return key.startsWith('$') ? `${key}{${shapeOfMap(map[key])}}` : `${json(key)}${kindOf(map[key])}`
        })
        .join()
    : json(map)

const shapeOfRows = (rows: readonly unknown[]): string => {
  const kinds = new Map<string, Set<string>>()
  for (const row of rows) {
    if (!isObject(row)) return json(row)
    for (const key of Object.keys(row)) {
      let known = kinds.get(key)
      if (!known) {
        known = new Set()
        kinds.set(key, known)
      }
      known.add(kindOf(row[key]))
    }
  }
  return [...kinds.keys()]
    .sort()
    .map((key) => `${json(key)}${[...(kinds.get(key) ?? [])].sort().join('')}`)
    .join()
}

/** A filter with more elements than internal.filter_check takes has a shape of its own too. */
const shapeOfWhole = (filter: unknown): string =>
  `${countElements(filter, 5000) > 5000 ? '%' : ''}${shapeOfFilter(filter)}`

/** Pages are planned for one of a few sizes, as internal.collection_page_size has them. */
const sizes = [10, 50, 200, 1000]
const sizeOf = (limit: unknown) => sizes.find((size) => Number(limit) <= size) ?? 1000

/** Pages far behind are another statement, as internal.collection_is_far has it. */
const farOffset = 1000

const parts: Readonly<Record<string, (value: unknown) => string>> = {
  filter: shapeOfWhole,
  having: shapeOfWhole,
  search: (search) => {
    const { columns, fuzzy } = search as Record<string, unknown>
    return json([columns, fuzzy])
  },
  limit: (limit) => String(sizeOf(limit)),
  offset: (offset) => (Number(offset) >= farOffset ? 'far' : ''),
  after: (after) => kindOf((after as Record<string, unknown>)['key']),
  vector: (vector) => `${(vector as unknown[]).length}${kindOf(vector)}`,
  max_distance: () => '',
  data: shapeOfMap,
  // none at all is another statement than rows that name no column
  rows: (rows) => ((rows as unknown[]).length === 0 ? '-' : shapeOfRows(rows as unknown[])),
  id: () => '',
  group: () => '',
  key: () => '',
  if_match: () => '',
}

/** The shape of a request: everything but the values, unchanged. */
export const shapeOf = (request: Request): string => {
  let shape = ''
  for (const key in request) {
    const value = request[key]
    if (value === undefined) continue
    shape += `${key}:${value === null ? '0' : (parts[key]?.(value) ?? json(value))};`
  }
  return shape
}
