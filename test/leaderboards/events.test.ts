import { describe, expect, test } from 'vitest'
import { startLeaderboards } from '#test/support/leaderboards.ts'

const { harness, project, board, someone, people, submit, send, show, ranks, scores, eventsOf, checkCounts } =
  await startLeaderboards()
const { admin } = project
const event = (event_name: string, more: object = {}) => ({ type: 'event', event_name, ...more })

describe('scores from events', () => {
  test('the value of a property, filtered, within the range; the effect says score, rank and rank before', async () => {
    const { key } = await board({
      source: event('played', {
        value_property: 'game.points',
        filter: { column: 'mode', op: 'eq', value: 'ranked' },
      }),
      max_score: 1000,
    })
    const [a, b] = (await people(2)) as [any, any]
    const play = (who: any, points: unknown, mode = 'ranked') =>
      send(who, 'played', { properties: { mode, game: { points } } })
    expect(await play(a, 50)).toEqual([{ key, score: 50, rank: 1, previous_rank: null }])
    expect(await play(b, 20.25)).toEqual([{ key, score: 20.25, rank: 2, previous_rank: null }])
    expect(await play(b, 70)).toEqual([{ key, score: 70, rank: 1, previous_rank: 2 }])
    // nothing moved, no number, too much, of another mode: no entry in the effects
    for (const [points, mode] of [[10], ['99'], [null], [1001], [1e300], [80, 'casual']] as [unknown, string?][])
      expect(await play(b, points, mode)).toBeUndefined()
    expect(await scores(a, key)).toEqual([
      [b.id, 70],
      [a.id, 50],
    ])
    expect((await show(b, key)).me.submissions).toBe(3)
    expect(await send(a, 'other')).toBeUndefined()
  })

  test('a batch of several users and events is taken once each, by every scoring', async () => {
    const keys: Record<string, string> = {}
    for (const scoring of ['best', 'sum', 'last', 'count'])
      keys[scoring] = (await board({ source: event('lap', { value_property: 's' }), scoring })).key
    const [a, b] = (await people(2)) as [any, any]
    const at = (n: number) => new Date(Date.now() - 60_000 + n * 1000).toISOString()
    const events = [
      [a, 5, 3],
      [b, 4, 1],
      [a, 9, 1],
      [b, 6, 2],
      [a, 7, 2],
    ].map(([who, s, n]: any[]) => ({
      event_name: 'lap',
      app_user_id: who.id,
      properties: { s },
      occurred_at: at(n),
      id: undefined,
    }))
    const answer = await project.server.post('/client/events', { events, include_effects: true })
    expect(answer.status, answer.text).toBe(201)
    expect(answer.data.effects.leaderboards).toHaveLength(8)
    // of a server's events the last is by occurred_at, in whatever order they come
    expect(await scores(a, keys['best'] as string)).toEqual([
      [a.id, 9],
      [b.id, 6],
    ])
    expect(await scores(a, keys['sum'] as string)).toEqual([
      [a.id, 21],
      [b.id, 10],
    ])
    expect(await scores(a, keys['last'] as string)).toEqual([
      [b.id, 6],
      [a.id, 5],
    ])
    expect(await scores(a, keys['count'] as string)).toEqual([
      [a.id, 3],
      [b.id, 2],
    ])
    await checkCounts()
  })

  test('an event that came before, history, and one outside the window of the board move nothing', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const { key } = await board({
      source: event('walked'),
      scoring: 'sum',
      starts_at: '2026-11-21T11:00:00Z',
      ends_at: '2026-11-21T12:30:00Z',
    })
    const who = await someone()
    const id = '0190a1b2-0000-7000-8000-00000000abcd'
    await send(who, 'walked', { id })
    await who.post('/client/events', { event_name: 'walked', id })
    await send(who, 'walked', { occurred_at: '2026-11-21T10:59:59Z' })
    await who.post('/client/events', { events: [{ event_name: 'walked' }], historical: true })
    expect((await show(who, key)).me).toMatchObject({ score: 1, submissions: 1 })
    harness.setTime('2026-11-21T12:31:00Z')
    await send(who, 'walked')
    expect((await show(who, key)).me.score).toBe(1)
  })

  test('who was first goes by the time of receipt for devices, and by occurred_at for servers', async () => {
    const { key } = await board({ source: event('solved', { value_property: 's' }) })
    const [a, b] = [await project.user(), await project.user()]
    harness.setTime('2026-11-21T12:00:00Z')
    await send(a, 'solved', { properties: { s: 5 } })
    harness.setTime('2026-11-21T12:00:10Z')
    await send(b, 'solved', { properties: { s: 5 }, occurred_at: '2026-11-21T11:00:00Z' })
    expect(await ranks(a, key)).toEqual([
      [a.id, 1],
      [b.id, 2],
    ])
    await send(project.onBehalfOf(b.id), 'solved', { properties: { s: 5 }, occurred_at: '2026-11-21T11:00:00Z' })
    expect(await ranks(a, key)).toEqual([
      [b.id, 1],
      [a.id, 2],
    ])
  })

  test('members of a segment only', async () => {
    const segment = (await admin.post('/segments', { key: 'team', name: 'Team', kind: 'static' })).data
    const { id } = await board({ source: event('scored'), segment_id: segment.id })
    const [a, b] = (await people(2)) as [any, any]
    await project.sql('insert into app.segment_members (segment_id, app_user_id) values ($1, $2)', [segment.id, a.id])
    expect(await send(a, 'scored')).toHaveLength(1)
    expect(await send(b, 'scored')).toBeUndefined()
    expect((await admin.get(`/leaderboards/${id}/entries`)).body.total).toBe(1)
  })
})

