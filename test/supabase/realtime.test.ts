import { createClient, type RealtimeChannel } from '@supabase/supabase-js'
import { expect, onTestFinished, test } from 'vitest'
import WebSocket from 'ws'
import { startCollections } from '#test/support/definitions.ts'

const { harness, project, define } = await startCollections()
await project.admin.patch('', { rest_enabled: true })
const [user, other] = [await project.user(), await project.user()]
await define({
  name: 'posts',
  read_policy: 'public',
  realtime: true,
  columns: [
    { name: 'title', type: 'text' },
    { name: 'likes', type: 'integer', default: 0 },
  ],
})
await define({ name: 'diary', read_policy: 'owner', realtime: true, columns: [{ name: 'text', type: 'text' }] })
await define({ name: 'quiet', read_policy: 'public', realtime: false, columns: [{ name: 'text', type: 'text' }] })

/** A client as an app has it, whose socket is closed with the test. */
const clientOf = async (session: string, key = project.clientKey, vsn = '2.0.0') => {
  const client = createClient(harness.url, key, {
    accessToken: async () => session,
    realtime: { transport: WebSocket as never, reconnectAfterMs: () => 60_000, vsn },
  })
  onTestFinished(async () => {
    await client.removeAllChannels()
    await client.realtime.disconnect()
  })
  // a join that is sent before the client has asked for its token has none
  await client.realtime.setAuth()
  return client
}

/** Until the channel is joined, or the refusal. */
const joined = (channel: RealtimeChannel): Promise<string> =>
  new Promise((resolve) => {
    channel.subscribe((status, error) => resolve(error ? error.message : status))
  })

/** What comes to a callback, in order, to be waited for. */
const inbox = <T>() => {
  const items: T[] = []
  return {
    items,
    add: (item: T) => void items.push(item),
    has: (count: number) => expect.poll(() => items.length, { timeout: 15_000 }).toBe(count),
  }
}

test.each(['1.0.0', '2.0.0'])('clients of protocol %s and of the other one meet', async (vsn) => {
  const client = await clientOf(user.sessionToken, project.clientKey, vsn)
  const peer = await clientOf(other.sessionToken, project.clientKey, vsn === '1.0.0' ? '2.0.0' : '1.0.0')
  const [changes, words, presences] = [inbox<any>(), inbox<any>(), inbox<any>()]
  const room = `meeting.${vsn}`
  const channel = client
    .channel(room, { config: { broadcast: { ack: true } } })
    .on('postgres_changes', { event: 'INSERT', schema: 'public', table: 'posts' }, changes.add)
    .on('broadcast', { event: 'word' }, words.add)
    .on('presence', { event: 'join' }, presences.add)
  expect(await joined(channel)).toBe('SUBSCRIBED')
  const there = peer.channel(room)
  expect(await joined(there)).toBe('SUBSCRIBED')
  await there.send({ type: 'broadcast', event: 'word', payload: { said: 'ü' } })
  await there.track({ at: 'home' })
  await words.has(1)
  await presences.has(1)
  expect(words.items[0]).toMatchObject({ event: 'word', payload: { said: 'ü' } })
  expect(presences.items[0]).toMatchObject({ key: other.id, newPresences: [{ at: 'home' }] })
  const back = inbox<any>()
  there.on('broadcast', { event: 'back' }, back.add)
  expect(await channel.send({ type: 'broadcast', event: 'back', payload: { n: 1 } })).toBe('ok')
  await back.has(1)
  await user.post('/client/collections/posts', { title: vsn })
  await changes.has(1)
  expect(changes.items[0].new).toMatchObject({ title: vsn })
})

