import { useQuery } from '@tanstack/react-query'
import { listModerationRules } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { useProject } from '../parts/page.tsx'

/** All rules of the project: it has at most 50. */
export const useRules = () => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['moderation rules', path.projectId],
    queryFn: () => call(listModerationRules, { path, query: { limit: 50 } }),
  })
}
