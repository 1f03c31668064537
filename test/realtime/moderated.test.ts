import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { User } from '#test/support/harness.ts'
import { startModeration } from '#test/support/moderation.ts'
import { openSocketOf, type Socket } from '#test/support/realtime.ts'

/** What is published and answered of texts that a rule hides as they are written, and to whom blocked users' conversations are sent. */
const { harness, project, admin, word } = await startModeration()

const post = async (who: Pick<User, 'post'>, path: string, body: object = {}) => {
  const answer = await who.post(path, body)
  expect(answer.status, answer.text).toBeLessThan(300)
  return answer.data
}
const listen = async (user: User, ...channels: string[]) => {
  const socket = await openSocketOf(harness, user)
  for (const channel of channels) expect(await socket.subscribe(channel), channel).toMatchObject({ type: 'ack' })
  await socket.subscribe('room:marker')
  return socket
}
/** Events come in one order: what has not come when a later event has, does not come. */
const eventsOf = async (socket: Socket, channel: string) => {
  const nonce = randomUUID()
  await post(admin, '/realtime/broadcast', { channel: 'room:marker', event: 'marker', payload: nonce })
  await socket.next((frame) => frame['payload'] === nonce)
  return socket.frames.filter((frame) => frame['type'] === 'event' && frame['channel'] === channel)
}
const talkOf = async (ada: User, ben: User) => {
  const { id } = await post(ada, '/client/messaging/conversations', { participant_ids: [ben.id] })
  return { channel: `conversation:${id}`, path: `/client/messaging/conversations/${id}`, id: id as string }
}

test('a message that a rule hides is one event, and so is an edit that it hides: with what is shown', async () => {
  const [ada, ben] = [await project.user(), await project.user()]
  const { channel, path } = await talkOf(ada, ben)
  const socket = await listen(ben, channel, 'user')
  await word(['casino'], { action: 'hide', applies_to: ['message'] })
  const hidden = await post(ada, `${path}/messages`, { body: 'a casino' })
  const plain = await post(ada, `${path}/messages`, { body: 'hello' })
  const edited = await ada.patch(`${path}/messages/${plain.id}`, { body: 'a casino' })
  expect([hidden.body, plain.body, edited.data.body]).toEqual(['…', 'hello', '…'])
  for (const of of [channel, 'user'])
    expect(
      (await eventsOf(socket, of)).map(({ event, payload }) => [event, payload.id, payload.body]),
      of,
    ).toEqual([
      ['message.created', hidden.id, '…'],
      ['message.created', plain.id, 'hello'],
      ['message.updated', plain.id, '…'],
    ])
  // what an administrator shows again is an event of its own
  const [item] = (await admin.get('/moderation/queue?status=pending&limit=200')).data.filter(
    (one: { subject_id: string }) => one.subject_id === hidden.id,
  )
  await post(admin, `/moderation/queue/${item.id}/approve`)
  expect((await eventsOf(socket, channel)).at(-1)).toMatchObject({
    event: 'message.updated',
    payload: { id: hidden.id, body: 'a casino' },
  })
})

test('a report that hides a message is an event', async () => {
  const [ada, ben] = [await project.user(), await project.user()]
  const { channel, path } = await talkOf(ada, ben)
  const socket = await listen(ben, channel)
  await post(admin, '/moderation/rules', {
    name: 'Reports',
    rule_type: 'report_threshold',
    config: { count: 1, window_hours: 1, applies_to: ['message'] },
  })
  const { id } = await post(ada, `${path}/messages`, { body: 'bad' })
  await post(ben, '/client/moderation/reports', { subject_type: 'message', subject_id: id, reason: 'spam' })
  expect((await eventsOf(socket, channel)).map(({ event, payload }) => [event, payload.body])).toEqual([
    ['message.created', 'bad'],
    ['message.updated', '…'],
  ])
})

test('a row that a rule hides is never shown to subscribers, and one that it hides by an edit is deleted for them', async () => {
  const name = `posts_${randomUUID().slice(0, 8)}`
  const made = await admin.post('/collections', {
    name,
    read_policy: 'public',
    realtime: true,
    columns: [{ name: 'title', type: 'text', moderated: true }],
  })
  expect(made.status, made.text).toBe(201)
  await word(['casino'], { action: 'hide' })
  const ada = await project.user()
  const socket = await listen(await project.user(), `collection:${name}`)
  await ada.post(`/client/collections/${name}`, { title: 'a casino' })
  const plain = await post(ada, `/client/collections/${name}`, { title: 'hello' })
  await ada.patch(`/client/collections/${name}/${plain.id}`, { title: 'a casino' })
  expect(
    (await eventsOf(socket, `collection:${name}`)).map(({ event, payload }) => [event, payload.row?.title ?? null]),
  ).toEqual([
    ['insert', 'hello'],
    ['delete', null],
  ])
})

test('the answer of a write shows what everybody else sees: a name that a rule has just hidden is not in it', async () => {
  const ada = await project.user()
  const group = await post(ada, '/client/groups', { name: 'Ours', is_public: true })
  await word(['casino'], { action: 'hide', applies_to: ['display_name', 'group_name'] })
  const renamed = await ada.patch('/client/users/me', { display_name: 'casino' })
  expect([renamed.status, renamed.data.display_name]).toEqual([
    200,
    (await ada.get('/client/users/me')).data.display_name,
  ])
  expect(renamed.data.display_name).not.toContain('casino')
  const changed = await ada.patch(`/client/groups/${group.id}`, { name: 'casino' })
  expect([changed.status, changed.data.name]).toEqual([200, 'Group'])
})

test('a conversation of a blocked pair sends nothing to either, whoever writes there', async () => {
  const [ada, ben] = [await project.user(), await project.user()]
  for (const user of [ada, ben])
    await post(user, '/client/users/me/push-token', { token: randomUUID(), platform: 'ios' })
  const { path, id } = await talkOf(ada, ben)
  await post(ada, `${path}/messages`, { body: 'before' })
  const sockets = [await listen(ada, 'user'), await listen(ben, 'user')]
  await post(ada, `/client/friends/${ben.id}/block`)
  await post(admin, `/messaging/conversations/${id}/messages`, { body: 'as ada', as_user_id: ada.id })
  await post(admin, `/messaging/conversations/${id}/messages`, { body: 'by the system', system: true })
  await project.drain()
  const received = await Promise.all(sockets.map((socket) => eventsOf(socket, 'user')))
  expect(received.flat().filter(({ event }) => event.startsWith('message.'))).toEqual([])
  expect(
    await project.sql(
      `select from app.campaign_deliveries where context ->> 'conversation_id' = $1 and context ->> 'body' <> 'before'`,
      [id],
    ),
  ).toEqual([])
  expect((await ada.delete(`/client/friends/${ben.id}/block`)).status).toBe(200)
  await post(admin, `/messaging/conversations/${id}/messages`, { body: 'again', system: true })
  for (const socket of sockets)
    expect((await eventsOf(socket, 'user')).at(-1)).toMatchObject({
      event: 'message.created',
      payload: { body: 'again' },
    })
})

test('typing goes to the others', async () => {
  const [ada, ben] = [await project.user(), await project.user()]
  const { channel, path } = await talkOf(ada, ben)
  const [a, also, b] = [await listen(ada, channel), await listen(ada, channel), await listen(ben, channel)]
  await post(ada, `${path}/typing`)
  expect((await eventsOf(b, channel)).map(({ event, payload }) => [event, payload])).toEqual([
    ['typing', { user_id: ada.id }],
  ])
  for (const own of [a, also]) expect(await eventsOf(own, channel)).toEqual([])
})
