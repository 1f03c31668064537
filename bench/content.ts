// npm run bench:content: reads of content in five languages beside the remote config and PostgREST, saves, and a thousand schedules of one second.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { startHttpsReceiver } from '#test/support/https.ts'
import { ask } from '#test/support/process.ts'
import { type Asked, closedLoop, type Looped } from './support/closed_loop.ts'
import { familyCpu, postgresCpu, requireProc } from './support/cpu.ts'
import { asAdmin, createScenario, type Installation, install } from './support/installation.ts'
import { figure, medianOf, medianRatio, table } from './support/numbers.ts'
import { startPostgrest } from './support/postgrest.ts'
import { type Aim, aimLine, circumstances, publish, say, versionOf } from './support/results.ts'

const isShort = process.argv.includes('--short')
const [entries, rounds, seconds, schedules] = isShort ? [1000, 2, 0.5, 200] : [10_000, 5, 1, 1000]
const callers = 8
const locales = ['en', 'de', 'fr', 'es', 'pt']
type Headers = Readonly<Record<string, string>>
type Figure = Looped & { readonly server: number; readonly postgres: number }

/** Entries of ten types and twenty tags, each in five languages of ten fields, all published; and the same fields as one row of JSON. */
const fill = async ({ cluster }: Installation, database: string) => {
  const sql = (text: string, values: unknown[] = []) => asAdmin(cluster, database, text, values)
  await sql(
    `insert into app.content_entries (key, content_type, default_locale, tags)
     select 'entry-' || n, 'type-' || n % 10, 'en', array['tag-' || n % 20, 'all'] from generate_series(1, $1::int) n`,
    [entries],
  )
  await sql(
    `insert into app.content_locales (entry_id, locale, version, published_version, published_at)
     select e.id, l, 1, 1, now() from app.content_entries e, unnest($1::text[]) l`,
    [locales],
  )
  await sql(
    `insert into app.content_versions (entry_id, locale, version, fields, author)
     select l.entry_id, l.locale, 1, f.fields, '{"type": "developer", "id": null}'
       from app.content_locales l
      cross join lateral (select jsonb_object_agg('field_' || n, l.locale || ' text of field ' || n || repeat(' and more', 10))
                            from generate_series(1, 10) n) f (fields)`,
  )
  await sql(
    `create table app.bench_documents (key text primary key, data jsonb not null);
     insert into app.bench_documents
     select e.key, v.fields from app.content_entries e join app.content_versions v on v.entry_id = e.id and v.locale = 'de'`,
  )
  await sql(
    `insert into app.config_keys (key, value) select 'key_' || n, to_jsonb('value ' || n) from generate_series(1, 20) n`,
  )
  await sql('vacuum analyze')
}

const rss = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1000

/** The headers with which an answer is known already. */
const knownOf = async (url: string, headers: Headers): Promise<Headers> => {
  const etag = (await fetch(url, { headers })).headers.get('etag')
  if (!etag) throw new Error(`${url} has no ETag`)
  return { ...headers, 'if-none-match': etag }
}

type Contestant = {
  readonly name: string
  readonly origin: string
  readonly pid: number
  readonly status: number
  next(n: number): Asked
}

const measure = async (contestants: readonly Contestant[], postmaster: number) => {
  const figures = new Map<string, Figure[]>()
  for (let round = 0; round <= rounds; round += 1) {
    for (const { name, origin, pid, status, next } of contestants) {
      const before = { server: familyCpu(pid), postgres: postgresCpu(postmaster) }
      const looped = await closedLoop(origin, next, status, { callers, seconds })
      const part = {
        server: (familyCpu(pid) - before.server) / looped.requests,
        postgres: (postgresCpu(postmaster) - before.postgres) / looped.requests,
      }
      if (round > 0) figures.set(name, [...(figures.get(name) ?? []), { ...looped, ...part }])
    }
    say(`round ${round} of ${rounds}`)
  }
  return figures
}

