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
  ],
})
