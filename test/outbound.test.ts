import { randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { parseAllowedCidrs } from '#server/providers/addresses.ts'
import {
  type Address,
  createOutbound,
  type OutboundOptions,
  resolveByDns,
  signature,
  verifySignature,
} from '#server/providers/outbound.ts'
import { createAuthority, createLeaf, type ReceiverOptions, startHttpsReceiver } from '#test/support/https.ts'

const closing: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const receiver = async (options?: ReceiverOptions) => {
  const started = await startHttpsReceiver(options)
  closing.push(started.close)
  return started
}

const outbound = (options: Partial<OutboundOptions> = {}) => {
  const made = createOutbound({ allowedCidrs: parseAllowedCidrs('127.0.0.0/8'), ...options })
  closing.push(made.close)
  return made
}

const addresses = (...list: string[]): Address[] =>
  list.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))

const answering = (handler: (response: ServerResponse) => unknown) =>
  receiver({ handler: (_request, response) => handler(response) })

const request = (url: string) => ({ url, headers: {}, body: '{"a":1}' })

const listening = async (server: Server) => {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((done) => server.close(done))
  })
  return { port: (server.address() as AddressInfo).port, sockets }
}

describe('the SSRF filter at registration', () => {
  const names: Record<string, string[]> = {
    'public.test': ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'],
    'mixed.test': ['93.184.215.14', '10.0.0.1'],
    'mixed6.test': ['2606:4700::1', 'fd00::1'],
    'nat64.test': ['64:ff9b::a00:1'],
    'loopback.test': ['127.0.0.1'],
    'xn--mnchen-3ya.test': ['93.184.215.14'],
    localhost: ['127.0.0.1', '::1'],
    'a.localhost': ['127.0.0.1'],
    'metadata.google.internal': ['169.254.169.254'],
    'nonsense.test': ['not an address'],
    'empty.test': [],
  }
  const resolve = async (hostname: string) => {
    const found = names[hostname]
    if (!found) throw Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' })
    return addresses(...found)
  }
  const code = async (url: string, allowed?: string) => {
    const options = { allowedCidrs: parseAllowedCidrs(allowed), resolve }
    return (await outbound(options).checkUrl(url))?.code ?? null
  }

  test.each([
    'https://public.test/hook?a=1#part',
    'https://public.test:443/',
    'https://PUBLIC.test/',
    'https://public.test./',
    'https://münchen.test/',
    'https://93.184.215.14/',
    'https://[2606:4700:4700::1111]/',
    'https://public%2Etest/',
  ])('%s may', async (url) => {
    expect(await code(url)).toBeNull()
  })

  test.each(['http://public.test/', 'HTTP://127.0.0.1/', 'http://localhost:8080/'])('%s is not https', async (url) => {
    expect(await code(url)).toBe('TARGET_URL_NOT_HTTPS')
  })

  test.each([
    '',
    'public.test',
    '//public.test/',
    'https://',
    'ftp://public.test/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'https://user@public.test/',
    'https://user:word@public.test/',
    'https://public.test:8443/',
    'https://public.test:80/',
    'https://public..test/',
    'https://public.test../',
    `https://public.test/${'a'.repeat(2048)}`,
    'https://unknown.test/',
    'https://empty.test/',
    'https://nonsense.test/',
    'https://mixed.test/',
    'https://mixed6.test/',
    'https://nat64.test/',
    'https://loopback.test/',
    'https://localhost/',
    'https://LOCALHOST./',
    'https://a.localhost/',
    'https://metadata.google.internal/computeMetadata/v1/',
    'https://169.254.169.254/latest/meta-data/',
    'https://127.0.0.1/',
    'https://127.0.0.1./',
    'https://127.1/',
    'https://2130706433/',
    'https://0177.0.0.1/',
    'https://0x7f000001/',
    'https://0x7f.0.0.1/',
    'https://0/',
    'https://１２７.０.０.１/',
    'https://127。0。0。1/',
    'https://①②⑦.0.0.1/',
    'https://ｌｏｃａｌｈｏｓｔ/',
    'https://%31%32%37.0.0.1/',
    'https://127.0.0.1%2f@public.test/',
    'https://public.test@127.0.0.1/',
    'https:\\\\127.0.0.1\\',
    'https://127.0.0.1\t/',
    'https://256.0.0.1/',
    'https://[::1]/',
    'https://[::]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[0:0:0:0:0:ffff:0a00:0001]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[2002:7f00:1::]/',
    'https://[fe80::1%25eth0]/',
    'https://[fd00:ec2::254]/',
  ])('%s may not', async (url) => {
    expect(await code(url)).toBe('TARGET_URL_NOT_ALLOWED')
  })

  test('an allowed network is exempt with every port, its neighbours are not', async () => {
    expect(await code('https://127.0.0.1:8443/', '127.0.0.0/8')).toBeNull()
    expect(await code('https://loopback.test:8443/', '127.0.0.0/8')).toBeNull()
    expect(await code('https://localhost/', '127.0.0.0/8')).toBe('TARGET_URL_NOT_ALLOWED')
    expect(await code('https://localhost/', '127.0.0.0/8,::1')).toBeNull()
    expect(await code('https://public.test:8443/', '127.0.0.0/8')).toBe('TARGET_URL_NOT_ALLOWED')
    expect(await code('https://mixed.test:8443/', '10.0.0.0/8')).toBe('TARGET_URL_NOT_ALLOWED')
    expect(await code('http://127.0.0.1/', '127.0.0.0/8')).toBe('TARGET_URL_NOT_HTTPS')
  })

  test('a name server that does not answer in time is a refusal', async () => {
    const slow = outbound({ resolve: () => new Promise(() => {}), timeoutMs: 50 })
    expect(await slow.checkUrl('https://slow.test/')).toMatchObject({ code: 'TARGET_URL_NOT_ALLOWED' })
  })
})

