import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import {
  createUpstream,
  failureOf,
  type ProviderUrls,
  retryAfterMs,
  type UpstreamOptions,
} from '#server/providers/upstream.ts'
import type { CallRequest } from '#server/providers/upstream_requests.ts'

/** Calls to providers: answers, limits, retries, circuits and streams, against real servers. */
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Seen = { method: string; url: string; headers: IncomingMessage['headers']; body: string }

/** A provider that answers with one handler after the other, the last one again and again. */
const provider = async (...handlers: ((response: ServerResponse, request: IncomingMessage) => unknown)[]) => {
  const seen: Seen[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    seen.push({ method: request.method!, url: request.url!, headers: request.headers, body })
    await handlers[Math.min(seen.length, handlers.length) - 1]!(response, request)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.closeAllConnections()
    return new Promise((done) => server.close(done))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen, server }
}

const usual: ProviderUrls = {
  REVENUECAT_BASE_URL: 'http://127.0.0.1:9',
  SUPERWALL_BASE_URL: 'http://127.0.0.1:9',
  ANTHROPIC_BASE_URL: 'http://127.0.0.1:9',
  OPENAI_BASE_URL: 'http://127.0.0.1:9',
  GOOGLE_AI_BASE_URL: 'http://127.0.0.1:9',
  MISTRAL_BASE_URL: 'http://127.0.0.1:9',
  GITHUB_URL: 'http://127.0.0.1:9',
  GITHUB_API_URL: 'http://127.0.0.1:9',
}

/** A client that notes its log lines, and how long it would have waited before each retry. */
const client = (url: string, options: Partial<UpstreamOptions> = {}) => {
  const lines: Record<string, unknown>[] = []
  const waits: number[] = []
  const upstream = createUpstream({
    urls: { ...usual, REVENUECAT_BASE_URL: url, OPENAI_BASE_URL: url },
    log: { debug: (fields: object) => void lines.push(fields as Record<string, unknown>) } as UpstreamOptions['log'],
    wait: async (ms) => void waits.push(ms),
    random: () => 0.5,
    ...options,
  })
  closing.push(upstream.close)
  return { ...upstream, lines, waits }
}

const projectId = 'b5bd3a52-0000-4000-8000-000000000001'
const get = (more: Partial<CallRequest> = {}): CallRequest => ({
  provider: 'revenuecat',
  projectId,
  method: 'GET',
  path: '/v1/things',
  ...more,
})
const post = (more: Partial<CallRequest> = {}) => get({ method: 'POST', json: { a: 1 }, ...more })
const json =
  (status: number, body: unknown, headers = {}) =>
  (response: ServerResponse) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
const silence = () => undefined

const unusedPort = async () => {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((done) => server.close(done))
  return port
}

describe('a request', () => {
  test('has its path, query, headers and JSON, below a base URL with a path', async () => {
    const { url, seen } = await provider(json(200, { ok: true }, { 'x-of-theirs': 'yes' }))
    const { call, lines } = client(`${url}/gateway/`)
    const answer = await call(
      post({
        path: '/v1/customers/{customer}/things',
        params: { customer: 'a/b ?#%é' },
        query: { limit: 20, after: 'x y', none: undefined },
        headers: { Authorization: 'Bearer sk_secret' },
      }),
    )
    expect(answer).toMatchObject({ failure: null, status: 200, headers: { 'x-of-theirs': 'yes' } })
    expect(answer.failure === null && answer.json()).toEqual({ ok: true })
    expect(seen).toMatchObject([
      {
        method: 'POST',
        url: '/gateway/v1/customers/a%2Fb%20%3F%23%25%C3%A9/things?limit=20&after=x+y',
        headers: {
          authorization: 'Bearer sk_secret',
          'content-type': 'application/json',
          'accept-encoding': 'identity',
        },
        body: '{"a":1}',
      },
    ])
    expect(lines).toEqual([
      {
        provider: 'revenuecat',
        project: projectId,
        method: 'POST',
        route: '/v1/customers/{customer}/things',
        status: 200,
        attempts: 1,
        failure: null,
        ms: expect.any(Number),
      },
    ])
  })

  test('sends a body byte for byte', async () => {
    const { url, seen } = await provider(json(200, {}))
    const body = Buffer.from('{ "n": 1.0, "é": [ ] }')
    const { json: _none, ...raw } = post({ body, headers: { 'content-type': 'application/json' } })
    await client(url).call(raw)
    expect(seen[0]?.body).toBe('{ "n": 1.0, "é": [ ] }')
  })

  test.each(['', '.', '..'])('with the path parameter %j is a defect of its caller', async (customer) => {
    const { url, seen } = await provider(json(200, {}))
    const call = client(url).call(get({ path: '/v1/{customer}', params: { customer } }))
    await expect(call).rejects.toThrow('the path parameter customer cannot be sent')
    expect(seen).toEqual([])
  })

  test('a body that is no JSON is undefined', async () => {
    const { url } = await provider((response) => response.end('<html>'))
    const answer = await client(url).call(get())
    expect(answer).toMatchObject({ failure: null, bytes: Buffer.from('<html>') })
    expect(answer.failure === null && answer.json()).toBeUndefined()
  })

  test('a redirect is an answer and is not followed', async () => {
    const { url, seen } = await provider((response) => response.writeHead(307, { location: '/elsewhere' }).end())
    expect(await client(url).call(get())).toMatchObject({ failure: null, status: 307 })
    expect(seen).toHaveLength(1)
  })
})

