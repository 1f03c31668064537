// What is asked of a project of any size: every GET of the OpenAPI document whose parameters are known here, and cases that it cannot tell.

export type Call = {
  readonly name: string
  readonly kind: 'client read' | 'read' | 'page' | 'write' | 'heavy'
  readonly method: string
  readonly path: string
  readonly body?: unknown
  /** A user through the developer's own server; session: one who has signed in. */
  readonly as: 'developer' | 'user' | 'session'
}

/** Ids of a filled project, by the parameter that takes them. */
export type Known = {
  readonly size: number
  readonly projectId: string
  readonly userId: string
  readonly others: readonly string[]
  readonly values: Readonly<Record<string, string>>
}

/** Keys that identify a definition, by the path before the parameter. */
const keys: readonly (readonly [path: RegExp, key: string])[] = [
  [/\/streaks\/\{/, 'daily'],
  [/\/xp\/rules\/\{/, 'lesson'],
  [/\/leaderboards\/\{/, 'lessons'],
  [/\/segments\/\{/, 'chosen'],
  [/\/roles\/\{/, 'editor'],
  [/\/client\/achievements\/\{/, 'six-lessons'],
  [/\/currencies\/\{/, 'COINS'],
  [/\/catalog\/\{/, 'potion'],
  [/\/inventory\/\{/, 'potion'],
  [/\/entitlements\/\{/, 'pro'],
  [/\/client\/referrals\/\{/, 'SPRING-24'],
]

/** A GET that must have a query. */
const queries: Readonly<Record<string, string>> = {
  '/admin/projects/{projectId}/friends': '?user_id={userId}',
  '/client/messaging/messages/search': '?q=lessons',
  '/client/users/search': '?q=Qu',
  '/client/roles/check': '?permission=articles.edit',
}

/** Not measured one by one: streams have a case of their own, and these count against limits or are no lists of this project. */
const left = /export|jwks|\/health|provisioning-status|audit-events\/verify/

/** Refused to a server key. */
const own = /\/client\/(auth\/sessions|users\/search)$/

type Document = { readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>> }

const filled = (path: string, known: Known): string | null => {
  let isKnown = true
  const text = path.replace(/\{(\w+)\}/g, (whole, name: string, at: number) => {
    const value =
      name === 'projectId'
        ? known.projectId
        : name === 'userId'
          ? known.userId
          : (known.values[`${path.slice(0, at)}`] ??
            keys.find(([start]) => start.test(path.slice(0, at + 1)))?.[1] ??
            known.values[name])
    if (value === undefined) isKnown = false
    return value ?? whole
  })
  return isKnown ? text : null
}

/** Every GET of the document, and those whose parameters nobody knows here. */
export const documented = (document: Document, known: Known): { calls: Call[]; unknown: string[] } => {
  const calls: Call[] = []
  const unknown: string[] = []
  for (const [versioned, methods] of Object.entries(document.paths)) {
    const path = versioned.replace(/^\/v1/, '')
    const isClient = path.startsWith('/client/')
    if (!methods['get'] || left.test(path) || !(isClient || path.startsWith('/admin/projects/{projectId}'))) continue
    const text = filled(path, known)
    if (text === null) unknown.push(`GET ${path}`)
    else
      calls.push({
        name: `GET ${path.replace('/admin/projects/{projectId}', 'A').replace(/^\/client/, 'C')}`,
        kind: isClient ? 'client read' : 'read',
        method: 'GET',
        path: text + (queries[path] ?? '').replace('{userId}', known.userId),
        as: own.test(path) ? 'session' : isClient ? 'user' : 'developer',
      })
  }
  return { calls, unknown }
}

const eventCount = (value: number) => ({ type: 'event_count', event_name: 'lesson_completed', target_value: value })

/** Pages far from the beginning, searches, filters, previews, dry runs and single writes. */
export const special = ({ size, projectId, others, values }: Known): Call[] => {
  const root = `/admin/projects/${projectId}`
  const at = (share: number) => Math.floor(size * share)
  const call = (kind: Call['kind'], name: string, method: string, path: string, body?: unknown): Call => ({
    name: `${method} ${path.startsWith('/client') ? 'C' : 'A'} ${name}`,
    kind,
    method,
    path: path.startsWith('/client') ? path : root + path,
    as: path.startsWith('/client') ? 'user' : 'developer',
    ...(body === undefined ? {} : { body }),
  })
  const get = (name: string, path: string) => call('page', name, 'GET', path)
  return [
    get('users at half of them', `/users?offset=${at(0.5)}`),
    get('users at nine tenths', `/users?offset=${at(0.9)}`),
    get('users, the last page', `/users?offset=${size - 50}`),
    get('sessions at nine tenths', `/sessions/list?offset=${at(0.9)}`),
    get('inventory at nine tenths', `/inventory?offset=${at(0.45)}`),
    get('users, one letter', '/users?search=q'),
    get('users, two letters', '/users?search=qu'),
    get('users, three letters', '/users?search=qui'),
    get('users, an address', '/users?search=user4242%40'),
    get('users, found nowhere', '/users?search=zqxjzqxj'),
    get('users, found in half of them', '/users?search=.example'),
    get('users of a segment', `/users?segment_id=${values['segmentId']}`),
    get('members of a segment at nine tenths', `/segments/chosen/members?offset=${at(0.225)}`),
    get('participants at nine tenths', `/challenges/${values['challengeId']}/participants?offset=${at(0.225)}`),
    get('events of a name', '/events?event_name=purchase_made'),
    get('feeds at nine tenths', `/feeds?offset=${at(2.7)}`),
    get('feeds of an action', '/feeds?action=lesson.shared'),
    get('conversations at nine tenths', `/messaging/conversations?offset=${at(0.45)}`),
    get('levels of trust at nine tenths', `/moderation/trust?offset=${at(0.09)}`),
    get('the queue of moderation, approved', '/moderation/queue?status=approved'),
    get('groups, three letters', '/groups?search=999'),
    get('groups, one letter', '/groups?search=9'),
    get('streaks that are broken', '/streaks/daily/users?status=broken'),
    call('heavy', 'preview of a property', 'POST', '/segments/preview', {
      rules: { source: 'property', column: 'plan', op: 'eq', value: 'pro' },
    }),
    call('heavy', 'preview of a count of events', 'POST', '/segments/preview', {
      rules: { source: 'event', event_name: 'lesson_completed', measure: 'count', op: 'gte', value: 6 },
    }),
    call('heavy', 'dry run by a count of events', 'POST', '/achievements/dry-run', { criteria: eventCount(5) }),
    call('heavy', 'dry run by XP', 'POST', '/achievements/dry-run', {
      criteria: { type: 'xp_threshold', target_value: 64 },
    }),
    call('heavy', 'what a rule of XP would give', 'POST', '/xp/rules/lesson/simulate', {
      since: new Date(Date.now() - 86_400_000).toISOString(),
    }),
    call('heavy', 'other rules of a streak', 'POST', '/streaks/daily/simulate', { definition: { min_count: 2 } }),
    call('heavy', 'what a challenge would give', 'POST', `/challenges/${values['challengeId']}/simulate`, {}),
    call('heavy', 'cohort of 100', 'POST', '/users/cohort', { count: 100 }),
    call('heavy', 'bulk update of 1000', 'POST', '/users/bulk-update', {
      updates: others.map((user_id, n) => ({ user_id, properties: { seen: n } })),
    }),
    call('write', 'user', 'POST', '/users', {}),
    call('write', 'event', 'POST', '/client/events', { event_name: 'lesson_completed' }),
    call('write', 'profile', 'PATCH', '/client/users/me', { properties: { mood: 'calm' } }),
    call('write', 'score', 'POST', '/client/leaderboards/lessons/scores', { score: 3 }),
  ]
}
