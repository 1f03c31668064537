import { declareTabs } from '../areas.ts'

export const area = declareTabs({
  tabOf: 'Settings',
  before: 'settings/danger',
  pages: [
    {
      path: 'settings/sign-in',
      title: 'Sign-in',
      words: 'oauth openid oidc google apple github login redirect provider',
      load: () => import('./providers.tsx'),
    },
  ],
})
