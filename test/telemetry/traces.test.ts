import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { readConfig } from '#server/config.ts'
import { createApp } from '#server/http/app.ts'
import { createLog } from '#server/log.ts'
import { continuesTrace } from '#server/providers/upstream_span.ts'
import { activeSpan, noSpan, traceFields, within } from '#server/telemetry/spans.ts'
import { createTraces } from '#server/telemetry/traces.ts'
import { hello, startAiProvider } from '#test/support/ai.ts'
import { startHarness } from '#test/support/harness.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { type Received, startCollector } from '#test/support/otlp.ts'

/** One server whose traces go to a collector: what happens is done first, and the spans are looked at when the stop has sent the last of them. */
const collector = await startCollector()
const provider = await startAiProvider()
const receiver = await startHttpsReceiver()
const harness = await startHarness({
  env: {
    ...provider.env,
    OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
    WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
    WEBHOOK_CA_FILE: receiver.caFile,
    DATABASE_CONNECTIONS_PER_TENANT: '2',
  },
})
const secret = 'a-secret-that-is-in-no-span'
const [clientSpan, sampledId, unsampledId] = [
  '00f067aa0ba902b7',
  randomBytes(16).toString('hex'),
  randomBytes(16).toString('hex'),
]
const parsed = (header: string | null) =>
  /^00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])$/.exec(header ?? '')?.slice(1) ?? []

const project = await harness.project({ environment: 'development' })
const user = await project.user()
const at = (path: string) => `${harness.url}/v1${path}`
const me = (headers: Record<string, string> = {}) =>
  fetch(at('/client/users/me'), { headers: { ...user.headers, ...headers } })

const seen: { ownTrace: string; failedTrace: string; loggedLines: any[]; sample: Record<string, string> } = {
  ownTrace: '',
  failedTrace: '',
  loggedLines: [],
  sample: {},
}

beforeAll(async () => {
  const own = await me({ 'x-request-id': 'request-1' })
  seen.ownTrace = parsed(own.headers.get('traceresponse'))[0] ?? ''
  seen.sample['own'] = own.headers.get('traceresponse') ?? ''
  const sampled = await me({ traceparent: `00-${sampledId}-${clientSpan}-01`, tracestate: 'vendor=secret-of-a-vendor' })
  seen.sample['sampled'] = sampled.headers.get('traceresponse') ?? ''
  const unsampled = await me({ traceparent: `00-${unsampledId}-${clientSpan}-00` })
  seen.sample['unsampled'] = unsampled.headers.get('traceresponse') ?? ''
  const wrong = await me({ traceparent: `00-${'0'.repeat(32)}-${clientSpan}-01` })
  seen.sample['wrong'] = wrong.headers.get('traceresponse') ?? ''
  const nowhere = await fetch(at(`/nowhere/${secret}`))
  seen.sample['nowhere'] = nowhere.headers.get('traceresponse') ?? ''
  const refused = await fetch(at('/client/users/me'), { headers: { 'x-api-key': project.clientKey } })
  seen.sample['refused'] = refused.headers.get('traceresponse') ?? ''

  // values of users: a name, a body of JSON, a query
  await user.patch('/client/users/me', { display_name: secret })
  await project.admin.get(`/users?search=${secret}`)

  // more calls at once than a tenant has connections
  const claims = { caller: 'worker', projectId: project.id }
  const place = await harness.running.services.fleet.placeOf(project.id)
  if (!place) throw new Error('the project has no database')
  const { services } = harness.running
  const span = services.telemetry.traces.job('waits', {}, [])
  await within(span, async () => {
    const slow = (seconds: number) =>
      services.database.execute(place, 'app_worker', claims, () => ({
        name: '',
        text: `select pg_sleep(${seconds})`,
        values: [],
      }))
    await Promise.all([slow(0.05), slow(0.05), slow(0), slow(0)])
  })
  span.end()

  // models
  for (const name of ['openai', 'anthropic'])
    await project.admin.post('/ai/providers', { name, api_key: `key-of-${name}-${secret}` })
  const prompts = [
    { name: 'asked', provider: 'openai', model: 'gpt-4o-mini', client_invokable: true },
    { name: 'streamed', provider: 'anthropic', model: 'claude-haiku-4-5', client_invokable: true },
  ]
  for (const prompt of prompts) await project.admin.post('/ai/prompts', prompt)
  const said = { messages: [{ role: 'user', content: secret }] }
  expect((await user.post('/client/ai/prompts/asked/invoke', said)).status).toBe(200)
  expect((await user.post('/client/ai/prompts/streamed/invoke', { ...said, stream: true })).status).toBe(200)
  await project.admin.post('/ai/embeddings', {
    provider: 'openai',
    model: 'text-embedding-3-small',
    input: secret,
  })
  provider.asked.length = 0
  await user.post('/client/ai/prompts/asked/invoke', hello, {
    traceparent: `00-${unsampledId}-${clientSpan}-00`,
  } as never)

  // a delivery
  await project.admin.post('/webhooks', { event_name: 'paid', target_url: `${receiver.url}/${secret}` })
  // before there are workers, so that no other wake replaces the job which this one queues
  const woken = services.telemetry.traces.job('wakes', {}, [])
  within(woken, () => services.waker.wake(project.id, new Date().toISOString()))
  woken.end()
  await services.waker.flush()
  await harness.running.work(4)
  const waiting = 'select id from graphile_worker.jobs where key = $1 and locked_at is null'
  await vi.waitFor(async () => expect(await harness.control(waiting, [`${project.id}:now`])).toEqual([]), {
    timeout: 30_000,
    interval: 20,
  })
  await fetch(at('/client/events'), {
    method: 'POST',
    headers: { ...user.headers, 'content-type': 'application/json', tracestate: 'vendor=secret-of-a-vendor' },
    body: JSON.stringify({ event_name: 'paid', properties: { note: secret } }),
  })
  await vi.waitFor(() => expect(receiver.requests).toHaveLength(1), { timeout: 30_000, interval: 20 })

  // log lines, of an application that is like the server's own
  const config = readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
  const log = createLog(config, { write: (line: string) => seen.loggedLines.push(JSON.parse(line)) })
  const failing: typeof services = {
    ...services,
    log,
    projectCache: {
      ...services.projectCache,
      byKey: async () => {
        throw new Error('a defect')
      },
    },
  }
  const app = createApp({ areas: harness.running.areas, services: failing })
  const answer = await app.inject({ url: '/v1/client/users/me', headers: { ...user.headers, host: 'here' } })
  expect(answer.statusCode).toBe(500)
  seen.failedTrace = parsed(String(answer.headers['traceresponse']))[0] ?? ''
  await app.close()

  await harness.stop()
  await Promise.all([collector.close(), provider.close(), receiver.close()])
}, 120_000)

