import { declareTabs } from '../areas.ts'

export const area = declareTabs({
  tabOf: 'Leaderboards',
  pages: [
    {
      path: 'leagues',
      title: 'Leagues',
      words: 'tiers cohorts promotion relegation season ladder',
      load: async () => ({ Page: (await import('./leagues.tsx')).List }),
    },
    { path: 'leagues/new', load: async () => ({ Page: (await import('./leagues.tsx')).New }) },
    { path: 'leagues/$id', load: async () => ({ Page: (await import('./leagues.tsx')).One }) },
  ],
  actions: [{ title: 'New league', to: 'leagues/new' }],
})
