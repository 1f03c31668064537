import { filterWords } from '../parts/form/filter.ts'
import { isObject } from '../parts/form/schema.ts'

/** A condition of a segment, as the server takes it. */
export type Leaf = Readonly<Record<string, unknown>>
export type Join = 'and' | 'or' | 'none'
export type Group = { readonly join: Join; readonly items: readonly Node[] }
export type Node = Leaf | Group

export const isGroup = (node: Node): node is Group => Array.isArray((node as { items?: unknown }).items)

const nodeOf = (rules: unknown): Node => {
  const part = isObject(rules) ? rules : {}
  for (const join of ['and', 'or'] as const)
    if (Array.isArray(part[join])) return { join, items: (part[join] as unknown[]).map(nodeOf) }
  if ('not' in part) {
    const inner = nodeOf(part['not'])
    return isGroup(inner) && inner.join === 'or' ? { ...inner, join: 'none' } : { join: 'none', items: [inner] }
  }
  return part
}

/** The rules of a segment as a group of conditions; one condition alone is a group of one. */
export const groupOf = (rules: unknown): Group => {
  if (!isObject(rules) || Object.keys(rules).length === 0) return { join: 'and', items: [] }
  const node = nodeOf(rules)
  return isGroup(node) ? node : { join: 'and', items: [node] }
}

const written = (node: Node): unknown => {
  if (!isGroup(node)) return node
  const items = node.items.map(written)
  return node.join === 'none' ? { not: items.length === 1 ? items[0] : { or: items } } : { [node.join]: items }
}
export const rulesOf = (group: Group): Readonly<Record<string, unknown>> => written(group) as Leaf

/** Where a condition of the group stands in its rules: what the server calls it in a refusal and when it explains. */
export const placesOf = (group: Group, before = 'rules'): readonly (readonly [string, Leaf])[] => {
  const inner =
    group.join === 'none'
      ? group.items.length === 1
        ? `${before}.not`
        : `${before}.not.or`
      : `${before}.${group.join}`
  return group.items.flatMap((item, at) => {
    const place = group.join === 'none' && group.items.length === 1 ? inner : `${inner}[${at}]`
    return isGroup(item) ? placesOf(item, place) : [[place, item] as const]
  })
}

/** What a condition asks about, in the words of its choice. */
export const sources: Readonly<Record<string, string>> = {
  property: 'Property',
  user: 'Account',
  event: 'Event',
  level: 'Level',
  xp: 'XP',
  streak: 'Streak',
  currency: 'Balance',
  inventory: 'Item',
  achievement: 'Achievement',
  challenge: 'Challenge',
  role: 'Role',
  entitlement: 'Entitlement',
  segment: 'Another segment',
}

/** What is known of an account, with the kind of each. */
export const columns: Readonly<Record<string, readonly [string, 'text' | 'yes' | 'time']>> = {
  last_seen_at: ['last seen', 'time'],
  created_at: ['joined', 'time'],
  first_seen_at: ['first seen', 'time'],
  email: ['mail', 'text'],
  email_verified: ['mail verified', 'yes'],
  external_id: ['external id', 'text'],
  is_anonymous: ['anonymous', 'yes'],
  timezone: ['time zone', 'text'],
  platform: ['platform', 'text'],
  app_version: ['app version', 'text'],
}

export const measures: Readonly<Record<string, string>> = {
  count: 'how often',
  sum: 'sum of',
  min: 'least',
  max: 'most',
  first_at: 'first time',
  last_at: 'last time',
}

/** The reference that the key of a source is chosen from. */
export const keyOf: Readonly<Record<string, readonly [string, string]>> = {
  streak: ['key', 'streak_key'],
  currency: ['key', 'currency_code'],
  inventory: ['key', 'item_key'],
  achievement: ['key', 'achievement_key'],
  challenge: ['key', 'challenge_id'],
  role: ['key', 'role_key'],
  entitlement: ['entitlement_id', 'entitlement_id'],
  segment: ['segment_id', 'segment_id'],
}

