import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import WebSocket from 'ws'
import { startCollections } from '#test/support/definitions.ts'

/** Whatever is sent without a session, or to rooms, is the fault of its sender. */
const { harness, project, define } = await startCollections()
await project.admin.patch('', { rest_enabled: true, anonymous_reads: true })
const user = await project.user()
const posts = await define({ read_policy: 'public', columns: [{ name: 'title', type: 'text' }] })
const stranger = { apikey: project.clientKey }
const member = { ...stranger, authorization: `Bearer ${user.sessionToken}` }
const rounds = Number(process.env['FUZZ_RUNS'] ?? 150)

const send = async (method: string, path: string, headers: Record<string, string>, body?: string) => {
  const response = await fetch(`${harness.url}${path}`, { method, headers, ...(body === undefined ? {} : { body }) })
  return { status: response.status, text: await response.text() }
}
const word = fc.oneof(
  fc.constantFrom(posts, 'rpc', 'title', 'id', 'eq.', 'not.', 'and', '(', ')', ',', '->>', '::', 'user_id', 'count()'),
  fc.string({ maxLength: 6 }),
)
const words = fc.array(word, { maxLength: 5 }).map((list) => encodeURIComponent(list.join('')))

test('reads without a session', async () => {
  const sent = fc.tuple(
    fc.constantFrom('GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE'),
    fc.oneof(fc.constant(posts), words),
    fc.array(fc.tuple(fc.constantFrom('select', 'title', 'order', 'or', 'limit', 'offset', 'columns'), words)),
    fc.oneof(fc.json(), fc.string()),
  )
  await fc.assert(
    fc.asyncProperty(sent, async ([method, path, query, body]) => {
      const url = `/rest/v1/${path}?${query.map(([key, value]) => `${key}=${value}`).join('&')}`
      const isRead = method === 'GET' || method === 'HEAD'
      const headers = { ...stranger, ...(isRead ? {} : { 'content-type': 'application/json' }) }
      const { status, text } = await send(method, url, headers, isRead ? undefined : body)
      expect(status, `${method} ${url}: ${text}`).toBeLessThan(500)
      if (!isRead) expect(status, `${method} ${url}: ${text}`).toBeGreaterThanOrEqual(400)
    }),
    { numRuns: rounds },
  )
  expect(await project.sql(`select from collections.${posts}`)).toEqual([])
}, 120_000)

test('messages to rooms', async () => {
  const path = '/realtime/v1/api/broadcast'
  const message = fc.record(
    {
      topic: fc.oneof(fc.constant('hall'), fc.string()),
      event: fc.oneof(fc.constant('x'), fc.string()),
      payload: fc.jsonValue(),
      private: fc.oneof(fc.boolean(), fc.jsonValue()),
    },
    { requiredKeys: [] },
  )
  const sent = fc.tuple(
    fc.oneof(
      fc.array(message, { maxLength: 4 }).map((messages) => JSON.stringify({ messages })),
      fc.json(),
      fc.string(),
    ),
    fc.oneof(
      fc.constant(''),
      fc.tuple(words, words).map(([topic, event]) => `/${topic || 'x'}/events/${event || 'x'}`),
    ),
    fc.constantFrom('application/json', 'application/octet-stream', 'text/plain'),
  )
  await fc.assert(
    fc.asyncProperty(sent, async ([body, at, type]) => {
      const { status, text } = await send('POST', `${path}${at}`, { ...member, 'content-type': type }, body)
      expect(status, `${at} ${body}: ${text}`).toBeLessThan(500)
    }),
    { numRuns: rounds },
  )
}, 120_000)

test('frames of a socket: answered, or it is closed with a code', async () => {
  const frame = fc.oneof(
    fc.json(),
    fc
      .tuple(fc.string(), fc.string(), fc.constantFrom('realtime:hall', 'phoenix', 'realtime:'), word, fc.jsonValue())
      .map((parts) => JSON.stringify(parts)),
    fc
      .tuple(fc.boolean(), fc.jsonValue())
      .map(([isPrivate, presence]) =>
        JSON.stringify([
          '1',
          '1',
          'realtime:hall',
          'phx_join',
          { access_token: user.sessionToken, config: { private: isPrivate, presence } },
        ]),
      ),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  )
  await fc.assert(
    fc.asyncProperty(frame, async (data) => {
      const socket = new WebSocket(
        `${harness.url.replace('http', 'ws')}/realtime/v1/websocket?apikey=${project.clientKey}&vsn=2.0.0`,
      )
      onTestFinished(() => socket.terminate())
      const ended = new Promise<number>((resolve) => {
        socket.once('message', () => resolve(0))
        socket.once('close', (code) => resolve(code))
      })
      await new Promise((resolve) => socket.once('open', resolve))
      socket.send(data)
      socket.send(JSON.stringify([null, '2', 'phoenix', 'heartbeat', {}]))
      expect([0, 4400], String(data)).toContain(await ended)
      socket.terminate()
    }),
    { numRuns: rounds },
  )
}, 120_000)

test('users, with the server key: what is not understood makes and changes nobody', async () => {
  const names = [
    ...['email', 'phone', 'password', 'user_metadata', 'app_metadata', 'ban_duration', 'email_confirm', 'type', 'data'],
    ...['role', 'id', 'should_soft_delete', 'redirect_to', 'phone_confirm'],
  ]
  const value = fc.oneof(
    fc.constantFrom(
      'a@example.org',
      '+4930123456',
      'none',
      '24h',
      '876000h',
      'a long passphrase',
      'magiclink',
      'invite',
    ),
    fc.jsonValue(),
    fc.string(),
  )
  const body = fc
    .array(fc.tuple(fc.constantFrom(...names), value), { maxLength: 5 })
    .map((fields) => JSON.stringify(Object.fromEntries(fields)))
  const place = fc.oneof(
    fc.constantFrom('users', `users/${user.id}`, 'generate_link', 'users/00000000-0000-4000-8000-000000000000'),
    words.map((text) => `users/${text}`),
  )
  const sent = fc.tuple(
    fc.constantFrom('GET', 'POST', 'PUT', 'DELETE'),
    fc.oneof(
      place.map((at) => `/auth/v1/admin/${at}`),
      fc.constant('/auth/v1/invite'),
    ),
    fc.array(fc.tuple(fc.constantFrom('page', 'per_page', 'filter'), words), { maxLength: 2 }),
    fc.oneof(body, fc.json(), fc.string()),
  )
  const headers = { apikey: project.serverKey, 'content-type': 'application/json' }
  await fc.assert(
    fc.asyncProperty(sent, async ([method, path, query, given]) => {
      const url = `${path}?${query.map(([key, text]) => `${key}=${text}`).join('&')}`
      // the user of the other tests stays
      const isKept = method === 'DELETE' && path.endsWith(user.id)
      const { status, text } = await send(
        isKept ? 'GET' : method,
        url,
        headers,
        method === 'GET' || isKept ? undefined : given,
      )
      expect(status, `${method} ${url} ${given}: ${text}`).toBeLessThan(500)
      if (status >= 400) expect(JSON.parse(text), text).toMatchObject({ error_code: expect.any(String) })
    }),
    { numRuns: rounds },
  )
}, 120_000)
