// Whom campaigns reach: audiences, quiet hours, caps and variants.
import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { campaignOf, crowd, deliveriesOf, pushed, shown } from '#test/support/push.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project({ environment: 'development' })
afterEach(() => harness.setTime(null))

const campaigns = '/push/campaigns'
const admin = project.admin
/** A project that is made at a time of its own, so that its sessions live then. */
const projectAt = (time: string) => {
  harness.setTime(time)
  return harness.project({ environment: 'development' })
}

test('segments and filters choose the audience, without banned users and those of the excluded segment', async () => {
  const [pro, free, banned, excluded] = [
    await pushed(project),
    await pushed(project),
    await pushed(project),
    await pushed(project),
  ]
  const tag = randomUUID()
  for (const user of [pro, banned, excluded])
    await user.patch('/client/users/me', { properties: { plan: { tier: tag } } })
  await project.sql('update app.users set is_banned = true where id = $1', [banned.id])
  const segment = async (fields: object) =>
    (await admin.post('/segments', { key: `s-${randomUUID()}`, name: 'Segment', ...fields })).data
  const out = await segment({ kind: 'static' })
  await admin.post(`/segments/${out.id}/members`, { user_ids: [excluded.id] })
  const dynamic = await segment({
    kind: 'dynamic',
    rules: { source: 'property', column: 'plan.tier', op: 'eq', value: tag },
  })
  for (const audience of [
    { segment_id: dynamic.id },
    {
      filter: {
        and: [{ column: 'plan.tier', op: 'eq', value: tag }, { not: { column: 'email', op: 'eq', value: 'x' } }],
      },
    },
    { filter: { column: 'plan.tier', op: 'eq', value: tag } },
  ]) {
    const { id } = await campaignOf(project, { audience, exclude_segment_id: out.id })
    const preview = await admin.post(`${campaigns}/${id}/preview`, { user_id: pro.id })
    expect(preview.data, preview.text).toMatchObject({
      audience_count: audience.filter && 'and' in audience.filter ? 0 : 1,
    })
    if (preview.data.audience_count === 0) continue
    expectRefusal(await admin.delete(`/segments/${out.id}`), 409, 'SEGMENT_IN_USE')
    expect((await admin.post(`${campaigns}/${id}/schedule`, {})).status).toBe(202)
    await project.drain()
    expect(await project.sql('select app_user_id from app.campaign_deliveries where campaign_id = $1', [id])).toEqual([
      { app_user_id: pro.id },
    ])
  }
  expect(free.id).not.toBe(pro.id)
})

