import fc from 'fast-check'

/** An independent oracle of the filter grammar, in three-valued logic, and random filters and rows. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type Leaf = { column: string; op: string; value?: Json }
export type Filter = Leaf | { and: Filter[] } | { or: Filter[] } | { not: Filter }
export type Case = { filter: Filter; row: Json }
export type Truth = boolean | null

export const leaf = (op: string, value?: Json, column = 'a'): Leaf =>
  value === undefined ? { column, op } : { column, op, value }

const isObject = (value: Json | undefined): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const step = (value: Json | undefined, key: string): Json | undefined => {
  if (Array.isArray(value)) return /^-?\d+$/.test(key) ? value.at(Number(key)) : undefined
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

const find = (row: Json, column: string): Json => {
  if (isObject(row) && Object.hasOwn(row, column)) return row[column] ?? null
  return column.split('.').reduce<Json | undefined>(step, row) ?? null
}

const equal = (a: Json, b: Json): boolean => {
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => equal(item, b[index]!))
  }
  if (!isObject(a)) return a === b
  const keys = Object.keys(a)
  return (
    isObject(b) && keys.length === Object.keys(b).length && keys.every((key) => key in b && equal(a[key]!, b[key]!))
  )
}

/** Whether a holds all that b holds: objects by their keys, arrays by their elements in any order. */
const holds = (a: Json, b: Json): boolean => {
  if (Array.isArray(a)) return Array.isArray(b) && b.every((wanted) => a.some((item) => holds(item, wanted)))
  if (!isObject(a)) return equal(a, b)
  return isObject(b) && Object.keys(b).every((key) => Object.hasOwn(a, key) && holds(a[key]!, b[key]!))
}

const compare = (a: Json, b: Json): number | null => {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b))
  return null
}

export type Part = 'some' | 'one' | { literal: string }

const like = (text: string, pattern: string): boolean => {
  const parts: Part[] = []
  for (const [symbol] of pattern.matchAll(/\\?./gsu)) {
    if (symbol === '%') parts.push('some')
    else if (symbol === '_') parts.push('one')
    else parts.push({ literal: symbol === '\\' ? symbol : symbol.replace(/^\\/, '') })
  }
  const matches = (rest: string[], from: number): boolean => {
    const part = parts[from]
    if (part === undefined) return rest.length === 0
    if (part === 'some') return rest.some((_, skip) => matches(rest.slice(skip), from + 1)) || matches([], from + 1)
    return rest.length > 0 && (part === 'one' || part.literal === rest[0]) && matches(rest.slice(1), from + 1)
  }
  return matches([...text], 0)
}

const isIn = (found: Json, list: Json): Truth => {
  if (!Array.isArray(list)) return null
  if (list.length === 0) return false
  if (found === null) return null
  if (list.some((item) => equal(item, found))) return true
  return list.includes(null) ? null : false
}

const not = (truth: Truth): Truth => (truth === null ? null : !truth)

const ordered = (found: Json, value: Json, accept: (sign: number) => boolean): Truth => {
  const sign = compare(found, value)
  return sign === null ? null : accept(sign)
}

const leafTruth = (found: Json, op: string, value: Json): Truth => {
  if (op === 'is_null') return found === null
  if (op === 'is_not_null') return found !== null
  if (op === 'in') return isIn(found, value)
  if (op === 'not_in') return not(isIn(found, value))
  if (op === 'eq' && value === null) return found === null
  if (op === 'ne' && value === null) return found !== null
  if (found === null || value === null) return null
  if (op === 'eq') return equal(found, value)
  if (op === 'ne') return !equal(found, value)
  if (op === 'gt') return ordered(found, value, (sign) => sign > 0)
  if (op === 'gte') return ordered(found, value, (sign) => sign >= 0)
  if (op === 'lt') return ordered(found, value, (sign) => sign < 0)
  if (op === 'lte') return ordered(found, value, (sign) => sign <= 0)
  if (op === 'like' || op === 'ilike') {
    if (typeof found !== 'string' || typeof value !== 'string') return null
    return op === 'like' ? like(found, value) : like(found.toLowerCase(), value.toLowerCase())
  }
  if (op === 'contains') {
    if (isObject(found)) return holds(found, value)
    if (!Array.isArray(found)) return null
    if (!Array.isArray(value)) return !isObject(value) && found.includes(value)
    return !value.includes(null) && holds(found, value)
  }
  if (!Array.isArray(found) || !Array.isArray(value)) return null
  if (op === 'overlaps') return value.some((wanted) => wanted !== null && holds(found, [wanted]))
  return !found.includes(null) && holds(value, found)
}

