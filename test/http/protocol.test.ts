import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const { port, hostname, host } = new URL(harness.url)

type Received = { readonly status: number; readonly headers: Headers; readonly body: any; readonly rest: string }

/** Reads one answer of known length; what came after it is `rest`. */
const parse = (text: string): Received => {
  const end = text.indexOf('\r\n\r\n')
  const [first = '', ...lines] = text.slice(0, end).split('\r\n')
  const headers = new Headers(lines.map((line) => line.split(/: ?(.*)/s).slice(0, 2) as [string, string]))
  const length = Number(headers.get('content-length') ?? 0)
  const body = text.slice(end + 4, end + 4 + length)
  return {
    status: Number(first.split(' ')[1]),
    headers,
    body: body ? JSON.parse(body) : null,
    rest: text.slice(end + 4 + length),
  }
}

/** Sends bytes as they are, and hears everything until the server ends the connection. */
const raw = (...parts: string[]): Promise<Received> =>
  new Promise((resolve, reject) => {
    let received = ''
    const socket = connect({ host: hostname, port: Number(port) })
    socket.on('connect', () => {
      for (const part of parts) socket.write(part, 'latin1')
    })
    socket.on('data', (bytes) => {
      received += bytes
    })
    // a reset after the answer takes nothing of it away
    socket.on('error', () => {})
    socket.on('close', () => (received ? resolve(parse(received)) : reject(new Error('no answer'))))
  })

/** An envelope, its headers, and nothing after it. */
const expectRefused = (received: Received, status: number, code: string) => {
  expect([received.status, received.body?.error?.code]).toEqual([status, code])
  expect(Object.keys(received.body)).toEqual(['error'])
  expect(Object.keys(received.body.error)).toEqual(['code', 'message'])
  expect(received.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._-]{1,128}$/)
  expect(received.headers.get('content-type')).toBe('application/json; charset=utf-8')
  for (const [name, value] of [
    ['x-content-type-options', 'nosniff'],
    ['cache-control', 'no-store'],
    ['connection', 'close'],
  ] as const)
    expect(received.headers.get(name)).toBe(value)
  expect(received.rest).toBe('')
}

const end = 'Connection: close\r\n\r\n'
const login = '{"email":"a@example.org","password":"x"}'
const post = (headers: string) =>
  `POST /v1/auth/developer/login HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n${headers}\r\n`

