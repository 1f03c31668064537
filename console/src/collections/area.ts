import { Database } from 'lucide-react'
import { listCollections } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Build',
  order: 1,
  title: 'Collections',
  icon: Database,
  words: 'tables database rows columns data schema sql',
  pages: [
    { path: 'collections', title: 'Collections', load: () => import('./collections.tsx') },
    { path: 'collections/new', load: () => import('./new.tsx') },
    { path: 'collections/$name', load: () => import('./rows.tsx') },
    { path: 'collections/$name/columns', load: () => import('./columns.tsx') },
    { path: 'collections/$name/access', load: () => import('./access.tsx') },
    { path: 'collections/$name/indexes', load: () => import('./indexes.tsx') },
    { path: 'collections/$name/api', load: () => import('./api.tsx') },
  ],
  actions: [{ title: 'New collection', to: 'collections/new', words: 'table' }],
  find: {
    title: 'Collections',
    rows: async (projectId, text) => {
      const { data } = await call(listCollections, { path: { projectId }, query: { limit: 200 } })
      return data
        .filter(({ name }) => name.includes(text.toLowerCase()))
        .slice(0, 6)
        .map(({ name, description }) => ({
          id: name,
          title: name,
          ...(description ? { about: description } : {}),
          to: `collections/${name}`,
        }))
    },
  },
})
