import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { day, startChallenges } from '#test/support/challenges.ts'
import { runOperationJob } from '#test/support/jobs.ts'
import { expectInvalid } from '#test/support/refusals.ts'

const { harness, project, admin, someone, emitted, me, ledger, from, define, send, see } = await startChallenges()

describe('definitions', () => {
  test('have defaults, are listed by status, changed, deleted', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const other = await harness.project()
    const body = {
      name: 'First',
      start_at: '2026-11-21T12:00:00.000Z',
      end_at: '2026-11-22T00:00:00.000Z',
      goal_type: 'event_count',
      goal_value: 3,
      event_name: 'e',
    }
    const { data } = await other.admin.post('/challenges', body)
    expect(data).toEqual({
      ...body,
      id: expect.any(String),
      description: null,
      reward_xp: 0,
      reward_achievement_id: null,
      reward: null,
      segment_id: null,
      recurrence: 'none',
      team_mode: 'none',
      parent_id: null,
      is_active: true,
      status: 'active',
      created_at: '2026-11-21T12:00:00.000Z',
      updated_at: '2026-11-21T12:00:00.000Z',
    })
    const upcoming = await define({ start_at: '2026-11-21T12:00:01Z' }, other)
    const ended = await define({ end_at: '2026-11-21T12:00:00Z' }, other)
    const off = await define(
      { is_active: false, start_at: '2026-11-25T00:00:00Z', end_at: '2026-11-26T00:00:00Z' },
      other,
    )
    const ids = async (query: string) =>
      (await other.admin.get(`/challenges${query}`)).data.map(({ id }: { id: string }) => id)
    expect(await ids('')).toEqual([off.id, upcoming.id, data.id, ended.id])
    expect(await ids('?status=active')).toEqual([data.id])
    expect(await ids('?status=upcoming')).toEqual([upcoming.id])
    expect(await ids('?status=ended')).toEqual([off.id, ended.id])
    expect((await other.admin.get('/challenges?limit=1&offset=1')).body).toMatchObject({
      total: 4,
      offset: 1,
      limit: 1,
      data: [{ id: upcoming.id }],
    })
    expect((await other.admin.get('/challenges?status=over')).error?.code).toBe('VALIDATION_ERROR')
    expect((await other.admin.get(`/challenges/${data.id}`)).data).toEqual(data)
    expect((await other.admin.patch(`/challenges/${data.id}`, { parent_id: randomUUID() })).data).toEqual(data)
    expect((await other.admin.patch(`/challenges/${data.id}`, { name: 'New', goal_value: 4 })).data).toMatchObject({
      name: 'New',
      goal_value: 4,
    })
    expect((await other.admin.delete(`/challenges/${data.id}`)).data).toEqual({ deleted: true })
    for (const [method, path] of [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['GET', '/participants'],
      ['POST', '/simulate'],
      ['POST', '/recompute'],
    ])
      for (const id of [data.id, 'nothing']) {
        const answer = await other.admin.request(
          method ?? '',
          `/challenges/${id}${path}`,
          method === 'GET' || method === 'DELETE' ? undefined : {},
        )
        const isByPart = method === 'POST' && id === 'nothing'
        expect([answer.status, answer.error?.code], `${method} ${path} ${id}`).toEqual(
          isByPart ? [400, 'INVALID_ID'] : [404, 'NOT_FOUND'],
        )
      }
  })

  test('refuse what cannot be', async () => {
    const good = {
      name: 'n',
      start_at: from(-day),
      end_at: from(day),
      goal_type: 'event_count',
      goal_value: 1,
      event_name: 'e',
    }
    const wrong: [object, string][] = [
      [{ name: '' }, 'name'],
      [{ start_at: 'soon' }, 'start_at'],
      [{ end_at: good.start_at }, 'end_at'],
      [{ goal_type: 'other' }, 'goal_type'],
      [{ goal_value: 0 }, 'goal_value'],
      [{ goal_value: 1.5 }, 'goal_value'],
      [{ event_name: ' e' }, 'event_name'],
      [{ event_name: '' }, 'event_name'],
      [{ event_name: 'e'.repeat(256) }, 'event_name'],
      [{ event_name: undefined }, 'event_name'],
      [{ event_name: null }, 'event_name'],
      [{ goal_type: 'xp_earned' }, 'event_name'],
      [{ reward_xp: -1 }, 'reward_xp'],
      [{ reward_achievement_id: randomUUID() }, 'reward_achievement_id'],
      [{ segment_id: randomUUID() }, 'segment_id'],
      [{ team_mode: 'both' }, 'team_mode'],
      [{ recurrence: 'hourly' }, 'recurrence'],
      [{ reward: 5 }, 'reward'],
    ]
    for (const [change, field] of wrong) expectInvalid(await admin.post('/challenges', { ...good, ...change }), field)
    expect((await admin.post('/challenges', '{' as never)).error?.code).toBe('VALIDATION_ERROR')
    const { id } = await define()
    expectInvalid(await admin.patch(`/challenges/${id}`, { end_at: from(-3 * day) }), 'end_at')
    expectInvalid(await admin.patch(`/challenges/${id}`, { name: null }), 'name')
    expectInvalid(await admin.patch(`/challenges/${id}`, { team_mode: null }), 'team_mode')
    expect((await admin.get(`/challenges/${id}/participants?limit=x`)).error?.code).toBe('VALIDATION_ERROR')
  })

  test('follow the rules of event names on every change', async () => {
    const count = await define({ event_name: 'one' })
    const patch = (id: string, changes: object) => admin.patch(`/challenges/${id}`, changes)
    expectInvalid(await patch(count.id, { event_name: null }), 'event_name')
    expect((await patch(count.id, { event_name: 'two' })).data.event_name).toBe('two')
    expectInvalid(await patch(count.id, { goal_type: 'xp_earned', event_name: 'two' }), 'event_name')
    expect((await patch(count.id, { goal_type: 'xp_earned' })).data).toMatchObject({
      goal_type: 'xp_earned',
      event_name: null,
    })
    expectInvalid(await patch(count.id, { event_name: 'two' }), 'event_name')
    expect((await patch(count.id, { event_name: null })).status).toBe(200)
    expectInvalid(await patch(count.id, { goal_type: 'event_count' }), 'event_name')
    expect((await patch(count.id, { goal_type: 'event_count', event_name: 'three' })).data.event_name).toBe('three')
    // a legacy one: never completes, may be edited, and lives once it has a name
    const legacy = await define({ goal_value: 1 })
    await project.sql('update app.challenges set event_name = null where id = $1', [legacy.id])
    const user = await someone()
    expect(await send(user, legacy.event_name)).toBeUndefined()
    expect((await user.post(`/client/challenges/${legacy.id}/join`)).data).toMatchObject({
      status: 'in_progress',
      progress: 0,
    })
    expect((await patch(legacy.id, { name: 'Old' })).data.event_name).toBeNull()
    expectInvalid(await patch(legacy.id, { event_name: null }), 'event_name')
    await patch(legacy.id, { event_name: legacy.event_name })
    harness.advance(1)
    await project.drain()
    expect((await see(user, legacy.id)).my).toMatchObject({ status: 'completed', progress: 1 })
    harness.setTime(null)
  })

  test('at most 100 active or to come', async () => {
    const other = await harness.project()
    await other.sql(`insert into app.challenges (name, start_at, end_at, goal_type, goal_value)
      select 'c', now(), now() + interval '1 day', 'xp_earned', 1 from generate_series(1, 99)`)
    const ended = await define({ end_at: from(-day) }, other)
    const body = { name: 'n', start_at: from(0), end_at: from(day), goal_type: 'xp_earned', goal_value: 1 }
    const answers = await Promise.all([1, 2, 3].map(() => other.admin.post('/challenges', body)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    expect(answers.find(({ status }) => status === 409)?.error?.code).toBe('LIMIT_REACHED')
    expect((await other.admin.patch(`/challenges/${ended.id}`, { end_at: from(day) })).error?.code).toBe(
      'LIMIT_REACHED',
    )
  })
})

describe('counting', () => {
  test('joins with the first event, counts by occurred_at in the window, completes once, and emits an event', async () => {
    const { data: badge } = await admin.post('/achievements', {
      key: 'badge',
      name: 'Badge',
      xp_reward: 5,
      criteria: { type: 'event_count', event_name: 'never', target_value: 9 },
    })
    const c = await define({ reward_xp: 100, reward_achievement_id: badge.id, reward: { xp: 7, gold: 1 } })
    const user = await someone()
    expect(await send(user, c.event_name, { occurred_at: from(-2 * day - 1000) })).toBeUndefined()
    expect((await see(user, c.id)).my).toBeNull()
    expect(await send(user, c.event_name, { occurred_at: from(-2 * day + 1000) })).toEqual([
      { id: c.id, name: c.name, progress: 1, goal_value: 3, completed: false },
    ])
    await send(user, c.event_name, { occurred_at: from(-day) })
    const last = await user.post('/client/events', { event_name: c.event_name })
    expect(last.data.effects).toMatchObject({
      challenges: [{ id: c.id, progress: 3, completed: true }],
      achievements: [{ key: 'badge' }],
      xp: { awarded: 112, total: 112 },
    })
    expect(await send(user, c.event_name)).toMatchObject([{ progress: 4, completed: true }])
    expect((await see(user, c.id)).my).toMatchObject({ status: 'completed', progress: 4, ratio: 1 })
    expect((await ledger(user.id)).map(({ amount, source }) => [amount, source])).toEqual([
      [107, 'challenge'],
      [5, 'achievement'],
    ])
    const emittedEvents = await emitted(user.id, 'svc.challenge.%')
    expect(emittedEvents.map(({ event_name, properties }) => [event_name, properties.challenge_id])).toEqual([
      ['svc.challenge.joined', c.id],
      ['svc.challenge.completed', c.id],
    ])
  })

  test('is one completion, paid once, when fifty posts each reach', async () => {
    const c = await define({ goal_value: 1, reward_xp: 10 })
    const user = await someone()
    await Promise.all(Array.from({ length: 50 }, () => send(user, c.event_name)))
    expect((await me(user)).total).toBe(10)
    expect((await see(user, c.id)).my).toMatchObject({ status: 'completed', progress: 50 })
    expect(await emitted(user.id, 'svc.challenge.completed')).toHaveLength(1)
  })

  test('takes what comes late for a day after the end, and no later; then it is expired', async () => {
    const began = Date.now() - 3 * day
    const at = (hours: number, seconds = 0) => new Date(began + hours * 3_600_000 + seconds * 1000).toISOString()
    harness.setTime(at(0))
    const c = await define({ start_at: at(-30), end_at: at(6), goal_value: 3, reward_xp: 1 })
    const user = await someone()
    const slow = await someone()
    await send(user, c.event_name)
    await send(slow, c.event_name)
    harness.setTime(at(6))
    expect(await send(user, c.event_name)).toBeUndefined()
    expect((await see(user, c.id)).my).toMatchObject({ status: 'expired', progress: 1 })
    expect((await user.post(`/client/challenges/${c.id}/join`)).status).toBe(200)
    const late = await (await someone()).post(`/client/challenges/${c.id}/join`)
    expect([late.status, late.error?.code]).toEqual([409, 'CHALLENGE_NOT_ACTIVE'])
    harness.setTime(at(30, -1))
    await send(user, c.event_name, { occurred_at: at(-30) })
    expect(await send(user, c.event_name, { occurred_at: at(6, -1) })).toMatchObject([{ progress: 3, completed: true }])
    harness.setTime(at(30))
    for (let n = 0; n < 3; n += 1) expect(await send(slow, c.event_name, { occurred_at: at(1) })).toBeUndefined()
    // a recount does not let in what came too late either
    harness.setTime(null)
    const started = await admin.post(`/challenges/${c.id}/recompute`)
    expect([started.status, started.data.status]).toEqual([202, 'queued'])
    const ended = await runOperationJob(harness, project, 'challenges__recompute', started.data.operation_id)
    expect(ended).toMatchObject({ type: 'challenges.recompute', status: 'succeeded', result: { changed: 0 } })
    expect(ended.progress.done).toBe(ended.progress.total)
    expect((await see(slow, c.id)).my).toMatchObject({ status: 'expired', progress: 1 })
  })

  test('agrees with a count by hand over windows whose edges lie anywhere', { timeout: 180_000 }, async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const user = await someone()
    const base = Date.parse('2026-11-17T00:00:00Z')
    const times = Array.from({ length: 60 }, (_, n) => base + ((n * 7_919_333) % (4 * day)))
    await project.server.post('/client/events', {
      events: times.map((at) => ({
        app_user_id: user.id,
        event_name: 'spread',
        occurred_at: new Date(at).toISOString(),
      })),
    })
    for (let n = 0; n < 12; n += 1) {
      const start = base + ((n * 31_337_000) % (3 * day))
      const length = [3_600_000, 3.4 * day, 2 * day + n * 1_000_000][n % 3] ?? 0
      // whole days with edges, and within one day; all events came at noon of the 21st, up to a day after the end
      const end = n % 3 === 0 ? base + 3.7 * day + n * 1_000_000 : start + length
      const from = n % 3 === 0 ? end - length : start
      const c = await define({
        event_name: 'spread',
        start_at: new Date(from).toISOString(),
        end_at: new Date(end).toISOString(),
        goal_value: 1000,
      })
      await project.drain()
      const isInTime = end + day > Date.parse('2026-11-21T12:00:00Z')
      const expected = isInTime ? times.filter((at) => at >= from && at < end).length : 0
      expect((await see(user, c.id)).my?.progress ?? 0, `${n}`).toBe(expected)
      await admin.delete(`/challenges/${c.id}`)
    }
  })

  test('sums the XP of the window, and finds the longest chain within it', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const window = { start_at: '2026-11-19T00:00:00Z', end_at: '2026-11-24T00:00:00Z' }
    const xp = await define({ goal_type: 'xp_earned', goal_value: 30, ...window })
    const streak = await define({ goal_type: 'streak_maintained', goal_value: 3, ...window })
    await admin.post('/xp/rules', { key: 'run', name: 'Run', event_name: 'ran', amount: 10 })
    await admin.post('/streaks', { key: 'runs', name: 'Runs', qualifying_event: 'ran' })
    const user = await someone()
    const ran = (date: string) => send(user, 'ran', { occurred_at: `${date}T12:00:00Z` })
    // before the window: neither counts
    await ran('2026-11-18')
    const first = await ran('2026-11-19')
    expect(first).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ id: xp.id, progress: 10 }),
        expect.objectContaining({ id: streak.id, progress: 1 }),
      ]),
    )
    await ran('2026-11-20')
    const third = await ran('2026-11-21')
    expect(third).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ id: xp.id, progress: 30, completed: true }),
        expect.objectContaining({ id: streak.id, progress: 3, completed: true }),
      ]),
    )
  })

  test('of XP counts what is taken at once, too', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const { id } = await define({ goal_type: 'xp_earned', goal_value: 100, start_at: from(-day), end_at: from(day) })
    const user = await someone()
    const by = async (amount: number) => {
      expect((await admin.post('/xp/grant', { app_user_id: user.id, amount })).status).toBe(201)
      return (await see(user, id)).my.progress
    }
    expect([await by(90), await by(-50), await by(10)]).toEqual([90, 40, 50])
  })

  test('gives as much XP as one reward may hold, where both fields come to more', async () => {
    const { event_name } = await define({ goal_value: 1, reward_xp: 1_000_000_000, reward: { xp: 1 } })
    const user = await someone()
    await send(user, event_name)
    expect((await me(user)).total).toBe(1_000_000_000)
  })

  test('counts what was done before it was defined, and anew when it changes', async () => {
    const user = await someone()
    for (let n = 0; n < 3; n += 1) await send(user, 'early')
    const c = await define({ event_name: 'late', goal_value: 3, reward_xp: 10 })
    await admin.patch(`/challenges/${c.id}`, { event_name: 'early' })
    harness.advance(1)
    await project.drain()
    expect((await see(user, c.id)).my).toMatchObject({ status: 'completed', progress: 3 })
    expect((await emitted(user.id, 'svc.challenge.completed'))[0]?.is_historical).toBe(true)
    await admin.patch(`/challenges/${c.id}`, { event_name: 'late' })
    harness.advance(1)
    await project.drain()
    // completed is final, and pays no second time
    expect((await see(user, c.id)).my).toMatchObject({ status: 'completed', progress: 0 })
    await admin.patch(`/challenges/${c.id}`, { event_name: 'early' })
    harness.advance(1)
    await project.drain()
    expect((await me(user)).total).toBe(10)
    harness.setTime(null)
  })
})
