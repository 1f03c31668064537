import { useQuery } from '@tanstack/react-query'
import { listEventNames } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { useProject } from './page.tsx'

/** The names of events that the project has had, the most frequent ones first, with the properties of each. */
export const useEventNames = () => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['event names', path.projectId],
    enabled: path.projectId !== '',
    queryFn: () => call(listEventNames, { path, query: { limit: 100 } }),
    select: ({ data }) => data,
  })
}
