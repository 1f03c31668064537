import { expect, test } from 'vitest'
import { root, startSegments, tier } from '#test/support/segments.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const { harness, project, segmentOf, userWith, send, stored, eventsOf } = await startSegments()

type Own = typeof project
type Step = { moved: number; is_over: boolean; is_resumed: boolean; evaluated: number }
const step = async (own: Own, id: string, batch: number): Promise<Step> => {
  const [row] = await own.as(
    'app_worker',
    { 'app.caller': 'worker' },
    'select (api.segments_refresh($1, $2)).body as body',
    [id, batch],
  )
  return row?.body.data
}
const steps = async (own: Own, id: string, batch: number): Promise<number> => {
  for (let count = 1; ; count += 1) if ((await step(own, id, batch)).is_over) return count
}
const totalOf = async (own: Own, { path }: { path: string }): Promise<number> =>
  (await own.admin.get(`${path}/members?limit=1`)).body.total

test('an evaluation goes in steps, and goes on where a killed worker stopped', async () => {
  const own = await harness.project()
  const ids = await Promise.all(Array.from({ length: 7 }, () => userWith({ tier: 'pro' }, own)))
  const segment = await segmentOf({ rules: tier('pro') }, own)
  expect(await step(own, segment.id, 3)).toEqual({ moved: 3, is_over: false, is_resumed: false, evaluated: 3 })
  expect(await stored(segment, own)).toEqual([...ids].sort().slice(0, 3))
  expect(await step(own, segment.id, 3)).toEqual({ moved: 3, is_over: false, is_resumed: true, evaluated: 3 })
  // whoever changed behind the cursor is found by the worker's second round
  await own.sql(`update app.users set properties = '{}' where id = $1`, [[...ids].sort()[0]])
  await own.drain()
  expect(await stored(segment, own)).toEqual([...ids].sort().slice(1))
  expect(await totalOf(own, segment)).toBe(6)
  // nothing that differs, nothing that is written
  const written = () => own.sql('select app_user_id, xmin::text, ctid::text from app.segment_members order by 1')
  const before = await written()
  expect(await step(own, segment.id, 3)).toEqual({ moved: 0, is_over: true, is_resumed: false, evaluated: 20000 })
  expect(await written()).toEqual(before)
})

test('a step says among how many users it found those whom it moved', async () => {
  const own = await harness.project()
  for (const value of ['pro', 'free', 'free', 'pro', 'free', 'pro']) await userWith({ tier: value }, own)
  const segment = await segmentOf({ rules: tier('pro') }, own)
  expect(await step(own, segment.id, 2)).toMatchObject({ moved: 2, evaluated: 4 })
})

test('an evaluation under way begins again when its rules change', async () => {
  const own = await harness.project()
  const ids = await Promise.all(['a', 'a', 'b', 'b'].map((value) => userWith({ tier: value }, own)))
  const segment = await segmentOf({ rules: tier('a') }, own)
  expect(await step(own, segment.id, 1)).toMatchObject({ is_over: false })
  await own.admin.patch(segment.path, { rules: tier('b') })
  expect(await step(own, segment.id, 1)).toMatchObject({ is_resumed: false })
  await steps(own, segment.id, 1)
  expect(await stored(segment, own)).toEqual(ids.slice(2).sort())
})

test('a change that a step waits for counts, not what the step had seen before', async () => {
  const [a, b] = [await userWith({ level: 'gold' }), await userWith({ level: 'none' })]
  const segment = await segmentOf({ rules: { source: 'property', column: 'level', op: 'eq', value: 'gold' } })
  const open = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await open.query('select api.users_bulk_update($1)', [
    JSON.stringify([{ user_id: a, properties: { level: 'none' } }]),
  ])
  const refreshing = step(project, segment.id, 100)
  await untilBlocked(project)
  await open.commit()
  await refreshing
  expect(await stored(segment)).toEqual([])
  expect(await eventsOf(a)).toEqual([])
  // and the other way round: a member that the step would have taken out
  await project.sql(`update app.users set properties = '{"level": "gold"}' where id = $1`, [b])
  await steps(project, segment.id, 100)
  expect(await stored(segment)).toEqual([b])
  await project.sql(`update app.users set properties = '{"level": "none"}' where id = $1`, [b])
  const again = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await again.query('select api.users_bulk_update($1)', [
    JSON.stringify([{ user_id: b, properties: { level: 'gold' } }]),
  ])
  const taking = step(project, segment.id, 100)
  await untilBlocked(project)
  await again.commit()
  await taking
  expect(await stored(segment)).toEqual([b])
  expect(await totalOf(project, segment)).toBe(1)
})