export const truthOf = (filter: Filter, row: Json): Truth => {
  if ('not' in filter) return not(truthOf(filter.not, row))
  if ('and' in filter) {
    const parts = filter.and.map((part) => truthOf(part, row))
    return parts.includes(false) ? false : parts.includes(null) ? null : true
  }
  if ('or' in filter) {
    const parts = filter.or.map((part) => truthOf(part, row))
    return parts.includes(true) ? true : parts.includes(null) ? null : false
  }
  return leafTruth(find(row, filter.column), filter.op, filter.value ?? null)
}

// few different values, so that rows and filters meet

const textArbitrary = fc.string({
  unit: fc.constantFrom('a', 'A', 'b', '%', '_', '\\', 'é', '😀', '\ufb01', '"'),
  maxLength: 4,
})
const scalar: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json[]>(
    null,
    true,
    false,
    0,
    1,
    -1,
    1.5,
    10,
    1e21,
    5e-7,
    '',
    '1',
    'true',
    '2026-10-03T10:00:00.000Z',
  ),
  textArbitrary,
  fc.double({ noDefaultInfinity: true, noNaN: true }).map((number) => number + 0),
)
const keys = fc.constantFrom('a', 'b', 'a.b', 'tags', '0')
export const { value: valueArbitrary } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { arbitrary: scalar, weight: 3 },
    { arbitrary: fc.array(tie('value'), { maxLength: 3 }), weight: 2 },
    { arbitrary: fc.dictionary(keys, tie('value'), { maxKeys: 3, noNullPrototype: true }), weight: 2 },
  ),
}))
const list = fc.array(valueArbitrary, { maxLength: 3 })
const column = fc.constantFrom('a', 'b', 'a.b', 'tags', 'a.0', 'tags.1', 'tags.-1', 'a.b.a', 'missing')
const leafArbitrary: fc.Arbitrary<Leaf> = fc.oneof(
  fc.record({ column, op: fc.constantFrom('is_null', 'is_not_null') }),
  fc.record({ column, op: fc.constantFrom('eq', 'ne'), value: valueArbitrary }),
  fc.record({
    column,
    op: fc.constantFrom('gt', 'gte', 'lt', 'lte'),
    value: scalar.filter((value) => ['string', 'number'].includes(typeof value)),
  }),
  fc.record({ column, op: fc.constantFrom('in', 'not_in', 'contained_by', 'containedBy', 'overlaps'), value: list }),
  fc.record({ column, op: fc.constantFrom('like', 'ilike'), value: textArbitrary }),
  fc.record({ column, op: fc.constant('contains'), value: valueArbitrary.filter((value) => value !== null) }),
)
const { filter: filterArbitrary } = fc.letrec<{ filter: Filter }>((tie) => {
  const parts = fc.array(tie('filter'), { maxLength: 3 })
  return {
    filter: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      { arbitrary: leafArbitrary, weight: 4 },
      { arbitrary: fc.record({ and: parts }), weight: 1 },
      { arbitrary: fc.record({ or: parts }), weight: 1 },
      { arbitrary: fc.record({ not: tie('filter') }), weight: 1 },
    ),
  }
})
export const rowArbitrary = fc.dictionary(keys, valueArbitrary, { noNullPrototype: true })

/** Rows that have what the filter looks for now and then, or else nearly every leaf would be about nothing. */
export const caseArbitrary: fc.Arbitrary<Case> = fc.oneof(
  fc.record({ filter: filterArbitrary, row: rowArbitrary }),
  fc
    .tuple(leafArbitrary, rowArbitrary, valueArbitrary)
    .map(([filter, row, other]) => ({ filter, row: { ...row, [filter.column]: filter.value ?? other } })),
)
