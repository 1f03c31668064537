import { randomUUID } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { block, conversationOf, conversations, send, unblock } from '#test/support/messaging.ts'
import { device, pushed } from '#test/support/push.ts'
import { openSocketOf } from '#test/support/realtime.ts'
import { expectInvalid } from '#test/support/refusals.ts'

/** New messages are pushed to participants who do not see them. */
const harness = await startHarness()
const project = await harness.project({ environment: 'development' })
const { admin } = project
afterEach(async () => {
  harness.setTime(null)
  await project.sql('delete from app.push_automations')
})

type Pushed = { title: string; body: string; data: Record<string, unknown> }
/** What the devices of a user were sent, the oldest first; and what was not sent, with why. */
const got = async (user: User): Promise<(Pushed | string)[]> => {
  const rows = await project.sql(
    `select status, reason, attempts -> 0 -> 'payload' as payload from app.campaign_deliveries where app_user_id = $1 order by id`,
    [user.id],
  )
  return rows.map(({ status, reason, payload }) =>
    status !== 'sent' ? `${status} ${reason}` : { ...payload.aps.alert, data: payload.conversation_id },
  )
}
const pair = async () => {
  const [ann, bob] = [await pushed(project), await pushed(project)] as [User, User]
  return { ann, bob, id: await conversationOf(ann, [bob]) }
}
const define = async (fields: object) => {
  const made = await admin.post('/push/automations', {
    key: 'message',
    trigger: { event_name: 'svc.message.received' },
    message: { title: 'From {{event.sender_name}}', body: '{{event.body}}' },
    inbox: false,
    ...fields,
  })
  expect(made.status, made.text).toBe(201)
  return made.data as { id: string }
}
const tasks = () => project.sql(`select 1 from app.outbox where task = 'messaging__push'`)

test('a message is pushed to the other participants, with its sender and its conversation, once', async () => {
  const { ann, bob, id } = await pair()
  const name = (await ann.get('/client/users/me')).data.display_name
  const message = await send(ann, id, 'Hello {{display_name}}')
  await project.drain()
  const expected = { title: name, body: 'Hello {{display_name}}', data: id }
  expect([await got(ann), await got(bob)]).toEqual([[], [expected]])
  const [{ message: stored }] = await project.sql(
    'select message from app.campaign_deliveries where app_user_id = $1',
    [bob.id],
  )
  expect(stored).toMatchObject({ category: 'message', data: { conversation_id: id, message_id: message.id } })
  // a task that runs again, as after a crash, pushes nothing twice
  await project.sql(`select set_config('app.caller', 'worker', false), api.message_push($1, true)`, [message.id])
  await project.drain()
  expect(await got(bob)).toHaveLength(1)
  // and users switch the category off as any other
  const { categories } = (await bob.get('/client/push/preferences')).data
  expect(categories).toMatchObject({ message: true })
  await bob.put('/client/push/preferences', { enabled: true, categories: { message: false } })
  await send(ann, id, 'Are you there?')
  await project.drain()
  expect((await got(bob))[1]).toBe('skipped opted_out')
  expect((await bob.get('/client/push/inbox')).data).toEqual([])
})

test('in a group conversation with a name the title is the name; a message of the system has no sender', async () => {
  const [ann, bob, eve] = [await pushed(project), await pushed(project), await pushed(project)] as [User, User, User]
  const name = (await ann.get('/client/users/me')).data.display_name
  const made = await ann.post(conversations, { type: 'group', name: 'Trip', participant_ids: [bob.id, eve.id] })
  const { id } = made.data
  await send(ann, id, 'Tomorrow?')
  await admin.post(`/messaging/conversations/${id}/messages`, { system: true, body: 'Closed.' })
  await project.drain()
  const all = { title: 'Trip', body: 'Closed.', data: id }
  for (const other of [bob, eve])
    expect(await got(other)).toEqual([{ title: 'Trip', body: `${name}: Tomorrow?`, data: id }, all])
  expect(await got(ann)).toEqual([all])
})

test('is not pushed to who has muted the conversation, left it, is banned, or has blocked the sender or is blocked', async () => {
  const users: readonly User[] = await Promise.all(Array.from({ length: 7 }, () => pushed(project)))
  const [ann, muted, formerlyMuted, left, banned, blocker, blocked] = users as readonly User[] as [
    User,
    User,
    User,
    User,
    User,
    User,
    User,
  ]
  const id = await conversationOf(ann, [muted, formerlyMuted, left, banned, blocker, blocked], 'group')
  const mute = (who: User, until: string | null) => who.patch(`${conversations}/${id}`, { muted_until: until })
  await mute(muted, new Date(Date.now() + 3600_000).toISOString())
  await mute(formerlyMuted, new Date(Date.now() - 1000).toISOString())
  await block(project, blocker, ann)
  await block(project, ann, blocked)
  await send(ann, id, 'Hello')
  // what has changed when the task runs counts
  await left.delete(`${conversations}/${id}/participants/me`)
  await project.sql('update app.users set is_banned = true where id = $1', [banned.id])
  await project.drain()
  const counts = await Promise.all(users.map(async (user) => (await got(user)).length))
  expect(counts).toEqual([0, 0, 1, 0, 0, 0, 0])
  await unblock(project)
})

