import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import WebSocket from 'ws'
import { freshEmail, freshIp, startHarness } from '#test/support/harness.ts'
import { register, upload } from '#test/support/media.ts'
import { type RawRequest, sendRaw } from '#test/support/raw_request.ts'
import { sized } from '#test/support/sized.ts'

/**
 * Every way into the server, with bytes that no client sends: methods, paths, headers and bodies are mutations of valid ones, each byte from 0 to
 * 255. None is answered with a 5xx, whatever it holds, and the server serves as before.
 */
const harness = await startHarness({ env: { LOG_LEVEL: 'silent' } })
const project = await harness.project()
await project.admin.patch('', { rest_enabled: true, graphql_enabled: true })
const columns = [
  { name: 'title', type: 'text' },
  { name: 'body', type: 'jsonb' },
  { name: 'n', type: 'numeric' },
]
await project.admin.post('/collections', {
  name: 'notes',
  columns,
  read_policy: 'public',
  write_policy: 'authenticated',
  realtime: true,
})
const user = await project.user()
const session = `Bearer ${user.sessionToken}`
const bearer = `Bearer ${project.developer.accessToken}`
const admin = `/v1/admin/projects/${project.id}`
const note = await user.post('/client/collections/notes', { title: 'a' })
const { asset, uploadPath } = await (async () => {
  const stored = await upload(user)
  const { uploadUrl } = await register(user)
  return { asset: stored, uploadPath: new URL(uploadUrl).pathname + new URL(uploadUrl).search }
})()
const downloadPath = new URL(asset.storage_url).pathname + new URL(asset.storage_url).search
const cookie = await (async () => {
  const made = await fetch(`${harness.url}/console/session/signup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': freshIp() },
    body: JSON.stringify({ email: freshEmail(), password: 'a long passphrase' }),
  })
  return made.headers.get('set-cookie')?.split(';')[0] ?? ''
})()

/** What a mutation writes over, or inserts. */
const piece = fc.oneof(
  fc.constantFrom(
    '\0',
    '%00',
    '%',
    '%ff',
    '%2e%2e%2f',
    '..',
    '//',
    '\\',
    '\xff\xfe',
    '\xc3\xa9',
    "'",
    '"',
    '(',
    ')',
    '{',
    ']',
    ',',
    '.',
    ':',
    '&',
    '=',
    '*',
    '-1',
    '1e999',
    '99999999999999999999',
    'null',
    '\t',
    '#',
    '?',
    '\xed\xa0\x80',
    '%F0%9F%98%80',
    '\u007f',
  ),
  fc.integer({ min: 0, max: 255 }).map((byte) => String.fromCharCode(byte)),
  fc.constantFrom(16, 300, 5000).map((length) => 'a'.repeat(length)),
)

/** Some places of a text are written over, cut out or doubled. */
const mutated = (text: string): fc.Arbitrary<string> =>
  fc
    .array(fc.tuple(fc.nat({ max: text.length }), fc.nat({ max: 12 }), piece), { maxLength: 3 })
    .map((changes) => changes.reduce((now, [at, cut, put]) => now.slice(0, at) + put + now.slice(at + cut), text))

/** A line of a request cannot hold a line break: it would be another line. */
const oneLine = (text: string) => text.replace(/[\r\n]/g, '')

const headerNames = [
  'accept',
  'accept-encoding',
  'accept-language',
  'accept-profile',
  'apikey',
  'authorization',
  'content-encoding',
  'content-profile',
  'content-range',
  'content-type',
  'cookie',
  'expect',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'last-event-id',
  'origin',
  'prefer',
  'range',
  'traceparent',
  'upload-offset',
  'x-api-key',
  'x-client-info',
  'x-forwarded-for',
  'x-group-context',
  'x-on-behalf-of',
  'x-request-id',
  'x-service-timezone',
  'x-upsert',
]
const headerValue = fc.oneof(
  fc.constantFrom(
    'application/json',
    'application/geo+json',
    'application/vnd.pgrst.object+json',
    'application/vnd.pgrst.plan',
    'text/csv',
    'text/html',
    'multipart/form-data; boundary=x',
    'application/octet-stream',
    'application/graphql-response+json',
    'return=representation,count=exact',
    'resolution=merge-duplicates',
    'tx=rollback',
    'handling=strict, timezone=Nowhere/Else',
    'gzip',
    'br;q=0',
    'bytes=0-0',
    'bytes=9-1,2-',
    '0-9',
    '*',
    '"x"',
    'W/"x"',
    session,
    bearer,
    project.clientKey,
    project.serverKey,
    user.id,
    'null',
    'tomorrow',
    '',
  ),
  mutated('a value'),
)

type Way = {
  readonly name: string
  readonly requests: readonly { readonly method: string; readonly path: string; readonly body?: string }[]
  readonly headers: readonly (readonly [string, string])[]
}
const json = ['content-type', 'application/json'] as const
const asUser = [['x-api-key', project.clientKey], ['authorization', session], json] as const
const asRest = [['apikey', project.clientKey], ['authorization', session], json] as const
const asServer = [['apikey', project.serverKey], json] as const
const get = (path: string) => ({ method: 'GET', path })
const post = (path: string, body: unknown) => ({
  method: 'POST',
  path,
  body: typeof body === 'string' ? body : JSON.stringify(body),
})

const ways: readonly Way[] = [
  {
    name: 'routes of clients',
    headers: asUser,
    requests: [
      get('/v1/client/users/me'),
      get('/v1/client/config'),
      get('/v1/client/collections/notes?filter[title]=a&limit=5&order=title.asc'),
      get(`/v1/client/collections/notes/${note.data.id}`),
      post('/v1/client/collections/notes', { title: 'b', body: { a: [1, 2, 'x'] }, n: 1.5 }),
      post('/v1/client/collections/notes/find', { filter: { column: 'title', op: 'eq', value: 'a' }, limit: 3 }),
      post('/v1/client/events', { event_name: 'opened', properties: { a: 1 } }),
      { method: 'PATCH', path: '/v1/client/users/me', body: '{"display_name":"Ada"}' },
    ],
  },
  {
    name: 'routes of developers',
    headers: [['authorization', bearer], json],
    requests: [
      get(`${admin}/users?limit=2&search=a`),
      get(`${admin}/events?event_name=opened`),
      get(`${admin}/collections/notes/export?format=csv`),
      { ...post(`${admin}/collections/notes/import?format=csv&dry_run=true`, 'title,n\na,1\n') },
      post(`${admin}/users/bulk-update`, { user_ids: [user.id], properties: { a: 1 } }),
      post(`${admin}/streaks`, { key: 'daily', name: 'Daily', qualifying_event: 'opened' }),
    ],
  },
  {
    name: 'REST',
    headers: asRest,
    requests: [
      get('/rest/v1/notes?select=id,title,body->a&title=eq.a&order=title.desc&limit=2&offset=0'),
      get('/rest/v1/notes?or=(title.eq.a,and(n.gt.1,n.lt.2))&body->>a=is.null'),
      post('/rest/v1/notes?on_conflict=id', [{ title: 'c', body: { a: 1 }, n: 2 }]),
      post('/rest/v1/notes?columns=title,n', 'title,n\na,1\n'),
      { method: 'PATCH', path: `/rest/v1/notes?id=eq.${note.data.id}`, body: '{"title":"d"}' },
      { method: 'DELETE', path: '/rest/v1/notes?title=eq.nothing' },
      post('/rest/v1/rpc/anything', { a: 1 }),
    ],
  },
  {
    name: 'REST with a server key',
    headers: asServer,
    requests: [
      get('/rest/v1/notes?select=*&title=fts.a'),
      get('/rest/v1/'),
      { method: 'HEAD', path: '/rest/v1/notes' },
    ],
  },
  {
    name: 'sign-in and storage of supabase-js',
    headers: asRest,
    requests: [
      post('/auth/v1/token?grant_type=password', { email: 'a@example.org', password: 'a long passphrase' }),
      post('/auth/v1/signup', { email: 'a@example.org', password: 'short' }),
      get('/auth/v1/user'),
      post('/storage/v1/object/list/media', { prefix: `user/${user.id}/`, limit: 3, sortBy: { column: 'name' } }),
      post(`/storage/v1/object/media/user/${user.id}/a.txt`, 'hello'),
      get(`/storage/v1/object/info/media/user/${user.id}/a.txt`),
      post('/storage/v1/object/sign/media', { expiresIn: 60, paths: [`user/${user.id}/a.txt`] }),
    ],
  },
  {
    name: 'GraphQL',
    headers: [['authorization', bearer], json],
    requests: [
      post(`${admin}/graphql`, { query: '{ users(first: 2, orderBy: [CREATED_AT_ASC]) { nodes { id } totalCount } }' }),
      post(`${admin}/graphql`, { query: '{ users(first: 2, after: "WyJuYXR1cmFsIiwxXQ==") { nodes { id } } }' }),
      post(`${admin}/graphql`, {
        query: 'query a($n: Int!, $c: NoteCondition) { notes(first: $n, condition: $c) { nodes { title body n } } }',
        variables: { n: 1, c: { title: 'a' } },
        operationName: 'a',
      }),
    ],
  },
  {
    name: 'files',
    headers: [],
    requests: [
      get(downloadPath),
      { method: 'PUT', path: uploadPath, body: 'hello' },
      { method: 'PATCH', path: uploadPath, body: 'he' },
      { method: 'HEAD', path: uploadPath },
    ],
  },
  {
    name: 'pages and documents',
    headers: [['accept', 'text/html']],
    requests: [
      get('/'),
      get('/docs'),
      get('/openapi.json'),
      get('/device'),
      get('/invite'),
      get('/e/abc'),
      get('/u/abc'),
      get('/health'),
      post(`/webhooks/revenuecat?project_id=${project.id}`, { event: { id: 'x', type: 'TEST' } }),
    ],
  },
  {
    name: 'console',
    headers: [['cookie', cookie], ['origin', harness.url], json],
    requests: [get('/console'), get('/console/assets/main.js'), post('/console/session/refresh', '{}')],
  },
  {
    name: 'realtime before the upgrade',
    headers: [
      ['upgrade', 'websocket'],
      ['sec-websocket-version', '13'],
      ['sec-websocket-key', 'dGhlIHNhbXBsZSBub25jZQ=='],
      ...asUser,
    ],
    requests: [
      get('/v1/client/realtime?token=abc'),
      get(`/realtime/v1/websocket?apikey=${project.clientKey}&vsn=2.0.0`),
      get('/v1/client/realtime/sse?channels=user'),
    ],
  },
]

const requestOf = (way: Way): fc.Arbitrary<RawRequest> =>
  fc.constantFrom(...way.requests).chain(({ method, path, body = '' }) =>
    fc.record({
      method: fc.oneof(
        { arbitrary: fc.constant(method), weight: 12 },
        { arbitrary: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE'), weight: 2 },
        { arbitrary: fc.constantFrom('PROPFIND', 'QUERY', 'get', 'LINK'), weight: 1 },
      ),
      path: fc
        .oneof({ arbitrary: fc.constant(path), weight: 1 }, { arbitrary: mutated(path), weight: 2 })
        .map((text) => oneLine(text).replaceAll(' ', '+') || '/'),
      headers: fc
        .array(fc.tuple(fc.constantFrom(...headerNames), headerValue), { maxLength: 2 })
        .map((more) => [...way.headers.filter(([name]) => !more.some(([other]) => other === name)), ...more])
        .map((all) => [
          ...all.map(([name, value]) => [name, oneLine(value)] as const),
          ['x-forwarded-for', freshIp()] as const,
        ]),
      body: fc.oneof(
        { arbitrary: fc.constant(body), weight: 1 },
        { arbitrary: mutated(body), weight: 3 },
        { arbitrary: fc.constantFrom('', '{', '[]', '\xff\xfe', '\0', '1e999', `[${'['.repeat(3000)}`), weight: 1 },
        { arbitrary: fc.constant(`{"title":"${'x'.repeat(1_100_000)}"}`), weight: sized(0, 1) },
      ),
    }),
  )

/** Runs the inputs, sixteen at once. */
const each = async <T>(inputs: readonly T[], run: (input: T) => Promise<void>) => {
  const left = [...inputs]
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let input = left.pop(); input !== undefined; input = left.pop()) await run(input)
    }),
  )
}

const seed = fc.readConfigureGlobal().seed as number
/** A hundred thousand inputs at night. */
const inputs = (way: Way) => (way.name.startsWith('REST') ? sized(500, 15_000) : sized(150, 9000))

/** 0: the parser of HTTP ends some connections without a word; 501 and 505 are about the caller's method and version. */
const isOurs = (status: number) => status >= 500 && status !== 501 && status !== 505

beforeAll(async () => {
  expect((await user.get('/client/users/me')).status).toBe(200)
})

test.each(ways)(
  '$name: no bytes are answered with a 5xx',
  async (way) => {
    const failed: string[] = []
    const again: RawRequest[] = []
    await each(fc.sample(requestOf(way), { numRuns: inputs(way), seed }), async (request) => {
      const { status, text } = await sendRaw(harness.url, request)
      // many at once may be told to come again, by a busy server or where two of them write one file
      if (status === 503 && /^retry-after:/im.test(text)) again.push(request)
      else if (isOurs(status)) failed.push(`${JSON.stringify(request)}\n${text}`)
    })
    for (const request of again) {
      const { status, text } = await sendRaw(harness.url, request)
      if (isOurs(status)) failed.push(`${JSON.stringify(request)}\n${text}`)
    }
    expect(failed.slice(0, 3).join('\n\n'), `${failed.length} of ${inputs(way)}`).toBe('')
    expect((await user.get('/client/users/me')).status).toBe(200)
  },
  sized(180_000, 900_000),
)

const frames = [
  '{"type":"subscribe","ref":"1","channel":"user"}',
  '{"type":"subscribe","ref":"2","channel":"collection:notes","since":"0"}',
  '{"type":"publish","ref":"3","channel":"room:x","event":"t","payload":{"a":1}}',
  '{"type":"unsubscribe","ref":"4","channel":"user"}',
  '{"type":"ping"}',
  '["1","1","realtime:room","phx_join",{"config":{"broadcast":{"self":true},"presence":{"key":""},"postgres_changes":[{"event":"*","schema":"public","table":"notes"}]}}]',
  '["1","2","realtime:room","broadcast",{"type":"broadcast","event":"e","payload":{}}]',
  '[null,"3","phoenix","heartbeat",{}]',
]
const frame = fc.constantFrom(...frames).chain((text) => fc.oneof(mutated(text), fc.constant(text)))

test.each([
  ['the realtime of Trellis', '/v1/client/realtime', { 'x-api-key': project.clientKey, authorization: session }],
  ['the realtime of supabase-js', `/realtime/v1/websocket?apikey=${project.clientKey}&vsn=2.0.0`, {}],
])('%s: no frame ends the server, or closes a connection with an error of its own', async (_name, path, headers) => {
  const wrong: string[] = []
  const some = fc.sample(fc.array(fc.tuple(frame, fc.boolean()), { minLength: 1, maxLength: 12 }), {
    numRuns: sized(40, 800),
    seed,
  })
  for (const sent of some) {
    const socket = new WebSocket(`${harness.url.replace('http', 'ws')}${path}`, {
      headers: { 'x-forwarded-for': freshIp(), ...headers },
    })
    const closed = new Promise<number>((resolve) => socket.on('close', resolve))
    socket.on('error', () => undefined)
    socket.on('unexpected-response', (_request, response) => {
      wrong.push(`${response.statusCode} before ${JSON.stringify(sent)}`)
      socket.terminate()
    })
    socket.on('open', () => {
      for (const [text, isBinary] of sent) socket.send(isBinary ? Buffer.from(text, 'latin1') : text)
      // the answer to a close frame comes after those to the frames before it
      socket.close(1000)
    })
    const code = await closed
    if (code === 1011 || code === 1006) wrong.push(`${code} after ${JSON.stringify(sent)}`)
  }
  expect(wrong.slice(0, 3), `${wrong.length} of ${some.length}`).toEqual([])
  expect((await user.get('/client/users/me')).status).toBe(200)
})

afterAll(async () => {
  expect((await fetch(`${harness.url}/health`)).status).toBe(200)
})
