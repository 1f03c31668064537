import { filterWords } from '../parts/form/filter.ts'
import { isObject } from '../parts/form/schema.ts'
import { columns, isMeasured, keyOf, measures, operatorsOf, shapeOf, sources, takesNone } from './leaves.ts'
import type { Leaf } from './rules.ts'

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
