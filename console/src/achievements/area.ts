import { Award } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Engage',
  order: 3,
  title: 'Achievements',
  icon: Award,
  words: 'badges trophies unlocks',
  pages: [
    { path: 'achievements', load: async () => ({ Page: (await import('./achievements.tsx')).List }) },
    { path: 'achievements/new', load: async () => ({ Page: (await import('./achievements.tsx')).New }) },
    { path: 'achievements/$id', load: async () => ({ Page: (await import('./achievements.tsx')).One }) },
  ],
  actions: [{ title: 'New achievement', to: 'achievements/new' }],
})
