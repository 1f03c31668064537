import { declareTabs } from '../areas.ts'

export const area = declareTabs({
  tabOf: 'Catalog',
  pages: [
    {
      path: 'stores',
      title: 'Stores',
      words: 'shop offers prices sale limits stock',
      load: async () => ({ Page: (await import('./stores.tsx')).List }),
    },
    { path: 'stores/new', load: async () => ({ Page: (await import('./stores.tsx')).New }) },
    {
      path: 'stores/purchases',
      title: 'Purchases',
      words: 'bought orders refund',
      load: () => import('./purchases.tsx'),
    },
    { path: 'stores/$id', load: async () => ({ Page: (await import('./stores.tsx')).One }) },
  ],
  actions: [{ title: 'New store', to: 'stores/new' }],
})
