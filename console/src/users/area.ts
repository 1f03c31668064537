import { Users } from 'lucide-react'
import { listUsers } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { declareArea } from '../areas.ts'
import { nameOf } from '../parts/users.tsx'

export const area = declareArea({
  group: 'Users',
  order: 1,
  title: 'Users',
  icon: Users,
  words: 'people accounts players customers',
  pages: [
    { path: 'users', title: 'Users', load: () => import('./users.tsx') },
    { path: 'users/$userId', load: () => import('./user.tsx') },
    {
      path: 'roles',
      title: 'Roles',
      words: 'permissions moderators',
      load: async () => ({ Page: (await import('./roles.tsx')).List }),
    },
    { path: 'roles/new', load: async () => ({ Page: (await import('./roles.tsx')).New }) },
    { path: 'roles/$id', load: async () => ({ Page: (await import('./roles.tsx')).One }) },
    { path: 'sessions', title: 'Sessions', words: 'devices durations active', load: () => import('./sessions.tsx') },
  ],
  actions: [
    { title: 'Add user', to: 'users?add=yes', words: 'new create' },
    { title: 'New role', to: 'roles/new' },
  ],
  find: {
    title: 'Users',
    rows: async (projectId, text) => {
      const { data } = await call(listUsers, { path: { projectId }, query: { search: text, limit: 6 } })
      return data.map((user) => ({
        id: user.id,
        title: nameOf(user),
        about: user.email ?? user.external_id ?? 'anonymous',
        to: `users/${user.id}`,
      }))
    },
  },
})
