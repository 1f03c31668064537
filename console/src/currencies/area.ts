import { Coins } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Earn',
  order: 1,
  title: 'Currencies',
  icon: Coins,
  words: 'coins gems energy balances wallet ledger',
  pages: [
    {
      path: 'currencies',
      title: 'Currencies',
      load: async () => ({ Page: (await import('./currencies.tsx')).List }),
    },
    { path: 'currencies/new', load: async () => ({ Page: (await import('./currencies.tsx')).New }) },
    { path: 'currencies/ledger', title: 'Ledger', load: () => import('./ledger.tsx') },
    { path: 'currencies/integrity', title: 'Integrity', load: () => import('./integrity.tsx') },
    { path: 'currencies/$id', load: async () => ({ Page: (await import('./currencies.tsx')).One }) },
  ],
  actions: [
    { title: 'New currency', to: 'currencies/new' },
    { title: 'Give a currency', to: 'currencies/ledger?give=yes', words: 'grant coins credit' },
  ],
})
