import type { Role } from '#server/database/cluster.ts'

/**
 * Which share of a database's connections a caller uses. `front` is what apps wait for, `back` is administration and background
 * work; a group holds several kinds of caller.
 */
export type Share =
  | { readonly group: 'front'; readonly kind: 'credentials' | 'sign-in' | 'users' | 'servers' }
  | { readonly group: 'back'; readonly kind: 'administrators' | 'workers' | 'bookings' }

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

/**
 * The share of what must be written because somebody was paid for it. It has a queue of its own, which is served before the others while it holds no
 * connection, and none is kept for it: the callers that could hold them all together are of several kinds, and the first that is done makes room.
 */
export const bookings: Share = { group: 'back', kind: 'bookings' }

/** What is left for one group when a third is kept for the other. */
export const groupLimit = (connections: number) => Math.max(1, connections - Math.ceil(connections / 3))

type Kind = Share['kind']

type Kinds = { readonly front: readonly Kind[]; readonly back: readonly Kind[]; readonly apps: Kind }

/** The kinds of caller of each group. `apps` has a third of the connections kept against administration and background work. */
export const kindsOfTenant: Kinds = {
  front: ['credentials', 'sign-in', 'users', 'servers'],
  back: ['administrators', 'workers'],
  apps: 'users',
}
export const kindsOfControl: Kinds = {
  front: ['credentials', 'sign-in'],
  back: ['administrators', 'workers'],
  apps: 'sign-in',
}

/**
 * Whether a kind of caller that has a connection of this database may have another: one is kept for each kind that has none, and a
 * third for apps against administration and background work. Where connections are few, not all that can be.
 */
export const leavesEnough = (
  connections: number,
  kinds: Kinds,
  busy: Map<string, number>,
  { group, kind }: Share,
): boolean => {
  const held = (key: string) => busy.get(key) ?? 0
  const without = (some: readonly Kind[]) => some.filter((other) => other !== kind && held(other) === 0).length
  const limit = groupLimit(connections)
  if (held(group) + Math.min(without(kinds[group]), Math.floor(limit / 2)) >= limit) return false
  const third = group === 'back' ? Math.max(0, connections - limit - Math.max(1, held(kinds.apps))) : 0
  const kept = third + without([...kinds.front, ...kinds.back])
  const most = group === 'back' ? limit : Math.floor(connections / 2)
  return held('front') + held('back') + Math.min(kept, most) < connections
}
