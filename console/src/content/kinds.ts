import { useQuery } from '@tanstack/react-query'
import { getContentType } from '../../../sdk/src/generated/admin.ts'
import type { ContentType } from '../../../sdk/src/generated/schemas.ts'
import { isRefusal } from '../../../sdk/src/index.ts'
import { call } from '../api.ts'
import { useProject } from '../parts/page.tsx'

export type Declared = ContentType['fields'][number]

/** The fields that the schema of a type declares, by name; empty for a type without one. Undefined until it is known. */
export const useDeclared = (type: string): ReadonlyMap<string, Declared> | undefined => {
  const { path } = useProject()
  const { data } = useQuery({
    queryKey: ['content type', path.projectId, type],
    queryFn: async () => {
      try {
        return (await call(getContentType, { path: { ...path, type } })).data.fields
      } catch (error) {
        if (isRefusal(error, 'NOT_FOUND')) return []
        throw error
      }
    },
  })
  return data && new Map(data.map((field) => [field.name, field]))
}
