import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHttpsReceiver } from '#test/support/https.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { answering, isSigned, startWebhooks } from '#test/support/webhooks.ts'

const webhooks = await startWebhooks()
const { harness, project, receiver, watch, fire, all, say, giveUp } = webhooks

const shown = ({ secret: _secret, ...rest }: any) => rest
const patch = (id: string, body: unknown) => project.admin.patch(`/webhooks/${id}`, body)
const stats = async (id: string) => (await project.admin.get(`/webhooks/${id}`)).data.stats

describe('one subscription', () => {
  test('is shown with its stats and without its secret', async () => {
    const hook = await watch({ description: 'd', filter: { column: 'a', op: 'eq', value: 1 }, include_user: false })
    const answer = await project.admin.get(`/webhooks/${hook.id}`)
    expect(answer.status).toBe(200)
    expect(answer.data).toEqual({
      ...shown(hook),
      stats: { delivered_24h: 0, failed_24h: 0, p95_ms: null, pending: 0 },
    })
  })

  test('counts its own deliveries only: those finished within 24 hours, and pending ones', async () => {
    const hook = await watch()
    const other = await watch({ event_name: 'other' })
    await fire(3)
    await project.drain()
    await giveUp(2)
    await project.sql(`update app.webhook_deliveries set status = 'failed' where id = (select id from app.webhook_deliveries
      where status = 'dlq' limit 1)`)
    await fire(4)
    await fire(1, 'other')
    expect(await stats(hook.id)).toMatchObject({ delivered_24h: 3, failed_24h: 2, pending: 4 })
    expect(await stats(other.id)).toMatchObject({ delivered_24h: 0, failed_24h: 0, pending: 1 })
    harness.advance(24 * 3600 - 1)
    expect(await stats(hook.id)).toMatchObject({ delivered_24h: 3, failed_24h: 2, pending: 4 })
    harness.advance(1)
    const admin = await webhooks.signIn()
    expect((await admin.get(`/webhooks/${hook.id}`)).data.stats).toEqual({
      delivered_24h: 0,
      failed_24h: 0,
      p95_ms: null,
      pending: 4,
    })
  })

  test('p95_ms is the 95th percentile of its newest thousand attempts', async () => {
    const hook = await watch()
    await fire(1)
    await project.drain()
    await project.sql('delete from app.webhook_attempts')
    const log = (n: number, from: number, ms: string) =>
      project.sql(
        `insert into app.webhook_attempts (delivery_id, webhook_id, n, at, duration_ms)
         select d.id, d.webhook_id, $2 + i, $1::timestamptz - make_interval(secs => $2 + i), ${ms}
           from app.webhook_deliveries d, generate_series(1, $3) i`,
        [webhooks.start, from, n],
      )
    await log(100, 0, 'i')
    expect((await stats(hook.id)).p95_ms).toBe(95)
    // many older, slow attempts; they count only up to the limit of a thousand
    await log(2000, 100, '9999')
    expect((await stats(hook.id)).p95_ms).toBe(9999)
    await project.sql('delete from app.webhook_attempts')
    await log(1000, 0, '7')
    await log(2000, 1000, '9999')
    expect((await stats(hook.id)).p95_ms).toBe(7)
  })

  test('its stats and lists use indexes', async () => {
    const hook = await watch()
    await watch({ event_name: 'other' })
    await project.sql(
      `insert into app.webhook_deliveries (id, webhook_id, secret_id, event_id, event_name, payload, status, created_at, settled_at)
       select gen_random_uuid(), w.id, w.secret_id, gen_random_uuid(), 'paid', '{}', case when i % 50 = 0 then 'dlq' else 'delivered' end,
              $1::timestamptz - make_interval(mins => i), $1::timestamptz - make_interval(mins => i)
         from app.webhooks w, generate_series(1, 10000) i`,
      [webhooks.start],
    )
    await project.sql(
      `insert into app.webhook_attempts (delivery_id, webhook_id, n, at, duration_ms)
       select d.id, d.webhook_id, 1, d.settled_at, 5 from app.webhook_deliveries d`,
    )
    await project.sql('vacuum analyze app.webhook_deliveries, app.webhook_attempts')
    const plan = async (query: string) => JSON.stringify(await project.sql(`explain (costs off) ${query}`))
    const mine = `webhook_id = '${hook.id}'`
    const day = `timestamptz '${webhooks.start}' - interval '24 hours'`
    expect(
      await plan(
        `select count(*) from app.webhook_deliveries where ${mine} and settled_at > ${day} and status = 'dlq'`,
      ),
    ).toContain('Index Only Scan using webhook_deliveries_settled')
    expect(
      await plan(
        `select duration_ms from app.webhook_attempts where ${mine} and at > ${day} order by at desc limit 1000`,
      ),
    ).toContain('Index Only Scan using webhook_attempts_recent')
    expect(await plan(`select count(*) from app.webhook_deliveries where ${mine} and status = 'pending'`)).toMatch(
      /webhook_deliveries_(by_status|unusual)/,
    )
    const list = (more: string) =>
      plan(`select id from app.webhook_deliveries where ${mine} ${more} order by created_at desc, id desc limit 51`)
    expect(await list('')).toContain('Scan using webhook_deliveries_newest')
    expect(await list(`and status = 'dlq'`)).toContain('Scan using webhook_deliveries_by_status')
    const ofAll = (more: string) =>
      plan(`select * from app.webhook_deliveries where true ${more} order by created_at desc, id desc limit 51`)
    expect(await ofAll('')).toContain('Scan using webhook_deliveries_created')
    expect(await ofAll(`and status = 'delivered'`)).toContain('Scan using webhook_deliveries_created')
    expect(await ofAll(`and status = 'failed'`)).toContain('Scan using webhook_deliveries_unusual')
    expect(await stats(hook.id)).toEqual({ delivered_24h: 1411, failed_24h: 28, p95_ms: 5, pending: 0 })
  })

  test('deliveries of all subscriptions are listed together, newest first, page by page', async () => {
    const [one, other] = [await watch(), await watch({ event_name: 'other' })]
    await fire(2)
    harness.advance(60)
    await fire(1, 'other')
    await project.sql(`update app.webhook_deliveries set status = 'dlq' where webhook_id = $1`, [other.id])
    const list = async (query: string) => (await project.admin.get(`/webhooks/deliveries?${query}`)).body as any
    const idsOf = ({ data }: { data: { webhook_id: string }[] }) => data.map(({ webhook_id }) => webhook_id)
    const everything = await list('')
    expect(idsOf(everything)).toEqual([other.id, one.id, one.id])
    expect(everything.data[0]).toEqual((await project.admin.get(`/webhooks/${other.id}/deliveries`)).data[0])
    const first = await list('limit=2')
    expect(idsOf(first)).toEqual([other.id, one.id])
    const rest = await list(`limit=2&cursor=${first.pagination.next_cursor}`)
    expect([...first.data, ...rest.data]).toEqual(everything.data)
    expect(rest.pagination.next_cursor).toBeNull()
    expect(idsOf(await list('status=dlq'))).toEqual([other.id])
    expect(idsOf(await list('status=pending&limit=1'))).toEqual([one.id])
    expect(idsOf(await list(`since=${harness.now().toISOString()}`))).toEqual([other.id])
    for (const query of ['status=lost', 'since=yesterday', 'cursor=none', 'limit=0'])
      expectRefusal(await project.admin.get(`/webhooks/deliveries?${query}`), 400, 'INVALID_INPUT')
    expectRefusal(
      await (await harness.developer()).get(`/admin/projects/${project.id}/webhooks/deliveries`),
      403,
      'PROJECT_FORBIDDEN',
    )
  })

  test('is not found under another id, in another project, or under none', async () => {
    const hook = await watch()
    const other = await harness.project({ developer: project.developer })
    const calls = [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/rotate-secret'],
      ['POST', '/test'],
      ['POST', '/replay'],
      ['GET', '/deliveries'],
    ] as const
    for (const [method, path] of calls) {
      const body = method === 'GET' ? undefined : {}
      expectRefusal(await other.admin.request(method, `/webhooks/${hook.id}${path}`, body), 404, 'NOT_FOUND')
      expectRefusal(await project.admin.request(method, `/webhooks/${randomUUID()}${path}`, body), 404, 'NOT_FOUND')
      expectRefusal(await project.admin.request(method, `/webhooks/x${path}`, body), 400, 'INVALID_ID', 'webhookId')
    }
    expect((await project.admin.get(`/webhooks/${hook.id}`)).status).toBe(200)
  })
})