describe('other sources', () => {
  test('XP: totals for the best, amounts for sums, also what was taken', async () => {
    const total = await board({ source: { type: 'xp' } })
    const earned = await board({ source: { type: 'xp' }, scoring: 'sum', period: 'weekly' })
    await admin.post('/xp/rules', { key: 'r', name: 'R', event_name: 'learned', amount: 10 })
    const who = await someone()
    expect(await send(who, 'learned')).toEqual(
      expect.arrayContaining([
        { key: total.key, score: 10, rank: 1, previous_rank: null },
        { key: earned.key, score: 10, rank: 1, previous_rank: null },
      ]),
    )
    await admin.post('/xp/grant', { app_user_id: who.id, amount: 90 })
    await admin.post('/xp/grant', { app_user_id: who.id, amount: -40 })
    expect((await show(who, total.key)).me.score).toBe(100)
    expect((await show(who, earned.key)).me.score).toBe(60)
    await who.post('/client/events', { events: [{ event_name: 'learned' }], historical: true })
    expect((await show(who, earned.key)).me.score).toBe(60)
  })

  test('a currency: the balance for the last, what was credited for sums', async () => {
    await admin.post('/currencies', { code: 'GOLD', name: 'Gold' })
    const source = { type: 'currency', currency_code: 'GOLD' }
    const balance = await board({ source, scoring: 'last' })
    const earned = await board({ source, scoring: 'sum' })
    const who = await someone()
    const credit = await who.post('/client/currencies/GOLD/credit', { amount: 100, reason: 'gift' })
    expect(credit.status, credit.text).toBe(201)
    harness.advance(1)
    expect((await who.post('/client/currencies/GOLD/spend', { amount: 30, reason: 'hat' })).status).toBe(201)
    expect((await show(who, balance.key)).me.score).toBe(70)
    expect((await show(who, earned.key)).me.score).toBe(100)
    const other = await admin.patch(`/leaderboards/${earned.key}`, { source: { ...source, currency_code: 'NOPE' } })
    expect([other.status, other.error?.details.field], other.text).toEqual([400, 'source'])
    // nor does a board whose currency is gone stand in its own way
    await admin.post('/currencies', { code: 'GONE', name: 'Gone' })
    const left = await board({ source: { type: 'currency', currency_code: 'GONE' } })
    expect((await admin.delete('/currencies/GONE')).status).toBe(200)
    expect((await admin.patch(`/leaderboards/${left.key}`, { name: 'Left' })).status).toBe(200)
  })

  test('a streak: its length', async () => {
    await admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'opened' })
    await admin.post('/streaks', { key: 'other', name: 'Other', qualifying_event: 'opened' })
    const { key } = await board({ source: { type: 'streak', streak_key: 'daily' } })
    const who = await someone()
    for (const day of ['19', '20', '21']) {
      harness.setTime(`2026-11-${day}T12:00:00Z`)
      await send(who, 'opened')
    }
    expect((await show(who, key)).me).toMatchObject({ score: 3, submissions: 3 })
  })
})

