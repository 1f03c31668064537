import { declareTabs } from '../areas.ts'

export const area = declareTabs({
  tabOf: 'Activity',
  pages: [
    {
      path: 'diagnostics',
      title: 'Diagnostics',
      words: 'errors crashes exceptions issues reports stack bugs',
      load: () => import('./issues.tsx'),
    },
    { path: 'diagnostics/$id', load: () => import('./issue.tsx') },
  ],
})
