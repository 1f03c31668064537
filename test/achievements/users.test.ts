import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startAchievements } from '#test/support/achievements.ts'
import type { Client } from '#test/support/harness.ts'
import { runOperationJob } from '#test/support/jobs.ts'
import { expectInvalid } from '#test/support/refusals.ts'

const { harness, project, admin, someone, me, define, send, see } = await startAchievements()

describe('what users see', () => {
  test('hidden ones show nothing until they are unlocked; others are in order, paged', async () => {
    const other = await harness.project()
    const secret = await define({ target_value: 1 }, { is_hidden: true, sort_order: 2 }, other)
    const plain = await define({}, { sort_order: 1 }, other)
    const { id } = await other.user()
    const who = other.onBehalfOf(id)
    const listed = await who.get('/client/achievements')
    expect(listed.data[0]).toEqual({
      id: plain.id,
      key: plain.key,
      name: plain.key,
      description: null,
      icon_url: null,
      xp_reward: 0,
      is_hidden: false,
      sort_order: 1,
      unlocked: false,
      unlocked_at: null,
      progress: { current: 0, target: 3, ratio: 0 },
      rarity: 0,
    })
    expect(listed.data[1]).toEqual({ id: secret.id, key: secret.key, is_hidden: true, unlocked: false })
    expect((await who.get(`/client/achievements/${secret.key}`)).data).toEqual(listed.data[1])
    expect((await who.get('/client/achievements?limit=1&offset=1')).body).toMatchObject({
      total: 2,
      offset: 1,
      limit: 1,
      data: [{ id: secret.id }],
    })
    await who.post('/client/events', { event_name: secret.event })
    expect((await who.get(`/client/achievements/${secret.key}`)).data).toMatchObject({
      name: secret.key,
      unlocked: true,
      is_hidden: true,
    })
    expect((await who.get('/client/achievements?limit=0')).error?.code).toBe('INVALID_INPUT')
    expect((await who.get('/client/achievements/nothing')).error?.code).toBe('NOT_FOUND')
  })

  test('what is unlocked is unseen until it is seen, once for all devices, by its own user', async () => {
    const { id, event } = await define({ target_value: 1 })
    const user = await someone()
    const other = await someone()
    await send(user, event)
    const unseen = async (who: Client) =>
      (await who.get('/client/achievements/unseen')).data.map((a: { id: string }) => a.id)
    expect(await unseen(user)).toEqual([id])
    expect((await other.post('/client/achievements/seen', { ids: [id] })).data).toEqual({ seen: 0 })
    expect(await unseen(user)).toEqual([id])
    expect((await user.post('/client/achievements/seen', { ids: [id, randomUUID()] })).data).toEqual({ seen: 1 })
    expect((await user.post('/client/achievements/seen', { ids: [id] })).data).toEqual({ seen: 0 })
    expect(await unseen(user)).toEqual([])
    expectInvalid(await user.post('/client/achievements/seen', { ids: [] }), 'ids')
    expectInvalid(await user.post('/client/achievements/seen', { ids: ['x'] }), 'ids.0')
    expect((await user.post('/client/achievements/seen', '[]' as never)).error?.code).toBe('INVALID_BODY')
  })

  test("another's unlocks, unless they are hidden", async () => {
    const { id, event } = await define({ target_value: 1 })
    await define()
    const user = await someone()
    const other = await someone()
    await send(user, event)
    const seen = await other.get(`/client/users/${user.id}/achievements`)
    expect(seen.body).toMatchObject({ total: 1, offset: 0, limit: 50 })
    expect(seen.data.map((a: { id: string }) => a.id)).toEqual([id])
    expect((await other.get(`/client/users/${user.id}/achievements?offset=1`)).data).toEqual([])
    await project.sql(`update app.users set properties = '{"hide_achievements": true}' where id = $1`, [user.id])
    expect((await other.get(`/client/users/${user.id}/achievements`)).error?.code).toBe('NOT_FOUND')
    expect((await user.get(`/client/users/${user.id}/achievements`)).data).toHaveLength(1)
    expect((await other.get(`/client/users/${randomUUID()}/achievements`)).error?.code).toBe('NOT_FOUND')
    expect((await other.get('/client/users/x/achievements')).error?.code).toBe('INVALID_ID')
    expect((await other.get(`/client/users/${user.id}/achievements?limit=x`)).error?.code).toBe('INVALID_INPUT')
  })

  test("another's unlocks are not there when either has blocked the other", async () => {
    const { event } = await define({ target_value: 1 })
    const [user, other, third] = [await someone(), await someone(), await someone()]
    await send(user, event)
    const path = `/client/users/${user.id}/achievements`
    for (const [blocker, blocked] of [
      [user, other],
      [other, user],
    ] as const) {
      expect((await other.get(path)).data).toHaveLength(1)
      await project.sql('insert into app.blocks (blocker, blocked) values ($1, $2)', [blocker.id, blocked.id])
      expect(await other.get(path)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
      expect((await third.get(path)).data).toHaveLength(1)
      expect((await user.get(path)).data).toHaveLength(1)
      await project.sql('delete from app.blocks')
    }
  })

  test('rarity is counted by the hour', async () => {
    const other = await harness.project()
    const { event, key } = await define({ target_value: 1 }, {}, other)
    const users = [await other.user(), await other.user(), await other.user(), await other.user()]
    const who = other.onBehalfOf(users[0]?.id ?? '')
    await who.post('/client/events', { event_name: event })
    harness.advance(1)
    await other.drain()
    expect((await who.get(`/client/achievements/${key}`)).data.rarity).toBe(0.25)
    await other.onBehalfOf(users[1]?.id ?? '').post('/client/events', { event_name: event })
    harness.advance(3590)
    await other.drain()
    expect((await who.get(`/client/achievements/${key}`)).data.rarity).toBe(0.25)
    harness.advance(11)
    await other.drain()
    expect((await who.get(`/client/achievements/${key}`)).data.rarity).toBe(0.5)
  })
})

describe('all users', () => {
  test('a user who already qualifies is unlocked in the background and rewarded, without an event', async () => {
    const other = await harness.project()
    const users = [await other.user(), await other.user()]
    for (const { id } of users)
      for (let n = 0; n < 2; n += 1) await other.onBehalfOf(id).post('/client/events', { event_name: 'old' })
    await other.onBehalfOf(users[0]?.id ?? '').post('/client/events', { event_name: 'old' })
    const { id } = await define({ event_name: 'old' }, { xp_reward: 5 }, other)
    const holders = async () =>
      (await other.admin.get(`/achievements/${id}/users`)).data.map(({ app_user_id, source }: any) => [
        app_user_id,
        source,
      ])
    expect(await holders()).toEqual([])
    await other.drain()
    expect(await holders()).toEqual([[users[0]?.id, 'backfill']])
    const emittedEvents = await other.sql(
      `select event_name, is_historical from app.engagement_events where source = 'system' and event_name ~ 'xp|achievement'`,
    )
    expect(emittedEvents).toHaveLength(2)
    expect(emittedEvents.every(({ is_historical }) => is_historical)).toBe(true)
    expect((await other.onBehalfOf(users[0]?.id ?? '').get('/client/xp')).data.total).toBe(5)
    // a target that is lowered owes it to the others too; other changes look at nobody
    await other.admin.patch(`/achievements/${id}`, { name: 'Renamed' })
    expect(await other.sql(`select from app.outbox where task = 'achievements__catch_up'`)).toEqual([])
    await other.admin.patch(`/achievements/${id}`, {
      criteria: { type: 'event_count', event_name: 'old', target_value: 2 },
    })
    await other.drain()
    expect(await holders()).toHaveLength(2)
  })

  test('a backfill by hand is an operation with progress, in steps, silent or not', async () => {
    const other = await harness.project()
    const { id } = await define({ event_name: 'old', target_value: 1 }, { is_active: false }, other)
    await other.sql(`with made as (insert into app.users (display_name) select 'u' from generate_series(1, 1200) returning id)
      insert into app.user_event_counters (app_user_id, event_name, day, count) select m.id, 'old', '2026-01-01', 1 from made m`)
    const start = async (body: object) => {
      const answer = await other.admin.post(`/achievements/${id}/backfill`, body)
      expect([answer.status, answer.data.status], answer.text).toEqual([202, 'queued'])
      return runOperationJob(harness, other, 'achievements__backfill', answer.data.operation_id)
    }
    const ended = await start({})
    expect(ended).toMatchObject({
      type: 'achievements.backfill',
      status: 'succeeded',
      progress: { done: 1200, total: 1200 },
      result: { users: 1200, unlocked: 1200 },
    })
    expect((await start({ notify: true })).result).toEqual({ users: 1200, unlocked: 0 })
    const [one] = await other.sql('select app_user_id from app.user_achievements limit 1')
    await other.admin.post(`/achievements/${id}/revoke`, { app_user_id: one?.app_user_id })
    expect((await start({ notify: true })).result).toEqual({ users: 1200, unlocked: 1 })
    const emittedEvents = await other.sql(
      `select is_historical, count(*)::int from app.engagement_events where event_name = 'svc.achievement.unlocked' group by 1 order by 1`,
    )
    expect(emittedEvents).toEqual([
      { is_historical: false, count: 1 },
      { is_historical: true, count: 1200 },
    ])
  })

  test('a dry run of a large project is an estimate from a sample, near what an exact one says', async () => {
    const other = await harness.project()
    // users of a page resemble each other
    await other.sql(`insert into app.users (display_name) select 'U' from generate_series(1, 4000)`)
    await other.sql(
      `insert into app.user_event_counters (app_user_id, event_name, day, count)
       select u.id, 'e', current_date, 1 + u.n / 40 % 5 from (select id, row_number() over (order by id) as n from app.users) u where u.n % 10 < 8`,
    )
    await other.sql('analyze app.users')
    const criteria = JSON.stringify({ type: 'event_count', event_name: 'e', target_value: 4 })
    const dry = async (affordable: number) => {
      const [row] = await other.as(
        'app_admin',
        { 'app.caller': 'developer' },
        'select internal.achievement_dry_run($1, $2) as dry',
        [criteria, affordable],
      )
      return row?.dry
    }
    const [exact, estimate] = [await dry(1_000_000), await dry(0)]
    expect(exact).toMatchObject({ users_now: 1280, is_estimate: false, margin: 0 })
    expect(estimate).toMatchObject({ is_estimate: true, users_30d_ago_estimate: 0 })
    expect(estimate.margin).toBeGreaterThan(0)
    expect(estimate.margin).toBeLessThan(1000)
    expect(Math.abs(estimate.users_now - 1280)).toBeLessThan(2.5 * estimate.margin)
    expect(estimate.sample).toHaveLength(10)
    expect(estimate.sample[0].value).toBe(5)
    const all = estimate.distribution.reduce((sum: number, { users }: { users: number }) => sum + users, 0)
    expect(Math.abs(all - 4000)).toBeLessThan(400)
  })

  test('a dry run says who would, stored or not; figures say who did', async () => {
    const other = await harness.project()
    const users = await Promise.all(Array.from({ length: 4 }, () => other.user()))
    const post = (id: string, occurred_at?: string) =>
      other.server.post('/client/events', {
        events: [{ app_user_id: id, event_name: 'e', ...(occurred_at ? { occurred_at } : {}) }],
        historical: true,
      })
    for (const [n, { id }] of users.entries()) for (let times = 0; times < n; times += 1) await post(id)
    for (let times = 0; times < 3; times += 1) await post(users[3]?.id ?? '', '2026-01-01T00:00:00Z')
    const criteria = { type: 'event_count', event_name: 'e', target_value: 2 }
    const dry = await other.admin.post('/achievements/dry-run', { criteria })
    expect(dry.data).toEqual({
      users_now: 2,
      users_30d_ago_estimate: 1,
      is_estimate: false,
      margin: 0,
      sample: [
        { user_id: users[3]?.id, value: 6 },
        { user_id: users[2]?.id, value: 2 },
      ],
      distribution: [
        { bucket: '0-24%', users: 1 },
        { bucket: '25-49%', users: 0 },
        { bucket: '50-74%', users: 1 },
        { bucket: '75-99%', users: 0 },
        { bucket: '100%+', users: 2 },
      ],
    })
    expect(await other.sql('select from app.user_achievements')).toEqual([])
    const { id } = await define({ event_name: 'e', target_value: 6 }, {}, other)
    expect((await other.admin.post(`/achievements/${id}/dry-run`)).data.users_now).toBe(1)
    expect((await other.admin.post(`/achievements/${id}/dry-run`, { criteria })).data).toEqual(dry.data)
    for (const type of ['xp_threshold', 'streak_length'])
      expect(
        (await other.admin.post('/achievements/dry-run', { criteria: { type, target_value: 1 } })).data,
      ).toMatchObject({ users_now: 0, users_30d_ago_estimate: 0 })
    expect(
      (
        await other.admin.post('/achievements/dry-run', {
          criteria: { type: 'property_value', property_key: 'a', target_value: 1 },
        })
      ).data,
    ).toMatchObject({ users_30d_ago_estimate: null })
    await other.drain()
    const stats = (await other.admin.get('/achievements/stats')).data
    expect(stats).toMatchObject({
      total_unlocks: 1,
      unlocks_7d: 1,
      achievements: [{ id, unlocks: 1, unlocks_7d: 1, rate: 0.25 }],
    })
  })

  test('replay unlocks what stored events reach', async () => {
    const { id, event } = await define({ target_value: 1 }, { is_active: false })
    const user = await someone()
    await send(user, event)
    await project.sql('update app.achievements set is_active = true where id = $1', [id])
    const replay = async (dry_run: boolean) => {
      const { data } = await admin.post('/events/replay', {
        since: new Date(Date.now() - 3_600_000).toISOString(),
        targets: ['achievements'],
        user_ids: [user.id],
        dry_run,
      })
      return (await runOperationJob(harness, project, 'events__replay', data.operation_id)).result.targets.achievements
        .differences
    }
    const difference = expect.objectContaining({
      app_user_id: user.id,
      achievement_id: id,
      before: { unlocked: false },
      after: { unlocked: true },
    })
    expect(await replay(true)).toEqual([difference])
    expect((await admin.get(`/achievements/${id}/users`)).body.total).toBe(0)
    expect(await replay(false)).toEqual([difference])
    expect(await replay(false)).toEqual([])
  })
})

test('two users who become one have the union, each with the earlier time, and what both were paid counts once', async () => {
  const both = await define({ target_value: 1 }, { xp_reward: 10 })
  const theirs = await define({ target_value: 1 }, { xp_reward: 20 })
  const summed = await define({ target_value: 4 }, { xp_reward: 40 })
  const made = await project.app.post('/client/auth/email/signup', {
    email: `${randomUUID()}@example.org`,
    password: 'a long passphrase',
  })
  const survivor = project.app.with({ authorization: `Bearer ${made.data.session_token}` })
  const other = await project.user()
  await send(other, both.event)
  await send(other, theirs.event)
  await send(survivor, both.event)
  for (const who of [survivor, other]) for (let n = 0; n < 2; n += 1) await send(who, summed.event)
  const earlier = (await see(other, both.key)).unlocked_at
  expect((await survivor.post('/client/auth/merge', { from_session_token: other.sessionToken })).status).toBe(200)
  expect(await see(survivor, both.key)).toMatchObject({ unlocked: true, unlocked_at: earlier })
  expect((await see(survivor, theirs.key)).unlocked).toBe(true)
  expect((await see(survivor, summed.key)).unlocked).toBe(true)
  expect((await me(survivor)).total).toBe(70)
})

test('a reset user earns again, and is paid again', async () => {
  const { event } = await define({ target_value: 1 }, { xp_reward: 10 })
  const user = await someone()
  await send(user, event)
  await project.sql('delete from app.user_achievements where app_user_id = $1', [user.id])
  expect(await send(user, event)).toHaveLength(1)
  expect((await me(user)).total).toBe(20)
})
