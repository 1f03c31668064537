import { Bell } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Reach',
  order: 1,
  title: 'Push',
  icon: Bell,
  words: 'notifications campaigns messages',
  pages: [
    { path: 'push', title: 'Campaigns', load: async () => ({ Page: (await import('./campaigns.tsx')).List }) },
    {
      path: 'push/automations',
      title: 'Automations',
      load: async () => ({ Page: (await import('./automations.tsx')).List }),
    },
    {
      path: 'push/templates',
      title: 'Templates',
      load: async () => ({ Page: (await import('./templates.tsx')).List }),
    },
    { path: 'push/deliveries', title: 'Deliveries', load: () => import('./deliveries.tsx') },
    { path: 'push/new', load: () => import('./composer.tsx') },
    { path: 'push/$id', load: async () => ({ Page: (await import('./campaigns.tsx')).One }) },
    { path: 'push/automations/new', load: async () => ({ Page: (await import('./automations.tsx')).New }) },
    { path: 'push/automations/$id', load: async () => ({ Page: (await import('./automations.tsx')).One }) },
    { path: 'push/templates/new', load: async () => ({ Page: (await import('./templates.tsx')).New }) },
    { path: 'push/templates/$id', load: async () => ({ Page: (await import('./templates.tsx')).One }) },
  ],
  actions: [
    { title: 'New push campaign', to: 'push/new', words: 'send notification' },
    { title: 'New push automation', to: 'push/automations/new' },
  ],
})
