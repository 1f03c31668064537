import type { ReactNode } from 'react'
import type { Row } from '../api.ts'
import { criteriaWords } from './form/criteria.ts'
import type { FieldWords } from './form/field.ts'
import { filterWords } from './form/filter.ts'
import { ReferenceName } from './form/reference_input.tsx'
import { rewardWords } from './form/reward.ts'
import { wordsOf } from './form/schema.ts'
import { count, When } from './states.tsx'

export const text = (name: string) => wordsOf(name.replace(/_at$/, '').replace(/_id$/, ''))

/** A value for people: times as such, names instead of identifiers, rewards and filters in words. */
export const shownValue = (name: string, value: unknown, choices?: Readonly<Record<string, string>>): ReactNode => {
  if (value === null || value === undefined || value === '') return undefined
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return count(value)
  if (typeof value === 'string') {
    if (/(^|_)at$/.test(name)) return <When at={value} />
    if (choices?.[value]) return choices[value]
    if (/_id$/.test(name)) return <ReferenceName reference={name} value={value} />
    return value
  }
  const reward = rewardWords(value)
  if (reward) return reward
  if (/filter$/.test(name)) return filterWords(value)
  if (name === 'criteria') return criteriaWords(value)
  if (Array.isArray(value))
    return value.every((one) => typeof one !== 'object') ? value.join(', ') : count(value.length)
  const inner = Object.entries(value).filter(([, one]) => one !== null && typeof one !== 'object')
  return inner.map(([key, one]) => `${text(key).toLowerCase()} ${one}`).join(', ')
}

const leftOut = new Set(['id', 'project_id', 'name', 'description', 'metadata', 'icon_url'])

/** The facts of a row in words, without what is empty. */
export const factsOf = (
  row: Row,
  wordsFor: (name: string) => FieldWords = () => ({}),
): readonly (readonly [string, ReactNode])[] =>
  Object.entries(row).flatMap(([name, value]) => {
    const { title = text(name), choices } = wordsFor(name)
    const shown = leftOut.has(name) ? undefined : shownValue(name, value, choices)
    return shown === undefined || shown === '' ? [] : [[title, shown] as const]
  })
