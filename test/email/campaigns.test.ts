// Campaigns of mail: what administrators do with them, and what is refused.
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { defineTemplate, mailCampaign, reader } from '#test/support/mail_campaigns.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { startMailServer } from '#test/support/smtp.ts'

const mail = await startMailServer()
afterAll(() => mail.stop())
const harness = await startHarness({ env: { SMTP_URL: mail.url, PUBLIC_URL: 'https://api.trellis.example' } })
let second = Date.now() + 60_000
const nextSecond = () => {
  second += 2000
  harness.setTime(new Date(second))
}
afterEach(nextSecond)
nextSecond()

const project = await harness.project()
await defineTemplate(project)
const campaigns = '/email/campaigns'
const { admin } = project
const withTemplate = async () => {
  const on = await harness.project()
  await defineTemplate(on)
  return on
}

test('a draft names a template, is read, changed, listed, copied and deleted', async () => {
  await defineTemplate(project, { key: 'other', category: 'offers' })
  const made = await admin.post(campaigns, {
    name: 'Draft',
    template_key: 'news',
    audience: { all: true },
    variables: { offer: '20 %' },
    variants: [{ key: 'b', weight: 50, template_key: 'other' }],
  })
  expect(made.status, made.text).toBe(201)
  expect(made.data).toMatchObject({
    status: 'draft',
    template_key: 'news',
    category: 'news',
    variables: { offer: '20 %' },
    from: null,
    reply_to: null,
    track: false,
    variants: [{ key: 'b', weight: 50, template_key: 'other' }],
    counts: { targeted: 0, sent: 0, failed: 0, skipped: 0, opened: 0, converted: 0, clicked: 0 },
  })
  const path = `${campaigns}/${made.data.id}`
  expect((await admin.get(path)).data).toEqual(made.data)
  const changed = await admin.patch(path, {
    template_key: 'other',
    track: true,
    variables: null,
    reply_to: 'a@example.org',
  })
  expect(changed.data, changed.text).toMatchObject({
    template_key: 'other',
    category: 'offers',
    track: true,
    variables: {},
    reply_to: 'a@example.org',
  })
  const copy = await admin.post(`${path}/duplicate`)
  expect(copy.data, copy.text).toMatchObject({
    name: 'Copy of Draft',
    status: 'draft',
    template_key: 'other',
    variants: changed.data.variants,
    track: true,
  })
  const listed = await admin.get(`${campaigns}?status=draft&limit=2`)
  expect(listed.data.map(({ id }: { id: string }) => id)).toEqual([copy.data.id, made.data.id])
  // the two channels do not see each other's campaigns
  expect((await admin.get('/push/campaigns')).data).toEqual([])
  expectRefusal(await admin.get(`/push/campaigns/${made.data.id}`), 404, 'NOT_FOUND')
  for (const verb of ['cancel', 'schedule', 'duplicate', 'preview'])
    expectRefusal(await admin.post(`/push/campaigns/${made.data.id}/${verb}`), 404, 'NOT_FOUND')
  expectRefusal(await admin.delete('/email/templates/other'), 409, 'CONFLICT', { field: 'key' })
  for (const id of [made.data.id, copy.data.id])
    expect((await admin.delete(`${campaigns}/${id}`)).data).toEqual({ deleted: true })
  expect((await admin.delete('/email/templates/other')).status).toBe(200)
  expectRefusal(await admin.get(path), 404, 'NOT_FOUND')
  await project.drain()
  expect(await project.sql(`select id from app.campaigns where channel = 'email'`)).toEqual([])
  const trail = await admin.get('/audit-events?limit=100')
  expect(trail.data.map(({ action }: { action: string }) => action)).toContain('email.create')
})

