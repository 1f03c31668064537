import { createConfigKey, deleteConfigKey, updateConfigKey } from '../../../sdk/src/generated/admin.ts'
import type { ConfigKey } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'

export type { ConfigKey }
export type Condition = {
  readonly segment_id?: string | null
  readonly percentage?: number | null
  readonly value: unknown
}
export const conditionsOf = (key: ConfigKey): readonly Condition[] => key.conditions as unknown as readonly Condition[]

export type Draft = {
  readonly key: string
  readonly value_type: string
  readonly value: unknown
  readonly description: string
  readonly conditions: readonly Condition[]
}
export const draftOf = (key: ConfigKey): Draft => ({
  key: key.key,
  value_type: key.value_type,
  value: key.value,
  description: key.description ?? '',
  conditions: conditionsOf(key),
})

export const create = (projectId: string, { description, ...draft }: Draft) =>
  call(createConfigKey, {
    path: { projectId },
    body: { ...draft, ...(description ? { description } : {}) } as never,
  })
export const change = (projectId: string, key: string, body: object) =>
  call(updateConfigKey, { path: { projectId, key }, body: body as never })
export const remove = (projectId: string, key: string) => call(deleteConfigKey, { path: { projectId, key } })

export const typeWords: Readonly<Record<string, string>> = {
  string: 'Text',
  number: 'Number',
  boolean: 'On or off',
  json: 'Structured (JSON)',
}
