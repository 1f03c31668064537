import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
afterEach(() => harness.setTime(null))

type Series = Readonly<Record<string, { date: string; value: number }[]>>
/** The days of series that are not 0, as `{name: {date: value}}`. */
const daysOf = async (path: string) => {
  const answer = await admin.get(path)
  expect(answer.status, answer.text).toBe(200)
  const series = answer.data.series as Series
  return Object.fromEntries(
    Object.entries(series).map(([name, days]) => [
      name,
      Object.fromEntries(days.filter(({ value }) => value !== 0).map(({ date, value }) => [date, value])),
    ]),
  )
}
const june = 'from=2026-06-01&to=2026-06-30'
const made = async (path: string, body: object) => {
  const answer = await admin.post(path, body)
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const give = (userId: string, amount: number, at: string, source = 'admin') =>
  project.sql(
    `insert into app.xp_transactions (app_user_id, amount, total_after, source, source_id, requested, occurred_at, counted_at)
     values ($1, $2, 0, $4, $5, $2, $3, $3)`,
    [userId, amount, at, source, randomUUID()],
  )

describe('days', () => {
  test('are those of the zone that is asked for, UTC where none is; each has a value', async () => {
    const [one, other] = [await project.user(), await project.user()]
    await give(one.id, 10, '2026-06-01T23:30:00Z')
    await give(one.id, 5, '2026-06-02T00:00:00Z')
    await give(other.id, 7, '2026-06-02T21:59:59.999Z')
    expect(await daysOf(`/xp/daily?${june}`)).toEqual({
      points: { '2026-06-01': 10, '2026-06-02': 12 },
      users: { '2026-06-01': 1, '2026-06-02': 2 },
    })
    expect(await daysOf(`/xp/daily?${june}&timezone=Europe/Berlin`)).toEqual({
      points: { '2026-06-02': 22 },
      users: { '2026-06-02': 2 },
    })
    const { data } = await admin.get('/xp/daily?from=2026-06-01&to=2026-06-02&timezone=America/New_York')
    expect(data).toEqual({
      from: '2026-06-01',
      to: '2026-06-02',
      timezone: 'America/New_York',
      series: {
        points: [
          { date: '2026-06-01', value: 15 },
          { date: '2026-06-02', value: 7 },
        ],
        users: [
          { date: '2026-06-01', value: 1 },
          { date: '2026-06-02', value: 1 },
        ],
      },
    })
  })

  test('begin at the first midnight where a change of the clock has two', async () => {
    // Havana: the clock goes from 01:00 back to 00:00
    const user = await project.user()
    await give(user.id, 1, '2025-11-02T03:59:59Z')
    await give(user.id, 10, '2025-11-02T04:00:00Z')
    await give(user.id, 100, '2025-11-02T05:30:00Z')
    const havana = (days: string) => daysOf(`/xp/daily?${days}&timezone=America/Havana`)
    expect((await havana('from=2025-11-01&to=2025-11-02'))['points']).toEqual({ '2025-11-01': 1, '2025-11-02': 110 })
    expect((await havana('from=2025-11-02&to=2025-11-02'))['points']).toEqual({ '2025-11-02': 110 })
    expect((await havana('from=2025-11-01&to=2025-11-01'))['points']).toEqual({ '2025-11-01': 1 })
  })

  test('a day on which clocks change has 23 or 25 hours', async () => {
    const { id } = await project.user()
    for (const at of ['2026-03-28T22:59:00Z', '2026-03-28T23:00:00Z', '2026-03-29T21:59:00Z', '2026-03-29T22:00:00Z'])
      await give(id, 1, at)
    expect(await daysOf('/xp/daily?from=2026-03-01&to=2026-04-10&timezone=Europe/Berlin')).toMatchObject({
      points: { '2026-03-28': 1, '2026-03-29': 2, '2026-03-30': 1 },
    })
  })

  test('are the last 30 when none is named, and the current one is that of the zone', async () => {
    harness.setTime(new Date('2026-07-10T23:00:00Z'))
    const days = async (query: string) => {
      const { data } = await admin.get(`/xp/daily${query}`)
      expect(data.series.points).toHaveLength(30)
      return [data.from, data.to, data.timezone]
    }
    expect(await days('')).toEqual(['2026-06-11', '2026-07-10', 'UTC'])
    expect(await days('?timezone=Europe/Berlin')).toEqual(['2026-06-12', '2026-07-11', 'Europe/Berlin'])
  })

  test.each([
    ['from=2026-03-02&to=2026-03-01', 'from'],
    ['from=2025-01-01&to=2026-02-05', 'from'],
    ['from=2026-02-30', 'from'],
    ['to=tomorrow', 'to'],
    ['timezone=Mars/Base', 'timezone'],
    [`timezone=${encodeURIComponent("UTC'; select 1")}`, 'timezone'],
  ])('refuses %s', async (query, field) => {
    const answer = await admin.get(`/xp/daily?${query}`)
    expectRefusal(answer, 400, 'INVALID_INPUT')
    expect(answer.error?.details.field).toBe(field)
  })

  test('of one definition refuse a zone that is none, too', async () => {
    const streak = await made('/streaks', { key: 'zone', name: 'Zone', qualifying_event: 'zone_done' })
    const challenge = await made('/challenges', {
      name: 'Zone',
      start_at: '2026-06-01T00:00:00Z',
      end_at: '2026-12-31T00:00:00Z',
      goal_type: 'event_count',
      goal_value: 2,
      event_name: 'zone_done',
    })
    const board = await made('/leaderboards', { key: 'zone', name: 'Zone' })
    await made('/currencies', { code: 'ZONE', name: 'Zone' })
    for (const path of [
      '/achievements',
      `/streaks/${streak.id}`,
      `/challenges/${challenge.id}`,
      `/leaderboards/${board.id}`,
      '/currencies/ZONE',
    ])
      expectRefusal(await admin.get(`${path}/daily?timezone=Mars/Base`), 400, 'INVALID_INPUT')
  })

  test('show administrators of the project alone what happened', async () => {
    const elsewhere = await harness.project()
    const streak = await made('/streaks', { key: 'own', name: 'Own', qualifying_event: 'own_done' })
    expect((await admin.get(`/streaks/${streak.id}/daily`)).status).toBe(200)
    expectRefusal(await elsewhere.admin.get(`/streaks/${streak.id}/daily`), 404, 'STREAK_NOT_FOUND')
    for (const role of ['app_user', 'app_server', 'app_anon'] as const)
      await expect(project.as(role, {}, 'select api.xp_daily()')).rejects.toThrow(/permission denied/)
  })
})

describe('of an area', () => {
  test('XP: what was given, not what was taken or merged', async () => {
    const { id } = await project.user()
    await give(id, 10, '2026-05-01T12:00:00Z')
    await give(id, -4, '2026-05-01T12:00:00Z')
    await give(id, 99, '2026-05-01T12:00:00Z', 'merge')
    expect(await daysOf('/xp/daily?from=2026-05-01&to=2026-05-02')).toEqual({
      points: { '2026-05-01': 10 },
      users: { '2026-05-01': 1 },
    })
  })

  test('streaks: filled periods and breaks of one streak', async () => {
    const streak = await made('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'lesson' })
    await made('/streaks', { key: 'other', name: 'Other', qualifying_event: 'lesson' })
    const [one, two] = [await project.user(), await project.user()]
    const at = (app_user_id: string, day: number) => ({
      app_user_id,
      event_name: 'lesson',
      occurred_at: `2026-06-0${day}T10:00:00Z`,
    })
    await made('/events', { events: [at(one.id, 1), at(one.id, 2), at(two.id, 2)], historical: true })
    await project.sql(
      `insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
       select internal.new_id(), $1, 'svc.streak.broken', jsonb_build_object('streak_definition_id', d.id),
              '2026-06-05T00:00:00Z', now(), 'system' from app.streak_definitions d`,
      [one.id],
    )
    const { kept, users, broken } = await daysOf(`/streaks/daily/daily?${june}`)
    expect([kept, users, broken]).toEqual([
      { '2026-06-01': 1, '2026-06-02': 2 },
      { '2026-06-01': 1, '2026-06-02': 2 },
      { '2026-06-05': 1 },
    ])
    expect(await daysOf(`/streaks/${streak.id}/daily?${june}`)).toEqual({ kept, users, broken })
    expectRefusal(await admin.get('/streaks/nothing/daily'), 404, 'STREAK_NOT_FOUND')
  })

  test('achievements: unlocks that were not revoked, of all or of one', async () => {
    const criteria = { type: 'event_count', event_name: 'never', target_value: 1 }
    const one = await made('/achievements', { key: 'one', name: 'One', criteria })
    const other = await made('/achievements', { key: 'other', name: 'Other', criteria })
    const { id } = await project.user()
    const unlock = (achievement: string, at: string, revoked: string | null = null) =>
      project.sql(
        `insert into app.user_achievements (app_user_id, achievement_id, unlocked_at, source, revoked_at)
         values ($1, $2, $3, 'grant', $4)`,
        [id, achievement, at, revoked],
      )
    await unlock(one.id, '2026-06-03T10:00:00Z')
    await unlock(other.id, '2026-06-03T11:00:00Z')
    const revoked = await made('/achievements', { key: 'revoked', name: 'Revoked', criteria })
    await unlock(revoked.id, '2026-06-03T11:00:00Z', '2026-06-04T00:00:00Z')
    expect(await daysOf(`/achievements/daily?${june}`)).toEqual({
      unlocked: { '2026-06-03': 2 },
      users: { '2026-06-03': 1 },
    })
    expect((await daysOf(`/achievements/daily?${june}&achievement_id=${one.id}`))['unlocked']).toEqual({
      '2026-06-03': 1,
    })
  })

  test('challenges: who joined and who completed', async () => {
    const challenge = {
      name: 'Sprint',
      start_at: '2026-06-01T00:00:00Z',
      end_at: '2026-12-31T00:00:00Z',
      goal_type: 'event_count',
      goal_value: 2,
      event_name: 'ran',
    }
    const [one, other] = [await made('/challenges', challenge), await made('/challenges', challenge)]
    for (const [of, completed] of [
      [one.id, '2026-06-09T10:00:00Z'],
      [one.id, null],
      [other.id, null],
    ])
      await project.sql(
        `insert into app.challenge_participants (challenge_id, app_user_id, joined_at, completed_at)
         values ($1, $2, '2026-06-04T10:00:00Z', $3)`,
        [of, (await project.user()).id, completed],
      )
    expect(await daysOf(`/challenges/${one.id}/daily?${june}`)).toEqual({
      joined: { '2026-06-04': 2 },
      completed: { '2026-06-09': 1 },
    })
    expectRefusal(await admin.get(`/challenges/${randomUUID()}/daily`), 404, 'NOT_FOUND')
  })

  test('currencies: what was granted and spent, of one currency', async () => {
    harness.setTime(new Date('2026-06-07T10:00:00Z'))
    for (const code of ['COINS', 'GEMS']) await made('/currencies', { code, name: code })
    const { id } = await project.user()
    const adjust = (currency_code: string, amount: number) =>
      made('/currencies/transactions', { app_user_id: id, adjustments: [{ currency_code, amount }], reason: 'test' })
    await adjust('COINS', 100)
    await adjust('COINS', -30)
    await adjust('GEMS', 5)
    expect(await daysOf(`/currencies/COINS/daily?${june}`)).toEqual({
      granted: { '2026-06-07': 100 },
      spent: { '2026-06-07': 30 },
      users: { '2026-06-07': 1 },
    })
    expectRefusal(await admin.get('/currencies/NONE/daily'), 404, 'NOT_FOUND')
  })

  test('leaderboards: who entered a run, once for each run', async () => {
    await made('/leaderboards', { key: 'points', name: 'Points', period: 'daily' })
    await made('/leaderboards', { key: 'others', name: 'Others' })
    const { id } = await project.user()
    const put = async (board: string, at: string) => {
      harness.setTime(new Date(at))
      expect((await admin.put(`/leaderboards/${board}/entries/${id}`, { score: 5 })).status).toBeLessThan(202)
    }
    await put('points', '2026-06-07T10:00:00Z')
    await put('points', '2026-06-07T11:00:00Z')
    await put('others', '2026-06-07T11:00:00Z')
    await put('points', '2026-06-08T10:00:00Z')
    expect(await daysOf(`/leaderboards/points/daily?${june}`)).toEqual({
      entries: { '2026-06-07': 1, '2026-06-08': 1 },
      users: { '2026-06-07': 1, '2026-06-08': 1 },
    })
    expectRefusal(await admin.get('/leaderboards/nothing/daily'), 404, 'NOT_FOUND')
  })

  test.each(['push', 'email'])('campaigns of %s: deliveries by their hours', async (channel) => {
    const [{ id }] = await project.sql(
      `insert into app.campaigns (channel, name, message, audience) values ($1, 'Sale', '{}', '{}') returning id`,
      [channel],
    )
    await project.sql(
      `insert into app.campaign_counts (source_id, hour, variant, sent, opened)
       values ($1, '-infinity', '', 9, 3), ($1, '2026-06-02T22:00:00Z', '', 5, 1), ($1, '2026-06-02T22:00:00Z', 'b', 3, 1),
              ($1, '2026-06-03T09:00:00Z', '', 1, 1), ($2, '2026-06-03T09:00:00Z', '', 7, 7)`,
      [id, randomUUID()],
    )
    expect(await daysOf(`/${channel}/campaigns/${id}/daily?${june}`)).toEqual({
      sent: { '2026-06-02': 8, '2026-06-03': 1 },
      failed: {},
      opened: { '2026-06-02': 2, '2026-06-03': 1 },
      clicked: {},
      converted: {},
    })
    expect((await daysOf(`/${channel}/campaigns/${id}/daily?${june}&timezone=Europe/Berlin`))['sent']).toEqual({
      '2026-06-03': 9,
    })
    const other = channel === 'push' ? 'email' : 'push'
    expectRefusal(await admin.get(`/${other}/campaigns/${id}/daily`), 404, 'NOT_FOUND')
  })
})

describe('of many rows', () => {
  // filled in the order of their days, as time fills them
  const tables = {
    streak_periods_qualified: 'app.streak_periods where qualified_at',
    xp_transactions_occurred: 'app.xp_transactions where occurred_at',
    user_achievements_unlocked: 'app.user_achievements where unlocked_at',
    challenge_participants_joined: 'app.challenge_participants where joined_at',
    challenge_participants_completed: 'app.challenge_participants where completed_at',
    currency_transactions_made: 'app.currency_transactions where created_at',
    leaderboard_entries_made: 'app.leaderboard_entries where created_at',
  }
  test('each table of a series has an index of blocks on its time', async () => {
    const rows = await project.sql(
      `select i.indexname, i.indexdef from pg_indexes i where i.indexname = any ($1) and i.indexdef like '%USING brin%'`,
      [Object.keys(tables)],
    )
    expect(rows.map(({ indexname }) => indexname).sort()).toEqual(Object.keys(tables).sort())
  })

  test('400 days are as many as there may be, and a week of them is read by blocks', async () => {
    const { data } = await admin.get('/xp/daily?from=2025-01-01&to=2026-02-04')
    expect(data.series.points).toHaveLength(400)
    const { id } = await project.user()
    await project.sql(
      `insert into app.xp_transactions (app_user_id, amount, total_after, source, source_id, requested, occurred_at, counted_at)
       select $1, 1, 0, 'many', i::text, 1, t, t
         from generate_series(1, 40000) i, lateral (select timestamptz '2020-01-01' + i * interval '30 minutes') d (t)`,
      [id],
    )
    await project.sql('vacuum analyze app.xp_transactions')
    await project.sql(`select brin_summarize_new_values('app.xp_transactions_occurred')`)
    const plan = await project.sql(
      `explain (costs off) select sum(r.amount) from app.xp_transactions r
        where r.occurred_at >= '2020-02-01' and r.occurred_at < '2020-02-08' and r.amount > 0`,
    )
    expect(JSON.stringify(plan)).toContain('xp_transactions_occurred')
    expect((await daysOf('/xp/daily?from=2020-02-01&to=2020-02-07'))['points']).toMatchObject({ '2020-02-03': 48 })
  })
})