test('fields are refused by name', async () => {
  await defineTemplate(project, { key: 'receipt', category: 'transactional' })
  const post = (fields: object) =>
    admin.post(campaigns, { name: 'x', template_key: 'news', audience: { all: true }, ...fields })
  for (const [field, fields] of [
    ['template_key', { template_key: 'nothing' }],
    ['template_key', { template_key: 'auth.otp' }],
    ['template_key', { template_key: 'receipt' }],
    ['variants.0.template_key', { variants: [{ key: 'a', weight: 1, template_key: 'receipt' }] }],
    ['variables', { variables: { a: 'x'.repeat(20_001) } }],
    ['track', { track: 'yes' }],
    ['from', { from: 'no address' }],
    ['reply_to', { reply_to: 'x' }],
    ['audience.segment_id', { audience: { segment_id: randomUUID() } }],
    ['schedule.local_time', { schedule: { mode: 'user_local' } }],
    ['workflow_id', { workflow_id: '' }],
    ['send_at', { send_at: 'soon' }],
  ] as const)
    expectInvalid(await post(fields), field)
  const { id } = await mailCampaign(project)
  expectRefusal(await post({ from: 'me@elsewhere.example' }), 400, 'INVALID_SENDER')
  expectRefusal(await admin.patch(`${campaigns}/${id}`, { from: 'me@elsewhere.example' }), 400, 'INVALID_SENDER')
  expectInvalid(await admin.patch(`${campaigns}/${id}`, { name: 5 }), 'name')
  expectInvalid(await admin.post(`${campaigns}/${id}/schedule`, { send_at: 'soon' }), 'send_at')
  expectInvalid(await admin.post(`${campaigns}/${id}/preview`, { user_id: 'me' }), 'user_id')
  expectInvalid(await admin.post(`${campaigns}/${id}/test`, { user_ids: [] }), 'user_ids')
  expectRefusal(await admin.get(`${campaigns}/none`), 400, 'INVALID_ID')
  expectRefusal(await admin.patch(`${campaigns}/none`, { name: 'x' }), 400, 'INVALID_ID')
  const nowhere = `${campaigns}/${randomUUID()}`
  for (const path of [nowhere, `${nowhere}/deliveries`, `${nowhere}/stats`])
    expectRefusal(await admin.get(path), 404, 'NOT_FOUND')
  for (const verb of ['schedule', 'cancel', 'pause', 'resume', 'duplicate', 'preview'])
    expectRefusal(await admin.post(`${nowhere}/${verb}`), 404, 'NOT_FOUND')
  expectRefusal(await admin.post(`${nowhere}/test`, { user_ids: [randomUUID()] }), 404, 'NOT_FOUND')
  expectRefusal(await admin.patch(nowhere, { name: 'x' }), 404, 'NOT_FOUND')
  expectRefusal(await admin.delete(nowhere), 404, 'NOT_FOUND')
  expectRefusal(await admin.get(`${campaigns}/${id}/deliveries?cursor=x`), 400, 'INVALID_INPUT')
  // a template that became transactional in the meantime
  await admin.patch('/email/templates/news', { category: 'transactional' })
  expectInvalid(await admin.post(`${campaigns}/${id}/schedule`), 'template_key')
  await admin.patch('/email/templates/news', { category: 'news' })
  const nobody = { audience: { user_ids: [randomUUID()] } }
  expectRefusal(await post({ ...nobody, send_now: true }), 400, 'AUDIENCE_EMPTY')
  await admin.patch(`${campaigns}/${id}`, nobody)
  expectRefusal(await admin.post(`${campaigns}/${id}/schedule`), 400, 'AUDIENCE_EMPTY')
  await reader(project)
  const later = await mailCampaign(project, { send_at: '2100-01-01T00:00:00Z' })
  expectRefusal(await admin.patch(`${campaigns}/${later.id}`, nobody), 400, 'AUDIENCE_EMPTY')
  expect((await admin.post(`${campaigns}/${later.id}/cancel`)).data.status).toBe('cancelled')
  await admin.patch('/email/templates/news', { category: 'transactional' })
  expectRefusal(await admin.post(`${campaigns}/${later.id}/duplicate`), 400, 'VALIDATION_ERROR')
  await admin.patch('/email/templates/news', { category: 'news' })
})

test('a workflow id makes one campaign of mail, however many callers race, and one of push', async () => {
  const on = await withTemplate()
  const user = await reader(on)
  const body = {
    name: 'x',
    template_key: 'news',
    audience: { user_ids: [user.id] },
    workflow_id: 'welcome-1',
    send_now: true,
  }
  const answers = await Promise.all(Array.from({ length: 8 }, () => on.admin.post(campaigns, body)))
  expect(answers.map(({ status }) => status).sort()).toEqual([202, ...Array(7).fill(409)])
  for (const answer of answers.filter(({ status }) => status === 409))
    expectRefusal(answer, 409, 'ALREADY_SCHEDULED', { field: 'workflow_id' })
  const push = { name: 'x', message: { title: 't', body: 'b' }, audience: { all: true }, workflow_id: 'welcome-1' }
  expect((await on.admin.post('/push/campaigns', push)).status).toBe(201)
  await on.drain()
  expect(mail.to(user.email)).toHaveLength(1)
  await on.sql(
    `insert into app.campaigns (channel, name, message, audience) select 'email', 'c', '{}', '{"all": true}' from generate_series(1, 99)`,
  )
  expectRefusal(await on.admin.post(campaigns, { ...body, workflow_id: null }), 409, 'LIMIT_REACHED', { limit: 100 })
  const [{ id }] = await on.sql(`select id from app.campaigns where workflow_id = 'welcome-1' and channel = 'email'`)
  expectRefusal(await on.admin.post(`${campaigns}/${id}/duplicate`), 409, 'LIMIT_REACHED')
})
