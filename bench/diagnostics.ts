// npm run bench:diagnostics [-- --most N]: batches of reports beside batches of events, a crash loop of a thousand phones, lists of issues, the purge.
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type Asked, closedLoop } from './support/closed_loop.ts'
import { requireProc } from './support/cpu.ts'
import { fillIssues, measurePurge, reportOf } from './support/crash_reports.ts'
import { address, asAdmin, createScenario, type Installation, install, type Scenario } from './support/installation.ts'
import { cpuOf, inTurns, type Measured, measured, type Where } from './support/measured.ts'
import { figure, medianOf, medianRatio, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say, versionOf } from './support/results.ts'

const isShort = process.argv.includes('--short')
const given = /^\d+$/.exec(process.argv[process.argv.indexOf('--most') + 1] ?? '')?.[0]
const [rounds, calls, issues, reports] = isShort
  ? [2, 10, 10_000, 50_000]
  : [5, 20, 100_000, Number(given ?? 1_000_000)]
const phones = isShort ? 200 : 1000
type Headers = Readonly<Record<string, string>>

type World = {
  readonly installation: Installation
  readonly scenario: Scenario
  readonly key: Headers
  readonly developer: Headers
  readonly admin: string
}
const whereOf = ({ installation, scenario }: World): Where => ({
  origin: scenario.server.url,
  pid: scenario.server.child.pid ?? 0,
  postmaster: installation.postmaster,
})
const sqlOf =
  ({ installation, scenario }: World) =>
  <T extends Record<string, unknown>>(text: string, values: unknown[] = []) =>
    asAdmin<T>(installation.cluster, scenario.database, text, values)

/** Fifty reports, and fifty events with as many bytes, each batch of another device. */
const measureBatches = async (world: World) => {
  const { scenario, key } = world
  const sql = sqlOf(world)
  const json = { ...key, 'content-type': 'application/json' }
  const fifty = Array.from({ length: 50 }, (_, n) => reportOf(n))
  const sent = JSON.stringify({ reports: fifty })
  const user = scenario.users[0]?.headers ?? {}
  const events = fifty.map(({ stack }, n) => ({
    event_name: 'crashed',
    properties: { stack: stack.slice(0, 8000), n },
  }))
  const where = whereOf(world)
  const contestants = [
    {
      ...{ name: '50 reports with stacks of 8 KB', where, status: 202 },
      next: (): Asked => ({
        path: '/v1/client/diagnostics/reports',
        ...{ method: 'POST', headers: { ...json, ...address() }, body: sent },
      }),
    },
    {
      ...{ name: '50 events of as many bytes', where, status: 201 },
      next: (): Asked => ({
        path: '/v1/client/events',
        ...{
          method: 'POST',
          headers: { ...user, 'content-type': 'application/json' },
          body: JSON.stringify({ events }),
        },
      }),
    },
  ]
  const before = () => sql('delete from app.rate_limits')
  const after = (round: number) => say(`batches, round ${round} of ${rounds}`)
  const limits = { callers: 1, seconds: 60, most: calls }
  return { figures: await inTurns(contestants, rounds, limits, { before, after }), bytes: sent.length }
}

/** Every phone reports the same crash at once. How long the longest waited for a lock is looked up every ten milliseconds. */
const measureLoop = async (world: World) => {
  const { scenario, key } = world
  const sql = sqlOf(world)
  await sql('delete from app.rate_limits')
  const body = JSON.stringify({ reports: [reportOf(1, 777)] })
  let longest = 0
  let isOver = false
  const watching = (async () => {
    while (!isOver) {
      const [found] = await sql<{ ms: number }>(
        `select coalesce(max(extract(epoch from clock_timestamp() - waitstart) * 1000), 0)::float8 as ms from pg_locks where not granted`,
      )
      longest = Math.max(longest, found?.ms ?? 0)
      await sleep(10)
    }
  })()
  const next = (): Asked => ({
    path: '/v1/client/diagnostics/reports',
    ...{ method: 'POST', headers: { ...key, 'content-type': 'application/json', ...address() }, body },
  })
  const looped = await closedLoop(scenario.server.url, next, 202, { callers: phones, seconds: 60, most: phones })
  isOver = true
  await watching
  const [issue] = await sql<{ count: string }>(
    `select max(count)::text as count from app.diagnostic_issues where title like 'Lesson 1 %'`,
  )
  return { ...looped, longest, counted: Number(issue?.count) }
}

const measureReads = async (world: World) => {
  const { scenario, developer, admin } = world
  const sql = sqlOf(world)
  const [one] = await sql<{ id: string }>('select id from app.diagnostic_issues order by last_seen desc limit 1')
  const [newest] = await sql<{ id: string }>('select id from app.diagnostic_reports where issue_id = $1 limit 1', [
    one?.id,
  ])
  const map = { version: 3, sources: ['a.ts'], sourcesContent: ['one\ntwo'], names: [], mappings: 'AACA' }
  await fetch(`${scenario.server.url}${admin}/diagnostics/source-maps?release=1.0.0&bundle=main.js`, {
    method: 'PUT',
    headers: { ...developer, 'content-type': 'application/gzip' },
    body: new Uint8Array(gzipSync(JSON.stringify(map))),
  })
  const paths = {
    'issues, newest first': '/diagnostics/issues?limit=50',
    'issues that are open': '/diagnostics/issues?limit=50&status=open',
    'issues of a version': '/diagnostics/issues?limit=50&app_version=1.7.0',
    'issues, from the middle': `/diagnostics/issues?limit=50&offset=${issues / 2}`,
    'issues that are open, from their middle': `/diagnostics/issues?limit=50&status=open&offset=${(issues * 3) / 10}`,
    'issues of a level': '/diagnostics/issues?limit=50&level=error',
    'reports of an issue': `/diagnostics/issues/${one?.id}/reports?limit=50`,
    'a report with its frames': `/diagnostics/issues/${one?.id}/reports/${newest?.id}`,
  }
  const found = new Map<string, Measured>()
  for (const [name, path] of Object.entries(paths)) {
    const next = (): Asked => ({ path: admin + path, headers: developer })
    await closedLoop(scenario.server.url, next, 200, { callers: 1, seconds: 5, most: 10 })
    found.set(name, await measured(whereOf(world), next, 200, { callers: 1, seconds: 3, most: 100 }))
  }
  return found
}

