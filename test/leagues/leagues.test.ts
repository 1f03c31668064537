import { expect, test } from 'vitest'
import { startLeagues } from '#test/support/leagues.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const { harness, project, admin, tiers, league, people, score, show, current, last, runs, cohorts, place, close } =
  await startLeagues()

test('tiers, points and the rest have their defaults', async () => {
  const answer = await admin.post('/leagues', { key: 'plain', name: 'Plain', tiers: [{ key: 'low' }, { key: 'high' }] })
  expect([answer.status, answer.data]).toEqual([
    201,
    expect.objectContaining({
      tiers: [
        { key: 'low', name: 'low', icon_url: null, promote_count: 0, relegate_count: 0 },
        { key: 'high', name: 'high', icon_url: null, promote_count: 0, relegate_count: 0 },
      ],
      cohort_size: 30,
      period: 'weekly',
      timezone: 'UTC',
      points: { type: 'xp' },
      min_points_to_join: 1,
      inactive_relegates: true,
      rewards: [],
      is_active: true,
    }),
  ])
})

test.each<[string, object]>([
  ['tiers', { tiers: [{ key: 'one' }] }],
  ['tiers', { tiers: [{ key: 'one' }, { key: 'one' }] }],
  ['tiers', { tiers: [{ key: 'one', promote_count: 3, relegate_count: 2 }, { key: 'two' }] }],
  ['tiers', { tiers: Array.from({ length: 21 }, (_, n) => ({ key: `t${n}` })) }],
  ['cohort_size', { cohort_size: 4 }],
  ['cohort_size', { cohort_size: 101 }],
  ['min_points_to_join', { min_points_to_join: 0 }],
  ['min_points_to_join', { min_points_to_join: 1_000_001 }],
  ['timezone', { timezone: 'Mars/Olympus' }],
  ['points', { points: { type: 'event', event_name: 'svc.league.promoted' } }],
  ['rewards', { rewards: [{ tier_key: 'iron', from_rank: 1, to_rank: 1, reward: { xp: 1 } }] }],
  ['rewards', { rewards: [{ tier_key: 'gold', from_rank: 2, to_rank: 1, reward: { xp: 1 } }] }],
  ['rewards', { rewards: [{ tier_key: 'gold', from_rank: 1, to_rank: 6, reward: { xp: 1 } }] }],
])('refuses wrong %s: %j', async (field, fields) => {
  const body = { key: 'wrong', name: 'Wrong', tiers, cohort_size: 5, ...fields }
  const answer = await admin.post('/leagues', body)
  expectInvalid(answer, String(answer.error?.details.field))
  expect(String(answer.error?.details.field)).toMatch(new RegExp(`^${field}`))
})

test('a smaller cohort_size is refused for tiers that do not fit it', async () => {
  const { key } = await league({ cohort_size: 10, tiers: [{ key: 'a', promote_count: 6 }, { key: 'b' }] })
  expectInvalid(await admin.patch(`/leagues/${key}`, { cohort_size: 6 }), 'tiers')
})

test('a user enters with all points when they suffice, and is no member before', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { id, key } = await league({ min_points_to_join: 10 })
  const [a, b] = (await people(2)) as [any, any]
  expect(await score(a, 4)).toBeUndefined()
  expect(await show(a, key)).toMatchObject({ league: { id, key }, current: null, last_result: null, cohort: [] })
  expect(await runs(key)).toEqual([])
  const entered = { key, run_key: '2026-W40', tier: 'bronze', points: 10, rank: 1, zone: 'promotion' }
  expect(await score(a, 6)).toEqual({ ...entered, previous_rank: null })
  expect(await score(b, 10)).toMatchObject({ rank: 2, previous_rank: null })
  expect(await score(b, 1)).toMatchObject({ rank: 1, previous_rank: 2, points: 11 })
  expect(await score(b, 0)).toBeUndefined()
  expect(await current(a, key)).toEqual({
    run_key: '2026-W40',
    tier: 'bronze',
    points: 10,
    rank: 2,
    members: 2,
    zone: 'promotion',
    starts_at: '2026-09-28T00:00:00.000Z',
    ends_at: '2026-10-05T00:00:00.000Z',
  })
  expect((await show(a, key)).cohort.map((one: any) => [one.app_user_id, one.rank, one.user.display_name])).toEqual([
    [b.id, 1, 'Player 2'],
    [a.id, 2, 'Player 1'],
  ])
  expect((await a.get('/client/leagues')).data).toMatchObject([{ league: { key }, current: { rank: 2 } }])
})

