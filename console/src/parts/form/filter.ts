import { isObject } from './schema.ts'

/** A filter as rows: a condition, or a group that joins others. */
export type Condition = { readonly column: string; readonly op: string; readonly value?: unknown }
export type Join = 'and' | 'or' | 'none'
export type Group = { readonly join: Join; readonly items: readonly Node[] }
export type Node = Condition | Group

export const isGroup = (node: Node): node is Group => 'join' in node

const operatorNames: Readonly<Record<string, string>> = { containedBy: 'contained_by' }

const nodeOf = (filter: unknown): Node => {
  const part = isObject(filter) ? filter : {}
  for (const join of ['and', 'or'] as const)
    if (Array.isArray(part[join])) return { join, items: (part[join] as unknown[]).map(nodeOf) }
  if ('not' in part) {
    const inner = nodeOf(part['not'])
    return isGroup(inner) && inner.join === 'or' ? { ...inner, join: 'none' } : { join: 'none', items: [inner] }
  }
  const op = String(part['op'] ?? 'eq')
  return { ...part, column: String(part['column'] ?? ''), op: operatorNames[op] ?? op }
}

/** The group that a form shows of a filter; one condition alone is a group of one. */
export const groupOf = (filter: unknown): Group => {
  if (!isObject(filter)) return { join: 'and', items: [] }
  const node = nodeOf(filter)
  return isGroup(node) ? node : { join: 'and', items: [node] }
}

const written = (node: Node): unknown => {
  if (!isGroup(node)) return node
  const items = node.items.map(written)
  const [only] = items
  if (node.join === 'none') return { not: items.length === 1 ? only : { or: items } }
  return { [node.join]: items }
}

/** The filter of a group: none without conditions, and one condition without a group around it. */
export const filterOf = (group: Group): unknown => {
  const [only] = group.items
  if (only === undefined) return undefined
  return group.items.length === 1 && group.join !== 'none' ? written(only) : written(group)
}

export const operators = [
  { value: 'eq', label: 'is' },
  { value: 'ne', label: 'is not' },
  { value: 'gt', label: 'is more than' },
  { value: 'gte', label: 'is at least' },
  { value: 'lt', label: 'is less than' },
  { value: 'lte', label: 'is at most' },
  { value: 'in', label: 'is one of' },
  { value: 'not_in', label: 'is none of' },
  { value: 'like', label: 'matches (% is any text)' },
  { value: 'ilike', label: 'matches, in any case' },
  { value: 'is_not_null', label: 'has a value' },
  { value: 'is_null', label: 'has no value' },
  { value: 'contains', label: 'contains' },
  { value: 'overlaps', label: 'has one of' },
  { value: 'contained_by', label: 'has only' },
]
export const takesNone = (op: string) => op === 'is_null' || op === 'is_not_null'
export const takesList = (op: string) => ['in', 'not_in', 'contains', 'overlaps', 'contained_by'].includes(op)

const phraseOf = (node: Node): string => {
  if (isGroup(node)) {
    const items = node.items.map((item) => (isGroup(item) ? `(${phraseOf(item)})` : phraseOf(item)))
    if (node.join === 'none') return `not ${items.join(' and not ')}`
    return items.join(node.join === 'and' ? ' and ' : ' or ')
  }
  const word = operators.find(({ value }) => value === node.op)?.label.replace(' (% is any text)', '') ?? node.op
  const value = node.value
  const shown = Array.isArray(value) ? value.join(', ') : isObject(value) ? 'an object' : String(value ?? '')
  return `${node.column} ${word}${takesNone(node.op) ? '' : ` ${shown}`}`
}

/** A filter in words: `points is at least 50 and country is one of DE, FR`. */
export const filterWords = (filter: unknown): string | undefined => {
  const group = groupOf(filter)
  return group.items.length === 0 ? undefined : phraseOf(group)
}
