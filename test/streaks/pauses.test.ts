import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Client } from '#test/support/harness.ts'
import { type Defined, startStreaks } from '#test/support/streaks.ts'

const { harness, project, define, someone, event, see, statuses, emitted } = await startStreaks()

describe('pauses', () => {
  test('keep a chain without adding to it, and end early', async () => {
    const streak = await define({ freezes_initial: 1 })
    const user = await someone()
    harness.setTime('2026-10-01T12:00:00Z')
    await event(user, streak)
    const pause = { start: '2026-10-02', end: '2026-10-10' }
    expect(await user.put(`${streak.client}/pause`, pause)).toMatchObject({ status: 200, data: { pauses: [pause] } })
    expect((await user.put(`${streak.client}/pause`, pause)).status).toBe(200)
    harness.setTime('2026-10-05T12:00:00Z')
    expect(await see(user, streak)).toMatchObject({ status: 'frozen', current_count: 1, freezes_remaining: 1 })
    expect((await user.delete(`${streak.client}/pause`)).data).toEqual({ deleted: true })
    expect(await user.delete(`${streak.client}/pause`)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    harness.setTime('2026-10-06T12:00:00Z')
    expect(statuses(await see(user, streak))).toEqual({
      ...{ '2026-10-01': 'qualified', '2026-10-02': 'paused', '2026-10-03': 'paused', '2026-10-04': 'paused' },
      '2026-10-05': 'frozen',
    })
    expect(await event(user, streak)).toMatchObject({ change: 'extended', current_count: 2 })
    expect(statuses(await see(user, streak))).toMatchObject({ '2026-10-04': 'paused', '2026-10-05': 'frozen' })
  })

  test.each([
    [{ start: '2026-09-30', end: '2026-10-03' }, 'start'],
    [{ start: '2026-10-05', end: '2026-10-04' }, 'end'],
    [{ start: '2026-10-05', end: '2026-11-04' }, 'end'],
    [{ start: '2026-10-05' }, 'end'],
    [{ start: 'soon', end: '2026-10-05' }, 'start'],
    [{ start: '0000-01-01', end: '2026-10-05' }, 'start'],
    [{ start: '2028-10-05', end: '2028-10-05' }, 'start'],
  ])('%j is refused', async (pause, field) => {
    const streak = await define()
    const user = await someone()
    harness.setTime('2026-10-01T12:00:00Z')
    await event(user, streak)
    expect(await user.put(`${streak.client}/pause`, pause)).toMatchObject({
      status: 400,
      error: { code: 'VALIDATION_ERROR', details: { field } },
    })
    await project.admin.delete(streak.admin)
  })

  test('do not overlap, are 60 days a year at most, and need a streak', async () => {
    const streak = await define()
    const user = await someone()
    const pause = (start: string, end: string) => user.put(`${streak.client}/pause`, { start, end })
    harness.setTime('2026-10-01T12:00:00Z')
    expect((await pause('2026-10-02', '2026-10-03')).error?.code).toBe('STREAK_NOT_FOUND')
    await event(user, streak)
    expect((await pause('2026-10-01', '2026-10-30')).status).toBe(200)
    expect(await pause('2026-10-30', '2026-11-02')).toMatchObject({ status: 409, error: { code: 'PAUSE_OVERLAP' } })
    expect((await pause('2026-11-01', '2026-11-28')).status).toBe(200)
    expect((await pause('2026-12-01', '2026-12-03')).error?.code).toBe('VALIDATION_ERROR')
    expect((await pause('2026-12-01', '2026-12-02')).status).toBe(200)
    const admin = await project.admin.post(`${streak.admin}/users/${user.id}/pause`, {
      start: '2026-12-02',
      end: '2026-12-04',
    })
    expect(admin).toMatchObject({ status: 409, error: { code: 'PAUSE_OVERLAP' } })
    const backwards = { start: '2027-01-04', end: '2027-01-02' }
    expect(await project.admin.post(`${streak.admin}/users/${user.id}/pause`, backwards)).toMatchObject({
      status: 400,
      error: { code: 'VALIDATION_ERROR' },
    })
    const next = { start: '2027-01-02', end: '2027-01-04' }
    expect((await project.admin.post(`${streak.admin}/users/${user.id}/pause`, next)).data.pauses).toHaveLength(4)
  })

  test('a pause covers a week when it has most of its days', async () => {
    const streak = await define({ period: 'week' })
    const user = await someone()
    harness.setTime('2026-10-01T12:00:00Z')
    await event(user, streak)
    await user.put(`${streak.client}/pause`, { start: '2026-10-08', end: '2026-10-11' })
    harness.setTime('2026-10-12T12:00:00Z')
    expect((await see(user, streak)).status).toBe('frozen')
    await user.put(`${streak.client}/pause`, { start: '2026-10-16', end: '2026-10-18' })
    harness.setTime('2026-10-19T12:00:00Z')
    expect((await see(user, streak)).status).toBe('broken')
  })
})

describe('restoring and giving', () => {
  const broken = async (rules = {}) => {
    const streak = await define(rules)
    const user = await someone()
    for (const date of ['2026-10-01', '2026-10-02', '2026-10-03']) {
      harness.setTime(`${date}T12:00:00Z`)
      await event(user, streak)
    }
    harness.setTime('2026-10-06T12:00:00Z')
    const restore = (body = {}) => project.admin.post(`${streak.admin}/users/${user.id}/restore`, body)
    return { streak, user, restore }
  }

  test('a broken streak is whole again within its window, and restored periods count', async () => {
    const { streak, user, restore } = await broken()
    expect((await see(user, streak)).status).toBe('broken')
    expect(await restore()).toMatchObject({
      status: 200,
      data: { status: 'active', current_count: 5, started_on: '2026-10-01' },
    })
    expect(await restore()).toMatchObject({ status: 409, error: { code: 'NOTHING_TO_RESTORE' } })
    expect(await emitted(user.id, streak)).toEqual(['started', 'extended', 'extended', 'restored'])
    const late = await broken({ restore_window_hours: 24 })
    expect((await late.restore()).error?.code).toBe('NOTHING_TO_RESTORE')
  })

  test('also when a new chain has begun', async () => {
    const { streak, user, restore } = await broken()
    expect(await event(user, streak)).toMatchObject({ change: 'started', current_count: 1 })
    expect(await restore()).toMatchObject({ status: 200, data: { status: 'active', current_count: 6 } })
  })

  test('to a higher count, never to a lower one', async () => {
    const { streak, user, restore } = await broken({ milestones: [{ count: 10, reward: { freezes: [] } }] })
    expect(await restore({ count: 4 })).toMatchObject({
      status: 400,
      error: { code: 'VALIDATION_ERROR', details: { field: 'count' } },
    })
    expect(await restore({ count: 0 })).toMatchObject({ status: 400 })
    expect(await restore({ count: 120 })).toMatchObject({ status: 200, data: { current_count: 120, status: 'active' } })
    expect(await project.sql('select from app.reward_grants where app_user_id = $1', [user.id])).toEqual([])
    expect(await see(user, streak)).toMatchObject({ longest_count: 120 })
  })

  test('freezes are given up to the most, before the first period too', async () => {
    const streak = await define({ freezes_initial: 1, freezes_max: 3 })
    const user = await someone()
    const give = (amount: number, id = user.id) => project.admin.post(`${streak.admin}/users/${id}/freezes`, { amount })
    expect((await give(1)).data).toMatchObject({ status: 'none', freezes_remaining: 2 })
    expect((await give(50)).data.freezes_remaining).toBe(3)
    expect((await give(0)).error?.code).toBe('VALIDATION_ERROR')
    expect((await give(1, randomUUID())).error?.code).toBe('NOT_FOUND')
    await event(user, streak)
    expect((await see(user, streak)).freezes_remaining).toBe(3)
  })

  test('a milestone pays once per chain, also when the chain is folded anew', async () => {
    const other = await define({ freezes_max: 9 })
    const reward = {
      freezes: [
        { streak_key: other.key, amount: 1 },
        { streak_key: 'no-such-streak', amount: 1 },
      ],
    }
    const streak = await define({ milestones: [{ count: 2, reward }] })
    const user = await someone()
    const feedOn = async (...times: [now: number, occurred: number][]) => {
      for (const [now, occurred] of times) {
        harness.setTime(new Date(Date.UTC(2026, 9, now, 12)))
        await event(user, streak, new Date(Date.UTC(2026, 9, occurred, 11)).toISOString())
      }
      const grants = await project.sql('select outcome from app.reward_grants where app_user_id = $1', [user.id])
      return grants.length
    }
    expect(await feedOn([2, 2], [3, 3], [3, 3])).toBe(1)
    // the chain grows at its beginning, then at its end
    expect(await feedOn([3, 1], [4, 4])).toBe(1)
    // another chain
    expect(await feedOn([8, 8], [9, 9])).toBe(2)
    // both become one
    expect(await feedOn([9, 5], [9, 6], [9, 7])).toBe(2)
    expect(await see(user, streak)).toMatchObject({ current_count: 9 })
    expect(await see(user, other)).toMatchObject({ status: 'none', freezes_remaining: 2 })
    const [grant] = await project.sql('select outcome from app.reward_grants where app_user_id = $1', [user.id])
    expect(grant.outcome.freezes).toMatchObject({ given: true, freezes: [{ given: 0 }, { given: 1 }] })
  })
})

test('of two users who become one, the longer streak stays, whole', async () => {
  const [first, second] = [await define(), await define()]
  const [survivor, other] = [await someone(), await someone()]
  const feedOn = async (who: Client, streak: Defined, ...dates: number[]) => {
    for (const date of dates) {
      harness.setTime(new Date(Date.UTC(2026, 9, date, 12)))
      await event(who, streak)
    }
  }
  await feedOn(survivor, first, 1, 2, 3, 5)
  await feedOn(other, first, 4, 5)
  await feedOn(survivor, second, 3, 4, 5)
  await feedOn(other, second, 4, 5)
  const clock = `select set_config('app.clock', '2026-10-05T13:00:00Z', true)`
  const merged = await project.sql(
    `select internal.streaks_merge($1, $2) as moved from (${clock}) as clock where clock is not null`,
    [survivor.id, other.id],
  )
  expect(merged).toEqual([{ moved: 1 }])
  harness.setTime('2026-10-05T13:00:00Z')
  expect(await see(survivor, first)).toMatchObject({ current_count: 2, started_on: '2026-10-04' })
  expect(statuses(await see(survivor, first))).toEqual({ '2026-10-04': 'qualified', '2026-10-05': 'qualified' })
  expect(await see(survivor, second)).toMatchObject({ current_count: 3 })
})
