import { expect, test } from 'vitest'
import { startLeagues } from '#test/support/leagues.ts'

const { harness, project, admin, league, people, score, show, current, last, runs, cohorts, place, close } =
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
