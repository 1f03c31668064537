import { expect, test } from 'vitest'
import type { Project } from '#test/support/harness.ts'
import { startLeagues } from '#test/support/leagues.ts'
import { sized } from '#test/support/sized.ts'

const { harness, project, league, checkSeats } = await startLeagues()

/** A season as players live it: who plays is not who played yesterday, some play much, some late, and some start in the middle. */
const players = sized(90, 600)
const days = sized(8, 40)
const cohortSize = 10
const minute = 60_000

type Play = { readonly player: number; readonly points: number; readonly occurred: number; readonly sent: number }

/** The same numbers in each run. */
const draws = (seed: number) => () => {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff
  return seed / 0x8000_0000
}

const start = Date.parse('2026-10-05T00:00:00Z')
const dayOf = (time: number) => Math.floor((time - start) / (1440 * minute))

/** What each player does on each day: players of a higher number are better, some events arrive up to four minutes late. */
const history = (seed: number): Play[] => {
  const draw = draws(seed)
  const plays: Play[] = []
  for (let day = 0; day < days; day += 1)
    for (let player = 0; player < players; player += 1) {
      if (player > (players * (day + 2)) / 4 || draw() < 0.15) continue
      for (let times = 1 + Math.floor(draw() * 2); times > 0; times -= 1) {
        const occurred = start + day * 1440 * minute + Math.floor(draw() * 1439 * minute)
        const delay = draw() < 0.1 ? Math.floor(draw() * 4 * minute) : 0
        // whole tens: ties are common
        const points = 10 * Math.floor(1 + 4 * draw() + (12 * player) / players) - (draw() < 0.05 ? 60 : 0)
        plays.push({ player, points, occurred, sent: occurred + delay })
      }
    }
  return plays.sort((a, b) => a.sent - b.sent || a.player - b.player)
}

