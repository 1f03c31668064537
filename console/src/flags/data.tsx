import { useQuery } from '@tanstack/react-query'
import { adminGetFlag, updateFlag } from '../../../sdk/src/generated/admin.ts'
import type { Flag } from '../../../sdk/src/generated/schemas.ts'
import { call, queries, type Row } from '../api.ts'
import { filterWords } from '../parts/form/filter.ts'
import { useProject } from '../parts/page.tsx'
import { done, failed } from '../parts/states.tsx'

export type { Flag }
export type Rule = {
  readonly value: unknown
  readonly percentage?: number
  readonly segment_id?: string
  readonly filter?: unknown
  readonly platforms?: readonly string[]
  readonly min_app_version?: string
  readonly starts_at?: string
  readonly ends_at?: string
}
export type Ramp = {
  readonly status: 'running' | 'done' | 'stopped'
  readonly from: number
  readonly to: number
  readonly step: number
  readonly every_hours: number
  readonly ends_at: string
  readonly rule_index: number
  readonly rate?: number
  readonly guardrail?: { readonly event_name: string; readonly max_rate: number } | null
}

export const rulesOf = (flag: Flag): readonly Rule[] => flag.rules as unknown as readonly Rule[]
export const rampOf = (flag: Flag): Ramp | undefined => (flag.ramp as Ramp | null) ?? undefined

/** A value of a flag as people read it. */
export const valueWords = (value: unknown): string => {
  if (value === true) return 'on'
  if (value === false) return 'off'
  if (value === null || value === undefined) return 'nothing'
  if (typeof value === 'object')
    return Array.isArray(value) ? `${value.length} values` : `${Object.keys(value).length} fields`
  return `“${value}”`
}

/** Whom a rule is for, without its percentage; a segment stands as its word, since its name has to be asked for. */
export const audienceOf = (rule: Rule, segment?: string): string => {
  const parts = [
    rule.segment_id ? (segment === '' ? 'in a segment' : `in the segment ${segment ?? '…'}`) : '',
    rule.filter ? `whose ${filterWords(rule.filter) ?? 'filter holds'}` : '',
    rule.platforms?.length ? `on ${rule.platforms.join(', ')}` : '',
    rule.min_app_version ? `from version ${rule.min_app_version} on` : '',
    rule.starts_at ? `from ${new Date(rule.starts_at).toLocaleDateString('en', { dateStyle: 'medium' })}` : '',
    rule.ends_at ? `until ${new Date(rule.ends_at).toLocaleDateString('en', { dateStyle: 'medium' })}` : '',
  ].filter((part) => part !== '')
  return parts.length === 0 ? 'Everyone' : `Users ${parts.join(', ')}`
}

export const flagKey = (projectId: string, id: string) => ['flag', projectId, id]

export const useFlag = (id: string) => {
  const { path } = useProject()
  return useQuery({
    queryKey: flagKey(path.projectId, id),
    queryFn: async () => (await call(adminGetFlag, { path: { ...path, idOrKey: id } })).data,
  })
}

/** Changes a flag at once, and offers to take it back; a refusal brings the former state. */
export const useChange = (flag: Flag) => {
  const { path } = useProject()
  const key = flagKey(path.projectId, flag.key)
  const put = async (body: Row, shown: Row) => {
    queries.setQueryData(key, (before: Flag | undefined) => before && { ...before, ...shown })
    try {
      const { data } = await call(updateFlag, { path: { ...path, idOrKey: flag.key }, body: body as never })
      queries.setQueryData(key, data)
    } finally {
      await queries.invalidateQueries()
    }
  }
  return async (body: Row, said: string): Promise<void> => {
    const before = Object.fromEntries(Object.keys(body).map((name) => [name, flag[name as keyof Flag]]))
    try {
      await put(body, body)
      done(said, () => put(before, before))
    } catch (error) {
      failed(error)
    }
  }
}
