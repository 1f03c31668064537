import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { readConfig } from '#server/config.ts'
import { createPools } from '#server/database/pools.ts'
import { instruments, prometheusName } from '#server/telemetry/instruments.ts'
import { startHarness } from '#test/support/harness.ts'

const token = 'a-token-for-the-scraper'
const harness = await startHarness({ env: { METRICS_TOKEN: token } })
const { running, url } = harness
const project = await harness.project()

const scrape = (headers: Record<string, string> = { authorization: `Bearer ${token}` }, path = '/metrics') =>
  fetch(url.replace(/\/v1$/, '') + path, { headers })

type Sample = { readonly name: string; readonly labels: Readonly<Record<string, string>>; readonly value: number }

/** The samples of the text format. */
const samplesOf = (text: string): Sample[] =>
  text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value] = /^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? []
      const pairs = [...labels.matchAll(/([a-z0-9_]+)="((?:[^"\\]|\\.)*)"/gi)].map(([, key = '', text = '']) => [
        key,
        text,
      ])
      return { name, labels: Object.fromEntries(pairs), value: Number(value) }
    })

const collected = async () => samplesOf(await (await scrape()).text())
const find = (samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}) =>
  samples.find(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )

test('metrics are for who knows the token', async () => {
  for (const headers of [{}, { authorization: 'Bearer another-token-entirely' }, { authorization: token }]) {
    const refused = await scrape(headers)
    expect(refused.status).toBe(401)
    expect(await refused.text()).toBe('')
  }
  const answer = await scrape()
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
})

