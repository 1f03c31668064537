import { Webhook } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Reach',
  order: 4,
  title: 'Webhooks',
  icon: Webhook,
  words: 'deliveries http callbacks failures',
  pages: [
    { path: 'webhooks', title: 'Webhooks', load: async () => ({ Page: (await import('./webhooks.tsx')).List }) },
    { path: 'webhooks/deliveries', title: 'Deliveries', load: () => import('./deliveries.tsx') },
    { path: 'webhooks/new', load: async () => ({ Page: (await import('./webhooks.tsx')).New }) },
    { path: 'webhooks/$id', load: async () => ({ Page: (await import('./webhooks.tsx')).One }) },
  ],
  actions: [{ title: 'New webhook', to: 'webhooks/new' }],
})
