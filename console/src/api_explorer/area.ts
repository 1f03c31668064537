import { BookOpen } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Project',
  order: 4,
  title: 'API',
  icon: BookOpen,
  words: 'reference documentation openapi graphql try request',
  pages: [{ path: 'api', title: 'Try a call', load: () => import('./explorer.tsx') }],
})