describe('retries', () => {
  const busy = json(503, {})

  test('an idempotent request is repeated twice, with growing pauses', async () => {
    const { url, seen } = await provider(busy, busy, json(200, { third: true }))
    const { call, waits, lines } = client(url)
    expect(await call(get())).toMatchObject({ failure: null, status: 200 })
    expect(seen).toHaveLength(3)
    expect(waits).toEqual([125, 250])
    expect(lines).toMatchObject([{ attempts: 3, status: 200 }])
  })

  test.each([429, 502, 503, 504])('the third %i is the answer', async (status) => {
    const { url, seen } = await provider(json(status, { message: 'busy' }))
    const answer = await client(url).call(get())
    expect(answer).toMatchObject({ failure: null, status })
    expect(answer.failure === null && answer.json()).toEqual({ message: 'busy' })
    expect(seen).toHaveLength(3)
  })

  test.each([400, 401, 404, 409, 500])('%i is not repeated', async (status) => {
    const { url, seen } = await provider(json(status, {}))
    expect(await client(url).call(get())).toMatchObject({ status })
    expect(seen).toHaveLength(1)
  })

  test('a POST is repeated only when it says that it is idempotent', async () => {
    const { url, seen } = await provider(busy)
    const { call } = client(url)
    expect(await call(post())).toMatchObject({ status: 503 })
    expect(seen).toHaveLength(1)
    await call(post({ idempotent: true, headers: { 'idempotency-key': 'k1' } }))
    expect(seen.slice(1).map(({ headers, body }) => [headers['idempotency-key'], body])).toEqual([
      ['k1', '{"a":1}'],
      ['k1', '{"a":1}'],
      ['k1', '{"a":1}'],
    ])
  })

  test('Retry-After is honoured while the time of the call allows it', async () => {
    const { url, seen } = await provider(json(429, {}, { 'retry-after': '2' }), json(200, {}))
    const { call, waits } = client(url)
    expect(await call(get())).toMatchObject({ status: 200 })
    expect(waits).toEqual([2000])
    const far = await provider(json(429, {}, { 'retry-after': '60' }))
    const impatient = client(far.url)
    expect(await impatient.call(get())).toMatchObject({ failure: null, status: 429 })
    expect([far.seen.length, impatient.waits, seen.length]).toEqual([1, [], 2])
  })

  test('Retry-After is seconds or a date', () => {
    const now = Date.parse('2026-12-05T10:00:00Z')
    expect(retryAfterMs('7', now)).toBe(7000)
    expect(retryAfterMs('Sat, 05 Dec 2026 10:00:09 GMT', now)).toBe(9000)
    expect(retryAfterMs('Sat, 05 Dec 2026 09:00:00 GMT', now)).toBe(0)
    expect([undefined, '', 'soon', '-1', '1.5', '99999999999'].map((text) => retryAfterMs(text, now))).toEqual(
      Array(6).fill(null),
    )
  })

  test('a connection that breaks off is repeated for GET and not for POST', async () => {
    const { url, seen } = await provider((response) => response.destroy())
    const { call } = client(url)
    const broken = { failure: 'PROVIDER_FAILED', reason: 'connection broke off', isSent: true }
    expect(await call(get())).toEqual(broken)
    expect(seen).toHaveLength(3)
    expect(await call(post())).toEqual(broken)
    expect(seen).toHaveLength(4)
  })
})

