import { SlidersHorizontal } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Build',
  order: 3,
  title: 'Config',
  icon: SlidersHorizontal,
  words: 'remote config values settings of the app keys parameters',
  pages: [{ path: 'config', load: () => import('./config.tsx') }],
  actions: [{ title: 'New config key', to: 'config', words: 'value setting' }],
})
