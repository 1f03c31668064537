import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startStreaks } from '#test/support/streaks.ts'

const { harness, project, define, someone, moveTo, event, see, statuses, emitted } = await startStreaks()

describe('qualifying', () => {
  test('201 the first time ever, 200 afterwards, and a second time in a period does nothing', async () => {
    const streak = await define()
    const user = await project.user()
    const first = await user.post(`${streak.client}/qualify`)
    expect(first).toMatchObject({ status: 201, data: { status: 'active', current_count: 1, longest_count: 1 } })
    expect(first.data).toMatchObject({ id: streak.id, streak_definition_id: streak.id, period: { qualified: true } })
    const again = await user.post(`/client/streaks/${streak.id}/qualify`)
    expect(again).toMatchObject({ status: 200, data: { current_count: 1 } })
    expect((await see(user, streak)).history).toMatchObject([{ status: 'qualified', count: 1 }])
    expect(await emitted(user.id, streak)).toEqual(['started'])
  })

  test('unknown ones, and those that only events may qualify, are refused', async () => {
    const user = await project.user()
    const missing = await user.post(`/client/streaks/${randomUUID()}/qualify`)
    expect(missing).toMatchObject({
      status: 404,
      error: { code: 'STREAK_NOT_FOUND', details: { hint: expect.any(String) } },
    })
    const streak = await define({ allow_client_qualify: false })
    expect(await user.post(`${streak.client}/qualify`)).toMatchObject({
      status: 403,
      error: { code: 'QUALIFY_NOT_ALLOWED' },
    })
    expect((await project.onBehalfOf(user.id).post(`${streak.client}/qualify`)).status).toBe(201)
  })

  test('of twenty at once exactly one is the first, and one period is there', async () => {
    const streak = await define()
    const user = await project.user()
    const answers = await Promise.all(Array.from({ length: 20 }, () => user.post(`${streak.client}/qualify`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201])
    expect(await project.sql('select count, source from app.streak_periods where app_user_id = $1', [user.id])).toEqual(
      [{ count: 1, source: 'event' }],
    )
    expect(await emitted(user.id, streak)).toEqual(['started'])
  })

  test('events qualify by name and filter, and min_count of them make a period', async () => {
    const streak = await define({ min_count: 2, event_filter: { column: 'cart.total', op: 'gte', value: 10 } })
    const user = await someone()
    const buy = (total: number) =>
      user.post('/client/events', { event_name: streak.event, properties: { cart: { total } } })
    expect((await buy(9)).data.effects).toEqual({})
    expect((await buy(10)).data.effects).toEqual({})
    expect((await see(user, streak)).status).toBe('none')
    expect((await buy(11)).data.effects.streaks).toEqual([
      { key: streak.key, status: 'active', current_count: 1, change: 'started' },
    ])
    expect((await buy(12)).data.effects).toEqual({})
    expect((await see(user, streak)).history).toMatchObject([{ count: 3 }])
  })

  test('a batch over many users moves each of them, in whatever order batches meet', async () => {
    const streak = await define()
    const users = await Promise.all(Array.from({ length: 12 }, () => project.user()))
    const batch = (ids: string[]) =>
      project.server.post('/client/events', {
        include_effects: true,
        events: ids.map((app_user_id) => ({ app_user_id, event_name: streak.event })),
      })
    const ids = users.map(({ id }) => id)
    const [one] = await Promise.all([batch(ids), batch([...ids].reverse()), batch(ids), batch([...ids].reverse())])
    expect(one.status).toBe(201)
    const rows = await project.sql('select current_count from app.user_streaks where streak_definition_id = $1', [
      streak.id,
    ])
    expect(rows).toEqual(ids.map(() => ({ current_count: 1 })))
    const counts = await project.sql('select distinct count from app.streak_periods where streak_definition_id = $1', [
      streak.id,
    ])
    expect(counts).toEqual([{ count: 4 }])
  })

  test('a streak may feed on the events of another, and a circle ends', async () => {
    const first = await define()
    const second = await define({ qualifying_event: 'svc.streak.started' })
    const user = await someone()
    await event(user, first)
    expect(await see(user, second)).toMatchObject({ current_count: 1 })
    expect(await emitted(user.id, second)).toEqual(['started'])
    await project.admin.delete(second.admin)
  })

  test('imported history counts, and makes no events', async () => {
    const streak = await define()
    const user = await someone()
    harness.setTime('2026-10-05T12:00:00Z')
    const events = [1, 2, 3, 4, 5].map((n) => ({ event_name: streak.event, occurred_at: `2026-10-0${n}T09:00:00Z` }))
    expect((await user.post('/client/events', { historical: true, events })).status).toBe(201)
    expect(await see(user, streak)).toMatchObject({ current_count: 5, status: 'active' })
    expect(await emitted(user.id, streak)).toEqual([])
  })

  test('administrators qualify any period but a future one', async () => {
    const streak = await define({ min_count: 3 })
    const user = await someone()
    const qualify = (body = {}) => project.admin.post(`${streak.admin}/users/${user.id}/qualify`, body)
    harness.setTime('2026-10-05T12:00:00Z')
    expect(await qualify()).toMatchObject({ status: 201, data: { current_count: 1 } })
    expect(await qualify({ period_key: '2026-10-04' })).toMatchObject({ status: 200, data: { current_count: 2 } })
    expect(await qualify({ period_key: '2026-10-04' })).toMatchObject({ status: 200, data: { current_count: 2 } })
    for (const period_key of ['2026-10-06', '2026-W40', '2026-02-30', 'yesterday']) {
      expect(await qualify({ period_key })).toMatchObject({
        status: 400,
        error: { code: 'VALIDATION_ERROR', details: { field: 'period_key' } },
      })
    }
    const weekly = await define({ period: 'week', week_starts_on: 7 })
    const week = (period_key: string) => project.admin.post(`${weekly.admin}/users/${user.id}/qualify`, { period_key })
    expect((await week('2026-W40')).status).toBe(201)
    expect((await week('2026-W54')).status).toBe(400)
    expect((await see(user, weekly)).history).toMatchObject([
      { period_key: '2026-W40', start: '2026-09-27T00:00:00.000Z' },
    ])
  })
})

describe('the clock', () => {
  test('active, at risk, frozen, broken, and active again', async () => {
    const streak = await define({ freezes_initial: 1 })
    const user = await someone('America/New_York')
    const at = async (time: string) => {
      harness.setTime(time)
      const { status, current_count, freezes_remaining } = await see(user, streak)
      return [status, current_count, freezes_remaining]
    }
    harness.setTime('2026-10-01T12:00:00Z')
    await event(user, streak)
    expect(await at('2026-10-02T21:00:00Z')).toEqual(['active', 1, 1])
    expect(await at('2026-10-02T23:00:00Z')).toEqual(['at_risk', 1, 1])
    expect(await at('2026-10-03T03:59:59Z')).toEqual(['at_risk', 1, 1])
    expect(await at('2026-10-03T04:00:00Z')).toEqual(['frozen', 1, 0])
    expect(await at('2026-10-04T03:59:59Z')).toEqual(['frozen', 1, 0])
    expect(await at('2026-10-04T04:00:00Z')).toEqual(['broken', 0, 0])
    expect(statuses(await see(user, streak))).toEqual({
      '2026-10-01': 'qualified',
      '2026-10-02': 'frozen',
      '2026-10-03': 'missed',
    })
    expect(await event(user, streak)).toMatchObject({ change: 'started', current_count: 1 })
    expect(await see(user, streak)).toMatchObject({ longest_count: 1, started_on: '2026-10-04', freezes_remaining: 0 })
    expect(await emitted(user.id, streak)).toEqual(['started', 'started'])
  })

  test('a late event repairs a broken streak, and gives a freeze back', async () => {
    const streak = await define({ freezes_initial: 1 })
    const user = await someone()
    for (const date of ['2026-10-01', '2026-10-02']) {
      harness.setTime(`${date}T12:00:00Z`)
      await event(user, streak)
    }
    harness.setTime('2026-10-05T12:00:00Z')
    expect((await see(user, streak)).status).toBe('broken')
    expect(await event(user, streak, '2026-10-03T20:00:00Z')).toEqual({
      ...{ key: streak.key, change: 'restored', status: 'frozen', current_count: 3 },
    })
    expect(await event(user, streak)).toMatchObject({ change: 'extended', current_count: 4 })
    expect(await event(user, streak, '2026-10-04T20:00:00Z')).toMatchObject({ change: 'extended', current_count: 5 })
    expect(await see(user, streak)).toMatchObject({ freezes_remaining: 1, started_on: '2026-10-01' })
    expect(await emitted(user.id, streak)).toEqual(['started', 'extended', 'restored', 'extended', 'extended'])
  })

  test('in its grace one event fills one period: the missed one first', async () => {
    const streak = await define({ grace_hours: 3 })
    const user = await someone()
    harness.setTime('2026-10-01T12:00:00Z')
    await event(user, streak)
    harness.setTime('2026-10-03T02:00:00Z')
    expect(await see(user, streak)).toMatchObject({
      status: 'at_risk',
      current_count: 1,
      period: { key: '2026-10-03' },
    })
    expect(await event(user, streak)).toMatchObject({ change: 'extended', current_count: 2 })
    expect(statuses(await see(user, streak))).toEqual({ '2026-10-01': 'qualified', '2026-10-02': 'qualified' })
    expect((await user.post(`${streak.client}/qualify`)).data).toMatchObject({
      current_count: 3,
      period: { qualified: true },
    })

    const late = await someone()
    harness.setTime('2026-10-01T12:00:00Z')
    await event(late, streak)
    harness.setTime('2026-10-03T03:00:00Z')
    expect(await event(late, streak)).toMatchObject({ change: 'started', current_count: 1 })
    // what an administrator qualified meanwhile does not take the missed one's chance
    const helped = await someone()
    harness.setTime('2026-10-01T12:00:00Z')
    await event(helped, streak)
    harness.setTime('2026-10-03T02:00:00Z')
    await project.admin.post(`${streak.admin}/users/${helped.id}/qualify`)
    expect((await helped.post(`${streak.client}/qualify`)).data.current_count).toBe(3)
    expect((await helped.post(`${streak.client}/qualify`)).data.current_count).toBe(3)
    expect((await see(helped, streak)).history.map(({ count }: { count: number }) => count)).toEqual([1, 0, 1])
    // nothing is filled before the streak began
    const fresh = await someone()
    harness.setTime('2026-10-03T01:00:00Z')
    await event(fresh, streak)
    expect(await see(fresh, streak)).toMatchObject({ started_on: '2026-10-03', current_count: 1 })
  })

  test('freezes are earned along the chain, up to the most, and outlive it', async () => {
    const streak = await define({ freeze_earn_every: 2, freezes_max: 2 })
    const user = await someone()
    const feedOn = async (...dates: number[]) => {
      for (const date of dates) {
        harness.setTime(new Date(Date.UTC(2026, 9, date, 12)))
        await event(user, streak)
      }
      return (await see(user, streak)).freezes_remaining
    }
    expect(await feedOn(1, 2, 3)).toBe(1)
    expect(await feedOn(4, 5, 6, 7)).toBe(2)
    expect(await feedOn(10)).toBe(1)
    expect(await see(user, streak)).toMatchObject({ current_count: 8 })
    expect(await feedOn(13)).toBe(0)
    expect(await see(user, streak)).toMatchObject({ current_count: 1, longest_count: 8 })
  })

  test('weeks and months end where their calendar says', async () => {
    const weekly = await define({ period: 'week' })
    const monthly = await define({ period: 'month', timezone_mode: 'fixed', timezone: 'Asia/Tokyo' })
    const user = await someone()
    harness.setTime('2026-12-27T23:00:00Z')
    expect((await see(user, weekly)).period).toMatchObject({ key: '2026-W52', end: '2026-12-28T00:00:00.000Z' })
    await event(user, weekly)
    await event(user, monthly)
    harness.setTime('2027-01-03T23:59:59Z')
    expect((await see(user, weekly)).period.key).toBe('2026-W53')
    expect(await event(user, weekly)).toMatchObject({ current_count: 2 })
    harness.setTime('2027-01-31T14:59:59Z')
    expect((await see(user, monthly)).period).toMatchObject({ key: '2027-01', deadline: '2027-01-31T15:00:00.000Z' })
    expect(await event(user, monthly)).toMatchObject({ current_count: 2 })
    harness.setTime('2027-01-31T15:00:00Z')
    expect(await see(user, monthly)).toMatchObject({ period: { key: '2027-02' }, status: 'active' })
    expect((await see(user, weekly)).status).toBe('broken')
  })

  test('days of 23 and 25 hours, a leap day, and a day that a calendar leaves out', async () => {
    const streak = await define()
    const chain = async (zone: string, ...times: string[]) => {
      harness.setTime(times[0]!)
      const user = await someone(zone)
      for (const time of times) {
        harness.setTime(time)
        await event(user, streak)
      }
      const { current_count, status, period } = await see(user, streak)
      return { current_count, status, hours: (Date.parse(period.end) - Date.parse(period.start)) / 3_600_000 }
    }
    const berlin = await chain('Europe/Berlin', '2026-10-23T22:30:00Z', '2026-10-25T22:59:00Z', '2026-10-24T22:30:00Z')
    expect(berlin).toEqual({ current_count: 2, status: 'active', hours: 25 })
    expect((await chain('Europe/Berlin', '2026-03-28T12:00:00Z', '2026-03-29T12:00:00Z')).hours).toBe(23)
    expect(await chain('UTC', '2028-02-28T12:00:00Z', '2028-02-29T12:00:00Z', '2028-03-01T12:00:00Z')).toMatchObject({
      current_count: 3,
    })
    // Samoa went from the 29th to the 31st of December 2011
    expect(await chain('Pacific/Apia', '2011-12-30T09:00:00Z', '2011-12-30T11:00:00Z')).toMatchObject({
      current_count: 2,
    })
  })

  test('travel neither breaks a streak nor counts a date twice', async () => {
    const streak = await define()
    harness.setTime('2026-10-01T20:00:00Z')
    const user = await someone('America/Los_Angeles')
    await event(user, streak)
    // the second in Los Angeles, not fed yet, when the user lands in Tokyo on the third
    harness.setTime('2026-10-03T04:00:00Z')
    await moveTo(user.id, 'Asia/Tokyo')
    expect(await see(user, streak)).toMatchObject({
      status: 'at_risk',
      period: { key: '2026-10-03', deadline: '2026-10-04T07:00:00.000Z' },
    })
    expect(await event(user, streak)).toMatchObject({ change: 'extended', current_count: 2 })
    expect(await event(user, streak)).toMatchObject({ change: 'extended', current_count: 3 })
    expect(await event(user, streak)).toBeUndefined()
    // and back: the third begins again, and does not count again
    harness.setTime('2026-10-03T15:00:00Z')
    await moveTo(user.id, 'America/Los_Angeles')
    expect(await see(user, streak)).toMatchObject({ status: 'active', period: { key: '2026-10-03', qualified: true } })
    expect(await event(user, streak)).toBeUndefined()
    expect(await see(user, streak)).toMatchObject({ current_count: 3 })
  })
})
