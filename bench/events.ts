// npm run bench:events: events through the pipeline, with definitions that match them, beside a bare insert into the same table.
import type { Client } from 'pg'
import { connectAdmin } from '#server/database/cluster.ts'
import { endServer } from '#test/support/process.ts'
import { processCpu, requireProc } from './support/cpu.ts'
import { measureEventPeers, peerUsers } from './support/event_peers.ts'
import { measurePosts } from './support/event_posts.ts'
import { createScenario, install } from './support/installation.ts'
import { figure, medianOf, medianRatio, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'

const isShort = process.argv.includes('--short')
const [rounds, batches, singles] = isShort ? [2, 3, 30] : [3, 10, 100]
/** Events of a new day are dear to come by: each call moves the clock to the next one. */
const [dayBatches, daySingles] = isShort ? [2, 5] : [5, 20]
const users = 100
const batch = 500
/** Two of each kind that an event moves by itself: XP rules, streaks, challenges, achievements and leaderboards. */
const kinds = 5
/** A log to work on: plans and indexes are those of a table that holds something. */
const history = isShort ? 10 : 100
const counts = [0, 10, 50] as const
const matching = counts.filter((count) => count > 0)
const most = Math.max(...counts) / kinds

type Way = {
  readonly name: string
  readonly definitions: number | null
  /** What callers see of it is worked out and put together as well. */
  readonly withEffects?: true
  /** Each call is on a day that none of the users has been on. */
  readonly onNewDays?: true
}
type Round = { readonly seconds: number; readonly cpu: number }

const ways: readonly Way[] = [
  { name: 'bare insert, no hooks', definitions: null },
  ...counts.map((count) => ({ name: `${count} definitions`, definitions: count })),
  ...matching.map((count) => ({
    name: `${count} definitions, effects`,
    definitions: count,
    withEffects: true as const,
  })),
]
/** Measured last, for the clock does not go back. */
const waysOfDays: readonly Way[] = [
  { name: 'bare insert on new days', definitions: null, onNewDays: true },
  ...matching.map((count) => ({
    name: `${count} definitions, new days`,
    definitions: count,
    onNewDays: true as const,
  })),
]
const sizes = [1, batch] as const
/**
 * How many times a bare insert an event may cost, in CPU of Postgres. The floor, every write alone in its smallest statement, is 1.5 and 2.3 for
 * single events of 10 and 50 definitions, about 4.5 and 14 in a batch: of each event every rule writes a row of the ledger, with three indexes.
 */
const aims: readonly { size: number; definitions: number; most: number }[] = [
  { size: 1, definitions: 0, most: 1.5 },
  { size: 1, definitions: 10, most: 6.5 },
  { size: 1, definitions: 50, most: 9.5 },
  { size: batch, definitions: 0, most: 1.2 },
  { size: batch, definitions: 10, most: 7.5 },
  { size: batch, definitions: 50, most: 21 },
]
/** How many times one without effects an event of a batch with effects may cost. */
const mostWithEffects = 2

const prepare = `
  create schema bench;
  insert into app.users (display_name) select 'user ' || n from generate_series(1, ${users}) n;
  create table bench.people as select u.id, row_number() over (order by u.id) as place from app.users u;
  insert into app.xp_rules (key, name, event_name, amount)
  select 'rule-' || n, 'Rule', 'lesson_completed', 10 from generate_series(1, ${most}) n;
  insert into app.streak_definitions (key, name, qualifying_event)
  select 'streak-' || n, 'Streak', 'lesson_completed' from generate_series(1, ${most}) n;
  insert into app.challenges (name, start_at, end_at, goal_type, event_name, goal_value)
  select 'challenge-' || n, now() - interval '1 day', now() + interval '1000 days', 'event_count', 'lesson_completed', 1000000000
    from generate_series(1, ${most}) n;
  insert into app.achievements (key, name, criteria)
  select 'achievement-' || n, 'Achievement', '{"type": "event_count", "event_name": "lesson_completed", "target_value": 1000000000}'
    from generate_series(1, ${most}) n;
  insert into app.leaderboards (key, name, source, scoring, period)
  select 'board-' || n, 'Board', '{"type": "event", "event_name": "lesson_completed"}', 'count', 'weekly' from generate_series(1, ${most}) n;
  create function bench.keep(count int) returns void language plpgsql as $$
  begin
    update app.xp_rules set is_active = split_part(key, '-', 2)::int <= keep.count / ${kinds};
    update app.streak_definitions set is_active = split_part(key, '-', 2)::int <= keep.count / ${kinds};
    update app.challenges set is_active = split_part(name, '-', 2)::int <= keep.count / ${kinds};
    update app.achievements set is_active = split_part(key, '-', 2)::int <= keep.count / ${kinds};
    update app.leaderboards set is_active = split_part(key, '-', 2)::int <= keep.count / ${kinds};
  end $$;
  create function bench.next_day() returns text language sql volatile as $$
    select set_config('app.clock', (internal.now() + interval '1 day')::text, false)
  $$;
  -- planned once: else the bare insert would mostly be the planning of this statement
  create function bench.post(size int) returns void language plpgsql set plan_cache_mode = 'force_generic_plan' as $$
  begin
    perform internal.lock_users(array(select p.id from bench.people p where p.place <= post.size));
    insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
    select internal.new_id(), p.id, 'lesson_completed', '{"lesson": 3}', internal.now(), internal.now(), 'server'
      from generate_series(0, post.size - 1) as e (n)
      join bench.people p on p.place = e.n % ${users} + 1
     order by p.id;
  end $$`

/** Until the next call only these definitions match, or no hook runs at all. */
const arrange = async (client: Client, { definitions }: Way) => {
  await client.query(`alter table app.engagement_events ${definitions === null ? 'disable' : 'enable'} trigger user`)
  await client.query('select bench.keep($1)', [definitions ?? 0])
}

const statementOf = ({ withEffects, onNewDays }: Way, size: number) => {
  const [name, text] = withEffects
    ? ['effects', `select internal.collect_effects(), bench.post($1), length(internal.effects_json()::text)`]
    : onNewDays
      ? ['days', 'select bench.next_day(), bench.post($1)']
      : ['post', 'select bench.post($1)']
  return { name: `bench_${name}`, text, values: [size] }
}

const turn = async (client: Client, backend: number, way: Way, size: number): Promise<Round> => {
  const [some, many] = way.onNewDays ? [dayBatches, daySingles] : [batches, singles]
  const times = size === 1 ? many : some
  const post = statementOf(way, size)
  // plans are made anew when triggers change
  for (let time = 0; time < (size === 1 && !way.onNewDays ? 10 : 1); time += 1) await client.query(post)
  const before = { at: performance.now(), cpu: processCpu(backend) }
  for (let time = 0; time < times; time += 1) await client.query(post)
  const events = times * size
  return {
    seconds: (performance.now() - before.at) / 1000 / events,
    cpu: (processCpu(backend) - before.cpu) / events,
  }
}

type Figures = ReadonlyMap<string, readonly Round[]>
const keyOf = (way: Way, size: number) => `${way.name} ${size}`

const measure = async (client: Client, backend: number): Promise<Figures> => {
  const figures = new Map<string, Round[]>()
  for (const part of [ways, waysOfDays])
    for (let round = 0; round <= rounds; round += 1) {
      for (const way of part) {
        await arrange(client, way)
        for (const size of sizes) {
          const taken = await turn(client, backend, way, size)
          if (round > 0) figures.set(keyOf(way, size), [...(figures.get(keyOf(way, size)) ?? []), taken])
        }
      }
      say(`round ${round} of ${rounds}${part === waysOfDays ? ' on new days' : ''}`)
    }
  return figures
}

const report = (figures: Figures): { text: string; aims: Aim[] } => {
  const bareOf = (way: Way) => (way.onNewDays ? waysOfDays : ways)[0] ?? way
  const of = (way: Way, size: number) => figures.get(keyOf(way, size)) ?? []
  const times = (way: Way, size: number, part: (round: Round) => number) =>
    medianRatio(of(way, size).map(part), of(bareOf(way), size).map(part))
  const plain = (definitions: number) => ways.find((way) => way.definitions === definitions && !way.withEffects)
  const rows = [...ways, ...waysOfDays].map((way) => [
    way.name,
    ...sizes.flatMap((size) => [
      figure(1 / medianOf(of(way, size), (round) => round.seconds)),
      figure(times(way, size, (round) => round.seconds)),
      figure(medianOf(of(way, size), (round) => round.cpu)),
      figure(times(way, size, (round) => round.cpu)),
    ]),
  ])
  const head = [
    '',
    ...sizes.flatMap((size) => [`${size === 1 ? 'single' : `batch of ${size}`}, a second`, 'times', 'CPU us', 'times']),
  ]
  return {
    text: table(head, rows),
    aims: [
      ...aims.map(({ size, definitions, most: wanted }) => {
        const way = plain(definitions)
        const cost = way === undefined ? Number.NaN : times(way, size, (round) => round.cpu)
        const subject = size === 1 ? 'a single event' : `an event of a batch of ${size}`
        return {
          ratios: [
            { name: `${subject}, ${definitions} definitions, to a bare insert`, value: cost, better: 'lower' } as const,
          ],
          text: `with ${definitions} definitions that match, ${subject} costs ${figure(cost)} times the CPU of a bare insert (aim: at most ${wanted})`,
          isMet: cost <= wanted,
        }
      }),
      ...ways
        .filter(({ withEffects }) => withEffects)
        .map((way) => {
          const without = plain(way.definitions ?? 0) ?? way
          const cost = medianRatio(
            of(way, batch).map(({ cpu }) => cpu),
            of(without, batch).map(({ cpu }) => cpu),
          )
          return {
            ratios: [
              { name: `effects of a batch, ${way.definitions} definitions`, value: cost, better: 'lower' } as const,
            ],
            text: `with ${way.definitions} definitions and include_effects an event of a batch of ${batch} costs ${figure(cost)} times the CPU of one without (aim: at most ${mostWithEffects})`,
            isMet: cost <= mostWithEffects,
          }
        }),
    ],
  }
}

const notes = `One connection; batches hold events of ${users} users, 5 of each. Every event has the one name that all definitions match. Of 10 definitions 2 are XP rules (so each
event writes 2 rows of the ledger and one total), 2 daily streaks, 2 challenges, 2 achievements and 2 leaderboards that count it; of 50, five times as many. Before the
first turn ${history * batch} events are there. The bare insert is the same statement with the same locks into the same table, its triggers switched off; its indexes stay; its
plan is made once. "effects" collects what callers of single events and of batches with include_effects see, and puts the answer together. On "new days" the clock
moves on a day before each call, so that every streak is extended and every counter begins. "times" is to the bare insert of the same size, round by
round, and the median of that. CPU is that of the one
process of Postgres that works for this connection, for each event. The floor, every write alone in its smallest statement, is 1.5 and 2.3 times for single events of
10 and 50 definitions, about 4.5 and 14 in a batch: of each event every rule writes a row of the ledger, with three indexes. Over HTTP a server key posts single events for 100 users in turn, with ten definitions, and reads the
effects in the answers; each path has a project of its own on one server, and they take turns.
With several callers both paths record in one call what arrives at once, so that they differ less.
Beside peers, one event moves one leaderboard and one counter of ${peerUsers} users. PostgREST calls a plpgsql function that does these two writes, under policies; a cloud function of Parse Server
does the same. Trellis also stores the event and answers with ranks before and after, which is the floor with one caller: its
backend alone takes as long as PostgREST with its two writes. CPU is that of the peer's process and of all of Postgres, for each event. A peer that is not installed
(\`npm install\` in bench/peers) is left out.`

const main = async () => {
  requireProc()
  const installation = await install()
  let client: Client | undefined
  try {
    const scenario = await createScenario(installation, 0)
    await endServer(scenario.server)
    client = await connectAdmin(installation.cluster, scenario.database, false)
    await client.query(prepare)
    await client.query('select bench.keep(10)')
    for (let time = 0; time < history; time += 1) await client.query('select bench.post($1)', [batch])
    await client.query('analyze')
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const { text, aims: costs } = report(await measure(client, rows[0]?.pid ?? 0))
    await client.end()
    client = undefined
    const posts = await measurePosts(installation, prepare, rounds, isShort ? 2 : 5)
    const beside = await measureEventPeers(installation, rounds, isShort ? 2 : 5)
    const parts = [
      '## bench:events',
      await circumstances('npm run bench:events', { Postgres: installation.postgresVersion, ...beside.versions }),
      notes,
      text,
      posts.text,
      beside.text,
      [...costs, ...posts.aims, ...beside.aims].map(aimLine).join('\n'),
    ]
    await publish({ name: 'bench:events', isShort, text: parts.join('\n\n'), aims: costs })
  } finally {
    await client?.end()
    await installation.end()
  }
}

await main()
