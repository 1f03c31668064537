import { Settings } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Project',
  order: 3,
  title: 'Settings',
  icon: Settings,
  words: 'configuration name delete danger',
  pages: [
    {
      path: 'settings',
      title: 'General',
      words: 'name sign-in sender rest graphql',
      load: () => import('./general.tsx'),
    },
    {
      path: 'settings/integrations',
      title: 'Integrations',
      words: 'provider apns fcm smtp revenuecat',
      load: () => import('./integrations.tsx'),
    },
    { path: 'settings/domains', title: 'Domains', words: 'dns dkim spf mail', load: () => import('./domains.tsx') },
    {
      path: 'settings/usage',
      title: 'Limits and billing',
      words: 'plan tier usage quota invoice',
      load: () => import('./usage.tsx'),
    },
    {
      path: 'settings/promotion',
      title: 'Promotion',
      words: 'copy definitions staging production',
      load: () => import('./promotion.tsx'),
    },
    { path: 'settings/danger', title: 'Danger', words: 'delete transfer', load: () => import('./danger.tsx') },
  ],
})
