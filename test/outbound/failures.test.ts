import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { createServer as createTlsServer } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { createAuthority, createLeaf } from '#test/support/https.ts'
import { request, startOutbound } from '#test/support/outbound.ts'

/** Outbound requests that fail: timeouts, broken connections, invalid responses, and requests that are aborted. */
const { receiver, outbound, answering, listening } = startOutbound()

describe('a receiver that misbehaves', () => {
  const timed = async (port: number) => {
    const began = performance.now()
    const outcome = await outbound({ timeoutMs: 200 }).post(request(`https://127.0.0.1:${port}/`))
    expect(performance.now() - began).toBeLessThan(5000)
    return outcome
  }

  test('a slowly sent body is cut off at the timeout, with the received status', async () => {
    const hook = await answering(async (response) => {
      response.writeHead(200)
      while (!response.destroyed) {
        response.write('.')
        await wait(20)
      }
    })
    const outcome = await outbound({ caFile: hook.caFile, timeoutMs: 300 }).post(request(hook.url))
    expect(outcome).toMatchObject({ statusCode: 200, error: 'timeout', refused: false })
    expect(outcome.durationMs).toBeGreaterThanOrEqual(290)
    expect(outcome.durationMs).toBeLessThan(5000)
    expect(outcome.responseExcerpt).toMatch(/^\.+$/)
    await expect.poll(() => hook.connections().open).toBe(0)
  })

  test('missing headers, a missing handshake and a missing DNS response end at the timeout', async () => {
    const hook = await answering(() => undefined)
    const trusted = outbound({ caFile: hook.caFile, timeoutMs: 200 })
    expect(await trusted.post(request(hook.url))).toMatchObject({ statusCode: null, error: 'timeout' })
    const { port, sockets } = await listening(createTcpServer((socket) => socket.resume()))
    expect(await timed(port)).toMatchObject({ statusCode: null, error: 'timeout' })
    await expect.poll(() => [...sockets].every((socket) => socket.destroyed)).toBe(true)
    const nameless = outbound({ resolve: () => new Promise(() => {}), timeoutMs: 100 })
    expect(await nameless.post(request('https://hook.test/'))).toMatchObject({ error: 'timeout', refused: false })
  })

  test('nobody listens', async () => {
    const server = createTcpServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    await new Promise((done) => server.close(done))
    expect(await timed(port)).toMatchObject({ statusCode: null, error: 'connection refused', refused: false })
  })

  test('TLS is not spoken', async () => {
    const { port } = await listening(createTcpServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n')))
    expect(await timed(port)).toMatchObject({ statusCode: null, error: 'TLS handshake failed' })
  })

  test.each([
    ['no HTTP at all', 'hello\r\n\r\n', 'response is not valid HTTP'],
    [
      'two lengths',
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab',
      'response is not valid HTTP',
    ],
    ['a bad chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', 'response is not valid HTTP'],
    ['too many headers', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`, 'response headers are too large'],
    ['another protocol', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n', 'connection closed'],
    ['no answer', '', 'connection closed'],
    ['half an answer', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc', 'connection closed'],
  ])('%s is an error', async (_name, bytes, error) => {
    const hook = await receiver()
    const authority = createAuthority()
    const leaf = createLeaf(authority, ['127.0.0.1'])
    await writeFile(hook.caFile, authority.certificate)
    let connections = 0
    const server = createTlsServer({ key: leaf.key, cert: leaf.certificate }, (socket) => {
      connections += 1
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(bytes))
    })
    const { port } = await listening(server)
    const out = outbound({ caFile: hook.caFile, timeoutMs: 2000 })
    expect(await out.post(request(`https://127.0.0.1:${port}/`))).toMatchObject({ error, refused: false })
    expect(connections).toBe(1)
  })

  test('a connection that is closed as soon as it is open is not retried', async () => {
    const authority = createAuthority()
    const hook = await receiver({ authority })
    const leaf = createLeaf(authority, ['127.0.0.1'])
    let connections = 0
    const server = createTlsServer({ key: leaf.key, cert: leaf.certificate }, (socket) => {
      connections += 1
      socket.on('error', () => undefined)
      socket.destroy()
    })
    const { port } = await listening(server)
    const out = outbound({ caFile: hook.caFile, timeoutMs: 2000 })
    expect(await out.post(request(`https://127.0.0.1:${port}/`))).toMatchObject({ error: 'connection closed' })
    expect(connections).toBe(1)
  })

  test('headers that cannot be sent are an error too', async () => {
    const hook = await receiver()
    const bad = { ...request(hook.url), headers: { 'x-a': 'b\r\nx-c: d' } }
    expect(await outbound({ caFile: hook.caFile }).post(bad)).toMatchObject({ error: 'request failed', refused: false })
    expect(hook.requests).toEqual([])
  })

  test('close aborts requests in progress and refuses new ones', async () => {
    const hook = await answering(() => undefined)
    const out = outbound({ caFile: hook.caFile })
    const underWay = out.post(request(hook.url))
    await expect.poll(() => hook.requests.length).toBe(1)
    await out.close()
    expect(await underWay).toMatchObject({ statusCode: null, error: 'closed', refused: false })
    expect(await out.post(request(hook.url))).toMatchObject({ error: 'closed', refused: false })
  })
})
