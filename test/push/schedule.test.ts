// When campaigns are sent: their states, throttles, and the local time of users.
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { campaignOf, crowd, deliveriesOf, message, pushed, shown } from '#test/support/push.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
afterEach(() => harness.setTime(null))

const campaigns = '/push/campaigns'
/** A project that is made at a time of its own, so that its sessions live then. */
const projectAt = (time: string) => {
  harness.setTime(time)
  return harness.project({ environment: 'development' })
}

describe('states', () => {
  test('a scheduled campaign waits for its time, and can be moved and cancelled', async () => {
    const timed = await projectAt('2026-12-01T10:00:00Z')
    await pushed(timed)
    const { id } = await campaignOf(timed, { send_at: '2026-12-01T10:10:00Z' })
    await timed.drain()
    expect(await shown(timed, id)).toMatchObject({ status: 'scheduled', scheduled_at: '2026-12-01T10:10:00.000Z' })
    const moved = await timed.admin.patch(`${campaigns}/${id}`, { send_at: '2026-12-01T10:20:00Z' })
    expect(moved.data.scheduled_at).toBe('2026-12-01T10:20:00.000Z')
    // without a time it would go out to everybody at once
    for (const fields of [{ send_at: null }, { schedule: { send_at: null } }])
      expectInvalid(await timed.admin.patch(`${campaigns}/${id}`, fields), 'send_at')
    harness.setTime('2026-12-01T10:15:00Z')
    await timed.drain()
    expect((await shown(timed, id)).status).toBe('scheduled')
    expect((await timed.admin.post(`${campaigns}/${id}/cancel`)).data.status).toBe('cancelled')
    harness.setTime('2026-12-01T10:30:00Z')
    await timed.drain()
    expect(await deliveriesOf(timed, id)).toEqual([])
    expectRefusal(await timed.admin.post(`${campaigns}/${id}/resume`), 409, 'CAMPAIGN_LOCKED')
  })

  test('the throttle holds, a pause stops sending, and what is cancelled is skipped', async () => {
    const throttled = await projectAt('2026-12-02T10:00:00Z')
    await crowd(throttled, 10)
    const { id } = await campaignOf(throttled, { send_now: true, throttle_per_minute: 60 })
    const count = async () => (await shown(throttled, id)).counts.sent
    await throttled.drain()
    expect(await count()).toBe(1)
    expectRefusal(await throttled.admin.delete(`${campaigns}/${id}`), 409, 'CAMPAIGN_LOCKED')
    harness.advance(1)
    await throttled.drain()
    expect(await count()).toBe(2)
    expect((await throttled.admin.post(`${campaigns}/${id}/pause`)).data.status).toBe('paused')
    harness.advance(1)
    await throttled.drain()
    expect(await count()).toBe(2)
    expect((await throttled.admin.post(`${campaigns}/${id}/resume`)).data.status).toBe('sending')
    await throttled.drain()
    expect(await count()).toBe(3)
    expect((await throttled.admin.post(`${campaigns}/${id}/cancel`)).data.status).toBe('cancelled')
    await throttled.drain()
    expect(await deliveriesOf(throttled, id)).toEqual([
      { status: 'sent', reason: null, code: null, n: 3 },
      { status: 'skipped', reason: 'cancelled', code: null, n: 7 },
    ])
    expect((await shown(throttled, id)).counts).toMatchObject({ targeted: 10, sent: 3, skipped: 7 })
    expect((await throttled.admin.delete(`${campaigns}/${id}`)).status).toBe(200)
    await throttled.drain()
    expect(await throttled.sql('select count(*)::int as n from app.campaign_deliveries')).toEqual([{ n: 0 }])
  })

  test('at most 100 campaigns in 24 hours', async () => {
    const busy = await harness.project({ environment: 'development' })
    await busy.sql(
      `insert into app.campaigns (channel, name, message, audience) select 'push', 'c', '{"title": "t", "body": "b"}', '{"all": true}' from generate_series(1, 98)`,
    )
    const body = { name: 'x', message, audience: { all: true } }
    const answers = await Promise.all(Array.from({ length: 6 }, () => busy.admin.post(campaigns, body)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409, 409])
    const refused = answers.find(({ status }) => status === 409)
    expectRefusal(refused!, 409, 'LIMIT_REACHED', { limit: 100 })
    const made = answers.find(({ status }) => status === 201)
    expectRefusal(await busy.admin.post(`${campaigns}/${made!.data.id}/duplicate`), 409, 'LIMIT_REACHED')
    await busy.sql(`update app.campaigns set created_at = created_at - interval '24 hours'`)
    expect((await busy.admin.post(campaigns, body)).status).toBe(201)
  })
})

test('user_local sends at the local time of each user, on the days that are named', async () => {
  const local = await projectAt('2026-12-03T10:00:00Z') // a Thursday
  const users = await Promise.all(['Europe/Berlin', 'America/New_York', null].map(() => pushed(local)))
  const zones = ['Europe/Berlin', 'America/New_York', 'UTC']
  for (const [index, user] of users.entries()) await user.patch('/client/users/me', { timezone: zones[index] })
  const { id } = await campaignOf(local, {
    audience: { user_ids: users.map((user) => user.id) },
    schedule: { mode: 'user_local', local_time: '09:30', weekdays: [5] },
    send_now: true,
  })
  await local.drain()
  const due = Object.fromEntries(
    (await local.sql('select app_user_id, due_at from app.campaign_deliveries where campaign_id = $1', [id])).map(
      ({ app_user_id, due_at }) => [app_user_id, (due_at as Date).toISOString()],
    ),
  )
  expect(users.map((user) => due[user.id])).toEqual([
    '2026-12-04T08:30:00.000Z',
    '2026-12-04T14:30:00.000Z',
    '2026-12-04T09:30:00.000Z',
  ])
  const sent = async () =>
    (await local.sql(`select count(*)::int as n from app.campaign_deliveries where status = 'sent'`))[0]?.n
  harness.setTime('2026-12-04T08:30:00Z')
  await local.drain()
  expect(await sent()).toBe(1)
  harness.setTime('2026-12-04T14:31:00Z')
  await local.drain()
  expect(await sent()).toBe(3)
  expect(await local.sql('select status from app.campaigns')).toEqual([{ status: 'sent' }])
})
