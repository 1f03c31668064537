import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { openSocket, openSocketOf } from '#test/support/realtime.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

/** Broadcasts, figures and rules for rooms, by administrators. */
const harness = await startHarness()
const project = await harness.project()
const { admin } = project
const connect = (user: User) => openSocketOf(harness, user)
const rooms = (rules: unknown) => admin.put('/realtime/rooms', { rules })

test('a broadcast reaches a channel of any kind, and counts who listens', async () => {
  const [ada, ben] = [await project.user(), await project.user()]
  const [a, b, c] = [await connect(ada), await connect(ada), await connect(ben)]
  for (const socket of [a, b]) await socket.subscribe('user')
  for (const socket of [a, c]) await socket.subscribe('room:hall')
  const broadcast = (channel: string, payload: unknown = {}) =>
    admin.post('/realtime/broadcast', { channel, event: 'notice', payload })
  expect(await broadcast(`user:${ada.id}`, { a: 1 })).toMatchObject({ status: 202, data: { delivered_to: 2 } })
  expect(await broadcast('room:hall')).toMatchObject({ data: { delivered_to: 2 } })
  expect(await broadcast('room:nobody')).toMatchObject({ status: 202, data: { delivered_to: 0 } })
  for (const socket of [a, b])
    expect(await socket.next({ channel: 'user', type: 'event' })).toMatchObject({ event: 'notice', payload: { a: 1 } })
  await c.next({ channel: 'room:hall', type: 'event' })
  for (const channel of ['', 'x', '~a', 'user', 'room:a b', 'x'.repeat(129)])
    expectInvalid(await broadcast(channel), 'channel')
  expectInvalid(await admin.post('/realtime/broadcast', { channel: 'room:a', event: 'a b', payload: 1 }), 'event')
  expectInvalid(await broadcast('room:hall', 'x'.repeat(32_767)), 'payload', '32 KB')
  expect((await broadcast('room:hall', 'x'.repeat(32_766))).status).toBe(202)
  const [act] = await project.sql(
    `select action, changes from app.audit_events where action = 'realtime.broadcast' order by occurred_at limit 1`,
  )
  expect(act).toMatchObject({ changes: { channel: [null, `user:${ada.id}`] } })
})

test('figures say what is open now', async () => {
  const own = await harness.project()
  const none = { connections: 0, users: 0, channels: 0, messages_per_second: 0 }
  expect((await own.admin.get('/realtime/stats')).data).toEqual(none)
  const user = await own.user()
  const sockets = [await openSocketOf(harness, user), await openSocketOf(harness, user)]
  await sockets[0]?.subscribe('room:a')
  await sockets[0]?.ask({ type: 'publish', channel: 'room:a', event: 'e', payload: 1 })
  await sockets[0]?.next({ type: 'event' })
  expect((await own.admin.get('/realtime/stats')).data).toEqual({
    connections: 2,
    users: 1,
    channels: 1,
    messages_per_second: 0.02,
  })
  for (const socket of sockets) await socket.close()
  await expect.poll(async () => (await own.admin.get('/realtime/stats')).data.connections).toBe(0)
  // a server whose lease is over has no connections
  await own.sql(`insert into app.realtime_servers (id, expires_at) values ($1, now() - interval '1 second')`, [
    randomUUID(),
  ])
  expectRefusal(await project.developer.get(`/admin/projects/${randomUUID()}/realtime/stats`), 404, 'NOT_FOUND')
})

