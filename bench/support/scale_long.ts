// What goes over all users of a project, or streams them: in seconds rather than milliseconds. Each case has an end, whatever becomes of it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import { figure, median } from './numbers.ts'
import type { Known } from './scale_routes.ts'

export type Filled = {
  readonly url: string
  readonly projectId: string
  readonly developer: Readonly<Record<string, string>>
  readonly serverKey: string
  readonly admin: Client
  readonly known: Known
}

/** The longest that a case may take in one project. */
const patienceMs = 240_000

const asked = async ({ url, projectId, developer }: Filled, method: string, path: string, body?: object) => {
  const answer = await fetch(`${url}/v1/admin/projects/${projectId}${path}`, {
    method,
    headers: { ...developer, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
    signal: AbortSignal.timeout(90_000),
  })
  const { data } = (await answer.json()) as {
    data?: Partial<Record<'id' | 'campaign_id' | 'operation_id' | 'status', string>>
  }
  return { status: answer.status, data: data ?? {} }
}

/** The seconds until something is so, which is asked four times a second. */
const until = async (isSo: () => Promise<boolean>, began = performance.now()): Promise<number> => {
  while (!(await isSo())) {
    if (performance.now() - began > patienceMs) throw new Error(`not over after ${patienceMs / 1000} s`)
    await sleep(250)
  }
  return (performance.now() - began) / 1000
}

const exported =
  (path: string) =>
  async ({ url, projectId, developer }: Filled): Promise<string> => {
    const began = performance.now()
    const answer = await fetch(`${url}/v1/admin/projects/${projectId}${path}`, {
      headers: developer,
      signal: AbortSignal.timeout(patienceMs),
    })
    if (answer.status !== 200 || !answer.body) return String(answer.status)
    let rows = 0
    for await (const piece of answer.body) for (const byte of piece) if (byte === 10) rows += 1
    const seconds = (performance.now() - began) / 1000
    return `${figure(seconds)} s, ${figure(rows / seconds)} a second`
  }

/** Until an operation is over, with what it says then. */
const operated =
  (path: (known: Known) => string) =>
  async (project: Filled): Promise<string> => {
    const { status, data } = await asked(project, 'POST', path(project.known), {})
    if (!data.operation_id) return String(status)
    let state = ''
    const seconds = await until(async () => {
      state = (await asked(project, 'GET', `/operations/${data.operation_id}`)).data.status ?? ''
      return !['queued', 'running', 'waiting', 'pending'].includes(state)
    })
    return `${figure(seconds)} s, ${state}`
  }

/** What a user reads and writes, one after the other: their milliseconds at the 95th of 100. */
const others = async ({ url, serverKey, known }: Filled, isOver: () => boolean): Promise<number | null> => {
  const taken: number[] = []
  const headers = {
    'x-api-key': serverKey,
    'x-on-behalf-of': known.others[7] ?? '',
    'content-type': 'application/json',
  }
  while (!isOver()) {
    const began = performance.now()
    const answer =
      taken.length % 2 === 0
        ? await fetch(`${url}/v1/client/users/me`, { headers })
        : await fetch(`${url}/v1/client/events`, {
            method: 'POST',
            headers,
            body: JSON.stringify({ event_name: 'song_skipped' }),
          })
    await answer.arrayBuffer()
    taken.push(performance.now() - began)
    await sleep(10)
  }
  return taken.length < 20 ? null : (taken.sort((a, b) => a - b)[Math.floor(taken.length * 0.95)] ?? null)
}

/** A new segment, until all users are evaluated, then a refresh in which nobody moves; and what other requests took during the first, against before. */
const refreshed =
  (key: string, rulesOf: (admin: Client) => Promise<object>) =>
  async (project: Filled): Promise<string> => {
    const { admin } = project
    const rules = await rulesOf(admin)
    const quietUntil = performance.now() + 3000
    const before = await others(project, () => performance.now() > quietUntil)
    let isOver = false
    const began = performance.now()
    const { status, data } = await asked(project, 'POST', '/segments', { key, name: key, kind: 'dynamic', rules })
    if (status !== 201) return String(status)
    const meanwhile = others(project, () => isOver)
    let entered = '0'
    try {
      const seconds = await until(async () => {
        const { rows } = await admin.query<{ is_over: boolean; size: string }>(
          `select t.last_evaluated_at is not null as is_over, internal.segment_size(t.segment_id) as size from app.segment_states t where t.segment_id = $1`,
          [data.id],
        )
        entered = rows[0]?.size ?? '0'
        return rows[0]?.is_over ?? false
      }, began)
      isOver = true
      const during = await meanwhile
      const evaluatedAt = async () => {
        const { rows } = await admin.query<{ at: string }>(
          `select t.last_evaluated_at::text as at from app.segment_states t where t.segment_id = $1`,
          [data.id],
        )
        return rows[0]?.at
      }
      const first = await evaluatedAt()
      const beganAgain = performance.now()
      await asked(project, 'POST', `/segments/${key}/refresh`)
      const again = await until(async () => (await evaluatedAt()) !== first, beganAgain)
      const p95 = before && during ? `; p95 of others ${figure(before)} ms before, ${figure(during)} ms meanwhile` : ''
      return `${figure(seconds)} s, ${Number(entered).toLocaleString('en')} entered; refreshed again in ${figure(again)} s${p95}`
    } finally {
      isOver = true
      await meanwhile
    }
  }

/** A count of events that half of the users reach. */
const openers = async (admin: Client): Promise<object> => {
  const { rows } = await admin.query<{ n: string }>(
    `select percentile_disc(0.51) within group (order by c.n) as n
       from (select sum(k.count) as n from app.user_event_counters k where k.event_name = 'app_opened' group by k.app_user_id) c`,
  )
  return { source: 'event', event_name: 'app_opened', measure: 'count', op: 'gte', value: Number(rows[0]?.n ?? 1) }
}

/** Deliveries for everybody, at an hour that is far away in each zone of the project: none is sent meanwhile. */
const planned = async (project: Filled): Promise<string> => {
  const hour = (new Date().getUTCHours() + 23) % 24
  const began = performance.now()
  const { status, data } = await asked(project, 'POST', '/push/campaigns', {
    name: 'To everybody',
    message: { title: 'News', body: 'There is something new.' },
    audience: { all: true },
    schedule: { mode: 'user_local', local_time: `${String(hour).padStart(2, '0')}:00` },
    send_now: true,
  })
  const id = data.campaign_id ?? data.id
  if (status >= 300) return String(status)
  const seconds = await until(async () => {
    const { rows } = await project.admin.query(
      'select from app.campaign_plans p where p.campaign_id = $1 and p.planned_at is not null',
      [id],
    )
    return rows.length > 0
  }, began)
  const { rows } = await project.admin.query<{ n: string }>(
    'select count(*) as n from app.campaign_deliveries d where d.campaign_id = $1',
    [id],
  )
  await asked(project, 'POST', `/push/campaigns/${id}/cancel`)
  return `${figure(seconds)} s, ${Number(rows[0]?.n).toLocaleString('en')} deliveries`
}

const busyUser = async (admin: Client, events: number): Promise<string> => {
  const made = await admin.query<{ id: string }>(`insert into app.users (display_name) values ('Busy') returning id`)
  const id = made.rows[0]?.id ?? ''
  await admin.query(`set session_replication_role = 'replica'`)
  await admin.query(
    `insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
     select internal.new_id(), $1, 'app_opened', '{}', now() - n * interval '1 second', now(), 'client' from generate_series(1, $2::int) n`,
    [id, events],
  )
  await admin.query(`set session_replication_role = 'origin'`)
  return id
}

/** A user with so many events, who then goes. */
const deleted = async (project: Filled): Promise<string> => {
  const id = await busyUser(project.admin, 100_000)
  const began = performance.now()
  const { status } = await asked(project, 'DELETE', `/users/${id}`)
  return `${figure(performance.now() - began)} ms, ${status}`
}

/** Bulk updates of a thousand users, one after the other. */
const updated = async (project: Filled): Promise<string> => {
  const taken: number[] = []
  for (let round = 0; round < 5; round += 1) {
    const updates = project.known.others.map((user_id, n) => ({ user_id, properties: { round: round * 1000 + n } }))
    const began = performance.now()
    const { status } = await asked(project, 'POST', '/users/bulk-update', { updates })
    if (status !== 200) return String(status)
    taken.push(performance.now() - began)
  }
  return `${figure(median(taken))} ms`
}

export const longCases: readonly (readonly [name: string, work: (project: Filled) => Promise<string>])[] = [
  ['export of users, CSV', exported('/users/export')],
  ['export of users, NDJSON', exported('/users/export?format=ndjson')],
  ['bulk updates of 1000 users', updated],
  [
    'first evaluation of a segment by a property',
    refreshed('pros', async () => ({ source: 'property', column: 'plan', op: 'eq', value: 'pro' })),
  ],
  ['first evaluation of a segment by a count of events', refreshed('openers', openers)],
  ['plan of a campaign to everybody', planned],
  ['backfill of an achievement', operated(({ values }) => `/achievements/${values['achievementId']}/backfill`)],
  ['recompute of a challenge', operated(({ values }) => `/challenges/${values['challengeId']}/recompute`)],
  ['deletion of a user with 100,000 events', deleted],
]
