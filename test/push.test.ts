import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { campaignOf, crowd, deliveriesOf, device, message, pushed, shown } from '#test/support/push.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

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
const attemptsOf = async (id: string) =>
  (await project.sql('select attempts from app.push_deliveries where id = $1', [id]))[0]?.attempts

test('a draft has defaults, is read, changed, listed, copied and deleted', async () => {
  const made = await admin.post(campaigns, { name: 'Draft', message, audience: { all: true } })
  expect(made.status, made.text).toBe(201)
  expect(made.data).toMatchObject({
    status: 'draft',
    workflow_id: null,
    message: { ...message, ttl_seconds: 86400, priority: 'high' },
    audience: { all: true },
    schedule: { send_at: null, mode: 'absolute', local_time: null, weekdays: null },
    variants: [],
    inbox: true,
    counts: { targeted: 0, sent: 0, failed: 0, skipped: 0, opened: 0, converted: 0 },
    scheduled_at: null,
  })
  const path = `${campaigns}/${made.data.id}`
  expect((await admin.get(path)).data).toEqual(made.data)
  expect((await admin.patch(path, {})).data).toEqual(made.data)
  const changed = await admin.patch(path, {
    name: 'Changed',
    schedule: { mode: 'user_local', local_time: '18:30', weekdays: [5, 1, 5] },
    quiet_hours: { start: '22:00', end: '07:00' },
    frequency_cap: { max: 2, hours: 24 },
    throttle_per_minute: 60,
  })
  expect(changed.data, changed.text).toMatchObject({
    name: 'Changed',
    schedule: { mode: 'user_local', local_time: '18:30', weekdays: [1, 5] },
    quiet_hours: { start: '22:00', end: '07:00' },
    frequency_cap: { max: 2, hours: 24 },
    throttle_per_minute: 60,
  })
  const copy = await admin.post(`${path}/duplicate`)
  expect([copy.status, copy.data?.name, copy.data?.status, copy.data?.schedule], copy.text).toEqual([
    201,
    'Copy of Changed',
    'draft',
    changed.data.schedule,
  ])
  const listed = await admin.get(`${campaigns}?status=draft&limit=2`)
  expect(listed.data.map(({ id }: { id: string }) => id)).toEqual([copy.data.id, made.data.id])
  expect((await admin.delete(path)).data).toEqual({ deleted: true })
  expectRefusal(await admin.get(path), 404, 'NOT_FOUND')
  await project.drain()
  expect(await project.sql('select id from app.push_campaigns where id = $1', [made.data.id])).toEqual([])
})

test('fields are refused by name', async () => {
  const post = (fields: object) => admin.post(campaigns, { name: 'x', message, audience: { all: true }, ...fields })
  for (const [field, fields] of [
    ['name', { name: '' }],
    ['name', { name: 'x'.repeat(201) }],
    ['message.title', { message: { body: 'x' } }],
    ['message.body', { message: { title: 'x', body: 'x'.repeat(2001) } }],
    ['message.data', { message: { ...message, data: { a: 'x'.repeat(3100) } } }],
    ['message.image_url', { message: { ...message, image_url: 'http://example.com/a.png' } }],
    ['message.badge', { message: { ...message, badge: 'decrement' } }],
    ['message.ttl_seconds', { message: { ...message, ttl_seconds: 2_419_201 } }],
    ['message.localized', { message: { ...message, localized: [] } }],
    ['audience', { audience: {} }],
    ['audience', { audience: { all: true, user_ids: [randomUUID()] } }],
    ['audience', { audience: { user_ids: Array(10_001).fill(randomUUID()) } }],
    ['audience.segment_id', { audience: { segment_id: randomUUID() } }],
    ['audience.filter', { audience: { filter: { column: 'plan', op: 'no', value: 1 } } }],
    ['audience.filter.op', { audience: { filter: { column: 'created_at', op: 'like', value: 'x' } } }],
    ['exclude_segment_id', { exclude_segment_id: randomUUID() }],
    ['schedule.local_time', { schedule: { mode: 'user_local' } }],
    ['schedule.local_time', { schedule: { local_time: '24:00' } }],
    ['schedule.weekdays.0', { schedule: { weekdays: [8] } }],
    ['throttle_per_minute', { throttle_per_minute: 0 }],
    ['quiet_hours.end', { quiet_hours: { start: '22:00' } }],
    ['frequency_cap.max', { frequency_cap: { max: 0, hours: 1 } }],
    ['variants', { variants: Array(11).fill({ key: 'a', weight: 1, message }) }],
    ['workflow_id', { workflow_id: '' }],
    ['send_at', { send_at: 'soon' }],
    // no event has such a name
    ['goal_event', { goal_event: ' bought' }],
  ] as const) {
    expectInvalid(await post(fields), field)
  }
  const variant = { key: 'a', weight: 60, message }
  expectInvalid(await post({ variants: [variant, variant] }), 'variants', /keys/)
  expectInvalid(await post({ variants: [variant, { ...variant, key: 'b' }] }), 'variants', /100/)
  expectRefusal(await admin.get(`${campaigns}/no-id`), 400, 'INVALID_ID')
  expectRefusal(await admin.get(`${campaigns}/${randomUUID()}/deliveries`), 404, 'NOT_FOUND')
})

