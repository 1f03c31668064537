import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

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

type Period = 'day' | 'week' | 'month'
type Rules = {
  readonly period: Period
  readonly weekStartsOn: number
  readonly minCount: number
  readonly graceHours: number
  readonly initial: number
  readonly max: number
  readonly earnEvery: number
}
type Move = { readonly at: number; readonly from: string; readonly to: string }
/** What happened to one user; times in milliseconds, dates as text. `zone` is where the user is in the end. */
type Life = {
  readonly rules: Rules
  readonly zone: string
  readonly moves: readonly Move[]
  readonly events: readonly number[]
  readonly pauses: readonly (readonly [string, string])[]
  readonly gifts: readonly { readonly from: string; readonly amount: number }[]
  readonly now: number
}
type Outcome = {
  count: number
  longest: number
  startedOn: string | null
  lastPeriod: string | null
  coveredThrough: string | null
  freezes: number
  status: string
  covers: Record<string, string>
}

const hour = 3_600_000
const day = 24 * hour
const midnightOf = (date: string) => Date.parse(`${date}T00:00:00Z`)
const addDays = (date: string, days: number) => new Date(midnightOf(date) + days * day).toISOString().slice(0, 10)

const formats = new Map<string, Intl.DateTimeFormat>()
const localDate = (zone: string, at: number): string => {
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' })
  formats.set(zone, format)
  return format.format(at)
}

const midnights = new Map<string, number>()
/** The first instant whose local date is this one or a later one. */
const localMidnight = (zone: string, date: string): number => {
  const key = `${zone} ${date}`
  let low = midnightOf(date) - 15 * hour
  let high = midnights.get(key) ?? midnightOf(date) + 15 * hour
  while (!midnights.has(key) && high - low > 1000) {
    const middle = Math.floor((low + high) / 2000) * 1000
    if (localDate(zone, middle) >= date) high = middle
    else low = middle
  }
  midnights.set(key, high)
  return high
}

const startOf = ({ period, weekStartsOn }: Rules, date: string): string => {
  if (period === 'day') return date
  if (period === 'month') return `${date.slice(0, 7)}-01`
  const weekday = new Date(midnightOf(date)).getUTCDay()
  return addDays(date, -((weekday - (weekStartsOn % 7) + 7) % 7))
}
const next = (rules: Rules, start: string): string => {
  if (rules.period !== 'month') return addDays(start, rules.period === 'day' ? 1 : 7)
  const [year = 0, month = 0] = start.split('-').map(Number)
  return new Date(Date.UTC(year, month, 1)).toISOString().slice(0, 10)
}
const previous = (rules: Rules, start: string) => startOf(rules, addDays(start, -1))

/** Where and when: the calendar of one user who may travel. */
const calendarOf = ({ rules, moves, zone, pauses }: Life) => {
  const zoneAt = (at: number) => moves.find((move) => move.at > at)?.from ?? zone
  const begin = (where: string, start: string) => localMidnight(where, start)
  const end = (where: string, start: string) => localMidnight(where, next(rules, start)) + rules.graceHours * hour
  return {
    placeOf: (at: number) => startOf(rules, localDate(zoneAt(at), at)),
    deadline(start: string, asOf: number): number {
      const ends: number[] = []
      let since = Number.NEGATIVE_INFINITY
      for (const { at, from, to } of moves.filter((move) => move.at <= asOf)) {
        if (begin(from, start) < at && end(from, start) > since) ends.push(end(from, start))
        since = at
        const hasBegun = Math.min(begin(from, start), begin(to, start)) <= at
        if (hasBegun && Math.max(end(from, start), end(to, start)) > at) ends.push(end(from, start), end(to, start))
      }
      if (end(zoneAt(asOf), start) > since) ends.push(end(zoneAt(asOf), start))
      return Math.max(...ends)
    },
    isPaused(start: string): boolean {
      const days: boolean[] = []
      for (let date = start; date < next(rules, start); date = addDays(date, 1)) {
        days.push(pauses.some(([from, to]) => from <= date && date <= to))
      }
      return days.filter(Boolean).length * 2 >= days.length
    },
    isLeftOut: (start: string) =>
      rules.period === 'day' && localMidnight(zone, start) >= localMidnight(zone, addDays(start, 1)),
  }
}
type Calendar = ReturnType<typeof calendarOf>

