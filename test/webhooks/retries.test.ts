import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { parseAllowedCidrs } from '#server/providers/addresses.ts'
import { createOutbound, verifySignature } from '#server/providers/outbound.ts'
import { sendDelivery } from '#server/providers/webhooks.ts'
import { startHarness } from '#test/support/harness.ts'
import { type ReceivedRequest, startHttpsReceiver } from '#test/support/https.ts'
import { startSecond } from '#test/support/second.ts'
import { drainTenant } from '#workers/drain.ts'
import { loadTasks } from '#workers/task.ts'

type Handler = (response: ServerResponse, request: ReceivedRequest) => unknown
const ok: Handler = (response) => response.end('ok')
let handle: Handler = ok
const receiver = await startHttpsReceiver({ handler: (request, response) => handle(response, request) })
const harness = await startHarness({
  env: { WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.caFile },
})
const second = await startSecond(harness)
const project = await harness.project()
const { id: userId } = await project.user()
const server = project.onBehalfOf(userId)

afterEach(async () => {
  handle = ok
  harness.setTime(null)
  receiver.requests.splice(0)
  await project.sql('delete from app.webhooks')
  await project.sql('delete from app.webhook_deliveries')
  await project.sql('delete from app.outbox')
})

const start = '2026-11-21T10:00:00Z'
const answering =
  (status: number, headers: Record<string, string> = {}, body = ''): Handler =>
  (response) =>
    response.writeHead(status, headers).end(body)
/** Creates a subscription as the project's `admin`: developer tokens expire in real time, and these tests move the clock. */
const watch = async (target_url = receiver.url) => {
  const { status, data } = await project.admin.post('/webhooks', { event_name: 'paid', target_url })
  expect(status).toBe(201)
  return data
}
const fire = async () => {
  const id = randomUUID()
  expect((await server.post('/client/events', { id, event_name: 'paid' })).status).toBe(201)
  return id
}
const delivery = async () => (await project.sql('select * from app.webhook_deliveries order by created_at limit 1'))[0]
const attempts = () => project.sql('select * from app.webhook_attempts order by n')
const outbox = () => project.sql('select * from app.outbox')
/** Seconds from now until the next attempt. */
const wait = async () => ((await delivery()).next_attempt_at.getTime() - harness.now().getTime()) / 1000