describe('sending', () => {
  test('reaches everybody once, with the payload of the log provider, and counts', async () => {
    const [one, two, none] = [await pushed(project), await pushed(project, 'android'), await project.user()]
    await device(two)
    const audience = { user_ids: [one.id, two.id, none.id] }
    const made = await campaignOf(project, {
      audience,
      send_now: true,
      message: { ...message, data: { lesson: 3, _did: 'mine' }, deep_link: 'app://x', category: 'news', sound: 'ping' },
    })
    expect(made).toEqual({ id: made.id, workflow_id: null, status: 'scheduled' })
    await project.drain()
    const campaign = await shown(project, made.id)
    expect(campaign).toMatchObject({
      status: 'sent',
      counts: { targeted: 3, sent: 2, failed: 0, skipped: 1, opened: 0, converted: 0 },
      started_at: expect.any(String),
      finished_at: expect.any(String),
    })
    const { data } = await admin.get(`${campaigns}/${made.id}/deliveries?status=sent`)
    expect(data).toHaveLength(2)
    const [of] = data.filter((each: { app_user_id: string }) => each.app_user_id === one.id)
    expect(of.attempts).toEqual([
      expect.objectContaining({
        provider: 'log',
        outcome: 'sent',
        n: 1,
        payload: {
          lesson: 3,
          _did: of.id,
          _cid: made.id,
          deep_link: 'app://x',
          aps: {
            alert: { title: 'Hello', body: 'A message.' },
            sound: 'ping',
            'mutable-content': 1,
            category: 'news',
            'thread-id': 'news',
          },
        },
      }),
    ])
    expect(data.find((each: { app_user_id: string }) => each.app_user_id === two.id).attempts).toHaveLength(2)
    const skipped = await admin.get(`/push/deliveries?user_id=${none.id}&status=skipped`)
    expect(skipped.data).toMatchObject([{ campaign_id: made.id, reason: 'no_token', status: 'skipped' }])
    const pages = await admin.get(`${campaigns}/${made.id}/deliveries?limit=2`)
    const rest = await admin.get(`${campaigns}/${made.id}/deliveries?cursor=${pages.body.pagination.next_cursor}`)
    expect([...pages.data, ...rest.data].map((each) => each.app_user_id).sort()).toEqual([...audience.user_ids].sort())
    expect(rest.body.pagination.next_cursor).toBeNull()
    expectRefusal(await admin.patch(`${campaigns}/${made.id}`, { name: 'late' }), 409, 'CAMPAIGN_LOCKED')
    expectRefusal(await admin.post(`${campaigns}/${made.id}/schedule`), 409, 'ALREADY_SCHEDULED')
    for (const verb of ['pause', 'resume', 'cancel'])
      expectRefusal(await admin.post(`${campaigns}/${made.id}/${verb}`), 409, 'CAMPAIGN_LOCKED')
  })

  test('a workflow id starts one campaign, however many callers race', async () => {
    const user = await pushed(project)
    const body = { name: 'x', message, audience: { user_ids: [user.id] }, workflow_id: 'welcome-1', send_now: true }
    const answers = await Promise.all(Array.from({ length: 8 }, () => admin.post(campaigns, body)))
    expect(answers.map(({ status }) => status).sort()).toEqual([202, ...Array(7).fill(409)])
    for (const answer of answers.filter(({ status }) => status === 409))
      expectRefusal(answer, 409, 'ALREADY_SCHEDULED', { field: 'workflow_id' })
    await project.drain()
    expect(await project.sql('select status from app.push_deliveries where app_user_id = $1', [user.id])).toEqual([
      { status: 'sent' },
    ])
  })

  test('nobody in the audience is refused, and so is a project in production without a provider', async () => {
    const nobody = { audience: { user_ids: [randomUUID()] } }
    const draft = await campaignOf(project, nobody)
    expectRefusal(await admin.post(`${campaigns}/${draft.id}/schedule`), 400, 'AUDIENCE_EMPTY', 'audience')
    expectRefusal(await admin.post(campaigns, { name: 'x', message, ...nobody, send_now: true }), 400, 'AUDIENCE_EMPTY')
    const later = await campaignOf(project, { send_at: '2100-01-01T00:00:00Z' })
    expectRefusal(await admin.patch(`${campaigns}/${later.id}`, nobody), 400, 'AUDIENCE_EMPTY')
    const live = await harness.project()
    const user = await pushed(live)
    const body = { name: 'x', message, audience: { all: true } }
    expectRefusal(await live.admin.post(campaigns, { ...body, send_now: true }), 400, 'PUSH_NOT_CONFIGURED')
    const { data } = await live.admin.post(campaigns, body)
    expectRefusal(await live.admin.post(`${campaigns}/${data.id}/schedule`), 400, 'PUSH_NOT_CONFIGURED')
    const to = { user_ids: [user.id] }
    expectRefusal(await live.admin.post(`${campaigns}/${data.id}/test`, to), 400, 'PUSH_NOT_CONFIGURED')
    expectRefusal(await live.admin.post('/push/send', { ...to, message }), 400, 'PUSH_NOT_CONFIGURED')
    expect((await live.admin.post('/integrations', { provider: 'log', config: {} })).status).toBe(201)
    expect((await live.admin.post('/push/send', { ...to, message })).status).toBe(202)
    await live.drain()
    expect(await live.sql('select status from app.push_deliveries')).toEqual([{ status: 'sent' }])
  })

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
      expect(await project.sql('select app_user_id from app.push_deliveries where campaign_id = $1', [id])).toEqual([
        { app_user_id: pro.id },
      ])
    }
    expect(free.id).not.toBe(pro.id)
  })
})

