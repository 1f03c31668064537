import { expect, test } from 'vitest'
import { startLeagues } from '#test/support/leagues.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const { harness, project, admin, league, people, score, show, current, last, runs, cohorts, place, close, eventsOf } =
  await startLeagues()
const rewards = [
  { tier_key: 'silver', from_rank: 1, to_rank: 1, reward: { xp: 100 } },
  { tier_key: 'silver', from_rank: 1, to_rank: 3, reward: { xp: 10 } },
  { tier_key: 'bronze', from_rank: 1, to_rank: 5, reward: { xp: 1000 } },
]
const xpOf = async (who: any) => (await who.get('/client/xp')).data.total

test('a run that has ended shows its result at once; the job gives rewards and events once', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { id, key } = await league({ period: 'daily', rewards })
  const users = await people(5)
  for (const [n, who] of users.entries()) {
    await place(who, key, 'silver')
    await score(who, 50 - 10 * n)
  }
  expect((await show(users[0]!, key)).cohort.map((one: any) => one.zone)).toEqual([
    'promotion',
    'safe',
    'safe',
    'relegation',
    'relegation',
  ])
  expect((await cohorts(key, '2026-10-03'))[0].entries.map((one: any) => one.result)).toEqual(Array(5).fill('pending'))
  harness.setTime('2026-10-04T00:00:00Z')
  const result = {
    run_key: '2026-10-03',
    tier_from: 'silver',
    tier_to: 'gold',
    points: 50,
    rank: 1,
    members: 5,
    result: 'promoted',
    closed_at: '2026-10-04T00:00:00.000Z',
    seen: false,
  }
  expect(await last(users[0]!, key)).toEqual(result)
  expect(await last(users[4]!, key)).toMatchObject({ result: 'relegated', tier_to: 'bronze', rank: 5 })
  expect((await cohorts(key, '2026-10-03'))[0].entries.map((one: any) => one.result)).toEqual([
    'promoted',
    'stayed',
    'stayed',
    'relegated',
    'relegated',
  ])
  // who begins the next run before the job has come begins where the result leads
  expect(await score(users[0]!, 1)).toMatchObject({ tier: 'gold', run_key: '2026-10-04' })
  harness.setTime('2026-10-04T00:04:59Z')
  await project.drain()
  expect(await runs(key)).toMatchObject([{}, { status: 'closed', is_settled: false }])
  harness.setTime('2026-10-04T00:05:00Z')
  await project.drain()
  await project.sql(`select internal.enqueue('leagues__turn', $1)`, [id])
  await project.drain()
  expect(await runs(key)).toMatchObject([
    { key: '2026-10-04', status: 'open', members: 1 },
    { key: '2026-10-03', status: 'closed', is_settled: true, closed_at: '2026-10-04T00:00:00.000Z', members: 5 },
  ])
  expect(await last(users[0]!, key)).toEqual(result)
  expect(await Promise.all(users.map(xpOf))).toEqual([110, 10, 10, 0, 0])
  const told = { league_id: id, key, run_key: '2026-10-03', tier_from: 'silver' }
  expect(await eventsOf(users[0]!.id)).toEqual([
    { name: 'promoted', properties: { ...told, tier_to: 'gold', rank: 1, points: 50 } },
  ])
  expect(await eventsOf(users[2]!.id)).toEqual([
    { name: 'stayed', properties: { ...told, tier_to: 'silver', rank: 3, points: 30 } },
  ])
  expect(await eventsOf(users[3]!.id)).toEqual([
    { name: 'relegated', properties: { ...told, tier_to: 'bronze', rank: 4, points: 20 } },
  ])
  // and once, for who has seen it
  expect((await users[0]!.post(`/client/leagues/${key}/seen`)).data).toEqual({ ...result, seen: true })
  expect((await users[0]!.post(`/client/leagues/${key}/seen`)).data).toEqual({ ...result, seen: true })
  expect(await last(users[0]!, key)).toEqual({ ...result, seen: true })
})

test('ties go to who came first, then by id; nobody is relegated from the lowest tier or promoted from the highest', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league({ period: 'daily' })
  const users = await people(5)
  await score(users[2]!, 5)
  harness.setTime('2026-10-03T20:00:01Z')
  for (const who of [users[4]!, users[3]!]) await score(who, 5)
  const top = await people(5)
  for (const who of top) {
    await place(who, key, 'gold')
    await score(who, 5)
  }
  const ids = (await show(users[2]!, key)).cohort.map((one: any) => one.app_user_id)
  expect(ids).toEqual([users[2]!.id, ...[users[3]!.id, users[4]!.id].sort()])
  harness.setTime('2026-10-04T00:05:00Z')
  await project.drain()
  const results = async (tier: string) =>
    (await cohorts(key, '2026-10-03', `&tier_key=${tier}`))[0].entries.map((one: any) => one.result)
  expect(await results('bronze')).toEqual(['promoted', 'promoted', 'stayed'])
  expect(await results('gold')).toEqual(['stayed', 'stayed', 'stayed', 'relegated', 'relegated'])
})

