import { beforeEach, describe, expect, test } from 'vitest'
import { startStreaks } from '#test/support/streaks.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const { harness, project, define, someone, event, see, moveTo } = await startStreaks()

// before anything happens: what a change of the rules makes true becomes true with it
beforeEach(() => harness.setTime('2026-11-01T00:00:00Z'))

type Told = { what: string; at: string; properties: any }
/** What the clock told of a user's streak, in order. */
const eventsOf = async (userId: string, streak: { id: string }): Promise<Told[]> =>
  project.sql(
    `select replace(event_name, 'svc.streak.', '') as what, internal.iso(occurred_at) as at, properties from app.engagement_events
      where app_user_id = $1 and event_name in ('svc.streak.at_risk', 'svc.streak.frozen', 'svc.streak.broken')
        and properties ->> 'streak_definition_id' = $2 order by occurred_at, id`,
    [userId, streak.id],
  )
const news = async (userId: string, streak: { id: string }) =>
  (await eventsOf(userId, streak)).map(({ what, at, properties }) => `${what} ${properties.period} ${at.slice(0, 16)}`)
const clockRow = () => project.sql(`select internal.iso(due_at) as due_at from app.outbox where task = 'streaks__tick'`)

describe('events that the clock causes', () => {
  test('at risk, frozen and broken, with times, periods and what is left; once each, whoever looks how often', async () => {
    const streak = await define({ freezes_initial: 1 })
    harness.setTime('2026-11-02T12:00:00Z')
    const user = await someone()
    await event(user, streak)
    harness.setTime('2026-11-03T17:59:00Z')
    await project.drain()
    expect(await news(user.id, streak)).toEqual([])
    harness.setTime('2026-11-03T18:00:00Z')
    await project.drain()
    await project.drain()
    expect(await news(user.id, streak)).toEqual(['at_risk 2026-11-03 2026-11-03T18:00'])
    harness.setTime('2026-11-04T00:00:00Z')
    await Promise.all([project.drain(), project.drain(), project.drain()])
    harness.setTime('2026-11-10T00:00:00Z')
    await project.drain()
    const found = await eventsOf(user.id, streak)
    const common = { streak_definition_id: streak.id, key: streak.key, name: streak.key, longest_count: 1 }
    expect(found).toEqual([
      {
        what: 'at_risk',
        at: '2026-11-03T18:00:00.000Z',
        properties: { ...common, period: '2026-11-03', deadline: '2026-11-04T00:00:00.000Z', current_count: 1 },
      },
      {
        what: 'frozen',
        at: '2026-11-04T00:00:00.000Z',
        properties: {
          ...common,
          period: '2026-11-03',
          deadline: '2026-11-04T00:00:00.000Z',
          current_count: 1,
          freezes_remaining: 0,
        },
      },
      {
        what: 'broken',
        at: '2026-11-05T00:00:00.000Z',
        properties: {
          ...common,
          period: '2026-11-04',
          deadline: '2026-11-05T00:00:00.000Z',
          current_count: 0,
          lost_count: 1,
        },
      },
    ])
    // nothing more to tell
    const rows = await project.sql('select next_check_at from app.user_streaks where app_user_id = $1', [user.id])
    expect(rows).toEqual([{ next_check_at: null }])
  })

  test('after a week without a worker each event is emitted with its own time; a user who comes back first emits them at once', async () => {
    const streak = await define({ freezes_initial: 2, grace_hours: 3 })
    harness.setTime('2026-11-02T12:00:00Z')
    const [user, other] = [await someone('America/New_York'), await someone('Asia/Kolkata')]
    for (const one of [user, other]) await event(one, streak)
    harness.setTime('2026-11-12T12:00:00Z')
    // the other one comes back before any worker does
    expect(await event(other, streak)).toMatchObject({ change: 'started', current_count: 1 })
    expect((await see(user, streak)).status).toBe('broken')
    expect(await news(user.id, streak)).toEqual([])
    await project.drain()
    // with three hours of grace a frozen streak is at risk in the hours after midnight
    expect(await news(user.id, streak)).toEqual([
      'at_risk 2026-11-03 2026-11-04T02:00',
      'frozen 2026-11-03 2026-11-04T08:00',
      'at_risk 2026-11-04 2026-11-05T05:00',
      'frozen 2026-11-04 2026-11-05T08:00',
      'at_risk 2026-11-05 2026-11-06T05:00',
      'broken 2026-11-05 2026-11-06T08:00',
    ])
    expect(await news(other.id, streak)).toEqual([
      'at_risk 2026-11-03 2026-11-03T15:30',
      'frozen 2026-11-03 2026-11-03T21:30',
      'at_risk 2026-11-04 2026-11-04T18:30',
      'frozen 2026-11-04 2026-11-04T21:30',
      'at_risk 2026-11-05 2026-11-05T18:30',
      'broken 2026-11-05 2026-11-05T21:30',
    ])
    expect((await see(user, streak)).status).toBe('broken')
  })

  test('a pause emits nothing; nor does a late event that completes a chain', async () => {
    const streak = await define()
    harness.setTime('2026-11-02T12:00:00Z')
    const user = await someone()
    await event(user, streak)
    expect((await user.put(`${streak.client}/pause`, { start: '2026-11-03', end: '2026-11-05' })).status).toBe(200)
    harness.setTime('2026-11-06T12:00:00Z')
    await project.drain()
    expect(await news(user.id, streak)).toEqual([])
    harness.setTime('2026-11-08T12:00:00Z')
    await project.drain()
    // after the pause the day was frozen, so never at risk before its end
    expect(await news(user.id, streak)).toEqual(['broken 2026-11-06 2026-11-07T00:00'])
    expect(await event(user, streak, '2026-11-06T10:00:00Z')).toBeUndefined()
    expect(await event(user, streak, '2026-11-07T10:00:00Z')).toMatchObject({ change: 'restored', current_count: 3 })
    await project.drain()
    expect(await news(user.id, streak)).toHaveLength(1)
    harness.setTime('2026-11-09T12:00:00Z')
    await project.drain()
    expect((await news(user.id, streak)).slice(1)).toEqual([
      'at_risk 2026-11-08 2026-11-08T18:00',
      'broken 2026-11-08 2026-11-09T00:00',
    ])
  })

  test('rules that change in between: what was due is evaluated by the old rules, the rest by the new', async () => {
    const streak = await define({ grace_hours: 12 })
    harness.setTime('2026-11-02T12:00:00Z')
    const user = await someone()
    await event(user, streak)
    // by the old rules the 3rd was at risk from its end on, and could be saved until noon
    harness.setTime('2026-11-04T06:00:00Z')
    await project.admin.patch(streak.admin, { grace_hours: 2, at_risk_hours: 1 })
    await project.drain()
    expect(await news(user.id, streak)).toEqual([
      'at_risk 2026-11-03 2026-11-04T00:00',
      // it was the change that broke it
      'broken 2026-11-03 2026-11-04T06:00',
    ])
    await event(user, streak)
    harness.setTime('2026-11-06T12:00:00Z')
    await project.drain()
    expect((await news(user.id, streak)).slice(2)).toEqual([
      'at_risk 2026-11-05 2026-11-06T00:00',
      'broken 2026-11-05 2026-11-06T02:00',
    ])
  })

  test('a streak that is switched off is silent', async () => {
    const streak = await define()
    harness.setTime('2026-11-02T12:00:00Z')
    const user = await someone()
    await event(user, streak)
    await project.admin.patch(streak.admin, { is_active: false })
    harness.setTime('2026-11-05T12:00:00Z')
    await project.drain()
    expect(await news(user.id, streak)).toEqual([])
    await project.admin.patch(streak.admin, { is_active: true })
    await project.drain()
    expect(await news(user.id, streak)).toEqual(['broken 2026-11-03 2026-11-05T12:00'])
  })

  test('for a user who changes the time zone the old zone counts until the change, and the later end of the day after it', async () => {
    const streak = await define()
    harness.setTime('2026-11-02T12:00:00Z')
    const user = await someone('Asia/Tokyo')
    await event(user, streak)
    harness.setTime('2026-11-03T10:00:00Z')
    await moveTo(user.id, 'America/Los_Angeles')
    await project.drain()
    // 18:00 in Tokyo was 09:00 UTC, before the move; it is told once
    expect(await news(user.id, streak)).toEqual(['at_risk 2026-11-03 2026-11-03T09:00'])
    harness.setTime('2026-11-04T07:59:00Z')
    await project.drain()
    expect((await news(user.id, streak)).slice(1)).toEqual([])
    harness.setTime('2026-11-04T08:00:00Z')
    await project.drain()
    expect((await news(user.id, streak)).slice(1)).toEqual(['broken 2026-11-03 2026-11-04T08:00'])
  })

  test('events are events: they move streaks, and reach webhooks', async () => {
    const streak = await define()
    const sad = await define({
      qualifying_event: 'svc.streak.broken',
      event_filter: { column: 'key', op: 'eq', value: streak.key },
    })
    await project.admin.post('/webhooks', { event_name: 'svc.streak.at_risk', target_url: 'https://1.1.1.1/' })
    harness.setTime('2026-11-02T12:00:00Z')
    const user = await someone()
    await event(user, streak)
    harness.setTime('2026-11-04T00:00:00Z')
    await project.as(
      'app_worker',
      { 'app.caller': 'worker', 'app.clock': harness.now().toISOString() },
      'select api.streaks_tick()',
    )
    expect((await see(user, sad)).current_count).toBe(1)
    const sent = await project.sql(
      `select payload::json -> 'data' -> 'event' ->> 'occurred_at' as at from app.webhook_deliveries where event_name = 'svc.streak.at_risk'
          and payload::json -> 'data' -> 'event' -> 'properties' ->> 'key' = $1`,
      [streak.key],
    )
    expect(sent).toEqual([{ at: '2026-11-03T18:00:00.000Z' }])
    await project.sql('delete from app.webhooks')
  })
})

