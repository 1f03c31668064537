/** The path of what is sold, in the API. */
export const base = '/v1/admin/projects/{projectId}/monetization'
type Op = {
  readonly op: string
  readonly object_type: string
  readonly identifier: string
  readonly status: string
  readonly reason: string
}
export type Note = {
  readonly title?: string
  readonly detail: string
  readonly code: string
  readonly identifier?: string
}
export type Drift = {
  readonly object_type: string
  readonly identifier: string
  readonly last_applied_hash: string | null
  readonly live_hash: string | null
}
export type Plan = {
  readonly plan_hash: string
  readonly clean: boolean
  readonly ops: readonly Op[]
  readonly store_floor: readonly Note[]
  readonly human_floor: readonly Note[]
  readonly drift: readonly Drift[]
  readonly validation: readonly Note[]
}
