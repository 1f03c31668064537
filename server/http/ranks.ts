import { refusal } from '#server/errors.ts'

/** What a developer may do in an organization and its projects, lowest first. */
export const organizationRoles = ['viewer', 'developer', 'admin', 'owner'] as const
export type OrganizationRole = (typeof organizationRoles)[number]

/** What of an area and a route says who may call it. */
type Ranked = { readonly rank?: OrganizationRole }
type RankedRoute = Ranked & {
  readonly method: string
  readonly caller: { readonly guards?: 'project' | 'organization' }
}

/**
 * The lowest role that may call a route; null for a route that no role guards. A viewer has every GET and nothing else, not even a POST that only
 * reads; anything else is a developer's in a project and an admin's in an organization, unless the route or its area declares a rank.
 */
export const rankOf = (area: Ranked, route: RankedRoute): OrganizationRole | null => {
  const { guards } = route.caller
  if (!guards) return null
  if (route.rank) return route.rank
  if (route.method === 'GET') return 'viewer'
  return area.rank ?? (guards === 'organization' ? 'admin' : 'developer')
}

export const isRanked = (role: OrganizationRole, least: OrganizationRole): boolean =>
  organizationRoles.indexOf(role) >= organizationRoles.indexOf(least)

/** Refuses a member whose role is too low for a route. */
export const checkRank = (area: Ranked, route: RankedRoute, role: OrganizationRole): void => {
  const least = rankOf(area, route)
  if (least === null || isRanked(role, least)) return
  throw refusal(403, 'ROLE_FORBIDDEN', `This needs the role ${least} of the organization, or a higher one.`, {
    required: least,
    role,
  })
}

/** The code with which a route may refuse a member: none where every member may call it. */
export const rankRefusals = (area: Ranked, route: RankedRoute): readonly string[] => {
  const least = rankOf(area, route)
  return least === null || least === 'viewer' ? [] : ['ROLE_FORBIDDEN']
}