describe('a delivery that is not acknowledged', () => {
  test('writes its row of the outbox once for an attempt and once for the lease, and its delivery once', async () => {
    harness.setTime(start)
    await project.sql(`
      create table app.test_writes (of_table text);
      create function internal.tg_test_writes() returns trigger language plpgsql security definer as
        $$ begin insert into app.test_writes values (tg_table_name); return null; end $$;
      create trigger test_writes after update or delete on app.outbox for each row execute function internal.tg_test_writes();
      create trigger test_writes after update or delete on app.webhook_deliveries for each row execute function internal.tg_test_writes()`)
    const written = async () =>
      (await project.sql('delete from app.test_writes returning of_table')).map((row) => row.of_table)
    await watch()
    handle = answering(500)
    await fire()
    await project.drain()
    expect((await written()).sort()).toEqual(['outbox', 'outbox', 'webhook_deliveries'])
    const again = (await outbox())[0]
    expect(again.due_at).toEqual(
      (await project.sql('select next_attempt_at from app.webhook_deliveries where next_attempt_at is not null'))[0]
        .next_attempt_at,
    )
    handle = ok
    harness.advance(10)
    await project.drain()
    expect((await written()).sort()).toEqual(['outbox', 'outbox', 'webhook_deliveries'])
    await project.sql(`
      drop trigger test_writes on app.outbox; drop trigger test_writes on app.webhook_deliveries;
      drop function internal.tg_test_writes; drop table app.test_writes`)
  })

  test('is attempted nine times on the back-off schedule, byte for byte the same with a new signature, and then goes to the dead-letter queue', async () => {
    harness.setTime(start)
    const hook = await watch()
    await fire()
    handle = answering(500, {}, 'broken')
    const schedule = [5, 30, 120, 600, 1800, 7200, 21_600, 43_200]
    for (const [index, seconds] of schedule.entries()) {
      await project.drain()
      expect(receiver.requests).toHaveLength(index + 1)
      const next = await wait()
      expect(next).toBeGreaterThanOrEqual(seconds * 0.9)
      expect(next).toBeLessThanOrEqual(seconds * 1.1)
      expect(await delivery()).toMatchObject({ status: 'pending', attempts: index + 1 })
      // not a millisecond too early
      harness.advance(next - 0.002)
      await project.drain()
      expect(receiver.requests).toHaveLength(index + 1)
      harness.advance(0.004)
    }
    await project.drain()
    expect(await delivery()).toMatchObject({
      status: 'dlq',
      attempts: 9,
      next_attempt_at: null,
      settled_at: harness.now(),
    })
    expect(await outbox()).toEqual([])
    harness.advance(86_400)
    await project.drain()
    expect(receiver.requests).toHaveLength(9)

    expect(new Set(receiver.requests.map(({ body }) => body)).size).toBe(1)
    const headers = receiver.requests.map((request) => request.headers)
    expect(headers.map((each) => each['x-service-attempt'])).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9'])
    expect(new Set(headers.map((each) => each['x-service-idempotency-key'])).size).toBe(1)
    const signatures = headers.map((each) => String(each['x-service-signature']))
    expect(new Set(signatures).size).toBe(9)
    const log = await attempts()
    for (const [index, signed] of signatures.entries()) {
      const at = Math.floor(log[index].at.getTime() / 1000)
      expect(signed.startsWith(`t=${at},`)).toBe(true)
      expect(verifySignature(signed, hook.secret, receiver.requests[0]!.body, at)).toBe(true)
    }
    expect(
      log.map(({ n, status_code, error, response_excerpt }) => ({ n, status_code, error, response_excerpt })),
    ).toEqual(
      Array.from({ length: 9 }, (_, index) => ({
        n: index + 1,
        status_code: 500,
        error: null,
        response_excerpt: 'broken',
      })),
    )
    expect(log.every(({ duration_ms }) => Number.isInteger(duration_ms) && duration_ms >= 0)).toBe(true)
  })

  test('is spread by jitter: many retries do not come at the same moment', async () => {
    const waits = await project.sql(
      `select internal.webhook_retry_seconds(n) as seconds from generate_series(1, 9) n order by n`,
    )
    expect(waits.map(({ seconds }) => seconds)).toEqual([5, 30, 120, 600, 1800, 7200, 21_600, 43_200, null])
    harness.setTime(start)
    await watch()
    handle = answering(503)
    await server.post('/client/events', { events: Array(40).fill({ event_name: 'paid' }) })
    await project.drain()
    const rows = await project.sql(
      'select extract(epoch from next_attempt_at - $1)::float as wait from app.webhook_deliveries',
      [harness.now()],
    )
    const found = rows.map((row) => row.wait)
    expect(Math.min(...found)).toBeGreaterThanOrEqual(4.5)
    expect(Math.max(...found)).toBeLessThanOrEqual(5.5)
    expect(Math.max(...found) - Math.min(...found)).toBeGreaterThan(0.3)
  })

  test('and then is, is delivered', async () => {
    harness.setTime(start)
    await watch()
    await fire()
    handle = answering(500)
    await project.drain()
    handle = answering(204)
    harness.advance(10)
    await project.drain()
    expect(await delivery()).toMatchObject({ status: 'delivered', attempts: 2 })
    expect((await attempts()).map(({ status_code }) => status_code)).toEqual([500, 204])
    expect(await outbox()).toEqual([])
  })

  test.each([
    ['a 429 in seconds', 429, '120', 120, 120],
    ['a 503 in seconds', 503, '90', 90, 90],
    ['up to an hour', 429, '7200', 3600, 3600],
    ['never sooner than the schedule', 429, '1', 4.5, 5.5],
    ['not of a 500', 500, '120', 4.5, 5.5],
    ['not when it is no number', 503, 'soon', 4.5, 5.5],
  ])('comes back when Retry-After says: %s', async (_name, status, header, least, most) => {
    harness.setTime(start)
    await watch()
    await fire()
    handle = answering(status, { 'retry-after': header })
    await project.drain()
    expect(await wait()).toBeGreaterThanOrEqual(least)
    expect(await wait()).toBeLessThanOrEqual(most)
  })

  test('Retry-After does not lengthen the series', async () => {
    harness.setTime(start)
    await watch()
    await fire()
    handle = answering(503, { 'retry-after': '3600' })
    for (let times = 0; times < 9; times += 1) {
      await project.drain()
      harness.advance(50_000)
    }
    expect(await delivery()).toMatchObject({ status: 'dlq', attempts: 9 })
  })

  test('a redirect is a failure, and is not followed', async () => {
    harness.setTime(start)
    await watch()
    await fire()
    handle = answering(302, { location: `${receiver.url}elsewhere` })
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
    expect((await attempts())[0]).toMatchObject({ status_code: 302, error: 'redirect' })
    expect((await delivery()).status).toBe('pending')
  })

  test('no connection, no certificate, no response: each is logged with a short text and retried', async () => {
    harness.setTime(start)
    const stranger = await startHttpsReceiver()
    const closed = await startHttpsReceiver()
    await closed.close()
    for (const [url, error] of [
      [closed.url, 'connection refused'],
      [stranger.url, 'certificate is not signed by a trusted authority'],
    ] as const) {
      const { id } = await watch(url)
      await fire()
      await project.drain()
      expect((await attempts())[0]).toMatchObject({ status_code: null, error })
      expect((await delivery()).status).toBe('pending')
      await project.admin.delete(`/webhooks/${id}`)
    }
    await stranger.close()
    await watch()
    await fire()
    handle = (response) => response.destroy()
    await project.drain()
    expect((await attempts())[0]).toMatchObject({ status_code: null, error: 'connection closed' })
  })

  test('keeps the first KB of the response', async () => {
    harness.setTime(start)
    await watch()
    await fire()
    handle = answering(500, {}, `\0${'é'.repeat(5000)}`)
    await project.drain()
    const [{ response_excerpt }] = await attempts()
    expect(response_excerpt).toBe('é'.repeat(512))
  })
})

