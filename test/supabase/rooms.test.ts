import { createClient, type RealtimeChannel } from '@supabase/supabase-js'
import { expect, onTestFinished, test } from 'vitest'
import WebSocket from 'ws'
import { startHarness } from '#test/support/harness.ts'

/** Private channels, and messages to rooms without a connection. */
const harness = await startHarness()
const project = await harness.project()
await project.admin.patch('', { rest_enabled: true })
await project.admin.post('/roles', { key: 'crew', name: 'Crew', permissions: ['a'] })
const [ada, ben] = [await project.user(), await project.user()]
await project.admin.post('/roles/crew/assignments', { app_user_id: ada.id })
await project.admin.put('/realtime/rooms', {
  rules: [
    { pattern: 'deck', publish: 'authenticated', listen: 'role:crew' },
    { pattern: 'news', publish: 'server' },
    { pattern: 'hall', publish: 'authenticated' },
  ],
})

const clientOf = async (session: string, key = project.clientKey) => {
  const client = createClient(harness.url, key, {
    accessToken: async () => session,
    realtime: { transport: WebSocket as never, reconnectAfterMs: () => 60_000 },
  })
  onTestFinished(async () => {
    await client.removeAllChannels()
    await client.realtime.disconnect()
  })
  await client.realtime.setAuth()
  return client
}
const joined = (channel: RealtimeChannel): Promise<string> =>
  new Promise((resolve) => {
    channel.subscribe((status, error) => resolve(error ? error.message : status))
  })