const named = (name: string) => collector.spans.filter((span) => span.name === name)
const inTrace = (traceId: string | undefined) => collector.spans.filter((span) => span.traceId === traceId)
const childrenOf = ({ spanId, traceId }: Received) => inTrace(traceId).filter((span) => span.parentSpanId === spanId)
const traceOf = (name: string) => parsed(seen.sample[name] ?? '')[0]

test('a request is a span with its route, and its database call a part of it', () => {
  const [request, ...others] = inTrace(seen.ownTrace).filter(({ kind }) => kind === 2)
  expect(others).toEqual([])
  expect(request).toMatchObject({
    name: 'GET /client/users/me',
    parentSpanId: '',
    spanId: parsed(seen.sample['own'] ?? '')[1],
    isFailed: false,
    resource: { 'service.name': 'trellis' },
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/client/users/me',
      'http.response.status_code': 200,
      'trellis.request_id': 'request-1',
      'trellis.caller': 'user',
      'trellis.project': project.id,
    },
  })
  const [call] = childrenOf(request as Received).filter(({ name }) => name === 'api.me_get')
  expect(call).toMatchObject({
    kind: 3,
    attributes: {
      'db.system.name': 'postgresql',
      'db.namespace': project.database,
      'db.stored_procedure.name': 'api.me_get',
      'trellis.role': 'app_user',
    },
  })
  expect(call?.attributes['trellis.pool.wait']).toBeGreaterThanOrEqual(0)
  // a span begins at a whole millisecond of the clock and has an exact duration: two of them are a millisecond out
  const slack = 2_000_000n
  expect((call?.began ?? 0n) >= (request?.began ?? 0n) - slack).toBe(true)
  expect((call?.ended ?? 0n) <= (request?.ended ?? 0n) + slack).toBe(true)
})

