import type { Role } from '#server/database/cluster.ts'
import type { Share } from '#server/database/pools.ts'

const credentials: Share = { group: 'front', kind: 'credentials' }
const signIn: Share = { group: 'front', kind: 'sign-in' }
const users: Share = { group: 'front', kind: 'users' }
const servers: Share = { group: 'front', kind: 'servers' }
const administrators: Share = { group: 'back', kind: 'administrators' }
const workers: Share = { group: 'back', kind: 'workers' }

const byRole: Readonly<Record<Role, Share>> = {
  control_anon: signIn,
  control_auth: signIn,
  control_developer: administrators,
  control_worker: workers,
  app_anon: users,
  app_user: users,
  app_rest: users,
  app_auth: signIn,
  app_server: servers,
  app_admin: administrators,
  app_dashboard: administrators,
  app_worker: workers,
}

/**
 * The share of connections that a call uses. Credential look-ups come before every request, so that no sign-in which waits for a
 * lock may stop them: they have a kind of their own.
 */
export const shareOf = (role: Role, caller: string | undefined): Share =>
  caller === 'edge' ? credentials : byRole[role]
