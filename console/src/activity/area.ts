import { Activity } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: '',
  order: 2,
  title: 'Activity',
  icon: Activity,
  words: 'events log stream live',
  pages: [
    { path: 'events', title: 'Events', load: () => import('./events.tsx') },
    {
      path: 'event-definitions',
      title: 'Definitions',
      words: 'schema names block sample',
      load: () => import('./definitions.tsx'),
    },
    { path: 'operations', title: 'Operations', words: 'jobs progress replay', load: () => import('./operations.tsx') },
  ],
  actions: [
    { title: 'Send an event', to: 'events?send=yes' },
    { title: 'Replay events', to: 'operations?replay=yes' },
  ],
})
