import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { get, type IncomingMessage } from 'node:http'
import type { Socket as NetSocket } from 'node:net'
import { EventSource } from 'eventsource'
import pg from 'pg'
import { afterEach, describe, expect, inject, onTestFinished, test } from 'vitest'
import { limits } from '#server/realtime/protocol.ts'
import { startHarness, type User } from '#test/support/harness.ts'
import { openSocket, openSocketOf, type Socket } from '#test/support/realtime.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startSecond } from '#test/support/second.ts'

/** Nothing is missed and nothing comes twice: replay, streams, several servers. */
const harness = await startHarness()
const project = await harness.project()
const { admin } = project
afterEach(() => harness.setTime(null))

const connect = (user: User) => openSocketOf(harness, user)
const publish = async (channel: string, payload: unknown) => {
  const answer = await admin.post('/realtime/broadcast', { channel, event: 'e', payload })
  expect(answer.status, answer.text).toBe(202)
  return answer.data as { delivered_to: number }
}
const payloads = (socket: Socket) => socket.frames.filter(({ type }) => type === 'event').map(({ payload }) => payload)
const untilPayload = (socket: Socket, payload: unknown) => socket.next((frame) => frame['payload'] === payload)

describe('since', () => {
  test('replays what was missed, and then what comes', async () => {
    const user = await project.user()
    const channel = `room:${randomUUID()}`
    const first = await connect(user)
    const { seq } = await first.subscribe(channel)
    await publish(channel, 1)
    await publish(channel, 2)
    const last = await untilPayload(first, 2)
    expect(last['seq']).toBe(seq + 2)
    await first.close()
    // nobody listens now: what is published in the next minutes is kept all the same
    for (const n of [3, 4, 5]) await publish(channel, n)
    const second = await connect(user)
    expect(await second.subscribe(channel, { since: last['seq'] })).toMatchObject({ type: 'ack' })
    await publish(channel, 6)
    await untilPayload(second, 6)
    expect(payloads(second)).toEqual([3, 4, 5, 6])
    expect(second.frames.filter(({ type }) => type === 'resync')).toEqual([])
  })

  test('that is too long ago, or was never, is a resync', async () => {
    harness.advance(0)
    const user = await project.user()
    const channel = `room:${randomUUID()}`
    const first = await connect(user)
    const { seq } = await first.subscribe(channel)
    await publish(channel, 1)
    await untilPayload(first, 1)
    for (const since of [0, seq - 1, seq + 1000]) {
      const socket = await connect(user)
      await socket.subscribe(channel, { since })
      expect(await socket.next({ type: 'resync' }), String(since)).toEqual({ type: 'resync', channel })
      await socket.close()
    }
    // after ten minutes an event is forgotten
    harness.advance(601)
    expect(await first.closed).toBe(4408)
    await project.sql('select internal.purge__realtime()')
    const late = await connect(await project.user())
    await late.subscribe(channel, { since: seq })
    expect(await late.next({ type: 'resync' })).toEqual({ type: 'resync', channel })
  })

  test('keeps the last thousand of a channel', async () => {
    const user = await project.user()
    const channel = `room:${randomUUID()}`
    const first = await connect(user)
    const { seq } = await first.subscribe(channel)
    await project.sql(`select internal.publish($1, 'e', to_json(n)) from generate_series(1, 1500) n`, [channel])
    await untilPayload(first, 1500)
    expect(payloads(first)).toEqual(Array.from({ length: 1500 }, (_, n) => n + 1))
    const socket = await connect(user)
    await socket.subscribe(channel, { since: seq + 500 })
    await untilPayload(socket, 1500)
    expect(payloads(socket)).toHaveLength(1000)
    const late = await connect(user)
    await late.subscribe(channel, { since: seq + 499 })
    await late.next({ type: 'resync' })
    expect(await project.sql('select internal.purge__realtime()')).toHaveLength(1)
    expect(
      (await project.sql('select count(*)::int as n from app.realtime_events where channel = $1', [channel]))[0].n,
    ).toBe(1000)
  })

  test('a large transaction is numbered in parts, each in a call of its own', async () => {
    const own = await harness.project()
    await own.sql(`select api.realtime_heartbeat($1, '{}')`, [randomUUID()])
    await own.sql(`select internal.realtime_listen('room:a', false)`)
    await own.sql(`select internal.publish('room:a', 'e', to_json(n)) from generate_series(1, 10500) n`)
    const tail = async () =>
      (await own.sql(`select (api.realtime_tail(gen_random_uuid(), 0)).body -> 'data' as tail`))[0].tail
    expect((await tail()).is_over).toBe(false)
    expect((await own.sql('select count(*)::int as n from app.realtime_publications'))[0].n).toBe(500)
    await tail()
    expect((await own.sql('select count(*)::int as n from app.realtime_publications'))[0].n).toBe(0)
  })

  test('of more than two megabytes is a resync, of less a replay', async () => {
    const user = await project.user()
    const channel = `room:${randomUUID()}`
    const first = await connect(user)
    const { seq } = await first.subscribe(channel)
    await first.close()
    const fill = (count: number) =>
      project.sql(`select internal.publish($1, 'e', to_json(repeat('x', 30000))) from generate_series(1, $2)`, [
        channel,
        count,
      ])
    await fill(65)
    const second = await connect(user)
    await second.subscribe(channel, { since: seq })
    await second.next(({ seq: last }) => last === seq + 65)
    expect([payloads(second).length, second.frames.filter(({ type }) => type === 'resync')]).toEqual([65, []])
    await second.close()
    await fill(10)
    const third = await connect(user)
    const ack = await third.subscribe(channel, { since: seq })
    expect(await third.next({ type: 'resync' })).toEqual({ type: 'resync', channel })
    expect(payloads(third)).toEqual([])
    // and goes on from what the ack says
    await publish(channel, 'later')
    expect((await untilPayload(third, 'later'))['seq']).toBeGreaterThan(ack['seq'])
  })

  test('is a resync when Postgres has lost its unlogged tables, and open connections begin anew', async () => {
    const own = await harness.project()
    const user = await own.user()
    const socket = await openSocketOf(harness, user)
    const { seq } = await socket.subscribe('room:a')
    await own.sql(
      `truncate app.realtime_servers, app.realtime_connections, app.realtime_readers, app.realtime_channels, app.realtime_publications, app.realtime_events, app.realtime_presences restart identity`,
    )
    expect(await socket.closed).toBe(1012)
    const again = await openSocketOf(harness, user)
    await again.subscribe('room:a', { since: seq })
    await again.next({ type: 'resync' })
  })
})

