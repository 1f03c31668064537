import { randomUUID } from 'node:crypto'
import { createClient } from '@supabase/supabase-js'
import pg from 'pg'
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import WebSocket from 'ws'
import { readEvent } from '#server/realtime/protocol.ts'
import { createRetention } from '#server/realtime/retention.ts'
import { createTransactions } from '#server/realtime/transactions.ts'
import { startHarness, type User } from '#test/support/harness.ts'
import { holdAnswers } from '#test/support/held_answers.ts'
import { openSocket, openSocketOf, type Socket } from '#test/support/realtime.ts'

/** What commits between the moment in which a subscription is asked for and the moment in which it listens. */
const harness = await startHarness()
const project = await harness.project()
const { admin } = project
await admin.patch('', { rest_enabled: true })

const connect = (user: User) => openSocketOf(harness, user)
const post = async (who: Pick<User, 'post'>, path: string, body: object = {}) => {
  const answer = await who.post(path, body)
  expect(answer.status, answer.text).toBeLessThan(300)
  return answer.data
}
const publish = (channel: string, payload: unknown) =>
  post(admin, '/realtime/broadcast', { channel, event: 'e', payload })
const framesOf = (socket: Socket, channel: string) => socket.frames.filter((frame) => frame['channel'] === channel)
const payloadsOf = (socket: Socket, channel: string) =>
  framesOf(socket, channel)
    .filter(({ type }) => type === 'event')
    .map(({ payload }) => payload)

/** Somebody who listens already: what they have received, this server has handed out. */
const watcher = async (channel: string) => {
  const socket = await connect(await project.user())
  const { seq } = await socket.subscribe(channel)
  const received = (payload: unknown) =>
    socket.next((frame) => JSON.stringify(frame['payload']) === JSON.stringify(payload))
  return { socket, seq: seq as number, received }
}

describe('an event that is handed out while the answer to a subscription is on its way', () => {
  test('reaches the subscriber', async () => {
    const channel = `room:${randomUUID()}`
    const { received } = await watcher(channel)
    const late = await connect(await project.user())
    const held = await holdAnswers(project, 'realtime_subscribe')
    const ack = late.subscribe(channel)
    await held.begun()
    await publish(channel, 1)
    await received(1)
    await held.release()
    await ack
    await publish(channel, 2)
    await late.next((frame) => frame['payload'] === 2)
    expect(payloadsOf(late, channel)).toEqual([1, 2])
  })

  test('comes after what was missed, and once', async () => {
    const channel = `room:${randomUUID()}`
    const { received, seq } = await watcher(channel)
    await publish(channel, 1)
    const late = await connect(await project.user())
    const held = await holdAnswers(project, 'realtime_subscribe')
    const ack = late.subscribe(channel, { since: seq })
    await held.begun()
    await publish(channel, 2)
    await received(2)
    await held.release()
    await ack
    await publish(channel, 3)
    await late.next((frame) => frame['payload'] === 3)
    expect(payloadsOf(late, channel)).toEqual([1, 2, 3])
    expect(late.frames.filter(({ type }) => type === 'resync')).toEqual([])
  })

  test('reaches a stream, and a channel of realtime-js', async () => {
    const name = randomUUID()
    const channel = `room:${name}`
    const { received } = await watcher(channel)
    const user = await project.user()
    const aborted = new AbortController()
    onTestFinished(() => aborted.abort())
    const client = createClient(harness.url, project.clientKey, {
      accessToken: async () => user.sessionToken,
      realtime: { transport: WebSocket as never, reconnectAfterMs: () => 60_000 },
    })
    onTestFinished(async () => {
      await client.removeAllChannels()
      await client.realtime.disconnect()
    })
    await client.realtime.setAuth()
    const came: unknown[] = []
    const held = await holdAnswers(project, 'realtime_subscribe')
    const response = fetch(`${harness.url}/v1/client/realtime/stream?channels=${channel}`, {
      headers: user.headers,
      signal: aborted.signal,
    })
    const joined = new Promise((resolve) =>
      client
        .channel(name)
        .on('broadcast', { event: 'e' }, ({ payload }) => came.push(payload['n']))
        .subscribe(resolve),
    )
    await held.begun()
    await expect
      .poll(
        async () => (await project.sql(`select 1 from pg_locks where locktype = 'advisory' and not granted`)).length,
      )
      .toBe(2)
    await publish(channel, { n: 1 })
    await received({ n: 1 })
    await held.release()
    expect(await joined).toBe('SUBSCRIBED')
    await publish(channel, { n: 2 })
    await expect.poll(() => came).toEqual([1, 2])
    let text = ''
    const decoder = new TextDecoder()
    for await (const part of (await response).body ?? []) {
      text += decoder.decode(part as Uint8Array)
      if (text.includes('{"n": 2}') || text.includes('{"n":2}')) break
    }
    expect([...text.matchAll(/"n": ?(\d)/g)].map(([, n]) => n)).toEqual(['1', '2'])
  })

  test('is asked for again when more was handed out than is kept', () => {
    const event = (channel: string, seq: number) => readEvent([channel, seq, 'e', '1', null, ''])
    const retention = createRetention(2)
    retention.add([event('a', 1)])
    const first = retention.retain()
    expect(first.eventsOf('a')).toEqual([])
    retention.add([event('a', 2), event('b', 1)])
    const second = retention.retain()
    expect(first.eventsOf('a')).toMatchObject([{ seq: 2 }])
    retention.add([event('a', 3)])
    expect(first.eventsOf('a')).toBe(null)
    expect(second.eventsOf('a')).toMatchObject([{ seq: 3 }])
    first.end()
    expect(second.eventsOf('a')).toMatchObject([{ seq: 3 }])
    second.end()
    retention.add([event('a', 4)])
    expect(retention.retain().eventsOf('a')).toEqual([])
  })
})

