import { isExactNumber } from '#server/json/lossless_json.ts'

/**
 * The shape of a request determines the text of its statement: the request with its values replaced by their types. Requests of one shape share
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

/** Counts the elements of lists and objects, including nested ones, up to `most`. */
const countElements = (value: unknown, most: number): number => {
  if (!Array.isArray(value) && !isObject(value)) return 0
  let count = 0
  for (const item of Array.isArray(value) ? value : Object.values(value)) {
    count += 1 + countElements(item, most - count)
    if (count > most) break
  }
  return count
}

/** Values that internal.filter_leaf_problem refuses by their size get a separate shape, which is never compiled. */
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

/** A filter with more elements than internal.filter_check accepts gets a separate shape too. */
const shapeOfWhole = (filter: unknown): string =>
  `${countElements(filter, 5000) > 5000 ? '%' : ''}${shapeOfFilter(filter)}`

/** Page sizes are rounded up to a few planned sizes, as in internal.collection_page_size. */
const sizes = [10, 50, 200, 1000]
const sizeOf = (limit: unknown) => sizes.find((size) => Number(limit) <= size) ?? 1000

/** Pages with a large offset use another statement, as in internal.collection_is_far. */
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
  // no rows at all use another statement than rows without columns
  rows: (rows) => ((rows as unknown[]).length === 0 ? '-' : shapeOfRows(rows as unknown[])),
  id: () => '',
  group: () => '',
  key: () => '',
  if_match: () => '',
}

/** The shape of a request: everything except the values, unchanged. */
export const shapeOf = (request: Request): string => {
  let shape = ''
  for (const key in request) {
    const value = request[key]
    if (value === undefined) continue
    shape += `${key}:${value === null ? '0' : (parts[key]?.(value) ?? json(value))};`
  }
  return shape
}
