import type { z } from 'zod'
import { rankRefusals } from '#server/http/ranks.ts'
import {
  type Area,
  actsForUsers,
  choosesByPart,
  invalidBodyCode,
  invalidCode,
  invalidJsonCode,
  type Route,
} from '#server/http/route.ts'
import { tokenRefusals } from '#server/http/scopes.ts'

/** A part of the path that accepts any text, such as an id or a key, is never malformed. */
const mayRefuse = (schema: z.ZodType) => !schema.safeParse('~ no id ~').success

/** Every code that a route may return, by status: its own, its caller's, its area's, and those of all routes. */
export const declaredCodes = (area: Area, route: Route): ReadonlyMap<number, ReadonlySet<string>> => {
  const codes = new Map<number, Set<string>>()
  const add = (status: number, ...names: readonly string[]) => {
    codes.set(status, new Set([...(codes.get(status) ?? []), ...names]))
  }
  for (const declared of [route.refusals ?? {}, route.caller.refusals]) {
    for (const [status, names] of Object.entries(declared)) {
      // the users administration responds with 502 where others respond with 503
      const moved: readonly string[] =
        area.unavailable === 502 && status === '503' ? [...names].filter((name) => name === 'TENANT_UNAVAILABLE') : []
      if (moved.length > 0) add(502, ...moved)
      const renamed = area.notMigrated && names.includes('TENANT_MIGRATION_PENDING') ? area.notMigrated : null
      if (renamed) add(409, renamed)
      const kept = names.filter((name) => !moved.includes(name) && !(renamed && name === 'TENANT_MIGRATION_PENDING'))
      if (kept.length > 0) add(Number(status), ...kept)
    }
  }
  const banned = actsForUsers(route) ? ['USER_BANNED'] : []
  const forbidden = [...tokenRefusals(area, route), ...rankRefusals(area, route), ...banned]
  if (forbidden.length > 0) add(403, ...forbidden)
  if (route.body) {
    add(400, invalidCode(area, route, 'body'), invalidBodyCode(area, route), invalidJsonCode(area, route))
    add(413, 'PAYLOAD_TOO_LARGE')
    add(415, 'UNSUPPORTED_MEDIA_TYPE')
  }
  if (route.uploads || (route.documentedBody && !route.body)) {
    add(413, 'PAYLOAD_TOO_LARGE')
    add(415, 'UNSUPPORTED_MEDIA_TYPE')
  }
  if (route.query) add(400, invalidCode(area, route, 'query'))
  if (route.params && Object.values(route.params).some(mayRefuse)) {
    if (!choosesByPart(area, route)) add(404, 'NOT_FOUND')
    else add(400, 'INVALID_ID')
  }
  if (route.ceiling !== 'none') add(429, 'RATE_LIMITED')
  if (route.failure) add(500, route.failure)
  return codes
}
