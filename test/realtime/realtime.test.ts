import { get } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { startHarness, type User } from '#test/support/harness.ts'
import { openSocket, openSocketOf, Refused, type Socket } from '#test/support/realtime.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** The protocol: connections, frames, limits and close codes. */
const harness = await startHarness()
const project = await harness.project()
const connect = (user: User, query = '') => openSocketOf(harness, user, query)
const listening = async (channel = 'room:lobby') => {
  const user = await project.user()
  const socket = await connect(user)
  const ack = await socket.subscribe(channel)
  return { user, socket, seq: ack['seq'] as number }
}
const publish = (socket: Socket, channel: string, payload: unknown = {}, event = 'hello') =>
  socket.ask({ type: 'publish', channel, event, payload })
afterEach(() => harness.setTime(null))

test('a room carries what one publishes to all who listen, numbered', async () => {
  const [a, b] = [await listening(), await listening()]
  expect(await publish(b.socket, 'room:lobby', { n: 1 })).toEqual({ type: 'ack', ref: 'r2', channel: 'room:lobby' })
  for (const { socket } of [a, b]) {
    expect(await socket.next({ type: 'event' })).toEqual({
      type: 'event',
      channel: 'room:lobby',
      event: 'hello',
      payload: { n: 1 },
      seq: a.seq + 1,
      at: expect.stringMatching(/^\d{4}-.*Z$/),
    })
  }
  await publish(a.socket, 'room:lobby', { n: 2 })
  expect((await b.socket.next({ type: 'event' }))['seq']).toBe(a.seq + 2)
})

test('publications of one client arrive in their order', async () => {
  const { socket } = await listening('room:order')
  for (let n = 0; n < 15; n += 1) socket.send({ type: 'publish', channel: 'room:order', event: 'n', payload: n })
  const seen = []
  for (let n = 0; n < 15; n += 1) seen.push((await socket.next({ type: 'event' }))['payload'])
  expect(seen).toEqual(Array.from({ length: 15 }, (_, n) => n))
})

test('exact numbers pass as they are', async () => {
  const { socket } = await listening('room:numbers')
  socket.send('{"type":"publish","channel":"room:numbers","event":"n","payload":{"text":"a\\nb","n":9007199254740991}}')
  expect((await socket.next({ type: 'event' }))['payload']).toEqual({ text: 'a\nb', n: 9007199254740991 })
})

test('a channel is left by unsubscribe, and may be listened to again', async () => {
  const { socket } = await listening('room:left')
  await socket.subscribe('room:marker')
  expect(await socket.ask({ type: 'unsubscribe', channel: 'room:left' })).toMatchObject({ type: 'ack' })
  await publish(socket, 'room:left')
  await publish(socket, 'room:marker')
  await socket.next({ channel: 'room:marker', type: 'event' })
  expect(socket.frames.filter((frame) => frame['type'] === 'event').map((frame) => frame['channel'])).toEqual([
    'room:marker',
  ])
  expect(await socket.subscribe('room:left')).toMatchObject({ type: 'ack' })
  expect(await socket.subscribe('room:left')).toMatchObject({ type: 'error', code: 'CONFLICT', channel: 'room:left' })
})

test('ping is answered', async () => {
  const { socket } = await listening()
  socket.send({ type: 'ping' })
  expect(await socket.next({ type: 'pong' })).toEqual({ type: 'pong' })
})