test('the trace of a caller goes on, exported or not as the caller says', () => {
  expect(parsed(seen.sample['sampled'] ?? '')).toEqual([sampledId, expect.not.stringMatching(clientSpan), '01'])
  const [request] = inTrace(sampledId).filter(({ kind }) => kind === 2)
  expect(request).toMatchObject({ name: 'GET /client/users/me', parentSpanId: clientSpan })
  expect(parsed(seen.sample['unsampled'] ?? '')).toEqual([unsampledId, expect.any(String), '00'])
  expect(inTrace(unsampledId)).toEqual([])
  // a header that is none begins a trace
  expect(parsed(seen.sample['wrong'] ?? '')).toEqual([expect.not.stringMatching(/^0{32}$/), expect.any(String), '01'])
})

test('a path that is no route is not told, and a refusal is no failure', () => {
  expect(inTrace(traceOf('nowhere'))).toMatchObject([
    { name: 'GET', attributes: { 'http.response.status_code': 404 }, isFailed: false },
  ])
  expect(inTrace(traceOf('refused')).find(({ kind }) => kind === 2)).toMatchObject({
    attributes: { 'http.response.status_code': 401 },
    isFailed: false,
  })
})

test('the wait for a connection is apart from the call', () => {
  const [job] = named('waits')
  const parts = childrenOf(job as Received)
  const calls = parts.filter(({ name }) => name === 'statement')
  expect(calls).toHaveLength(4)
  // one worker at a time may hold one of two connections: the others wait for it
  const waits = parts.filter(({ name }) => name === 'wait for a connection')
  expect(waits.length).toBeGreaterThanOrEqual(2)
  const longest = waits.reduce((most, { began, ended }) => (ended - began > most ? ended - began : most), 0n)
  expect(longest).toBeGreaterThan(40_000_000n)
  expect(Math.max(...calls.map(({ attributes }) => Number(attributes['trellis.pool.wait'])))).toBeGreaterThan(0.04)
})

describe('a call of a model', () => {
  test('has the attributes of the conventions, and the exchange is a part of it', () => {
    const [asked] = named('chat gpt-4o-mini')
    expect(asked).toMatchObject({
      kind: 3,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'openai',
        'gen_ai.request.model': 'gpt-4o-mini',
        'gen_ai.output.type': 'text',
        'gen_ai.usage.input_tokens': 12,
        'gen_ai.usage.output_tokens': 34,
        'gen_ai.response.finish_reasons': ['stop'],
      },
    })
    expect(childrenOf(asked as Received)).toMatchObject([
      {
        name: 'POST /v1/chat/completions',
        attributes: { 'server.address': '127.0.0.1', 'http.response.status_code': 200, 'trellis.provider': 'openai' },
      },
    ])
  })
  test('lasts as long as its stream', () => {
    const [streamed] = named('chat claude-haiku-4-5')
    expect(streamed).toMatchObject({
      isFailed: false,
      attributes: {
        'gen_ai.provider.name': 'anthropic',
        'gen_ai.request.stream': true,
        'gen_ai.usage.input_tokens': 12,
        'gen_ai.usage.output_tokens': 34,
      },
    })
  })
  test('may be one of embeddings', () => {
    expect(named('embeddings text-embedding-3-small')).toMatchObject([
      { attributes: { 'gen_ai.operation.name': 'embeddings', 'gen_ai.usage.input_tokens': 5 } },
    ])
  })
  test('names its trace to a gateway of the operator alone, also where it is not exported', () => {
    expect(provider.asked.map(({ headers }) => headers['traceparent'])).toEqual([
      expect.stringMatching(new RegExp(`^00-${unsampledId}-[0-9a-f]{16}-00$`)),
    ])
    expect(continuesTrace('openai', 'https://api.openai.com')).toBe(false)
    expect(continuesTrace('openai', 'https://models.example.com')).toBe(true)
    expect(continuesTrace('google', readConfig({}).GOOGLE_AI_BASE_URL)).toBe(false)
  })
})

test('a delivery is a trace of its own, with a link to the drain, which has one to what woke it', () => {
  const [request] = receiver.requests
  const [traceId, spanId, flags] = parsed(String(request?.headers['traceparent']))
  expect(flags).toBe('01')
  expect(request?.headers).not.toHaveProperty('tracestate')
  const post = inTrace(traceId).find((span) => span.spanId === spanId)
  expect(post).toMatchObject({
    name: 'POST webhook',
    attributes: { 'http.request.method': 'POST', 'http.response.status_code': 200, 'trellis.purpose': 'webhook' },
  })
  const row = inTrace(traceId).find((span) => span.spanId === post?.parentSpanId)
  expect(row).toMatchObject({
    name: 'webhooks__deliver',
    kind: 5,
    parentSpanId: '',
    attributes: { 'messaging.destination.name': 'outbox', 'trellis.project': project.id },
  })
  const drain = collector.spans.find((span) => span.spanId === row?.links[0]?.spanId)
  expect(drain).toMatchObject({ name: 'tenant__drain', parentSpanId: '' })
  const linked = collector.spans.filter(({ name }) => name === 'tenant__drain').flatMap(({ links }) => links)
  const [wakes] = named('wakes')
  expect(linked).toContainEqual({ traceId: wakes?.traceId, spanId: wakes?.spanId })
})

