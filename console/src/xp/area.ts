import { Zap } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Engage',
  order: 2,
  title: 'XP and levels',
  icon: Zap,
  words: 'experience points',
  pages: [
    { path: 'xp', title: 'Rules', load: async () => ({ Page: (await import('./rules.tsx')).List }) },
    { path: 'xp/new', load: async () => ({ Page: (await import('./rules.tsx')).New }) },
    { path: 'xp/levels', title: 'Levels', load: () => import('./levels.tsx') },
    { path: 'xp/boosts', title: 'Boosts', load: async () => ({ Page: (await import('./boosts.tsx')).List }) },
    { path: 'xp/boosts/new', load: async () => ({ Page: (await import('./boosts.tsx')).New }) },
    { path: 'xp/boosts/$id', load: async () => ({ Page: (await import('./boosts.tsx')).One }) },
    { path: 'xp/ledger', title: 'Ledger', load: () => import('./ledger.tsx') },
    { path: 'xp/$id', load: async () => ({ Page: (await import('./rules.tsx')).One }) },
  ],
  actions: [
    { title: 'New XP rule', to: 'xp/new' },
    { title: 'New XP boost', to: 'xp/boosts/new' },
    { title: 'Give XP', to: 'xp/ledger?give=yes', words: 'grant points' },
  ],
})