const addPlayers = async (of: Project): Promise<string[]> => {
  const ids = Array.from({ length: players }, (_, n) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`)
  await of.sql(`insert into app.users (id, display_name) select id, 'Player' from unnest($1::uuid[]) id`, [ids])
  return ids
}

type Standing = {
  run_key: string
  app_user_id: string
  tier: string
  points: number
  cohort: string
  reached: number
  rank: number
  result: string
}

const standings = async (of: Project): Promise<Standing[]> => {
  const rows = await of.sql<Standing>(
    `select r.run_key, e.app_user_id, r.tiers -> e.tier::int ->> 'key' as tier, e.points::float8 as points,
            e.cohort_id as cohort, (extract(epoch from e.reached_at) * 1000)::float8 as reached,
            e.final_rank::int as rank, e.result
       from app.league_entries e join app.league_runs r on r.id = e.run_id
      where e.cohort_id is not null order by r.starts_at, e.app_user_id`,
  )
  return rows
}

/** Sends a history, so many events in a request, as the clock goes on, and closes each day when its time has come. */
const live = async (of: Project, plays: readonly Play[], ids: readonly string[], together: number) => {
  let day = 0
  for (let from = 0; from < plays.length; ) {
    const first = plays[from]!
    for (; day < dayOf(first.sent - 5 * minute); day += 1) await endDay(of, day)
    let to = from + 1
    // a request holds what was sent within a minute and before the end of a day
    while (
      to < plays.length &&
      to - from < together &&
      dayOf(plays[to]!.sent - 5 * minute) === dayOf(first.sent - 5 * minute) &&
      dayOf(plays[to]!.sent) === dayOf(first.sent)
    )
      to += 1
    const chunk = plays.slice(from, to)
    harness.setTime(new Date(chunk.at(-1)!.sent).toISOString())
    const events = chunk.map(({ player, points, occurred }) => ({
      event_name: 'scored',
      app_user_id: ids[player],
      properties: { points },
      occurred_at: new Date(occurred).toISOString(),
    }))
    const answer = await of.admin.post('/events', { events })
    expect(answer.status, answer.text).toBeLessThan(300)
    from = to
  }
  for (; day < days; day += 1) await endDay(of, day)
}

const endDay = async (of: Project, day: number) => {
  harness.setTime(new Date(start + (day + 1) * 1440 * minute + 5 * minute).toISOString())
  await of.drain()
}

const order = (a: Standing, b: Standing) =>
  b.points - a.points || a.reached - b.reached || (a.app_user_id < b.app_user_id ? -1 : 1)

const rules = {
  period: 'daily',
  cohort_size: cohortSize,
  tiers: [
    { key: 'bronze', promote_count: 4 },
    { key: 'silver', promote_count: 3, relegate_count: 3 },
    { key: 'gold', promote_count: 2, relegate_count: 3 },
    { key: 'diamond', relegate_count: 4 },
  ],
}

/** The results of a day by the rules of the guide, counted here from nothing but the events and who shared a cohort. */
const expected = (cohort: Standing[]): Map<string, { rank: number; result: string }> => {
  const place = rules.tiers.findIndex(({ key }) => key === cohort[0]!.tier)
  const { promote_count = 0, relegate_count = 0 } = rules.tiers[place]!
  const sorted = [...cohort].sort(order)
  return new Map(
    sorted.map(({ app_user_id, points }, n) => {
      const isPromoted = place < rules.tiers.length - 1 && n < promote_count && points > 0
      const isLast = sorted.length >= 5 && n >= sorted.length - relegate_count
      const isRelegated = !isPromoted && place > 0 && (points === 0 || isLast)
      return [app_user_id, { rank: n + 1, result: isPromoted ? 'promoted' : isRelegated ? 'relegated' : 'stayed' }]
    }),
  )
}

test('over weeks the ladder is what the events and the rules say, and sorts players by how they play', async () => {
  await league(rules)
  const ids = await addPlayers(project)
  const plays = history(7)
  await live(project, plays, ids, 40)
  await checkSeats()
  const all = await standings(project)
  // points: the sum of the events of the day, never below 0 after any of them
  const sums = new Map<string, number>()
  for (const { player, points, occurred } of plays) {
    const key = `${new Date(occurred).toISOString().slice(0, 10)} ${ids[player]}`
    sums.set(key, Math.max(0, (sums.get(key) ?? 0) + points))
  }
  for (const { run_key, app_user_id, points } of all) expect(points).toBe(sums.get(`${run_key} ${app_user_id}`))
  expect(all.map(({ run_key, app_user_id }) => `${run_key} ${app_user_id}`)).toEqual(
    expect.arrayContaining([...sums].filter(([, points]) => points > 0).map(([key]) => key)),
  )
  // ranks and results, cohort by cohort
  const byCohort = Map.groupBy(all, ({ cohort }) => cohort)
  for (const cohort of byCohort.values()) {
    expect(cohort.length).toBeLessThanOrEqual(cohortSize)
    expect(new Set(cohort.map(({ tier }) => tier)).size).toBe(1)
    const right = expected(cohort)
    for (const { app_user_id, rank, result } of cohort) expect({ rank, result }).toEqual(right.get(app_user_id))
  }
  // each begins where the last day that was played ended
  const places = new Map<string, number>()
  for (const { app_user_id, tier, result } of all) {
    const place = rules.tiers.findIndex(({ key }) => key === tier)
    expect(place).toBe(places.get(app_user_id) ?? 0)
    places.set(app_user_id, place + (result === 'promoted' ? 1 : result === 'relegated' ? -1 : 0))
  }
  // sensible: all tiers are lived in, most cohorts are worth playing in, and better players are higher
  const ended = rules.tiers.map((_, place) => ids.flatMap((id, n) => ((places.get(id) ?? -1) === place ? [n] : [])))
  const means = ended.map((of) => of.reduce((sum, n) => sum + n, 0) / of.length)
  for (const of of ended) expect(of.length).toBeGreaterThan(players / 30)
  expect(means).toEqual([...means].sort((a, b) => a - b))
  const tiny = [...byCohort.values()].filter(({ length }) => length < 5)
  expect(tiny.flat().length / all.length).toBeLessThan(0.15)
  const moved = (result: string) => all.filter((one) => one.result === result).length / all.length
  expect(moved('promoted')).toBeGreaterThan(0.15)
  expect(moved('relegated')).toBeGreaterThan(0.05)
  expect(moved('promoted') + moved('relegated')).toBeLessThan(0.8)
})

test('the same history one event at a time and in one request gives the same standings', async () => {
  const other = await harness.project()
  const definition = {
    key: 'replayed',
    name: 'Replayed',
    ...rules,
    points: { type: 'event', event_name: 'scored', value_property: 'points' },
  }
  for (const of of [project, other]) expect((await of.admin.post('/leagues', definition)).status).toBe(201)
  await project.sql('delete from app.users where id::text like $1', ['00000000-%'])
  const ids = await addPlayers(project)
  await addPlayers(other)
  const plays = history(11).filter(({ occurred }) => dayOf(occurred) < 2)
  await live(project, plays, ids, 1)
  await live(other, plays, ids, 500)
  // cohorts are begun in another order when many join at once: what does not depend on them is the same
  const shown = async (of: Project) =>
    (await standings(of)).map(({ run_key, app_user_id, points, reached }) => [run_key, app_user_id, points, reached])
  expect((await shown(project)).length).toBeGreaterThan(players / 2)
  expect(await shown(other)).toEqual(await shown(project))
})
