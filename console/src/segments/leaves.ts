import type { Leaf } from './rules.ts'

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