describe('a provider that misbehaves', () => {
  test('nobody listens: nothing was sent', async () => {
    const { call, waits } = client(`http://127.0.0.1:${await unusedPort()}`)
    expect(await call(get())).toEqual({ failure: 'PROVIDER_UNAVAILABLE', reason: 'no connection', isSent: false })
    expect(waits).toHaveLength(2)
  })

  test('silence ends at the time limit, and so does a trickle', async () => {
    const late = { failure: 'PROVIDER_TIMEOUT', reason: 'no answer in time', isSent: true }
    const silent = await provider(silence)
    expect(await client(silent.url).call(get({ timeoutMs: 100 }))).toEqual(late)
    const trickling = await provider(async (response) => {
      response.writeHead(200)
      while (!response.destroyed) {
        response.write('.')
        await sleep(10)
      }
    })
    expect(await client(trickling.url).call(get({ timeoutMs: 150 }))).toEqual(late)
    expect([silent.seen.length, trickling.seen.length]).toEqual([1, 1])
  })

  test('a body that breaks off, one that is too large, and what is no HTTP', async () => {
    const cut = await provider((response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{"half":')
      setImmediate(() => response.destroy())
    })
    expect(await client(cut.url).call(post())).toMatchObject({ failure: 'PROVIDER_FAILED', isSent: true })
    const large = await provider((response) => response.end('x'.repeat(1001)))
    expect(await client(large.url).call(get({ maxBytes: 1000 }))).toEqual({
      failure: 'PROVIDER_FAILED',
      reason: 'response is too large',
      isSent: true,
    })
    expect(large.seen).toHaveLength(1)
    expect(await client(large.url).call(get({ maxBytes: 1001 }))).toMatchObject({ failure: null, status: 200 })
    const rude = createTcpServer((socket) => socket.resume().end('220 mail.example.com sk_secret\r\n'))
    rude.listen(0, '127.0.0.1')
    await once(rude, 'listening')
    closing.push(() => new Promise((done) => rude.close(done)))
    const answer = await client(`http://127.0.0.1:${(rude.address() as AddressInfo).port}`).call(post())
    expect(answer).toEqual({ failure: 'PROVIDER_FAILED', reason: 'response is not valid', isSent: true })
  })

  test('a caller who goes away ends the call, also one that waits for its retry', async () => {
    const gone = { failure: 'ABORTED', reason: 'the caller went away', isSent: true }
    const leaving = new AbortController()
    const silent = await provider(() => leaving.abort())
    expect(await client(silent.url).call(get({ signal: leaving.signal }))).toEqual(gone)
    const other = new AbortController()
    const busy = await provider(json(503, {}))
    const wait = async () => other.abort()
    expect(await client(busy.url, { wait }).call(get({ signal: other.signal }))).toEqual(gone)
    expect(busy.seen).toHaveLength(1)
  })
})

describe('a circuit', () => {
  test('opens after five failures, for one provider and project, and closes after a successful probe', async () => {
    let isDown = true
    const { url, seen } = await provider((response) => json(isDown ? 500 : 200, {})(response))
    let time = 0
    const { call } = client(url, { clock: () => time })
    for (let i = 0; i < 5; i += 1) expect(await call(post())).toMatchObject({ status: 500 })
    const open = { failure: 'PROVIDER_UNAVAILABLE', reason: 'circuit is open', isSent: false }
    expect(await call(post())).toEqual(open)
    expect(seen).toHaveLength(5)
    // neither another project nor another provider waits for this one
    expect(await call(post({ projectId: 'another' }))).toMatchObject({ status: 500 })
    expect(await call(post({ provider: 'openai' }))).toMatchObject({ status: 500 })

    time = 29_999
    expect(await call(post())).toEqual(open)
    time = 30_000
    // a failed probe opens it for another 30 seconds
    expect(await call(post())).toMatchObject({ status: 500 })
    expect(await call(post())).toEqual(open)
    time = 60_000
    isDown = false
    const probes = await Promise.all([call(post()), call(post()), call(post())])
    expect(probes.filter(({ failure }) => failure === null)).toHaveLength(1)
    expect(await call(post())).toMatchObject({ status: 200 })
  })

  test('does not open for refusals, nor for failures that lie apart, nor for callers who go away', async () => {
    const { url } = await provider(json(429, {}))
    const { call } = client(url)
    for (let i = 0; i < 8; i += 1) expect(await call(post())).toMatchObject({ status: 429 })
    let time = 0
    const failing = await provider(json(500, {}))
    const apart = client(failing.url, { clock: () => time })
    for (let i = 0; i < 8; i += 1) {
      expect(await apart.call(post())).toMatchObject({ status: 500 })
      time += 60_000
    }
    const silent = await provider(silence)
    const left = client(silent.url)
    for (let i = 0; i < 8; i += 1) {
      expect(await left.call(get({ signal: AbortSignal.abort() }))).toMatchObject({ failure: 'ABORTED' })
    }
  })

  test('a probe whose caller goes away leaves the next one to probe', async () => {
    let time = 0
    const { url } = await provider(...Array(5).fill(json(500, {})), json(200, {}))
    const { call } = client(url, { clock: () => time })
    for (let i = 0; i < 5; i += 1) await call(post())
    time = 30_000
    expect(await call(post({ signal: AbortSignal.abort() }))).toMatchObject({ failure: 'ABORTED' })
    expect(await call(post())).toMatchObject({ status: 200 })
  })
})

describe('a stream', () => {
  test('passes each piece on before the next is sent', async () => {
    const pieces: ((text: string | null) => void)[] = []
    const { url } = await provider((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.flushHeaders()
      pieces.push((text) => (text === null ? response.end() : response.write(text)))
    })
    const { stream, lines } = client(url)
    const answer = await stream(post())
    if (answer.failure !== null) throw new Error(answer.reason)
    expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } })
    const read = answer.body[Symbol.asyncIterator]()
    for (const text of ['data: a\n\n', 'data: b', '\n\n']) {
      pieces[0]!(text)
      expect(String((await read.next()).value)).toBe(text)
    }
    expect(lines).toEqual([])
    pieces[0]!(null)
    expect((await read.next()).done).toBe(true)
    await expect.poll(() => lines).toMatchObject([{ status: 200, failure: null }])
  })

  test('ends when its caller goes away, and the provider sees it', async () => {
    const leaving = new AbortController()
    let closed: Promise<unknown> | undefined
    const { url } = await provider((response) => {
      closed = once(response, 'close')
      response.writeHead(200).write('first')
    })
    const { stream, lines } = client(url)
    const answer = await stream(post({ signal: leaving.signal }))
    if (answer.failure !== null) throw new Error(answer.reason)
    const read = answer.body[Symbol.asyncIterator]()
    await read.next()
    leaving.abort()
    const error = await read.next().then(
      () => null,
      (reason: unknown) => reason,
    )
    expect(failureOf(error)).toMatchObject({ failure: 'ABORTED' })
    await closed
    await expect.poll(() => lines).toMatchObject([{ failure: 'ABORTED' }])
  })

  test('its time limit is for the headers; then pauses are limited', async () => {
    const silent = await provider(silence)
    expect(await client(silent.url).stream(post({ timeoutMs: 100 }))).toMatchObject({ failure: 'PROVIDER_TIMEOUT' })
    const slow = await provider(async (response) => {
      response.writeHead(200).write('1')
      for (const text of ['2', '3', '4']) {
        await sleep(60)
        response.write(text)
      }
    })
    const answer = await client(slow.url).stream({ ...post({ timeoutMs: 150 }), idleMs: 1000 })
    if (answer.failure !== null) throw new Error(answer.reason)
    let text = ''
    const read = async () => {
      for await (const chunk of answer.body) text += chunk
    }
    const error = await read().catch((reason: unknown) => reason)
    expect(text).toBe('1234')
    expect(failureOf(error)).toMatchObject({ failure: 'PROVIDER_TIMEOUT' })
  })

  test('that breaks off counts against its circuit', async () => {
    const { url } = await provider((response) => {
      response.writeHead(200).write('x')
      setImmediate(() => response.destroy())
    })
    const { stream, lines } = client(url)
    for (let i = 1; i <= 5; i += 1) {
      const answer = await stream(post())
      if (answer.failure !== null) throw new Error(answer.reason)
      const error = await answer.body.text().catch((reason: unknown) => reason)
      expect(failureOf(error)).toMatchObject({ failure: 'PROVIDER_FAILED' })
      await expect.poll(() => lines.length).toBe(i)
    }
    expect(await stream(post())).toMatchObject({ failure: 'PROVIDER_UNAVAILABLE', reason: 'circuit is open' })
  })

  test('retries before its first byte, and gives an error status with its body', async () => {
    const { url, seen } = await provider(json(503, {}), json(400, { error: 'bad' }))
    const answer = await client(url).stream(post({ idempotent: true }))
    if (answer.failure !== null) throw new Error(answer.reason)
    expect(answer.status).toBe(400)
    expect(await answer.body.json()).toEqual({ error: 'bad' })
    expect(seen).toHaveLength(2)
  })
})

test('closing ends what is in progress', async () => {
  const { url, server } = await provider(silence)
  const { call, close } = client(url)
  const pending = call(post())
  await once(server, 'request')
  await close()
  expect(await pending).toMatchObject({ isSent: true })
})
