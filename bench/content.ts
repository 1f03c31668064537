// npm run bench:content: reads of content in five languages beside the remote config and PostgREST, saves, and a thousand schedules of one second.
import { readFileSync } from 'node:fs'
import { startHttpsReceiver } from '#test/support/https.ts'
import { type Asked, closedLoop } from './support/closed_loop.ts'
import { fillContent, locales, measureSchedules, type Scheduled } from './support/content_entries.ts'
import { requireProc } from './support/cpu.ts'
import { asAdmin, createScenario, type Installation, install } from './support/installation.ts'
import { type Contestant, cpuOf, inTurns, type Measured, measured, type Where } from './support/measured.ts'
import { figure, medianOf, medianRatio, table } from './support/numbers.ts'
import { startPostgrest } from './support/postgrest.ts'
import { type Aim, aimLine, circumstances, publish, say, versionOf } from './support/results.ts'

const isShort = process.argv.includes('--short')
const [entries, rounds, seconds, schedules] = isShort ? [1000, 2, 0.5, 200] : [10_000, 5, 1, 1000]
const callers = 8
type Headers = Readonly<Record<string, string>>

const rss = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1000

/** The headers with which an answer is known already. */
const knownOf = async (url: string, headers: Headers): Promise<Headers> => {
  const etag = (await fetch(url, { headers })).headers.get('etag')
  if (!etag) throw new Error(`${url} has no ETag`)
  return { ...headers, 'if-none-match': etag }
}

/** Saves of a language that has fifty versions: the oldest goes with each. */
const measureSaves = async (where: Where, admin: string, developer: Headers): Promise<Measured> => {
  const headers = { ...developer, 'content-type': 'application/json' }
  const save = (n: number): Asked => {
    const fields = Object.fromEntries(
      Array.from({ length: 10 }, (_, k) => [`field_${k}`, `text ${n} ${'and more '.repeat(10)}`]),
    )
    return { path: `${admin}/content/entry-1/locales/en`, method: 'PUT', headers, body: JSON.stringify({ fields }) }
  }
  await closedLoop(where.origin, save, 200, { callers: 1, seconds: 60, most: 60 })
  return measured(where, save, 200, { callers: 1, seconds: 20, most: isShort ? 50 : 200 })
}

const main = async () => {
  requireProc()
  const installation = await install()
  const receiver = await startHttpsReceiver()
  const ends: (() => Promise<unknown>)[] = [() => receiver.close()]
  try {
    const scenario = await createScenario(installation, 1, {
      WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
      WEBHOOK_CA_FILE: receiver.caFile,
    })
    const { server, projectId, database, users } = scenario
    const user = users[0]?.headers ?? {}
    const developer = await scenario.switchOn({ graphql_enabled: true })
    const admin = `/v1/admin/projects/${projectId}`
    await fillContent(installation, database, entries)
    say(`${entries} entries`)
    const postgrest = await startPostgrest(installation, scenario)
    if (postgrest) {
      ends.push(() => postgrest.end())
      await asAdmin(installation.cluster, database, 'grant select on app.bench_documents to web_user')
    }
    const pid = server.child.pid ?? 0
    const german = { ...user, 'accept-language': 'de' }
    const one = '/v1/client/content/entry-7?locale=de'
    const list = '/v1/client/content?content_type=type-4&tag=tag-4&locale=de&limit=50'
    const where = { origin: server.url, pid, postmaster: installation.postmaster }
    const of = (name: string, path: string | ((n: number) => string), headers: Headers, status = 200): Contestant => ({
      name,
      where,
      status,
      next: (n) => ({ path: typeof path === 'string' ? path : path(n), headers }),
    })
    const contestants: Contestant[] = [
      of('GET /client/config', '/v1/client/config', user),
      of('GET /client/config, 304', '/v1/client/config', await knownOf(`${server.url}/v1/client/config`, user), 304),
      of('one entry', (n) => `/v1/client/content/entry-${(n % entries) + 1}?locale=de`, german),
      of('one entry, 304', one, await knownOf(server.url + one, german), 304),
      of('no entry, 404', '/v1/client/content/none?locale=de', german, 404),
      of('list of 50, by type and tag', list, german),
    ]
    if (postgrest) {
      const { origin } = new URL(postgrest.row)
      contestants.push({
        name: 'PostgREST, one row with jsonb',
        where: { ...where, origin, pid: postgrest.pid },
        status: 200,
        next: (n) => ({
          path: `/bench_documents?key=eq.entry-${(n % entries) + 1}`,
          headers: { ...postgrest.headers, 'accept-profile': 'app', accept: 'application/vnd.pgrst.object+json' },
        }),
      })
    }
    const after = (round: number) => say(`round ${round} of ${rounds}`)
    const figures = await inTurns(contestants, rounds, { callers, seconds }, { after })
    const before = rss(pid)
    await closedLoop(
      server.url,
      (n) => ({ path: `/v1/client/content/entry-${(n % entries) + 1}?locale=${locales[n % 5]}`, headers: german }),
      200,
      { callers, seconds: 60, most: entries },
    )
    const grown = rss(pid) - before
    const saves = await measureSaves(where, admin, developer)
    say(`saves: ${figure(saves.p50)} ms`)
    const scheduled = await measureSchedules(
      installation,
      { url: server.url, admin, developer, key: user, database },
      receiver,
      { schedules, inMs: isShort ? 8000 : 25_000 },
    )
    await report({ installation, figures, grown, saves, scheduled, postgrest: postgrest?.version })
  } finally {
    for (const end of ends.reverse()) await end()
    await installation.end()
  }
}

