import { Bug } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Build',
  order: 8,
  title: 'Diagnostics',
  icon: Bug,
  words: 'errors crashes exceptions issues reports stack bugs health',
  pages: [
    { path: 'diagnostics', load: () => import('./issues.tsx') },
    { path: 'diagnostics/$id', load: () => import('./issue.tsx') },
  ],
})
