import { expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { openSocketOf, type Socket } from '#test/support/realtime.ts'

/** What each area publishes, and to whom. */
const harness = await startHarness()
const project = await harness.project()
const { admin } = project
const connect = async (user: User, ...channels: string[]) => {
  const socket = await openSocketOf(harness, user)
  for (const channel of channels) expect(await socket.subscribe(channel), channel).toMatchObject({ type: 'ack' })
  return socket
}
const event = async (socket: Socket, name: string) =>
  (await socket.next({ type: 'event', event: name }))['payload'] as Record<string, any>
const post = async (who: Pick<User, 'post'>, path: string, body: object = {}) => {
  const answer = await who.post(path, body)
  expect(answer.status, answer.text).toBeLessThan(300)
  return answer.data
}

test('user: what an event moves', async () => {
  await post(admin, '/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'practised' })
  await post(admin, '/xp/rules', { key: 'practice', event_name: 'practised', base_xp: 10 }).catch(() => undefined)
  const badge = await post(admin, '/achievements', {
    key: 'first',
    name: 'First',
    xp_reward: 5,
    criteria: { type: 'event_count', event_name: 'practised', target_value: 1 },
  })
  const challenge = await post(admin, '/challenges', {
    name: 'Twice',
    goal_type: 'event_count',
    event_name: 'practised',
    goal_value: 2,
    start_at: new Date(Date.now() - 3600_000).toISOString(),
    end_at: new Date(Date.now() + 3600_000).toISOString(),
  })
  const [user, other] = [await project.user(), await project.user()]
  const [socket, unmoved] = [await connect(user, 'user'), await connect(other, 'user')]
  await post(user, `/client/challenges/${challenge.id}/join`)
  expect(await event(socket, 'challenge.joined')).toEqual({
    id: challenge.id,
    progress: 0,
    goal_value: 2,
    status: 'in_progress',
  })
  await post(user, '/client/events', { event_name: 'practised' })
  expect(await event(socket, 'streak.started')).toEqual({
    key: 'daily',
    status: 'active',
    current_count: 1,
    freezes_remaining: expect.any(Number),
  })
  expect(await event(socket, 'challenge.progress')).toEqual({
    id: challenge.id,
    progress: 1,
    goal_value: 2,
    status: 'in_progress',
  })
  expect(await event(socket, 'achievement.unlocked')).toEqual({
    key: 'first',
    name: 'First',
    icon_url: null,
    xp_reward: 5,
  })
  expect(badge.key).toBe('first')
  expect(await event(socket, 'xp.changed')).toMatchObject({
    total: expect.any(Number),
    amount: expect.any(Number),
    level: 1,
  })
  await post(user, '/client/events', { events: [{ event_name: 'practised' }] })
  expect(await event(socket, 'challenge.completed')).toMatchObject({ progress: 2, status: 'completed' })
  // the same transaction's events came together, and nobody else heard any
  await post(other, '/client/events', { event_name: 'practised' })
  await event(unmoved, 'streak.started')
  expect(unmoved.frames.filter((frame) => frame['event'] === 'streak.started')).toHaveLength(1)
})

test('user: a challenge that is left, and joined again', async () => {
  const challenge = await post(admin, '/challenges', {
    name: 'Thrice',
    goal_type: 'event_count',
    event_name: 'ran',
    goal_value: 3,
    start_at: new Date(Date.now() - 3600_000).toISOString(),
    end_at: new Date(Date.now() + 3600_000).toISOString(),
  })
  const user = await project.user()
  const socket = await connect(user, 'user')
  const told = async (name: string) => {
    const { id, ...rest } = await event(socket, name)
    expect(id).toBe(challenge.id)
    return rest
  }
  await post(user, `/client/challenges/${challenge.id}/join`)
  expect(await told('challenge.joined')).toEqual({ progress: 0, goal_value: 3, status: 'in_progress' })
  await post(user, `/client/challenges/${challenge.id}/leave`)
  expect(await told('challenge.left')).toEqual({ progress: 0, goal_value: 3, status: 'left' })
  await post(user, `/client/challenges/${challenge.id}/join`)
  expect(await told('challenge.joined')).toEqual({ progress: 0, goal_value: 3, status: 'in_progress' })
  expect(socket.frames.filter((frame) => frame['event'] === 'challenge.progress')).toEqual([])
})

test('user: what comes into the inbox, as the list shows it', async () => {
  const [user, other] = [await project.user(), await project.user()]
  const [socket, unmoved] = [await connect(user, 'user'), await connect(other, 'user')]
  const message = { title: 'Hello', body: 'There is news.', deep_link: 'app://news', data: { n: 1 } }
  await post(admin, '/push/send', { user_ids: [user.id], message })
  await project.drain()
  const item = await event(socket, 'push.inbox')
  expect(item).toMatchObject({ ...message, read_at: null })
  const { body } = await user.get('/client/push/inbox')
  expect(body.data).toEqual([item])
  await post(admin, '/push/send', { user_ids: [other.id], message, inbox: false })
  await post(admin, '/push/send', { user_ids: [other.id], message: { ...message, title: 'Again' } })
  await project.drain()
  expect(await event(unmoved, 'push.inbox')).toMatchObject({ title: 'Again' })
  expect(socket.frames.filter((frame) => frame['event'] === 'push.inbox')).toHaveLength(1)
})

test('user: currencies and entitlements', async () => {
  await post(admin, '/currencies', { code: 'COINS', name: 'Coins' })
  const user = await project.user()
  const socket = await connect(user, 'user')
  await post(project.onBehalfOf(user.id), '/client/currencies/COINS/credit', { amount: 7, reason: 'gift' })
  expect(await event(socket, 'currency.changed')).toEqual({
    currency_code: 'COINS',
    balance: 7,
    amount: 7,
    reason: 'gift',
  })
  await project.sql(
    `insert into app.entitlement_grants (app_user_id, entitlement_id, source, source_ref, store, period_type, purchase_date)
     values ($1, 'pro', 'promotional', 'x', 'promotional', 'lifetime', now())`,
    [user.id],
  )
  expect(await event(socket, 'entitlement.updated')).toMatchObject({ entitlement_id: 'pro', is_active: true })
})

test('user: segments', async () => {
  const segment = await post(admin, '/segments', {
    key: 'buyers',
    name: 'Buyers',
    rules: { source: 'event', event_name: 'bought', measure: 'count', op: 'gte', value: 1 },
  })
  const user = await project.user()
  const socket = await connect(user, 'user')
  await post(user, '/client/events', { event_name: 'bought' })
  await project.drain()
  expect(await event(socket, 'segment.entered')).toEqual({ segment_id: segment.id, key: 'buyers', name: 'Buyers' })
})

test('user: friends, both sides', async () => {
  const [ada, ben] = [await project.user(), await project.user()]
  const [a, b] = [await connect(ada, 'user'), await connect(ben, 'user')]
  await post(ada, '/client/friends/requests', { user_id: ben.id })
  expect(await event(a, 'friend.requested')).toMatchObject({ user: { id: ben.id }, status: 'pending_outgoing' })
  expect(await event(b, 'friend.requested')).toMatchObject({ user: { id: ada.id }, status: 'pending_incoming' })
  await project.sql(
    `update app.friendships set status = 'accepted', responded_at = now() where $1 in (user_a, user_b)`,
    [ada.id],
  )
  expect(await event(a, 'friend.accepted')).toMatchObject({ user: { id: ben.id }, status: 'accepted' })
  expect(await event(b, 'friend.accepted')).toMatchObject({ user: { id: ada.id }, status: 'accepted' })
  expect((await ada.delete(`/client/friends/${ben.id}`)).status).toBe(200)
  expect(await event(b, 'friend.removed')).toMatchObject({ user: { id: ada.id }, status: 'none' })
  await event(a, 'friend.removed')
  // who asked hears nothing of a request that is declined
  await post(ada, '/client/friends/requests', { user_id: ben.id })
  await post(ben, `/client/friends/requests/${ada.id}/decline`)
  expect(await event(b, 'friend.removed')).toMatchObject({ user: { id: ada.id }, status: 'none' })
  await post(ada, '/client/friends/requests', { user_id: (await project.user()).id })
  await event(a, 'friend.requested')
  await event(a, 'friend.requested')
  expect(a.frames.filter((frame) => frame['event'] === 'friend.removed')).toHaveLength(1)
})

test('conversation: messages, reactions, reading, typing, participants; and messages on user', async () => {
  const [ada, ben, eve] = [await project.user(), await project.user(), await project.user()]
  const conversation = await post(ada, '/client/messaging/conversations', {
    participant_ids: [ben.id],
    type: 'group',
    name: 'Us',
  })
  const path = `/client/messaging/conversations/${conversation.id}`
  const channel = `conversation:${conversation.id}`
  const [b, inbox] = [await connect(ben, channel), await connect(ben, 'user')]
  const stranger = await connect(eve)
  expect(await stranger.subscribe(channel)).toMatchObject({ type: 'error', code: 'NOT_A_PARTICIPANT' })
  const message = await post(ada, `${path}/messages`, { body: 'Hello' })
  expect(await event(b, 'message.created')).toEqual(message)
  expect(await event(inbox, 'message.created')).toMatchObject({ id: message.id, body: 'Hello', sender_id: ada.id })
  await post(ada, `${path}/messages/${message.id}/reactions`, { emoji: '+1' })
  expect(await event(b, 'reaction.added')).toEqual({ message_id: message.id, emoji: '+1', user_id: ada.id, count: 1 })
  expect((await ada.delete(`${path}/messages/${message.id}/reactions?emoji=%2B1`)).status).toBe(200)
  expect(await event(b, 'reaction.removed')).toMatchObject({ emoji: '+1', count: 0 })
  await post(ada, `${path}/typing`)
  expect(await event(b, 'typing')).toEqual({ user_id: ada.id })
  await post(ben, `${path}/read`)
  expect(await event(b, 'read')).toEqual({ user_id: ben.id, last_read_at: expect.any(String) })
  const edited = await ada.patch(`${path}/messages/${message.id}`, { body: 'Hello!' })
  expect(edited.status, edited.text).toBe(200)
  expect(await event(b, 'message.updated')).toMatchObject({ id: message.id, body: 'Hello!' })
  await post(ada, `${path}/participants`, { user_id: eve.id })
  expect(await event(b, 'participant.added')).toMatchObject({ user_id: eve.id })
  expect(await stranger.subscribe(channel)).toMatchObject({ type: 'ack' })
  await ada.delete(`${path}/messages/${message.id}`)
  expect(await event(b, 'message.deleted')).toEqual({ id: message.id, conversation_id: conversation.id })
})

test('group: members and entries of its feed, for members alone', async () => {
  const [ada, ben] = [await project.user(), await project.user()]
  const group = await post(ada, '/client/groups', { name: 'Ours', is_public: true })
  const hidden = await post(ada, '/client/groups', { name: 'Hidden', is_public: false })
  const socket = await connect(ada, `group:${group.id}`)
  const stranger = await connect(ben)
  expect(await stranger.subscribe(`group:${group.id}`)).toMatchObject({ type: 'error', code: 'FORBIDDEN' })
  expect(await stranger.subscribe(`group:${hidden.id}`)).toMatchObject({ type: 'error', code: 'NOT_FOUND' })
  await post(admin, `/groups/${group.id}/members`, { app_user_id: ben.id, role: 'member' })
  expect(await event(socket, 'member.joined')).toMatchObject({
    app_user_id: ben.id,
    role: 'member',
    group_id: group.id,
  })
  const entry = await post(ada, '/client/feeds', { action: 'said', group_id: group.id })
  const shown = await socket.next(({ event, payload }) => event === 'feed.created' && payload.action === 'said')
  expect(shown['payload']).toEqual(entry)
  await post(ben, `/client/groups/${group.id}/leave`)
  expect(await event(socket, 'member.left')).toEqual({ user_id: ben.id })
})

test('group: entries by users who are banned, blocked or have blocked the subscriber are not sent to subscribers whose feed omits them', async () => {
  const [ada, ben, cleo, dan] = [await project.user(), await project.user(), await project.user(), await project.user()]
  const group = await post(ada, '/client/groups', { name: 'Ours', is_public: true })
  for (const user of [ben, cleo, dan]) await post(user, `/client/groups/${group.id}/join`)
  const channel = `group:${group.id}`
  const told = await connect(ben)
  const { seq } = await told.subscribe(channel)
  const sockets = [told, await connect(cleo, channel), await connect(dan, channel)]
  await post(ben, `/client/friends/${ada.id}/block`)
  await post(ada, `/client/friends/${cleo.id}/block`)
  const say = async (who: string, action: string) =>
    (await post(admin, '/feeds', { as_user_id: who, action, group_id: group.id })).id as string
  const first = await say(ada.id, 'said')
  await project.sql('update app.users set is_banned = true where id = $1', [ada.id])
  await say(ada.id, 'said')
  const last = await say(dan.id, 'ended')
  const received = async (socket: Socket) => {
    const ids: string[] = []
    while (ids.at(-1) !== last) ids.push((await event(socket, 'feed.created'))['id'])
    return ids
  }
  expect(await Promise.all(sockets.map(received))).toEqual([[last], [last], [first, last]])
  // nor do they hear them again
  const again = await connect(ben)
  await again.subscribe(channel, { since: seq })
  expect(await received(again)).toEqual([last])
})

test('group: what is hidden from a listener is decided when an entry is sent, also again', async () => {
  const [ada, ben, cleo] = [await project.user(), await project.user(), await project.user()]
  const group = await post(ada, '/client/groups', { name: 'Ours', is_public: true })
  for (const user of [ben, cleo]) await post(user, `/client/groups/${group.id}/join`)
  const channel = `group:${group.id}`
  const socket = await connect(ben)
  const { seq } = await socket.subscribe(channel)
  const say = async (who: User, action: string) =>
    void (await post(who, '/client/feeds', { action, group_id: group.id }))
  const received = async (of: Socket) => {
    const actions: string[] = []
    while (actions.at(-1) !== 'ended') actions.push((await event(of, 'feed.created'))['action'])
    return actions
  }
  const again = async () => {
    const other = await connect(ben)
    await other.subscribe(channel, { since: seq })
    const actions = await received(other)
    other.close()
    return actions
  }
  for (const action of ['said', 'liked']) await say(ada, action)
  await say(cleo, 'ended')
  expect(await received(socket)).toEqual(['said', 'liked', 'ended'])
  await project.sql(`update app.users set properties = '{"feed_hidden_actions": ["liked"]}' where id = $1`, [ben.id])
  for (const user of [ada, cleo]) await say(user, 'liked')
  await say(cleo, 'ended')
  expect(await received(socket)).toEqual(['ended'])
  expect(await again()).toEqual(['said', 'ended'])
  await post(ben, `/client/friends/${ada.id}/block`)
  await say(ada, 'said')
  await say(cleo, 'ended')
  expect(await received(socket)).toEqual(['ended'])
  expect(await again()).toEqual(['ended'])
  expect((await ben.delete(`/client/friends/${ada.id}/block`)).status).toBe(200)
  await say(ada, 'said')
  await say(cleo, 'ended')
  expect(await received(socket)).toEqual(['said', 'ended'])
})

test('config: remote config and flags', async () => {
  const socket = await connect(await project.user(), 'config')
  await post(admin, '/config', { key: 'welcome', value: 'Hi', value_type: 'string' })
  expect(await event(socket, 'config.changed')).toEqual({ version_hash: expect.any(String) })
  await post(admin, '/flags', {
    key: 'dark',
    name: 'Dark',
    value_type: 'boolean',
    off_value: false,
    default_value: true,
  })
  expect(await event(socket, 'flags.changed')).toEqual({ keys: ['dark'] })
})

test('leaderboard: the first ten at most once a second, and my own entry', { timeout: 30_000 }, async () => {
  await post(admin, '/leaderboards', { key: 'points', name: 'Points', client_writable: true })
  const [ada, ben] = [await project.user(), await project.user()]
  const [a, b] = [await connect(ada, 'leaderboard:points'), await connect(ben, 'leaderboard:points')]
  // a server looks at the board once a second: the first look is what later ones are compared with
  await expect
    .poll(async () => (await project.sql('select 1 from app.realtime_boards')).length, { timeout: 10_000 })
    .toBe(1)
  const score = (user: User, n: number) => post(user, '/client/leaderboards/points/scores', { score: n })
  await score(ada, 10)
  const top = await event(b, 'top.changed')
  expect(top).toMatchObject({ run_key: expect.any(String), entries: [{ app_user_id: ada.id, score: 10, rank: 1 }] })
  expect(await event(a, 'me.changed')).toMatchObject({ score: 10, rank: 1, previous_rank: null })
  await score(ada, 20)
  expect(await event(a, 'me.changed')).toEqual({ run_key: top['run_key'], score: 20, rank: 1, previous_rank: 1 })
  await score(ben, 30)
  expect(await event(a, 'me.changed')).toEqual({ run_key: top['run_key'], score: 20, rank: 2, previous_rank: 1 })
  expect(b.frames.filter((frame) => frame['event'] === 'me.changed')).toEqual([])
})

test('friends say who of them is online', async () => {
  const [me, on, off] = [await project.user(), await project.user(), await project.user()]
  for (const friend of [on, off]) {
    await post(me, '/client/friends/requests', { user_id: friend.id })
    await post(friend, `/client/friends/requests/${me.id}/accept`)
  }
  const socket = await connect(on)
  const listed = async (query = '') => {
    const { body } = await me.get(`/client/friends${query}`)
    return [body.total, body.data.map((one: any) => [one.user.id, one.online])]
  }
  expect(await listed()).toEqual([
    2,
    [
      [off.id, false],
      [on.id, true],
    ],
  ])
  expect(await listed('?online=true')).toEqual([1, [[on.id, true]]])
  expect(await listed('?online=false')).toEqual([1, [[off.id, false]]])
  expect(await listed('?online=true&offset=1')).toEqual([1, []])
  await socket.close()
  await expect.poll(() => listed('?online=true')).toEqual([0, []])
})