describe('a request that HTTP refuses has the envelope and a request id', () => {
  test.each([
    ['no Host', `GET /health HTTP/1.1\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['two Hosts', `GET /health HTTP/1.1\r\nHost: ${host}\r\nHost: ${host}\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['two other Hosts', `GET /health HTTP/1.1\r\nhost: a\r\nX: y\r\nHOST: b\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['two Hosts in 1.0', `GET /health HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['two Hosts of an unknown path', `GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['another expectation', `GET /health HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n`, 417, 'EXPECTATION_FAILED'],
    [
      'an expectation beside a body',
      `${post('Expect: more\r\nContent-Length: 5\r\n')}hello`,
      417,
      'EXPECTATION_FAILED',
    ],
    [
      'too many headers',
      `GET /health HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
      'HEADERS_TOO_LARGE',
    ],
    ['a long target', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
    ['CONNECT', `CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n`, 405, 'METHOD_NOT_ALLOWED'],
    ['CONNECT and bytes', `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n\x16\x03\x01`, 405, 'METHOD_NOT_ALLOWED'],
    ['no HTTP', 'hello\r\n\r\n', 400, 'INVALID_INPUT'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'INVALID_INPUT'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'INVALID_INPUT'],
    ['another version', `GET /health HTTP/3.7\r\nHost: a\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['an unknown method', `BREW /health HTTP/1.1\r\nHost: a\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['a space in the target', `GET /he alth HTTP/1.1\r\nHost: a\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['a header without a name', `GET /health HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['a space before a colon', `GET /health HTTP/1.1\r\nHost : a\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['a control letter in a header', `GET /health HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['a length that is none', `${post('Content-Length: x\r\n')}`, 400, 'INVALID_INPUT'],
    ['a length below zero', `${post('Content-Length: -1\r\n')}`, 400, 'INVALID_INPUT'],
    ['two lengths', `${post('Content-Length: 5\r\nContent-Length: 6\r\n')}hello`, 400, 'INVALID_INPUT'],
    [
      'a length and chunks',
      `${post('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n')}0\r\n\r\n`,
      400,
      'INVALID_INPUT',
    ],
    [
      'chunks and a length',
      `${post('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n')}0\r\n\r\n`,
      400,
      'INVALID_INPUT',
    ],
    ['chunked twice', `${post('Transfer-Encoding: chunked, chunked\r\n')}0\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['another coding', `${post('Transfer-Encoding: gzip\r\n')}0\r\n\r\n`, 400, 'INVALID_INPUT'],
    ['a broken chunk', `${post('Transfer-Encoding: chunked\r\n')}zz\r\n\r\n`, 400, 'INVALID_INPUT'],
  ] as const)('%s', async (_name, text, status, code) => {
    expectRefused(await raw(text), status, code)
  })

  test('a request id that was sent is kept where the headers were read', async () => {
    const id = 'X-Request-Id: mine-1\r\n\r\n'
    for (const text of [
      `GET /health HTTP/1.1\r\n${id}`,
      `GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n${id}`,
      `GET /health HTTP/1.1\r\nHost: a\r\nExpect: x\r\n${id}`,
      `CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n${id}`,
    ])
      expect((await raw(text)).headers.get('x-request-id')).toBe('mine-1')
  })

  test('CONNECT says which methods there are', async () => {
    const { headers } = await raw(`CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`)
    expect(headers.get('allow')).toBe('GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
  })

  test('what follows a refused request on its connection is never read', async () => {
    const second = `GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`
    for (const first of [
      `GET /health HTTP/1.1\r\n\r\n`,
      `GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`,
      post('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n'),
      `CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`,
    ])
      expect((await raw(first + second)).rest).toBe('')
  })
})

test('requests that came whole are answered first, in order, and then the one that is refused', async () => {
  const good = `GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`
  const body = post(`Content-Length: ${login.length}\r\n`) + login
  for (const [sent, bad, statuses] of [
    [good, '\0\0\r\n\r\n', [200, 400]],
    [body, '}}\r\n\r\n', [401, 400]],
    [good + good + body, '\0\0\r\n\r\n', [200, 200, 401, 400]],
    [good, `GET /health HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`, [200, 431]],
    [body, `CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`, [401, 405]],
  ] as const) {
    const received: number[] = []
    for (let answer = await raw(sent + bad); ; answer = parse(answer.rest)) {
      received.push(answer.status)
      if (answer.rest === '') break
    }
    expect(received).toEqual(statuses)
  }
})

test('OPTIONS that is no preflight has no answer of another form', async () => {
  const { status, body, headers } = await raw(`OPTIONS /v1/client/config HTTP/1.1\r\nHost: ${host}\r\n${end}`)
  expect([status, body]).toEqual([204, null])
  expect(headers.get('access-control-allow-methods')).toBe('GET, HEAD, POST, PUT, PATCH, DELETE')
})

describe('what is unusual and right is served', () => {
  test.each([
    ['HTTP/1.0 without a Host', `GET /health HTTP/1.0\r\n\r\n`],
    ['an empty Host', `GET /health HTTP/1.1\r\nHost:\r\n${end}`],
    ['the absolute form', `GET http://${host}/health HTTP/1.1\r\nHost: ${host}\r\n${end}`],
    ['the absolute form of another scheme', `GET HTTPS://example.org/health HTTP/1.1\r\nHost: ${host}\r\n${end}`],
    [
      'an upgrade',
      `GET /health HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n${end.replace('close', 'Upgrade, close')}`,
    ],
    ['an upgrade to HTTP/2', `GET /health HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n${end}`],
  ])('%s', async (_name, text) => {
    const { status, body, headers } = await raw(text)
    expect([status, body]).toMatchObject([200, { data: { status: 'ok' } }])
    expect(headers.get('x-request-id')).toBeTruthy()
  })

  test('100-continue is met', async () => {
    const [interim, answer] = (await new Promise<string>((resolve) => {
      let received = ''
      const socket = connect({ host: hostname, port: Number(port) })
      socket.write(post(`Expect: 100-continue\r\nContent-Length: ${login.length}\r\nConnection: close\r\n`))
      socket.on('data', (bytes) => {
        if (received === '') socket.write(login)
        received += bytes
      })
      socket.on('close', () => resolve(received))
    }).then((text) => text.split(/(?<=Continue\r\n\r\n)/))) as [string, string]
    expect(interim).toMatch(/^HTTP\/1.1 100 /)
    expect(parse(answer)).toMatchObject({ status: 401, body: { error: { code: 'INVALID_CREDENTIALS' } } })
  })

  test.each([
    ['a path of the absolute form that is not there', 'GET', 'http://a/nowhere', 404, 'NOT_FOUND'],
    ['the root in absolute form', 'GET', 'http://a', 404, 'NOT_FOUND'],
    ['a path that cannot be decoded', 'GET', '/%zz', 404, 'NOT_FOUND'],
    ['TRACE', 'TRACE', '/health', 405, 'METHOD_NOT_ALLOWED'],
    ['PROPFIND', 'PROPFIND', '/v1/client/events', 405, 'METHOD_NOT_ALLOWED'],
    ['TRACE of nothing', 'TRACE', '/nowhere', 404, 'NOT_FOUND'],
    ['an asterisk', 'GET', '*', 404, 'NOT_FOUND'],
    ['OPTIONS without an origin', 'OPTIONS', '/nowhere', 404, 'NOT_FOUND'],
  ])('%s', async (_name, method, target, status, code) => {
    const received = await raw(`${method} ${target} HTTP/1.1\r\nHost: a\r\n${end}`)
    expectRefused(received, status, code)
  })
})