test('listeners that come and go beside a writer miss nothing after their ack', { timeout: 60_000 }, async () => {
  const channel = `room:${randomUUID()}`
  await watcher(channel)
  let isOver = false
  const come = async (n: number) => {
    const socket = await connect(await project.user())
    let since: number | null = null
    const broken: object[] = []
    while (!isOver) {
      // a fast machine sends more frames in a second than a connection may
      harness.advance(0.5)
      const from = socket.frames.length
      const ack = await socket.subscribe(channel, since === null ? {} : { since })
      for (let pings = 0; pings < 3; pings += 1) {
        socket.send({ type: 'ping' })
        await socket.next({ type: 'pong' })
      }
      await socket.ask({ type: 'unsubscribe', channel })
      const seqs = socket.frames.slice(from).flatMap(({ type, seq }) => (type === 'event' ? [seq as number] : []))
      const first: number = since ?? ack['seq']
      if (seqs.some((seq, index) => seq !== first + index + 1)) broken.push({ first, ack: ack['seq'], seqs })
      // half of them go on where they were
      since = n % 2 === 0 ? (seqs.at(-1) ?? first) : null
    }
    return broken
  }
  const listening = [0, 1, 2, 3, 4, 5].map(come)
  for (let n = 0; n < 150; n += 1) await publish(channel, n)
  isOver = true
  expect((await Promise.all(listening)).flat()).toEqual([])
})

describe('a change of rights', () => {
  const define = async (read_policy: string) => {
    const name = `notes${randomUUID().slice(0, 8)}`
    await post(admin, '/collections', { name, read_policy, realtime: true, columns: [{ name: 'n', type: 'bigint' }] })
    return { name, channel: `collection:${name}`, rows: `/client/collections/${name}` }
  }

  test('that is told while the answer to a subscription is on its way holds for it', async () => {
    const { name, channel, rows } = await define('public')
    const { received } = await watcher(channel)
    const [late, other] = [await connect(await project.user()), await project.user()]
    const held = await holdAnswers(project, 'realtime_subscribe')
    const ack = late.subscribe(channel)
    await held.begun()
    expect((await admin.patch(`/collections/${name}`, { read_policy: 'owner' })).status).toBe(200)
    await publish(channel, 'told')
    await received('told')
    await held.release()
    await ack
    await post(other, rows, { n: 1 })
    await publish(channel, 'over')
    await late.next((frame) => frame['payload'] === 'over')
    expect(payloadsOf(late, channel)).toEqual(['told', 'over'])
  })

  test('that shows more shows what commits while the subscription is authorised again', async () => {
    const { name, channel, rows } = await define('owner')
    const late = await connect(await project.user())
    const other = await project.user()
    await late.subscribe(channel)
    const room = `room:${randomUUID()}`
    const { received } = await watcher(room)
    const held = await holdAnswers(project, 'realtime_check')
    expect((await admin.patch(`/collections/${name}`, { read_policy: 'public' })).status).toBe(200)
    await held.begun()
    const row = await post(other, rows, { n: 1 })
    await publish(room, 'told')
    await received('told')
    await held.release()
    expect((await late.next({ type: 'event', channel }))['payload'].row.id).toBe(row.id)
  })

  test('a session that ends while its token is being taken over ends the connection', async () => {
    const account = { email: `${randomUUID()}@example.com`, password: 'a long passphrase' }
    const first = await post(project.app, '/client/auth/email/signup', account)
    const second = await post(project.app, '/client/auth/email/login', account)
    const headers = { 'x-api-key': project.clientKey, authorization: `Bearer ${first.session_token}` }
    const socket = await openSocket(harness.url, headers)
    const held = await holdAnswers(project, 'auth_session')
    const ack = socket.ask({ type: 'auth', token: second.session_token }).catch(() => null)
    await held.begun()
    const { sid } = JSON.parse(Buffer.from(second.session_token.split('.')[1], 'base64url').toString())
    await project.sql('update app.user_sessions set ended_at = now() where id = $1', [sid])
    await held.release()
    await ack
    expect(await socket.closed).toBe(4401)
  })
})