describe('changing a subscription', () => {
  test('changes only the fields that are present', async () => {
    const hook = await watch({ description: 'd', filter: { column: 'a', op: 'eq', value: 1 } })
    harness.advance(60)
    let expected = { ...shown(hook), updated_at: '2026-12-01T10:01:00.000Z' }
    for (const change of [
      { event_name: 'refunded' },
      { target_url: `${receiver.url}other?x=1` },
      { status: 'disabled' },
      { status: 'active' },
      { description: 'another' },
      { description: null },
      { filter: { column: 'b', op: 'is_null' } },
      { filter: null },
    ]) {
      const answer = await patch(hook.id, change)
      expected = { ...expected, ...change }
      expect([answer.status, answer.data]).toEqual([200, expected])
    }
    expect(shown((await project.admin.get('/webhooks')).data[0])).toEqual(expected)
  })

  test.each([
    ['an empty body', {}],
    ['fields that cannot be changed', { include_user: false, id: randomUUID(), secret: 'x', created_at: 'x' }],
    ['what it is already', { status: 'active', event_name: 'paid' }],
  ])('by %s changes nothing, 200', async (_name, body) => {
    const hook = await watch()
    harness.advance(60)
    const answer = await patch(hook.id, body)
    expect([answer.status, answer.data]).toEqual([200, shown(hook)])
  })

  test.each([
    [{ event_name: null }, 'event_name'],
    [{ event_name: 'Paid' }, 'event_name'],
    [{ event_name: 'a'.repeat(129) }, 'event_name'],
    [{ target_url: null }, 'target_url'],
    [{ target_url: '' }, 'target_url'],
    [{ status: 'degraded' }, 'status'],
    [{ status: null }, 'status'],
    [{ description: 'a'.repeat(1001) }, 'description'],
    [{ description: 1 }, 'description'],
    [{ filter: {} }, 'filter'],
    [{ filter: [] }, 'filter'],
    [{ filter: { and: Array(51).fill({ column: 'a', op: 'is_null' }) } }, 'filter'],
  ])('refuses %o', async (body, field) => {
    const hook = await watch()
    expectRefusal(await patch(hook.id, { description: 'new', ...body }), 400, 'VALIDATION_ERROR', field)
    expect((await project.admin.get('/webhooks')).data).toEqual([shown(hook)])
  })

  test('takes a name of 128 and a description of 1,000 characters', async () => {
    const hook = await watch()
    const change = { event_name: 'a'.repeat(128), description: '😀'.repeat(1000) }
    expect((await patch(hook.id, change)).data).toMatchObject(change)
  })

  test('checks the new address', async () => {
    const hook = await watch()
    for (const [target_url, code] of [
      ['http://1.1.1.1/', 'TARGET_URL_NOT_HTTPS'],
      ['https://10.0.0.1/', 'TARGET_URL_NOT_ALLOWED'],
      ['https://[::ffff:10.0.0.1]/', 'TARGET_URL_NOT_ALLOWED'],
      ['https://nothing.invalid/', 'TARGET_URL_NOT_ALLOWED'],
    ] as const)
      expectRefusal(await patch(hook.id, { target_url }), 400, code, 'target_url')
    expectRefusal(await project.admin.patch(`/webhooks/${hook.id}`, '['), 400, 'INVALID_BODY')
    expect((await project.admin.get('/webhooks')).data).toEqual([shown(hook)])
  })

  test('applies to queued deliveries too: they go to the new address', async () => {
    const elsewhere = await startHttpsReceiver()
    const hook = await watch({ target_url: elsewhere.url })
    await fire()
    await patch(hook.id, { target_url: receiver.url, event_name: 'other' })
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
    expect(receiver.requests[0]!.headers['x-service-event-name']).toBe('paid')
    expect(elsewhere.requests).toEqual([])
    await elsewhere.close()
  })

  test('disabled: events create no delivery, until it is switched on', async () => {
    const hook = await watch()
    await patch(hook.id, { status: 'disabled' })
    await fire(3)
    expect(await all()).toEqual([])
    await patch(hook.id, { status: 'active' })
    await fire(1)
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
  })

  test('is in the audit trail, secrets left out', async () => {
    const hook = await watch()
    await patch(hook.id, { description: 'audited' })
    await project.admin.post(`/webhooks/${hook.id}/rotate-secret`)
    const rows = await project.sql(
      `select action, changes from app.audit_events where target_id = $1 and action = 'webhooks.update' order by position`,
      [hook.id],
    )
    expect(rows).toEqual([
      { action: 'webhooks.update', changes: { description: [null, 'audited'] } },
      { action: 'webhooks.update', changes: { secret_id: ['[redacted]', '[redacted]'] } },
    ])
  })
})