test('points are the number of a property or 1, never below 0, and nothing for other values', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const { key: counting } = await league({ points: { type: 'event', event_name: 'scored' } })
  const [a] = (await people(1)) as [any]
  for (const value of ['many', null, '7', [1], { n: 1 }]) await score(a, value)
  expect(await current(a, key)).toBeNull()
  expect(await current(a, counting)).toMatchObject({ points: 5 })
  await score(a, 2.5)
  await score(a, -10)
  expect(await current(a, key)).toMatchObject({ points: 0 })
  await score(a, 3)
  expect(await current(a, key)).toMatchObject({ points: 3 })
})

test('XP counts when it is booked, what is taken too, but nothing of a league or a merge', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league({ points: { type: 'xp' } })
  const [a] = (await people(1)) as [any]
  const give = async (amount: number) =>
    expect((await admin.post('/xp/grant', { app_user_id: a.id, amount })).status).toBeLessThan(300)
  await give(50)
  await give(-20)
  expect(await current(a, key)).toMatchObject({ points: 30 })
  for (const source of ['league', 'merge'])
    await project.sql(
      `insert into app.xp_transactions (app_user_id, amount, total_after, source, source_id, requested, occurred_at, counted_at)
       values ($1, 5, 35, $2, 'x', 5, internal.now(), internal.now())`,
      [a.id, source],
    )
  expect(await current(a, key)).toMatchObject({ points: 30 })
})

test('an event counts in the run of its time until five minutes after the end, and history nowhere', async () => {
  harness.setTime('2026-10-03T23:58:00Z')
  const { key } = await league({ period: 'daily' })
  const [a] = (await people(1)) as [any]
  await score(a, 1)
  await score(a, 1, { occurred_at: '2026-10-04T00:01:00Z' })
  harness.setTime('2026-10-04T00:04:59Z')
  await score(a, 2, { occurred_at: '2026-10-03T23:59:59Z' })
  expect(await last(a, key)).toMatchObject({ run_key: '2026-10-03', points: 3 })
  expect(await current(a, key)).toBeNull()
  await score(a, 4)
  expect(await current(a, key)).toMatchObject({ run_key: '2026-10-04', points: 4 })
  harness.setTime('2026-10-04T00:05:00Z')
  await score(a, 8, { occurred_at: '2026-10-03T23:59:59Z' })
  expect(await last(a, key)).toMatchObject({ points: 3 })
  const old = {
    event_name: 'scored',
    app_user_id: a.id,
    properties: { points: 100 },
    occurred_at: '2026-10-04T00:01:00Z',
  }
  await admin.post('/events', { ...old, historical: true })
  expect(await current(a, key)).toMatchObject({ points: 4 })
})

test('cohorts fill one after the other, stop after a third of the run, and are never exceeded', async () => {
  harness.setTime('2026-09-28T00:00:00Z')
  const { key } = await league()
  const users = await people(12)
  for (const who of users.slice(0, 7)) await score(who, 1)
  const sizes = async () => (await cohorts(key, '2026-W40')).map((one: any) => [one.members, one.is_filling])
  expect(await sizes()).toEqual([
    [5, false],
    [2, true],
  ])
  harness.setTime('2026-09-30T08:00:00Z')
  for (const who of users.slice(7)) await score(who, 1)
  expect(await sizes()).toEqual([
    [5, false],
    [2, false],
    [5, false],
  ])
  expect(await runs(key)).toMatchObject([
    { key: '2026-W40', status: 'open', members: 12, cohorts: 3, is_settled: false, closed_at: null },
  ])
})

test('a batch of many users fills cohorts as one after the other would', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const users = await people(23)
  const events = users.flatMap(({ id }) =>
    [1, -5, 2].map((points) => ({ event_name: 'scored', app_user_id: id, properties: { points } })),
  )
  const answer = await admin.post('/events', { events })
  expect(answer.status, answer.text).toBeLessThan(300)
  const seats = (await cohorts(key, '2026-W40')).map((one: any) => one.entries.map((entry: any) => entry.points))
  expect(seats.map((points: number[]) => points.length)).toEqual([5, 5, 5, 5, 3])
  expect(new Set(seats.flat())).toEqual(new Set([2]))
})

test('an open run keeps its rules; the next one has the new', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league({ period: 'daily' })
  const [a, b] = (await people(2)) as [any, any]
  await score(a, 5)
  const changed = await admin.patch(`/leagues/${key}`, {
    tiers: [{ key: 'wood' }, { key: 'gold' }],
    points: { type: 'event', event_name: 'won' },
    min_points_to_join: 2,
  })
  expect(changed.status, changed.text).toBe(200)
  expect(await score(b, 1)).toMatchObject({ tier: 'bronze', zone: 'promotion' })
  await a.post('/client/events', { event_name: 'won' })
  expect(await current(a, key)).toMatchObject({ points: 5, tier: 'bronze' })
  harness.setTime('2026-10-04T20:00:00Z')
  await score(a, 5)
  await a.post('/client/events', { event_name: 'won' })
  expect(await current(a, key)).toBeNull()
  await a.post('/client/events', { event_name: 'won' })
  expect(await current(a, key)).toMatchObject({ points: 2, tier: 'wood' })
  expectRefusal(await admin.patch(`/leagues/${key}`, { period: 'weekly' }), 409, 'LEAGUE_IMMUTABLE')
})

