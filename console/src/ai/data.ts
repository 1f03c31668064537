import { useQuery } from '@tanstack/react-query'
import {
  getAiPrompt,
  getAiPromptBudget,
  getAiPromptSpend,
  listAiProviders,
  setAiPromptBudget,
} from '../../../sdk/src/generated/admin.ts'
import type { AiPromptDetail } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import type { FieldWords } from '../parts/form/field.ts'
import { useProject } from '../parts/page.tsx'

export type Prompt = AiPromptDetail
export type Period = 'daily' | 'monthly' | 'total'
export const periodWords: Readonly<Record<string, string>> = { daily: 'a day', monthly: 'a month', total: 'in all' }

export const providerNames: Readonly<Record<string, string>> = {
  anthropic: 'Anthropic',
  openai: 'OpenAI',
  google: 'Google',
  mistral: 'Mistral',
  echo: 'Echo, for tests',
}

const money = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumFractionDigits: 4 })
const round = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' })
/** An amount of dollars, with as many digits as a cheap call needs. */
export const dollars = (amount: number | null | undefined): string =>
  amount === null || amount === undefined
    ? '—'
    : amount !== 0 && amount < 1
      ? money.format(amount)
      : round.format(amount)

export const usePrompt = (name: string) => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['prompt', path.projectId, name],
    queryFn: async () => (await call(getAiPrompt, { path: { ...path, name } })).data as Prompt,
  })
}
export const useProviders = () => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['providers', path.projectId],
    queryFn: async () => (await call(listAiProviders, { path })).data,
  })
}
export const useBudget = (name: string) => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['budget', path.projectId, name],
    queryFn: async () => (await call(getAiPromptBudget, { path: { ...path, name } })).data,
  })
}
export const useSpend = (name: string, period: Period) => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['spend', path.projectId, name, period],
    queryFn: async () => (await call(getAiPromptSpend, { path: { ...path, name }, query: { period } })).data,
  })
}
export const putBudget = (projectId: string, name: string, budget_usd: number | null, budget_period: Period) =>
  call(setAiPromptBudget, { path: { projectId, name }, body: { budget_usd, budget_period } })

/** The names in a system prompt that a call fills in; those of the user are filled in by the server. */
export const placeholdersOf = (
  text: string | null,
): readonly { readonly name: string; readonly fallback: string }[] => {
  const found = [...(text ?? '').matchAll(/\{\{\s*([^}|]+?)\s*(?:\|([^}]*))?\}\}/g)]
  const all = new Map(found.map(([, name = '', fallback = '']) => [name, { name, fallback }]))
  return [...all.values()].filter(({ name }) => !name.startsWith('user.'))
}

/** `{place: 'Paris'}` from `place`; dots lead into objects. */
export const contextOf = (values: Readonly<Record<string, string>>): Record<string, unknown> => {
  const context: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(values)) {
    if (value === '') continue
    const parts = name.split('.')
    let at = context
    for (const part of parts.slice(0, -1)) {
      at[part] ??= {}
      at = at[part] as Record<string, unknown>
    }
    at[parts.at(-1) ?? name] = value
  }
  return context
}

export const words: Readonly<Record<string, FieldWords>> = {
  name: { title: 'Name', help: 'What apps ask for; it never changes', section: 'Prompt' },
  description: { title: 'Description', help: 'What it is for, for your team', section: 'Prompt' },
  system_prompt: {
    title: 'Instructions',
    help: 'What the model is told first. {{place}} is filled in by the call, {{user.display_name}} by the server, and what stands behind | where there is nothing',
    section: 'Prompt',
  },
  provider: { title: 'Provider', section: 'Model', choices: providerNames },
  model: { title: 'Model', help: 'As its provider calls it', section: 'Model' },
  max_tokens: { title: 'Longest answer', help: 'In tokens: some four letters each', section: 'Model' },
  client_invokable: { title: 'Apps may ask it', help: 'Else only your servers and you', section: 'Who asks' },
  rate_limit: { title: 'How often', help: 'More calls are refused', section: 'Who asks' },
  'rate_limit.window': { title: 'Within seconds' },
  'rate_limit.max': { title: 'Calls at most' },
  'rate_limit.key': { title: 'For each', choices: { user: 'User', ip: 'Address', project: 'Project' } },
  cost: { title: 'What a call costs a user', help: 'Given back when the call fails', section: 'Who asks' },
  'cost.currency_code': { title: 'Currency' },
  'cost.amount': { title: 'Amount' },
  log_payloads: {
    title: 'Keep what was asked and answered',
    help: 'In the log of calls, for 90 days',
    section: 'Who asks',
  },
}