describe('before the upgrade', () => {
  test('a request without credentials, or with wrong ones, is refused as any other', async () => {
    for (const headers of [{}, { 'x-api-key': project.clientKey }, { 'x-api-key': 'no', authorization: 'Bearer no' }]) {
      const refused = await openSocket(harness.url, headers as never).catch((error: unknown) => error)
      expect(refused).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } })
    }
    harness.advance(3601)
    const user = await project.user()
    harness.advance(3601)
    expect(await connect(user).catch((error: unknown) => error)).toMatchObject({
      status: 401,
      body: { error: { code: 'TOKEN_EXPIRED' } },
    })
  })

  test('plain HTTP is refused with 426 and the header Upgrade', async () => {
    const user = await project.user()
    const answer = await user.get('/client/realtime')
    expectRefusal(answer, 426, 'UPGRADE_REQUIRED')
    // and so is a handshake that is none
    const shaken = (user: User, changed: Record<string, string>) =>
      new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
        const request = get(`${harness.url}/v1/client/realtime`, {
          headers: {
            ...user.headers,
            connection: 'Upgrade',
            upgrade: 'websocket',
            'sec-websocket-version': '13',
            'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
            ...changed,
          },
        })
        request.on('error', reject)
        request.on('response', (response) => {
          let text = ''
          response.on('data', (part) => {
            text += String(part)
          })
          response.on('end', () => resolve({ status: response.statusCode, text }))
        })
      })
    const guest = await project.user()
    const [badKey, badVersion] = [
      await shaken(guest, { 'sec-websocket-key': 'short' }),
      await shaken(guest, { 'sec-websocket-version': '7' }),
    ]
    expect([badKey.status, JSON.parse(badKey.text).error.code]).toEqual([400, 'INVALID_INPUT'])
    expect([badVersion.status, JSON.parse(badVersion.text).error.code]).toEqual([426, 'UPGRADE_REQUIRED'])
    expect(answer.headers.get('upgrade')).toBe('websocket')
  })

  test('a sixth connection of a user is refused, and accepted when one of the five has gone', async () => {
    const user = await project.user()
    const opened = await Promise.allSettled(Array.from({ length: 9 }, () => connect(user)))
    const refused = opened.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    expect(refused).toHaveLength(4)
    for (const one of refused)
      expect(one).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED', details: { limit: 5 } } } })
    expect(refused[0]).toBeInstanceOf(Refused)
    // what is closed makes room at once: for the next one, and for five
    let held = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    for (let round = 0; round < 5; round += 1) {
      const [first, ...others] = held as [Socket, ...Socket[]]
      await first.close()
      held = [...others, await connect(user)]
    }
    await Promise.all(held.map((one) => one.close()))
    held = await Promise.all(held.map(() => connect(user)))
    held[0]?.raw.terminate()
    await held[0]?.closed
    await connect(user)
    expect(await connect(user).catch((error: unknown) => error)).toMatchObject({ status: 429 })
  })

  test('a server key connects on behalf of a user', async () => {
    const user = await project.user()
    const socket = await openSocket(harness.url, project.onBehalfOf(user.id).headers)
    expect(await socket.subscribe('user')).toMatchObject({ type: 'ack' })
    const unknown = await openSocket(
      harness.url,
      project.onBehalfOf('00000000-0000-7000-8000-000000000000').headers,
    ).catch((error: unknown) => error)
    expect(unknown).toMatchObject({ status: 404, body: { error: { code: 'USER_NOT_FOUND' } } })
  })
})

