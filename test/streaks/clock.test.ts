import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'
import {
  addDays,
  calendarOf,
  type Drawn,
  drawn,
  expected,
  hour,
  type Life,
  lived,
  midnightOf,
  next,
  previous,
} from '#test/support/streak_lives.ts'

/*
 * What the clock tells, against a clock that is watched: half an hour by half an hour, asking each time what has become true.
 * Whatever the zones, grace, freezes and pauses, however late events come, and whenever a worker looks.
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

const minute = 60_000
const step = 30 * minute
/** The first moment of this kind at or after a time: no two kinds of moments ever meet, and none meets the end of a period. */
const momentAt = (at: number, offset: number) => Math.ceil((at - offset * minute) / step) * step + offset * minute

type Change = { at: number; kind: 'event'; occurredAt: number } | { at: number; kind: 'move'; to: string }
type Story = { life: Life; changes: Change[]; looks: number[]; end: number }
type Told = { name: string; period: string; at: string }

const story = fc.record({
  draw: drawn,
  delays: fc.array(fc.constantFrom(0, 0, 0, 0, 1, 5, 20, 30, 50, 100), { minLength: 25, maxLength: 25 }),
  looks: fc.oneof(
    fc.constant<number[]>([]),
    fc.array(fc.integer({ min: 0, max: 100 }), { maxLength: 4 }),
    fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 30, maxLength: 60 }),
  ),
  rest: fc.integer({ min: 0, max: 10 }),
})

const eventsOf = ({
  draw,
  delays,
  looks,
  rest,
}: typeof story extends fc.Arbitrary<infer T> ? T : never): Story & { draw: Drawn } => {
  const drawnLife = lived(draw)
  const scale = { day: 1, week: 4, month: 16 }[draw.period]
  const moves: Life['moves'][number][] = []
  for (const move of drawnLife.moves) {
    const at = momentAt(move.at, 11)
    if (moves.at(-1)?.at !== at) moves.push({ ...move, at, from: moves.at(-1)?.to ?? draw.home })
  }
  const events = drawnLife.events.map((occurredAt, n) => ({
    at: momentAt(occurredAt + delays[n]! * 2 * hour * scale, 7),
    kind: 'event' as const,
    occurredAt,
  }))
  const changes: Change[] = [...events, ...moves.map(({ at, to }) => ({ at, kind: 'move' as const, to }))]
  changes.sort((a, b) => a.at - b.at)
  const begin = midnightOf(draw.beginning)
  const end = momentAt(Math.max(drawnLife.now, ...changes.map(({ at }) => at)) + rest * 24 * hour * scale, 19)
  const life = { ...drawnLife, moves, zone: moves.at(-1)?.to ?? draw.home }
  const spread = looks.map((part) => momentAt(begin + ((end - begin) * part) / 100, 19)).sort((a, b) => a - b)
  return { draw, life, changes, looks: [...spread.filter((at) => at < end), end], end }
}

/** Stands beside the clock from the first change to the end. */
const watched = ({ life, changes, end }: Story, home: string): Told[] => {
  const { rules } = life
  const risky = { day: 6, week: 24, month: 72 }[rules.period] * hour
  const news: Told[] = []
  const toldOf = { risk: '', lapse: '' }
  let last: string | null = null
  let covered = ''
  let calendar = calendarOf(life)
  const tell = (kind: string, period: string, at: number) =>
    news.push({ name: `svc.streak.${kind}`, period, at: new Date(at).toISOString() })

  /** What is true right after a time and was not told: told with another time, or not at all. */
  const look = (now: number, toldAt: number | null) => {
    if (last === null) return
    const current = calendar.placeOf(now)
    let passed = previous(rules, current)
    for (let n = 0; n < 7 && calendar.deadline(passed, now) > now; n += 1) passed = previous(rules, passed)
    const asks = (start: string) => !calendar.isPaused(start) && !calendar.isLeftOut(start)
    const unqualified: string[] = []
    for (let start = next(rules, last); start <= current; start = next(rules, start)) unqualified.push(start)

    const breaks = next(rules, covered)
    let before = previous(rules, current)
    if (calendar.isLeftOut(before)) before = previous(rules, before)
    for (const start of unqualified.filter(asks)) {
      if (start <= passed) {
        if (start > breaks || start <= toldOf.lapse) continue
        toldOf.lapse = start
        if (toldAt !== null) tell(start === breaks ? 'broken' : 'frozen', start, toldAt)
      } else if (breaks > passed && start > toldOf.risk) {
        const isNear = last >= before && calendar.deadline(start, now) - now < risky
        if (start === current && !isNear) continue
        toldOf.risk = start
        if (toldAt !== null) tell('at_risk', start, toldAt)
      }
    }
  }

  const known: number[] = []
  const made: Life['moves'][number][] = []
  const waiting = [...changes]
  for (let at = Math.floor(changes[0]!.at / step) * step; at <= end; at += step) {
    look(at + 1000, at)
    while (waiting[0] && waiting[0].at < at + step) {
      const change = waiting.shift()!
      if (change.kind === 'event') known.push(change.occurredAt)
      else made.push(life.moves.find((move) => move.at === change.at)!)
      const zone = made.at(-1)?.to ?? home
      const now = { ...life, events: known, moves: made, zone, now: change.at }
      calendar = calendarOf(now)
      const outcome = expected(now)
      last = outcome.lastPeriod
      covered = outcome.coveredThrough ?? ''
      look(change.at + 1000, change.kind === 'move' ? change.at : null)
    }
  }
  return news.map((one) => ({ ...one, period: keyOf(rules.period, one.period) })).sort(inOrder)
}

