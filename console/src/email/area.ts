import { Mail } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Reach',
  order: 2,
  title: 'Email',
  icon: Mail,
  words: 'mail campaigns newsletter bounce',
  pages: [
    { path: 'email', title: 'Campaigns', load: async () => ({ Page: (await import('./campaigns.tsx')).List }) },
    {
      path: 'email/templates',
      title: 'Templates',
      load: async () => ({ Page: (await import('./templates.tsx')).List }),
    },
    { path: 'email/messages', title: 'Messages', load: () => import('./messages.tsx') },
    {
      path: 'email/suppressions',
      title: 'Suppressions',
      words: 'bounce unsubscribe blocked',
      load: () => import('./suppressions.tsx'),
    },
    { path: 'email/new', load: async () => ({ Page: (await import('./campaigns.tsx')).New }) },
    { path: 'email/$id', load: async () => ({ Page: (await import('./campaigns.tsx')).One }) },
    { path: 'email/templates/new', load: async () => ({ Page: (await import('./templates.tsx')).New }) },
    { path: 'email/templates/$id', load: async () => ({ Page: (await import('./templates.tsx')).One }) },
  ],
  actions: [
    { title: 'New email campaign', to: 'email/new' },
    { title: 'New email template', to: 'email/templates/new' },
  ],
})