describe('deleting a subscription', () => {
  test('hides its deliveries at once, and a worker removes them, however many', async () => {
    const hook = await watch()
    const kept = await watch({ event_name: 'other' })
    await fire(1, 'other')
    await fire(1)
    const [{ id }] = await project.sql('select id from app.webhook_deliveries where webhook_id = $1', [hook.id])
    await project.sql(
      `insert into app.webhook_deliveries (id, webhook_id, secret_id, event_id, event_name, payload, status)
       select gen_random_uuid(), w.id, w.secret_id, gen_random_uuid(), 'paid', '{}', 'failed'
         from app.webhooks w, generate_series(1, 2500) where w.id = $1`,
      [hook.id],
    )
    expect((await project.admin.delete(`/webhooks/${hook.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await project.admin.get(`/webhooks/${hook.id}/deliveries`), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.get(`/webhooks/deliveries/${id}`), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.post(`/webhooks/deliveries/${id}/replay`), 404, 'NOT_FOUND')
    expect(await all()).toHaveLength(2502)
    await project.drain()
    expect((await all()).map(({ webhook_id }) => webhook_id)).toEqual([kept.id])
    expect(receiver.requests).toHaveLength(1)
    expect(await project.sql('select from app.webhook_secrets')).toHaveLength(1)
    expect(await project.sql('select from app.outbox')).toEqual([])
  })
})

describe('rotating the secret', () => {
  test('shows the new secret once; queued deliveries keep the old one', async () => {
    const hook = await watch()
    await fire()
    const answer = await project.admin.post(`/webhooks/${hook.id}/rotate-secret`)
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ data: { secret: expect.stringMatching(/^[0-9a-f]{64}$/) } })
    const { secret } = answer.data
    expect(secret).not.toBe(hook.secret)
    await fire()
    say(answering(500))
    await project.drain()
    say(answering(200))
    harness.advance(10)
    await project.drain()
    const [queuedBefore] = await all()
    expect(receiver.requests).toHaveLength(4)
    for (const request of receiver.requests) {
      const isOld = JSON.parse(request.body).id === queuedBefore.id
      expect(isSigned(request, hook.secret)).toBe(isOld)
      expect(isSigned(request, secret)).toBe(!isOld)
    }
    const stored = JSON.stringify(
      await project.sql('select * from app.webhook_secrets, app.webhooks, app.audit_events'),
    )
    expect(stored).not.toContain(secret)
    expect(JSON.stringify((await project.admin.get('/webhooks')).body)).not.toContain(secret)
  })

  test('an old secret is deleted when no delivery that was queued with it is left', async () => {
    const hook = await watch()
    await project.admin.post(`/webhooks/${hook.id}/rotate-secret`)
    await project.admin.post(`/webhooks/${hook.id}/rotate-secret`)
    const forget = async () => {
      await project.as('app_worker', { 'app.clock': harness.now().toISOString() }, 'select api.tenant_purge()')
      return (await project.sql('select from app.webhook_secrets')).length
    }
    harness.advance(31 * 24 * 3600 - 1)
    expect(await forget()).toBe(3)
    harness.advance(2)
    // the secret in use is kept
    expect(await forget()).toBe(1)
    expect(
      await project.sql('select from app.webhook_secrets s join app.webhooks w on w.secret_id = s.id'),
    ).toHaveLength(1)
  })
})
