import type { Row } from '../api.ts'
import { dayOf } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'

/** The path of one board in the API. */
export const base = 'GET /v1/admin/projects/{projectId}/leaderboards/{idOrKey}'
export const rebuild = '/v1/admin/projects/{projectId}/leaderboards/{idOrKey}/rebuild'
export const pathOf = (row: Row) => ({ idOrKey: String(row['id']) })

export type Run = {
  readonly key: string
  readonly status: string
  readonly starts_at: string | null
  readonly ends_at: string | null
}

export const sources: Readonly<Record<string, string>> = {
  manual: 'Sent by your app',
  event: 'Events',
  xp: 'XP',
  currency: 'A currency',
  streak: 'A streak',
}
export const periods: Readonly<Record<string, string>> = {
  all_time: 'Never',
  daily: 'Each day',
  weekly: 'Each week',
  monthly: 'Each month',
}

/** Where the scores of a board come from. */
export const sourceWords = (row: Row): string => {
  const source = row['source'] as Row
  if (source['type'] === 'event')
    return `${source['event_name']}${source['value_property'] ? `, by ${source['value_property']}` : ''}`
  return String(source['currency_code'] ?? source['streak_key'] ?? sources[String(source['type'])])
}

/** `2026-W48` with its days. */
export const runWords = ({ key, starts_at, ends_at }: Run) => {
  if (!starts_at || !ends_at) return key === 'all' ? 'All time' : key
  const last = new Date(new Date(ends_at).getTime() - 1).toISOString()
  return dayOf(starts_at) === dayOf(last) ? dayOf(starts_at) : `${dayOf(starts_at)} to ${dayOf(last)}`
}

export const useRuns = (row: Row) => useAnswer<readonly Run[]>(`${base}/runs`, pathOf(row), { limit: 50 })
