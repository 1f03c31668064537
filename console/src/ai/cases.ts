import { useState } from 'react'
import type { EvaluateAiPromptInput, EvaluateAiPromptResult } from '../../../sdk/src/generated/schemas.ts'
import { contextOf } from './data.ts'

/** What an answer must be like: a text in it, a pattern that it matches, or an object with fields. */
export type Expected = 'contains' | 'regex' | 'fields'
/** A case of an evaluation, as people write it. */
export type Case = {
  readonly id: string
  readonly message: string
  /** What fills the marks of the instructions. */
  readonly values: Readonly<Record<string, string>>
  readonly expected: Expected
  readonly text: string
  readonly fields: readonly string[]
}
/** What came of the last run. */
export type Outcome = {
  readonly passed: number
  readonly of: number
  readonly version: number | null
  readonly at: string
}
export type Evaluation = { readonly cases: readonly Case[]; readonly runs: number; readonly last: Outcome | null }

export const expectedWords: Readonly<Record<Expected, string>> = {
  contains: 'contains',
  regex: 'matches',
  fields: 'is JSON with',
}
/** As many as the API runs at once. */
export const mostCases = 20
export const mostRuns = 5

export const newCase = (): Case => ({
  id: crypto.randomUUID(),
  message: '',
  values: {},
  expected: 'contains',
  text: '',
  fields: [],
})

/** Whether it says what is expected: the API takes no case without. */
export const isWhole = ({ expected, text, fields }: Case): boolean =>
  expected === 'fields' ? fields.length > 0 : text !== ''

/** What a case expects, in a sentence. */
export const expectedOf = ({ expected, text, fields }: Case): string =>
  expected === 'fields'
    ? `JSON with ${fields.join(', ')}`
    : expected === 'regex'
      ? `matches ${text}`
      : `contains “${text}”`

/** A case as the API takes it. */
export const bodyOf = ({ message, values, expected, text, fields }: Case): EvaluateAiPromptInput['cases'][number] => ({
  context: contextOf(values),
  messages: message.trim() === '' ? [] : [{ role: 'user', content: message }],
  expect: expected === 'fields' ? { json_schema: { type: 'object', required: [...fields] } } : { [expected]: text },
})

export const outcomeOf = ({ cases, version }: EvaluateAiPromptResult): Outcome => {
  const runs = cases.flatMap((one) => one.runs)
  return {
    passed: runs.filter(({ passed }) => passed).length,
    of: runs.length,
    version,
    at: new Date().toISOString(),
  }
}

const keyOf = (projectId: string) => `trellis.evaluations.${projectId}`
type Kept = Readonly<Record<string, Evaluation>>

const read = (projectId: string): Kept => {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(keyOf(projectId)) ?? '{}')
    return found && typeof found === 'object' ? (found as Kept) : {}
  } catch {
    // what somebody else wrote there, or a browser that keeps nothing
    return {}
  }
}

/** The evaluations that this browser keeps, by prompt: the API runs cases, and keeps none. */
export const useEvaluations = (projectId: string) => {
  const [all, set] = useState(() => read(projectId))
  const write = (change: (before: Kept) => Kept) => {
    // another tab may have written, or a run may have ended
    const next = change(read(projectId))
    set(next)
    try {
      localStorage.setItem(keyOf(projectId), JSON.stringify(next))
    } catch {
      // it is full, or not allowed: the page works without
    }
  }
  return {
    all,
    save: (prompt: string, part: Partial<Evaluation>) =>
      write((before) => ({
        ...before,
        [prompt]: { ...(before[prompt] ?? { cases: [], runs: 1, last: null }), ...part },
      })),
    remove: (prompt: string) => write(({ [prompt]: _, ...rest }) => rest),
  }
}