describe('tickets', () => {
  const ticketOf = async (user: User) => (await user.post('/client/realtime/tickets')).data.ticket as string

  test('a ticket opens one connection, without any header', async () => {
    const user = await project.user()
    const answer = await user.post('/client/realtime/tickets')
    expect([answer.status, answer.data]).toEqual([201, { ticket: expect.stringMatching(/^svc_rt_/), expires_in: 60 }])
    const query = `?ticket=${answer.data.ticket}`
    const attempts = await Promise.allSettled(Array.from({ length: 4 }, () => openSocket(harness.url, {}, query)))
    const opened = attempts.filter(({ status }) => status === 'fulfilled')
    expect(opened).toHaveLength(1)
    const [socket] = opened.map((one) => (one as PromiseFulfilledResult<Socket>).value)
    expect(await socket?.subscribe('user')).toMatchObject({ type: 'ack' })
    for (const one of attempts.filter(({ status }) => status === 'rejected'))
      expect((one as PromiseRejectedResult).reason).toMatchObject({
        status: 401,
        body: { error: { code: 'UNAUTHORIZED' } },
      })
  })

  test('a ticket ends after a minute, and one of another form is none', async () => {
    const user = await project.user()
    harness.advance(0)
    const old = await ticketOf(user)
    harness.advance(61)
    for (const ticket of [
      old,
      'x',
      `svc_rt_${'0'.repeat(32)}_${'a'.repeat(43)}`,
      old.replace(/.{43}$/, 'a'.repeat(43)),
    ]) {
      const refused = await openSocket(harness.url, {}, `?ticket=${ticket}`).catch((error: unknown) => error)
      expect(refused).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } })
    }
  })

  test('a server key gets none', async () => {
    const user = await project.user()
    expectRefusal(await project.onBehalfOf(user.id).post('/client/realtime/tickets'), 403, 'SESSION_REQUIRED')
  })

  test('the connection of a ticket ends with the session that asked for it', async () => {
    const user = await project.user()
    const socket = await openSocket(harness.url, {}, `?ticket=${await ticketOf(user)}`)
    await user.post('/client/auth/logout', { refresh_token: user.refreshToken })
    expect(await socket.closed).toBe(4401)
  })
})

describe('limits', () => {
  test('what is no frame closes with 4400', async () => {
    for (const bad of [
      '{',
      '[]',
      '{"type":"dance"}',
      '{"type":"subscribe"}',
      '{"type":"publish","channel":"room:a","event":"a b","payload":1}',
      '"x"',
    ]) {
      const { socket } = await listening()
      socket.send(bad)
      expect(await socket.closed, bad).toBe(4400)
    }
    const { socket } = await listening()
    socket.raw.send(Buffer.from('{"type":"ping"}'))
    expect(await socket.closed).toBe(4400)
  })

  test('a frame longer than a quarter of a megabyte closes as RFC 6455 says', async () => {
    const { socket } = await listening()
    socket.send({ type: 'publish', channel: 'room:lobby', event: 'e', payload: 'x'.repeat(300_000) })
    expect(await socket.closed).toBe(1009)
  })

  test('a payload has at most 32 KB', async () => {
    const { socket } = await listening('room:large')
    const fits = 'x'.repeat(32_766)
    expect(await publish(socket, 'room:large', fits)).toMatchObject({ type: 'ack' })
    expect(await publish(socket, 'room:large', `${fits}x`)).toMatchObject({ type: 'error', code: 'PAYLOAD_TOO_LARGE' })
    expect(await socket.ask({ type: 'presence', channel: 'room:large', state: `${fits}x` })).toMatchObject({
      type: 'error',
      code: 'PAYLOAD_TOO_LARGE',
    })
    // with its numbers written out: others would get a megabyte for each of these frames
    const long = `[${Array.from({ length: 100 }, () => '1e999').join()}]`
    socket.send(`{"type":"presence","channel":"room:large","state":${long},"ref":"long"}`)
    expect(await socket.next({ ref: 'long' })).toMatchObject({ type: 'error', code: 'PAYLOAD_TOO_LARGE' })
  })

  test('a user opens at most 1000 rooms in ten minutes that nobody listens to', async () => {
    const [{ socket, user }] = [await listening('room:mine'), await listening('room:known')]
    const counted = await project.sql('update app.rate_limits set count = 999 where key = $1 returning count', [
      `realtime rooms ${user.id}`,
    ])
    expect(counted).toHaveLength(1)
    expect(await socket.subscribe('room:last')).toMatchObject({ type: 'ack' })
    expect(await socket.subscribe('room:beyond')).toMatchObject({ type: 'error', code: 'RATE_LIMITED' })
    for (const channel of ['room:known', 'user', 'config'])
      expect(await socket.subscribe(channel)).toMatchObject({ type: 'ack' })
    expect(await project.sql(`select 1 from app.realtime_channels where channel = 'room:beyond'`)).toEqual([])
    harness.advance(601)
    expect(await (await connect(user)).subscribe('room:beyond')).toMatchObject({ type: 'ack' })
  })

  test('a user holds at most 20 tickets', async () => {
    const user = await project.user()
    const tickets = []
    for (let n = 0; n < 25; n += 1) tickets.push((await user.post('/client/realtime/tickets')).data.ticket as string)
    const held = await project.sql('select count(*)::int as n from app.realtime_tickets where app_user_id = $1', [
      user.id,
    ])
    expect(held).toEqual([{ n: 20 }])
    await (await openSocket(harness.url, {}, `?ticket=${tickets[24]}`)).close()
    await expect(openSocket(harness.url, {}, `?ticket=${tickets[0]}`)).rejects.toThrow('401')
  })

  test('more than 20 publications a second close with 4429', async () => {
    const { socket } = await listening('room:fast')
    for (let n = 0; n < 30; n += 1)
      socket.send({ type: 'publish', channel: 'room:fast', event: 'e', payload: n, ref: n })
    expect(await socket.closed).toBe(4429)
    expect(socket.frames.at(-1)).toMatchObject({ type: 'error', code: 'RATE_LIMITED' })
  })

  test('more than 100 frames a second close with 4429', async () => {
    const { socket } = await listening()
    for (let n = 0; n < 200; n += 1) socket.send({ type: 'ping' })
    expect(await socket.closed).toBe(4429)
  })

  test('a connection listens to at most 100 channels', async () => {
    const user = await project.user()
    const socket = await connect(user)
    const answers = []
    for (let n = 0; n < 101; n += 1) {
      // the hundred frames that a client may send in a second come to an end here
      if (n === 50) harness.advance(1)
      answers.push(await socket.subscribe(`room:n${n}`))
    }
    expect(answers.filter(({ type }) => type === 'ack')).toHaveLength(100)
    expect(answers.at(-1)).toMatchObject({ type: 'error', code: 'LIMIT_REACHED' })
  })

  test('60 seconds without a word close with 4408, and a ping of WebSocket is a word', async () => {
    harness.advance(0)
    const { socket, user } = await listening()
    const other = await connect(user)
    harness.advance(40)
    await new Promise<void>((resolve) => {
      other.raw.once('pong', () => resolve())
      other.raw.ping()
    })
    harness.advance(30)
    expect(await socket.closed).toBe(4408)
    expect(other.raw.readyState).toBe(WebSocket.OPEN)
    other.send({ type: 'ping' })
    await other.next({ type: 'pong' })
  })
})

