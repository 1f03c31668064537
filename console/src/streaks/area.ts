import { Flame } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Engage',
  order: 1,
  title: 'Streaks',
  icon: Flame,
  words: 'days in a row habit freezes',
  pages: [
    { path: 'streaks', load: async () => ({ Page: (await import('./streaks.tsx')).List }) },
    { path: 'streaks/new', load: async () => ({ Page: (await import('./streaks.tsx')).New }) },
    { path: 'streaks/$id', load: async () => ({ Page: (await import('./streaks.tsx')).One }) },
  ],
  actions: [{ title: 'New streak', to: 'streaks/new' }],
})