/** Freezes in hand while periods go by. */
const purseOf = ({ rules, gifts }: Life, freezes: number, after: string | null) => {
  const waiting = gifts
    .map((gift) => ({ ...gift, from: startOf(rules, gift.from) }))
    .filter((gift) => after === null || gift.from > after)
    .sort((a, b) => (a.from < b.from ? -1 : 1))
  const purse = {
    freezes,
    add(amount: number) {
      purse.freezes = Math.max(purse.freezes, Math.min(purse.freezes + amount, rules.max))
    },
    receive(start: string) {
      while (waiting[0] && waiting[0].from <= start) purse.add(waiting.shift()!.amount)
    },
    take() {
      if (purse.freezes === 0) return false
      purse.freezes -= 1
      return true
    },
  }
  return purse
}

/** The chain as it stands after the newest qualified period. */
const chainOf = (life: Life, calendar: Calendar) => {
  const { rules } = life
  const events = life.events.map((at) => ({ at, place: calendar.placeOf(at), used: false })).sort((a, b) => a.at - b.at)
  const places = events.map((event) => event.place).sort()

  const cover = (start: string, isAlive: boolean): 'event' | 'pause' | 'left out' | null => {
    const own = events.filter((event) => event.place === start && !event.used)
    if (own.length >= rules.minCount) return 'event'
    if (!isAlive) return null
    if (calendar.isPaused(start)) return 'pause'
    if (calendar.isLeftOut(start)) return 'left out'
    const furthest = next(rules, next(rules, next(rules, start)))
    const late = events.filter(
      ({ at, place, used }) => !used && place > start && place <= furthest && at < calendar.deadline(start, at),
    )
    if (own.length + late.length < rules.minCount) return null
    for (const event of late.slice(0, rules.minCount - own.length)) event.used = true
    return 'event'
  }

  const purse = purseOf(life, rules.initial, null)
  const covers: Record<string, string> = {}
  const chain = { count: 0, longest: 0, startedOn: null as string | null }
  let isAlive = false
  let settled = { ...chain, last: null as string | null, freezes: rules.initial, covers: {} as Record<string, string> }
  for (let start = places[0]!; start <= places.at(-1)!; start = next(rules, start)) {
    purse.receive(start)
    const how = cover(start, isAlive)
    if (how === 'event') {
      if (!isAlive) Object.assign(chain, { count: 0, startedOn: start })
      isAlive = true
      chain.count += 1
      chain.longest = Math.max(chain.longest, chain.count)
      if (rules.earnEvery > 0 && chain.count % rules.earnEvery === 0) purse.add(1)
      covers[start] = 'event'
      settled = { ...chain, last: start, freezes: purse.freezes, covers: { ...covers } }
    } else if (isAlive && how === 'pause') covers[start] = 'pause'
    else if (isAlive && how === null) {
      isAlive = purse.take()
      if (isAlive) covers[start] = 'freeze'
    }
  }
  return settled
}

const statusOf = (life: Life, calendar: Calendar, last: string, covered: string): string => {
  const { rules, now } = life
  const current = calendar.placeOf(now)
  const isPassed = (start: string) => start < current && calendar.deadline(start, now) <= now
  let before = previous(rules, current)
  if (calendar.isLeftOut(before)) before = previous(rules, before)
  if (isPassed(next(rules, covered))) return 'broken'
  if (last >= current) return 'active'
  for (let start = next(rules, last); start <= before; start = next(rules, start)) {
    if (!isPassed(start) && !calendar.isPaused(start)) return 'at_risk'
  }
  if (calendar.isPaused(current) || last < before) return 'frozen'
  const risky = { day: 6, week: 24, month: 72 }[rules.period] * hour
  return calendar.deadline(current, now) - now < risky ? 'at_risk' : 'active'
}

const expected = (life: Life): Outcome => {
  const { rules } = life
  const calendar = calendarOf(life)
  const { count, longest, startedOn, last, freezes, covers } = chainOf(life, calendar)
  if (last === null) {
    const nothing = { count: 0, longest: 0, startedOn: null, lastPeriod: null, coveredThrough: null }
    return { ...nothing, freezes: rules.initial, status: 'none', covers: {} }
  }
  const purse = purseOf(life, freezes, last)
  let covered = last
  for (let start = next(rules, last); start < addDays(last, 4000); start = next(rules, start)) {
    purse.receive(start)
    if (!calendar.isPaused(start) && !calendar.isLeftOut(start) && !purse.take()) break
    covered = start
  }
  const status = statusOf(life, calendar, last, covered)
  return { count, longest, startedOn, lastPeriod: last, coveredThrough: covered, freezes, status, covers }
}

