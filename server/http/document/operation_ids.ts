import { z } from 'zod'
import type { Area, OfDefinition, Route } from '#server/http/route.ts'

/** First words of a last segment that say what an operation does, rather than what it is about. */
const verbs = new Set(
  (
    'accept adopt advance aggregate apply approve award backfill block broadcast cancel check claim close commit complete consume credit decline duplicate end ' +
    'escalate evaluate explain export find grant heartbeat import invoke join leave link login logout merge pause preview presign qualify ramp rebuild ' +
    'recompute redeem refresh reject replay reprovision request reset restore resume revert reverse revoke rollback rotate schedule search send simulate ' +
    'skip spend start test toggle transfer unlink upload verify'
  ).split(' '),
)

/** Segments that only group others: messages are messages without "messaging". */
const silent = new Set(['messaging', 'client', 'admin', 'v1'])

/** Nouns whose plural is their singular, or that have none. */
const uncountable = /(stats|analytics|media|xp|sms|status|news|address|canvas|history|usage)$/i

export const singular = (word: string): string => {
  if (uncountable.test(word)) return word
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`
  if (/(ss|sh|ch|x)es$/.test(word)) return word.slice(0, -2)
  return word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word
}

export const pascal = (words: readonly string[]): string =>
  words
    .flatMap((word) => word.split(/[^A-Za-z0-9]+/))
    .filter(Boolean)
    .map(upperFirst)
    .join('')

export const upperFirst = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1)

const lowerFirst = (text: string) => text.slice(0, 1).toLowerCase() + text.slice(1)

/** Whether a route answers with a list of rows. */
const isList = (route: Route): boolean => {
  const reply = route.replies[200]
  const rows = reply instanceof z.ZodObject ? reply.shape['data'] : null
  return rows instanceof z.ZodArray
}

const byMethod = { POST: 'create', PUT: 'set', PATCH: 'update', DELETE: 'delete' }

const isParameter = (segment = '') => segment.startsWith(':')

const plural = (noun: string) => {
  if (/[^aeiou]y$/.test(noun)) return `${noun.slice(0, -1)}ies`
  return /(s|sh|ch|x)$/.test(noun) ? `${noun}es` : `${noun}s`
}

const ofDefinition = ({ kind, verb }: OfDefinition, suffix = ''): string => {
  const noun = pascal([kind]) + suffix
  return verb + (verb === 'list' ? plural(noun) : noun)
}

/** Parent, child, grandchild: the last two say enough, as in CampaignDeliveries. */
const most = 3

/**
 * The name of an operation without its part: a verb and a noun. `POST /client/groups/:groupId/join` is joinGroup,
 * `GET /client/groups/:groupId/members` listGroupMembers.
 */
const ruled = (route: Route): string => {
  if (route.definition) return ofDefinition(route.definition)
  const segments = route.path
    .split('/')
    .filter((segment) => segment && segment !== ':projectId' && !silent.has(segment))
    .filter((segment, index) => !(segment === 'projects' && index === 0 && route.path.includes(':projectId/')))
  const last = segments.at(-1) ?? ''
  const nouns = segments
    .slice(0, -1)
    .flatMap((segment, index) =>
      isParameter(segment) ? [] : [isParameter(segments[index + 1]) ? singular(segment) : segment],
    )
  if (isParameter(last)) {
    const noun = pascal(nouns.map((word) => singular(word)).slice(-most))
    return (route.method === 'GET' ? 'get' : byMethod[route.method]) + noun
  }
  const [first = '', ...rest] = last.split('-')
  const isOne = isParameter(segments.at(-2))
  if (verbs.has(first) && route.method !== 'DELETE' && route.method !== 'PUT') {
    const about = isOne
      ? nouns.map((word) => singular(word))
      : [...nouns.slice(0, -1).map((word) => singular(word)), ...nouns.slice(-1)]
    return lowerFirst(pascal([first, ...about.slice(-most), ...rest]))
  }
  const above = nouns.map((word) => singular(word)).slice(1 - most)
  if (route.method === 'GET') return `${isList(route) ? 'list' : 'get'}${pascal([...above, last])}`
  return `${byMethod[route.method]}${pascal([...above, route.method === 'POST' ? singular(last) : last])}`
}

const isOfAdmin = (route: Route) => /^(\/v1)?\/admin\//.test(route.path)

/**
 * The ids of all operations. A route may name its own; the others follow the rule. Where an end user and an administrator do the same, the
 * administrator's routes of a definition are about the definition (`listAchievementDefinitions`), and others have the prefix `admin`
 * (`adminListGroupMembers`).
 */
export const operationIds = (areas: readonly Area[]): ReadonlyMap<Route, string> => {
  const routes = areas.flatMap((area) => area.routes)
  const ids = new Map(routes.map((route) => [route, route.operationId ?? ruled(route)] as const))
  const ofOthers = new Set(routes.filter((route) => !isOfAdmin(route)).map((route) => ids.get(route)))
  const clashing = routes.filter((route) => !route.operationId && isOfAdmin(route) && ofOthers.has(ids.get(route)))
  const kinds = new Set(clashing.flatMap(({ definition }) => definition?.kind ?? []))
  for (const route of routes) {
    if (route.operationId) continue
    if (route.definition && kinds.has(route.definition.kind))
      ids.set(route, ofDefinition(route.definition, 'Definition'))
    else if (clashing.includes(route)) ids.set(route, `admin${upperFirst(ids.get(route) ?? '')}`)
  }
  return ids
}
