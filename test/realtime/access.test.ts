import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { sha256 } from '#server/secrets.ts'
import { startHarness, type User } from '#test/support/harness.ts'
import { openSocketOf, type Socket } from '#test/support/realtime.ts'

/** Who hears what, and who hears nothing more. */
const harness = await startHarness()
const project = await harness.project()
const { admin } = project
afterEach(() => harness.setTime(null))

const connect = async (user: User, ...channels: string[]) => {
  const socket = await openSocketOf(harness, user)
  for (const channel of channels) expect(await socket.subscribe(channel), channel).toMatchObject({ type: 'ack' })
  expect(await socket.subscribe('room:marker')).toMatchObject({ type: 'ack' })
  return socket
}
const post = async (who: Pick<User, 'post'>, path: string, body: object = {}) => {
  const answer = await who.post(path, body)
  expect(answer.status, answer.text).toBeLessThan(300)
  return answer.data
}
/** Events come in one order: what has not come when a later event has, does not come. */
const eventsOf = async (socket: Socket, channel: string) => {
  const nonce = randomUUID()
  await post(admin, '/realtime/broadcast', { channel: 'room:marker', event: 'marker', payload: nonce })
  await socket.next((frame) => frame['payload'] === nonce)
  return socket.frames.filter((frame) => frame['type'] === 'event' && frame['channel'] === channel)
}
const refusedOn = (socket: Socket, channel: string) => socket.next({ type: 'error', channel, code: 'FORBIDDEN' })
/** In less time than this an end takes effect. */
const within = async <T>(seconds: number, work: Promise<T>): Promise<T> => {
  const began = performance.now()
  const result = await work
  expect(performance.now() - began).toBeLessThan(seconds * 1000)
  return result
}

