import { expect, test } from 'vitest'
import { startLeagues } from '#test/support/leagues.ts'

const { harness, project, admin, league, people, score, show, current, last, runs, cohorts, place, close, checkSeats } =
  await startLeagues()
const merge = (survivor: string, other: string) =>
  project.sql(`begin; set local app.clock = '2026-10-03T20:00:00Z';
               select internal.lock_users(array['${survivor}', '${other}']::uuid[]);
               select internal.merge__leagues('${survivor}', '${other}'); commit`)

test('users who join at once fill at most eight cohorts, none beyond its size', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const users = await people(60)
  await Promise.all(users.map((who) => score(who, 1)))
  const all = await cohorts(key, '2026-W40')
  const members = all.flatMap((one: any) => one.entries.map((entry: any) => entry.app_user_id))
  expect(new Set(members).size).toBe(60)
  expect(members).toHaveLength(60)
  expect(Math.max(...all.map((one: any) => one.members))).toBeLessThanOrEqual(5)
  expect(all.filter((one: any) => one.is_filling).length).toBeLessThanOrEqual(8)
  for (const one of all) expect(one.members).toBe(one.entries.length)
})

test('of two who merge the survivor keeps the place, with the points of both', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const [a, b, c] = (await people(3)) as [any, any, any]
  await place(b, key, 'gold')
  await score(a, 5)
  await score(b, 7)
  await merge(a.id, b.id)
  expect(await current(a, key)).toMatchObject({ tier: 'bronze', points: 12 })
  expect((await cohorts(key, '2026-W40')).map((one: any) => one.members)).toEqual([1, 0])
  // who has entered nothing takes the other's place
  await merge(c.id, a.id)
  expect(await current(c, key)).toMatchObject({ tier: 'bronze', points: 12 })
  expect(await current(a, key)).toBeNull()
})

test('the points of two are enough to enter together, and results move', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league({ min_points_to_join: 10 })
  const [a, b, c] = (await people(3)) as [any, any, any]
  await score(a, 6)
  await score(b, 6)
  await merge(a.id, b.id)
  expect(await current(a, key)).toMatchObject({ points: 12, rank: 1 })
  await close(key)
  await project.drain()
  await merge(c.id, a.id)
  expect(await last(c, key)).toMatchObject({ points: 12, result: 'promoted' })
})

test('a reset forgets places and results', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const [a, b] = (await people(2)) as [any, any]
  await score(a, 1)
  await close(key)
  await score(a, 1)
  await place(b, key, 'gold')
  for (const who of [a, b])
    expect((await admin.delete(`/users/${who.id}/reset?sections=leagues`)).status).toBeLessThan(300)
  await project.drain()
  expect(await show(a, key)).toMatchObject({ current: null, last_result: null })
  expect(await score(a, 1)).toMatchObject({ tier: 'bronze' })
  expect(await score(b, 1)).toMatchObject({ tier: 'bronze' })
  expect((await runs(key))[0]).toMatchObject({ members: 2 })
})

test('segments compare the tier in which the next run would begin', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const [a, b, c, d] = (await people(4)) as [any, any, any, any]
  await score(a, 5)
  await close(key)
  await score(c, 5)
  await place(b, key, 'gold')
  const matching = async (op: string, value?: unknown) => {
    const rules = { source: 'league', key, op, ...(value === undefined ? {} : { value }) }
    const made = await admin.post('/segments', { key: `seg${crypto.randomUUID().slice(0, 8)}`, name: 'S', rules })
    expect(made.status, made.text).toBe(201)
    await project.drain()
    const users = (await admin.get(`/segments/${made.data.id}/members?limit=200`)).data
    return users.map((one: any) => one.id ?? one.app_user_id)
  }
  expect(await matching('eq', 'silver')).toEqual([a.id])
  expect(await matching('eq', 'gold')).toEqual([b.id])
  expect(await matching('eq', 'bronze')).toEqual([c.id])
  expect(await matching('is_null')).toContain(d.id)
  expect(await matching('is_null')).not.toContain(a.id)
})

test('a new time zone begins with the next run, without a gap', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league({ period: 'daily' })
  const [a] = (await people(1)) as [any]
  await score(a, 1)
  await admin.patch(`/leagues/${key}`, { timezone: 'Asia/Tokyo' })
  expect(await current(a, key)).toMatchObject({ run_key: '2026-10-03', ends_at: '2026-10-04T00:00:00.000Z' })
  harness.setTime('2026-10-04T00:10:00Z')
  await score(a, 1)
  expect(await current(a, key)).toMatchObject({
    run_key: '2026-10-04',
    starts_at: '2026-10-04T00:00:00.000Z',
    ends_at: '2026-10-04T15:00:00.000Z',
  })
})