describe('a host name whose addresses change (DNS rebinding)', () => {
  test('is resolved once, and the connection goes to a resolved address', async () => {
    const inside = await receiver({ hostnames: ['hook.test'] })
    // 203.0.113.0/24 is exempted and stands for the public address of the first DNS response; nothing listens there
    const names = await nameServer(['203.0.113.5'], ['127.0.0.1'])
    const out = outbound({
      allowedCidrs: parseAllowedCidrs('203.0.113.0/24'),
      caFile: inside.caFile,
      resolve: resolveByDns([`127.0.0.1:${names.port}`]),
      timeoutMs: 400,
    })
    const first = await out.post(request(inside.url))
    expect(first).toMatchObject({ statusCode: null, refused: false })
    expect(['timeout', 'host unreachable', 'connection refused', 'connection closed']).toContain(first.error)
    expect(names.asked()).toBe(1)
    expect(await out.post(request(inside.url))).toMatchObject({ error: 'TARGET_URL_NOT_ALLOWED', refused: true })
    expect(names.asked()).toBe(2)
    expect(inside.connections().total).toBe(0)
  })

  test('is refused when one of its addresses is private, in either order', async () => {
    const inside = await receiver({ hostnames: ['hook.test'] })
    for (const answer of [addresses('93.184.215.14', '127.0.0.1'), addresses('127.0.0.1', '93.184.215.14')]) {
      const out = outbound({ allowedCidrs: [], caFile: inside.caFile, resolve: async () => answer })
      const refused = { statusCode: null, error: 'TARGET_URL_NOT_ALLOWED', refused: true }
      expect(await out.post(request(inside.url))).toMatchObject(refused)
      expect(await out.post(request('https://hook.test/'))).toMatchObject(refused)
    }
    expect(inside.connections().total).toBe(0)
  })

  test('is reached by the next of its allowed addresses when the first does not answer', async () => {
    const inside = await receiver({ hostnames: ['hook.test'] })
    const out = outbound({ caFile: inside.caFile, resolve: async () => addresses('127.9.9.9', '127.0.0.1') })
    expect(await out.post(request(inside.url))).toMatchObject({ statusCode: 200, error: null })
    expect(inside.requests[0]?.headers.host).toBe(`hook.test:${inside.port}`)
  })

  test('literal addresses are checked without a resolver', async () => {
    const inside = await receiver()
    const resolve = async () => addresses('93.184.215.14')
    const out = outbound({ allowedCidrs: [], caFile: inside.caFile, resolve })
    for (const host of ['127.0.0.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]']) {
      const refused = { error: 'TARGET_URL_NOT_ALLOWED', refused: true }
      expect(await out.post(request(`https://${host}:${inside.port}/`))).toMatchObject(refused)
    }
    expect(await out.post(request(`http://127.0.0.1:${inside.port}/`))).toMatchObject({
      error: 'TARGET_URL_NOT_HTTPS',
      refused: true,
    })
    expect(inside.connections().total).toBe(0)
  })

  test('may fail to resolve for a while: that is no refusal', async () => {
    const out = outbound({ resolve: () => Promise.reject(new Error('ESERVFAIL')) })
    expect(await out.post(request('https://hook.test/'))).toMatchObject({
      error: 'host name does not resolve',
      refused: false,
    })
  })
})

