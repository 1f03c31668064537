import { declaredCodes } from '#server/http/openapi.ts'
import type { Area, Route } from '#server/http/route.ts'
import { mayStreamEvents, streamedTypes } from '#server/http/stream.ts'
import { credentialsOf, isCacheable } from '#server/http/vary.ts'

const nameOf = (route: Route) => `${route.method} ${route.path}`

/** Whether an answer is another server's, passed on as it is. */
export const isRelayed = (route: Route, headers: Record<string, unknown>): boolean =>
  route.relays === true && headers['content-type'] !== undefined

/** The headers that select an answer which caches may store, and that its Vary does not name. */
const unvariedOf = (route: Route, headers: Record<string, unknown>): string[] => {
  if (!isCacheable(headers)) return []
  const vary = Object.entries(headers).find(([name]) => name.toLowerCase() === 'vary')?.[1]
  const named = String(vary ?? '')
    .toLowerCase()
    .split(/\s*,\s*/)
  return credentialsOf(route).filter((name) => !named.includes(name.toLowerCase()))
}

const takesBody = (route: Route) => Boolean(route.body ?? route.documentedBody ?? route.uploads)

/** How HTTP refuses a body that no route reads: clients that follow the document send none, so that routes without a body do not declare it. */
const refusedUnread = new Set(['PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'])

/** What an answer breaks of its route's declaration, or null. */
export const problemOf = (
  route: Route,
  area: Area,
  status: number,
  body: string,
  headers: Record<string, unknown> = {},
): string | null => {
  const unvaried = unvariedOf(route, headers)
  if (unvaried.length > 0) return `${nameOf(route)} may be stored by caches, and its Vary lacks ${unvaried.join(', ')}`
  if (isRelayed(route, headers)) return null
  const schema = route.replies[status]
  if (schema && mayStreamEvents(schema) && String(headers['content-type']).startsWith('text/event-stream')) return null
  const types = schema && streamedTypes(schema)
  if (types) {
    const type = String(headers['content-type']).split(';')[0] ?? ''
    return types.includes(type) ? null : `${nameOf(route)} streams ${type}, which is not declared`
  }
  if (status === 101 && schema) return body === '' ? null : `${nameOf(route)} answers 101 with a body`
  // a compressed answer is the same text that others get as it is
  if (schema && headers['content-encoding'] !== undefined) return null
  if (status === 304 && schema) return body === '' ? null : `${nameOf(route)} answers 304 with a body`
  const parsed: unknown = JSON.parse(body)
  if (schema) {
    const result = schema.safeParse(parsed)
    return result.success
      ? null
      : `${nameOf(route)} ${status}: ${JSON.stringify(result.error.issues).slice(0, 800)} in ${body.slice(0, 300)}`
  }
  const code = (parsed as { error?: { code?: string } }).error?.code ?? '?'
  if (refusedUnread.has(code) && !takesBody(route)) return null
  return declaredCodes(area, route).get(status)?.has(code)
    ? null
    : `${nameOf(route)} answers ${status} ${code}, which is not declared`
}

/** Codes that every route of a kind shares: seen once anywhere is seen. */
const shared = new Set([
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'SERVICE_UNAVAILABLE',
  'TENANT_UNAVAILABLE',
  'TENANT_MIGRATION_PENDING',
  'RATE_LIMITED',
])

/** Declared answers that no test of the run has seen. `seen` has a line {route, status, code} each. */
export const unseenCodes = (areas: readonly Area[], seen: string): string[] => {
  const lines = new Set<string>()
  const anywhere = new Set<string>()
  for (const line of seen.split('\n').filter(Boolean)) {
    const { route, status, code } = JSON.parse(line) as { route: string; status: number; code: string }
    lines.add(`${route} ${status} ${code}`)
    anywhere.add(code)
  }
  const unseen: string[] = []
  for (const area of areas) {
    for (const route of area.routes) {
      for (const status of Object.keys(route.replies)) {
        if (!lines.has(`${nameOf(route)} ${status} -`)) unseen.push(`${nameOf(route)} ${status}`)
      }
      for (const [status, codes] of declaredCodes(area, route)) {
        for (const code of codes) {
          const isSeen = shared.has(code) ? anywhere.has(code) : lines.has(`${nameOf(route)} ${status} ${code}`)
          if (!isSeen) unseen.push(`${nameOf(route)} ${status} ${code}`)
        }
      }
    }
  }
  return unseen
}

/** What tests of all routes see at each of them: callers, unavailable, failures, attack. */
const seenElsewhere =
  /^(401|413|415|429|500|503) |^403 (DELEGATION_NOT_ALLOWED|PROJECT_FORBIDDEN|ROLE_FORBIDDEN|SCOPE_REQUIRED)$|^400 INVALID_BODY$|^404 USER_NOT_FOUND$/

/** Those of one part of the paths, as far as the tests of its own area see them. */
export const unseenCodesOf = (part: string, areas: readonly Area[], seen: string): string[] =>
  unseenCodes(areas, seen).filter((line) => {
    const [, path = '', ...answer] = line.split(' ')
    return path.includes(part) && !seenElsewhere.test(answer.join(' '))
  })