describe('races', () => {
  test('an evaluation concurrent with a qualifying event: one waits for the other, and nothing is emitted twice or for a saved day', async () => {
    const streak = await define()
    harness.setTime('2026-11-02T12:00:00Z')
    const user = await someone()
    await event(user, streak)
    harness.setTime('2026-11-03T19:00:00Z')
    const clock = { 'app.clock': harness.now().toISOString() }
    const open = await openTransaction(project, 'app_worker', { ...clock, 'app.caller': 'worker' })
    await open.query('select api.streaks_tick()')
    const qualified = event(user, streak)
    await untilBlocked(project)
    await open.commit()
    expect(await qualified).toMatchObject({ change: 'extended' })
    expect(await news(user.id, streak)).toEqual(['at_risk 2026-11-03 2026-11-03T18:00'])
    harness.setTime('2026-11-04T01:00:00Z')
    await project.drain()
    expect(await news(user.id, streak)).toHaveLength(1)
  })

  test('many users, evaluations and events at once: each deadline emits one event', { timeout: 180_000 }, async () => {
    const streak = await define()
    harness.setTime('2026-11-02T12:00:00Z')
    const users = await Promise.all(Array.from({ length: 20 }, () => someone()))
    const post = (some: typeof users) =>
      project.server.post('/client/events', {
        events: some.map(({ id }) => ({ app_user_id: id, event_name: streak.event })),
      })
    expect((await post(users)).status).toBe(201)
    harness.setTime('2026-11-04T12:00:00Z')
    const tick = () =>
      project.as(
        'app_worker',
        { 'app.caller': 'worker', 'app.clock': harness.now().toISOString() },
        'select api.streaks_tick(7)',
      )
    const answers = await Promise.all([
      ...Array.from({ length: 6 }, tick),
      ...Array.from({ length: 6 }, (_, n) => post([...users.slice(n * 3), ...users.slice(0, n * 3)])),
      ...Array.from({ length: 6 }, tick),
    ])
    expect(answers.filter((answer) => 'status' in answer && answer.status !== 201)).toEqual([])
    await project.drain()
    for (const { id } of users)
      expect(await news(id, streak)).toEqual([
        'at_risk 2026-11-03 2026-11-03T18:00',
        'broken 2026-11-03 2026-11-04T00:00',
      ])
  })

  test('a worker that dies in an evaluation has emitted nothing', async () => {
    const streak = await define()
    harness.setTime('2026-11-02T12:00:00Z')
    const user = await someone()
    await event(user, streak)
    harness.setTime('2026-11-03T19:00:00Z')
    const open = await openTransaction(project, 'app_worker', {
      'app.clock': harness.now().toISOString(),
      'app.caller': 'worker',
    })
    await open.query('select api.streaks_tick()')
    await open.kill()
    expect(await news(user.id, streak)).toEqual([])
    await project.drain()
    expect(await news(user.id, streak)).toHaveLength(1)
  })
})