// A name server that answers A queries with one list after the other, TTL 0, and AAAA queries with no address.
const nameServer = async (...answers: string[][]) => {
  const socket = createSocket('udp4')
  let asked = 0
  socket.on('message', (question, from) => {
    const end = question.indexOf(0, 12) + 5
    const isA = question.readUInt16BE(end - 4) === 1
    const found = isA ? (answers[Math.min(asked++, answers.length - 1)] ?? []) : []
    const head = Buffer.from(question.subarray(0, 12))
    head.writeUInt16BE(0x8180, 2)
    for (const [offset, count] of [
      [6, found.length],
      [8, 0],
      [10, 0],
    ] as const)
      head.writeUInt16BE(count, offset)
    const records = found.map((ipv4) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...ipv4.split('.').map(Number)]),
    )
    socket.send(Buffer.concat([head, question.subarray(12, end), ...records]), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  closing.push(() => new Promise<void>((done) => socket.close(done)))
  return { port: socket.address().port, asked: () => asked }
}

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
    const out = outbound({ caFile: hook.caFile })
    const sockets = () => process.getActiveResourcesInfo().filter((name) => /TCPSocket|TLS/.test(name)).length
    const before = sockets()
    const outcomes = await Promise.all(Array.from({ length: 300 }, () => out.post(request(hook.url))))
    expect(outcomes.filter(({ statusCode }) => statusCode !== 200)).toEqual([])
    expect(hook.requests).toHaveLength(300)
    await expect.poll(() => hook.connections()).toEqual({ open: 0, total: 300 })
    await expect.poll(sockets).toBe(before)
  })
})

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

describe('certificates', () => {
  const resolve = async () => addresses('127.0.0.1')
  const untrusted = 'certificate is not signed by a trusted authority'

  test('one of an unknown authority is refused, also with NODE_TLS_REJECT_UNAUTHORIZED=0', async () => {
    const hook = await receiver()
    expect(await outbound().post(request(hook.url))).toMatchObject({ statusCode: null, error: untrusted })
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      expect(await outbound().post(request(hook.url))).toMatchObject({ statusCode: null, error: untrusted })
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
    }
    expect(hook.requests).toEqual([])
  })

  test.each([
    ['another name', ['other.test'], 'hook.test'],
    ['the address instead of the name', ['127.0.0.1'], 'hook.test'],
    ['the name instead of the address', ['hook.test'], '127.0.0.1'],
  ])('one for %s is refused', async (_name, hostnames, host) => {
    const hook = await receiver({ hostnames })
    const outcome = await outbound({ caFile: hook.caFile, resolve }).post(request(`https://${host}:${hook.port}/`))
    expect(outcome).toMatchObject({ statusCode: null, error: 'certificate is not for this host name' })
    expect(hook.requests).toEqual([])
  })

  test('one that has expired is refused', async () => {
    const validity = { from: new Date('2020-01-01'), until: new Date('2020-02-01') }
    const hook = await receiver({ validity })
    const outcome = await outbound({ caFile: hook.caFile }).post(request(hook.url))
    expect(outcome).toMatchObject({ statusCode: null, error: 'certificate has expired' })
  })

  test('one for a name is valid for the name with a final dot', async () => {
    const hook = await receiver({ hostnames: ['hook.test'] })
    const out = outbound({ caFile: hook.caFile, resolve })
    expect(await out.post(request(`https://hook.test.:${hook.port}/`))).toMatchObject({ statusCode: 200 })
  })

  test('a file without a certificate is a StartError that names it', async () => {
    const { caFile } = await receiver()
    await writeFile(caFile, 'no certificate')
    expect(() => outbound({ caFile })).toThrow(`${caFile} cannot be used as a certificate authority`)
    expect(() => outbound({ caFile: `${caFile}.missing` })).toThrow('cannot be used as a certificate authority')
  })
})
