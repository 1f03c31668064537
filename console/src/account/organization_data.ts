import { useQuery } from '@tanstack/react-query'
import { listOrganizations } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'

/** The organizations of the developer, with the role in each: at most 100. */
export const useOrganizations = () =>
  useQuery({
    queryKey: ['organizations'],
    queryFn: async () => (await call(listOrganizations, { query: { limit: 100 } })).data,
  })
