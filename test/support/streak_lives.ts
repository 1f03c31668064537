import fc from 'fast-check'

/*
 * The rules of streaks told a second time, event by event, with the calendars and wall clocks of JavaScript; and lives to try them on.
 */
export type Period = 'day' | 'week' | 'month'
export type Rules = {
  readonly period: Period
  readonly weekStartsOn: number
  readonly minCount: number
  readonly graceHours: number
  readonly initial: number
  readonly max: number
  readonly earnEvery: number
}
export type Move = { readonly at: number; readonly from: string; readonly to: string }
/** What happened to one user; times in milliseconds, dates as text. `zone` is where the user is in the end. */
export type Life = {
  readonly rules: Rules
  readonly zone: string
  readonly moves: readonly Move[]
  readonly events: readonly number[]
  readonly pauses: readonly (readonly [string, string])[]
  readonly gifts: readonly { readonly from: string; readonly amount: number }[]
  readonly now: number
}
export type Outcome = {
  count: number
  longest: number
  startedOn: string | null
  lastPeriod: string | null
  coveredThrough: string | null
  freezes: number
  status: string
  covers: Record<string, string>
}

export const hour = 3_600_000
export const day = 24 * hour
export const midnightOf = (date: string) => Date.parse(`${date}T00:00:00Z`)
export const addDays = (date: string, days: number) =>
  new Date(midnightOf(date) + days * day).toISOString().slice(0, 10)

const formats = new Map<string, Intl.DateTimeFormat>()
const localDates = new Map<string, string>()
/** Kept for each quarter of an hour: the midnights of all zones of today begin one. */
const localDate = (zone: string, at: number): string => {
  const key = `${zone} ${Math.floor(at / (hour / 4))}`
  const known = localDates.get(key)
  if (known !== undefined) return known
  if (localDates.size > 200_000) localDates.clear()
  const date = formatted(zone, at)
  localDates.set(key, date)
  return date
}
const formatted = (zone: string, at: number): string => {
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
export const next = (rules: Rules, start: string): string => {
  if (rules.period !== 'month') return addDays(start, rules.period === 'day' ? 1 : 7)
  const [year = 0, month = 0] = start.split('-').map(Number)
  return new Date(Date.UTC(year, month, 1)).toISOString().slice(0, 10)
}
export const previous = (rules: Rules, start: string) => startOf(rules, addDays(start, -1))

/** Where and when: the calendar of one user who may travel. */
export const calendarOf = ({ rules, moves, zone, pauses }: Life) => {
  const paused = new Map<string, boolean>()
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
      const known = paused.get(start)
      if (known !== undefined) return known
      const days: boolean[] = []
      for (let date = start; date < next(rules, start); date = addDays(date, 1)) {
        days.push(pauses.some(([from, to]) => from <= date && date <= to))
      }
      const isPaused = days.filter(Boolean).length * 2 >= days.length
      paused.set(start, isPaused)
      return isPaused
    },
    isLeftOut: (start: string) =>
      rules.period === 'day' && localMidnight(zone, start) >= localMidnight(zone, addDays(start, 1)),
  }
}
export type Calendar = ReturnType<typeof calendarOf>

/** Freezes in hand while periods go by. */
export const purseOf = ({ rules, gifts }: Life, freezes: number, after: string | null) => {
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

export const expected = (life: Life): Outcome => {
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

export const drawn = fc.record({
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
export type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never

export const lived = (draw: Drawn): Life => {
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
