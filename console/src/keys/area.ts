import { KeyRound } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Project',
  order: 1,
  title: 'Keys',
  icon: KeyRound,
  words: 'api tokens rotate secret service account',
  pages: [
    { path: 'keys', title: 'API keys', load: () => import('./api_keys.tsx') },
    { path: 'keys/tokens', title: 'My tokens', words: 'personal access token pat', load: () => import('./tokens.tsx') },
    { path: 'keys/service-accounts', title: 'Service accounts', load: () => import('./service_accounts.tsx') },
  ],
})
