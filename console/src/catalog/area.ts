import { Package } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Earn',
  order: 2,
  title: 'Catalog',
  icon: Package,
  words: 'items shop store inventory bundles prices',
  pages: [
    { path: 'catalog', title: 'Items', load: async () => ({ Page: (await import('./items.tsx')).List }) },
    { path: 'catalog/new', load: async () => ({ Page: (await import('./items.tsx')).New }) },
    { path: 'catalog/inventory', title: 'Inventory', load: () => import('./inventory.tsx') },
    { path: 'catalog/ledger', title: 'Inventory ledger', load: () => import('./ledger.tsx') },
    { path: 'catalog/$id', load: async () => ({ Page: (await import('./items.tsx')).One }) },
  ],
  actions: [
    { title: 'New item', to: 'catalog/new' },
    { title: 'Grant an item', to: 'catalog/inventory?do=grant', words: 'give inventory' },
  ],
})
