import type { Row } from '../api.ts'
import { useAnswer } from '../parts/stats.tsx'

/** The path of one streak in the API. */
export const base = '/v1/admin/projects/{projectId}/streaks/{idOrKey}'

export type Stats = {
  readonly is_estimate: boolean
  readonly margin: number
  readonly active: number
  readonly at_risk: number
  readonly frozen: number
  readonly broken_7d: number
  readonly distribution: readonly { readonly bucket: string; readonly users: number }[]
  readonly freezes_used_7d: number
  readonly saved_by_freeze: number
}
export const pathOf = (row: Row) => ({ idOrKey: String(row['id']) })
export const useStats = (row: Row) => useAnswer<Stats>(`GET ${base}/stats`, pathOf(row))

export const periods: Readonly<Record<string, string>> = { day: 'day', week: 'week', month: 'month' }
/** `3 × lesson_completed each day`. */
export const rule = (row: Row) => {
  const times = row['min_count'] === 1 ? '' : `${row['min_count']} × `
  return `${times}${row['qualifying_event']} each ${periods[String(row['period'])]}`
}
