import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const user = await project.user()

describe('the envelope', () => {
  test('success has data alone, failure has error alone', async () => {
    expect(Object.keys((await user.get('/client/users/me')).body)).toEqual(['data'])
    const refused = await harness.anyone.get('/client/users/me')
    expect(refused.status).toBe(401)
    expect(Object.keys(refused.body)).toEqual(['error'])
    expect(Object.keys(refused.body.error)).toEqual(['code', 'message'])
  })

  test('an unknown path is 404, a known one with another method 405 with Allow', async () => {
    expect(await harness.anyone.get('/nowhere')).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    const other = await harness.anyone.put('/client/events')
    expect(other).toMatchObject({ status: 405, error: { code: 'METHOD_NOT_ALLOWED' } })
    expect(other.headers.get('allow')).toBe('POST')
    const several = await harness.anyone.post(`/admin/projects/${project.id}`)
    expect(several.headers.get('allow')).toBe('GET, HEAD, PATCH, DELETE')
    for (const path of ['/', '/docs', '/openapi.json', '/console', '/console/projects/x', '/health']) {
      const page = await fetch(`${harness.url}${path}`, { method: 'POST' })
      expect(page.status, path).toBe(405)
      expect(page.headers.get('allow'), path).toBe('GET, HEAD')
    }
  })

  test('a value that is none of the allowed ones is told which are', async () => {
    const refused = await project.admin.post('/flags', { key: 'x', value_type: 'date', default_value: 1 })
    expect(refused).toMatchObject({
      status: 400,
      error: { details: { field: 'value_type', reason: 'must be boolean, string, number or json' } },
    })
  })

  test('a body over 1 MB is 413, one of 1 MB is not', async () => {
    const body = (bytes: number) => {
      const frame = JSON.stringify({ event_name: 'x', properties: { text: '' } })
      return frame.replace('""', `"${'a'.repeat(bytes - frame.length)}"`)
    }
    expect(await user.post('/client/events', body(1_048_577))).toMatchObject({
      status: 413,
      error: { code: 'PAYLOAD_TOO_LARGE' },
    })
    expect(await user.post('/client/events', body(1_048_576))).toMatchObject({
      status: 400,
      error: { code: 'VALIDATION_ERROR' },
    })
  })

  test('another content type is 415, broken JSON and a list 400', async () => {
    const xml = await user.post('/client/events', '<a/>', { 'content-type': 'text/xml' })
    expect(xml).toMatchObject({ status: 415, error: { code: 'UNSUPPORTED_MEDIA_TYPE' } })
    expect(await user.post('/client/events', '{"a":')).toMatchObject({ status: 400, error: { code: 'INVALID_BODY' } })
    expect(await user.post('/client/events', '[]')).toMatchObject({ status: 400, error: { code: 'INVALID_BODY' } })
    expect(await harness.anyone.post('/auth/developer/login', 'null')).toMatchObject({
      status: 400,
      error: { code: 'INVALID_INPUT' },
    })
  })

  test('a body in a content encoding is 415, whether it is compressed or not; identity is none', async () => {
    const text = '{"event_name":"encoded"}'
    for (const [encoding, body] of [
      ['gzip', gzipSync(text)],
      ['GZIP', text],
      ['identity, br', text],
    ] as const) {
      const response = await fetch(`${harness.url}/v1/client/events`, {
        method: 'POST',
        body,
        headers: { ...user.headers, 'content-type': 'application/json', 'content-encoding': encoding },
      })
      expect([response.status, ((await response.json()) as any).error.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
      expect(response.headers.get('accept-encoding')).toBe('identity')
    }
    expect((await user.post('/client/events', text, { 'content-encoding': 'identity' })).status).toBe(201)
    // where there is no body, nothing is encoded
    expect((await user.get('/client/users/me', { 'content-encoding': 'gzip' })).status).toBe(200)
  })

  test('a missing field is "required", a field of another type gets its expected type as the reason', async () => {
    const reason = async (body: object) => (await harness.anyone.post('/auth/developer/login', body)).error?.details
    expect(await reason({ password: 'p' })).toEqual({ field: 'email', reason: 'is required' })
    for (const email of [5, null, [], {}]) {
      const details = await reason({ email, password: 'p' })
      expect(details.field).toBe('email')
      expect(details.reason).toMatch(/^expected string, received/)
    }
  })

  test('characters that cannot be stored, and nesting without end, are refused by name', async () => {
    for (const text of ['"\\u0000"', '"\\ud800"', '{"\\u0000":1}', `${'['.repeat(300)}${']'.repeat(300)}`]) {
      const answer = await user.post('/client/events', `{"event_name":"x","properties":{"a":${text}}}`)
      expect(answer).toMatchObject({ status: 400, error: { code: 'INVALID_BODY' } })
    }
    const escaped = await user.post('/client/events', '{"event_name":"x","properties":{"a":"\\\\u0000"}}')
    expect(escaped.data.event.properties).toEqual({ a: '\\u0000' })
  })
})

test('U+0000 in a path names nothing, in the words of the route, and in a query is no text', async () => {
  const paths: [path: string, code: string][] = [
    ['/streaks/a%00b', 'STREAK_NOT_FOUND'],
    ['/catalog/%00', 'NOT_FOUND'],
    ['/config/%00', 'NOT_FOUND'],
    ['/collections/a%00', 'COLLECTION_NOT_FOUND'],
    ['/events/definitions/%00', 'NOT_FOUND'],
  ]
  for (const [path, code] of paths)
    for (const method of ['DELETE', 'PATCH', 'GET']) {
      const answer = await project.admin.request(method, path, method === 'PATCH' ? {} : undefined)
      if (answer.status !== 405) expect(answer, `${method} ${path}`).toMatchObject({ status: 404, error: { code } })
    }
  const malformed = await project.admin.get('/webhooks/%00')
  expect(malformed).toMatchObject({ status: 400, error: { code: 'INVALID_ID' } })
  for (const [path, field] of [
    ['/catalog?category=a%00b', 'category'],
    ['/events?where=%00', 'where'],
    ['/events?cursor=%00', 'cursor'],
    ['/operations?type=%00', 'type'],
  ])
    expect(await project.admin.get(path!), path).toMatchObject({
      status: 400,
      error: { code: 'INVALID_INPUT', details: { field, reason: 'must be text without U+0000' } },
    })
})

describe('X-Request-Id', () => {
  test('a good one is kept, any other is replaced', async () => {
    for (const id of ['abc-1.2_3', 'x'.repeat(128)]) {
      expect((await user.get('/client/users/me', { 'x-request-id': id })).headers.get('x-request-id')).toBe(id)
    }
    for (const id of ['a b', 'x'.repeat(129), 'ä'.normalize(), '<script>']) {
      const answer = await user.get('/client/users/me', {
        'x-request-id': encodeURIComponent(id) === id ? id : id.replace('ä', 'a/b'),
      })
      expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    }
    expect((await harness.anyone.get('/nowhere')).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  })
})

test('security headers stand on every answer, errors too', async () => {
  for (const answer of [await user.get('/client/users/me'), await harness.anyone.get('/nowhere')]) {
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
  }
})

test('CORS: apps call from anywhere without credentials, consoles from nowhere unless configured', async () => {
  const preflight = (path: string) =>
    fetch(harness.url + path, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-api-key',
      },
    })
  const client = await preflight('/v1/client/events')
  expect(client.status).toBe(204)
  expect(client.headers.get('access-control-allow-origin')).toBe('*')
  expect(client.headers.get('access-control-allow-headers')).toContain('x-api-key')
  expect(client.headers.get('access-control-allow-credentials')).toBeNull()
  const console = await preflight('/v1/admin/projects')
  expect(console.headers.get('access-control-allow-origin')).toBeNull()
})

test('a page: defaults, the clamp, and what is refused', async () => {
  const list = await project.admin.get('/webhooks')
  expect(list.body).toMatchObject({ data: [], total: 0, offset: 0, limit: 50 })
  expect((await project.admin.get('/webhooks?limit=9999')).body.limit).toBe(200)
  // further than Postgres counts there is nothing, as everywhere beyond the end
  const beyond = await project.admin.get('/webhooks?offset=999999999999999')
  expect([beyond.status, beyond.data]).toEqual([200, []])
  for (const query of [
    'limit=0',
    'limit=-1',
    'limit=1.5',
    'limit=x',
    'limit=',
    'offset=-1',
    'offset=x',
    'limit=1&limit=2',
  ]) {
    expect(await project.admin.get(`/webhooks?${query}`), query).toMatchObject({
      status: 400,
      error: { code: 'INVALID_INPUT' },
    })
  }
})

test('health says which part fails, and is open to everybody', async () => {
  const answer = await harness.anyone.get('//health')
  expect(answer).toMatchObject({ status: 200, data: { status: 'ok', parts: { database: 'ok', template: 'ok' } } })
})

test('GET / leads a browser to the console and the reference, and is nothing to a program', async () => {
  const page = await fetch(`${harness.url}/`, { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } })
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  const text = await page.text()
  for (const place of ['/console', '/docs', '/openapi.json', '/v1/auth/developer/signup']) expect(text).toContain(place)
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(text) ?? []
  const hash = createHash('sha256').update(style).digest('base64')
  expect(page.headers.get('content-security-policy')).toContain(`style-src 'sha256-${hash}'`)
  expect(page.headers.get('content-security-policy')).not.toMatch(/script|connect/)
  const program = await fetch(`${harness.url}/`)
  expect(program.status).toBe(404)
  expect(await program.json()).toMatchObject({ error: { code: 'NOT_FOUND' } })
})
