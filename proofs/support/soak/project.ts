// A project of the soak: what is defined in it, what its users do, and what they were answered.
import { createHash, randomBytes, randomInt, randomUUID } from 'node:crypto'
import type { createTestProject } from '#test/support/process.ts'
import type { Rules } from '#test/support/streak_lives.ts'
import type { Caller, Headers } from './caller.ts'

export type Made = Awaited<ReturnType<typeof createTestProject>>
type Row = { readonly id: string; title: string; isDeleted: boolean }
export type Person = {
  readonly id: string
  headers: Headers
  refreshToken: string
  signedInAt: number
  /** Times of events that count for the streak, in milliseconds, each once. */
  readonly practised: number[]
  credited: number
  best: number | null
  readonly rows: Row[]
  readonly media: { readonly id: string; readonly hash: string }[]
  readonly messages: string[]
  isBusy: boolean
}
export type SoakProject = {
  readonly made: Made
  readonly rules: Rules
  readonly people: Person[]
  /** Ids of events that a webhook must deliver. */
  readonly precious: string[]
  /** Paths that are read, as whom. */
  readonly reads: readonly { readonly path: string; readonly as: 'developer' | 'person' }[]
}

const hour = 3_600_000
const day = 24 * hour

const anyOf = <T>(list: readonly T[]): T => list[randomInt(list.length)] as T
const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const wanted = (status: number, body: unknown, ...statuses: readonly number[]) => {
  if (!statuses.includes(status)) throw new Error(`answered ${status}: ${JSON.stringify(body).slice(0, 500)}`)
}

export const adminOf = ({ made }: Pick<SoakProject, 'made'>) => `/v1/admin/projects/${made.projectId}`

const serverHeaders = ({ made }: SoakProject, person: Person): Headers => ({
  'x-api-key': made.serverKey,
  'x-on-behalf-of': person.id,
})

/** Definitions of every area that the traffic uses. */
export const define = async (caller: Caller, made: Made, receiver: string): Promise<SoakProject> => {
  const rules: Rules = {
    period: 'day',
    weekStartsOn: 1,
    minCount: randomInt(1, 4),
    graceHours: anyOf([0, 0, 3, 30]),
    initial: randomInt(3),
    max: 3,
    earnEvery: anyOf([0, 2, 5]),
  }
  const root = adminOf({ made })
  const post = async (path: string, body: unknown) => {
    const answer = await caller.insist('POST', root + path, body, made.developer)
    wanted(answer.status, answer.body, 200, 201)
    return answer.body.data
  }
  await post('/streaks', {
    key: 'daily',
    name: 'Daily',
    qualifying_event: 'practised',
    timezone_mode: 'fixed',
    timezone: 'UTC',
    min_count: rules.minCount,
    grace_hours: rules.graceHours,
    freezes_initial: rules.initial,
    freezes_max: rules.max,
    freeze_earn_every: rules.earnEvery,
  })
  await post('/xp/rules', { key: 'practice', name: 'Practice', event_name: 'practised', amount: 10 })
  await post('/achievements', {
    key: 'ten',
    name: 'Ten',
    criteria: { type: 'event_count', event_name: 'practised', target_value: 10 },
  })
  await post('/currencies', { code: 'COINS', name: 'Coins' })
  await post('/leaderboards', {
    key: 'top',
    name: 'Top',
    source: { type: 'manual' },
    scoring: 'best',
    client_writable: true,
  })
  await post('/segments', {
    key: 'keen',
    name: 'Keen',
    rules: { source: 'event', event_name: 'practised', measure: 'count', op: 'gte', value: 3 },
  })
  await post('/flags', { key: 'dark', name: 'Dark', value_type: 'boolean', off_value: false, default_value: true })
  await post('/collections', {
    name: 'notes',
    read_policy: 'owner',
    columns: [
      { name: 'title', type: 'text' },
      { name: 'rank', type: 'integer' },
    ],
  })
  await post('/webhooks', { event_name: 'precious', target_url: `${receiver}/${made.projectId}` })
  const reads = [
    ...[
      '/streaks',
      '/xp',
      '/xp/history',
      '/achievements',
      '/currencies',
      '/leaderboards',
      '/leaderboards/top',
      '/config',
    ],
    ...['/flags', '/users/me', '/feeds', '/friends', '/groups/mine', '/messaging/conversations', '/messaging/unread'],
    ...['/push/inbox', '/media', '/inventory', '/entitlements', '/challenges', '/collections/notes?order=rank'],
  ].map((path) => ({ path: `/v1/client${path}`, as: 'person' as const }))
  const lists = [
    ...['/users', '/events', '/events/names', '/streaks/daily/users', '/streaks/daily/stats', '/xp/stats', '/segments'],
    ...['/segments/keen/members', '/leaderboards/top/entries', '/webhooks', '/audit-events', '/media', '/flags'],
    ...['/collections', '/moderation/queue', '/messaging/conversations', '/storage/usage', '/currencies', '/sessions'],
  ].map((path) => ({ path: root + path, as: 'developer' as const }))
  return { made, rules, people: [], precious: [], reads: [...reads, ...lists] }
}