/** A connection as the owner, in a transaction: it publishes past the server, so nobody wakes it. */
const openOwner = async () => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  const client = new pg.Client({ connectionString: url.href, options: '-c role=trellis_owner' })
  await client.connect()
  await client.query('begin')
  onTestFinished(() => client.end())
  return client
}

test('a subscription is acknowledged when every transaction has ended that may have published nothing because nobody listened', async () => {
  const socket = await connect(await project.user())
  await socket.subscribe('room:marker')
  const channel = `room:${randomUUID()}`
  const writer = await openOwner()
  await writer.query(`select pg_current_xact_id(), internal.publish($1, 'e', '1')`, [channel])
  const ack = socket.subscribe(channel)
  await expect
    .poll(() => project.sql('select 1 from app.realtime_channels where channel = $1', [channel]))
    .toHaveLength(1)
  await publish('room:marker', 'begun')
  await untilPayload(socket, 'begun')
  expect(socket.frames.filter((frame) => frame['channel'] === channel)).toEqual([])
  await writer.query('commit')
  expect(await ack).toMatchObject({ type: 'ack' })
})

test('events of a transaction that commits late get later numbers than those of one that began after it', async () => {
  const user = await project.user()
  const channel = `room:${randomUUID()}`
  const socket = await connect(user)
  const { seq } = await socket.subscribe(channel)
  const early = await openOwner()
  await early.query(`select internal.publish($1, 'e', '"early"')`, [channel])
  await publish(channel, 'late')
  expect(await untilPayload(socket, 'late')).toMatchObject({ seq: seq + 1 })
  await early.query('commit')
  expect(await untilPayload(socket, 'early')).toMatchObject({ seq: seq + 2 })
})

