import { declareTabs } from '../areas.ts'

export const area = declareTabs({
  tabOf: 'Collections',
  pages: [
    {
      path: 'sync',
      title: 'Sync',
      words: 'offline devices clients checkpoints lag rejected conflicts',
      load: () => import('./sync.tsx'),
    },
  ],
})