describe('a stream that breaks off', () => {
  test('before it has sent what was missed goes on where it was, in all its channels', async () => {
    const user = await project.user()
    const [a, b] = [`room:${randomUUID()}`, `room:${randomUUID()}`]
    const [one, two] = [await watcher(a), await watcher(b)]
    await publish(a, 1)
    await one.received(1)
    const since = `${a}=${one.seq},${b}=${two.seq}`
    const aborted = new AbortController()
    onTestFinished(() => aborted.abort())
    const response = await fetch(
      `${harness.url}/v1/client/realtime/stream?channels=${a},${b}&since=${encodeURIComponent(since)}`,
      { headers: user.headers, signal: aborted.signal },
    )
    let text = ''
    for await (const part of response.body ?? []) {
      text += new TextDecoder().decode(part as Uint8Array)
      if (text.split('event: ack').length === 3) break
    }
    expect(text.split('\n').slice(0, 2)).toEqual([`id: ${since}`, 'event: ack'])
    expect(text).toContain(`id: ${a}=${one.seq + 1},${b}=${two.seq}\nevent: e\n`)
  })

  test('before it has said that events are missing says so again', async () => {
    const user = await project.user()
    const channel = `room:${randomUUID()}`
    const { seq } = await watcher(channel)
    const aborted = new AbortController()
    onTestFinished(() => aborted.abort())
    const response = await fetch(
      `${harness.url}/v1/client/realtime/stream?channels=${channel}&since=${encodeURIComponent(`${channel}=7`)}`,
      { headers: user.headers, signal: aborted.signal },
    )
    let text = ''
    for await (const part of response.body ?? []) {
      text += new TextDecoder().decode(part as Uint8Array)
      if (text.includes('event: resync')) break
    }
    const ids = [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id)
    expect(ids.at(0)).toBe(`${channel}=7`)
    expect(text).toContain(`id: ${channel}=${seq}\nevent: resync`)
  })
})

test('a conversation that is left before the answer to its subscription is there is not listened to', async () => {
  const [ada, ben] = [await project.user(), await project.user()]
  const { id } = await post(ada, '/client/messaging/conversations', { participant_ids: [ben.id] })
  const channel = `conversation:${id}`
  const socket = await connect(ada)
  const held = await holdAnswers(project, 'realtime_subscribe')
  socket.send({ type: 'subscribe', channel })
  await held.begun()
  expect(await socket.ask({ type: 'unsubscribe', channel })).toMatchObject({ type: 'ack' })
  await held.release()
  await expect
    .poll(() => project.sql('select count(*)::int as n from app.realtime_readers where channel = $1', [channel]))
    .toEqual([{ n: 0 }])
  // and one that is listened to again at once is
  await socket.subscribe(channel)
  socket.send({ type: 'unsubscribe', channel })
  expect(await socket.subscribe(channel)).toMatchObject({ type: 'ack' })
  expect(await project.sql('select app_user_id as id from app.realtime_readers where channel = $1', [channel])).toEqual(
    [{ id: ada.id }],
  )
})