const inOrder = (a: Told, b: Told) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)
const keyOf = (period: string, start: string): string => {
  if (period === 'day') return start
  if (period === 'month') return start.slice(0, 7)
  // ISO: the week belongs to the year of its Thursday
  const fourth = new Date(midnightOf(addDays(start, 3)))
  const thursday = new Date(fourth.getTime() + (4 - (fourth.getUTCDay() || 7)) * 24 * hour)
  const week = Math.ceil(((thursday.getTime() - Date.UTC(thursday.getUTCFullYear(), 0, 1)) / (24 * hour) + 1) / 7)
  return `${thursday.getUTCFullYear()}-W${String(week).padStart(2, '0')}`
}

const setClock = (at: number) =>
  database.query(`select set_config('app.clock', $1, true), set_config('app.caller', 'worker', true)`, [
    new Date(at).toISOString(),
  ])

const settle = async ({ rules, ...life }: Life, home: string) => {
  await setClock(Math.min(...life.events, ...life.moves.map((move) => move.at), life.now) - 1000)
  const definitions = await database.query<{ id: string }>(
    `insert into app.streak_definitions
       (key, name, qualifying_event, period, week_starts_on, min_count, grace_hours, freezes_initial, freezes_max, freeze_earn_every)
     values ('clock', 'Clock', 'clock', $1, $2, $3, $4, $5, $6, $7) returning id`,
    [rules.period, rules.weekStartsOn, rules.minCount, rules.graceHours, rules.initial, rules.max, rules.earnEvery],
  )
  const users = await database.query<{ id: string }>(
    `insert into app.users (display_name, timezone) values ('Clock', $1) returning id`,
    [home],
  )
  const ids = [users.rows[0]!.id, definitions.rows[0]!.id]
  await database.query('select internal.streak_join($1, d) from app.streak_definitions d where d.id = $2', ids)
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

const tick = () => database.query('select api.streaks_tick(500)')

/** Lives a story in the database, with the worker looking at times or only at the end; answers what was told, and the statuses at the looks. */
const happened = async ({ life, changes, looks, end }: Story, home: string, isWorking: boolean) => {
  await database.query('begin')
  try {
    const ids = await settle(life, home)
    const steps = [...changes, ...looks.map((at) => ({ at, kind: 'look' as const }))].sort((a, b) => a.at - b.at)
    const statuses: string[] = []
    for (const one of steps) {
      await setClock(one.at)
      if (one.kind === 'move')
        await database.query('update app.users set timezone = $2 where id = $1', [ids[0], one.to])
      if (one.kind === 'event')
        await database.query(
          'select internal.streaks_count(array[($1::uuid, $2::uuid, $3::timestamptz, false)::internal.streak_act])',
          [...ids, new Date(one.occurredAt).toISOString()],
        )
      if (one.kind !== 'look') continue
      if (isWorking || one.at === end) await tick()
      const { rows } = await database.query<{ status: string }>(
        `select (internal.streak_now(d, s)).status from app.user_streaks s
           join app.streak_definitions d on d.id = s.streak_definition_id where s.app_user_id = $1`,
        [ids[0]],
      )
      statuses.push(rows[0]!.status)
    }
    const { rows } = await database.query<Told>(
      `select event_name as name, properties ->> 'period' as period, internal.iso(occurred_at) as at from app.engagement_events
        where app_user_id = $1 and event_name in ('svc.streak.at_risk', 'svc.streak.frozen', 'svc.streak.broken')`,
      [ids[0]],
    )
    return { news: rows.map((row) => ({ ...row })).sort(inOrder), statuses }
  } finally {
    await database.query('rollback')
  }
}

test('evaluating a history late gives the same events as evaluating it continuously, and reading needs no worker', async () => {
  let count = 0
  await fc.assert(
    fc.asyncProperty(story, async (drawing) => {
      const one = eventsOf(drawing)
      if (one.changes.every(({ kind }) => kind !== 'event')) return
      const wanted = watched(one, drawing.draw.home)
      count += wanted.length
      const working = await happened(one, drawing.draw.home, true)
      expect(working.news).toEqual(wanted)
      const idle = await happened(one, drawing.draw.home, false)
      expect(idle).toEqual(working)
    }),
    { numRuns: sized(6, 25) },
  )
  expect(count).toBeGreaterThan(sized(5, 20))
}, 240_000)