describe('a delivery that is over at once', () => {
  test('410: failed, and the subscription is disabled', async () => {
    harness.setTime(start)
    const hook = await watch()
    await fire()
    await fire()
    handle = answering(410)
    await project.drain()
    const [{ status }] = await project.sql('select status from app.webhooks where id = $1', [hook.id])
    expect(status).toBe('disabled')
    // one delivery got the 410; the other got it too, or failed because the subscription was disabled
    const rows = await project.sql('select status, settled_at, next_attempt_at from app.webhook_deliveries')
    expect(rows).toEqual(Array(2).fill({ status: 'failed', settled_at: harness.now(), next_attempt_at: null }))
    expect(await outbox()).toEqual([])
    await fire()
    expect(await project.sql('select from app.webhook_deliveries')).toHaveLength(2)
  })

  test('410 of an address that has been changed since: retried at the new one, and not counted by the circuit breaker', async () => {
    harness.setTime(start)
    const hook = await watch(`${receiver.url}former`)
    await fire()
    handle = async (response) => {
      await project.sql('update app.webhooks set target_url = $1 where id = $2', [`${receiver.url}present`, hook.id])
      response.writeHead(410).end()
    }
    await project.drain()
    expect(await project.sql('select status from app.webhooks')).toEqual([{ status: 'active' }])
    expect(await project.sql('select * from app.webhook_breakers')).toEqual([])
    expect(await delivery()).toMatchObject({ status: 'pending', attempts: 1, series_attempts: 1, failed_reason: null })
    handle = ok
    harness.advance(6)
    await project.drain()
    expect(await delivery()).toMatchObject({ status: 'delivered', attempts: 2 })
    expect(receiver.requests.map(({ path }) => path)).toEqual(['/former', '/present'])
  })

  test.each([
    ['https://10.0.0.1/', 'TARGET_URL_NOT_ALLOWED'],
    ['https://[fd00::1]/', 'TARGET_URL_NOT_ALLOWED'],
    ['http://127.0.0.1/', 'TARGET_URL_NOT_HTTPS'],
  ])('an address that is not allowed any more, %s: failed, without a retry', async (url, error) => {
    harness.setTime(start)
    await watch()
    await fire()
    await project.sql('update app.webhooks set target_url = $1', [url])
    await project.drain()
    expect(await delivery()).toMatchObject({ status: 'failed', attempts: 1, next_attempt_at: null })
    expect(await attempts()).toMatchObject([{ status_code: null, error }])
    expect(await outbox()).toEqual([])
    expect(receiver.requests).toEqual([])
    expect((await project.sql('select status from app.webhooks'))[0].status).toBe('active')
  })

  test('a subscription that is disabled before it is sent: failed, nothing sent', async () => {
    await watch()
    await fire()
    await project.sql(`update app.webhooks set status = 'disabled'`)
    await project.drain()
    expect(await delivery()).toMatchObject({ status: 'failed', attempts: 0 })
    expect([receiver.requests, await outbox()]).toEqual([[], []])
  })

  test('a subscription that is deleted while it is sent, or before: gone, without a trace', async () => {
    const hook = await watch()
    await fire()
    handle = async (response) => {
      await project.admin.delete(`/webhooks/${hook.id}`)
      response.writeHead(500).end()
    }
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
    expect([await delivery(), await attempts(), await outbox()]).toEqual([undefined, [], []])
    const second = await watch()
    await fire()
    await project.admin.delete(`/webhooks/${second.id}`)
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
    expect(await outbox()).toEqual([])
  })
})

