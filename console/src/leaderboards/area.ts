import { Trophy } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Engage',
  order: 4,
  title: 'Leaderboards',
  icon: Trophy,
  words: 'ranking scores boards',
  pages: [
    {
      path: 'leaderboards',
      title: 'Leaderboards',
      load: async () => ({ Page: (await import('./leaderboards.tsx')).List }),
    },
    { path: 'leaderboards/new', load: async () => ({ Page: (await import('./leaderboards.tsx')).New }) },
    { path: 'leaderboards/$id', load: async () => ({ Page: (await import('./leaderboards.tsx')).One }) },
  ],
  actions: [{ title: 'New leaderboard', to: 'leaderboards/new' }],
})
