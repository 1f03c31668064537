// What is asked of a project of any size: every GET of the OpenAPI document whose parameters are known here, and cases that it cannot tell.
import type { Client } from 'pg'

export type Call = {
  readonly name: string
  /** figures: statistics, previews and simulations, which read rows or a sample of them; heavy: what changes many users. */
  readonly kind: 'client read' | 'read' | 'page' | 'write' | 'figures' | 'heavy'
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

/** One id of each kind, as a statement that finds it; of a parameter that several areas have, by the path before it. */
const ids: Readonly<Record<string, string>> = {
  challengeId: 'select id from app.challenges',
  achievementId: 'select id from app.achievements',
  groupId: 'select m.group_id from app.group_members m join bench.people p on p.id = m.app_user_id where p.n = 1',
  conversationId: 'select t.id from bench.talks t where t.n = 1',
  messageId: 'select m.id from app.messages m join bench.talks t on t.id = m.conversation_id where t.n = 1 limit 1',
  '/admin/projects/{projectId}/email/messages/': 'select id from app.email_messages limit 1',
  segmentId: 'select id from app.segments',
  eventId: 'select id from app.engagement_events order by occurred_at desc limit 1',
  '/admin/projects/{projectId}/audit-events/': 'select id from app.audit_events limit 1',
  codeId: 'select id from app.referral_codes',
  flowId: 'select id from app.onboarding_flows',
  assetId: 'select a.id from app.media_assets a join bench.people p on p.id = a.uploaded_by where p.n = 1',
  folderId: 'select f.id from app.media_folders f order by f.created_at limit 1',
  jobId: 'select j.id from app.media_jobs j limit 1',
  campaignId: `select d.campaign_id from app.campaign_deliveries d where d.channel = 'push' and d.campaign_id is not null limit 1`,
  '/admin/projects/{projectId}/email/campaigns/': `select d.campaign_id from app.campaign_deliveries d where d.channel = 'email' limit 1`,
  automationId: 'select id from app.push_automations',
  webhookId: 'select id from app.webhooks',
  deliveryId: 'select id from app.webhook_deliveries limit 1',
  subscriptionId: 'select id from app.subscriptions limit 1',
  '/admin/projects/{projectId}/collections/{name}/rows/': 'select id from collections.notes limit 1',
  '/client/collections/{name}/': 'select id from collections.notes limit 1',
}

/** What is asked for in a project that `fillProject` has filled: by a user who has something of everything. */
export const knownOf = async (admin: Client, projectId: string, size: number): Promise<Known> => {
  const { rows } = await admin.query<{ id: string }>('select p.id from bench.people p where p.n <= 1000 order by p.n')
  const values: Record<string, string> = {
    itemId: 'potion',
    event_name: 'lesson_completed',
    eventName: 'lesson_completed',
  }
  for (const [name, text] of Object.entries(ids))
    values[name] = String(Object.values((await admin.query(text)).rows[0] ?? {})[0])
  return { size, projectId, userId: rows[0]?.id ?? '', others: rows.map(({ id }) => id), values }
}

/** Keys that identify a definition, by the path before the parameter. */
const keys: readonly (readonly [path: RegExp, key: string])[] = [
  [/\/streaks\/\{/, 'daily'],
  [/\/xp\/rules\/\{/, 'lesson'],
  [/\/leaderboards\/\{/, 'lessons'],
  [/\/segments\/\{/, 'chosen'],
  [/\/roles\/\{/, 'editor'],
  [/\/ai\/prompts\/\{/, 'tutor'],
  [/\/xp\/boosts\/\{/, 'Weekend'],
  [/\/client\/achievements\/\{/, 'six-lessons'],
  [/\/currencies\/\{/, 'COINS'],
  [/\/catalog\/\{/, 'potion'],
  [/\/inventory\/\{/, 'potion'],
  [/\/entitlements\/\{/, 'pro'],
  [/\/client\/referrals\/\{/, 'SPRING-24'],
  [/\/catalogs\/\{/, 'gallery'],
  [/\/collections\/\{/, 'notes'],
  [/\/flags\/\{/, 'dark'],
  [/\/push\/templates\/\{/, 'hello'],
  [/\/email\/templates\/\{/, 'weekly'],
]

/** A GET that must have a query. */
const queries: Readonly<Record<string, string>> = {
  '/admin/projects/{projectId}/friends': '?user_id={userId}',
  '/admin/projects/{projectId}/push/deliveries': '?user_id={userId}',
  '/client/messaging/messages/search': '?q=lessons',
  '/client/users/search': '?q=Qu',
  '/client/roles/check': '?permission=articles.edit',
}

/** Not measured one by one: streams have a case of their own, and these count against limits, ask a provider, or are no lists of this project. */
const left = /export|jwks|\/health|provisioning-status|audit-events\/verify|client\/realtime|monetization\/(plan|drift)/

/** What counts rows or sums them up. */
const figures = /\/(stats|summary|anomalies|count)$|projectId}\/sessions$|events\/names$/

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
        kind: figures.test(path) ? 'figures' : isClient ? 'client read' : 'read',
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
    get('assets at nine tenths', `/media?offset=${at(0.85)}`),
    get('assets of a type', '/media?mime_type=image/png'),
    get('assets of a user', `/media?user_id=${others[0]}`),
    get('assets in a folder', `/media?folder_id=${values['folderId']}`),
    get('uploads under way', '/media?status=pending'),
    get('assets, four letters of the name', '/media?search=ab12'),
    get('jobs of media at nine tenths', `/media/jobs?offset=${at(0.45)}`),
    get('jobs of media that failed', '/media/jobs?status=failed'),
    get('objects of a prefix', '/storage/objects?prefix=photos/77'),
    get('drafts of campaigns', '/push/campaigns?status=draft'),
    get('deliveries of a campaign that failed', `/push/campaigns/${values['campaignId']}/deliveries?status=failed`),
    get('messages of mail that failed', '/email/messages?status=failed'),
    get('mail of a user', `/email/messages?user_id=${others[0]}`),
    get('suppressed addresses at nine tenths', `/email/suppressions?offset=${at(0.45)}`),
    get('suppressed addresses by reason', '/email/suppressions?reason=bounce'),
    get('one suppressed address', '/email/suppressions?address=user42@mail.example'),
    get('deliveries of a webhook that failed', `/webhooks/${values['webhookId']}/deliveries?status=failed`),
    get('subscriptions at nine tenths', `/subscriptions?offset=${at(0.09)}`),
    get('subscriptions of a product', '/subscriptions?product_id=monthly'),
    get('feeds of a user', `/feeds?user_id=${others[0]}`),
    get('feeds of a group', `/feeds?group_id=${values['groupId']}`),
    get('the trail of a target', `/audit-events?target_id=${others[4]}`),
    get('the trail of an action', '/audit-events?action=users.update'),
    get('events of a user', `/users/${others[0]}/events?event_name=app_opened`),
    call('read', 'rows of a collection by a filter', 'POST', '/collections/notes/find', {
      filter: { column: 'rank', op: 'gte', value: 0 },
    }),
    call('figures', 'subscriptions of a status', 'GET', '/subscriptions?status=active'),
    call('figures', 'whom a campaign would reach', 'POST', `/push/campaigns/${values['campaignId']}/preview`, {}),
    call('client read', 'rows of a collection by a filter', 'POST', '/client/collections/notes/find', {
      filter: { column: 'user_id', op: 'eq', value: others[0] },
    }),
    call('client read', 'notices that are not read', 'GET', '/client/push/inbox?unread=true'),
    call('figures', 'preview of a property', 'POST', '/segments/preview', {
      rules: { source: 'property', column: 'plan', op: 'eq', value: 'pro' },
    }),
    call('figures', 'preview of a count of events', 'POST', '/segments/preview', {
      rules: { source: 'event', event_name: 'lesson_completed', measure: 'count', op: 'gte', value: 6 },
    }),
    call('figures', 'dry run by a count of events', 'POST', '/achievements/dry-run', { criteria: eventCount(5) }),
    call('figures', 'dry run by XP', 'POST', '/achievements/dry-run', {
      criteria: { type: 'xp_threshold', target_value: 64 },
    }),
    call('figures', 'what a rule of XP would give', 'POST', '/xp/rules/lesson/simulate', {
      since: new Date(Date.now() - 86_400_000).toISOString(),
    }),
    call('figures', 'other rules of a streak', 'POST', '/streaks/daily/simulate', { definition: { min_count: 2 } }),
    call('figures', 'what a challenge would give', 'POST', `/challenges/${values['challengeId']}/simulate`, {}),
    call('heavy', 'cohort of 100', 'POST', '/users/cohort', { count: 100 }),
    call('heavy', 'bulk update of 1000', 'POST', '/users/bulk-update', {
      updates: others.map((user_id, n) => ({ user_id, properties: { seen: n } })),
    }),
    call('write', 'user', 'POST', '/users', {}),
    call('write', 'event', 'POST', '/client/events', { event_name: 'lesson_completed' }),
    call('write', 'profile', 'PATCH', '/client/users/me', { properties: { mood: 'calm' } }),
    call('write', 'score', 'POST', '/client/leaderboards/lessons/scores', { score: 3 }),
    call('write', 'entry of a feed', 'POST', '/client/feeds', { action: 'lesson.shared' }),
    call('write', 'message', 'POST', `/client/messaging/conversations/${values['conversationId']}/messages`, {
      body: 'Hello',
    }),
    call('write', 'row of a collection', 'POST', '/client/collections/notes', { title: 'A note', rank: 7 }),
    call('write', 'preferences of push', 'PUT', '/client/push/preferences', { categories: { news: true } }),
    call('write', 'suppressed address', 'POST', '/email/suppressions', {
      address: 'gone@mail.example',
      reason: 'manual',
    }),
  ]
}