test('a message is rendered for each user: locale, properties, fallbacks, escaping', async () => {
  const user = await pushed(project)
  await user.patch('/client/users/me', {
    properties: { locale: 'de_AT', pet: { name: '{{display_name}}\u0007' }, empty: '', list: [1], place: 'a b/ü' },
  })
  const { id } = await campaignOf(project, {
    message: {
      title: 'Hi {{pet.name|friend}}',
      body: 'x',
      deep_link: 'app://go?to={{place}}',
      image_url: 'https://example.com/{{place}}.png',
      localized: {
        de: { title: 'Hallo {{ pet.name | du }}', body: '{{empty|nichts}} {{list|keine}} {{missing}} {{open' },
      },
    },
  })
  const { data } = await admin.post(`${campaigns}/${id}/preview`, { user_id: user.id })
  expect(data.rendered).toMatchObject({
    title: 'Hallo {{display_name}} ',
    body: 'nichts keine  {{open',
    deep_link: 'app://go?to=a%20b%2F%C3%BC',
    image_url: 'https://example.com/a%20b%2F%C3%BC.png',
  })
  expect((await admin.post(`${campaigns}/${id}/preview`, {})).data.rendered).toMatchObject({ title: 'Hi friend' })
  expectRefusal(await admin.post(`${campaigns}/${id}/preview`, { user_id: randomUUID() }), 404, 'USER_NOT_FOUND')
  expectRefusal(await admin.post(`${campaigns}/${randomUUID()}/preview`, {}), 404, 'NOT_FOUND')
})

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
    expect(await throttled.sql('select count(*)::int as n from app.push_deliveries')).toEqual([{ n: 0 }])
  })

  test('at most 100 campaigns in 24 hours', async () => {
    const busy = await harness.project({ environment: 'development' })
    await busy.sql(
      `insert into app.push_campaigns (name, message, audience) select 'c', '{"title": "t", "body": "b"}', '{"all": true}' from generate_series(1, 98)`,
    )
    const body = { name: 'x', message, audience: { all: true } }
    const answers = await Promise.all(Array.from({ length: 6 }, () => busy.admin.post(campaigns, body)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409, 409])
    const refused = answers.find(({ status }) => status === 409)
    expectRefusal(refused!, 409, 'LIMIT_REACHED', { limit: 100 })
    const made = answers.find(({ status }) => status === 201)
    expectRefusal(await busy.admin.post(`${campaigns}/${made!.data.id}/duplicate`), 409, 'LIMIT_REACHED')
    await busy.sql(`update app.push_campaigns set created_at = created_at - interval '24 hours'`)
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
    (await local.sql('select app_user_id, due_at from app.push_deliveries where campaign_id = $1', [id])).map(
      ({ app_user_id, due_at }) => [app_user_id, (due_at as Date).toISOString()],
    ),
  )
  expect(users.map((user) => due[user.id])).toEqual([
    '2026-12-04T08:30:00.000Z',
    '2026-12-04T14:30:00.000Z',
    '2026-12-04T09:30:00.000Z',
  ])
  const sent = async () =>
    (await local.sql(`select count(*)::int as n from app.push_deliveries where status = 'sent'`))[0]?.n
  harness.setTime('2026-12-04T08:30:00Z')
  await local.drain()
  expect(await sent()).toBe(1)
  harness.setTime('2026-12-04T14:31:00Z')
  await local.drain()
  expect(await sent()).toBe(3)
  expect(await local.sql('select status from app.push_campaigns')).toEqual([{ status: 'sent' }])
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
    await project.sql(`update app.push_deliveries set sent_at = sent_at - interval '25 hours'`)
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
         from app.push_deliveries where campaign_id = $1 group by 1, 2, 3 order by 1`,
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
      `select app_user_id as id from app.push_deliveries where variant = 'a' order by id limit 1`,
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
    await many.sql(`update app.push_deliveries set sent_at = sent_at - interval '24 hours'`)
    const [other] = await many.sql(`select app_user_id as id from app.push_deliveries where variant = 'b' limit 1`)
    await many.admin.post('/events', { app_user_id: other.id, event_name: 'bought' })
    expect((await many.admin.get(`${campaigns}/${id}/stats`)).data.converted).toBe(1)
    expectRefusal(await many.admin.get(`${campaigns}/${randomUUID()}/stats`), 404, 'NOT_FOUND')
  })
})

describe('direct sends', () => {
  test('go out at once, once under an Idempotency-Key', async () => {
    const [one, two] = [await pushed(project), await pushed(project)]
    const body = { user_ids: [two.id, one.id], message: { ...message, badge: 'increment' } }
    const key = { 'idempotency-key': randomUUID() }
    const first = await admin.with(key).post('/push/send', body)
    expect([first.status, first.data?.delivery_ids.length], first.text).toEqual([202, 2])
    const again = await admin.with(key).post('/push/send', body)
    expect([again.status, again.data]).toEqual([200, first.data])
    expectRefusal(
      await admin.with(key).post('/push/send', { ...body, user_ids: [one.id] }),
      409,
      'IDEMPOTENCY_CONFLICT',
    )
    expectInvalid(await admin.with({ 'idempotency-key': 'ü' }).post('/push/send', body), 'Idempotency-Key')
    expectRefusal(await admin.post('/push/send', { ...body, user_ids: [randomUUID()] }), 404, 'USER_NOT_FOUND')
    expectInvalid(await admin.post('/push/send', { ...body, user_ids: Array(101).fill(one.id) }), 'user_ids')
    await project.drain()
    const sent = await admin.get(`/push/deliveries?user_id=${two.id}`)
    expect(sent.data).toMatchObject([{ id: first.data.delivery_ids[0], status: 'sent', campaign_id: null }])
    expect((await attemptsOf(first.data.delivery_ids[0]))[0].payload.aps.badge).toBe(1)
    expectRefusal(await admin.get('/push/deliveries'), 400, 'INVALID_INPUT')
    expectRefusal(await admin.get(`/push/deliveries?user_id=${one.id}&cursor=x`), 400, 'INVALID_INPUT')
  })

  test('a test of a campaign goes to users who have switched pushes off, and to no inbox', async () => {
    const user = await pushed(project)
    await user.put('/client/push/preferences', { enabled: false })
    const { id } = await campaignOf(project)
    const tested = await admin.post(`${campaigns}/${id}/test`, { user_ids: [user.id] })
    expect(tested.status, tested.text).toBe(202)
    expectRefusal(await admin.post(`${campaigns}/${id}/test`, { user_ids: [randomUUID()] }), 404, 'USER_NOT_FOUND')
    expectRefusal(await admin.post(`${campaigns}/${randomUUID()}/test`, { user_ids: [user.id] }), 404, 'NOT_FOUND')
    expectInvalid(await admin.post(`${campaigns}/${id}/test`, { user_ids: Array(11).fill(user.id) }), 'user_ids')
    await project.drain()
    expect((await admin.get(`/push/deliveries?user_id=${user.id}`)).data).toMatchObject([
      { id: tested.data.delivery_ids[0], is_test: true, status: 'sent' },
    ])
    expect((await user.get('/client/push/inbox')).data).toEqual([])
    expect((await shown(project, id)).status).toBe('draft')
  })
})
