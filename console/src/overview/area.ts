import { LayoutDashboard } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: '',
  order: 1,
  title: 'Overview',
  icon: LayoutDashboard,
  words: 'home dashboard start usage',
  pages: [{ path: '', load: () => import('./overview.tsx') }],
})