describe('many deliveries', () => {
  test('1,000 to one receiver, by workers of two servers: each arrives, under a key of its own, at most ten at a time', {
    timeout: 180_000,
  }, async () => {
    await watch()
    let now = 0
    let most = 0
    handle = async (response) => {
      now += 1
      most = Math.max(most, now)
      await sleep(50)
      now -= 1
      response.end()
    }
    const ids = Array.from({ length: 1000 }, () => randomUUID())
    const { status } = await server.post('/client/events', { events: ids.map((id) => ({ id, event_name: 'paid' })) })
    expect(status).toBe(201)
    const { outbox: tasks } = await loadTasks()
    await Promise.all([
      project.drain(),
      project.drain(),
      drainTenant(second.running.services, tasks, project.id, { turnMs: 60_000 }),
    ])
    await project.drain()
    expect(new Set(receiver.requests.map(({ headers }) => headers['x-service-event-id']))).toEqual(new Set(ids))
    expect(receiver.requests).toHaveLength(1000)
    expect(new Set(receiver.requests.map(({ headers }) => headers['x-service-idempotency-key'])).size).toBe(1000)
    expect(most).toBeLessThanOrEqual(10)
    expect(most).toBeGreaterThan(5)
    expect(await project.sql(`select from app.webhook_deliveries where status = 'delivered'`)).toHaveLength(1000)
  })

  test('a slow receiver does not hold up another', async () => {
    const slow = await startHttpsReceiver()
    await watch()
    await watch(slow.url)
    const release: (() => void)[] = []
    handle = (response) => new Promise<void>((done) => release.push(() => done(void response.end())))
    await server.post('/client/events', { events: Array(60).fill({ event_name: 'paid' }) })
    const draining = project.drain()
    // the slow receiver occupies its ten places; all deliveries of the other one fail at once
    await expect
      .poll(async () => Number((await project.sql('select count(*) from app.webhook_attempts'))[0].count), {
        timeout: 10_000,
      })
      .toBe(60)
    expect(release).toHaveLength(10)
    handle = ok
    for (const done of release.splice(0)) done()
    await draining
    expect(receiver.requests).toHaveLength(60)
    await slow.close()
  })

  test('a worker that was killed between lease and result: sent again with the same idempotency key when the lease expires', async () => {
    harness.setTime(start)
    await watch()
    await fire()
    const claims = () => ({ 'app.clock': harness.now().toISOString() })
    await project.as('app_worker', claims(), 'select api.outbox_lease(10, 30, 10)')
    harness.advance(29)
    await project.drain()
    expect(receiver.requests).toEqual([])
    harness.advance(2)
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
    expect(await delivery()).toMatchObject({ status: 'delivered', attempts: 1 })
  })

  test('a worker that stops while it waits for a response does not count a failure of the receiver', async () => {
    await watch()
    await fire()
    const allowedCidrs = parseAllowedCidrs('127.0.0.0/8')
    const outbound = createOutbound({ allowedCidrs, caFile: receiver.caFile })
    handle = () => new Promise(() => undefined)
    const [{ id }] = await project.sql('select id from app.webhook_deliveries')
    const [begun] = await project.as('app_worker', {}, 'select r.body from api.webhook_delivery_begin($1) r', [id])
    const sending = sendDelivery({ outbound, secrets: harness.running.services.secrets }, begun.body.data.delivery)
    const ended = expect(sending).rejects.toThrow('this process ends')
    await expect.poll(() => receiver.requests).toHaveLength(1)
    await outbound.close()
    await ended
    expect(await attempts()).toEqual([])
  })

  test('are kept for 30 days, and their attempts with them', async () => {
    harness.setTime(start)
    await watch()
    await fire()
    await project.drain()
    const forget = () =>
      project.as('app_worker', { 'app.clock': harness.now().toISOString() }, 'select api.tenant_purge()')
    harness.setTime('2026-12-21T09:59:00Z')
    await forget()
    expect(await attempts()).toHaveLength(1)
    harness.setTime('2026-12-21T10:01:00Z')
    await forget()
    expect([await delivery(), await attempts()]).toEqual([undefined, []])
  })
})
