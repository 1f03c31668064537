import type { Row } from '../api.ts'
import type { FieldWords } from '../parts/form/field.ts'
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
export type LeagueReward = {
  readonly tier_key: string
  readonly from_rank: number
  readonly to_rank: number
  readonly reward: Row
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

/** The fields of a league, in its form and among its facts. */
export const words: Readonly<Record<string, FieldWords>> = {
  name: { title: 'Name', help: 'What users see', section: 'The league' },
  key: { title: 'Key', help: 'How your app calls it', section: 'The league' },
  tiers: { title: 'Tiers', help: 'From the lowest to the highest', section: 'Tiers' },
  cohort_size: { title: 'Users in a cohort', section: 'Tiers' },
  inactive_relegates: { title: 'Without points go down', section: 'Tiers' },
  points: { title: 'Points come from', section: 'Points', choices: { xp: 'XP', event: 'Events' } },
  'points.event_name': { title: 'Event' },
  'points.value_property': { title: 'Property with the points', help: 'Each event counts 1 without one' },
  min_points_to_join: { title: 'Points to join', section: 'Points' },
  period: { title: 'A run ends', section: 'Runs', choices: periods },
  timezone: { title: 'Time zone', section: 'Runs' },
  rewards: { title: 'Rewards', help: 'By tier and rank, given when a run closes', section: 'Rewards' },
  is_active: { title: 'Active', section: 'Limits' },
}

export const tiersOf = (row: Row) => row['tiers'] as readonly Tier[]

/** What a tier is called; its key where a former run had it and the league has it no more. */
export const tierName = (row: Row, key: string): string => tiersOf(row).find((tier) => tier.key === key)?.name ?? key

/** Where the points of a league come from. */
export const pointsWords = (row: Row): string => {
  const points = row['points'] as Row
  if (points['type'] !== 'event') return 'XP'
  return `${points['event_name']}${points['value_property'] ? `, by ${points['value_property']}` : ''}`
}

/** What results mean for a member. */
export const meanings: Readonly<Record<string, 'good' | 'bad' | 'none'>> = { promoted: 'good', relegated: 'bad' }

/** Milliseconds after which a ladder that changes is read again. */
export const live = 5000

export const useRuns = (row: Row) => useAnswer<readonly Run[]>(`GET ${base}/runs`, pathOf(row), { limit: 50 }, live)
export const useStats = (row: Row) =>
  useAnswer<{ run_key: string; tiers: readonly TierStats[] }>(`GET ${base}/stats`, pathOf(row), {}, live)