describe('rows of a collection', () => {
  let made = 0
  const define = async (fields: object) => {
    made += 1
    const name = `things${made}`
    await post(admin, '/collections', {
      name,
      columns: [
        { name: 'title', type: 'text' },
        { name: 'n', type: 'bigint' },
      ],
      ...fields,
    })
    return { name, channel: `collection:${name}`, rows: `/client/collections/${name}` }
  }

  test('reach their owner alone where only owners read', async () => {
    const { channel, rows } = await define({})
    const [ada, ben] = [await project.user(), await project.user()]
    const [a, b] = [await connect(ada, channel), await connect(ben, channel)]
    const row = await post(ada, rows, { title: 'mine', n: 1 })
    expect((await a.next({ event: 'insert' }))['payload']).toEqual({ row })
    const changed = await ada.patch(`${rows}/${row.id}`, { title: 'still mine' })
    expect((await a.next({ event: 'update' }))['payload']).toEqual({ row: changed.data })
    expect((await ada.delete(`${rows}/${row.id}`)).status).toBe(200)
    expect((await a.next({ event: 'delete' }))['payload']).toEqual({ id: row.id })
    expect(await eventsOf(b, channel)).toEqual([])
  })

  test('reach everybody where everybody reads, and nobody where realtime is off', async () => {
    const { name, channel, rows } = await define({ read_policy: 'public' })
    const [ada, ben] = [await project.user(), await project.user()]
    const b = await connect(ben, channel)
    await post(ada, rows, { title: 'for all' })
    expect((await b.next({ event: 'insert' }))['payload'].row.title).toBe('for all')
    expect((await admin.patch(`/collections/${name}`, { realtime: false })).status).toBe(200)
    await within(2, refusedOn(b, channel))
    await post(ada, rows, { title: 'for nobody' })
    expect(await eventsOf(b, channel)).toHaveLength(1)
    expect(await b.subscribe(channel)).toMatchObject({ type: 'error', code: 'FORBIDDEN' })
  })

  test('of a group reach its members, and nobody who has left', async () => {
    const { channel, rows } = await define({
      owner_scope: 'group',
      read_policy: 'member',
      write_policy: 'member:member',
    })
    const [ada, ben, eve] = [await project.user(), await project.user(), await project.user()]
    const group = await post(ada, '/client/groups', { name: 'Ours', is_public: false })
    await post(admin, `/groups/${group.id}/members`, { app_user_id: ben.id, role: 'member' })
    const [b, e] = [await connect(ben, channel), await connect(eve, channel)]
    const inGroup = ada.with({ ...ada.headers, 'x-group-context': group.id })
    await post(inGroup, rows, { title: 'one' })
    expect((await b.next({ event: 'insert' }))['payload'].row.title).toBe('one')
    // who comes in hears what is written from then on, without subscribing again
    await post(admin, `/groups/${group.id}/members`, { app_user_id: eve.id, role: 'viewer' })
    await post(inGroup, rows, { title: 'two' })
    expect((await e.next({ event: 'insert' }))['payload'].row.title).toBe('two')
    await b.next({ event: 'insert' })
    expect((await admin.delete(`/groups/${group.id}/members/${ben.id}`)).status).toBe(200)
    await post(inGroup, rows, { title: 'three' })
    await e.next({ event: 'insert' })
    expect(await eventsOf(b, channel)).toHaveLength(2)
  })

  test('under a role reach those who have it, until it ends by itself', async () => {
    await post(admin, '/roles', { key: 'editor', name: 'Editor', permissions: ['a'] })
    const { channel, rows } = await define({ read_policy: 'role:editor' })
    const [ada, ben] = [await project.user(), await project.user()]
    harness.advance(0)
    const b = await connect(ben)
    expect(await b.subscribe(channel)).toMatchObject({ type: 'error', code: 'FORBIDDEN' })
    await post(admin, '/roles/editor/assignments', { app_user_id: ada.id })
    await post(admin, '/roles/editor/assignments', {
      app_user_id: ben.id,
      expires_at: new Date(harness.now().getTime() + 30_000).toISOString(),
    })
    expect(await b.subscribe(channel)).toMatchObject({ type: 'ack' })
    await post(ada, rows, { title: 'one' })
    await b.next({ event: 'insert' })
    harness.advance(31)
    await within(2, refusedOn(b, channel))
    await post(ada, rows, { title: 'two' })
    expect(await eventsOf(b, channel)).toHaveLength(1)
  })

  test('through a filter: a row that comes into it is an insert, one that leaves it a delete', async () => {
    const { channel, rows } = await define({ read_policy: 'public' })
    const [ada, ben] = [await project.user(), await project.user()]
    const [few, all] = [await connect(ben), await connect(ben, channel)]
    const filter = {
      and: [
        { column: 'n', op: 'gte', value: 10 },
        { column: 'title', op: 'ne', value: 'x' },
      ],
    }
    expect(await few.subscribe(channel, { params: { filter } })).toMatchObject({ type: 'ack' })
    const row = await post(ada, rows, { title: 'a', n: 5 })
    for (const n of [10, 11, 1]) expect((await ada.patch(`${rows}/${row.id}`, { n })).status).toBe(200)
    const told = (await eventsOf(few, channel)).map(({ event, payload }) => [event, payload.row?.n ?? payload.id])
    expect(told).toEqual([
      ['insert', 10],
      ['update', 11],
      ['delete', row.id],
    ])
    expect((await eventsOf(all, channel)).map(({ event }) => event)).toEqual(['insert', 'update', 'update', 'update'])
    // one connection for all: a user has five, and one that was closed counts for a moment longer
    const other = await connect(ben)
    for (const wrong of [
      { column: 'nothing', op: 'eq', value: 1 },
      { column: 'n', op: 'like', value: 'a' },
      { op: 'eq' },
      5,
    ]) {
      expect(await other.subscribe(channel, { params: { filter: wrong } }), JSON.stringify(wrong)).toMatchObject({
        type: 'error',
        code: expect.stringMatching(/^INVALID_/),
      })
    }
  })

  test('follow a change of the read policy', async () => {
    const { name, channel, rows } = await define({ read_policy: 'public' })
    const [ada, ben] = [await project.user(), await project.user()]
    const b = await connect(ben, channel)
    await post(ada, rows, { title: 'one' })
    await b.next({ event: 'insert' })
    expect((await admin.patch(`/collections/${name}`, { read_policy: 'owner' })).status).toBe(200)
    await post(ada, rows, { title: 'two' })
    await post(ben, rows, { title: 'own' })
    expect((await b.next({ event: 'insert' }))['payload'].row.title).toBe('own')
    expect((await admin.delete(`/collections/${name}?confirm=${name}`)).status).toBe(200)
    await within(2, refusedOn(b, channel))
  })
})

