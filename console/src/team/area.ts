import { Network } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Project',
  order: 2,
  title: 'Team and audit',
  icon: Network,
  words: 'members colleagues invite role history',
  pages: [
    { path: 'team', title: 'Members', load: () => import('./members.tsx') },
    { path: 'team/audit', title: 'Audit', words: 'who changed what trail log', load: () => import('./audit.tsx') },
  ],
})
