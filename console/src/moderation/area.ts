import { ShieldAlert } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Users',
  order: 4,
  title: 'Moderation',
  icon: ShieldAlert,
  words: 'reports abuse spam queue trust safety',
  pages: [
    { path: 'moderation', title: 'Queue', load: () => import('./queue.tsx') },
    {
      path: 'moderation-rules',
      title: 'Rules',
      words: 'keywords filter block',
      load: () => import('./rules.tsx'),
    },
    { path: 'moderation-rules/new', load: async () => ({ Page: (await import('./rule.tsx')).New }) },
    { path: 'moderation-rules/$id', load: async () => ({ Page: (await import('./rule.tsx')).One }) },
    { path: 'trust', title: 'Trust', words: 'moderators levels', load: () => import('./trust.tsx') },
  ],
  actions: [{ title: 'New moderation rule', to: 'moderation-rules/new' }],
})