describe('svc.leaderboard.rank_changed', () => {
  test('is emitted for users who enter the top 10 and, by the job, for those who leave it; for nobody else', async () => {
    const { id, key } = await board()
    const all = (await people(12)) as any[]
    for (const [n, who] of all.entries()) await submit(who, key, 100 - n)
    await project.drain()
    expect(await eventsOf(all[0].id)).toEqual([
      { leaderboard_id: id, key, run_key: 'all', score: 100, rank: 1, previous_rank: null, reason: 'entered_top_10' },
    ])
    expect(await eventsOf(all[9].id)).toHaveLength(1)
    expect(await eventsOf(all[10].id)).toEqual([])
    await submit(all[11], key, 200)
    await submit(all[1], key, 150)
    await project.drain()
    expect((await eventsOf(all[11].id)).at(-1)).toMatchObject({ reason: 'entered_top_10', rank: 1, previous_rank: 12 })
    expect((await eventsOf(all[9].id)).at(-1)).toMatchObject({
      reason: 'left_top_10',
      rank: 11,
      by_user_id: all[11].id,
    })
    // moves within the top 10 are no news
    for (const n of [1, 5, 8]) expect(await eventsOf(all[n].id)).toHaveLength(1)
    // one who falls out, and one who takes the place
    await admin.put(`/leaderboards/${key}/entries/${all[11].id}`, { score: 1 })
    await project.drain()
    expect((await eventsOf(all[11].id)).at(-1)).toMatchObject({ reason: 'left_top_10', rank: 12, previous_rank: 1 })
    expect((await eventsOf(all[9].id)).at(-1)).toMatchObject({ reason: 'entered_top_10', rank: 10 })
  })

  test('is emitted for friends who were passed, if that still holds when the job runs', async () => {
    const { key } = await board()
    const all = (await people(20)) as any[]
    for (const [n, who] of all.entries()) await submit(who, key, 1000 - n)
    const me = all[19]
    for (const friend of [all[12], all[15], all[2]]) {
      const [low, high] = [me.id, friend.id].sort()
      await project.sql(
        `insert into app.friendships (user_a, user_b, status, requested_by, responded_at) values ($1, $2, 'accepted', $1, now())`,
        [low, high],
      )
    }
    await submit(me, key, 990)
    // passed back before the job runs
    await submit(all[15], key, 991)
    await project.drain()
    expect(await eventsOf(all[12].id)).toEqual([
      expect.objectContaining({ reason: 'passed_by_friend', by_user_id: me.id, rank: 15 }),
    ])
    expect(await eventsOf(all[15].id)).toEqual([])
    expect((await eventsOf(all[2].id)).filter(({ reason }) => reason === 'passed_by_friend')).toEqual([])
    expect(await eventsOf(all[13].id)).toEqual([])
    expect(await eventsOf(me.id)).toEqual([
      expect.objectContaining({ reason: 'passed_by_friend', by_user_id: all[15].id }),
    ])
  })
})

test('a hundred events at once of many users leave ranks unique and gapless', { timeout: 180_000 }, async () => {
  const { key } = await board({ source: event('raced', { value_property: 's' }), scoring: 'sum' })
  const all = (await people(20)) as any[]
  await Promise.all(
    Array.from({ length: 100 }, (_, n) => send(all[n % 20], 'raced', { properties: { s: (n * 7) % 13 } })),
  )
  const page = await show(all[0], key)
  expect(page.data.map((entry: any) => entry.rank)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
  expect(page.data.reduce((sum: number, entry: any) => sum + entry.score, 0)).toBe(
    Array.from({ length: 100 }, (_, n) => (n * 7) % 13).reduce((a, b) => a + b),
  )
  await checkCounts()
})

test('ranks in effects are right far from the best, near them, and across', async () => {
  const { key, id } = await board({ source: event('climbed', { value_property: 's' }), scoring: 'sum' })
  const me = await someone()
  const climb = (s: number) => send(me, 'climbed', { properties: { s } })
  expect(await climb(1)).toEqual([{ key, score: 1, rank: 1, previous_rank: null }])
  await project.sql(
    `with others as (
       insert into app.users (display_name) select 'Climber' from generate_series(1, 200) returning id
     )
     insert into app.leaderboard_entries (run_id, app_user_id, score, place, reached_at, submissions, is_hidden, created_at)
     select r.id, o.id, 10 * o.n, -10 * o.n, r.created_at, 1, false, r.created_at
       from app.leaderboard_runs r
      cross join (select others.id, row_number() over () as n from others) o
      where r.leaderboard_id = $1`,
    [id],
  )
  expect(await climb(500)).toEqual([{ key, score: 501, rank: 151, previous_rank: 201 }])
  expect(await climb(600)).toEqual([{ key, score: 1101, rank: 91, previous_rank: 151 }])
  expect(await climb(400)).toEqual([{ key, score: 1501, rank: 51, previous_rank: 91 }])
  // without a move there is no effect
  expect(await climb(0)).toBeUndefined()
  expect(await climb(480)).toEqual([{ key, score: 1981, rank: 3, previous_rank: 51 }])
  expect(await climb(-1000)).toEqual([{ key, score: 981, rank: 103, previous_rank: 3 }])
  await checkCounts()
})
