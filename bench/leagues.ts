// npm run bench:leagues [-- --users N]: points and joining beside a score of a leaderboard, and the closing of a season while its members play.
import { connectAdmin } from '#server/database/cluster.ts'
import type { Called, CallerCommand, Way } from './support/caller.ts'
import type { Child } from './support/child.ts'
import { processCpu, requireProc } from './support/cpu.ts'
import { asAdmin, createScenario, type Installation, install, type Scenario } from './support/installation.ts'
import { figure, medianOf, medianRatio, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'

const isShort = process.argv.includes('--short')
const users = Number(/^\d+$/.exec(process.argv[process.argv.indexOf('--users') + 1] ?? '')?.[0] ?? 100_000)
const size = isShort ? Math.min(users, 3000) : users
const [rounds, seconds] = isShort ? [2, 1] : [5, 1]
const concurrencies = [1, 8]
const quietSeconds = isShort ? 1 : 10
const cohortSize = 30
/** The first three of each cohort, a tenth of the users, are rewarded. */
const rewards = ['bronze', 'silver', 'gold'].map((tier_key) => ({
  tier_key,
  from_rank: 1,
  to_rank: 3,
  reward: { xp: 50 },
}))

/** A league and a board that one event each moves, another event that moves nothing, and a first time of each. */
const define = ({ cluster }: Installation, { database }: Scenario) =>
  asAdmin(
    cluster,
    database,
    `insert into app.leagues (key, name, tiers, points)
     select k, k, '[{"key": "bronze", "name": "b", "icon_url": null, "promote_count": 10, "relegate_count": 0},
                    {"key": "silver", "name": "s", "icon_url": null, "promote_count": 7, "relegate_count": 5},
                    {"key": "gold", "name": "g", "icon_url": null, "promote_count": 0, "relegate_count": 5}]',
            jsonb_build_object('type', 'event', 'event_name', e)
       from (values ('points', 'played'), ('season', 'none')) l (k, e);
     insert into app.leaderboards (key, name, source, scoring, period)
     values ('points', 'points', '{"type": "event", "event_name": "scored"}', 'count', 'weekly');
     create function api.bench_event(name text, is_first boolean default false) returns api.reply
     language plpgsql volatile security definer set search_path = '' as $$
     declare
       me uuid := internal.user_id();
     begin
       if bench_event.is_first then
         insert into app.users (display_name) values ('Player') returning id into me;
       end if;
       perform internal.lock_users(array[me]);
       perform internal.emit(me, bench_event.name, '{}');
       return internal.reply(200, 'true');
     end $$;
     grant execute on function api.bench_event to app_user`,
  )

/** A season that has been closed by hand, of full cohorts. */
const fill = async ({ cluster }: Installation, { database }: Scenario): Promise<void> => {
  const sql = (text: string, values: unknown[] = []) => asAdmin(cluster, database, text, values)
  await sql(
    `insert into app.users (display_name) select 'Player' from generate_series(1, $1 - (select count(*) from app.users))`,
    [size],
  )
  await sql(
    `with run as (
       insert into app.league_runs (league_id, run_key, period_key, starts_at, ends_at, takes_from, tiers, cohort_size, points, min_points_to_join,
                                    inactive_relegates, rewards, closed_at)
       select id, 'past', 'past', now() - interval '7 days', now(), now() - interval '7 days', tiers, $1::int, points, 1, true, $2, now()
         from app.leagues where key = 'season' returning id, league_id, starts_at
     ), people as materialized (
       select u.id, (row_number() over (order by md5(u.id::text)) - 1) / $1::int as n from app.users u
     ), cohorts as materialized (
       select p.n, internal.new_id() as id, count(*) as members from people p group by p.n
     ), made as (
       insert into app.league_cohorts (id, run_id, tier, lane, size, members)
       select c.id, run.id, c.n % 3, 0, $1::int, c.members from cohorts c, run returning id
     )
     insert into app.league_entries (run_id, app_user_id, league_id, began_at, cohort_id, tier, points, reached_at)
     select run.id, p.id, run.league_id, run.starts_at, c.id, c.n % 3, 1 + floor(random() * 1000), now()
       from people p join cohorts c on c.n = p.n, run where (select count(*) from made) > 0`,
    [cohortSize, JSON.stringify(rewards)],
  )
  for (const name of ['users', 'league_entries', 'league_cohorts']) await sql(`vacuum analyze app.${name}`)
  say(`a season of ${size} users`)
}

const event = (name: string, is_first = false): Way => ({
  kind: 'call',
  name: 'bench_event',
  args: { name, is_first },
  readOnly: false,
})
const board = 'a score of a leaderboard'
const first = 'a first score of a leaderboard'
const contestants = [
  { name: 'an event that moves nothing', way: event('idle') },
  { name: board, way: event('scored') },
  { name: 'points of a league', way: event('played') },
  { name: first, way: event('scored', true) },
  { name: 'joining a league', way: event('played', true) },
]
type Round = { readonly perSecond: number; readonly p50: number }

const measure = async (child: Child): Promise<Map<string, Round[]>> => {
  const figures = new Map<string, Round[]>()
  for (let round = 0; round <= rounds; round += 1) {
    for (const concurrency of concurrencies)
      for (const { name, way } of contestants) {
        const { perSecond, p50 } = await child.ask<Called>({
          kind: 'run',
          way,
          concurrency,
          seconds,
        } satisfies CallerCommand)
        const key = `${name} ${concurrency}`
        if (round > 0) figures.set(key, [...(figures.get(key) ?? []), { perSecond, p50 }])
      }
    say(`round ${round} of ${rounds}`)
  }
  return figures
}

type Season = { readonly took: number; readonly cpu: number; readonly steps: number; readonly longest: number }

/** Closes the season step by step, on one connection as the worker does. */
const close = async ({ cluster }: Installation, { database }: Scenario): Promise<Season> => {
  const worker = await connectAdmin(cluster, database, false)
  try {
    const { rows } = await worker.query<{ id: string; pid: number }>(
      `select l.id, pg_backend_pid() as pid from app.leagues l, set_config('app.caller', 'worker', false) where l.key = 'season'`,
    )
    const pid = rows[0]?.pid ?? 0
    const [since, spent] = [performance.now(), processCpu(pid)]
    let [steps, longest] = [0, 0]
    for (;;) {
      const began = performance.now()
      const turn = await worker.query<{ state: string }>({
        name: 'turn',
        text: `select (api.league_turn($1)).body -> 'data' ->> 'state' as state`,
        values: [rows[0]?.id],
      })
      steps += 1
      longest = Math.max(longest, performance.now() - began)
      if (turn.rows[0]?.state === 'done') {
        const [took, cpu] = [(performance.now() - since) / 1000, (processCpu(pid) - spent) / 1e6]
        return { took, cpu, steps, longest }
      }
    }
  } finally {
    await worker.end()
  }
}

type Latency = { readonly p50: number; readonly p95: number; readonly p99: number }

/** Seconds of events of the season's members, one after the other. */
const play = async (child: Child, isOver: (windows: number) => boolean): Promise<Latency> => {
  const windows: Called[] = []
  while (!isOver(windows.length)) {
    const command = { kind: 'run', way: event('played'), concurrency: 1, seconds: 1 } satisfies CallerCommand
    windows.push(await child.ask<Called>(command))
  }
  const at = (of: (window: Called) => number) => medianOf(windows, of)
  return { p50: at(({ p50 }) => p50), p95: at(({ p95 }) => p95), p99: at(({ p99 }) => p99) }
}

/** The same events before, during and after the closing, so that the minute of the machine shows. */
const closeMeanwhile = async (child: Child, installation: Installation, scenario: Scenario) => {
  const before = await play(child, (windows) => windows >= quietSeconds)
  let season: Season | undefined
  const closing = close(installation, scenario).then((closed) => {
    season = closed
    return closed
  })
  const busy = await play(child, (windows) => season !== undefined && windows > 0)
  const closed = await closing
  const after = await play(child, (windows) => windows >= quietSeconds)
  const mean = (of: (latency: Latency) => number) => (of(before) + of(after)) / 2
  const quiet = { p50: mean(({ p50 }) => p50), p95: mean(({ p95 }) => p95), p99: mean(({ p99 }) => p99) }
  return { season: closed, busy, quiet }
}

const main = async () => {
  requireProc()
  const installation = await install()
  let child: Child | undefined
  try {
    const scenario = await createScenario(installation, 8)
    await define(installation, scenario)
    child = await scenario.caller()
    const figures = await measure(child)
    await fill(installation, scenario)
    const { season, busy, quiet } = await closeMeanwhile(child, installation, scenario)
    const of = (name: string, concurrency: number) => figures.get(`${name} ${concurrency}`) ?? []
    const times = (name: string, to: string, c: number) =>
      medianRatio(
        of(to, c).map(({ perSecond }) => perSecond),
        of(name, c).map(({ perSecond }) => perSecond),
      )
    const rows = contestants.map(({ name }) => [
      name,
      ...concurrencies.flatMap((c) => [
        figure(medianOf(of(name, c), ({ perSecond }) => perSecond)),
        figure(medianOf(of(name, c), ({ p50 }) => p50)),
      ]),
    ])
    const aims = concurrencies.flatMap((c): Aim[] => [
      {
        text: `points at ${c}: ${figure(times('points of a league', board, c))} times a score of a leaderboard (aim: at most 1)`,
        isMet: times('points of a league', board, c) <= 1,
      },
      {
        text: `joining at ${c}: ${figure(times('joining a league', first, c))} times a first score (aim: at most 1)`,
        isMet: times('joining a league', first, c) <= 1,
      },
    ])
    const million = (season.took / size) * 1_000_000
    aims.push({
      text: `a season of ${size} users: ${figure(season.took)} s in ${season.steps} steps, the longest ${figure(season.longest)} ms, ${figure(season.cpu)} s of it CPU of Postgres; at this rate a million takes ${figure(million)} s (aim: at most 120)`,
      isMet: million <= 120,
    })
    const latency = ({ p50, p95, p99 }: Latency) => [p50, p95, p99].map(figure)
    const meanwhile = table(
      ['an event of a member, ms', 'p50', 'p95', 'p99'],
      [
        ['before and after the closing', ...latency(quiet)],
        ['while the season is closed', ...latency(busy)],
      ],
    )
    aims.push({
      text: `an event while the season is closed: ${figure(busy.p95)} ms at p95, ${figure(busy.p95 / quiet.p95)} times that before and after (aim: at most 1.5)`,
      isMet: busy.p95 / quiet.p95 <= 1.5,
    })
    const head = ['', ...concurrencies.flatMap((c) => [`c=${c} a second`, 'p50 ms'])]
    const parts = [
      '## bench:leagues',
      await circumstances(`npm run bench:leagues -- --users ${users}`, { Postgres: installation.postgresVersion }),
      'Calls of `database.call`, without HTTP, committed with fsync, of eight users. A first time is of a user who is made in the same transaction.',
      table(head, rows),
      'The season has cohorts of 30 who are scattered over the table of users; a tenth of them gets XP at the end.',
      meanwhile,
      aims.map(aimLine).join('\n'),
    ]
    await publish({ name: 'bench:leagues', isShort, text: parts.join('\n\n') })
  } finally {
    await child?.end()
    await installation.end()
  }
}

await main()