// Where clocks change at midnight, by half an hour, or by a whole day; around such changes, leap days and ends of years.
const zones = [
  ...['UTC', 'America/Los_Angeles', 'Asia/Tokyo', 'Asia/Kolkata', 'Europe/Berlin', 'Africa/Cairo', 'Atlantic/Azores'],
  ...['America/Havana', 'America/Sao_Paulo', 'Australia/Lord_Howe', 'Pacific/Apia', 'Pacific/Kiritimati'],
  'Pacific/Pago_Pago',
]
const beginnings = [
  ...['2026-10-23', '2026-11-01', '2026-03-06', '2026-03-27', '2011-12-28', '2018-11-02', '2018-02-16', '2028-02-27'],
  ...['2026-12-29', '2027-01-30'],
]
const minutes = (days: number) => fc.integer({ min: 0, max: days * 24 * 60 })

const drawn = fc.record({
  period: fc.constantFrom<Period>('day', 'day', 'day', 'week', 'month'),
  weekStartsOn: fc.integer({ min: 0, max: 7 }),
  minCount: fc.constantFrom(1, 1, 1, 2, 3),
  graceHours: fc.constantFrom(0, 0, 1, 3, 12, 24, 30, 48),
  initial: fc.integer({ min: 0, max: 2 }),
  extra: fc.integer({ min: 0, max: 2 }),
  earnEvery: fc.integer({ min: 0, max: 4 }),
  beginning: fc.constantFrom(...beginnings),
  home: fc.constantFrom(...zones),
  moves: fc.array(fc.record({ at: minutes(11), to: fc.constantFrom(...zones) }), { maxLength: 3 }),
  events: fc.array(
    fc.oneof(
      minutes(10),
      fc.integer({ min: 0, max: 40 }).map((quarter) => quarter * 360),
    ),
    { maxLength: 25 },
  ),
  pauses: fc.array(fc.record({ from: fc.nat(11), days: fc.integer({ min: 1, max: 4 }) }), { maxLength: 2 }),
  gifts: fc.array(fc.record({ from: fc.nat(11), amount: fc.integer({ min: 1, max: 2 }) }), { maxLength: 2 }),
  now: minutes(3),
  order: fc.array(fc.nat(), { minLength: 25, maxLength: 25 }),
  batch: fc.integer({ min: 1, max: 8 }),
  isLive: fc.boolean(),
})
type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never

const lived = (draw: Drawn): Life => {
  const { period, weekStartsOn, minCount, graceHours, initial, extra, earnEvery } = draw
  const scale = { day: 1, week: 4, month: 16 }[period]
  const at = (minute: number) => midnightOf(draw.beginning) + minute * 60_000 * scale
  const moves: Move[] = []
  for (const move of [...draw.moves].sort((a, b) => a.at - b.at)) {
    const from = moves.at(-1)?.to ?? draw.home
    if (move.to !== from && moves.at(-1)?.at !== at(move.at)) moves.push({ at: at(move.at), from, to: move.to })
  }
  const pauses: [string, string][] = []
  for (const { from, days } of draw.pauses) {
    const first = addDays(draw.beginning, from * scale)
    const last = addDays(first, days * scale)
    if (!pauses.some(([start, end]) => start <= last && first <= end)) pauses.push([first, last])
  }
  return {
    rules: { period, weekStartsOn, minCount, graceHours, initial, max: initial + extra, earnEvery },
    zone: moves.at(-1)?.to ?? draw.home,
    moves,
    events: draw.events.map(at),
    pauses,
    gifts: draw.gifts.map(({ from, amount }) => ({ from: addDays(draw.beginning, from * scale), amount })),
    now: Math.max(at(10 * 24 * 60), ...moves.map((move) => move.at)) + draw.now * 60_000 * (scale > 1 ? 6 : 1),
  }
}

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
    { numRuns: Number(process.env['FOLD_RUNS'] ?? 250) },
  )
}, 120_000)

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
        ['updated_at', 'created_at', 'first_qualified_at', 'last_qualified_at', 'app_user_id'],
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
}, 60_000)
