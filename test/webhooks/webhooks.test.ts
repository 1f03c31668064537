import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { idempotencyKey, verifySignature } from '#server/providers/outbound.ts'
import { startHarness } from '#test/support/harness.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const receiver = await startHttpsReceiver()
const env = { WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.caFile }
const harness = await startHarness({ env })
const project = await harness.project()

afterEach(async () => {
  harness.setTime(null)
  receiver.requests.splice(0)
  await project.sql('delete from app.webhooks')
  await project.sql('delete from app.webhook_deliveries')
  await project.sql('delete from app.outbox')
})

const watch = async (fields: object = {}) => {
  const { status, data } = await project.admin.post('/webhooks', {
    event_name: 'paid',
    target_url: receiver.url,
    ...fields,
  })
  expect(status).toBe(201)
  return data
}
const deliveries = () => project.sql('select * from app.webhook_deliveries order by created_at, id')

describe('subscriptions', () => {
  test('are registered with a secret that is shown once, and listed without it, newest first', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const first = await watch()
    expect(first).toEqual({
      id: expect.any(String),
      event_name: 'paid',
      target_url: receiver.url,
      description: null,
      filter: null,
      include_user: true,
      status: 'active',
      secret: expect.stringMatching(/^[0-9a-f]{64}$/),
      created_at: '2026-11-21T10:00:00.000Z',
      updated_at: '2026-11-21T10:00:00.000Z',
    })
    harness.advance(60)
    const filter = { column: 'cart.total', op: 'gte', value: 10 }
    const second = await watch({ event_name: 'svc.user.created', description: 'new', filter, include_user: false })
    const { secret: _one, ...firstShown } = first
    const { secret: _two, ...secondShown } = second
    expect(secondShown).toMatchObject({ description: 'new', filter, include_user: false })
    const list = await project.admin.get('/webhooks')
    expect(list.status).toBe(200)
    expect(list.body).toEqual({ data: [secondShown, firstShown], total: 2, offset: 0, limit: 50 })
    const page = await project.admin.get('/webhooks?limit=1&offset=1')
    expect(page.body).toEqual({ data: [firstShown], total: 2, offset: 1, limit: 1 })
    const stored = JSON.stringify(await project.sql('select * from app.webhook_secrets, app.webhooks'))
    expect(stored).not.toContain(first.secret)
  })

  test.each([
    ['no name', { event_name: undefined }, 'event_name'],
    ['a name in capitals', { event_name: 'Paid' }, 'event_name'],
    ['a name of 129', { event_name: 'a'.repeat(129) }, 'event_name'],
    ['no address', { target_url: undefined }, 'target_url'],
    ['an address that is too long', { target_url: `https://a.org/${'a'.repeat(2048)}` }, 'target_url'],
    ['a description that is too long', { description: 'a'.repeat(1001) }, 'description'],
    ['a filter that is none', { filter: { column: 'a' } }, 'filter'],
    ['an empty filter', { filter: {} }, 'filter'],
    ['a filter with 51 conditions', { filter: { and: Array(51).fill({ column: 'a', op: 'is_null' }) } }, 'filter'],
    ['a text as include_user', { include_user: 'yes' }, 'include_user'],
  ])('refuse %s', async (_name, fields, field) => {
    const body = { event_name: 'paid', target_url: receiver.url, ...fields }
    expectRefusal(await project.admin.post('/webhooks', body), 400, 'VALIDATION_ERROR', field)
  })

  test.each([
    ['http://example.org/', 'TARGET_URL_NOT_HTTPS'],
    ['ftp://example.org/', 'TARGET_URL_NOT_ALLOWED'],
    ['no url', 'TARGET_URL_NOT_ALLOWED'],
    ['https://10.1.2.3/', 'TARGET_URL_NOT_ALLOWED'],
    ['https://169.254.169.254/latest/meta-data/', 'TARGET_URL_NOT_ALLOWED'],
    ['https://[::1]/', 'TARGET_URL_NOT_ALLOWED'],
    ['https://0x0a000001/', 'TARGET_URL_NOT_ALLOWED'],
    ['https://1.1.1.1:8443/', 'TARGET_URL_NOT_ALLOWED'],
    ['https://user:word@1.1.1.1/', 'TARGET_URL_NOT_ALLOWED'],
    ['https://nothing.invalid/', 'TARGET_URL_NOT_ALLOWED'],
  ])('refuse the address %s', async (target_url, code) => {
    expectRefusal(await project.admin.post('/webhooks', { event_name: 'paid', target_url }), 400, code, 'target_url')
    expect(await project.sql('select from app.webhooks')).toEqual([])
  })

  test('are at most 50, also when two concurrent requests create the fiftieth', async () => {
    await project.sql(
      `insert into app.webhooks (event_name, target_url, secret_id) select 'paid', $1, gen_random_uuid() from generate_series(1, 49)`,
      [receiver.url],
    )
    const claims = { 'app.caller': 'developer', 'app.developer_id': project.developer.id }
    const open = await openTransaction(project, 'app_admin', claims)
    await open.query(`select api.webhook_create('paid', $1, 'sealed')`, [receiver.url])
    const other = project.admin.post('/webhooks', { event_name: 'paid', target_url: receiver.url })
    await untilBlocked(project)
    await open.commit()
    expectRefusal(await other, 409, 'LIMIT_REACHED')
    expect((await project.admin.get('/webhooks')).body.total).toBe(50)
  })

  test('are deleted once', async () => {
    const { id } = await watch()
    const gone = await project.admin.delete(`/webhooks/${id}`)
    expect([gone.status, gone.data]).toEqual([200, { deleted: true }])
    expectRefusal(await project.admin.delete(`/webhooks/${id}`), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.delete('/webhooks/x'), 400, 'INVALID_ID')
  })

  test('belong to their project and its developer', async () => {
    const { id } = await watch()
    const stranger = await harness.developer()
    const other = await harness.project({ developer: stranger })
    expectRefusal(await other.admin.delete(`/webhooks/${id}`), 404, 'NOT_FOUND')
    const calls = [
      ['GET', ''],
      ['POST', ''],
      ['DELETE', `/${id}`],
    ] as const
    const body = (method: string) => (method === 'POST' ? { event_name: 'paid', target_url: receiver.url } : undefined)
    for (const [method, path] of calls) {
      const call = (client: typeof stranger, projectId: string) =>
        client.request(method, `/admin/projects/${projectId}/webhooks${path}`, body(method))
      expectRefusal(await call(stranger, project.id), 403, 'PROJECT_FORBIDDEN')
      expectRefusal(await call(stranger, randomUUID()), 404, 'NOT_FOUND')
      expectRefusal(await call(harness.anyone as typeof stranger, project.id), 401, 'INVALID_DEVELOPER_TOKEN')
    }
  })

  test('an invalid body or page is refused', async () => {
    expectRefusal(await project.admin.post('/webhooks', '['), 400, 'INVALID_BODY')
    expectRefusal(await project.admin.get('/webhooks?limit=0'), 400, 'INVALID_INPUT')
  })
})