/** Saves of a language that has fifty versions: the oldest goes with each. */
const measureSaves = async (
  { postmaster }: Installation,
  { url, admin, developer, pid }: { url: string; admin: string; developer: Headers; pid: number },
): Promise<Figure> => {
  const headers = { ...developer, 'content-type': 'application/json' }
  const save = (n: number): Asked => {
    const fields = Object.fromEntries(
      Array.from({ length: 10 }, (_, k) => [`field_${k}`, `text ${n} ${'and more '.repeat(10)}`]),
    )
    return { path: `${admin}/content/entry-1/locales/en`, method: 'PUT', headers, body: JSON.stringify({ fields }) }
  }
  await closedLoop(url, save, 200, { callers: 1, seconds: 60, most: 60 })
  const before = { server: familyCpu(pid), postgres: postgresCpu(postmaster) }
  const looped = await closedLoop(url, save, 200, { callers: 1, seconds: 20, most: isShort ? 50 : 200 })
  return {
    ...looped,
    server: (familyCpu(pid) - before.server) / looped.requests,
    postgres: (postgresCpu(postmaster) - before.postgres) / looped.requests,
  }
}

type Scheduled = { readonly visible: number; readonly settled: number; readonly received: number }

/** A thousand entries are scheduled for one second: how many a read shows right after it, and when the last event came, in seconds. */
const measureSchedules = async (
  installation: Installation,
  {
    url,
    admin,
    developer,
    key,
    database,
  }: { url: string; admin: string; developer: Headers; key: Headers; database: string },
  receiver: { readonly requests: readonly unknown[]; readonly url: string },
): Promise<Scheduled> => {
  const sql = <T extends Record<string, unknown>>(text: string, values: unknown[] = []) =>
    asAdmin<T>(installation.cluster, database, text, values)
  await ask(
    url,
    'POST',
    `${admin}/webhooks`,
    { event_name: 'svc.content.published', target_url: receiver.url },
    developer,
  )
  await sql(
    `insert into app.content_entries (key, content_type, default_locale, tags)
     select 'later-' || n, 'later', 'en', '{later}' from generate_series(1, $1::int) n`,
    [schedules],
  )
  await sql(
    `insert into app.content_locales (entry_id, locale) select id, 'en' from app.content_entries where content_type = 'later'`,
  )
  await sql(`insert into app.content_versions (entry_id, locale, version, fields, author)
    select id, 'en', 1, '{"title": "Later"}', '{"type": "developer", "id": null}' from app.content_entries where content_type = 'later'`)
  const at = new Date(Date.now() + (isShort ? 8000 : 25_000))
  const headers = { ...developer, 'content-type': 'application/json' }
  const body = JSON.stringify({ publish_at: at.toISOString() })
  await closedLoop(
    url,
    (n) => ({ path: `${admin}/content/later-${n + 1}/locales/en/publish`, method: 'POST', headers, body }),
    200,
    { callers, seconds: 60, most: schedules },
  )
  if (Date.now() > at.getTime()) throw new Error('the schedules were made too late')
  await sleep(at.getTime() - Date.now())
  const { body: page } = await ask(url, 'GET', '/v1/client/content?tag=later&limit=1', undefined, key)
  const since = () => (Date.now() - at.getTime()) / 1000
  let settled = Number.NaN
  for (
    const deadline = Date.now() + 60_000;
    Date.now() < deadline && receiver.requests.length < schedules;
    await sleep(50)
  ) {
    if (!Number.isNaN(settled)) continue
    const [left] = await sql<{ n: number }>(
      'select count(*)::int as n from app.content_locales where publish_at is not null',
    )
    if (left?.n === 0) settled = since()
  }
  return { visible: page.total as number, settled, received: since() }
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
    await fill(installation, database)
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
    const of = (name: string, path: string | ((n: number) => string), headers: Headers, status = 200): Contestant => ({
      name,
      origin: server.url,
      pid,
      status,
      next: (n) => ({ path: typeof path === 'string' ? path : path(n), headers }),
    })
    const contestants: Contestant[] = [
      of('GET /client/config', '/v1/client/config', user),
      of('GET /client/config, 304', '/v1/client/config', await knownOf(`${server.url}/v1/client/config`, user), 304),
      of('one entry', (n) => `/v1/client/content/entry-${(n % entries) + 1}?locale=de`, german),
      of('one entry, 304', one, await knownOf(server.url + one, german), 304),
      of('list of 50, by type and tag', list, german),
    ]
    if (postgrest) {
      const { origin } = new URL(postgrest.row)
      contestants.push({
        name: 'PostgREST, one row with jsonb',
        ...{ origin, pid: postgrest.pid, status: 200 },
        next: (n) => ({
          path: `/bench_documents?key=eq.entry-${(n % entries) + 1}`,
          headers: { ...postgrest.headers, 'accept-profile': 'app', accept: 'application/vnd.pgrst.object+json' },
        }),
      })
    }
    const figures = await measure(contestants, installation.postmaster)
    const before = rss(pid)
    await closedLoop(
      server.url,
      (n) => ({ path: `/v1/client/content/entry-${(n % entries) + 1}?locale=${locales[n % 5]}`, headers: german }),
      200,
      { callers, seconds: 60, most: entries },
    )
    const grown = rss(pid) - before
    const saves = await measureSaves(installation, { url: server.url, admin, developer, pid })
    say(`saves: ${figure(saves.p50)} ms`)
    const scheduled = await measureSchedules(
      installation,
      { url: server.url, admin, developer, key: user, database },
      receiver,
    )
    await report({ installation, figures, grown, saves, scheduled, postgrest: postgrest?.version })
  } finally {
    for (const end of ends.reverse()) await end()
    await installation.end()
  }
}

