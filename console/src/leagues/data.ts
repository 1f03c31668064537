import type { Row } from '../api.ts'
import { useAnswer } from '../parts/stats.tsx'

/** The path of one league in the API. */
export const base = '/v1/admin/projects/{projectId}/leagues/{idOrKey}'
export const pathOf = (row: Row) => ({ idOrKey: String(row['id']) })

export type Tier = {
  readonly key: string
  readonly name: string
  readonly promote_count: number
  readonly relegate_count: number
}
export type Run = {
  readonly key: string
  readonly status: string
  readonly starts_at: string
  readonly ends_at: string
  readonly closed_at: string | null
  readonly members: number
  readonly cohorts: number
  readonly is_settled: boolean
}
export type Member = {
  readonly app_user_id: string
  readonly points: number | string
  readonly rank: number | null
  readonly result: string
}
export type TierStats = {
  readonly tier_key: string
  readonly users: number
  readonly median_points: number | string | null
  readonly promotion_cutoff: number | string | null
}

export const periods: Readonly<Record<string, string>> = {
  daily: 'Each day',
  weekly: 'Each week',
  monthly: 'Each month',
}

export const tiersOf = (row: Row) => row['tiers'] as readonly Tier[]

/** Where the points of a league come from. */
export const pointsWords = (row: Row): string => {
  const points = row['points'] as Row
  if (points['type'] !== 'event') return 'XP'
  return `${points['event_name']}${points['value_property'] ? `, by ${points['value_property']}` : ''}`
}

export const useRuns = (row: Row) => useAnswer<readonly Run[]>(`GET ${base}/runs`, pathOf(row), { limit: 50 })
export const useStats = (row: Row) =>
  useAnswer<{ run_key: string; tiers: readonly TierStats[] }>(`GET ${base}/stats`, pathOf(row))
