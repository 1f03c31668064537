import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { campaignOf, device, message, pushed, shown } from '#test/support/push.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project({ environment: 'development' })

const campaigns = '/push/campaigns'
const admin = project.admin
const attemptsOf = async (id: string) =>
  (await project.sql('select attempts from app.campaign_deliveries where id = $1', [id]))[0]?.attempts

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
  expect(await project.sql('select id from app.campaigns where id = $1', [made.data.id])).toEqual([])
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
    expect(await project.sql('select status from app.campaign_deliveries where app_user_id = $1', [user.id])).toEqual([
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
    expect(await live.sql('select status from app.campaign_deliveries')).toEqual([{ status: 'sent' }])
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
