import { CreditCard } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Earn',
  order: 3,
  title: 'Subscriptions',
  icon: CreditCard,
  words: 'monetization revenuecat entitlements paywalls offerings products purchases trials',
  pages: [
    { path: 'subscriptions', title: 'Active', load: () => import('./subscriptions.tsx') },
    { path: 'subscriptions/entitlements', title: 'Entitlements', load: () => import('./entitlements.tsx') },
    { path: 'subscriptions/plan', title: 'Plan and drift', load: () => import('./plan.tsx') },
    { path: 'subscriptions/edit', load: () => import('./edit.tsx') },
    { path: 'subscriptions/$id', load: () => import('./subscription.tsx') },
  ],
  actions: [
    { title: 'Grant an entitlement', to: 'subscriptions/entitlements?grant=yes', words: 'give access pro' },
    { title: 'Edit what is sold', to: 'subscriptions/edit', words: 'products offerings paywalls' },
  ],
})