test('writers of one channel do not wait for each other, nor for who numbers', async () => {
  const user = await project.user()
  const channel = `room:${randomUUID()}`
  const socket = await connect(user)
  await socket.subscribe(channel)
  const open = await Promise.all(Array.from({ length: 5 }, () => openOwner()))
  for (const [n, client] of open.entries())
    await client.query(`select internal.publish($1, 'e', to_json($2::int))`, [channel, n])
  for (const client of open.toReversed()) await client.query('commit')
  for (const n of [0, 1, 2, 3, 4]) expect(await untilPayload(socket, n)).toMatchObject({ channel, event: 'e' })
})

test('a project that nobody listens to writes no row', async () => {
  const own = await harness.project()
  await own.admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'practised' })
  const user = await own.user()
  await own.sql(
    `create function internal.probe() returns trigger language plpgsql as 'begin raise exception ''a row was written''; end'`,
  )
  await own.sql(
    'create trigger probe before insert on app.realtime_publications for each row execute function internal.probe()',
  )
  expect((await user.post('/client/events', { event_name: 'practised' })).status).toBe(201)
  expect((await own.sql('select internal.has_subscribers() as subscribed'))[0].subscribed).toBe(false)
  // heard, but not of this user: nothing is written for others
  const other = await own.user()
  const socket = await openSocketOf(harness, other)
  await socket.subscribe('user')
  expect((await own.sql('select internal.has_subscribers() as subscribed'))[0].subscribed).toBe(true)
  expect((await user.post('/client/events', { events: [{ event_name: 'practised' }] })).status).toBe(201)
  await own.sql('drop trigger probe on app.realtime_publications')
})

