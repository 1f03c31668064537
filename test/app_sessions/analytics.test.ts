import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const now = new Date('2026-11-21T12:00:00.000Z')
beforeAll(() => harness.setTime(now))
afterAll(() => harness.setTime(null))

const hours = { '24h': 24, '7d': 168, '30d': 720, '90d': 2160 }

type Session = { user: number; started: number; seen: number; ended: number | null }

/** What the analytics must say, by looking at each session: times in milliseconds. */
const oracle = (sessions: readonly Session[], period: keyof typeof hours) => {
  const at = now.getTime()
  const within = (span: number) => sessions.filter(({ started }) => started > at - span * 3600_000 && started <= at)
  const chosen = within(hours[period])
  const durations = chosen
    .map(({ started, seen, ended }) => ({ started, end: ended ?? (seen <= at - 1800_000 ? seen : null) }))
    .flatMap(({ started, end }) => (end === null ? [] : [Math.floor((end - started) / 1000)]))
    .sort((a, b) => a - b)
  const middle = (durations.length - 1) / 2
  const sum = durations.reduce((total, seconds) => total + seconds, 0)
  return {
    period,
    dau: new Set(within(24).map(({ user }) => user)).size,
    period_active_users: new Set(chosen.map(({ user }) => user)).size,
    total_sessions: chosen.length,
    avg_duration_seconds: durations.length ? Math.round((sum / durations.length) * 1000) / 1000 : null,
    median_duration_seconds: durations.length
      ? ((durations[Math.floor(middle)] ?? 0) + (durations[Math.ceil(middle)] ?? 0)) / 2
      : null,
    is_estimate: false,
    margin: 0,
  }
}

/** A generator of our own, so that a failure can be looked at again. */
const random = (seed: number) => () => {
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed / 2147483648
}

const fill = async (of: typeof project, count: number, seed: number): Promise<Session[]> => {
  const next = random(seed)
  const { data } = await of.admin.post('/users/cohort', { count: 40 })
  const sessions = Array.from({ length: count }, (): Session => {
    const started = now.getTime() - Math.floor(next() ** 3 * 100 * 86_400_000)
    const seen = Math.min(now.getTime(), started + Math.floor(next() * 7200_000))
    return { user: Math.floor(next() * 40), started, seen, ended: next() < 0.6 ? seen : null }
  })
  await of.sql(
    `insert into app.app_sessions (app_user_id, started_at, last_seen_at, ended_at, end_reason)
     select s."user", s.started, s.seen, s.ended, case when s.ended is not null then 'client' end
       from json_to_recordset($1) as s ("user" uuid, started timestamptz, seen timestamptz, ended timestamptz)`,
    [
      JSON.stringify(
        sessions.map(({ user, started, seen, ended }) => ({
          user: data.user_ids[user],
          started: new Date(started),
          seen: new Date(seen),
          ended: ended === null ? null : new Date(ended),
        })),
      ),
    ],
  )
  return sessions
}