test('every family is there from the first collection on, at zero', async () => {
  const other = await startHarness({ env: { METRICS_TOKEN: token } })
  const answer = await fetch(`${other.url.replace(/\/v1$/, '')}/metrics`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const text = await answer.text()
  const samples = samplesOf(text)
  for (const metric of Object.values(instruments)) {
    const name = prometheusName(metric)
    expect(text, name).toContain(`# TYPE ${name} ${metric.kind}`)
    expect(find(samples, metric.kind === 'histogram' ? `${name}_count` : name), name).toBeDefined()
  }
  for (const channel of ['webhook', 'push', 'mail'])
    for (const outcome of ['delivered', 'failed'])
      expect(find(samples, 'trellis_delivery_total', { channel, outcome })?.value).toBe(0)
  expect(find(samples, 'trellis_outbox_due')?.value).toBe(0)
  expect(find(samples, 'trellis_project_count', { status: 'failed' })?.value).toBe(0)
  await other.stop()
})

test('deliveries are counted by channel and outcome', async () => {
  const before = await collected()
  const count = (samples: readonly Sample[], channel: string, outcome: string) =>
    find(samples, 'trellis_delivery_total', { channel, outcome })?.value ?? 0
  await running.services.mail.send({ to: 'somebody@example.com', subject: 'A', text: 'B' })
  await running.services.mail.send({ to: 'two, addresses', subject: 'A', text: 'B' }).catch(() => undefined)
  const after = await collected()
  const rise = (channel: string, outcome: string) => count(after, channel, outcome) - count(before, channel, outcome)
  expect([rise('mail', 'delivered'), rise('mail', 'failed'), rise('webhook', 'delivered')]).toEqual([1, 1, 0])
})

test('without a variable there are none', async () => {
  const other = await startHarness()
  const answer = await fetch(`${other.url.replace(/\/v1$/, '')}/metrics`)
  expect(answer.status).toBe(404)
  expect(other.running.services.telemetry.scrape).toBeNull()
})

test('requests are counted by route, method and status, and name nobody', async () => {
  const before =
    find(await collected(), 'http_server_request_duration_count', { http_route: '/client/users/me' })?.value ?? 0
  const user = await project.user()
  await user.get('/client/users/me')
  await user.get('/client/users/me')
  await project.app.get('/client/users/me')
  const samples = await collected()
  const counted = (status: string) =>
    find(samples, 'http_server_request_duration_count', {
      http_request_method: 'GET',
      http_route: '/client/users/me',
      http_response_status_code: status,
    })?.value
  expect(counted('200')).toBe(before + 2)
  expect(counted('401')).toBe(1)
  const buckets = samples.filter(
    ({ name, labels }) =>
      name === 'http_server_request_duration_bucket' &&
      labels['http_route'] === '/client/users/me' &&
      labels['http_response_status_code'] === '200',
  )
  expect(buckets.at(-1)).toMatchObject({ labels: { le: '+Inf' }, value: before + 2 })
  const text = await (await scrape()).text()
  for (const secret of [user.id, project.id, user.sessionToken, project.clientKey, `${harness.prefix}password`])
    expect(text).not.toContain(secret)
})

test('every metric that is declared is exported, with just its attributes', async () => {
  const { services } = running
  // one of each that happens
  services.telemetry.measures.refusedLease('users', 'busy')
  services.telemetry.measures.providerCall('openai', '2xx', 12)
  services.telemetry.measures.job('fleet__sweep', 'done', 12)
  await project.server
    .post('/server/events', { user_id: (await project.user()).id, event_name: 'opened' })
    .catch(() => undefined)
  await project.sql(`select internal.enqueue('webhooks__purge', gen_random_uuid()::text)`)
  await project.drain()
  await harness.control(
    `select graphile_worker.add_job('tenant__drain', json_build_object('project_id', $1::text), job_key := $1 || ':now')`,
    [project.id],
  )
  await project.sql(
    `insert into app.outbox (task, key, due_at) values ('referrals__release', 'late', now() - interval '90 seconds')`,
  )
  const samples = await collected()
  for (const metric of Object.values(instruments)) {
    const name = prometheusName(metric) + (metric.kind === 'histogram' ? '_count' : '')
    const found = samples.filter((sample) => sample.name === name)
    expect(found.length, name).toBeGreaterThan(0)
    const labels = metric.attributes.map((attribute) => attribute.replaceAll('.', '_')).sort()
    for (const sample of found) expect(Object.keys(sample.labels).sort(), name).toEqual(labels)
  }
  const names = Object.values(instruments).map(prometheusName)
  for (const { name } of samples)
    expect(names).toContain(name.replace(/_(bucket|sum|count)$/, (end) => (names.includes(name) ? end : '')))
  expect(find(samples, 'trellis_outbox_task_duration_count', { task: 'webhooks__purge', outcome: 'done' })?.value).toBe(
    1,
  )
  expect(find(samples, 'trellis_outbox_due', { trellis_tenant: project.database })?.value).toBeGreaterThanOrEqual(1)
  expect(find(samples, 'trellis_outbox_oldest', { trellis_tenant: project.database })?.value).toBeGreaterThanOrEqual(90)
  expect(find(samples, 'trellis_job_ready', { task: 'tenant__drain' })?.value).toBeGreaterThanOrEqual(1)
  expect(find(samples, 'trellis_project_count', { status: 'ready' })?.value).toBe(1)
})

test('projects that run an older program, and those whose migration failed, are told apart', async () => {
  const other = await harness.project()
  await harness.control(`update app.tenants set content_hash = 'older' where project_id = $1`, [other.id])
  expect(find(await collected(), 'trellis_project_behind', { state: 'older' })?.value).toBe(1)
  await harness.control(`update app.tenants set migration_status = 'failed' where project_id = $1`, [other.id])
  const samples = await collected()
  expect(find(samples, 'trellis_project_behind', { state: 'older' })?.value).toBe(0)
  expect(find(samples, 'trellis_project_behind', { state: 'failed' })?.value).toBe(1)
})

test('a pool tells what it holds, who waits, and whom it refused', async () => {
  const refused: string[] = []
  const { services } = running
  const { createDatabase } = await import('#server/database/database.ts')
  const database = createDatabase({
    secrets: services.secrets,
    limits: { total: 10, perTenant: 2, waitMs: 50 },
    timeoutMs: 5000,
    log: services.log,
    measures: { call: () => undefined, refusedLease: (kind, reason) => refused.push(`${kind} ${reason}`) },
  })
  const claims = { caller: 'worker' }
  const slow = () =>
    database.execute(services.control, 'control_worker', claims, () => ({
      name: 'slow',
      text: 'select pg_sleep(1)',
      values: [],
    }))
  const both = [slow(), slow().catch((error: unknown) => error)]
  expect(database.pools.state(1)).toMatchObject({
    callers: { workers: { leases: 1, waiters: 1 }, users: { leases: 0, waiters: 0 } },
    busiest: [{ name: services.control.database, leases: 1, waiters: 1 }],
  })
  await both[1]
  expect(refused).toEqual(['workers busy'])
  await both[0]
  expect(database.pools.state(1)).toMatchObject({ open: 1, idle: 1, callers: { workers: { leases: 0, waiters: 0 } } })
  await database.close()
  expect(createPools({ total: 10, perTenant: 2 }).state(5).busiest).toEqual([])
})

test('a collector gets the metrics by OTLP, the last of them at the stop', async () => {
  const bodies: any[] = []
  const collector = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      bodies.push({ path: request.url, ...JSON.parse(Buffer.concat(chunks).toString()) })
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  const { port } = collector.address() as AddressInfo
  const other = await startHarness({
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}/`, OTEL_TRACES_EXPORTER: 'none' },
  })
  await other.anyone.get('/admin/projects')
  await other.stop()
  await new Promise((resolve) => collector.close(resolve))
  expect(new Set(bodies.map(({ path }) => path))).toEqual(new Set(['/v1/metrics']))
  const metrics = bodies.flatMap(({ resourceMetrics }) =>
    resourceMetrics.flatMap((each: any) => each.scopeMetrics.flatMap((scope: any) => scope.metrics)),
  )
  const requests = metrics.find(({ name }: { name: string }) => name === 'http.server.request.duration')
  const attributes = requests.histogram.dataPoints.flatMap((point: any) =>
    point.attributes.map(({ key, value }: any) => `${key}=${Object.values(value)[0]}`),
  )
  expect(attributes).toEqual(expect.arrayContaining(['http.route=/admin/projects', 'http.response.status_code=401']))
})

test('METRICS_PORT answers nothing but GET /metrics', async () => {
  const other = await startHarness({ env: { METRICS_PORT: '0', LOG_LEVEL: 'silent' } })
  const port = other.running.services.telemetry.port()
  const at = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init)
  expect((await at('/metrics')).status).toBe(200)
  expect((await at('/')).status).toBe(404)
  expect((await at('/metrics', { method: 'POST' })).status).toBe(405)
  expect((await fetch(`${other.url.replace(/\/v1$/, '')}/metrics`)).status).toBe(404)
})

test('a token for the port that several processes share is refused at the start', () => {
  expect(() => readConfig({ METRICS_TOKEN: token, WEB_CONCURRENCY: '2' })).toThrow('use METRICS_PORT')
  expect(() => readConfig({ METRICS_TOKEN: 'short' })).toThrow('METRICS_TOKEN')
})

test('the dashboard and the alert rules read metrics and labels that exist', async () => {
  const known = new Map(
    Object.values(instruments).flatMap((metric) => {
      const name = prometheusName(metric)
      const labels = metric.attributes.map((attribute) => attribute.replaceAll('.', '_'))
      const names = metric.kind === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]
      return names.map(
        (each) => [each, [...labels, ...(each.endsWith('_bucket') ? ['le'] : []), 'instance', 'job']] as const,
      )
    }),
  )
  const dashboard = JSON.parse(await readFile('deploy/grafana/trellis.json', 'utf8'))
  const alerts = await readFile('deploy/prometheus/alerts.yml', 'utf8')
  const expressions = [
    ...dashboard.panels.flatMap(({ targets }: any) => targets.map(({ expr }: any) => expr)),
    ...[...alerts.matchAll(/expr: (?:>-\n)?((?:.|\n\s{10,})*)/g)].map(([, expression = '']) => expression),
  ] as string[]
  expect(expressions.length).toBeGreaterThan(40)
  const read = new Set<string>()
  for (const expression of expressions) {
    const plain = expression.replace(/"[^"]*"/g, '""').replace(/\[[^\]]*\]/g, '')
    const functions = /^(sum|max|by|rate|topk|histogram_quantile|up|le)$/
    const grouped = [...plain.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) =>
      list.split(',').map((each) => each.trim()),
    )
    const matched = [...plain.matchAll(/([a-z_]+)(?:=|!=|=~|!~)""/g)].map(([, label = '']) => label)
    const names = [
      ...plain
        .replace(/by \([^)]*\)/g, '')
        .replace(/\{[^}]*\}/g, '')
        .matchAll(/[a-z][a-z0-9_]*/g),
    ].map(([name]) => name)
    const metrics = names.filter((name) => !functions.test(name))
    for (const metric of metrics) {
      expect(known.has(metric), `${metric} in ${expression}`).toBe(true)
      read.add(metric.replace(/_(bucket|sum|count)$/, ''))
    }
    const labels = metrics.flatMap((metric) => known.get(metric) ?? [])
    if (metrics.length > 0)
      for (const label of [...grouped, ...matched]) expect(labels, `${label} in ${expression}`).toContain(label)
  }
  // nothing that is measured is shown nowhere
  const shown = Object.values(instruments).map((metric) => prometheusName(metric).replace(/_(bucket|sum|count)$/, ''))
  expect(shown.filter((name) => !read.has(name))).toEqual([])
})