describe('fan-out: an event that a subscription matches', () => {
  test('is sent once, signed, with exactly these headers and the stored body', async () => {
    harness.setTime('2026-11-21T10:00:00.250Z')
    const hook = await watch({ target_url: `${receiver.url}hooks?a=b` })
    const user = await project.user()
    const sent = {
      id: randomUUID(),
      event_name: 'paid',
      properties: { cart: { total: 12.5 }, note: 'ünïcode "quoted"' },
      session_id: randomUUID(),
      occurred_at: '2026-11-21T09:00:00.000Z',
    }
    await user.post('/client/events', sent)
    harness.advance(2)
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
    const { method, path, headers, body } = receiver.requests[0]!
    const [delivery] = await deliveries()
    expect([method, path, body]).toEqual(['POST', '/hooks?a=b', delivery.payload])
    expect(JSON.parse(body)).toEqual({
      id: delivery.id,
      type: 'paid',
      api_version: '1.0.0',
      created_at: '2026-11-21T10:00:00.250Z',
      project_id: project.id,
      data: {
        event: { ...sent, source: 'client' },
        user: {
          id: user.id,
          external_id: null,
          email: null,
          display_name: user.data.display_name,
          properties: {},
        },
      },
    })
    const { host: _host, connection: _connection, 'content-length': length, ...rest } = headers
    expect(Number(length)).toBe(Buffer.byteLength(body))
    expect(rest).toEqual({
      'content-type': 'application/json',
      'user-agent': 'Service-Webhooks/1',
      'accept-encoding': 'identity',
      'x-service-signature': expect.stringMatching(/^t=1795255202,v1=[0-9a-f]{64}$/),
      'x-service-idempotency-key': idempotencyKey(hook.id, sent.id),
      'x-service-event-name': 'paid',
      'x-service-event-id': sent.id,
      'x-service-attempt': '1',
    })
    const signed = String(headers['x-service-signature'])
    expect(verifySignature(signed, hook.secret, body, 1795255202)).toBe(true)
    expect(verifySignature(signed, hook.secret, `${body} `, 1795255202)).toBe(false)

    expect(delivery).toMatchObject({
      status: 'delivered',
      attempts: 1,
      next_attempt_at: null,
      settled_at: harness.now(),
    })
    expect(await project.sql('select n, status_code, error, response_excerpt from app.webhook_attempts')).toEqual([
      { n: 1, status_code: 200, error: null, response_excerpt: 'ok' },
    ])
    expect(await project.sql('select from app.outbox')).toEqual([])
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
  })

  test('contains its user, or null with include_user false', async () => {
    await watch({ include_user: false })
    const [ada] = await project.sql(
      `insert into app.users (email, external_id, display_name, properties)
       values ('a@example.org', 'ours-1', 'Ada', '{"plan": "pro"}') returning id`,
    )
    const server = project.onBehalfOf(ada.id)
    await server.post('/client/events', { event_name: 'paid' })
    await project.drain()
    expect(JSON.parse(receiver.requests[0]!.body).data).toMatchObject({
      user: null,
      event: { source: 'server', session_id: null },
    })
    await watch()
    await server.post('/client/events', { event_name: 'paid' })
    await project.drain()
    const users = receiver.requests.slice(1).map(({ body }) => JSON.parse(body).data.user)
    expect(users).toContainEqual({
      id: ada.id,
      external_id: 'ours-1',
      email: 'a@example.org',
      display_name: 'Ada',
      properties: { plan: 'pro' },
    })
  })

  test('goes to each subscription to its name, and to no other', async () => {
    const [one, two] = [await watch(), await watch()]
    await watch({ event_name: 'paid.twice' })
    const user = await project.user()
    await user.post('/client/events', {
      events: [{ event_name: 'paid' }, { event_name: 'other' }, { event_name: 'paid' }],
    })
    await project.drain()
    const sent = await project.sql('select webhook_id, count(*)::int as count from app.webhook_deliveries group by 1')
    expect(sent.map(({ webhook_id, count }) => [webhook_id, count]).sort()).toEqual(
      [
        [one.id, 2],
        [two.id, 2],
      ].sort(),
    )
    expect(receiver.requests).toHaveLength(4)
    expect(new Set(receiver.requests.map(({ headers }) => headers['x-service-idempotency-key'])).size).toBe(4)
  })

  test('is filtered by its properties; an unknown truth value does not match', async () => {
    await watch({
      filter: {
        and: [
          { column: 'cart.total', op: 'gte', value: 10 },
          { column: 'plan', op: 'ne', value: 'free' },
        ],
      },
    })
    const user = await project.user()
    const properties = [
      { n: 1, cart: { total: 10 }, plan: 'pro' },
      { n: 2, cart: { total: 9 }, plan: 'pro' },
      { n: 3, cart: { total: 10 }, plan: 'free' },
      { n: 4, cart: { total: 10 } },
      { n: 5 },
      { n: 6, cart: { total: '10' }, plan: 'pro' },
    ]
    await user.post('/client/events', { events: properties.map((each) => ({ event_name: 'paid', properties: each })) })
    await project.drain()
    expect(receiver.requests.map(({ body }) => JSON.parse(body).data.event.properties.n)).toEqual([1])
  })

  test('may be a platform event', async () => {
    await watch({ event_name: 'svc.user.created' })
    const user = await project.user()
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
    expect(JSON.parse(receiver.requests[0]!.body)).toMatchObject({
      type: 'svc.user.created',
      data: { event: { source: 'system' }, user: { id: user.id } },
    })
  })

  test('is not sent when it is historical, a duplicate, or matched only by a disabled subscription', async () => {
    const hook = await watch()
    const server = project.onBehalfOf((await project.user()).id)
    await server.post('/client/events', { event_name: 'paid', occurred_at: '2020-01-01', historical: true })
    await server.post('/client/events', { event_name: 'paid', historical: true })
    expect(await deliveries()).toEqual([])
    const id = randomUUID()
    await Promise.all(Array.from({ length: 20 }, () => server.post('/client/events', { id, event_name: 'paid' })))
    expect(await deliveries()).toHaveLength(1)
    await Promise.all([project.drain(), project.drain(), project.drain()])
    expect(receiver.requests).toHaveLength(1)
    await project.sql(`update app.webhooks set status = 'disabled' where id = $1`, [hook.id])
    await server.post('/client/events', { event_name: 'paid' })
    expect(await deliveries()).toHaveLength(1)
  })

  test('does not fail when its subscription is deleted concurrently', async () => {
    const user = await project.user()
    for (let times = 0; times < 5; times += 1) {
      const hooks = await Promise.all([watch(), watch(), watch()])
      const answers = await Promise.all([
        ...Array.from({ length: 6 }, () => user.post('/client/events', { event_name: 'paid' })),
        ...hooks.map(({ id }) => project.admin.delete(`/webhooks/${id}`)),
        ...Array.from({ length: 6 }, () => user.post('/client/events', { event_name: 'paid' })),
      ])
      expect(answers.filter(({ status }) => status >= 400)).toEqual([])
    }
    await project.drain()
    expect(await project.sql('select from app.outbox')).toEqual([])
  })

  test('waits for a concurrent deletion of the subscription, and then creates no delivery', async () => {
    const { id } = await watch()
    const user = await project.user()
    const claims = { 'app.caller': 'developer', 'app.developer_id': project.developer.id }
    const open = await openTransaction(project, 'app_admin', claims)
    await open.query("select api.definition_delete('webhook', $1)", [id])
    const posted = user.post('/client/events', { event_name: 'paid' })
    await untilBlocked(project)
    await open.commit()
    expect((await posted).status).toBe(201)
    expect(await deliveries()).toEqual([])
  })
})