describe('what may be named', () => {
  test('a channel that is unknown, or is none, is refused and the connection goes on', async () => {
    const { socket } = await listening()
    const wrong = [
      'x',
      'syncs',
      'user:1',
      'config:a',
      'feed:1',
      'room:',
      'room:a b',
      `room:${'x'.repeat(65)}`,
      "room:a'b",
      'collection:nothing',
      'leaderboard:none',
      'conversation:1',
      'group:1',
      'pg_sleep:1',
      'refused',
    ]
    for (const channel of wrong) {
      expect(await socket.subscribe(channel), channel).toMatchObject({
        type: 'error',
        channel,
        code: expect.stringMatching(/NOT_FOUND$/),
      })
    }
    expect(await publish(socket, 'user')).toMatchObject({ type: 'error', code: 'FORBIDDEN' })
    expect(await publish(socket, 'nothing')).toMatchObject({ type: 'error', code: 'NOT_FOUND' })
    expect(await socket.subscribe('room:after')).toMatchObject({ type: 'ack' })
  })
})

describe('presence', () => {
  test('is shown as it is at first, and then as it changes', async () => {
    const [a, b] = [await listening('room:p'), await listening('room:p')]
    expect(await a.socket.next({ type: 'presence' })).toEqual({
      type: 'presence',
      channel: 'room:p',
      state: [],
      joins: [],
      leaves: [],
    })
    await a.socket.ask({ type: 'presence', channel: 'room:p', state: { mood: 'good' } })
    const joined = { user_id: a.user.id, state: { mood: 'good' } }
    expect(await b.socket.next((frame) => frame['type'] === 'presence' && frame['joins'].length > 0)).toEqual({
      type: 'presence',
      channel: 'room:p',
      joins: [joined],
      leaves: [],
    })
    const third = await listening('room:p')
    expect((await third.socket.next({ type: 'presence' }))['state']).toEqual([joined])
    // another connection of the same user: the user has left when both have
    const again = await connect(a.user)
    await again.subscribe('room:p')
    await again.ask({ type: 'presence', channel: 'room:p', state: { mood: 'better' } })
    expect((await b.socket.next((frame) => frame['joins']?.[0]?.state.mood === 'better'))['joins'][0].user_id).toBe(
      a.user.id,
    )
    await again.close()
    await a.socket.ask({ type: 'presence', channel: 'room:p', state: null })
    expect((await b.socket.next((frame) => frame['leaves']?.length > 0))['leaves']).toEqual([
      { user_id: a.user.id, state: null },
    ])
    expect(await project.sql(`select 1 from app.realtime_presences where channel = 'room:p'`)).toEqual([])
  })

  test('of one connection is in at most 100 channels', async () => {
    const { user, socket } = await listening('room:many')
    await project.sql(
      `insert into app.realtime_presences (channel, connection_id, app_user_id, state)
       select 'room:' || n, c.id, c.app_user_id, '1' from app.realtime_connections c, generate_series(1, 99) n where c.app_user_id = $1`,
      [user.id],
    )
    const enter = (channel: string) => socket.ask({ type: 'presence', channel, state: 1 })
    expect(await enter('room:many')).toMatchObject({ type: 'ack' })
    expect(await enter('room:beyond')).toMatchObject({ type: 'error', code: 'LIMIT_REACHED' })
    expect(await enter('room:1')).toMatchObject({ type: 'ack' })
    await socket.ask({ type: 'presence', channel: 'room:many', state: null })
    expect(await enter('room:beyond')).toMatchObject({ type: 'ack' })
  })

  test('ends for who leaves a group, whether or not they listen to it', async () => {
    const [ada, ben, eve] = [await project.user(), await project.user(), await project.user()]
    const group = (await ada.post('/client/groups', { name: 'Ours', is_public: true })).data
    for (const { id } of [ben, eve])
      await project.admin.post(`/groups/${group.id}/members`, { app_user_id: id, role: 'member' })
    const channel = `group:${group.id}`
    const [a, b, e] = [await connect(ada), await connect(ben), await connect(eve)]
    for (const socket of [a, b]) await socket.subscribe(channel)
    // by a name that is written in another way
    await b.ask({ type: 'presence', channel, state: 'here' })
    await e.ask({ type: 'presence', channel: `group:${group.id.toUpperCase()}`, state: 'here' })
    for (const user of [ben, eve]) {
      expect((await user.post(`/client/groups/${group.id}/leave`)).status).toBe(200)
      expect((await a.next((frame) => frame['leaves']?.length > 0))['leaves']).toEqual([
        { user_id: user.id, state: null },
      ])
    }
    expect(await project.sql('select 1 from app.realtime_presences where channel = $1', [channel])).toEqual([])
  })

  test('has no state of who is muted', async () => {
    const { user, socket } = await listening('room:muted')
    await project.sql('update app.users set muted_until = now() + $1::interval where id = $2', ['1 hour', user.id])
    expect(await socket.ask({ type: 'presence', channel: 'room:muted', state: 'said' })).toMatchObject({
      type: 'error',
      code: 'USER_MUTED',
    })
    expect(await socket.ask({ type: 'presence', channel: 'room:muted', state: null })).toMatchObject({ type: 'ack' })
  })

  test('a channel without presence refuses it', async () => {
    const { socket } = await listening('user')
    expect(await socket.ask({ type: 'presence', channel: 'user', state: {} })).toMatchObject({
      type: 'error',
      code: 'FORBIDDEN',
    })
  })
})