test('points that were not enough are purged when the run is settled', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league({ min_points_to_join: 10 })
  const [a] = (await people(1)) as [any]
  await score(a, 1)
  await close(key)
  const purge = () => project.as('app_worker', { 'app.caller': 'worker' }, 'select internal.purge__leagues(100) as n')
  expect((await purge())[0]!['n']).toBe('0')
  await project.drain()
  expect((await purge())[0]!['n']).toBe('1')
})

test('the end of a ban after closing gives nobody another rank', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const [a, b] = (await people(2)) as [any, any]
  await score(a, 9)
  await score(b, 5)
  await admin.patch(`/users/${a.id}`, { is_banned: true })
  await close(key)
  await project.drain()
  await admin.patch(`/users/${a.id}`, { is_banned: false })
  expect(await last(a, key)).toMatchObject({ result: 'stayed', rank: null, tier_to: 'bronze' })
  expect(await last(b, key)).toMatchObject({ result: 'promoted', rank: 1 })
  expect((await cohorts(key, '2026-W40'))[0].entries.map((one: any) => [one.app_user_id, one.rank])).toEqual([
    [b.id, 1],
    [a.id, null],
  ])
})

test('whoever merges is hidden as the survivor is', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const [a, b, c, d] = (await people(4)) as [any, any, any, any]
  for (const who of [b, d]) await score(who, 7)
  await admin.patch(`/users/${b.id}`, { is_banned: true })
  await admin.patch(`/users/${c.id}`, { is_banned: true })
  // the place of a banned guest is seen again, that of a guest of a banned user no more
  await merge(a.id, b.id)
  expect(await current(a, key)).toMatchObject({ points: 7, members: 2, zone: 'promotion' })
  await merge(c.id, d.id)
  expect(await current(a, key)).toMatchObject({ points: 7, rank: 1, members: 1 })
  await admin.patch(`/users/${c.id}`, { is_banned: false })
  expect(await current(c, key)).toMatchObject({ points: 7, rank: 2, members: 2 })
})

test('a zone that changes in the last hour of a season begins the next one at its end, in both directions', async () => {
  for (const [timezone, run_key, ends_at] of [
    ['America/Los_Angeles', '2026-W40-2', '2026-10-05T07:00:00.000Z'],
    ['Asia/Tokyo', '2026-W41', '2026-10-11T15:00:00.000Z'],
  ] as const) {
    harness.setTime('2026-10-04T23:30:00Z')
    const { key } = await league()
    const [a] = (await people(1)) as [any]
    await score(a, 5)
    await admin.patch(`/leagues/${key}`, { timezone })
    expect(await score(a, 1)).toMatchObject({ run_key: '2026-W40', points: 6 })
    harness.setTime('2026-10-05T00:01:00Z')
    // a late one still counts in the season that it was made in, and leads to the tier of the next one
    expect(await score(a, 1, { occurred_at: '2026-10-04T23:59:59Z' })).toMatchObject({ run_key: '2026-W40', points: 7 })
    expect(await score(a, 1)).toMatchObject({ run_key, points: 1, tier: 'silver' })
    expect(await current(a, key)).toMatchObject({ starts_at: '2026-10-05T00:00:00.000Z', ends_at })
    harness.setTime('2026-10-05T00:05:00Z')
    await project.drain()
    expect(await score(a, 1, { occurred_at: '2026-10-04T23:59:59Z' })).toBeUndefined()
    expect(await last(a, key)).toMatchObject({ run_key: '2026-W40', points: 7, result: 'promoted' })
    // effects tell of the oldest league
    expect((await admin.delete(`/leagues/${key}`)).status).toBe(200)
  }
})

test('whoever is deleted in mid-season is in no result, and leaves the others their seats and history', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const users = (await people(5)) as any[]
  for (const [n, who] of users.entries()) await score(who, 60 - 10 * n)
  // the seat in the full cohort is free again
  expect((await admin.delete(`/users/${users[0].id}`)).status).toBeLessThan(300)
  const [late] = (await people(1)) as [any]
  await score(late, 1)
  expect((await cohorts(key, '2026-W40')).map((one: any) => one.members)).toEqual([5])
  await close(key)
  expect((await admin.delete(`/users/${users[1].id}`)).status).toBeLessThan(300)
  await project.drain()
  expect(await last(users[2], key)).toMatchObject({ result: 'promoted', rank: 1 })
  expect((await admin.delete(`/users/${users[2].id}`)).status).toBeLessThan(300)
  // a result is final
  expect(await last(users[3], key)).toMatchObject({ result: 'promoted', rank: 2 })
  await checkSeats()
})
