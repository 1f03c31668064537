import { Flag } from 'lucide-react'
import { listFlags } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Build',
  order: 4,
  title: 'Flags',
  icon: Flag,
  words: 'feature switches rollout percentage experiments toggles',
  pages: [
    { path: 'flags', load: () => import('./flags.tsx') },
    { path: 'flags/new', load: () => import('./new.tsx') },
    { path: 'flags/$id', load: () => import('./flag.tsx') },
  ],
  actions: [{ title: 'New flag', to: 'flags/new', words: 'feature switch' }],
  find: {
    title: 'Flags',
    rows: async (projectId, text) => {
      const { data } = await call(listFlags, { path: { projectId }, query: { limit: 100 } })
      const wanted = text.toLowerCase()
      return data
        .filter(({ key, name }) => `${key} ${name}`.toLowerCase().includes(wanted))
        .slice(0, 6)
        .map(({ id, key, name }) => ({ id, title: name, about: key, to: `flags/${key}` }))
    },
  },
})
