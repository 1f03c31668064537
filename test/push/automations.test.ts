import { randomUUID } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { message, pushed } from '#test/support/push.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project({ environment: 'development' })
const { admin } = project
afterEach(() => harness.setTime(null))

const define = async (fields: object) => {
  const made = await admin.post('/push/automations', { key: `a-${randomUUID()}`, message, ...fields })
  expect(made.status, made.text).toBe(201)
  return made.data as { id: string; key: string }
}
const say = (user: User, event_name: string, properties: object = {}) =>
  user.post('/client/events', { event_name, properties })
const got = (user: User) =>
  project.sql(
    `select automation_id, status, reason, attempts -> 0 -> 'payload' -> 'aps' -> 'alert' ->> 'title' as title
       from app.campaign_deliveries where app_user_id = $1 order by id`,
    [user.id],
  )
const name = () => `event_${randomUUID().slice(0, 8)}`

test('an event sends the message, when its filter matches, with the properties of the event', async () => {
  const [user, event] = [await pushed(project), name()]
  const { id } = await define({
    trigger: { event_name: event, filter: { column: 'score', op: 'gte', value: 10 } },
    message: { title: 'Score {{event.score}}', body: 'Well done.' },
  })
  await say(user, event, { score: 9 })
  await say(user, event, { score: 12 })
  await say(user, name())
  await project.drain()
  expect(await got(user)).toEqual([{ automation_id: id, status: 'sent', reason: null, title: 'Score 12' }])
  expect((await admin.get(`/push/automations/${id}/stats`)).data).toMatchObject({ sent: 1, failed: 0 })
  expectRefusal(await admin.get(`/push/automations/${randomUUID()}/stats`), 404, 'NOT_FOUND')
  await admin.patch(`/push/automations/${id}`, { is_active: false })
  await say(user, event, { score: 20 })
  await project.drain()
  expect(await got(user)).toHaveLength(1)
})

test('imported events send nothing', async () => {
  const [user, event] = [await pushed(project), name()]
  await define({ trigger: { event_name: event } })
  const imported = { app_user_id: user.id, event_name: event, occurred_at: '2026-01-01T00:00:00Z' }
  const answer = await admin.post('/events', { events: [imported], historical: true })
  expect(answer.status, answer.text).toBeLessThan(300)
  await project.drain()
  expect(await got(user)).toEqual([])
})

test('a delay holds the message, and an event that cancels it skips it', async () => {
  harness.setTime(new Date())
  const [stays, leaves, event, cancel] = [await pushed(project), await pushed(project), name(), name()]
  await define({ trigger: { event_name: event }, delay_seconds: 600, cancel_if_event: cancel })
  await say(stays, event)
  await say(leaves, event)
  await project.drain()
  expect(await got(stays)).toMatchObject([{ status: 'pending' }])
  const scheduled = await admin.get(`/push/deliveries?user_id=${stays.id}&status=pending`)
  expect(scheduled.data[0].due_at).toBe(new Date(harness.now().getTime() + 600_000).toISOString())
  await say(leaves, cancel)
  harness.advance(601)
  await project.drain()
  expect([await got(stays), await got(leaves)]).toMatchObject([
    [{ status: 'sent' }],
    [{ status: 'skipped', reason: 'cancelled' }],
  ])
})

test('entering and leaving a segment sends, for that segment only', async () => {
  const user = await pushed(project)
  const segments = await Promise.all(
    [1, 2].map(
      async () => (await admin.post('/segments', { key: `s-${randomUUID()}`, name: 'S', kind: 'static' })).data,
    ),
  )
  const entered = await define({ trigger: { segment_id: segments[0].id, on: 'entered' } })
  const exited = await define({ trigger: { segment_id: segments[0].id, on: 'exited' } })
  for (const { id } of segments) await admin.post(`/segments/${id}/members`, { user_ids: [user.id] })
  await project.drain()
  expect(await got(user)).toMatchObject([{ automation_id: entered.id, status: 'sent' }])
  await admin.delete(`/segments/${segments[0].id}/members/${user.id}`)
  await project.drain()
  expect(await got(user)).toMatchObject([{ automation_id: entered.id }, { automation_id: exited.id, status: 'sent' }])
  expectRefusal(await admin.delete(`/segments/${segments[0].id}`), 409, 'SEGMENT_IN_USE')
})

test('a cap holds for messages of one moment too', async () => {
  const [user, event] = [await pushed(project), name()]
  await define({ trigger: { event_name: event }, frequency_cap: { max: 1, hours: 1 } })
  await Promise.all([say(user, event), say(user, event), say(user, event)])
  await project.drain()
  expect((await got(user)).map(({ status }) => status).sort()).toEqual(['sent', 'skipped', 'skipped'])
})

test('templates are used by key; one that an automation names is not deleted', async () => {
  const [user, event] = [await pushed(project), name()]
  const key = `t-${randomUUID()}`
  await admin.post('/push/templates', { key, message: { title: 'From a template', body: 'x' } })
  const { id } = await define({ trigger: { event_name: event }, message: undefined, template_key: key })
  await say(user, event)
  await project.drain()
  expect(await got(user)).toMatchObject([{ status: 'sent', title: 'From a template' }])
  expectRefusal(await admin.delete(`/push/templates/${key}`), 409, 'CONFLICT', { field: 'key' })
  // a message takes the place of the template
  const changed = await admin.patch(`/push/automations/${id}`, { message })
  expect(changed.data).toMatchObject({ template_key: null, message })
  expect((await admin.delete(`/push/templates/${key}`)).status).toBe(200)
})

test('definitions that cannot work are refused', async () => {
  const post = (fields: object) => admin.post('/push/automations', { key: `a-${randomUUID()}`, ...fields })
  const trigger = { event_name: 'x' }
  for (const [field, fields] of [
    ['trigger', { trigger: { event_name: 'x', segment_id: randomUUID() }, message }],
    ['trigger.segment_id', { trigger: { segment_id: randomUUID(), on: 'entered' }, message }],
    ['trigger.filter', { trigger: { event_name: 'x', filter: { column: 'a', op: 'no' } }, message }],
    ['trigger.event_name', { trigger: { event_name: 'svc.push.opened' }, message }],
    ['trigger.event_name', { trigger: { event_name: 'x ' }, message }],
    ['cancel_if_event', { trigger, message, cancel_if_event: ' x' }],
    ['template_key', { trigger, template_key: 'missing' }],
    ['message', { trigger }],
    ['delay_seconds', { trigger, message, delay_seconds: 2_592_001 }],
  ] as const) {
    expectInvalid(await post(fields), field)
  }
})