test('rules decide who publishes to a room and whether there is presence, at once', async () => {
  await admin.post('/roles', { key: 'host', name: 'Host', permissions: ['a'] })
  const [ada, ben] = [await project.user(), await project.user()]
  const [a, b] = [await connect(ada), await connect(ben)]
  const server = await openSocket(harness.url, project.onBehalfOf(ben.id).headers)
  for (const socket of [a, b, server])
    for (const room of ['stage.1', 'news', 'other']) await socket.subscribe(`room:${room}`)
  const rules = [
    { pattern: 'stage.*', publish: 'role:host', presence: true },
    { pattern: 'news', publish: 'server', presence: false },
    { pattern: '*', publish: 'authenticated', presence: true },
    { pattern: 'other', publish: 'server', presence: false },
  ]
  expect(await rooms(rules)).toMatchObject({ status: 200, data: { rules } })
  await admin.post('/roles/host/assignments', { app_user_id: ada.id })
  const may = async (socket: typeof a, room: string) =>
    (await socket.ask({ type: 'publish', channel: `room:${room}`, event: 'e', payload: 1 }))['type'] === 'ack'
  const present = async (socket: typeof a, room: string) =>
    (await socket.ask({ type: 'presence', channel: `room:${room}`, state: 1 }))['type'] === 'ack'
  expect([await may(a, 'stage.1'), await may(b, 'stage.1'), await may(server, 'stage.1')]).toEqual([true, false, false])
  expect([await may(a, 'news'), await may(b, 'news'), await may(server, 'news')]).toEqual([false, false, true])
  // the first that fits, and a dot is a dot
  expect([await may(b, 'other'), await may(b, 'stagex1')]).toEqual([true, true])
  expect([await present(b, 'stage.1'), await present(b, 'news'), await present(b, 'other')]).toEqual([
    true,
    false,
    true,
  ])
  expect((await rooms([])).data).toEqual({ rules: [] })
  expect([await may(b, 'news'), await may(b, 'stage.1')]).toEqual([true, true])
  const acts = await project.sql(
    `select changes from app.audit_events where action = 'realtime.update' order by occurred_at`,
  )
  expect(acts).toHaveLength(2)
  expect(acts[0]?.['changes']).toEqual({ rules: [[], rules] })
})

test('rules have a form and a limit', async () => {
  const good = { pattern: 'a', publish: 'server', presence: true }
  expect((await rooms(Array(100).fill(good))).data.rules).toHaveLength(100)
  expectInvalid(await rooms(Array(101).fill(good)), 'rules')
  for (const [change, field] of [
    [{ pattern: '' }, 'pattern'],
    [{ pattern: 'a(b' }, 'pattern'],
    [{ pattern: 'x'.repeat(65) }, 'pattern'],
    [{ publish: 'everybody' }, 'publish'],
    [{ publish: 'role:' }, 'publish'],
    [{ presence: 1 }, 'presence'],
    [{ listen: 'server' }, 'listen'],
    [{ listen: 'role:' }, 'listen'],
  ] as const)
    expectInvalid(await rooms([{ ...good, ...change }]), `rules.0.${field}`)
  expectInvalid(await rooms('x'), 'rules')
  expect((await rooms([{ pattern: 'a', publish: 'server' }])).data.rules).toEqual([good])
  const bounded = { ...good, listen: 'role:host' }
  expect((await rooms([bounded])).data.rules).toEqual([bounded])
  await rooms([])
})

test('a rule says who listens, and a private room has one', async () => {
  await admin.post('/roles', { key: 'crew', name: 'Crew', permissions: ['a'] })
  const [ada, ben] = [await project.user(), await project.user()]
  const [a, b] = [await connect(ada), await connect(ben)]
  await admin.post('/roles/crew/assignments', { app_user_id: ada.id })
  const subscribe = (socket: typeof a, room: string, params = {}) =>
    socket.ask({ type: 'subscribe', channel: `room:${room}`, params })
  const refused = { type: 'error', code: 'FORBIDDEN' }
  expect(await subscribe(b, 'deck')).toMatchObject({ type: 'ack' })
  await rooms([{ pattern: 'deck', publish: 'authenticated', listen: 'role:crew' }])
  expect(await subscribe(a, 'deck', { private: true })).toMatchObject({ type: 'ack' })
  // the subscription from before the rule has ended
  await expect
    .poll(() => b.frames.some(({ code, channel }) => code === 'FORBIDDEN' && channel === 'room:deck'))
    .toBe(true)
  expect(await subscribe(b, 'deck')).toMatchObject(refused)
  const publish = { type: 'publish', channel: 'room:deck', event: 'e', payload: 1 }
  expect(await b.ask(publish)).toMatchObject(refused)
  expect(await a.ask(publish)).toMatchObject({ type: 'ack' })
  expect(await subscribe(a, 'galley', { private: true })).toMatchObject(refused)
  expect(await subscribe(a, 'galley', { private: 'x' })).toMatchObject({ type: 'ack' })
  await admin.delete(`/roles/crew/assignments/${ada.id}`)
  await rooms([])
})