const priv = { config: { private: true } }
const path = '/realtime/v1/api/broadcast'
const post = async (body: unknown, headers: Record<string, string>, to = path) => {
  const sent = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(`${harness.url}${to}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: sent,
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}
const as = (session: string) => ({ apikey: project.clientKey, authorization: `Bearer ${session}` })

test('a private channel is a room that a rule names, for whom the rule lets listen', async () => {
  const [a, b] = [await clientOf(ada.sessionToken), await clientOf(ben.sessionToken)]
  expect(await joined(a.channel('deck', priv))).toBe('SUBSCRIBED')
  expect(await joined(b.channel('deck', priv))).toMatch(/^FORBIDDEN/)
  expect(await joined(b.channel('hall', priv))).toBe('SUBSCRIBED')
  // no rule names it
  expect(await joined(a.channel('galley', priv))).toMatch(/^FORBIDDEN/)
  expect(await joined(b.channel('galley'))).toBe('SUBSCRIBED')
  // the rule holds for channels that are not private, too
  await b.removeAllChannels()
  expect(await joined(b.channel('deck'))).toMatch(/^FORBIDDEN/)
})

test('httpSend sends to a room without a connection, JSON and bytes', async () => {
  const [a, b] = [await clientOf(ada.sessionToken), await clientOf(ben.sessionToken)]
  const words: any[] = []
  const there = b.channel('hall').on('broadcast', { event: '*' }, (word) => void words.push(word))
  expect(await joined(there)).toBe('SUBSCRIBED')
  expect(await a.channel('hall').httpSend('word', { said: 'ü' })).toEqual({ success: true })
  await expect.poll(() => words.length).toBe(1)
  expect(words[0]).toMatchObject({ event: 'word', payload: { said: 'ü' } })
  expect(await a.channel('hall', priv).httpSend('bytes', new Uint8Array([0, 255]).buffer)).toEqual({ success: true })
  await expect.poll(() => words.length).toBe(2)
  expect([...new Uint8Array(words[1].payload)]).toEqual([0, 255])
  // send() of a channel that is not joined takes the same way, several messages at once
  const warn = console.warn
  console.warn = () => undefined
  onTestFinished(() => {
    console.warn = warn
  })
  const unjoined = a.channel('unjoined')
  expect(await unjoined.send({ type: 'broadcast', event: 'x', payload: {} })).toBe('ok')
  const many = ['one', 'two'].map((event) => ({ topic: 'hall', event, payload: {} }))
  expect(await post({ messages: many }, as(ada.sessionToken))).toEqual({ status: 202, body: null })
  await expect.poll(() => words.map(({ event }) => event).slice(2)).toEqual(['one', 'two'])
})

test('who may not publish is refused, and nothing of a list that holds such a message is sent', async () => {
  const b = await clientOf(ben.sessionToken)
  const words: unknown[] = []
  const there = b.channel('hall').on('broadcast', { event: '*' }, (word) => void words.push(word))
  expect(await joined(there)).toBe('SUBSCRIBED')
  await expect(b.channel('deck', priv).httpSend('x', {})).rejects.toThrow(/^FORBIDDEN/)
  await expect(b.channel('news').httpSend('x', {})).rejects.toThrow(/^FORBIDDEN/)
  await expect(b.channel('galley', priv).httpSend('x', {})).rejects.toThrow(/^FORBIDDEN/)
  const mixed = {
    messages: [
      { topic: 'hall', event: 'x', payload: 1 },
      { topic: 'news', event: 'x', payload: 1 },
    ],
  }
  expect(await post(mixed, as(ben.sessionToken))).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } })
  const one = { messages: [{ topic: 'hall', event: 'after', payload: 1 }] }
  expect((await post(one, { apikey: project.clientKey })).status).toBe(401)
  expect((await post(one, as('nonsense'))).status).toBe(401)
  expect((await post(one, {})).status).toBe(401)
  // a server key publishes everywhere
  const news = { messages: [{ topic: 'news', event: 'x', payload: 1 }, ...one.messages] }
  expect((await post(news, { apikey: project.serverKey })).status).toBe(202)
  expect((await post(one, { apikey: project.serverKey, 'x-on-behalf-of': ben.id })).status).toBe(202)
  await expect.poll(() => words.length).toBe(2)
})

test('a message has the form and the bounds that it has on a connection', async () => {
  const send = (message: object, headers = as(ada.sessionToken)) => post({ messages: [message] }, headers)
  const good = { topic: 'hall', event: 'x', payload: {} }
  for (const [message, field] of [
    [{ ...good, topic: 'no room' }, 'topic'],
    [{ ...good, topic: 'x'.repeat(65) }, 'topic'],
    [{ ...good, event: 'no spaces' }, 'event'],
    [{ ...good, private: 'yes' }, 'private'],
  ] as const)
    expect(await send(message), field).toMatchObject({ status: 400, body: { code: 'INVALID_INPUT' } })
  expect(await send({ ...good, payload: 'x'.repeat(33_000) })).toMatchObject({
    status: 413,
    body: { code: 'PAYLOAD_TOO_LARGE' },
  })
  expect((await post({ messages: [] }, as(ada.sessionToken))).status).toBe(400)
  expect((await post({ messages: Array(21).fill(good) }, as(ada.sessionToken))).status).toBe(400)
  expect((await post({}, as(ada.sessionToken))).status).toBe(400)
  for (const body of ['', '{', '"\\u0000"', `${'['.repeat(300)}${']'.repeat(300)}`])
    expect(await post(body, as(ada.sessionToken)), body).toMatchObject({ status: 400 })
  expect((await post({}, as(ada.sessionToken), `${path}/hall/events/no%20spaces`)).status).toBe(400)
  const closed = await harness.project()
  expect(await post({}, { apikey: closed.clientKey })).toMatchObject({ status: 403, body: { code: 'REST_DISABLED' } })
})

test('a client that does not say whether it wants presence, as those before 2.51, has it', async () => {
  const join = async (presence: object) => {
    const socket = new WebSocket(
      `${harness.url.replace('http', 'ws')}/realtime/v1/websocket?apikey=${project.clientKey}&vsn=1.0.0`,
    )
    onTestFinished(() => socket.terminate())
    const events: string[] = []
    socket.on('message', (data) => void events.push(JSON.parse(String(data)).event))
    await new Promise((resolve) => socket.once('open', resolve))
    const payload = { access_token: ada.sessionToken, config: { presence } }
    socket.send(JSON.stringify({ topic: 'realtime:hall', event: 'phx_join', ref: '1', join_ref: '1', payload }))
    await expect.poll(() => events).toContain('phx_reply')
    // what comes later comes after the answer to this
    socket.send(JSON.stringify({ topic: 'phoenix', event: 'heartbeat', ref: '2', payload: {} }))
    await expect.poll(() => events.filter((event) => event === 'phx_reply').length).toBe(2)
    return events
  }
  expect(await join({ key: '' })).toContain('presence_state')
  expect(await join({ key: '', enabled: true })).toContain('presence_state')
  expect(await join({ key: '', enabled: false })).not.toContain('presence_state')
})

test('messages are not kept, and whoever asks for that is told', async () => {
  const [a, b] = [await clientOf(ada.sessionToken), await clientOf(ben.sessionToken)]
  const replay = { config: { private: true, broadcast: { replay: { since: 0 } } } }
  expect(await joined(a.channel('hall', replay))).toMatch(/^INVALID_INPUT, config.broadcast.replay/)
  const hall = b.channel('hall', { config: { private: true, broadcast: { ack: true } } })
  expect(await joined(hall)).toBe('SUBSCRIBED')
  expect(await hall.send({ type: 'broadcast', event: 'x', payload: {}, persist: true } as never)).not.toBe('ok')
  expect(await hall.send({ type: 'broadcast', event: 'x', payload: {} })).toBe('ok')
  for (const persist of [true, { ttl: 60 }])
    await expect(hall.httpSend('x', {}, { persist } as never)).rejects.toThrow(/^INVALID_INPUT: persist/)
})
