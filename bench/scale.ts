// npm run bench:scale [-- --short]: every read, search, filter, preview, export and single write, in a project of 10,000 users and in one of a million.
import type { Client } from 'pg'
import { type Cluster, connectAdmin } from '#server/database/cluster.ts'
import { tenantName } from '#server/database/names.ts'
import { createTestProject, type ServerProcess } from '#test/support/process.ts'
import { type Installation, install } from './support/installation.ts'
import { figure, median, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'
import { eventsPerUser, fillProject } from './support/scale_fill.ts'
import { longCases } from './support/scale_long.ts'
import { type Call, documented, type Known, knownOf, special } from './support/scale_routes.ts'

const isShort = process.argv.includes('--short')
/** `--most N` is for a size of one's own, and is not published either. */
const chosen = Number(/^\d+$/.exec(process.argv[process.argv.indexOf('--most') + 1] ?? '')?.[0] ?? 0)
const sizes = [10_000, chosen || (isShort ? 100_000 : 1_000_000)] as const
/** A call is repeated so often, or so often where it seems to have grown, or for so long; and waits for its answer so long. */
const [repeats, again, patience, timeoutMs] = [8, 31, 3000, 35_000]
/** The run ends within 25 minutes, unless the fill alone takes longer than ten: after so long nothing new begins, but each part has some minutes. */
const [callsEnd, callsAtLeast, longEnd, longAtLeast] = [16, 5, 19, 4].map((minutes) => minutes * 60_000) as [
  number,
  number,
  number,
  number,
]

type Scenario = Awaited<ReturnType<typeof createTestProject>>
type Project = { readonly size: number; readonly scenario: Scenario; readonly admin: Client; readonly known: Known }
type Figure = { readonly milliseconds: number; readonly status: number }
type Row = { readonly call: Call; readonly figures: readonly Figure[] }
type Long = { readonly name: string; readonly figures: readonly string[] }

const ratioOf = ({ figures: [few, many] }: Row) =>
  (many?.milliseconds ?? Number.NaN) / (few?.milliseconds ?? Number.NaN)

const hasGrown = (row: Row) => ['client read', 'write'].includes(row.call.kind) && ratioOf(row) > 1.5

const prepareProject = async (cluster: Cluster, server: ServerProcess, size: number): Promise<Project> => {
  const scenario = await createTestProject(server.url)
  // or users may not search for each other, and a campaign needs a provider
  await fetch(`${server.url}/v1/admin/projects/${scenario.projectId}`, {
    method: 'PATCH',
    headers: { ...scenario.developer, 'content-type': 'application/json' },
    body: JSON.stringify({ user_search_enabled: true, environment: 'development' }),
  })
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
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((error: Error) => error)
  // as bad as an error of the server: 599 is nobody's status
  if (answer instanceof Error) return { milliseconds: performance.now() - began, status: 599 }
  await answer.arrayBuffer()
  return { milliseconds: performance.now() - began, status: answer.status }
}

/** To the projects in turn, so that what else the machine does meets both. The first call of a shape finds cold caches, and is left out where there is time for more. */
const measure = async (url: string, projects: readonly Project[], calls: readonly Call[], rounds: number) => {
  const taken: Figure[][] = projects.map(() => [])
  const spent = projects.map(() => 0)
  for (let round = 0; round < rounds; round += 1)
    for (const [which, project] of projects.entries()) {
      const call = calls[which]
      if (!call || (spent[which] ?? 0) >= patience) continue
      const figure = await ask(url, project, call)
      taken[which]?.push(figure)
      spent[which] = (spent[which] ?? 0) + figure.milliseconds
    }
  return taken.map((figures): Figure => {
    const counted = figures.length > 2 ? figures.slice(1) : figures
    return {
      milliseconds: median(counted.map(({ milliseconds }) => milliseconds)),
      status: Math.max(...figures.map(({ status }) => status)),
    }
  })
}

const measureAll = async (server: ServerProcess, projects: readonly Project[]) => {
  const document = (await (await fetch(`${server.url}/v1/openapi.json`)).json()) as Parameters<typeof documented>[0]
  const lists = projects.map(({ known }) => {
    const { calls, unknown } = documented(document, known)
    return { calls: [...calls, ...special(known)], unknown }
  })
  const rows: Row[] = []
  const late: string[] = []
  const lastMs = Math.max(callsEnd, performance.now() + callsAtLeast)
  for (const [index, call] of (lists[0]?.calls ?? []).entries()) {
    if (performance.now() > lastMs) {
      late.push(call.name)
      continue
    }
    const calls = lists.map((list) => list.calls[index] ?? call)
    const first = await measure(server.url, projects, calls, repeats)
    // of a millisecond, seven calls say little: what seems to have grown is measured once more
    const figures = hasGrown({ call, figures: first }) ? await measure(server.url, projects, calls, again) : first
    rows.push({ call, figures })
    say(`${call.name}: ${figures.map(({ milliseconds, status }) => `${figure(milliseconds)} ms ${status}`).join(', ')}`)
  }
  return { rows, unknown: [...(lists[0]?.unknown ?? []), ...late] }
}

const measureLong = async ({ url }: ServerProcess, projects: readonly Project[]): Promise<Long[]> => {
  const longs: Long[] = []
  const lastMs = Math.max(longEnd, performance.now() + longAtLeast)
  for (const [name, work] of longCases) {
    const figures: string[] = []
    for (const { scenario, admin, known } of projects) {
      const { projectId, developer, serverKey } = scenario
      const isLate = performance.now() > lastMs
      figures.push(
        isLate
          ? 'not measured, for the run has taken its time'
          : await work({ url, projectId, developer, serverKey, admin, known }).catch(
              (error: Error) => `failed: ${error.message}`,
            ),
      )
    }
    longs.push({ name, figures })
    say(`${name}: ${figures.join(' | ')}`)
  }
  return longs
}

const worst = (rows: readonly Row[], how: (row: Row) => number): string =>
  [...rows]
    .sort((a, b) => how(b) - how(a))
    .slice(0, 5)
    .map((row) => `${row.call.name} ${figure(how(row))}`)
    .join(', ')

const aims = (rows: readonly Row[]): Aim[] => {
  const ofKind = (...kinds: readonly Call['kind'][]) => rows.filter(({ call }) => kinds.includes(call.kind))
  const grown = rows.filter(hasGrown)
  const slow = ofKind('read', 'page').filter(({ figures }) => (figures[1]?.milliseconds ?? 0) > 50)
  const long = ofKind('figures').filter(({ figures }) => (figures[1]?.milliseconds ?? 0) > 1000)
  const failed = rows.filter(({ figures }) => figures.some(({ status }) => status >= 500))
  return [
    {
      text: `client reads and single writes cost at most 1.5 times as much (over it: ${grown.length ? worst(grown, ratioOf) : 'none'})`,
      isMet: grown.length === 0,
    },
    {
      text: `first pages, far pages and searches within 50 ms (over it, ms: ${slow.length ? worst(slow, ({ figures }) => figures[1]?.milliseconds ?? 0) : 'none'})`,
      isMet: slow.length === 0,
    },
    {
      text: `previews, dry runs, simulations and statistics within 1 s (over it, ms: ${long.length ? worst(long, ({ figures }) => figures[1]?.milliseconds ?? 0) : 'none'})`,
      isMet: long.length === 0,
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
  const filledAt = performance.now()
  say(`filled in ${Math.round(filledAt / 1000)} s`)
  const { rows, unknown } = await measureAll(server, projects)
  const longs = await measureLong(server, projects)
  for (const { admin } of projects) await admin.end()
  const shown = ({ milliseconds, status }: Figure) => figure(milliseconds) + (status >= 400 ? ` (${status})` : '')
  const text = `## bench:scale

${await circumstances('npm run bench:scale', { Postgres: installation.postgresVersion })}

Two projects in one installation, with ${sizes.map((size) => `${size.toLocaleString('en')} users and ${(size * eventsPerUser).toLocaleString('en')} events`).join(', and with ')}. Requests come one at a time over HTTP, to both
in turn; a figure is the median of up to ${repeats}, or of up to ${again} where a client read or a write seemed to have grown, in milliseconds. The reads are those of the OpenAPI document whose parameters bench/support/scale_routes.ts knows
${unknown.length ? `(not: ${unknown.join(', ')})` : '(all of them)'}. The fill took ${Math.round(filledAt / 60_000)} of ${Math.round(performance.now() / 60_000)} minutes. A is the path of the project for administrators, C is /client.

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
