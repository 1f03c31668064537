// npm run bench:scale [-- --short]: every read, search, filter, preview, export and single write, in a project of 10,000 users and in one of a million.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import { type Cluster, connectAdmin } from '#server/database/cluster.ts'
import { tenantName } from '#server/database/prepare.ts'
import { createTestProject, type ServerProcess } from '#test/support/process.ts'
import { type Installation, install } from './support/installation.ts'
import { figure, median, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'
import { eventsPerUser, fillProject } from './support/scale_fill.ts'
import { type Call, documented, type Known, knownOf, special } from './support/scale_routes.ts'

const isShort = process.argv.includes('--short')
/** `--most N` is for a size of one's own, and is not published either. */
const chosen = Number(/^\d+$/.exec(process.argv[process.argv.indexOf('--most') + 1] ?? '')?.[0] ?? 0)
const sizes = [10_000, chosen || (isShort ? 100_000 : 1_000_000)] as const
/** A call is repeated so often, or for so long. */
const [repeats, patience] = [7, 3000]

type Scenario = Awaited<ReturnType<typeof createTestProject>>
type Project = { readonly size: number; readonly scenario: Scenario; readonly admin: Client; readonly known: Known }
type Figure = { readonly milliseconds: number; readonly status: number }
type Row = { readonly call: Call; readonly figures: readonly Figure[] }
type Long = { readonly name: string; readonly figures: readonly string[] }

const prepareProject = async (cluster: Cluster, server: ServerProcess, size: number): Promise<Project> => {
  const scenario = await createTestProject(server.url)
  const admin = await connectAdmin(cluster, tenantName('trellis', scenario.projectId), false)
  await fillProject(admin, size, say)
  const known = await knownOf(admin, scenario.projectId, size)
  return { size, scenario, admin, known }
}

const ask = async (url: string, { scenario, known }: Project, call: Call): Promise<Figure> => {
  const began = performance.now()
  const answer = await fetch(`${url}/v1${call.path}`, {
    method: call.method,
    headers: {
      // a user who has something of everything, through the developer's own server
      ...(call.as === 'user'
        ? { 'x-api-key': scenario.serverKey, 'x-on-behalf-of': known.userId }
        : call.as === 'session'
          ? scenario.user
          : scenario.developer),
      ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
  })
  await answer.arrayBuffer()
  return { milliseconds: performance.now() - began, status: answer.status }
}

/** The first call of a shape finds cold caches, and is left out where there is time for more. */
const measure = async (url: string, project: Project, call: Call): Promise<Figure> => {
  const taken: Figure[] = []
  const began = performance.now()
  while (taken.length < repeats && performance.now() - began < patience) taken.push(await ask(url, project, call))
  const counted = taken.length > 2 ? taken.slice(1) : taken
  return {
    milliseconds: median(counted.map(({ milliseconds }) => milliseconds)),
    status: Math.max(...taken.map(({ status }) => status)),
  }
}

const measureAll = async (server: ServerProcess, projects: readonly Project[]) => {
  const document = (await (await fetch(`${server.url}/v1/openapi.json`)).json()) as Parameters<typeof documented>[0]
  const lists = projects.map(({ known }) => {
    const { calls, unknown } = documented(document, known)
    return { calls: [...calls, ...special(known)], unknown }
  })
  const rows: Row[] = []
  for (const [index, call] of (lists[0]?.calls ?? []).entries()) {
    const figures: Figure[] = []
    for (const [which, project] of projects.entries())
      figures.push(await measure(server.url, project, lists[which]?.calls[index] ?? call))
    rows.push({ call, figures })
    say(`${call.name}: ${figures.map(({ milliseconds, status }) => `${figure(milliseconds)} ms ${status}`).join(', ')}`)
  }
  return { rows, unknown: lists[0]?.unknown ?? [] }
}

const exported = async (url: string, { scenario }: Project, path: string): Promise<string> => {
  const began = performance.now()
  const answer = await fetch(`${url}/v1/admin/projects/${scenario.projectId}${path}`, { headers: scenario.developer })
  if (answer.status !== 200 || !answer.body) return String(answer.status)
  let rows = 0
  for await (const piece of answer.body) for (const byte of piece) if (byte === 10) rows += 1
  const seconds = (performance.now() - began) / 1000
  return `${figure(seconds)} s, ${figure(rows / seconds)} a second`
}

/** Until an operation is over, with what it says then. */
const operated = async (url: string, { scenario }: Project, path: string, body: object): Promise<string> => {
  const root = `${url}/v1/admin/projects/${scenario.projectId}`
  const began = performance.now()
  const answer = await fetch(root + path, {
    method: 'POST',
    headers: { ...scenario.developer, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const { data } = (await answer.json()) as { data?: { operation_id?: string } }
  if (!data?.operation_id) return String(answer.status)
  for (;;) {
    const state = await fetch(`${root}/operations/${data.operation_id}`, { headers: scenario.developer })
    const { data: operation } = (await state.json()) as { data: { status: string } }
    if (!['queued', 'running', 'waiting', 'pending'].includes(operation.status))
      return `${figure((performance.now() - began) / 1000)} s, ${operation.status}`
    await sleep(250)
  }
}

/** A new segment by a count of events, which at least half of the users enter, until all users are evaluated. */
const refreshed = async (url: string, { scenario, admin }: Project): Promise<string> => {
  const root = `${url}/v1/admin/projects/${scenario.projectId}/segments`
  const headers = { ...scenario.developer, 'content-type': 'application/json' }
  const threshold = await admin.query<{ n: string }>(
    `select percentile_disc(0.5) within group (order by c.n) as n
       from (select sum(k.count) as n from app.user_event_counters k where k.event_name = 'app_opened' group by k.app_user_id) c`,
  )
  const rules = {
    source: 'event',
    event_name: 'app_opened',
    measure: 'count',
    op: 'gte',
    value: Number(threshold.rows[0]?.n ?? 1),
  }
  const began = performance.now()
  const answer = await fetch(root, {
    method: 'POST',
    headers,
    body: JSON.stringify({ key: 'openers', name: 'Openers', kind: 'dynamic', rules }),
  })
  if (answer.status !== 201) return String(answer.status)
  const of = `from app.segments s join app.segment_states t on t.segment_id = s.id where s.key = 'openers'`
  for (;;) {
    const { rows } = await admin.query<{ is_over: boolean; size: string }>(
      `select t.last_evaluated_at is not null as is_over, internal.segment_size(s.id) as size ${of}`,
    )
    if (rows[0]?.is_over) return `${figure((performance.now() - began) / 1000)} s, ${rows[0].size} entered`
    await sleep(250)
  }
}

/** A user with so many events, who then goes. */
const deleted = async (url: string, project: Project, events: number): Promise<string> => {
  const made = await project.admin.query<{ id: string }>(
    `with u as (insert into app.users (display_name) values ('Busy') returning id)
     select id from u`,
  )
  const id = made.rows[0]?.id ?? ''
  await project.admin.query(`set session_replication_role = 'replica'`)
  await project.admin.query(
    `insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
     select internal.new_id(), $1, 'app_opened', '{}', now() - n * interval '1 second', now(), 'client' from generate_series(1, $2::int) n`,
    [id, events],
  )
  await project.admin.query(`set session_replication_role = 'origin'`)
  const { milliseconds, status } = await ask(url, project, {
    name: 'delete',
    kind: 'heavy',
    method: 'DELETE',
    path: `/admin/projects/${project.scenario.projectId}/users/${id}`,
    as: 'developer',
  })
  return `${figure(milliseconds)} ms, ${status}`
}

const measureLong = async ({ url }: ServerProcess, projects: readonly Project[]): Promise<Long[]> => {
  const cases: readonly (readonly [name: string, work: (project: Project) => Promise<string>])[] = [
    ['export of users, CSV', (project) => exported(url, project, '/users/export')],
    ['export of users, NDJSON', (project) => exported(url, project, '/users/export?format=ndjson')],
    [
      'backfill of an achievement',
      (project) => operated(url, project, `/achievements/${project.known.values['achievementId']}/backfill`, {}),
    ],
    [
      'recompute of a challenge',
      (project) => operated(url, project, `/challenges/${project.known.values['challengeId']}/recompute`, {}),
    ],
    ['first evaluation of a segment by a count of events', (project) => refreshed(url, project)],
    ['deletion of a user with 100,000 events', (project) => deleted(url, project, 100_000)],
  ]
  const longs: Long[] = []
  for (const [name, work] of cases) {
    const figures: string[] = []
    for (const project of projects) figures.push(await work(project))
    longs.push({ name, figures })
    say(`${name}: ${figures.join('; ')}`)
  }
  return longs
}

const ratioOf = ({ figures: [few, many] }: Row) =>
  (many?.milliseconds ?? Number.NaN) / (few?.milliseconds ?? Number.NaN)

const worst = (rows: readonly Row[], how: (row: Row) => number): string =>
  [...rows]
    .sort((a, b) => how(b) - how(a))
    .slice(0, 5)
    .map((row) => `${row.call.name} ${figure(how(row))}`)
    .join(', ')

const aims = (rows: readonly Row[]): Aim[] => {
  const ofKind = (...kinds: readonly Call['kind'][]) => rows.filter(({ call }) => kinds.includes(call.kind))
  const grown = ofKind('client read', 'write').filter((row) => ratioOf(row) > 1.5)
  const slow = ofKind('read', 'page').filter(({ figures }) => (figures[1]?.milliseconds ?? 0) > 50)
  const failed = rows.filter(({ figures }) => figures.some(({ status }) => status >= 500))
  return [
    {
      text: `client reads and single writes cost at most 1.5 times as much (over it: ${grown.length ? worst(grown, ratioOf) : 'none'})`,
      isMet: grown.length === 0,
    },
    {
      text: `first pages, far pages, searches and statistics within 50 ms (over it, ms: ${slow.length ? worst(slow, ({ figures }) => figures[1]?.milliseconds ?? 0) : 'none'})`,
      isMet: slow.length === 0,
    },
    {
      text: `nothing answers 5xx (but: ${failed.map(({ call }) => call.name).join(', ') || 'none'})`,
      isMet: failed.length === 0,
    },
  ]
}

const run = async (installation: Installation): Promise<void> => {
  const control = await connectAdmin(installation.cluster, 'postgres', false)
  // so many rows at once would otherwise be written to disk again and again while they come
  await control.query(`alter system set max_wal_size = '8GB'`)
  await control.query('select pg_reload_conf()')
  await control.end()
  const server = await installation.serve()
  const projects: Project[] = []
  for (const size of sizes) projects.push(await prepareProject(installation.cluster, server, size))
  const { rows, unknown } = await measureAll(server, projects)
  const longs = await measureLong(server, projects)
  for (const { admin } of projects) await admin.end()
  const shown = ({ milliseconds, status }: Figure) => figure(milliseconds) + (status >= 400 ? ` (${status})` : '')
  const text = `## bench:scale

${await circumstances('npm run bench:scale', { Postgres: installation.postgresVersion })}

Two projects in one installation, with ${sizes.map((size) => `${size.toLocaleString('en')} users and ${(size * eventsPerUser).toLocaleString('en')} events`).join(', and with ')}. Requests come one at a time over HTTP, to both
in turn; a figure is the median of up to ${repeats}, in milliseconds. The reads are those of the OpenAPI document whose parameters bench/support/scale_routes.ts knows
${unknown.length ? `(not: ${unknown.join(', ')})` : '(all of them)'}. A is the path of the project for administrators, C is /client.

${table(
  ['', 'kind', ...sizes.map((size) => size.toLocaleString('en')), 'times'],
  rows.map((row) => [row.call.name, row.call.kind, ...row.figures.map(shown), figure(ratioOf(row))]),
)}

${table(
  ['', ...sizes.map((size) => size.toLocaleString('en'))],
  longs.map(({ name, figures }) => [name, ...figures]),
)}

${aims(rows).map(aimLine).join('\n')}`
  await publish({ name: 'bench:scale', isShort: isShort || chosen > 0, text })
}

const installation = await install()
try {
  await run(installation)
} finally {
  await installation.end()
}