describe('the first look at a leaderboard is at the subscription', () => {
  const board = async (users: readonly User[]) => {
    const key = `board-${randomUUID().slice(0, 8)}`
    await post(admin, '/leaderboards', { key, name: 'Board', client_writable: true })
    const score = (user: User, n: number) => post(user, `/client/leaderboards/${key}/scores`, { score: n })
    const listen = async (user: User) => {
      const socket = await connect(user)
      expect(await socket.subscribe(`leaderboard:${key}`)).toMatchObject({ type: 'ack' })
      return socket
    }
    for (const user of users) await score(user, 1)
    return { score, listen }
  }
  const payload = async (socket: Socket, event: string) => (await socket.next({ type: 'event', event }))['payload']

  test('of the board and of the user, also of one that was listened to before', { timeout: 30_000 }, async () => {
    const [ada, ben] = [await project.user(), await project.user()]
    const { score, listen } = await board([ben])
    const first = await listen(ada)
    await score(ada, 10)
    expect(await payload(first, 'top.changed')).toMatchObject({ entries: [{ score: 10 }, { score: 1 }] })
    expect(await payload(first, 'me.changed')).toMatchObject({ score: 10, rank: 1, previous_rank: null })
    // somebody else, of a board that is looked at already
    const second = await listen(ben)
    await score(ben, 20)
    expect(await payload(second, 'me.changed')).toMatchObject({ score: 20, rank: 1, previous_rank: 2 })
    expect(await payload(first, 'me.changed')).toMatchObject({ score: 10, rank: 2, previous_rank: 1 })
    // what changes while nobody listens is no event for who listens later
    await first.close()
    await second.close()
    await expect
      .poll(() => project.sql(`select from app.realtime_readers where channel like 'leaderboard:board-%'`))
      .toEqual([])
    await score(ada, 30)
    const third = await listen(ada)
    await score(ada, 40)
    expect(await payload(third, 'top.changed')).toMatchObject({ entries: [{ score: 40 }, { score: 20 }] })
    expect(await payload(third, 'me.changed')).toMatchObject({ score: 40, rank: 1, previous_rank: 1 })
  })

  test('and takes nothing from who listens already', { timeout: 30_000 }, async () => {
    const ada = await project.user()
    const { score, listen } = await board([])
    const first = await listen(ada)
    await score(ada, 10)
    const second = await listen(ada)
    expect(await payload(first, 'top.changed')).toMatchObject({ entries: [{ score: 10 }] })
    expect(await payload(first, 'me.changed')).toMatchObject({ score: 10 })
    await second.close()
  })
})

/** A transaction that writes in a database, and is over with the test. */
const writingIn = async (database: string) => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${database}`
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('begin; select pg_current_xact_id()')
  return client
}

describe('transactions that may not have heard of a channel', () => {
  test('of other databases delay nobody', async () => {
    const other = await harness.project()
    await writingIn(other.database)
    const began = performance.now()
    const socket = await connect(await project.user())
    expect(await socket.subscribe(`room:${randomUUID()}`)).toMatchObject({ type: 'ack' })
    expect(performance.now() - began).toBeLessThan(5000)
  })

  test('are waited for by all who subscribe meanwhile, not by the first alone', async () => {
    const sockets = [await connect(await project.user()), await connect(await project.user())]
    const channel = `room:${randomUUID()}`
    const writer = await writingIn(project.database)
    const acks = sockets.map((socket) => socket.subscribe(channel))
    await expect
      .poll(() => project.sql('select from app.realtime_channels where channel = $1', [channel]))
      .toHaveLength(1)
    expect(sockets.flatMap((socket) => framesOf(socket, channel))).toEqual([])
    await writer.query('commit')
    for (const ack of acks) expect(await ack).toMatchObject({ type: 'ack' })
  })

  test('that take longer are a resync when they end', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'setImmediate', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    let running = ['7', '8']
    const transactions = createTransactions(async (before = running) => before.filter((one) => running.includes(one)))
    const settled = transactions.settle()
    await vi.advanceTimersByTimeAsync(100)
    running = ['7', '9']
    await vi.advanceTimersByTimeAsync(7000)
    expect(await settled).toEqual(['7'])
    let told = 0
    transactions.afterThose(await settled, () => {
      told += 1
    })
    await transactions.look()
    expect(told).toBe(0)
    running = ['9']
    await transactions.look()
    await transactions.look()
    expect(told).toBe(1)
  })
})