describe('who is skipped', () => {
  test('quiet hours of the campaign and of the user, in the time zone of the user', async () => {
    const quiet = await projectAt('2026-12-05T23:30:00Z')
    const [night, own, day] = [await pushed(quiet), await pushed(quiet), await pushed(quiet)]
    await day.patch('/client/users/me', { timezone: 'Asia/Tokyo' })
    await own.put('/client/push/preferences', { quiet_hours: { start: '23:00', end: '06:00' } })
    const { id } = await campaignOf(quiet, {
      audience: { user_ids: [night.id, own.id, day.id] },
      quiet_hours: { start: '23:15', end: '07:00' },
      send_now: true,
    })
    const preview = await quiet.admin.post(`${campaigns}/${id}/preview`, {})
    expect(preview.data.skipped).toEqual({ no_token: 0, opted_out: 0, quiet: 2, capped: 0 })
    await quiet.drain()
    expect(await deliveriesOf(quiet, id)).toEqual([
      { status: 'sent', reason: null, code: null, n: 1 },
      { status: 'skipped', reason: 'quiet_hours', code: null, n: 2 },
    ])
  })

  test('caps count what was sent lately, and two campaigns at once never pass one together', async () => {
    const users = await Promise.all(Array.from({ length: 5 }, () => pushed(project)))
    const fields = {
      audience: { user_ids: users.map((user) => user.id) },
      frequency_cap: { max: 1, hours: 24 },
      send_now: true,
    }
    const [one, two] = await Promise.all([campaignOf(project, fields), campaignOf(project, fields)])
    await project.drain()
    const counts = [(await shown(project, one.id)).counts, (await shown(project, two.id)).counts]
    expect(counts.reduce((sum, { sent }) => sum + sent, 0)).toBe(5)
    expect(counts.reduce((sum, { skipped }) => sum + skipped, 0)).toBe(5)
    const third = await campaignOf(project, fields)
    await project.drain()
    expect(await deliveriesOf(project, third.id)).toEqual([{ status: 'skipped', reason: 'capped', code: null, n: 5 }])
    await project.sql(`update app.campaign_deliveries set sent_at = sent_at - interval '25 hours'`)
    const fourth = await campaignOf(project, fields)
    await project.drain()
    expect((await shown(project, fourth.id)).counts.sent).toBe(5)
  })

  test('variants share the users by weight and for good; the rest is held out', async () => {
    const many = await harness.project({ environment: 'development' })
    await crowd(many, 400)
    const { id } = await campaignOf(many, {
      send_now: true,
      goal_event: 'bought',
      variants: [
        { key: 'a', weight: 50, message: { title: 'A', body: 'a' } },
        { key: 'b', weight: 25, message: { title: 'B', body: 'b' } },
      ],
    })
    await many.drain()
    const rows = await many.sql(
      `select variant, status, reason, count(*)::int as n, min(attempts -> 0 -> 'payload' -> 'aps' -> 'alert' ->> 'title') as title
         from app.campaign_deliveries where campaign_id = $1 group by 1, 2, 3 order by 1`,
      [id],
    )
    expect(rows.map(({ n: _, ...row }) => row)).toEqual([
      { variant: 'a', status: 'sent', reason: null, title: 'A' },
      { variant: 'b', status: 'sent', reason: null, title: 'B' },
      { variant: null, status: 'skipped', reason: 'holdout', title: null },
    ])
    const [a, b, held] = rows.map(({ n }) => n)
    expect(a + b + held).toBe(400)
    expect(a).toBeGreaterThan(150)
    expect(b).toBeGreaterThan(60)
    expect(held).toBeGreaterThan(60)
    const [converted] = await many.sql(
      `select app_user_id as id from app.campaign_deliveries where variant = 'a' order by id limit 1`,
    )
    const event = { app_user_id: converted.id, event_name: 'bought' }
    await many.admin.post('/events', event)
    await many.admin.post('/events', event)
    const { data } = await many.admin.get(`${campaigns}/${id}/stats`)
    expect(data).toMatchObject({
      targeted: 400,
      sent: a + b,
      skipped: held,
      converted: 1,
      conversion_rate: Number((1 / (a + b)).toFixed(4)),
      variants: [
        { key: 'a', sent: a, converted: 1 },
        { key: 'b', sent: b, converted: 0 },
      ],
    })
    expect(data.hours).toHaveLength(1)
    expect(data.hours[0]).toMatchObject({ sent: a + b, converted: 1 })
    // 24 hours later the event has nothing to do with the message
    await many.sql(`update app.campaign_deliveries set sent_at = sent_at - interval '24 hours'`)
    const [other] = await many.sql(`select app_user_id as id from app.campaign_deliveries where variant = 'b' limit 1`)
    await many.admin.post('/events', { app_user_id: other.id, event_name: 'bought' })
    expect((await many.admin.get(`${campaigns}/${id}/stats`)).data.converted).toBe(1)
    expectRefusal(await many.admin.get(`${campaigns}/${randomUUID()}/stats`), 404, 'NOT_FOUND')
  })
})

test('a preview says whether a provider is connected', async () => {
  const own = await harness.project()
  const { id } = await campaignOf(own)
  const isConnected = async () => (await own.admin.post(`${campaigns}/${id}/preview`, {})).data.provider_connected
  expect(await isConnected()).toBe(false)
  expect((await own.admin.post('/integrations', { provider: 'log', config: {} })).status).toBeLessThan(300)
  expect(await isConnected()).toBe(true)
  await own.admin.patch('/integrations/log', { is_active: false })
  expect(await isConnected()).toBe(false)
})
