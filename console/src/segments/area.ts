import { Shapes } from 'lucide-react'
import { listSegments } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { declareArea } from '../areas.ts'
import { counted } from '../parts/states.tsx'

export const area = declareArea({
  group: 'Users',
  order: 2,
  title: 'Segments',
  icon: Shapes,
  words: 'audience cohort target rules',
  pages: [
    { path: 'segments', load: () => import('./segments.tsx') },
    { path: 'segments/new', load: async () => ({ Page: (await import('./builder.tsx')).New }) },
    { path: 'segments/$id', load: () => import('./segment.tsx') },
    { path: 'segments/$id/edit', load: async () => ({ Page: (await import('./builder.tsx')).Edit }) },
  ],
  actions: [{ title: 'New segment', to: 'segments/new' }],
  find: {
    title: 'Segments',
    rows: async (projectId, text) => {
      const { data } = await call(listSegments, { path: { projectId }, query: { limit: 100 } })
      const wanted = text.toLowerCase()
      return data
        .filter(({ name, key }) => `${name} ${key}`.toLowerCase().includes(wanted))
        .slice(0, 4)
        .map((one) => ({
          id: one.id,
          title: one.name,
          about: counted(one.member_count, 'user'),
          to: `segments/${one.id}`,
        }))
    },
  },
})