type Found = {
  readonly installation: Installation
  readonly figures: ReadonlyMap<string, readonly Measured[]>
  readonly grown: number
  readonly saves: Measured
  readonly scheduled: Scheduled
  readonly postgrest: string | undefined
}

const report = async ({ installation, figures, grown, saves, scheduled, postgrest }: Found) => {
  const of = (name: string) => figures.get(name) ?? []
  const times = (name: string, to: string) => medianRatio(of(name).map(cpuOf), of(to).map(cpuOf))
  const [read, known] = [times('one entry', 'GET /client/config'), times('one entry, 304', 'GET /client/config')]
  const page = medianOf(of('list of 50, by type and tag'), cpuOf) / 1000
  const aims: Aim[] = [
    {
      text: `one entry takes ${figure(read)} times the CPU of GET /client/config (aim: at most 1.3)`,
      isMet: read <= 1.3,
      floor:
        'an entry, its languages and a version are three tables, of which five rows are read; a config of 20 keys is one',
      ratios: [{ name: 'one entry to config', value: read, better: 'lower' }],
    },
    {
      text: `a 304 of an entry takes ${figure(known)} times the CPU of GET /client/config (aim: at most 0.5)`,
      isMet: known <= 0.5,
      floor: `HTTP, the key, the session and one call are most of it: the 404 of an entry that is not there takes ${figure(times('no entry, 404', 'GET /client/config'))}, the 304 of the config ${figure(times('GET /client/config, 304', 'GET /client/config'))}`,
      ratios: [{ name: '304 to config', value: known, better: 'lower' }],
    },
    {
      text: `a list of 50 by type and tag takes ${figure(page)} ms of CPU (aim: under 10)`,
      isMet: page < 10,
    },
    {
      text: `a save at 50 versions takes ${figure(cpuOf(saves) / 1000)} ms of CPU, and ${figure(saves.p50)} ms in the middle on this machine (aim: under 5 of CPU)`,
      isMet: cpuOf(saves) < 5000,
      floor:
        'of it a commit that waits for the disk, an audit event with its own row, and the purge of the oldest version',
    },
    {
      text: `of ${schedules} schedules in one second ${scheduled.visible} are visible at once (aim: all)`,
      isMet: scheduled.visible === schedules,
    },
    {
      text: `their last event is written after ${figure(scheduled.settled)} s, and received by one receiver after ${figure(scheduled.received)} s (aim: under 10)`,
      isMet: scheduled.settled < 10 && scheduled.received < 10,
    },
    {
      text: `the server has ${figure(grown)} MB more after ${entries.toLocaleString('en')} more reads of different entries (aim: under 50)`,
      isMet: grown < 50,
    },
  ]
  const head = ['', 'a second', 'p50 ms', 'server us', 'Postgres us', 'all us', 'to config']
  const columns: readonly ((f: Measured) => number)[] = [
    (f) => f.perSecond,
    (f) => f.p50,
    (f) => f.server,
    (f) => f.postgres,
    cpuOf,
  ]
  const rows = [...figures.keys()].map((name) => [
    name,
    ...columns.map((part) => figure(medianOf(of(name), part))),
    figure(times(name, 'GET /client/config')),
  ])
  const versions = { Postgres: installation.postgresVersion, undici: await versionOf('undici') }
  const text = [
    '## bench:content',
    await circumstances('npm run bench:content', { ...versions, ...(postgrest ? { PostgREST: postgrest } : {}) }),
    `${entries.toLocaleString('en')} entries of five languages with ten fields, ${callers} callers of one user, a config of 20 keys. "Server" is the process that answers: Trellis, or PostgREST.`,
    table(head, rows),
    aims.map(aimLine).join('\n'),
  ].join('\n\n')
  await publish({ name: 'bench:content', isShort, text, aims })
}

await main()