test('is not pushed to who listens to the conversation, or has read it meanwhile; who stopped listening is pushed again', async () => {
  const { ann, bob, id } = await pair()
  const socket = await openSocketOf(harness, bob)
  await socket.subscribe('user')
  const said = async (text: string) => {
    await send(ann, id, text)
    await project.drain()
    return (await got(bob)).length
  }
  expect(await said('one')).toBe(1)
  await socket.subscribe(`conversation:${id}`)
  expect(await said('two')).toBe(1)
  // another connection that goes does not end what this one listens to
  const other = await openSocketOf(harness, bob)
  await other.subscribe(`conversation:${id}`)
  await other.close()
  expect(await said('three')).toBe(1)
  for (let round = 0; round < 3; round += 1) {
    await socket.ask({ type: 'unsubscribe', channel: `conversation:${id}` })
    await socket.subscribe(`conversation:${id}`)
  }
  expect(await said('four')).toBe(1)
  await socket.ask({ type: 'unsubscribe', channel: `conversation:${id}` })
  await expect
    .poll(() => project.sql('select 1 from app.realtime_readers where app_user_id = $1', [bob.id]))
    .toEqual([])
  expect(await said('five')).toBe(2)
  await socket.subscribe(`conversation:${id}`)
  await socket.close()
  await expect
    .poll(() => project.sql('select 1 from app.realtime_readers where app_user_id = $1', [bob.id]))
    .toEqual([])
  expect(await said('six')).toBe(3)
  // a server that died without a word counts for the length of its lease
  const again = await openSocketOf(harness, bob)
  await again.subscribe(`conversation:${id}`)
  await project.sql(`update app.realtime_servers set expires_at = now() - interval '1 second'`)
  expect(await said('seven')).toBe(4)
  await send(ann, id, 'eight')
  await bob.post(`${conversations}/${id}/read`)
  await project.drain()
  expect(await got(bob)).toHaveLength(4)
})

test('is not pushed when it is deleted or hidden by moderation before', async () => {
  const { ann, bob, id } = await pair()
  const { id: first } = await send(ann, id, 'Hello')
  await ann.delete(`${conversations}/${id}/messages/${first}`)
  await admin.post('/moderation/rules', {
    name: 'Casinos',
    rule_type: 'keyword',
    config: { words: ['casino'], action: 'hide', applies_to: ['message'] },
  })
  await send(ann, id, 'A casino')
  await project.sql('delete from app.moderation_rules')
  await project.drain()
  expect([await got(bob), await tasks()]).toEqual([[], []])
})

test('costs no task where nobody has a device, and no delivery where nobody sends', async () => {
  const [ann, bob] = [await pushed(project), await project.user()]
  const id = await conversationOf(ann, [bob])
  await send(ann, id, 'Hello')
  expect(await tasks()).toEqual([])
  const production = await harness.project({ environment: 'production' })
  const [one, two] = [await production.user(), await production.user()]
  await device(two)
  await send(one, await conversationOf(one, [two]), 'Hello')
  await production.drain()
  expect(await production.sql('select 1 from app.campaign_deliveries')).toEqual([])
})

test('an automation with the key message takes the place of ours: its text, filter, delay and inbox', async () => {
  const { ann, bob, id } = await pair()
  const name = (await ann.get('/client/users/me')).data.display_name
  harness.setTime(new Date())
  const { id: automation } = await define({
    trigger: {
      event_name: 'svc.message.received',
      filter: { column: 'is_mention', op: 'eq', value: true },
    },
    message: { title: 'From {{event.sender_name}}', body: '{{event.body}}', data: { kind: 'chat' } },
    delay_seconds: 60,
    inbox: true,
  })
  await send(ann, id, 'nobody in particular')
  await send(ann, id, 'you there', { metadata: { mentions: [bob.id] } })
  await project.drain()
  expect(await got(bob)).toEqual([])
  harness.advance(61)
  await project.drain()
  expect(await got(bob)).toEqual([{ title: `From ${name}`, body: 'you there', data: id }])
  const inbox = (await bob.get('/client/push/inbox')).data
  expect(inbox).toHaveLength(1)
  expect(inbox[0].data).toMatchObject({ kind: 'chat', conversation_id: id })
  expect((await admin.get(`/push/automations/${automation}/stats`)).data).toMatchObject({ sent: 1 })
  // with an inbox it is also for who has no device
  const without = await project.user()
  await send(ann, await conversationOf(ann, [without]), 'hello', { metadata: { mentions: [without.id] } })
  harness.advance(61)
  await project.drain()
  expect((await without.get('/client/push/inbox')).data).toHaveLength(1)
})

test('switched off, it pushes nothing; and what it cannot mean is refused', async () => {
  const { ann, bob, id } = await pair()
  const { id: automation } = await define({})
  await send(ann, id, 'on')
  await admin.patch(`/push/automations/${automation}`, { is_active: false })
  // what waits already stops too
  await project.drain()
  await send(ann, id, 'off')
  expect(await tasks()).toEqual([])
  expect(await got(bob)).toEqual([])
  const bad = (fields: object) =>
    admin.post('/push/automations', {
      key: `a-${randomUUID()}`,
      trigger: { event_name: 'svc.message.received' },
      message: { title: 'a', body: 'b' },
      ...fields,
    })
  expectInvalid(await bad({}), 'trigger.event_name')
  await project.sql('delete from app.push_automations')
  expectInvalid(await bad({ key: 'message', cancel_if_event: 'seen' }), 'cancel_if_event')
  // an automation of this name for another event leaves ours as it is
  expect((await bad({ key: 'message', trigger: { event_name: 'other' } })).status).toBe(201)
  await send(ann, id, 'hello')
  await project.drain()
  expect(await got(bob)).toHaveLength(1)
})
