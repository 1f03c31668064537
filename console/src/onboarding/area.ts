import { Milestone } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Engage',
  order: 6,
  title: 'Onboarding, referrals',
  icon: Milestone,
  words: 'flows funnel invite promo codes',
  pages: [
    { path: 'onboarding', title: 'Flows', load: async () => ({ Page: (await import('./flows.tsx')).List }) },
    { path: 'onboarding/new', load: async () => ({ Page: (await import('./flows.tsx')).New }) },
    {
      path: 'onboarding/codes',
      title: 'Referral codes',
      load: async () => ({ Page: (await import('./codes.tsx')).List }),
    },
    { path: 'onboarding/codes/new', load: async () => ({ Page: (await import('./codes.tsx')).New }) },
    { path: 'onboarding/codes/$id', load: async () => ({ Page: (await import('./codes.tsx')).One }) },
    { path: 'onboarding/$id', load: async () => ({ Page: (await import('./flows.tsx')).One }) },
  ],
  actions: [
    { title: 'New onboarding flow', to: 'onboarding/new' },
    { title: 'New promo code', to: 'onboarding/codes/new', words: 'referral coupon' },
  ],
})
