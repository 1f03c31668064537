import { declareTabs } from '../areas.ts'

export const area = declareTabs({
  tabOf: 'Moderation',
  pages: [
    {
      path: 'reviews',
      title: 'Reviews',
      words: 'ratings stars feedback comments replies',
      load: () => import('./reviews.tsx'),
    },
    { path: 'reviews/settings', load: () => import('./settings.tsx') },
  ],
  actions: [{ title: 'Settings of reviews', to: 'reviews/settings', words: 'publish buyers prompt app store' }],
})