test('events during an evaluation are not lost, and nothing is emitted twice', { timeout: 180_000 }, async () => {
  const own = await harness.project()
  const ids = await Promise.all(Array.from({ length: 24 }, () => userWith({}, own)))
  await Promise.all(ids.slice(0, 12).map((id) => send(id, 'ran', {}, own)))
  const segment = await segmentOf(
    { rules: { source: 'event', event_name: 'ran', measure: 'count', op: 'eq', value: 1 } },
    own,
  )
  await Promise.all([
    (async () => {
      for (let round = 0; round < 6; round += 1) await steps(own, segment.id, 2)
    })(),
    // some come in, some go out, while it runs
    ...ids.slice(6, 18).map((id) => send(id, 'ran', {}, own)),
  ])
  const expected = [...ids.slice(0, 6), ...ids.slice(12, 18)].sort()
  expect(await stored(segment, own)).toEqual(expected)
  expect(await totalOf(own, segment)).toBe(12)
  const told = await own.sql(
    `select app_user_id as id, sum(case event_name when 'svc.segment.entered' then 1 else -1 end)::int as balance, count(*)::int as count
       from app.engagement_events where event_name like 'svc.segment.%' group by 1 order by 1`,
  )
  for (const { id, balance, count } of told) {
    expect(balance).toBe(expected.includes(id) ? 1 : 0)
    expect(count).toBeLessThan(3)
  }
})

test('the total of a list is exact while many move members, and many changes become one', {
  timeout: 180_000,
}, async () => {
  const own = await harness.project()
  const segment = await segmentOf({ kind: 'static' }, own)
  const { user_ids } = (await own.admin.post('/users/cohort', { count: 60 })).data
  await Promise.all(
    [...user_ids, ...user_ids].map((id: string) => own.admin.post(`${segment.path}/members`, { user_ids: [id] })),
  )
  await Promise.all(user_ids.slice(0, 20).map((id: string) => own.admin.delete(`${segment.path}/members/${id}`)))
  expect(await totalOf(own, segment)).toBe(40)
  // deleted users go without a word of the segment
  await own.sql('delete from app.users where id = any ($1)', [user_ids.slice(20, 25)])
  expect(await totalOf(own, segment)).toBe(35)
  expect((await own.admin.get(segment.path)).data.member_count).toBe(35)
  const moves = Array.from({ length: 120 }, (_, n) => [
    own.sql('delete from app.segment_members where segment_id = $1 and app_user_id = $2', [
      segment.id,
      user_ids[25 + (n % 35)],
    ]),
    own.sql('insert into app.segment_members (segment_id, app_user_id) values ($1, $2) on conflict do nothing', [
      segment.id,
      user_ids[25 + (n % 35)],
    ]),
  ])
  await Promise.all(moves.flat())
  expect(await totalOf(own, segment)).toBe((await stored(segment, own)).length)
  for (let n = 0; n < 210; n += 1)
    await own.sql(
      n % 2 === 0
        ? 'insert into app.segment_members (segment_id, app_user_id) values ($1, $2) on conflict do nothing'
        : 'delete from app.segment_members where segment_id = $1 and app_user_id = $2',
      [segment.id, user_ids[0]],
    )
  expect(await totalOf(own, segment)).toBe((await stored(segment, own)).length)
  // as many slots as writers at once, not as many as writes
  const [slots] = await own.sql('select count(*)::int as rows from app.row_counts where key = $1', [segment.id])
  expect(slots.rows).toBeLessThan(20)
  expect((await own.admin.delete(`${root}/${segment.id}`)).status).toBe(200)
})
