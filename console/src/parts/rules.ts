/** A condition of a segment as one edits it: texts, of which `ruleOf` makes what the server takes. */
export type Leaf = Readonly<Record<string, string>>

/** The fields of a condition by its source, in the order in which they are asked for. */
export const sources: Readonly<Record<string, readonly string[]>> = {
  user: ['column', 'op', 'value'],
  property: ['column', 'op', 'value'],
  event: ['event_name', 'measure', 'op', 'value', 'within_days'],
  streak: ['key', 'op', 'value'],
  xp: ['op', 'value'],
  level: ['op', 'value'],
  currency: ['key', 'op', 'value'],
  inventory: ['key', 'op', 'value'],
  achievement: ['key', 'op', 'value'],
  role: ['key', 'op', 'value'],
  entitlement: ['entitlement_id', 'op'],
  segment: ['segment_id', 'op'],
}

const operators = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'like', 'is_null', 'is_not_null']

/** What a field may be, where it is a choice. */
export const choicesOf = (source: string, field: string): readonly string[] | null => {
  if (field === 'op') {
    if (source === 'entitlement') return ['active', 'inactive']
    return source === 'segment' ? ['in', 'not_in'] : operators
  }
  return field === 'measure' ? ['count', 'sum', 'min', 'max', 'first_at', 'last_at'] : null
}

const initial: Readonly<Record<string, string>> = { op: 'eq', measure: 'count' }

export const newLeaf = (source = 'property'): Leaf => ({
  source,
  ...Object.fromEntries(
    (sources[source] ?? []).map((field) => [
      field,
      choicesOf(source, field)?.includes(initial[field] ?? '')
        ? (initial[field] ?? '')
        : (choicesOf(source, field)?.[0] ?? ''),
    ]),
  ),
})

/** 7, true, null and lists are themselves; everything else is text. */
const typed = (text: string): unknown => {
  if (!/^(-?\d|true$|false$|null$|[[{"])/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const leafOf = (leaf: Leaf): Readonly<Record<string, unknown>> => {
  const entries = Object.entries(leaf).filter(
    ([name, text]) => text !== '' && !(name === 'value' && ['is_null', 'is_not_null'].includes(leaf['op'] ?? '')),
  )
  return Object.fromEntries(
    entries.map(([name, text]) => [name, name === 'value' || name === 'within_days' ? typed(text) : text]),
  )
}

export const rulesOf = (join: string, leaves: readonly Leaf[]): Readonly<Record<string, unknown>> => ({
  [join]: leaves.map(leafOf),
})

/** Whether every condition has what it needs to be asked for. */
export const isWhole = (leaves: readonly Leaf[]): boolean =>
  leaves.every((leaf) =>
    (sources[leaf['source'] ?? ''] ?? []).every(
      (field) =>
        (leaf[field] ?? '') !== '' ||
        field === 'within_days' ||
        (field === 'value' && ['is_null', 'is_not_null'].includes(leaf['op'] ?? '')),
    ),
  )
