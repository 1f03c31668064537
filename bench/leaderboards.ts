// npm run bench:leaderboards [-- --most N]: a score and a rank in a run of ten thousand and of a million entries, beside the update of one row by its key.
import { ask } from '#test/support/process.ts'
import type { Called, CallerCommand, Way } from './support/caller.ts'
import type { Child } from './support/child.ts'
import { requireProc } from './support/cpu.ts'
import { asAdmin, createScenario, type Installation, install, type Scenario } from './support/installation.ts'
import { figure, medianOf, medianRatio, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'

const isShort = process.argv.includes('--short')
const most = Number(/^\d+$/.exec(process.argv[process.argv.indexOf('--most') + 1] ?? '')?.[0] ?? 1_000_000)
const sizes = isShort ? [1000, 10_000] : [10_000, most]
const [rounds, seconds] = isShort ? [2, 1] : [5, 1]
const concurrencies = [1, 8]

type Contestant = { readonly name: string; readonly ways: readonly Way[] }
type Round = { readonly perSecond: number; readonly p50: number }

/** A board with this many entries, spread as scores are: most in the middle. The callers are among them. */
const fill = async ({ cluster }: Installation, { database, users }: Scenario, size: number): Promise<void> => {
  const key = `board-${size}`
  const sql = (text: string, values: unknown[] = []) => asAdmin(cluster, database, text, values)
  await sql(
    `with b as (insert into app.leaderboards (key, name, scoring, max_per_minute, client_writable) values ($1, $1, 'sum', 10000, true) returning id)
     insert into app.leaderboard_runs (leaderboard_id, run_key) select b.id, 'all' from b`,
    [key],
  )
  await sql(
    `insert into app.users (display_name) select 'Player' from generate_series(1, $1 - (select count(*) from app.users))`,
    [size],
  )
  await sql(
    `insert into app.leaderboard_entries (run_id, app_user_id, score, place, reached_at, submissions)
     select r.id, u.id, s.score, -s.score, now() - interval '1 day' + u.n * interval '1 millisecond', 1
       from (select id, row_number() over (order by id = any ($2::uuid[]) desc) as n from app.users) u
      cross join lateral (select round(((random() + random() + random()) * 10000)::numeric + u.n * 0) as score) s
       join app.leaderboards b on b.key = $1
       join app.leaderboard_runs r on r.leaderboard_id = b.id
      where u.n <= $3`,
    [key, users.map(({ userId }) => userId), size],
  )
  await sql(
    `select internal.leaderboard_fold(r.id) from app.leaderboard_runs r join app.leaderboards b on b.id = r.leaderboard_id where b.key = $1`,
    [key],
  )
  await sql('vacuum analyze app.leaderboard_entries')
  await sql('vacuum analyze app.leaderboard_buckets')
  await sql('vacuum analyze app.leaderboard_changes')
  say(`${size} entries`)
}

/** What everything is measured against: one row by its key, committed. */
const makePlain = ({ cluster }: Installation, { database }: Scenario) =>
  asAdmin(
    cluster,
    database,
    `create table app.bench_rows (id uuid primary key, score numeric not null, updated_at timestamptz not null);
     insert into app.bench_rows select id, 0, now() from app.users;
     create function api.bench_update() returns api.reply language plpgsql volatile security definer set search_path = '' as $$
     begin
       update app.bench_rows r set score = floor(random() * 30000), updated_at = internal.now() where r.id = internal.user_id();
       return internal.reply(200, 'true');
     end $$;
     grant execute on function api.bench_update to app_user`,
  )

const call = (name: string, args: Record<string, unknown>, readOnly: boolean): Way => ({
  kind: 'call',
  name,
  args,
  readOnly,
})

const plain = 'update of a row by its key'
const contestants: readonly Contestant[] = [
  { name: plain, ways: [call('bench_update', {}, false)] },
  ...sizes.flatMap((size) => [
    {
      name: `score among ${size}`,
      // sums that rise and fall, past some hundreds of others each time
      ways: [30, -30].map((score) => call('leaderboard_submit', { id_or_key: `board-${size}`, score }, false)),
    },
    { name: `my rank among ${size}`, ways: [call('leaderboard_me', { id_or_key: `board-${size}` }, true)] },
    {
      name: `around me among ${size}`,
      ways: [call('leaderboard_get', { id_or_key: `board-${size}`, around: 'me' }, true)],
    },
  ]),
]

const measure = async (child: Child): Promise<Map<string, Round[]>> => {
  const figures = new Map<string, Round[]>()
  for (let round = 0; round <= rounds; round += 1) {
    for (const concurrency of concurrencies) {
      for (const { name, ways } of contestants) {
        const way = ways[round % ways.length] as Way
        const { perSecond, p50 } = await child.ask<Called>({
          kind: 'run',
          way,
          concurrency,
          seconds,
        } satisfies CallerCommand)
        const key = `${name} ${concurrency}`
        if (round > 0) figures.set(key, [...(figures.get(key) ?? []), { perSecond, p50 }])
      }
    }
    say(`round ${round} of ${rounds}`)
  }
  return figures
}

/** By concurrency. Eight callers share two cores, and their updates one flush: what is left of an update is a fraction of a score's own CPU. */
const wanted: Readonly<Record<number, number>> = { 1: 5, 8: 9 }
const floorOfScore = 'a score writes an entry and two changes of ranks and reads two ranks; an update is one row'

const report = (figures: Map<string, Round[]>): { text: string; aims: Aim[] } => {
  const of = (name: string, concurrency: number) => figures.get(`${name} ${concurrency}`) ?? []
  const times = (name: string, to: string, concurrency: number) =>
    medianRatio(
      of(to, concurrency).map(({ perSecond }) => perSecond),
      of(name, concurrency).map(({ perSecond }) => perSecond),
    )
  const rows = contestants.map(({ name }) => [
    name,
    ...concurrencies.flatMap((concurrency) => [
      figure(medianOf(of(name, concurrency), ({ perSecond }) => perSecond)),
      figure(medianOf(of(name, concurrency), ({ p50 }) => p50)),
      figure(times(name, plain, concurrency)),
    ]),
  ])
  const [small, large] = sizes as [number, number]
  const aims = concurrencies.flatMap((concurrency) =>
    ['score', 'my rank'].flatMap((what): Aim[] => {
      const cost = times(`${what} among ${large}`, plain, concurrency)
      const growth = times(`${what} among ${large}`, `${what} among ${small}`, concurrency)
      return [
        {
          text: `${what} among ${large} at ${concurrency}: ${figure(cost)} times the update of a row (aim: at most ${wanted[concurrency]})`,
          isMet: cost <= (wanted[concurrency] ?? 0),
          ...(what === 'score' && { floor: floorOfScore }),
        },
        {
          text: `${what} among ${large} at ${concurrency}: ${figure(growth)} times what it takes among ${small} (aim: at most 1.7)`,
          isMet: growth <= 1.7,
        },
      ]
    }),
  )
  const head = ['', ...concurrencies.flatMap((c) => [`c=${c} a second`, 'p50 ms', 'times the update'])]
  return { text: table(head, rows), aims }
}

const main = async () => {
  requireProc()
  const installation = await install()
  let child: Child | undefined
  try {
    const scenario = await createScenario(installation, 8)
    await makePlain(installation, scenario)
    for (const size of sizes) await fill(installation, scenario, size)
    child = await scenario.caller()
    // what is queued is seen when somebody writes through the server: calls of the bench go past it
    const writes = setInterval(() => {
      void ask(scenario.server.url, 'POST', '/v1/client/events', { name: 'tick' }, scenario.users[0]?.headers)
    }, 200)
    const { text, aims } = report(await measure(child).finally(() => clearInterval(writes)))
    const notes = `Calls of \`database.call\`, without HTTP, committed with fsync, of eight users. Every score moves its entry; its answer has the ranks
before and after. Ratios are of the times, round by round, and their median.`
    const parts = [
      '## bench:leaderboards',
      await circumstances(`npm run bench:leaderboards -- --most ${most}`, { Postgres: installation.postgresVersion }),
      notes,
      text,
      aims.map(aimLine).join('\n'),
    ]
    await publish({ name: 'bench:leaderboards', isShort, text: parts.join('\n\n') })
  } finally {
    await child?.end()
    await installation.end()
  }
}

await main()
