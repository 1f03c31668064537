import { Languages } from 'lucide-react'
import { adminListContent } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Build',
  order: 3.5,
  title: 'Content',
  icon: Languages,
  words: 'texts articles banners translations languages localization localisation cms publish versions',
  pages: [
    { path: 'content', load: () => import('./entries.tsx') },
    { path: 'content/new', load: () => import('./new.tsx') },
    { path: 'content/$key', load: () => import('./entry.tsx') },
  ],
  actions: [{ title: 'New entry of content', to: 'content/new', words: 'text article banner' }],
  find: {
    title: 'Content',
    rows: async (projectId, search) => {
      const { data } = await call(adminListContent, { path: { projectId }, query: { limit: 6, search } })
      return data.map(({ id, key, content_type }) => ({
        id,
        title: key,
        about: content_type,
        to: `content/${encodeURIComponent(key)}`,
      }))
    },
  },
})
