import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'
import {
  type Drawn,
  day,
  drawn,
  expected,
  hour,
  type Life,
  lived,
  midnightOf,
  type Outcome,
} from '#test/support/streak_lives.ts'

/*
 * The fold against the same rules told once more: here event by event, with the calendars and wall clocks of JavaScript.
 * Whatever the zones, grace, freezes and pauses, and in whatever order events arrive, both come to the same chain.
 */
const harness = await startHarness()
const project = await harness.project()

let database: pg.Client
beforeAll(async () => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  database = new pg.Client({ connectionString: url.href, options: '-c role=trellis_owner' })
  await database.connect()
})
afterAll(() => database.end())

const setClock = (at: number) =>
  database.query(`select set_config('app.clock', $1, true)`, [new Date(at).toISOString()])

/** A user and a definition with what is known from the beginning: pauses, and gifts of freezes. */
const settle = async ({ rules, ...life }: Life, home: string) => {
  await setClock(Math.min(...life.events, ...life.moves.map((move) => move.at), life.now) - 1000)
  const definitions = await database.query<{ id: string }>(
    `insert into app.streak_definitions
       (key, name, qualifying_event, period, week_starts_on, min_count, grace_hours, freezes_initial, freezes_max, freeze_earn_every)
     values ('fold', 'Fold', 'fold', $1, $2, $3, $4, $5, $6, $7) returning id`,
    [rules.period, rules.weekStartsOn, rules.minCount, rules.graceHours, rules.initial, rules.max, rules.earnEvery],
  )
  const users = await database.query<{ id: string }>(
    `insert into app.users (display_name, timezone) values ('Fold', $1) returning id`,
    [home],
  )
  const ids = [users.rows[0]!.id, definitions.rows[0]!.id]
  if (life.moves.length + life.pauses.length + life.gifts.length > 0) {
    await database.query('select internal.streak_join($1, d) from app.streak_definitions d where d.id = $2', ids)
  }
  for (const [start, end] of life.pauses) {
    await database.query(
      'insert into app.streak_pauses (app_user_id, streak_definition_id, starts_on, ends_on) values ($1, $2, $3, $4)',
      [...ids, start, end],
    )
  }
  for (const { from, amount } of life.gifts) {
    await database.query(
      `insert into app.streak_freezes (app_user_id, streak_definition_id, applies_from, amount, freezes_max, source_type)
       values ($1, $2, $3, $4, $5, 'test')`,
      [...ids, from, amount, rules.max],
    )
  }
  return ids
}

const feed = (ids: string[], times: readonly number[]) =>
  database.query(
    `select internal.streaks_count(array(
       select ($1::uuid, $2::uuid, to_timestamp(t / 1000.0), false)::internal.streak_act from unnest($3::float8[]) t))`,
    [...ids, times],
  )
const move = ([userId]: string[], to: string) =>
  database.query('update app.users set timezone = $2 where id = $1', [userId, to])

/** Every event when it happens, moves in between. */
const live = async (life: Life, ids: string[]) => {
  const steps = [...life.events.map((at) => ({ at, to: null })), ...life.moves]
  for (const step of steps.sort((a, b) => a.at - b.at || (a.to ? -1 : 1))) {
    await setClock(step.at)
    await (step.to === null ? feed(ids, [step.at]) : move(ids, step.to))
  }
}

/** All events at the end, shuffled, in batches, as a device sends them that was long offline. */
const upload = async (life: Life, ids: string[], { order, batch }: Drawn) => {
  for (const { at, to } of life.moves) {
    await setClock(at)
    await move(ids, to)
  }
  await setClock(life.now)
  const shuffled = life.events.map((at, n) => ({ at, rank: order[n]! })).sort((a, b) => a.rank - b.rank)
  for (let n = 0; n < shuffled.length; n += batch) {
    await feed(
      ids,
      shuffled.slice(n, n + batch).map(({ at }) => at),
    )
  }
}

const actual = async (draw: Drawn): Promise<{ outcome: Outcome; listed: string }> => {
  const life = lived(draw)
  await database.query('begin')
  try {
    const ids = await settle(life, draw.home)
    await (draw.isLive ? live(life, ids) : upload(life, ids, draw))
    await setClock(life.now)
    const { rows } = await database.query<Outcome>(
      `select s.current_count as count, s.longest_count as longest, s.started_on::text as "startedOn",
              s.last_period::text as "lastPeriod", s.covered_through::text as "coveredThrough", s.freezes,
              (internal.streak_now(d, s)).status,
              coalesce((select json_object_agg(p.starts_on, p.source order by p.starts_on)
                          from app.streak_periods p
                         where p.app_user_id = s.app_user_id and p.source is not null), '{}') as covers
         from app.user_streaks s
         join app.streak_definitions d on d.id = s.streak_definition_id
        where s.app_user_id = $1`,
      [ids[0]],
    )
    const listed = await database.query<{ status: string }>(
      'select s.status from app.streak_definitions d, internal.streak_statuses(d) s where d.id = $1',
      [ids[1]],
    )
    return { outcome: rows[0] ?? expected({ ...life, events: [] }), listed: listed.rows[0]?.status ?? 'none' }
  } finally {
    await database.query('rollback')
  }
}

test('the fold of any life, lived or uploaded late, is what the rules say', async () => {
  await fc.assert(
    fc.asyncProperty(drawn, async (draw) => {
      const wanted = expected(lived(draw))
      expect(await actual(draw)).toEqual({ outcome: wanted, listed: wanted.status })
    }),
    { numRuns: sized(60, 250) },
  )
}, 180_000)

test('a thousand days fold in one go, and day by day, to the same', async () => {
  await database.query('begin')
  try {
    const days = Array.from({ length: 1000 }, (_, n) => midnightOf('2024-01-01') + n * day + 12 * hour)
    const rules = { weekStartsOn: 1, minCount: 1, graceHours: 0, initial: 1, max: 5, earnEvery: 100 }
    const life: Life = {
      rules: { period: 'day', ...rules },
      zone: 'America/New_York',
      moves: [],
      events: days.filter((_, n) => n % 97 !== 50),
      pauses: [],
      gifts: [],
      now: days.at(-1)! + hour,
    }
    const ids = await settle(life, life.zone)
    await setClock(life.now)
    await feed(ids, life.events)
    const read = () =>
      database.query('select to_jsonb(s) - $2::text[] as row from app.user_streaks s where s.app_user_id = $1', [
        ids[0],
        [
          'updated_at',
          'created_at',
          'first_qualified_at',
          'last_qualified_at',
          'app_user_id',
          'risk_notified_through',
          'lapse_notified_through',
        ],
      ])
    const atOnce = (await read()).rows[0].row
    await database.query('delete from app.user_streaks')
    for (const at of life.events) {
      await setClock(at)
      await feed(ids, [at])
    }
    expect((await read()).rows[0].row).toEqual(atOnce)
    expect(atOnce).toMatchObject({ current_count: expected(life).count, freezes: expected(life).freezes })
  } finally {
    await database.query('rollback')
  }
}, 180_000)
