import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import WebSocket from 'ws'
import { freshIp, startHarness } from '#test/support/harness.ts'
import { inUrl, longEnough, often, queryOf, wordsOf } from '#test/support/hostile.ts'

const harness = await startHarness()
const project = await harness.project()
await project.admin.patch('', { rest_enabled: true })
const user = await project.user()
const root = harness.url.replace('http', 'ws')
const lateMs = 60_000

const word = wordsOf('realtime:hall', 'phoenix', 'realtime:', 'phx_join', 'phx_leave', 'heartbeat', 'broadcast', '1')
const frame = fc.oneof(
  fc.json(),
  fc.tuple(word, word, word, word, fc.jsonValue()).map((parts) => JSON.stringify(parts)),
  fc
    .record({ join_ref: word, ref: word, topic: word, event: word, payload: fc.jsonValue() }, { requiredKeys: [] })
    .map((message) => JSON.stringify(message)),
  fc
    .tuple(fc.oneof(fc.boolean(), fc.jsonValue()), fc.jsonValue(), fc.jsonValue(), fc.boolean())
    .map(([isPrivate, presence, postgres_changes, isUser]) => {
      const config = { private: isPrivate, presence, postgres_changes, broadcast: presence }
      const access_token = isUser ? user.sessionToken : presence
      return JSON.stringify(['1', '1', 'realtime:hall', 'phx_join', { access_token, config }])
    }),
  fc
    .constantFrom('presence', 'broadcast', 'access_token', 'postgres_changes')
    .chain((event) => fc.jsonValue().map((payload) => JSON.stringify(['1', '2', 'realtime:hall', event, payload]))),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from([3, 1, 1, 13, 1, 0, 1, ...bytes])),
)

/** Opens as an address of its own; null when the server refuses the upgrade with a status, which is returned too. */
const open = (path: string) => {
  const socket = new WebSocket(`${root}${path}`, { headers: { 'x-forwarded-for': freshIp() } })
  socket.on('error', () => undefined)
  const opened = new Promise<number>((resolve) => {
    socket.once('open', () => resolve(101))
    socket.once('unexpected-response', (_request, response) => {
      resolve(response.statusCode ?? 0)
      response.resume()
      socket.terminate()
    })
  })
  return { socket, opened }
}

const idle: WebSocket[] = []
afterAll(() => {
  for (const socket of idle) socket.terminate()
})

/** Sends a frame and a heartbeat: 0 when that is answered, or the code with which the socket is closed. */
const answered = (socket: WebSocket, data: string | Buffer, ref: string) =>
  new Promise<number>((resolve) => {
    const late = setTimeout(() => settle(-1), lateMs)
    const hear = (bytes: Buffer) => {
      if (bytes.includes(ref)) settle(0)
    }
    const settle = (code: number) => {
      clearTimeout(late)
      socket.off('message', hear)
      socket.off('close', settle)
      resolve(code)
    }
    socket.on('message', hear)
    socket.on('close', settle)
    socket.send(data)
    socket.send(JSON.stringify([null, ref, 'phoenix', 'heartbeat', {}]))
  })

test(
  'frames of a socket: answered, or it is closed with a code',
  async () => {
    let count = 0
    await often(frame, async (data) => {
      const known = idle.pop()
      const socket = known ?? open(`/realtime/v1/websocket?apikey=${project.clientKey}&vsn=2.0.0`).socket
      if (!known) await new Promise((resolve) => socket.once('open', resolve))
      count += 1
      const code = await answered(socket, data, `beat-${count}`)
      // a frame that cannot be read, or too many of them
      expect([0, 4400, 4429], String(data)).toContain(code)
      if (code === 0) idle.push(socket)
    })
  },
  longEnough,
)

test(
  'upgrades with any query: opened, refused, or closed with a code',
  async () => {
    const value = fc.oneof(
      fc.constantFrom(project.clientKey, project.serverKey, user.sessionToken, '1.0.0', '2.0.0'),
      wordsOf('apikey', 'vsn'),
    )
    const path = fc.oneof(
      { weight: 6, arbitrary: fc.constant('/realtime/v1/websocket') },
      fc.constantFrom(
        `/p/${project.id}/realtime/v1/websocket`,
        '/realtime/v1/',
        '/realtime/v1/api/broadcast',
        '/p/x/realtime',
      ),
      inUrl(value).map((text) => `/realtime/v1/${text}`),
    )
    const likely = fc
      .tuple(inUrl(value), inUrl(value), queryOf(['apikey', 'vsn', 'log_level', 'token'], value))
      .map(([apikey, vsn, more]) => `apikey=${apikey}&vsn=${vsn}&${more}`)
    const query = fc.oneof(likely, queryOf(['apikey', 'vsn', 'log_level', 'token'], value))
    await often(fc.tuple(path, query), async ([at, asked]) => {
      const { socket, opened } = open(`${at}?${asked}`)
      const ended = new Promise<number>((resolve) => socket.once('close', resolve))
      const status = await opened
      expect(status, `${at}?${asked}`).toBeLessThan(500)
      if (status !== 101) return
      const stays = answered(socket, JSON.stringify(['1', '1', 'phoenix', 'x', {}]), 'beat')
      const code = await Promise.race([stays, ended])
      expect([0, 4400, 4401, 4403, 4429], `${at}?${asked}`).toContain(code)
      socket.terminate()
    })
  },
  longEnough,
)