describe('a stream of server-sent events', () => {
  const source = (user: User, query: string, headers: Record<string, string> = {}) => {
    const made = new EventSource(`${harness.url}/v1/client/realtime/stream?${query}`, {
      fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, ...user.headers, ...headers } }),
    })
    onTestFinished(() => made.close())
    const events: { type: string; id: string; data: any }[] = []
    const waiting: (() => void)[] = []
    for (const type of ['ack', 'e', 'resync', 'presence', 'error', 'message.created'])
      made.addEventListener(type, (event) => {
        if (typeof event.data !== 'string') return
        events.push({ type, id: event.lastEventId, data: JSON.parse(event.data) })
        for (const resolve of waiting.splice(0)) resolve()
      })
    const until = async (fits: (event: (typeof events)[number]) => boolean): Promise<(typeof events)[number]> => {
      for (;;) {
        const found = events.find(fits)
        if (found) return found
        await new Promise<void>((resolve) => waiting.push(resolve))
      }
    }
    return { made, events, until }
  }

  test('has the same frames, and goes on after its last id', async () => {
    const user = await project.user()
    const [a, b] = [`room:${randomUUID()}`, `room:${randomUUID()}`]
    const first = source(user, `channels=${a},${b}`)
    await first.until(({ type, data }) => type === 'ack' && data.channel === b)
    await publish(a, 1)
    await publish(b, 2)
    const event = await first.until(({ data }) => data.payload === 2)
    expect(event.data).toMatchObject({ type: 'event', channel: b, event: 'e', payload: 2, seq: expect.any(Number) })
    expect(event.id).toMatch(new RegExp(`^${a}=\\d+,${b}=${event.data.seq}$`))
    first.made.close()
    await publish(a, 3)
    const second = source(user, `channels=${a},${b}&since=${encodeURIComponent(event.id)}`)
    await second.until(({ data }) => data.payload === 3)
    expect(second.events.filter(({ type }) => type === 'e').map(({ data }) => data.payload)).toEqual([3])
    const third = source(user, `channels=${a},${b}`, { 'last-event-id': event.id })
    await third.until(({ data }) => data.payload === 3)
    // a JSON text that a DBA has written on several lines
    await project.sql(`select internal.publish($1, 'e', E'{"a":\\r4,\\r\\n"b":\\n5}'::json)`, [a])
    await third.until(({ data }) => data.payload?.a === 4 && data.payload.b === 5)
  })

  test('is refused as a whole for a channel that the user may not listen to', async () => {
    const [user, other] = [await project.user(), await project.user()]
    const group = (await other.post('/client/groups', { name: 'Theirs', is_public: true })).data
    const hidden = (await other.post('/client/groups', { name: 'Hidden', is_public: false })).data
    const talk = (await other.post('/client/messaging/conversations', { participant_ids: [(await project.user()).id] }))
      .data
    const listen = (query: string) => user.get(`/client/realtime/stream?${query}`)
    expectRefusal(await listen(`channels=user,group:${group.id}`), 403, 'FORBIDDEN')
    expectRefusal(await listen(`channels=conversation:${talk.id}`), 403, 'NOT_A_PARTICIPANT')
    expectRefusal(await listen(`channels=group:${hidden.id}`), 404, 'NOT_FOUND')
    expectRefusal(await listen(`channels=conversation:${randomUUID()}`), 404, 'CONVERSATION_NOT_FOUND')
    expectRefusal(await listen('channels=collection:nothing'), 404, 'COLLECTION_NOT_FOUND')
    expectRefusal(await listen('channels='), 400, 'INVALID_INPUT', 'channels')
    expectRefusal(await listen('channels=user&since=x'), 400, 'INVALID_INPUT', 'since')
    const direct = (await user.post('/client/messaging/conversations', { participant_ids: [other.id] })).data
    await other.post(`/client/friends/${user.id}/block`)
    expectRefusal(await listen(`channels=conversation:${direct.id}`), 404, 'USER_NOT_FOUND')
    expect(
      await project
        .sql('select 1 from app.realtime_connections where app_user_id = $1', [user.id])
        .then((rows) => rows.length),
    ).toBeLessThan(2)
  })

  test('ends with the session, and opens with a ticket', async () => {
    const user = await project.user()
    const { ticket } = (await user.post('/client/realtime/tickets')).data
    const response = await fetch(`${harness.url}/v1/client/realtime/stream?channels=user&ticket=${ticket}`)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    await user.post('/client/auth/logout', { refresh_token: user.refreshToken })
    expect(await response.text()).toMatch(/^id: user=\d+\nevent: ack\n/)
    expectRefusal(await user.get(`/client/realtime/stream?channels=user&ticket=${ticket}`), 401, 'UNAUTHORIZED')
  })

  test('a HEAD request opens none', async () => {
    const user = await project.user()
    const response = await fetch(`${harness.url}/v1/client/realtime/stream?channels=user`, {
      method: 'HEAD',
      headers: user.headers,
    })
    expect(response.status).toBe(200)
    await expect
      .poll(() => project.sql('select 1 from app.realtime_connections where app_user_id = $1', [user.id]))
      .toEqual([])
  })
})

describe('two servers', () => {
  test('carry what the other publishes, and count connections and listeners together', async () => {
    const second = await startSecond(harness)
    const user = await project.user()
    const channel = `room:${randomUUID()}`
    const here = await connect(user)
    const there = await openSocket(second.running.services.publicUrl, user.headers)
    const ack = await here.subscribe(channel)
    await there.subscribe(channel)
    await here.ask({ type: 'publish', channel, event: 'e', payload: 'from here' })
    await there.ask({ type: 'publish', channel, event: 'e', payload: 'from there' })
    for (const socket of [here, there]) {
      expect(await untilPayload(socket, 'from here')).toMatchObject({ seq: ack['seq'] + 1 })
      expect(await untilPayload(socket, 'from there')).toMatchObject({ seq: ack['seq'] + 2 })
    }
    await here.ask({ type: 'presence', channel, state: 1 })
    expect((await there.next((frame) => frame['joins']?.length > 0))['joins']).toEqual([{ user_id: user.id, state: 1 }])
    for (let n = 0; n < 3; n += 1) await openSocket(second.running.services.publicUrl, user.headers)
    await expect(connect(user)).rejects.toMatchObject({ status: 429 })
    expect((await admin.get('/realtime/stats')).data).toMatchObject({
      connections: expect.any(Number),
      users: expect.any(Number),
    })
    await second.running.stop()
    expect(await there.closed).toBe(1012)
    // what the stopped server held is gone
    expect(
      (
        await project.sql('select count(*)::int as n from app.realtime_connections where app_user_id = $1', [user.id])
      )[0].n,
    ).toBe(1)
  })

  test('one that is killed is forgotten when its lease ends: who was present by it leaves', async () => {
    harness.advance(0)
    const [ada, ben] = [await project.user(), await project.user()]
    const channel = `room:${randomUUID()}`
    const socket = await connect(ada)
    await socket.subscribe(channel)
    const server = randomUUID()
    await project.sql(`insert into app.realtime_servers (id, expires_at) values ($1, $2)`, [
      server,
      new Date(harness.now().getTime() + 30_000),
    ])
    const [held] = await project.sql(
      `insert into app.realtime_connections (id, server_id, app_user_id) values ($1, $2, $3) returning id`,
      [randomUUID(), server, ben.id],
    )
    await project.sql(
      `insert into app.realtime_presences (channel, connection_id, app_user_id, state) values ($1, $2, $3, '1')`,
      [channel, held?.['id'], ben.id],
    )
    harness.advance(31)
    await project.sql(`select set_config('app.clock', $1, false), api.realtime_heartbeat($2, '{}')`, [
      harness.now().toISOString(),
      harness.running.services.realtime.serverId,
    ])
    expect((await socket.next((frame) => frame['leaves']?.length > 0))['leaves']).toEqual([
      { user_id: ben.id, state: null },
    ])
  })
})