describe('nothing more is heard within a second', () => {
  test('by who left a group, or a conversation', async () => {
    const [ada, ben] = [await project.user(), await project.user()]
    const group = await post(ada, '/client/groups', { name: 'Ours', is_public: true })
    await post(admin, `/groups/${group.id}/members`, { app_user_id: ben.id, role: 'member' })
    const talk = await post(ada, '/client/messaging/conversations', {
      participant_ids: [ben.id],
      type: 'group',
      name: 'Us',
    })
    const [g, c] = [`group:${group.id}`, `conversation:${talk.id}`]
    const [a, b] = [await connect(ada, g, c), await connect(ben, g, c)]
    expect((await admin.delete(`/groups/${group.id}/members/${ben.id}`)).status).toBe(200)
    await within(1, refusedOn(b, g))
    expect((await ada.delete(`/client/messaging/conversations/${talk.id}/participants/${ben.id}`)).status).toBe(200)
    await within(1, refusedOn(b, c))
    await post(ada, `/client/messaging/conversations/${talk.id}/messages`, { body: 'without Ben' })
    await a.next({ event: 'message.created' })
    expect((await eventsOf(b, c)).filter(({ event }) => event === 'message.created')).toEqual([])
  })

  test('of a conversation by who is blocked, either way', async () => {
    for (const blocks of [0, 1]) {
      const users = [await project.user(), await project.user()] as const
      const talk = await post(users[0], '/client/messaging/conversations', { participant_ids: [users[1].id] })
      const channel = `conversation:${talk.id}`
      const sockets = [await connect(users[0], channel), await connect(users[1], channel)]
      await post(users[blocks] as User, `/client/friends/${users[1 - blocks]?.id}/block`)
      for (const socket of sockets) await within(1, refusedOn(socket, channel))
    }
  })

  test('by who is banned, by an administrator or in SQL', async () => {
    for (const ban of [
      (user: User) => project.sql('update app.users set is_banned = true where id = $1', [user.id]),
      (user: User) => admin.patch(`/users/${user.id}`, { is_banned: true }),
    ]) {
      const user = await project.user()
      const socket = await connect(user, 'user')
      await ban(user)
      expect(await within(2, socket.closed)).toBe(4401)
    }
  })

  test('by who has signed out, or is deleted', async () => {
    const [ada, ben] = [await project.user(), await project.user()]
    const [a, b] = [await connect(ada, 'user'), await connect(ben, 'user')]
    await post(ada, '/client/auth/logout', { refresh_token: ada.refreshToken })
    expect(await within(1, a.closed)).toBe(4401)
    await project.sql('delete from app.users where id = $1', [ben.id])
    expect(await within(2, b.closed)).toBe(4401)
  })

  test('by whose token has expired, unless another was sent before', async () => {
    harness.advance(0)
    const [ada, ben] = [await project.user(), await project.user()]
    const [a, b] = [await connect(ada, 'user'), await connect(ben, 'user')]
    harness.advance(3000)
    for (const socket of [a, b]) socket.send({ type: 'ping' })
    // the clock went on by more than a minute without a word of theirs
    const again = [await connect(ada, 'user').catch(() => null), await connect(ben, 'user').catch(() => null)] as const
    const renewed = (await post(ben, '/client/auth/refresh', { refresh_token: ben.refreshToken }))
      .session_token as string
    expect(await again[1]?.ask({ type: 'auth', token: renewed })).toMatchObject({ type: 'ack' })
    for (let minutes = 0; minutes < 12; minutes += 1) {
      harness.advance(55)
      for (const socket of again) socket?.send({ type: 'ping' })
      await again[1]?.next({ type: 'pong' })
    }
    expect(await again[0]?.closed).toBe(4401)
    expect(again[1]?.raw.readyState).toBe(1)
    const wrong = await connect(await project.user())
    wrong.send({ type: 'auth', token: renewed })
    expect(await wrong.closed).toBe(4401)
  })

  test('by an app whose key was revoked', async () => {
    const other = await harness.project()
    const user = await other.user()
    const socket = await openSocketOf(harness, user)
    const [key] = await harness.control('select id from app.api_keys where key_hash = $1', [sha256(other.clientKey)])
    const answer = await other.admin.delete(`/api-keys/${key?.['id']}`)
    expect(answer.status, answer.text).toBeLessThan(300)
    expect(await within(2, socket.closed)).toBe(4401)
  })
})

test('a user who is muted publishes to no room', async () => {
  const user = await project.user()
  const socket = await connect(user, 'room:muted')
  await project.sql(`update app.users set muted_until = now() + interval '1 hour' where id = $1`, [user.id])
  expect(await socket.ask({ type: 'publish', channel: 'room:muted', event: 'e', payload: 1 })).toMatchObject({
    code: 'USER_MUTED',
  })
})

test('a project hears nothing of another', async () => {
  const other = await harness.project()
  const [here, there] = [
    await connect(await project.user(), 'room:same'),
    await openSocketOf(harness, await other.user()),
  ]
  await there.subscribe('room:same')
  await there.ask({ type: 'publish', channel: 'room:same', event: 'e', payload: 1 })
  await there.next({ type: 'event' })
  expect(await eventsOf(here, 'room:same')).toEqual([])
})