const comparisons = [
  { value: 'gte', label: 'at least' },
  { value: 'lte', label: 'at most' },
  { value: 'eq', label: 'exactly' },
  { value: 'ne', label: 'not' },
  { value: 'gt', label: 'more than' },
  { value: 'lt', label: 'less than' },
]
const texts = [
  { value: 'eq', label: 'is' },
  { value: 'ne', label: 'is not' },
  { value: 'in', label: 'is one of' },
  { value: 'not_in', label: 'is none of' },
  { value: 'gt', label: 'is more than' },
  { value: 'gte', label: 'is at least' },
  { value: 'lt', label: 'is less than' },
  { value: 'lte', label: 'is at most' },
  { value: 'ilike', label: 'matches (% is any text)' },
  { value: 'like', label: 'matches exactly (% is any text)' },
  { value: 'contains', label: 'contains' },
  { value: 'overlaps', label: 'has one of' },
  { value: 'contained_by', label: 'has only' },
  { value: 'is_not_null', label: 'is set' },
  { value: 'is_null', label: 'is not set' },
]
const times = [
  { value: 'gte', label: 'in the last days' },
  { value: 'lt', label: 'longer ago than days' },
  { value: 'is_not_null', label: 'ever' },
  { value: 'is_null', label: 'never' },
]
const states = [
  { value: 'eq', label: 'is' },
  { value: 'ne', label: 'is not' },
]

export type Shape = 'number' | 'text' | 'yes' | 'time' | 'challenge' | 'state'
/** What a condition compares with: that decides its comparisons and its control. */
export const shapeOf = (leaf: Leaf): Shape => {
  const source = String(leaf['source'])
  if (source === 'property') return 'text'
  if (source === 'user') return columns[String(leaf['column'])]?.[1] ?? 'text'
  if (source === 'event') return /_at$/.test(String(leaf['measure'])) ? 'time' : 'number'
  if (source === 'achievement' || source === 'role') return 'yes'
  if (source === 'challenge') return 'challenge'
  if (source === 'entitlement' || source === 'segment') return 'state'
  return 'number'
}

export const operatorsOf = (leaf: Leaf): readonly { readonly value: string; readonly label: string }[] => {
  const shape = shapeOf(leaf)
  if (shape === 'number') return comparisons
  if (shape === 'time') return times
  if (shape === 'yes' || shape === 'challenge') return states
  if (leaf['source'] === 'entitlement')
    return [
      { value: 'active', label: 'is active' },
      { value: 'inactive', label: 'is not active' },
    ]
  if (leaf['source'] === 'segment')
    return [
      { value: 'in', label: 'has the user' },
      { value: 'not_in', label: 'does not have the user' },
    ]
  return texts
}

export const takesNone = (op: unknown): boolean => op === 'is_null' || op === 'is_not_null'
export const takesList = (op: unknown): boolean =>
  ['in', 'not_in', 'contains', 'overlaps', 'contained_by'].includes(String(op))

const begun: Readonly<Record<Shape, unknown>> = {
  number: 1,
  text: undefined,
  yes: true,
  time: { days_ago: 7 },
  challenge: 'completed',
  state: undefined,
}

/** A condition whose comparison and value fit what it asks about, keeping what does. */
export const fitting = (leaf: Leaf, before?: Leaf): Leaf => {
  const shape = shapeOf(leaf)
  const known = operatorsOf(leaf)
  const op = known.some(({ value }) => value === leaf['op']) ? leaf['op'] : known[0]?.value
  const { value: old, ...rest } = leaf
  const isSame = before !== undefined && shapeOf(before) === shape && old !== undefined
  const value = takesNone(op) || shape === 'state' ? undefined : isSame ? old : begun[shape]
  return { ...rest, op, ...(value === undefined ? {} : { value }) }
}