/** What clients that do not read hold of this process: the unsent bytes of each connection that it accepts from now on, and the most that one had. */
const watchUnsent = () => {
  const accepted: NetSocket[] = []
  let most = 0
  const accept = (message: unknown) => void accepted.push((message as { socket: NetSocket }).socket)
  subscribe('net.server.socket', accept)
  const look = () => {
    for (const { writableLength } of accepted) most = Math.max(most, writableLength)
  }
  const timer = setInterval(look, 1)
  onTestFinished(() => {
    clearInterval(timer)
    unsubscribe('net.server.socket', accept)
  })
  return {
    /** What all hold now. */
    held: () => accepted.reduce((sum, { writableLength, destroyed }) => sum + (destroyed ? 0 : writableLength), 0),
    most() {
      look()
      return most
    },
  }
}

test('clients that do not read are cut off: they hold some 4 MB each until then and nothing afterwards, and nobody else notices', async () => {
  const unsent = watchUnsent()
  const [slow, quick] = [await project.user(), await project.user()]
  const channel = `room:${randomUUID()}`
  const sockets = await Promise.all([1, 2, 3].map(() => connect(slow)))
  const q = await connect(quick)
  for (const socket of [...sockets, q]) await socket.subscribe(channel)
  for (const { raw } of sockets) raw.pause()
  const stream = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${harness.url}/v1/client/realtime/stream?channels=${channel}`, { headers: slow.headers }, resolve).on(
      'error',
      reject,
    )
  })
  expect(stream.statusCode).toBe(200)
  stream.on('error', () => undefined)
  const ended = new Promise((resolve) => stream.once('close', resolve))
  stream.pause()
  // more than the buffers of two sockets and four megabytes hold
  const long = 'x'.repeat(30_000)
  for (let n = 0; n < 600; n += 1) {
    if (n % 100 === 0) await q.subscribe(`room:${randomUUID()}`)
    await project.sql(`select internal.publish($1, 'e', to_json($2::text || $3))`, [channel, long, String(n)])
  }
  await untilPayload(q, `${long}599`)
  expect(payloads(q)).toHaveLength(600)
  await expect
    .poll(() => project.sql('select 1 from app.realtime_connections where app_user_id = $1', [slow.id]))
    .toEqual([])
  // the limit, and one write beyond it
  expect(unsent.most()).toBeGreaterThan(1_000_000)
  expect(unsent.most()).toBeLessThan(limits.unreadBytes + 2 * limits.writeBytes)
  await expect.poll(unsent.held).toBe(0)
  // a full connection takes no close frame: its client sees it break off
  for (const { raw, closed } of sockets) {
    raw.resume()
    expect(await closed).toBe(1006)
  }
  stream.resume()
  await ended
  expect(stream.complete).toBe(false)
})