export const signUp = async (caller: Caller, project: SoakProject): Promise<void> => {
  const { made } = project
  const answer = await caller.ask('POST', '/v1/client/auth/anonymous', {}, made.key)
  if (answer?.status !== 201 && answer?.status !== 200) return
  const { user, session_token, refresh_token } = answer.body.data
  project.people.push({
    id: user.id,
    headers: { ...made.key, authorization: `Bearer ${session_token}` },
    refreshToken: refresh_token,
    signedInAt: Date.now(),
    practised: [],
    credited: 0,
    best: null,
    rows: [],
    media: [],
    messages: [],
    isBusy: false,
  })
}

type Action = (caller: Caller, project: SoakProject, person: Person) => Promise<void>

const practise: Action = async (caller, _project, { headers, practised }) => {
  const now = Date.now()
  const times = Array.from({ length: randomInt(1, 6) }, () =>
    Math.floor(now - randomInt(3) * randomInt(6) * day - randomInt(8 * hour)),
  )
  const events = times.map((at) => ({
    id: randomUUID(),
    event_name: 'practised',
    occurred_at: new Date(at).toISOString(),
    properties: { minutes: randomInt(60) },
  }))
  const { status, body } = await caller.insist('POST', '/v1/client/events', { events }, headers)
  wanted(status, body, 200, 201)
  practised.push(...times)
}

const precious: Action = async (caller, project, { headers }) => {
  const id = randomUUID()
  const { status, body } = await caller.insist('POST', '/v1/client/events', { event_name: 'precious', id }, headers)
  wanted(status, body, 200, 201)
  project.precious.push(id)
}

const credit: Action = async (caller, project, person) => {
  const amount = randomInt(1, 100)
  const isSpending = person.credited >= amount && randomInt(3) === 0
  const { status, body } = await caller.insist(
    'POST',
    `/v1/client/currencies/COINS/${isSpending ? 'spend' : 'credit'}`,
    { amount, reason: 'soak' },
    { ...serverHeaders(project, person), 'idempotency-key': randomUUID() },
  )
  wanted(status, body, 200, 201)
  person.credited += isSpending ? -amount : amount
}

const score: Action = async (caller, _project, person) => {
  const value = randomInt(1_000_000)
  const { status, body } = await caller.insist(
    'POST',
    '/v1/client/leaderboards/top/scores',
    { score: value },
    person.headers,
  )
  wanted(status, body, 200, 201)
  person.best = Math.max(person.best ?? 0, value)
}

const note: Action = async (caller, _project, { headers, rows }) => {
  const path = '/v1/client/collections/notes'
  const living = rows.filter(({ isDeleted }) => !isDeleted)
  const kind = living.length === 0 ? 0 : randomInt(10)
  const row = living.length === 0 ? null : anyOf(living)
  const title = randomBytes(randomInt(1, 200)).toString('hex')
  if (kind < 4 || !row) {
    const key = { ...headers, 'idempotency-key': randomUUID() }
    const { status, body } = await caller.insist('POST', path, { title, rank: randomInt(100) }, key)
    wanted(status, body, 200, 201)
    rows.push({ id: body.data.id, title, isDeleted: false })
  } else if (kind < 7) {
    const { status, body } = await caller.insist('PATCH', `${path}/${row.id}`, { title }, headers)
    wanted(status, body, 200)
    row.title = title
  } else if (kind < 8) {
    // 404: it was deleted, and the answer was lost
    const { status, body } = await caller.insist('DELETE', `${path}/${row.id}`, undefined, headers)
    wanted(status, body, 200, 404)
    row.isDeleted = true
  } else {
    const filter = { column: 'rank', op: 'gte', value: randomInt(100) }
    await caller.ask('POST', `${path}/find`, { filter, limit: 20 }, headers)
  }
}