test('workers deliver within two seconds of the event', async () => {
  const working = await startHarness({ env, work: true })
  const own = await working.project()
  await own.admin.post('/webhooks', { event_name: 'paid', target_url: receiver.url })
  const user = await own.user()
  const { data } = await user.post('/client/events', { event_name: 'paid' })
  const ids = () => receiver.requests.map(({ headers }) => headers['x-service-event-id'])
  await expect.poll(ids, { interval: 20 }).toContain(data.event.id)
  await working.stop()
})

test('only workers read secrets and payloads, and workers change nothing else', async () => {
  await watch()
  const tables = ['webhooks', 'webhook_secrets', 'webhook_deliveries', 'webhook_attempts', 'webhook_breakers', 'outbox']
  for (const role of ['app_user', 'app_server', 'app_anon', 'app_auth'] as const)
    for (const table of tables)
      await expect(project.as(role, {}, `select from app.${table}`)).rejects.toThrow(/permission denied/)
  for (const text of [
    'secret_id from app.webhooks',
    'target_url from app.webhooks',
    'secret_id from app.webhook_deliveries',
  ])
    await expect(project.as('app_dashboard', {}, `select ${text}`)).rejects.toThrow(/permission denied/)
  for (const table of ['webhook_secrets', 'webhook_breakers', 'outbox'])
    await expect(project.as('app_dashboard', {}, `select from app.${table}`)).rejects.toThrow(/permission denied/)
  await expect(project.as('app_admin', {}, 'select from app.webhook_secrets')).rejects.toThrow(/permission denied/)
  const denied = (role: 'app_admin' | 'app_worker', text: string) =>
    expect(project.as(role, {}, text)).rejects.toThrow(/permission denied|row-level security/)
  for (const change of [`target_url = 'https://evil.example'`, `event_name = 'other'`, `status = 'active'`])
    await denied('app_worker', `update app.webhooks set ${change}`)
  await denied('app_worker', `update app.webhook_deliveries set payload = ''`)
  // administrators may replay deliveries, but not change them otherwise
  await (await project.user()).post('/client/events', { event_name: 'paid' })
  for (const change of [`payload = ''`, 'attempts = 0', `status = 'delivered'`, 'held_until = null'])
    await denied('app_admin', `update app.webhook_deliveries set ${change}`)
  for (const text of [
    'delete from app.webhook_deliveries',
    'delete from app.webhook_attempts',
    'select from app.webhook_breakers',
  ])
    await denied('app_admin', text)
  await project.as('app_worker', {}, 'delete from app.webhook_secrets')
  expect(await project.sql('select from app.webhook_secrets')).toHaveLength(1)
  await denied('app_admin', 'select api.webhook_test(gen_random_uuid())')
  await denied('app_worker', "select api.definition_delete('webhook', gen_random_uuid()::text)")
})
