import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { signature, verifySignature } from '#server/providers/outbound.ts'
import { addresses, request, startOutbound } from '#test/support/outbound.ts'

/** One outbound request and the outcome of its response: redirects, Retry-After, excerpts, connections. */
const { receiver, outbound, answering } = startOutbound()

describe('a request and its response', () => {
  test('the request arrives unchanged, and the outcome contains the response', async () => {
    const hook = await receiver({ hostnames: ['hook.test'] })
    const out = outbound({ caFile: hook.caFile, resolve: async () => addresses('127.0.0.1') })
    const body = JSON.stringify({ name: 'Zoë 🚀' })
    const headers = { 'X-Service-Event-Name': 'level.up', 'X-Service-Signature': signature('s', 1, body) }
    const outcome = await out.post({ url: `${hook.url}in?a=1#b`, headers, body })
    expect(outcome).toEqual({
      statusCode: 200,
      error: null,
      durationMs: expect.any(Number),
      responseExcerpt: 'ok',
      retryAfter: null,
      refused: false,
    })
    expect(hook.requests).toHaveLength(1)
    expect(hook.requests[0]).toMatchObject({ method: 'POST', path: '/in?a=1', body })
    expect(hook.requests[0]?.headers).toMatchObject({
      host: `hook.test:${hook.port}`,
      connection: 'close',
      'content-type': 'application/json',
      'user-agent': 'Service-Webhooks/1',
      'x-service-event-name': 'level.up',
    })
    expect(verifySignature(String(hook.requests[0]?.headers['x-service-signature']), 's', body, 1)).toBe(true)
  })

  test('every post has a connection of its own, and no cookie comes back', async () => {
    const hook = await answering((response) => response.setHeader('set-cookie', 'a=b').end())
    const out = outbound({ caFile: hook.caFile })
    await out.post(request(hook.url))
    await out.post(request(hook.url))
    expect(hook.connections().total).toBe(2)
    expect(hook.requests[1]?.headers.cookie).toBeUndefined()
  })

  test('proxies of the environment are not used', async () => {
    const hook = await receiver()
    process.env.HTTPS_PROXY = 'http://127.0.0.1:9'
    try {
      expect(await outbound({ caFile: hook.caFile }).post(request(hook.url))).toMatchObject({ statusCode: 200 })
    } finally {
      delete process.env.HTTPS_PROXY
    }
  })

  test('a 500 is a response with an excerpt of its body', async () => {
    const hook = await answering((response) => response.writeHead(500).end('out of order'))
    expect(await outbound({ caFile: hook.caFile }).post(request(hook.url))).toMatchObject({
      statusCode: 500,
      error: null,
      responseExcerpt: 'out of order',
    })
  })

  test.each([301, 302, 303, 307, 308])('a %i is not followed', async (status) => {
    const other = await receiver()
    const hook = await answering((response) => response.writeHead(status, { location: other.url }).end())
    const outcome = await outbound({ caFile: hook.caFile }).post(request(hook.url))
    expect(outcome).toMatchObject({ statusCode: status, error: 'redirect', refused: false })
    expect(other.connections().total).toBe(0)
  })

  test.each([
    [503, '120', 120],
    [429, '0', 0],
    [429, new Date(Date.now() - 60_000).toUTCString(), 0],
    [429, 'soon', null],
    [429, '-5', null],
    [500, '120', null],
    [200, '120', null],
  ])('a %i with Retry-After %s asks for %s seconds', async (status, value, seconds) => {
    const hook = await answering((response) => response.writeHead(status, { 'retry-after': value }).end())
    expect((await outbound({ caFile: hook.caFile }).post(request(hook.url))).retryAfter).toBe(seconds)
  })

  test('a Retry-After date is turned into seconds from now', async () => {
    const at = new Date(Date.now() + 90_000).toUTCString()
    const hook = await answering((response) => response.writeHead(503, { 'retry-after': at }).end())
    const { retryAfter } = await outbound({ caFile: hook.caFile }).post(request(hook.url))
    expect(retryAfter).toBeGreaterThan(80)
    expect(retryAfter).toBeLessThanOrEqual(90)
  })

  test('the excerpt is valid UTF-8 of at most 1 KB without NUL, whatever the body', async () => {
    const body = { bytes: Buffer.alloc(0) }
    const hook = await answering((response) => response.end(body.bytes))
    const out = outbound({ caFile: hook.caFile })
    const bodies = ['ab\0cd', '€'.repeat(1000), Buffer.alloc(4000, 0xff), randomBytes(5000), Buffer.alloc(3000)]
    for (const bytes of bodies.map((each) => Buffer.from(each as Buffer))) {
      body.bytes = bytes
      const { responseExcerpt } = await out.post(request(hook.url))
      expect(Buffer.byteLength(responseExcerpt)).toBeLessThanOrEqual(1024)
      expect(responseExcerpt).not.toContain('\0')
      expect(responseExcerpt.isWellFormed()).toBe(true)
    }
    body.bytes = Buffer.from('€'.repeat(1000))
    expect((await out.post(request(hook.url))).responseExcerpt).toBe('€'.repeat(341))
  })

  test('a response of 8 MB is cut off at 64 KB, and its connection is closed', async () => {
    const sent = { bytes: 0, isCut: false }
    const hook = await answering(async (response) => {
      response.on('close', () => {
        sent.isCut = !response.writableFinished
      })
      // slower than the network, so that the number of bytes sent is about the number of bytes read
      while (!response.destroyed && sent.bytes < 8 * 1024 * 1024) {
        response.write(Buffer.alloc(16 * 1024, 'x'))
        sent.bytes += 16 * 1024
        await wait(5)
      }
      response.end()
    })
    const outcome = await outbound({ caFile: hook.caFile }).post(request(hook.url))
    expect(outcome).toMatchObject({ statusCode: 200, error: null, responseExcerpt: 'x'.repeat(1024) })
    await expect.poll(() => sent.isCut).toBe(true)
    expect(sent.bytes).toBeGreaterThanOrEqual(64 * 1024)
    expect(sent.bytes).toBeLessThan(4 * 1024 * 1024)
  })

  test('300 posts at once leave no socket behind', async () => {
    const hook = await receiver()
    // 300 TLS handshakes may take longer than the usual timeout on a busy machine
    const out = outbound({ caFile: hook.caFile, timeoutMs: 60_000 })
    const sockets = () => process.getActiveResourcesInfo().filter((name) => /TCPSocket|TLS/.test(name)).length
    const before = sockets()
    const outcomes = await Promise.all(Array.from({ length: 300 }, () => out.post(request(hook.url))))
    expect(outcomes.filter(({ statusCode }) => statusCode !== 200)).toEqual([])
    expect(hook.requests).toHaveLength(300)
    await expect.poll(() => hook.connections()).toEqual({ open: 0, total: 300 })
    await expect.poll(sockets).toBe(before)
  })
})
