import { useQuery } from '@tanstack/react-query'
import { listEventDefinitions } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { useProject } from '../parts/page.tsx'

/** A name that events have, with what was counted of them. */
export type Name = {
  readonly event_name: string
  readonly count_24h: number
  readonly count_30d: number
  readonly users_30d: number
  readonly last_seen: string
  readonly status: string
  readonly properties: readonly { readonly path: string; readonly types: readonly string[] }[]
}

/** What a developer says of the events of a name. */
export type Definition = {
  readonly event_name: string
  readonly description: string | null
  readonly status: string
  readonly schema: unknown
  readonly sample_rate: number
}

/** All definitions of the project. */
export const useDefinitions = () => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['event definitions', path.projectId],
    queryFn: async () =>
      (await call(listEventDefinitions, { path, query: { limit: 100 } })).data as unknown as readonly Definition[],
  })
}