export const newLeaf = (source: string): Leaf => {
  const more: Leaf =
    source === 'user'
      ? { column: 'last_seen_at' }
      : source === 'property'
        ? { column: '' }
        : source === 'event'
          ? { event_name: '', measure: 'count', within_days: 7 }
          : keyOf[source]
            ? { [keyOf[source][0]]: '' }
            : {}
  return fitting({ source, ...more })
}

/** Whether a condition has all that it needs to be asked for. */
export const isWhole = (leaf: Leaf): boolean => {
  const source = String(leaf['source'])
  const key = keyOf[source]?.[0]
  if (key && !leaf[key]) return false
  if ((source === 'property' || source === 'user') && !leaf['column']) return false
  if (source === 'event' && (!leaf['event_name'] || (isMeasured(leaf) && !leaf['column']))) return false
  if (takesNone(leaf['op']) || shapeOf(leaf) === 'state') return true
  const value = leaf['value']
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null && value !== ''
}
/** Whether an event's condition measures a number of its properties. */
export const isMeasured = (leaf: Leaf): boolean => ['sum', 'min', 'max'].includes(String(leaf['measure']))

const valueWords = (leaf: Leaf): string => {
  const value = leaf['value']
  if (isObject(value)) return `${value['days_ago']}`
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.join(', ')
  return String(value ?? '').replace(/_/g, ' ')
}

/** A condition in words: `lesson_completed at least 3 times in 7 days`. Names of what is referred to by an identifier are passed. */
export const leafWords = (
  leaf: Leaf,
  nameOf: (reference: string, value: string) => string = (_, value) => value,
): string => {
  const source = String(leaf['source'])
  const op = operatorsOf(leaf).find(({ value }) => value === leaf['op'])?.label ?? String(leaf['op'])
  const reference = keyOf[source]
  const named = reference ? nameOf(reference[1], String(leaf[reference[0]] ?? '')) : ''
  const value = valueWords(leaf)
  const within = leaf['within_days'] ? ` in ${leaf['within_days']} days` : ''
  const compared = takesNone(leaf['op'])
    ? op.replace(' (% is any text)', '')
    : shapeOf(leaf) === 'time'
      ? leaf['op'] === 'gte' && isObject(leaf['value'])
        ? `in the last ${value} days`
        : isObject(leaf['value'])
          ? `longer than ${value} days ago`
          : `${leaf['op'] === 'gte' || leaf['op'] === 'gt' ? 'after' : 'before'} ${new Date(value).toLocaleDateString('en')}`
      : `${op.replace(' (% is any text)', '')} ${value}`.trim()
  if (source === 'property') return `${leaf['column']} ${compared}`
  if (source === 'user') return `${columns[String(leaf['column'])]?.[0] ?? leaf['column']} ${compared}`
  if (source === 'event') {
    const where = filterWords(leaf['where'])
    const only = where ? ` where ${where}` : ''
    const name = `${leaf['event_name']}${only}`
    if (leaf['measure'] === 'count') {
      if (leaf['op'] === 'eq' && leaf['value'] === 0) return `no ${name}${within}`
      return `${name} ${op} ${value} ${leaf['value'] === 1 ? 'time' : 'times'}${within}`
    }
    const measure = measures[String(leaf['measure'])] ?? leaf['measure']
    return isMeasured(leaf)
      ? `${measure} ${leaf['column']} of ${name} ${compared}${within}`
      : `${measure} of ${name} ${compared}${within}`
  }
  if (source === 'achievement' || source === 'role')
    return `${(leaf['value'] === true) === (leaf['op'] === 'eq') ? 'has' : 'does not have'} the ${source} ${named}`
  if (source === 'challenge') return `challenge ${named} ${compared}`
  if (source === 'entitlement') return `entitlement ${named} ${op}`
  if (source === 'segment') return `${leaf['op'] === 'in' ? 'is' : 'is not'} in the segment ${named}`
  const subject = source === 'xp' ? 'XP' : source === 'level' ? 'level' : `${sources[source]?.toLowerCase()} ${named}`
  return `${subject} ${compared}`
}
