import { expect, test } from 'vitest'
import { startLeagues } from '#test/support/leagues.ts'
import { openTransaction } from '#test/support/transaction.ts'

const { harness, project, admin, league, people, score, scoreMany, scoring, scoreIn, runs, cohorts, turn, checkSeats } =
  await startLeagues()
const end = '2026-10-04T00:05:00Z'
const claims = { 'app.caller': 'worker', 'app.clock': end }
const rewards = [
  { tier_key: 'bronze', from_rank: 1, to_rank: 5, reward: { xp: 5 } },
  { tier_key: 'bronze', from_rank: 1, to_rank: 1, reward: { xp: 7 } },
]

/** What the close has given so far, to whom, and how often. */
const given = async (key: string) => {
  const [row] = await project.sql(
    `select (select count(*)::int from app.league_entries where result <> 'pending') as settled,
            (select count(*)::int from app.xp_transactions where source = 'league') as xp,
            (select count(distinct (app_user_id, source_id))::int from app.xp_transactions where source = 'league') as paid,
            (select count(*)::int from app.reward_grants where source_type = 'league') as granted,
            (select coalesce(sum(amount), 0)::int from app.xp_transactions where source = 'league') as sum,
            (select count(*)::int from app.engagement_events where event_name ~ '^svc.league.(pro|st|re)'
                                                               and properties ->> 'key' = $1) as told,
            (select count(distinct app_user_id)::int from app.engagement_events
              where event_name ~ '^svc.league.(pro|st|re)' and properties ->> 'key' = $1) as told_users`,
    [key],
  )
  return row
}

test('a close that is killed in each of its steps gives all results, rewards and events once', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { id, key } = await league({ period: 'daily', rewards })
  const users = await people(1150)
  await scoreMany(users.map((who, n) => [who, 1 + (n % 7)]))
  expect(await runs(key)).toMatchObject([{ members: 1150, cohorts: 230 }])
  harness.setTime(end)
  const steps: number[] = []
  for (let state = 'more'; state !== 'done'; ) {
    const before = await given(key)
    const dying = await openTransaction(project, 'app_worker', claims)
    await dying.query('select api.league_turn($1)', [id])
    // one that comes meanwhile does nothing
    expect(await turn(id, end)).toBe('wait')
    await dying.kill()
    expect(await given(key)).toEqual(before)
    state = await turn(id, end)
    steps.push((await given(key))!['settled'])
  }
  expect(new Set(steps)).toEqual(new Set([0, 500, 1000, 1150]))
  const all = { settled: 1150, xp: 1380, paid: 1380, granted: 1380, sum: 1150 * 5 + 230 * 7, told: 1150 }
  expect(await given(key)).toEqual({ ...all, told_users: 1150 })
  await project.sql(`select internal.enqueue('leagues__turn', $1)`, [id])
  await project.drain()
  expect(await given(key)).toEqual({ ...all, told_users: 1150 })
  expect((await runs(key)).at(-1)).toMatchObject({ key: '2026-10-03', is_settled: true, members: 1150 })
})

test('a member whom somebody keeps locked holds up the step, and nobody waits behind it', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { id, key } = await league({ period: 'daily' })
  const [a, b, c] = (await people(3)) as [any, any, any]
  await scoreMany([
    [a, 2],
    [b, 1],
  ])
  harness.setTime(end)
  await score(c, 1)
  await turn(id, end)
  const owner = await scoring(end)
  await scoreIn(owner, b, 1)
  // the fence, then the lock of a member
  await expect.poll(() => turn(id, end)).toBe('wait')
  const step = await openTransaction(project, 'app_worker', claims)
  await step.query('select api.league_turn($1)', [id])
  // its transaction is open, and has given the other member back
  expect(await score(a, 1)).toMatchObject({ run_key: '2026-10-04' })
  await step.commit()
  await owner.commit()
  await project.drain()
  expect((await cohorts(key, '2026-10-03'))[0].entries.map((one: any) => one.result)).toEqual(['promoted', 'promoted'])
})

test('a large league goes at once for everybody who asks, and from the disk by steps', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { id, key } = await league()
  const [a] = (await people(1)) as [any]
  await score(a, 1)
  const run = (await project.sql('select id from app.league_runs'))[0]!['id']
  await project.sql(
    `with u as (insert into app.users (display_name) select 'Many' from generate_series(1, 4500) returning id)
     insert into app.league_entries (run_id, app_user_id, league_id, began_at, points, reached_at)
     select $1, u.id, $2, now(), 1, now() from u`,
    [run, id],
  )
  await project.sql(
    `insert into app.league_tiers (league_id, app_user_id, ladder) select $1, u.id, '{bronze}' from app.users u limit 3000`,
    [id],
  )
  expect((await admin.delete(`/leagues/${key}`)).status).toBe(200)
  const [left] = await project.sql('select count(*)::int as n from app.league_entries')
  expect(left).toEqual({ n: 2501 })
  const seen = (role: 'app_user' | 'app_admin', table: string) =>
    project.as(
      role,
      { 'app.user_id': a.id, 'app.caller': role === 'app_user' ? 'user' : 'developer' },
      `table app.${table}`,
    )
  expect(await seen('app_user', 'league_entries')).toEqual([])
  for (const table of ['league_entries', 'league_cohorts', 'league_runs'])
    expect(await seen('app_admin', table)).toEqual([])
  await project.drain()
  for (const table of ['entries', 'tiers', 'cohorts', 'runs'])
    expect(await project.sql(`select from app.league_${table}`), table).toEqual([])
})

test('the deletion of a league waits for no event that is scoring in it, and nothing of it remains', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league()
  const [a, b, c] = (await people(3)) as [any, any, any]
  await score(a, 1)
  const open = await scoring('2026-10-03T20:00:00Z')
  await scoreIn(open, a, 1)
  await scoreIn(open, b, 1)
  expect((await admin.delete(`/leagues/${key}`)).status).toBe(200)
  await scoreIn(open, c, 1)
  await open.commit()
  await project.drain()
  for (const table of ['entries', 'cohorts', 'runs'])
    expect(await project.sql(`select from app.league_${table}`), table).toEqual([])
  expect(await score(a, 1)).toBeUndefined()
})

test('another period, before anybody is a member, begins anew without the points of the former one', async () => {
  harness.setTime('2026-10-03T20:00:00Z')
  const { key } = await league({ min_points_to_join: 10 })
  const [a] = (await people(1)) as [any]
  await score(a, 9)
  const changed = await admin.patch(`/leagues/${key}`, { period: 'daily' })
  expect(changed.status, changed.text).toBe(200)
  expect(await score(a, 9)).toBeUndefined()
  expect(await score(a, 1)).toMatchObject({ run_key: '2026-10-03', points: 10 })
  await project.drain()
  expect(await project.sql('select run_key from app.league_runs')).toEqual([{ run_key: '2026-10-03' }])
  await checkSeats()
})