test('changes of rows come as they are committed, with what they were asked for', async () => {
  const client = await clientOf(user.sessionToken)
  const [all, deletes, popular] = [inbox<any>(), inbox<any>(), inbox<any>()]
  const channel = client
    .channel('any name, as it is no room')
    .on('postgres_changes', { event: '*', schema: 'public', table: 'posts' }, all.add)
    .on('postgres_changes', { event: 'DELETE', schema: 'public', table: 'posts' }, deletes.add)
    .on('postgres_changes', { event: 'UPDATE', schema: 'public', table: 'posts', filter: 'likes=gt.5' }, popular.add)
  expect(await joined(channel)).toBe('SUBSCRIBED')
  const { data } = await client.from('posts').insert({ title: 'a' }).select().single()
  await client.from('posts').update({ likes: 3 }).eq('id', data.id)
  await client.from('posts').update({ likes: 9 }).eq('id', data.id)
  await client.from('posts').delete().eq('id', data.id)
  await all.has(4)
  expect(all.items.map(({ eventType }) => eventType)).toEqual(['INSERT', 'UPDATE', 'UPDATE', 'DELETE'])
  expect(all.items[0]).toMatchObject({ schema: 'public', table: 'posts', new: { id: data.id, title: 'a' }, old: {} })
  expect(all.items[1]).toMatchObject({ new: { likes: 3 }, old: { id: data.id } })
  expect(all.items[3]).toMatchObject({ new: {}, old: { id: data.id } })
  await deletes.has(1)
  await popular.has(1)
  expect(popular.items[0].new.likes).toBe(9)
})

test('a row comes to those whom its policy shows it, and nobody else', async () => {
  const [mine, theirs] = [inbox<any>(), inbox<any>()]
  const listening = { event: '*', schema: 'public', table: 'diary' } as const
  const own = await clientOf(user.sessionToken)
  const stranger = await clientOf(other.sessionToken)
  expect(await joined(own.channel('d').on('postgres_changes', listening, mine.add))).toBe('SUBSCRIBED')
  expect(await joined(stranger.channel('d').on('postgres_changes', listening, theirs.add))).toBe('SUBSCRIBED')
  await own.from('diary').insert({ text: 'secret' })
  await mine.has(1)
  await stranger.from('diary').insert({ text: 'own' })
  await theirs.has(1)
  expect(theirs.items[0].new.text).toBe('own')
  expect(mine.items.length).toBe(1)
})

test('a broadcast goes to the others, as JSON and as bytes, and to its sender where that is asked for', async () => {
  const [a, b] = [await clientOf(user.sessionToken), await clientOf(other.sessionToken)]
  const [atA, atB, self] = [inbox<any>(), inbox<any>(), inbox<any>()]
  const [one, two] = [a.channel('lobby'), b.channel('lobby', { config: { broadcast: { ack: true } } })]
  one.on('broadcast', { event: '*' }, atA.add)
  two.on('broadcast', { event: 'cursor' }, atB.add)
  expect([await joined(one), await joined(two)]).toEqual(['SUBSCRIBED', 'SUBSCRIBED'])
  expect(await one.send({ type: 'broadcast', event: 'cursor', payload: { x: 1, ä: 'é' } })).toBe('ok')
  await atB.has(1)
  expect(atB.items[0]).toMatchObject({ type: 'broadcast', event: 'cursor', payload: { x: 1, ä: 'é' } })
  expect(await two.send({ type: 'broadcast', event: 'bytes', payload: new Uint8Array([0, 1, 255]).buffer })).toBe('ok')
  await atA.has(1)
  expect([...new Uint8Array(atA.items[0].payload)]).toEqual([0, 1, 255])
  expect(await two.send({ type: 'broadcast', event: 'no spaces', payload: {} })).toBe('error')
  // one listens with our own protocol, and publishes
  const echo = b.channel('echo', { config: { broadcast: { self: true, ack: true } } })
  echo.on('broadcast', { event: 'x' }, self.add)
  expect(await joined(echo)).toBe('SUBSCRIBED')
  expect(await echo.send({ type: 'broadcast', event: 'x', payload: { n: 1 } })).toBe('ok')
  await self.has(1)
  const sent = await project.admin.post('/realtime/broadcast', { channel: 'room:echo', event: 'x', payload: { n: 2 } })
  expect(sent.status).toBe(202)
  await self.has(2)
  expect(self.items.map(({ payload }) => payload.n)).toEqual([1, 2])
  expect(atA.items.length).toBe(1)
})

