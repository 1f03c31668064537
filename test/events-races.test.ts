import { expect, test } from 'vitest'
import { type Answer, startHarness, type User } from '#test/support/harness.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const day = 86_400_000
const from = (offset: number) => new Date(harness.now().getTime() + offset).toISOString()

/** What an event moves may be deleted at that moment: the event waits for it if it must, and is stored all the same. */
test.each<[string, string, object, string, string]>([
  [
    'an achievement that it unlocks',
    '/achievements',
    { key: 'first', name: 'First', criteria: { type: 'event_count', event_name: 'unlocks', target_value: 1 } },
    'achievement',
    'unlocks',
  ],
  [
    'a challenge that it joins',
    '/challenges',
    {
      ...{ name: 'Three', event_name: 'joins', goal_type: 'event_count', goal_value: 1 },
      ...{ start_at: from(-day), end_at: from(day) },
    },
    'challenge',
    'joins',
  ],
  [
    'a webhook that it is sent to',
    '/webhooks',
    { event_name: 'sent', target_url: 'https://1.1.1.1/' },
    'webhook',
    'sent',
  ],
])('while %s is deleted', async (_name, path, body, kind, event_name) => {
  const { status, data, text } = await project.admin.post(path, body)
  expect(status, text).toBe(201)
  const user = await project.user()
  const deletion = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await deletion.query('select api.definition_delete($1, $2)', [kind, data.id])
  const posting = user.post('/client/events', { event_name })
  await untilBlocked(project)
  await deletion.commit()
  const answer = await posting
  expect([answer.status, answer.data?.effects], answer.text).toEqual([201, {}])
  const told = await project.sql(
    `select event_name from app.engagement_events where app_user_id = $1 and event_name ~ '^svc.(achievement|challenge)'`,
    [user.id],
  )
  expect(told).toEqual([])
  expect(await project.sql('select from app.webhook_deliveries')).toEqual([])
})

test.each<[string, string, object, string, (id: string, user: User) => Promise<Answer>]>([
  [
    'a challenge',
    '/challenges',
    {
      ...{ name: 'Joined', event_name: 'nothing', goal_type: 'event_count', goal_value: 1 },
      ...{ start_at: from(-day), end_at: from(day) },
    },
    'challenge',
    (id, user) => user.post(`/client/challenges/${id}/join`),
  ],
  [
    'an achievement',
    '/achievements',
    { key: 'granted', name: 'Granted', criteria: { type: 'event_count', event_name: 'nothing', target_value: 1 } },
    'achievement',
    (id, user) => project.admin.post(`/achievements/${id}/grant`, { app_user_id: user.id }),
  ],
])('who joins or is granted %s while it is deleted finds nothing', async (_name, path, body, kind, act) => {
  const { status, data, text } = await project.admin.post(path, body)
  expect(status, text).toBe(201)
  const user = await project.user()
  const deletion = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await deletion.query('select api.definition_delete($1, $2)', [kind, data.id])
  const acting = act(data.id, user)
  await untilBlocked(project)
  await deletion.commit()
  expect(await acting).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
})

test('an event that is defined while its definition is deleted is new', async () => {
  const path = '/events/definitions/defined'
  expect((await project.admin.put(path)).status).toBe(201)
  const deletion = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await deletion.query("select api.definition_delete('event_definition', $1)", ['defined'])
  const defining = project.admin.put(path, { status: 'blocked' })
  await untilBlocked(project)
  await deletion.commit()
  expect(await defining).toMatchObject({ status: 201, data: { status: 'blocked' } })
})

/** Webhooks: whoever changes, asks about or sends a subscription that is being deleted finds none. */
test.each<[string, (id: string) => Promise<Answer>]>([
  ['changed', (id) => project.admin.patch(`/webhooks/${id}`, { status: 'disabled' })],
  ['given another secret', (id) => project.admin.post(`/webhooks/${id}/rotate-secret`)],
  ['deleted', (id) => project.admin.delete(`/webhooks/${id}`)],
])('a webhook that is %s while it is deleted is not there', async (_name, act) => {
  const { data } = await project.admin.post('/webhooks', { event_name: 'w', target_url: 'https://1.1.1.1/' })
  const deletion = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await deletion.query("select api.definition_delete('webhook', $1)", [data.id])
  const acting = act(data.id)
  await untilBlocked(project)
  await deletion.commit()
  expect(await acting).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
})