describe('the analytics of sessions', () => {
  test.each([1, 2, 3])('are what looking at each session says, for every period (%i)', async (seed) => {
    const own = await harness.project()
    const sessions = await fill(own, 300, seed)
    for (const period of Object.keys(hours) as (keyof typeof hours)[]) {
      expect(await own.admin.get(`/sessions?period=${period}`)).toMatchObject({
        status: 200,
        data: oracle(sessions, period),
      })
    }
    expect((await own.admin.get('/sessions')).data.period).toBe('7d')
    // what the worker writes down changes no number
    const before = await own.admin.get('/sessions?period=90d')
    await own.sql(
      `update app.app_sessions set ended_at = last_seen_at, end_reason = 'timeout'
                    where ended_at is null and last_seen_at <= $1::timestamptz - interval '30 minutes'`,
      [now],
    )
    expect((await own.admin.get('/sessions?period=90d')).data).toEqual(before.data)
  })

  test('dau is of the last 24 hours whatever the period, its first moment excluded', async () => {
    const own = await harness.project()
    const { data } = await own.admin.post('/users/cohort', { count: 3 })
    const insert = (index: number, at: string) =>
      own.sql(`insert into app.app_sessions (app_user_id, started_at, last_seen_at) values ($1, $2, $2)`, [
        data.user_ids[index],
        at,
      ])
    await insert(0, '2026-11-20T12:00:00.001Z')
    await insert(1, '2026-11-20T12:00:00.000Z')
    await insert(2, '2026-11-10T12:00:00.000Z')
    const of = async (period: string) => {
      const { dau, period_active_users } = (await own.admin.get(`/sessions?period=${period}`)).data
      return [dau, period_active_users]
    }
    expect([await of('24h'), await of('7d'), await of('30d'), await of('90d')]).toEqual([
      [1, 1],
      [1, 2],
      [1, 3],
      [1, 3],
    ])
  })

  test('of nothing are zeros and nulls', async () => {
    const own = await harness.project()
    const nothing = {
      period: '30d',
      dau: 0,
      period_active_users: 0,
      total_sessions: 0,
      avg_duration_seconds: null,
      median_duration_seconds: null,
      is_estimate: false,
      margin: 0,
    }
    expect((await own.admin.get('/sessions?period=30d')).data).toEqual(nothing)
    const user = await own.user()
    await user.post('/client/sessions/start')
    expect((await own.admin.get('/sessions?period=30d')).data).toEqual({
      ...nothing,
      dau: 1,
      period_active_users: 1,
      total_sessions: 1,
    })
  })

  test.each(['1d', '', '7D', 'x'.repeat(200)])('refuse the period %j', async (period) => {
    expectRefusal(await project.admin.get(`/sessions?period=${period}`), 400, 'INVALID_PERIOD')
  })
})

describe('the list of sessions', () => {
  test('is newest first, paged, with an exact total, and ends by silence', async () => {
    const own = await harness.project()
    const sessions = await fill(own, 60, 9)
    const { body } = await own.admin.get('/sessions/list')
    expect([body.total, body.offset, body.limit, body.data.length]).toEqual([60, 0, 50, 50])
    const times = body.data.map(({ started_at }: { started_at: string }) => Date.parse(started_at))
    expect(times).toEqual(
      sessions
        .map(({ started }) => started)
        .sort((a, b) => b - a)
        .slice(0, 50),
    )
    for (const row of body.data) {
      const { started, seen, ended } = sessions.find(
        (session) => session.started === Date.parse(row.started_at),
      ) as Session
      const end = ended ?? (seen <= now.getTime() - 1800_000 ? seen : null)
      expect(row).toEqual({
        id: expect.any(String),
        app_user_id: expect.any(String),
        started_at: new Date(started).toISOString(),
        ended_at: end === null ? null : new Date(end).toISOString(),
        duration_seconds: end === null ? null : Math.floor((end - started) / 1000),
      })
    }
    const page = await own.admin.get('/sessions/list?limit=20&offset=50')
    expect([page.data.length, page.body.total, page.body.offset]).toEqual([10, 60, 50])
  })

  test('refuses a bad page', async () => {
    for (const query of ['limit=0', 'offset=x'])
      expectRefusal(await project.admin.get(`/sessions/list?${query}`), 400, 'INVALID_INPUT')
  })

  test('and the analytics ask an index', async () => {
    const explain = async (sql: string) =>
      JSON.stringify(await project.as('app_admin', { enable_seqscan: 'off' }, `explain ${sql}`))
    expect(await explain('select * from app.app_sessions order by started_at desc, id desc limit 50')).toContain(
      'app_sessions_newest',
    )
    expect(await explain(`select * from app.app_sessions where started_at > '2026-11-20'`)).toContain(
      'app_sessions_newest',
    )
  })
})
