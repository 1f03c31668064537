import { SquareTerminal } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Build',
  order: 6,
  title: 'SQL',
  icon: SquareTerminal,
  words: 'query database select tables explain plan report postgres editor',
  pages: [{ path: 'sql', load: () => import('./sql.tsx') }],
  actions: [{ title: 'New query', to: 'sql', words: 'sql select' }],
})