test('presence: who is there, who comes, who goes', async () => {
  const [a, b] = [await clientOf(user.sessionToken), await clientOf(other.sessionToken)]
  const [joins, leaves] = [inbox<any>(), inbox<any>()]
  const one = a.channel('hall')
  one.on('presence', { event: 'join' }, joins.add).on('presence', { event: 'leave' }, leaves.add)
  expect(await joined(one)).toBe('SUBSCRIBED')
  expect(await one.track({ mood: 'good' })).toBe('ok')
  await joins.has(1)
  const two = b.channel('hall').on('presence', { event: 'sync' }, () => undefined)
  expect(await joined(two)).toBe('SUBSCRIBED')
  await expect.poll(() => Object.keys(two.presenceState())).toEqual([user.id])
  expect(two.presenceState()[user.id]).toMatchObject([{ mood: 'good' }])
  await two.track({ mood: 'new' })
  await joins.has(2)
  expect(joins.items[1]).toMatchObject({ key: other.id, newPresences: [{ mood: 'new' }] })
  await two.track({ mood: 'changed' })
  await expect.poll(() => one.presenceState()[other.id]).toMatchObject([{ mood: 'changed' }])
  expect(await two.untrack()).toBe('ok')
  await leaves.has(1)
  expect(Object.keys(one.presenceState())).toEqual([user.id])
  await two.track({ mood: 'again' })
  await expect.poll(() => Object.keys(one.presenceState()).length).toBe(2)
  await b.removeChannel(two)
  await expect.poll(() => Object.keys(one.presenceState())).toEqual([user.id])
})

test('what is refused', async () => {
  const client = await clientOf(user.sessionToken)
  const refusedFor = (filter: object, name = 'r') =>
    joined(client.channel(name).on('postgres_changes', filter as never, () => undefined))
  expect(await refusedFor({ event: '*', schema: 'public', table: 'nothing' })).toMatch(/^COLLECTION_NOT_FOUND/)
  expect(await refusedFor({ event: '*', schema: 'public', table: 'quiet' }, 'q')).toMatch(/^FORBIDDEN/)
  expect(await refusedFor({ event: '*', schema: 'public' }, 's')).toMatch(/^INVALID_INPUT, table/)
  expect(await refusedFor({ event: '*', schema: 'app', table: 'users' }, 't')).toMatch(/^INVALID_INPUT, schema/)
  const filter = { event: '*', schema: 'public', table: 'posts', filter: 'likes=near.5' }
  expect(await refusedFor(filter, 'f')).toMatch(/^INVALID_INPUT, filter/)
  expect(await joined(client.channel('no room'))).toMatch(/^INVALID_INPUT, topic/)
  expect(await joined((await clientOf('nonsense')).channel('lobby'))).toMatch(/^UNAUTHORIZED/)
  expect(await joined((await clientOf(project.clientKey)).channel('lobby'))).toMatch(/^UNAUTHORIZED/)
})

/** How a socket of this URL ends, as a browser learns of it: the code and the reason, or `open` while it is served. */
const opening = (query: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = new WebSocket(`${harness.url.replace('http', 'ws')}/realtime/v1/websocket?${query}`)
    onTestFinished(() => socket.terminate())
    socket.once('open', () => socket.send(JSON.stringify([null, '1', 'phoenix', 'heartbeat', {}])))
    socket.once('message', () => resolve('open'))
    socket.once('close', (code, reason) => resolve(`${code} ${reason}`))
    socket.once('unexpected-response', (_request, response) => resolve(`HTTP ${response.statusCode}`))
    socket.once('error', () => undefined)
  })

test('the key, the version and the switch: a refusal closes the socket with a code and a reason', async () => {
  const closed = await harness.project()
  expect(await opening(`apikey=${project.clientKey}&vsn=2.0.0`)).toBe('open')
  expect(await opening(`apikey=${project.clientKey}&vsn=3.0.0`)).toMatch(/^4400 INVALID_INPUT: vsn/)
  expect(await opening('apikey=svc_nothing&vsn=2.0.0')).toMatch(/^4401 UNAUTHORIZED: /)
  expect(await opening('vsn=2.0.0')).toMatch(/^4401 UNAUTHORIZED: /)
  expect(await opening(`apikey=${closed.clientKey}&vsn=2.0.0`)).toMatch(/^4403 REST_DISABLED: /)
  // what speaks no WebSocket is told in HTTP
  const plain = (query: string) => fetch(`${harness.url}/realtime/v1/websocket?${query}`)
  expect((await plain(`apikey=${project.clientKey}&vsn=2.0.0`)).status).toBe(426)
  expect((await plain('apikey=svc_nothing&vsn=2.0.0')).status).toBe(401)
  expect((await plain(`apikey=${closed.clientKey}&vsn=2.0.0`)).status).toBe(403)
})