test('each log line of a request has its trace, and an error is found by it', () => {
  const { loggedLines: lines, failedTrace } = seen
  expect(lines.map(({ msg }) => msg)).toEqual(['a request failed', 'request'])
  const [request] = inTrace(failedTrace)
  expect(request).toMatchObject({ isFailed: true, attributes: { 'error.type': '500' } })
  for (const line of lines) {
    expect(line).toMatchObject({ trace_id: failedTrace, span_id: request?.spanId })
    expect(line.request).toBe(request?.attributes['trellis.request_id'])
  }
})

test('no span has a value of a user, a credential or a path', () => {
  const text = collector.texts.join('\n')
  for (const value of [
    secret,
    user.id,
    user.sessionToken,
    project.clientKey,
    project.serverKey,
    project.developer.email,
    'secret-of-a-vendor',
    'Grüße',
  ])
    expect(text).not.toContain(value)
  expect(collector.spans.every(({ message }) => message === '')).toBe(true)
})

test('every parent that is ours was sent, and ids are used once', () => {
  const ids = new Set(collector.spans.map(({ spanId }) => spanId))
  expect(ids.size).toBe(collector.spans.length)
  for (const { parentSpanId, name } of collector.spans)
    if (parentSpanId !== '' && parentSpanId !== clientSpan) expect(ids, name).toContain(parentSpanId)
})

describe('samplers', () => {
  const sampledOf = async (sampler: string, argument: string, traceparent?: string) => {
    const config = readConfig({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_TRACES_SAMPLER: sampler,
      OTEL_TRACES_SAMPLER_ARG: argument,
    })
    const traces = await createTraces(config, {}, { warn: () => undefined })
    return traces.request('GET', traceparent, {}).isSampled
  }
  const from = (flags: string) => `00-${sampledId}-${clientSpan}-${flags}`
  test.for<[string, string, string | undefined, boolean]>([
    ['always_on', '', from('00'), true],
    ['always_off', '', from('01'), false],
    ['traceidratio', '0', from('01'), false],
    ['traceidratio', '1', from('00'), true],
    ['parentbased_always_on', '', from('00'), false],
    ['parentbased_always_on', '', undefined, true],
    ['parentbased_always_off', '', from('01'), true],
    ['parentbased_always_off', '', undefined, false],
    ['parentbased_traceidratio', '0', undefined, false],
    ['parentbased_traceidratio', '0', from('01'), true],
  ])('%s %s of %s', async ([sampler, argument, traceparent, expected]) => {
    expect(await sampledOf(sampler, argument, traceparent)).toBe(expected)
  })
  test('that are none are refused at the start', () => {
    expect(() => readConfig({ OTEL_TRACES_SAMPLER: 'sometimes' })).toThrow('OTEL_TRACES_SAMPLER')
    expect(() => readConfig({ OTEL_TRACES_SAMPLER_ARG: '2' })).toThrow('OTEL_TRACES_SAMPLER_ARG')
  })
})

test('without a collector there are no spans, and answers name none', async () => {
  const other = await startHarness()
  expect(other.running.services.telemetry.traces.isOn).toBe(false)
  const answer = await fetch(`${other.url}/v1/client/users/me`)
  expect(answer.headers.get('traceresponse')).toBeNull()
  expect(other.running.services.telemetry.traces.request('GET', undefined, {})).toBe(noSpan)
  expect(within(noSpan, () => activeSpan())).toBeUndefined()
  expect(traceFields()).toEqual({})
})

test('a collector that refuses is told of once, and again after it took some', async () => {
  const refusing = await startCollector(400)
  const warned: string[] = []
  const config = readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: refusing.url })
  const traces = await createTraces(config, {}, { warn: (_fields: object, text: string) => warned.push(text) } as never)
  for (let each = 0; each < 1100; each += 1) traces.request('GET', undefined, {}).end()
  await traces.close()
  expect(warned.filter((text) => text === 'spans were not sent')).toHaveLength(1)
  await refusing.close()
})
