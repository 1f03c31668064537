import type { FastifyRequest } from 'fastify'
import { isRanked, rankOf } from '#server/http/ranks.ts'
import type { Area, Route } from '#server/http/route.ts'

/** Areas that personal access tokens and operator tokens can be limited to, including areas that are not implemented yet. */
const namedAreas =
  'users collections events segments config flags experiments content streaks xp achievements challenges leaderboards leagues currencies catalog stores inventory entitlements referrals reviews moderation messaging groups feeds media push email webhooks functions queues sites ai analytics monetization deep_links affiliate payments onboarding roles'.split(
    ' ',
  )

/** The scope that a token needs for a route: `streaks:write`. Null: any token is accepted, or none if the route is sessionOnly. */
export const scopeOf = (area: Area, route: Route): string | null => {
  if (route.sessionOnly || route.scope === null) return null
  if (route.scope) return route.scope
  return `${area.scopeArea ?? area.stem}:${route.method === 'GET' || route.readOnly ? 'read' : 'write'}`
}

/** Like scopeOf, for one request: a dry run needs only the read scope. */
export const scopeNeeded = (area: Area, route: Route, request: Pick<FastifyRequest, 'query'>): string | null => {
  const scope = scopeOf(area, route)
  const isDryRun =
    route.query?.['dry_run'] !== undefined && (request.query as Record<string, unknown>)['dry_run'] === 'true'
  return isDryRun ? (scope?.replace(/:write$/, ':read') ?? null) : scope
}

/** `*` means every area; write includes read. */
export const allows = (scopes: readonly string[], needed: string): boolean => {
  const [area = ''] = needed.split(':')
  const enough = needed.endsWith(':read') ? ['read', 'write'] : ['write']
  return enough.some((access) => scopes.includes(`${area}:${access}`) || scopes.includes(`*:${access}`))
}

/** Every area that a scope may name: those of the list, and those of the routes that accept tokens. */
export const scopeAreas = (areas: readonly Area[]): ReadonlySet<string> =>
  new Set([
    ...namedAreas,
    ...areas.flatMap((area) =>
      area.routes
        .filter((route) => route.caller.takesTokens)
        .flatMap((route) => scopeOf(area, route)?.split(':')[0] ?? []),
    ),
  ])

/** What service accounts and operator tokens may be given: these areas, and no other. */
export const delegableAreas: ReadonlySet<string> = new Set(namedAreas)

/**
 * Whether an operator token may call a route: one of a project, of an area that a scope names, open to developers (what needs an admin holds credentials or
 * ends something), and not excluded by its declaration.
 */
export const isDelegable = (area: Area, route: Route): boolean => {
  if (route.caller.guards !== 'project' || route.neverDelegated) return false
  const scope = scopeOf(area, route)
  const least = rankOf(area, route)
  return scope !== null && delegableAreas.has(scope.split(':')[0] ?? '') && least !== null && !isRanked(least, 'admin')
}

export const isScope = (scope: string, known: ReadonlySet<string>): boolean => {
  const [, area = '', access] = /^(\*|[a-z_]+):(read|write)$/.exec(scope) ?? []
  return access !== undefined && (area === '*' || known.has(area))
}

/** The codes with which a route may refuse a token, in addition to its other refusals. */
export const tokenRefusals = (area: Area, route: Route): readonly string[] => {
  if (!route.caller.takesTokens) return []
  const never = isDelegable(area, route) ? [] : ['DELEGATION_NOT_ALLOWED']
  if (route.sessionOnly) return [...never, 'SESSION_REQUIRED']
  const scope = scopeOf(area, route)
  if (scope === null) return never
  // outside of its projects a token that is limited to some reads the account itself and lists, and changes nothing
  const isKept = scope.endsWith(':write') || route.caller.guards === 'organization'
  return [...never, 'SCOPE_REQUIRED', ...(isKept ? ['PROJECT_FORBIDDEN'] : [])]
}