test('the socket of a session that ends is closed, and what is no message closes it too', async () => {
  const leaving = await project.user()
  const client = await clientOf(leaving.sessionToken)
  expect(await joined(client.channel('end'))).toBe('SUBSCRIBED')
  const closes = inbox<any>()
  const socket = (client.realtime as unknown as { socketAdapter: { onClose(call: (event: unknown) => void): void } })
    .socketAdapter
  socket.onClose(closes.add)
  await leaving.post('/client/auth/logout', { refresh_token: 'none', all: true })
  await closes.has(1)
  expect(closes.items[0].code).toBe(4401)

  const url = `${harness.url.replace('http', 'ws')}/realtime/v1/websocket?apikey=${project.clientKey}&vsn=2.0.0`
  for (const data of ['{}', '[1]', Buffer.from([3, 255, 0, 0, 0, 0, 0]), Buffer.from([9])]) {
    const socket = new WebSocket(url)
    await new Promise((resolve) => socket.once('open', resolve))
    socket.send(data)
    expect(await new Promise((resolve) => socket.once('close', resolve))).toBe(4400)
  }
})

test('sockets are closed when the REST access is switched off, those of users and of strangers, and of this project alone', async () => {
  const closing = await harness.project()
  await closing.admin.patch('', { rest_enabled: true })
  const open = async (key: string) => {
    const socket = new WebSocket(`${harness.url.replace('http', 'ws')}/realtime/v1/websocket?apikey=${key}&vsn=2.0.0`)
    onTestFinished(() => socket.terminate())
    await new Promise((resolve) => socket.once('open', resolve))
    return { socket, closed: new Promise((resolve) => socket.once('close', resolve)) }
  }
  const member = await closing.user()
  const client = await clientOf(member.sessionToken, closing.clientKey)
  expect(await joined(client.channel('end'))).toBe('SUBSCRIBED')
  const closes = inbox<{ code: number }>()
  ;(
    client.realtime as unknown as { socketAdapter: { onClose(call: (event: { code: number }) => void): void } }
  ).socketAdapter.onClose(closes.add)
  const [stranger, elsewhere] = [await open(closing.clientKey), await open(project.clientKey)]
  // any other change leaves them
  await closing.admin.patch('', { graphql_enabled: true })
  expect(await joined(client.channel('still'))).toBe('SUBSCRIBED')
  expect([closes.items, stranger.socket.readyState]).toEqual([[], WebSocket.OPEN])
  await closing.admin.patch('', { rest_enabled: false })
  expect(await stranger.closed).toBe(4401)
  await closes.has(1)
  expect(closes.items[0]?.code).toBe(4401)
  expect(elsewhere.socket.readyState).toBe(WebSocket.OPEN)
})

test('a join without a token is refused, and made again with it', async () => {
  const client = createClient(harness.url, project.clientKey, {
    accessToken: async () => user.sessionToken,
    realtime: { transport: WebSocket as never },
  })
  const statuses: string[] = []
  client.channel('early').subscribe((status) => void statuses.push(status))
  await expect.poll(() => statuses.at(-1), { timeout: 15_000 }).toBe('SUBSCRIBED')
  await client.removeAllChannels()
  await client.realtime.disconnect()
})

test('a socket on which nobody signs in has its end, and there are only so many of one address', async () => {
  const results: string[] = []
  for (let n = 0; n < 51; n += 1) results.push(await opening(`apikey=${project.clientKey}&vsn=2.0.0`))
  expect(results.filter((one) => one === 'open').length).toBeLessThanOrEqual(50)
  expect(results.at(-1)).toMatch(/^4429 RATE_LIMITED: /)
})
