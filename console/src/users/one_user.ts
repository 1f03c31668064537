import { useQuery } from '@tanstack/react-query'
import { adminGetUser, getUserBalances } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { useParam, useProject } from '../parts/page.tsx'

/** The user of the page, and what it has of each currency. Tabs and actions read the same answers. */
export const useUser = () => {
  const { path } = useProject()
  const userId = useParam('userId')
  const user = useQuery({
    queryKey: ['user', path.projectId, userId],
    queryFn: async () => (await call(adminGetUser, { path: { ...path, userId } })).data,
  })
  const balances = useQuery({
    queryKey: ['balances', path.projectId, userId],
    queryFn: async () => (await call(getUserBalances, { path: { ...path, userId } })).data,
  })
  return { userId, path: { ...path, userId }, user, balances: balances.data }
}
export type FullUser = NonNullable<ReturnType<typeof useUser>['user']['data']>

/** A dialog about a user. */
export type DialogProps = { readonly user: FullUser; readonly isOpen: boolean; readonly onClose: () => void }