test('small cohorts relegate nobody but who has nothing', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league({ period: 'daily' })
  const kept = await league({ period: 'daily', inactive_relegates: false })
  const users = await people(4)
  for (const who of users) {
    for (const one of [key, kept.key]) await place(who, one, 'silver')
    await score(who, 5)
  }
  await score(users[3]!, -5)
  const zones = async (of: string) => (await show(users[0]!, of)).cohort.map((one: any) => one.zone)
  expect(await zones(key)).toEqual(['promotion', 'safe', 'safe', 'relegation'])
  expect(await zones(kept.key)).toEqual(['promotion', 'safe', 'safe', 'safe'])
})

test('nobody is promoted without points', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league({ period: 'daily' })
  const [a] = (await people(1)) as [any]
  await score(a, 5)
  await score(a, -5)
  expect(await current(a, key)).toMatchObject({ rank: 1, zone: 'safe', tier: 'bronze' })
})

test('a banned user has no rank and stays; a deleted one is gone', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league({ period: 'daily' })
  const [a, b, c, d] = (await people(4)) as [any, any, any, any]
  for (const [who, points] of [
    [a, 40],
    [b, 30],
    [c, 20],
    [d, 10],
  ] as const)
    await score(who, points)
  await admin.patch(`/users/${a.id}`, { is_banned: true })
  expect((await admin.delete(`/users/${b.id}`)).status).toBeLessThan(300)
  await project.drain()
  expect(await current(c, key)).toMatchObject({ rank: 1, members: 2 })
  harness.setTime('2026-10-04T00:05:00Z')
  await project.drain()
  const [cohort] = await cohorts(key, '2026-10-03')
  expect(cohort).toMatchObject({ members: 3 })
  expect(cohort.entries).toEqual([
    { app_user_id: c.id, points: 20, rank: 1, result: 'promoted' },
    { app_user_id: d.id, points: 10, rank: 2, result: 'promoted' },
    { app_user_id: a.id, points: 40, rank: null, result: 'stayed' },
  ])
  expect(await eventsOf(a.id)).toMatchObject([{ name: 'stayed', properties: { rank: null } }])
})

test('closing by hand begins the next run at once, and takes events of the minute before into it', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const users = await people(3)
  for (const [n, who] of users.entries()) await score(who, 3 - n)
  const closed = await close(key, { run_key: '2026-W40' })
  expect(closed).toMatchObject({ key: '2026-W40', status: 'closed', members: 3, closed_at: '2026-10-03T20:00:00.000Z' })
  expectRefusal(await admin.post(`/leagues/${key}/close-run`, { run_key: '2026-W40' }), 409, 'RUN_CLOSED')
  expectRefusal(await admin.post(`/leagues/${key}/close-run`, { run_key: '2026-W01' }), 404, 'NOT_FOUND')
  expect(await last(users[0]!, key)).toMatchObject({ result: 'promoted', run_key: '2026-W40' })
  const entered = { run_key: '2026-W40-2', tier: 'silver', points: 4 }
  expect(await score(users[0]!, 4, { occurred_at: '2026-10-03T19:59:01Z' })).toMatchObject(entered)
  expect(await score(users[0]!, 4, { occurred_at: '2026-10-03T19:58:59Z' })).toBeUndefined()
  await project.drain()
  expect(await runs(key)).toMatchObject([
    { key: '2026-W40-2', starts_at: '2026-10-03T20:00:00.000Z', ends_at: '2026-10-05T00:00:00.000Z' },
    { key: '2026-W40', is_settled: true },
  ])
  expect(await close(key)).toMatchObject({ key: '2026-W40-2' })
  expect(await close(key)).toMatchObject({ key: '2026-W40-3', members: 0 })
  expect((await users[0]!.get(`/client/leagues/${key}/history`)).data.map((one: any) => one.run_key)).toEqual([
    '2026-W40-2',
    '2026-W40',
  ])
})

test('of ten who close a run at once, one does', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const [a] = (await people(1)) as [any]
  await score(a, 1)
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => admin.post(`/leagues/${key}/close-run`, { run_key: '2026-W40' })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(409)])
})

test('the end is announced once, three hours before it, but that of a day is not', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { id, key } = await league()
  await league({ period: 'daily' })
  const [a] = (await people(1)) as [any]
  await score(a, 5)
  harness.setTime('2026-10-04T20:59:59Z')
  await project.drain()
  const ending = async () => (await eventsOf(a.id)).filter(({ name }) => name === 'ending')
  expect(await ending()).toEqual([])
  harness.setTime('2026-10-04T21:00:00Z')
  await project.drain()
  await project.sql(`select internal.enqueue('leagues__turn', $1)`, [id])
  await project.drain()
  expect(await ending()).toEqual([
    {
      name: 'ending',
      properties: {
        league_id: id,
        key,
        run_key: '2026-W40',
        tier: 'bronze',
        rank: 1,
        points: 5,
        zone: 'promotion',
        ends_at: '2026-10-05T00:00:00.000Z',
      },
    },
  ])
})

test('where a tier is no more, a user begins in the nearest below', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league({ period: 'daily' })
  const [a, b] = (await people(2)) as [any, any]
  await place(a, key, 'gold')
  await score(a, 5)
  await place(b, key, 'gold')
  await admin.patch(`/leagues/${key}`, { tiers: [{ key: 'wood' }, { key: 'bronze' }, { key: 'iron' }] })
  harness.setTime('2026-10-04T20:00:00Z')
  expect(await score(a, 1)).toMatchObject({ tier: 'bronze' })
  expect(await score(b, 1)).toMatchObject({ tier: 'bronze' })
})