const medium: Action = async (caller, _project, { headers, media }) => {
  const bytes = randomBytes(randomInt(1_000, 300_000))
  const type = 'application/octet-stream'
  const upload = { filename: 'a', mime_type: type, size_bytes: bytes.length }
  const made = await caller.ask('POST', '/v1/client/media/upload', upload, headers)
  if (made?.status !== 201) return
  const put = await fetch(made.body.upload_url, {
    method: 'PUT',
    body: new Uint8Array(bytes),
    headers: { 'content-type': type },
  }).catch(() => null)
  if (!put?.ok) return
  const { id } = made.body.data
  const done = await caller.insist('POST', '/v1/client/media/commit', { upload_id: id, asset_id: id }, headers)
  wanted(done.status, done.body, 200)
  media.push({ id, hash: hashOf(bytes) })
}

const social: Action = async (caller, { people }, { id, headers, messages }) => {
  const other = anyOf(people)
  if (other.id === id) return
  const kind = randomInt(6)
  if (kind === 0) await caller.ask('POST', '/v1/client/friends/requests', { user_id: other.id }, headers)
  else if (kind === 1) await caller.ask('POST', `/v1/client/friends/requests/${other.id}/accept`, {}, headers)
  else if (kind === 2)
    await caller.ask(
      'POST',
      '/v1/client/groups',
      { name: randomBytes(6).toString('hex'), join_policy: 'open' },
      headers,
    )
  else if (kind === 3)
    await caller.ask('POST', '/v1/client/feeds', { action: 'practised', visibility: 'public' }, headers)
  else {
    const talk = await caller.ask(
      'POST',
      '/v1/client/messaging/conversations',
      { type: 'direct', participant_ids: [other.id] },
      headers,
    )
    if (!talk || talk.status >= 300) return
    const path = `/v1/client/messaging/conversations/${talk.body.data.id}/messages`
    const sent = await caller.ask('POST', path, { body: randomBytes(20).toString('hex') }, headers)
    if (sent?.status === 201) messages.push(sent.body.data.id)
  }
}

const profile: Action = async (caller, _project, { headers }) => {
  await caller.ask('PATCH', '/v1/client/users/me', { display_name: randomBytes(8).toString('hex') }, headers)
}

/** A session's token is good for an hour. */
const tokenMs = 40 * 60_000
const refresh: Action = async (caller, { made }, person) => {
  const token = { refresh_token: person.refreshToken }
  const { status, body } = await caller.insist('POST', '/v1/client/auth/refresh', token, made.key)
  wanted(status, body, 200)
  person.headers = { ...made.key, authorization: `Bearer ${body.data.session_token}` }
  person.refreshToken = body.data.refresh_token
  person.signedInAt = Date.now()
}

/** What a stranger sends. */
const strange: Action = async (caller, { made }, { headers }) => {
  const nobody = { ...made.key, authorization: `${headers['authorization']}x` }
  const kind = randomInt(4)
  if (kind === 0) await caller.ask('GET', '/v1/client/users/me', undefined, nobody)
  else if (kind === 1) await caller.ask('GET', `/v1/client/collections/notes/${randomUUID()}`, undefined, headers)
  else if (kind === 2) await caller.ask('POST', '/v1/client/events', { event_name: 'x'.repeat(300) }, headers)
  else await caller.ask('GET', adminOf({ made }), undefined, headers)
}

const read: Action = async (caller, { reads, made }, { headers }) => {
  const { path, as } = anyOf(reads)
  await caller.ask('GET', path, undefined, as === 'developer' ? made.developer : headers)
}

const actions: readonly (readonly [weight: number, action: Action])[] = [
  [30, read],
  [20, practise],
  [4, precious],
  [10, credit],
  [8, score],
  [15, note],
  [2, medium],
  [8, social],
  [2, profile],
  [3, strange],
]
const total = actions.reduce((sum, [weight]) => sum + weight, 0)

/** One thing that one user of the project does. Nobody does two things at once, so that what the last one left is known. */
export const act = async (caller: Caller, project: SoakProject): Promise<void> => {
  const idle = project.people.filter(({ isBusy }) => !isBusy)
  if (idle.length === 0 || (project.people.length < 40 && randomInt(50) === 0)) return signUp(caller, project)
  const person = anyOf(idle)
  let at = randomInt(total)
  const [, action] = actions.find(([weight]) => {
    at -= weight
    return at < 0
  }) ?? [0, read]
  person.isBusy = true
  const isOld = Date.now() - person.signedInAt > tokenMs
  await (isOld ? refresh : action)(caller, project, person).finally(() => {
    person.isBusy = false
  })
}
