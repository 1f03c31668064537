import { UsersRound } from 'lucide-react'
import { listGroups } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { declareArea } from '../areas.ts'
import { counted } from '../parts/states.tsx'

export const area = declareArea({
  group: 'Users',
  order: 3,
  title: 'Groups',
  icon: UsersRound,
  words: 'teams clubs guilds members',
  pages: [
    { path: 'groups', load: () => import('./groups.tsx') },
    { path: 'groups/$id', load: () => import('./group.tsx') },
  ],
  find: {
    title: 'Groups',
    rows: async (projectId, text) => {
      const { data } = await call(listGroups, { path: { projectId }, query: { search: text, limit: 4 } })
      return data.map((one) => ({
        id: one.id,
        title: one.name,
        about: counted(one.member_count, 'member'),
        to: `groups/${one.id}`,
      }))
    },
  },
})
