import { Target } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Engage',
  order: 5,
  title: 'Challenges',
  icon: Target,
  words: 'goals events seasons',
  pages: [
    { path: 'challenges', load: async () => ({ Page: (await import('./challenges.tsx')).List }) },
    { path: 'challenges/new', load: async () => ({ Page: (await import('./challenges.tsx')).New }) },
    { path: 'challenges/$id', load: async () => ({ Page: (await import('./challenges.tsx')).One }) },
  ],
  actions: [{ title: 'New challenge', to: 'challenges/new' }],
})