describe('the outbox', () => {
  test('holds one row for all streaks of a project, due when the first is, and within the hour', async () => {
    await define({ qualifying_event: 'clocked' })
    harness.setTime('2026-12-02T12:00:00Z')
    const [tokyo, utc] = [await someone('Asia/Tokyo'), await someone()]
    await utc.post('/client/events', { event_name: 'clocked' })
    await project.drain()
    expect(await clockRow()).toEqual([{ due_at: '2026-12-02T13:00:00.000Z' }])
    await tokyo.post('/client/events', { event_name: 'clocked' })
    expect(await clockRow()).toEqual([{ due_at: '2026-12-02T13:00:00.000Z' }])
    harness.setTime('2026-12-03T08:30:00Z')
    await project.drain()
    // 18:00 in Tokyo
    expect(await clockRow()).toEqual([{ due_at: '2026-12-03T09:00:00.000Z' }])
  })

  test('is empty when no streak has a deadline', async () => {
    harness.setTime('2027-03-01T00:00:00Z')
    await project.drain()
    expect(await clockRow()).toEqual([])
    await expect(project.as('app_admin', {}, 'select api.streaks_tick()')).rejects.toThrow(/permission denied/)
  })
})

test('ten thousand due streaks in one tick', { timeout: 180_000 }, async () => {
  const streak = await define()
  // the planner believes that the tables are small, as it does until they are analyzed again
  await project.sql('analyze')
  await project.sql(
    `with made as (insert into app.users (display_name) select 'u' || n from generate_series(1, 10000) n returning id)
     insert into app.user_streaks (app_user_id, streak_definition_id, freezes_initial, current_count, longest_count, started_on, last_period,
                                   covered_through, freezes, first_qualified_at, next_check_at)
     select m.id, $1, 0, 5, 5, '2027-04-01', '2027-04-05', '2027-04-05', 0, '2027-04-01T12:00:00Z', '2027-04-06T18:00:00Z' from made m`,
    [streak.id],
  )
  harness.setTime('2027-04-06T18:30:00Z')
  await project.sql(`select internal.enqueue('streaks__tick', 'clock', '{}', '2027-04-06T18:00:00Z')`)
  const started = performance.now()
  await project.drain()
  // on a slow machine the task yields to others after some seconds and goes on a moment later
  for (let n = 0; n < 100 && (await clockRow())[0].due_at < '2027-04-06T19'; n += 1) {
    harness.advance(5)
    await project.drain()
  }
  const milliseconds = Math.round(performance.now() - started)
  if (process.env['SHOW_TIMES']) console.log('ten thousand due streaks', milliseconds, 'ms')
  expect(await clockRow()).toEqual([{ due_at: expect.stringMatching(/^2027-04-06T19:3/) }])
  const [counted] = await project.sql(
    `select count(*)::int as count from app.engagement_events where event_name = 'svc.streak.at_risk' and properties ->> 'key' = $1`,
    [streak.key],
  )
  expect(counted.count).toBe(10_000)
})