type Found = {
  readonly installation: Installation
  readonly figures: ReadonlyMap<string, Figure[]>
  readonly grown: number
  readonly saves: Figure
  readonly scheduled: Scheduled
  readonly postgrest: string | undefined
}

const report = async ({ installation, figures, grown, saves, scheduled, postgrest }: Found) => {
  const sum = ({ server, postgres }: Figure) => server + postgres
  const of = (name: string) => figures.get(name) ?? []
  const times = (name: string, to: string) => medianRatio(of(name).map(sum), of(to).map(sum))
  const [read, known] = [times('one entry', 'GET /client/config'), times('one entry, 304', 'GET /client/config')]
  const page = medianOf(of('list of 50, by type and tag'), sum) / 1000
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
      floor: `a request of nothing but HTTP, the key, the session and one call is most of it: the 304 of the config itself takes ${figure(times('GET /client/config, 304', 'GET /client/config'))}`,
      ratios: [{ name: '304 to config', value: known, better: 'lower' }],
    },
    {
      text: `a list of 50 by type and tag takes ${figure(page)} ms of CPU (aim: under 10)`,
      isMet: page < 10,
    },
    {
      text: `a save at 50 versions takes ${figure(sum(saves) / 1000)} ms of CPU, and ${figure(saves.p50)} ms in the middle on this machine (aim: under 5 of CPU)`,
      isMet: sum(saves) < 5000,
      floor:
        'of it a commit that waits for the disk, an audit event with its own row, and the purge of the oldest version',
    },
    {
      text: `of ${schedules} schedules in one second ${scheduled.visible} are visible at once (aim: all)`,
      isMet: scheduled.visible === schedules,
    },
    {
      text: `their last event is written after ${figure(scheduled.settled)} s, and received by one receiver after ${figure(scheduled.received)} s (aim: under 10)`,
      isMet: scheduled.settled < 10,
    },
    {
      text: `the server has ${figure(grown)} MB more after ${entries.toLocaleString('en')} more reads of different entries (aim: under 50)`,
      isMet: grown < 50,
    },
  ]
  const head = ['', 'a second', 'p50 ms', 'server us', 'Postgres us', 'all us', 'to config']
  const rows = [...figures.keys()].map((name) => [
    name,
    ...[(f: Figure) => f.perSecond, (f: Figure) => f.p50, (f: Figure) => f.server, (f: Figure) => f.postgres, sum].map(
      (part) => figure(medianOf(of(name), part)),
    ),
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