test('a league that is off is not there for users, and counts nothing', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const [a] = (await people(1)) as [any]
  await score(a, 1)
  await admin.patch(`/leagues/${key}`, { is_active: false })
  expect(await score(a, 1)).toBeUndefined()
  expect((await a.get('/client/leagues')).data).toEqual([])
  for (const path of ['', '/history']) expectRefusal(await a.get(`/client/leagues/${key}${path}`), 404, 'NOT_FOUND')
  expectRefusal(await a.post(`/client/leagues/${key}/seen`), 404, 'NOT_FOUND')
  expect(await runs(key)).toHaveLength(1)
  await admin.patch(`/leagues/${key}`, { is_active: true })
  expect(await current(a, key)).toMatchObject({ points: 1 })
})

test('of several leagues an event tells of the oldest that it changed', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const first = await league({ min_points_to_join: 3 })
  harness.setTime('2026-10-03T20:00:01Z')
  const second = await league()
  const [a] = (await people(1)) as [any]
  expect(await score(a, 2)).toMatchObject({ key: second.key })
  expect(await score(a, 2)).toMatchObject({ key: first.key, points: 4, previous_rank: null })
  expect(await score(a, 2)).toMatchObject({ key: first.key, points: 6, previous_rank: 1 })
})

test('names of those who are blocked are not shown', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const [a, b] = (await people(2)) as [any, any]
  await score(a, 2)
  await score(b, 1)
  const blocked = await b.post(`/client/friends/${a.id}/block`)
  expect(blocked.status).toBeLessThan(300)
  expect((await show(a, key)).cohort[1].user).toEqual({ id: b.id, display_name: null, avatar_url: null })
  expect((await show(b, key)).cohort[0].user).toEqual({ id: a.id, display_name: null, avatar_url: null })
})

test('administrators put users into tiers, at once or where the next run begins', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const [a, b] = (await people(2)) as [any, any]
  await score(a, 7)
  expect(await place(a, key, 'silver')).toEqual({ app_user_id: a.id, tier_key: 'silver' })
  expect(await current(a, key)).toMatchObject({ tier: 'silver', points: 7, members: 1 })
  expect((await cohorts(key, '2026-W40')).map((one: any) => [one.tier_key, one.members])).toEqual([
    ['bronze', 0],
    ['silver', 1],
  ])
  expect(await cohorts(key, '2026-W40', '&tier_key=silver')).toHaveLength(1)
  await place(b, key, 'gold')
  expect(await current(b, key)).toBeNull()
  expect(await score(b, 1)).toMatchObject({ tier: 'gold' })
  expectInvalid(await admin.put(`/leagues/${key}/users/${a.id}`, { tier_key: 'iron' }), 'tier_key')
  expectRefusal(await admin.put(`/leagues/${key}/users/${crypto.randomUUID()}`, { tier_key: 'gold' }), 404, 'NOT_FOUND')
  expectRefusal(await admin.get(`/leagues/${key}/runs/2026-W40/cohorts?tier_key=iron`), 400, 'INVALID_INPUT')
  expectRefusal(await admin.get(`/leagues/${key}/runs/2020-W01/cohorts`), 404, 'NOT_FOUND')
  const [audited] = (await admin.get('/audit?limit=1')).data ?? []
  if (audited) expect(audited.action).toMatch(/leagues/)
})

test('statistics are of each tier of the open run', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const users = await people(4)
  for (const [n, who] of users.entries()) await score(who, 10 * (n + 1))
  expect((await admin.get(`/leagues/${key}/stats`)).data).toEqual({
    run_key: '2026-W40',
    tiers: [
      { tier_key: 'bronze', users: 4, median_points: 25, promotion_cutoff: 30 },
      { tier_key: 'silver', users: 0, median_points: null, promotion_cutoff: null },
      { tier_key: 'gold', users: 0, median_points: null, promotion_cutoff: null },
    ],
  })
})

test('the eleventh league is refused, and a deleted one takes its runs along', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const [a] = (await people(1)) as [any]
  await score(a, 1)
  await close(key)
  for (let n = 0; n < 9; n += 1) await league()
  expectRefusal(await admin.post('/leagues', { key: 'more', name: 'More', tiers }), 409, 'LIMIT_REACHED')
  expect((await admin.delete(`/leagues/${key}`)).status).toBe(200)
  expectRefusal(await a.get(`/client/leagues/${key}`), 404, 'NOT_FOUND')
  expect(await project.sql('select from app.league_entries')).toEqual([])
})