const main = async () => {
  requireProc()
  const installation = await install()
  try {
    const scenario = await createScenario(installation, 1)
    const developer = await scenario.switchOn({ graphql_enabled: true })
    const key = { 'x-api-key': scenario.users[0]?.headers['x-api-key'] ?? '' }
    const world: World = { installation, scenario, key, developer, admin: `/v1/admin/projects/${scenario.projectId}` }
    const batches = await measureBatches(world)
    const loop = await measureLoop(world)
    say(`${phones} phones at once: ${figure(loop.p99)} ms`)
    await fillIssues(sqlOf(world), issues, reports)
    const reads = await measureReads(world)
    const purge = await measurePurge(sqlOf(world))
    await report(world, { batches, loop, reads, purge })
  } finally {
    await installation.end()
  }
}

type Found = {
  readonly batches: Awaited<ReturnType<typeof measureBatches>>
  readonly loop: Awaited<ReturnType<typeof measureLoop>>
  readonly reads: ReadonlyMap<string, Measured>
  readonly purge: Awaited<ReturnType<typeof measurePurge>>
}

const report = async ({ installation }: World, { batches, loop, reads, purge }: Found) => {
  const [[, own = []] = [], [, events = []] = []] = [...batches.figures]
  const p50 = ({ p50: ms }: Measured) => ms
  const ms = medianOf(own, cpuOf) / 1000
  const ratio = medianRatio(own.map(cpuOf), events.map(cpuOf))
  const lists = [...reads].filter(([name]) => name.startsWith('issues'))
  const slowest = Math.max(...lists.map(([, read]) => cpuOf(read))) / 1000
  const aims: Aim[] = [
    {
      text: `50 reports with stacks of 8 KB take ${figure(ms)} ms of CPU, ${figure(ratio)} times a batch of 50 events of as many bytes; ${figure(medianOf(own, p50))} ms in the middle on this machine (aim: under 25 of CPU)`,
      isMet: ms < 25,
      floor: `${figure(batches.bytes / 1000)} KB are parsed, checked and stored, and of each stack the first five frames are made one fingerprint`,
      ratios: [{ name: 'reports to events', value: ratio, better: 'lower' }],
    },
    {
      text: `${phones} phones that report one crash at once: ${loop.counted} counted, no error (aim: all)`,
      isMet: loop.counted === phones,
    },
    {
      text: `the longest wait of them for a lock is ${figure(loop.longest)} ms (aim: under 100)`,
      isMet: loop.longest < 100,
      floor:
        'as many wait as the pool has connections, each for the commits of those before it, which wait for the disk',
    },
    {
      text: `the slowest list of issues takes ${figure(slowest)} ms of CPU at ${issues.toLocaleString('en')} issues and ${reports.toLocaleString('en')} reports (aim: under 20)`,
      isMet: slowest < 20,
      floor: 'the count of all that match, which the contract wants beside a page; the page itself is an index',
    },
    {
      text: `the purge deletes ${figure(purge.perSecond)} reports a second, 5,000 of them in ${figure(purge.longest)} ms at most (aim: a step under a second; by rows, since reports are found by their id)`,
      isMet: purge.longest < 1000,
    },
  ]
  const batchRows = [...batches.figures].map(([name, figures]) => [
    name,
    ...[p50, (f: Measured) => f.p99, (f: Measured) => f.server / 1000, (f: Measured) => f.postgres / 1000].map((part) =>
      figure(medianOf(figures, part)),
    ),
  ])
  const readRows = [...reads].map(([name, read]) => [name, ...[read.p50, read.p99, cpuOf(read) / 1000].map(figure)])
  const text = [
    '## bench:diagnostics',
    await circumstances(`npm run bench:diagnostics${given ? ` -- --most ${given}` : ''}`, {
      ...{ Postgres: installation.postgresVersion, undici: await versionOf('undici') },
    }),
    `One caller, but for the crash loop. A batch has ${figure(batches.bytes / 1000)} KB; an API that takes one error a request takes at most 1 MB in each. Lists read issues alone, however many reports there are.`,
    table(['a batch', 'p50 ms', 'p99 ms', 'server ms of CPU', 'Postgres ms of CPU'], batchRows),
    `${phones} phones at once: ${figure(loop.perSecond)} a second, ${figure(loop.p50)} ms in the middle, ${figure(loop.p99)} ms at most of 99 in 100.`,
    table(['a read', 'p50 ms', 'p99 ms', 'ms of CPU'], readRows),
    aims.map(aimLine).join('\n'),
  ].join('\n\n')
  await publish({ name: 'bench:diagnostics', isShort, text, aims })
}

await main()
