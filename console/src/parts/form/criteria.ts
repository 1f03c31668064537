import type { Values } from './field.ts'
import { filterWords } from './filter.ts'
import { isObject } from './schema.ts'

/** Criteria in words: `10 × lesson_completed`. */
export const criteriaWords = (criteria: unknown): string => {
  const { type, target_value: target, ...of } = isObject(criteria) ? criteria : ({} as Values)
  if (type === 'event_count') {
    const filter = filterWords(of['event_filter'])
    return `${target} × ${of['event_name']}${filter ? ` where ${filter}` : ''}`
  }
  if (type === 'streak_length') return `a streak of ${target}`
  if (type === 'xp_threshold') return `${target} XP`
  return `${of['property_key']} is at least ${target}`
}
