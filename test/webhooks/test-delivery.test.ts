import { describe, expect, test } from 'vitest'
import { idempotencyKey } from '#server/providers/outbound.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { answering, isSigned, startWebhooks } from '#test/support/webhooks.ts'

const webhooks = await startWebhooks()
const { project, receiver, watch, all, say, giveUp, hookStatus } = webhooks

const patch = (id: string, body: unknown) => project.admin.patch(`/webhooks/${id}`, body)
const stats = async (id: string) => (await project.admin.get(`/webhooks/${id}`)).data.stats

describe('a test delivery', () => {
  const send = (id: string) => project.admin.post(`/webhooks/${id}/test`)

  test('is sent at once, signed, as the first attempt of svc.webhook.test', async () => {
    const hook = await watch()
    const answer = await send(hook.id)
    expect([answer.status, answer.data]).toEqual([
      200,
      { status_code: 200, error: null, duration_ms: expect.any(Number), response_excerpt: 'ok', delivered: true },
    ])
    const [request] = receiver.requests
    const body = JSON.parse(request!.body)
    expect(body).toEqual({
      id: expect.any(String),
      type: 'svc.webhook.test',
      api_version: '1.0.0',
      created_at: webhooks.start,
      project_id: project.id,
      data: {
        event: {
          id: expect.any(String),
          event_name: 'svc.webhook.test',
          properties: {},
          occurred_at: webhooks.start,
          source: 'system',
          session_id: null,
        },
        user: null,
      },
    })
    expect(request!.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'Service-Webhooks/1',
      'x-service-attempt': '1',
      'x-service-event-name': 'svc.webhook.test',
      'x-service-event-id': body.data.event.id,
      'x-service-idempotency-key': idempotencyKey(hook.id, body.data.event.id),
    })
    expect(isSigned(request!, hook.secret)).toBe(true)
    expect(isSigned({ ...request!, body: `${request!.body} ` }, hook.secret)).toBe(false)
  })

  test('leaves no trace: no delivery, no stats, and the circuit breaker neither opens nor resets its counts', async () => {
    const hook = await watch()
    await giveUp(4)
    const before = await project.sql('select * from app.webhook_breakers')
    expect(before).toMatchObject([{ dlq_in_row: 4, failed_in_row: 4 }])
    const figures = await stats(hook.id)
    for (const status of [500, 200, 500, 500]) {
      say(answering(status, {}, 'no'))
      expect((await send(hook.id)).data).toMatchObject({ status_code: status, delivered: status === 200 })
    }
    expect(await project.sql('select * from app.webhook_breakers')).toEqual(before)
    expect(await stats(hook.id)).toEqual(figures)
    expect(await all()).toHaveLength(4)
    await giveUp(1)
    expect(await hookStatus(hook.id)).toBe('degraded')
    say(answering(410))
    expect((await send(hook.id)).data.delivered).toBe(false)
    expect(await hookStatus(hook.id)).toBe('degraded')
  })

  test('says what went wrong, and follows no redirect', async () => {
    const closed = await startHttpsReceiver()
    const hook = await watch({ target_url: closed.url })
    await closed.close()
    expect((await send(hook.id)).data).toMatchObject({
      status_code: null,
      error: 'connection refused',
      response_excerpt: '',
      delivered: false,
    })
    await patch(hook.id, { target_url: receiver.url, status: 'disabled' })
    say(answering(302, { location: receiver.url }, 'x'.repeat(5000)))
    expect((await send(hook.id)).data).toMatchObject({
      status_code: 302,
      error: 'redirect',
      response_excerpt: 'x'.repeat(1024),
      delivered: false,
    })
    expect(receiver.requests).toHaveLength(1)
  })

  test('checks the address anew', async () => {
    const hook = await watch()
    for (const [url, code] of [
      ['https://10.0.0.1/', 'TARGET_URL_NOT_ALLOWED'],
      ['http://127.0.0.1/', 'TARGET_URL_NOT_HTTPS'],
    ] as const) {
      await project.sql('update app.webhooks set target_url = $1', [url])
      expectRefusal(await send(hook.id), 400, code, 'target_url')
    }
  })
})
