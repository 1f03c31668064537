import { describe, expect, test } from 'vitest'
import { startSecond } from '#test/support/second.ts'
import { answering, startWebhooks } from '#test/support/webhooks.ts'
import { drainTenant } from '#workers/drain.ts'
import { loadTasks } from '#workers/task.ts'

const webhooks = await startWebhooks()
const {
  harness,
  project,
  receiver,
  watch,
  fire,
  all,
  say,
  giveUp,
  lastTry,
  outbox,
  hookStatus,
  switchOn,
  breaker,
  degraded,
} = webhooks
const other = await startSecond(webhooks.harness)
const deliver = async () => {
  say(answering(200))
  await fire()
  await project.drain()
}

const minute = 60
const hour = 3600
const states = async () => (await all()).map(({ status, attempts }) => [status, attempts])

describe('the circuit breaker of a subscription opens', () => {
  test('when five consecutive deliveries end in the dead-letter queue, and not at the fourth', async () => {
    const hook = await watch()
    for (let times = 1; times <= 4; times += 1) {
      await giveUp(1)
      expect(await hookStatus(hook.id)).toBe('active')
    }
    harness.advance(hour)
    await giveUp(1)
    expect(await hookStatus(hook.id)).toBe('degraded')
    expect((await project.admin.get(`/webhooks/${hook.id}`)).data).toMatchObject({
      status: 'degraded',
      updated_at: '2026-12-01T11:00:00.000Z',
    })
  })

  test('not when a delivery in between succeeds', async () => {
    const hook = await watch()
    await giveUp(4)
    await deliver()
    await giveUp(4)
    expect(await hookStatus(hook.id)).toBe('active')
    await giveUp(1)
    expect(await hookStatus(hook.id)).toBe('degraded')
  })

  test('not because of deliveries of another subscription, or of ones that failed without an attempt', async () => {
    const hook = await watch()
    const other = await watch({ event_name: 'other' })
    await giveUp(4)
    say(answering(500))
    await fire(1, 'other')
    await lastTry()
    await project.drain()
    expect(await hookStatus(hook.id)).toBe('active')
    expect(await breaker(other.id)).toMatchObject({ dlq_in_row: 1, failed_in_row: 1 })
  })

  test('when fifty consecutive attempts have failed over thirty minutes', async () => {
    const hook = await watch()
    say(answering(500))
    await fire(60)
    await project.drain()
    // sixty failures, but all at the same time
    expect(await breaker(hook.id)).toMatchObject({ failed_in_row: 60, dlq_in_row: 0, failing_since: harness.now() })
    await project.sql('delete from app.webhook_deliveries')
    harness.advance(30 * minute - 0.001)
    await fire()
    await project.drain()
    expect(await hookStatus(hook.id)).toBe('active')
    await project.sql('delete from app.webhook_deliveries')
    harness.advance(0.001)
    await fire()
    await project.drain()
    expect(await hookStatus(hook.id)).toBe('degraded')
    expect(await breaker(hook.id)).toMatchObject({ failed_in_row: 62, degraded_at: harness.now() })
  })

  test('not after forty-nine failures, however long, nor when one of the attempts succeeded', async () => {
    const hook = await watch()
    say(answering(500))
    const failAt = async (times: number) => {
      await fire(times)
      await project.drain()
      await project.sql('delete from app.webhook_deliveries')
    }
    await failAt(48)
    harness.advance(5 * hour)
    await failAt(1)
    expect(await hookStatus(hook.id)).toBe('active')
    await deliver()
    expect(await breaker(hook.id)).toMatchObject({ failed_in_row: 0, dlq_in_row: 0, failing_since: null })
    say(answering(500))
    await failAt(49)
    harness.advance(hour)
    expect(await hookStatus(hook.id)).toBe('active')
    await failAt(1)
    expect(await hookStatus(hook.id)).toBe('degraded')
  })

  test('exactly once: concurrent failures in many workers are all counted', { timeout: 180_000 }, async () => {
    const { outbox: tasks } = await loadTasks()
    const drainBoth = () => Promise.all([project.drain(), drainTenant(other.running.services, tasks, project.id)])
    const hook = await watch()
    say(answering(500))
    await fire(40)
    await drainBoth()
    expect(await breaker(hook.id)).toMatchObject({ failed_in_row: 40, dlq_in_row: 0 })
    await project.sql('delete from app.webhook_deliveries')
    await fire(4)
    await lastTry()
    await drainBoth()
    expect(await breaker(hook.id)).toMatchObject({ failed_in_row: 44, dlq_in_row: 4 })
    expect(await hookStatus(hook.id)).toBe('active')

    // twenty concurrent last failures: the first one opens the breaker, once; attempts in progress end, the other deliveries are held
    await fire(20)
    await lastTry()
    await drainBoth()
    expect(await breaker(hook.id)).toMatchObject({ failed_in_row: 45, dlq_in_row: 5 })
    expect(await hookStatus(hook.id)).toBe('degraded')
    expect(await outbox('webhooks__probe')).toHaveLength(1)
    const rows = (await all()).slice(4)
    const lost = rows.filter(({ status }) => status === 'dlq').length
    const held = rows.filter(({ status, held_until }) => status === 'pending' && held_until !== null).length
    expect(lost + held).toBe(20)
    expect(lost).toBeLessThanOrEqual(10)
  })

  test('or stays closed when a success races a fifth failure, but never loses a count', async () => {
    const hook = await watch()
    for (let times = 0; times < 5; times += 1) {
      await project.sql('delete from app.webhook_breakers')
      await giveUp(4)
      await fire(1)
      await lastTry()
      await fire(1)
      const failing = (await all()).at(-2).event_id
      say((response, request) =>
        response.writeHead(request.headers['x-service-event-id'] === failing ? 500 : 200).end(),
      )
      await project.drain()
      const { dlq_in_row } = await breaker(hook.id)
      expect([1, 5]).toContain(dlq_in_row)
      expect(await hookStatus(hook.id)).toBe(dlq_in_row === 5 ? 'degraded' : 'active')
      await switchOn(hook.id)
      await project.drain()
    }
  })
})

describe('while a subscription is degraded', () => {
  test('new deliveries are held, and a half-open probe sends the oldest one every fifteen minutes', async () => {
    const hook = await degraded()
    const [oldest] = await fire(1)
    harness.advance(1)
    const [second] = await fire(1)
    harness.advance(minute - 1)
    await fire(3)
    say(answering(500))
    harness.advance(14 * minute - 0.001)
    await Promise.all([project.drain(), project.drain()])
    expect(receiver.requests).toEqual([])
    expect(await outbox()).toEqual([])
    const [first] = await all()
    expect(first).toMatchObject({
      status: 'pending',
      attempts: 0,
      next_attempt_at: null,
      held_until: new Date('2026-12-04T10:00:00Z'),
    })

    harness.advance(0.001)
    await Promise.all([project.drain(), project.drain(), project.drain()])
    expect(receiver.requests.map(({ headers }) => headers['x-service-event-id'])).toEqual([oldest])
    expect(await states()).toEqual([['pending', 1], ...Array(4).fill(['pending', 0])])

    // the probe fails repeatedly; its delivery is neither given up nor scheduled
    for (let times = 2; times <= 12; times += 1) {
      harness.advance(15 * minute)
      await project.drain()
      expect(receiver.requests).toHaveLength(times)
    }
    expect(new Set(receiver.requests.map(({ headers }) => headers['x-service-event-id']))).toEqual(new Set([oldest]))
    expect(receiver.requests.map(({ headers }) => headers['x-service-attempt'])).toEqual(
      Array.from({ length: 12 }, (_, index) => String(index + 1)),
    )
    expect(await all()).toMatchObject([
      { status: 'pending', attempts: 12, series_attempts: 0, held_until: new Date('2026-12-04T10:00:00Z') },
      {},
      {},
      {},
      {},
    ])

    // a successful probe delivers, but does not close the breaker
    say(answering(200))
    harness.advance(15 * minute)
    await project.drain()
    harness.advance(14 * minute)
    await project.drain()
    expect(await states()).toEqual([['delivered', 13], ...Array(4).fill(['pending', 0])])
    expect(await hookStatus(hook.id)).toBe('degraded')
    harness.advance(minute)
    await project.drain()
    expect(receiver.requests.at(-1)?.headers['x-service-event-id']).toBe(second)
    expect(receiver.requests).toHaveLength(14)
  })

  test('a worker that dies during a probe skips that probe and never causes a second', async () => {
    const hook = await degraded()
    await fire(1)
    harness.advance(15 * minute)
    const begin = async () =>
      (
        await project.as(
          'app_worker',
          { 'app.clock': harness.now().toISOString() },
          'select r.body from api.webhook_probe_begin($1) r',
          [hook.id],
        )
      )[0].body.data
    expect((await begin()).delivery).toMatchObject({ attempt: 1 })
    expect(await begin()).toEqual({ delivery: null, due_at: '2026-12-01T10:30:00.000Z' })
    await project.drain()
    expect(receiver.requests).toEqual([])
    harness.advance(15 * minute)
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
  })

  test('a delivery that waits for a retry is held as well', async () => {
    await watch()
    say(answering(500))
    await fire(1)
    await project.drain()
    await project.sql('update app.webhook_deliveries set series_attempts = 2')
    await giveUp(5)
    receiver.requests.splice(0)
    harness.advance(10)
    await project.drain()
    expect(receiver.requests).toEqual([])
    expect((await all())[0]).toMatchObject({
      status: 'pending',
      next_attempt_at: null,
      held_until: new Date('2026-12-04T10:00:10Z'),
    })
    expect(await outbox()).toEqual([])
  })

  test('a replayed delivery is held, too', async () => {
    const hook = await watch()
    await giveUp(5)
    receiver.requests.splice(0)
    const [{ id }] = await all()
    expect((await project.admin.post(`/webhooks/deliveries/${id}/replay`)).status).toBe(202)
    await project.drain()
    expect(receiver.requests).toEqual([])
    expect((await project.admin.get(`/webhooks/deliveries/${id}`)).data).toMatchObject({
      status: 'pending',
      held_until: '2026-12-04T10:00:00.000Z',
    })
    say(answering(200))
    await switchOn(hook.id)
    await project.drain()
    expect((await project.admin.get(`/webhooks/deliveries/${id}`)).data.status).toBe('delivered')
  })

  test('a delivery that was held for 72 hours goes to the dead-letter queue, on time', async () => {
    await degraded()
    await fire(1)
    harness.advance(7 * minute)
    await fire(1)
    say(answering(500))
    // the night passes without a worker
    harness.setTime('2026-12-04T09:59:59.999Z')
    await project.drain()
    expect((await all()).map(({ status }) => status)).toEqual(['pending', 'pending'])
    harness.advance(0.001)
    await project.drain()
    expect((await all()).map(({ status }) => status)).toEqual(['dlq', 'pending'])
    expect((await all())[0]).toMatchObject({
      failed_reason: 'held_too_long',
      held_until: null,
      settled_at: harness.now(),
    })
    harness.setTime('2026-12-04T10:06:59.999Z')
    await project.drain()
    expect((await all())[1].status).toBe('pending')
    harness.advance(0.001)
    await project.drain()
    expect((await all())[1].status).toBe('dlq')
  })

  test('a probe that gets a 410 disables the subscription; one whose address is refused fails its delivery', async () => {
    const hook = await degraded()
    await fire(3)
    await project.sql(`update app.webhooks set target_url = 'https://10.0.0.1/'`)
    harness.advance(15 * minute)
    await project.drain()
    expect((await all())[0]).toMatchObject({ status: 'failed', failed_reason: 'target_not_allowed' })
    await project.sql('update app.webhooks set target_url = $1', [receiver.url])
    say(answering(410))
    harness.advance(15 * minute)
    await project.drain()
    expect(await hookStatus(hook.id)).toBe('disabled')
    expect((await all()).map(({ failed_reason }) => failed_reason)).toEqual([
      'target_not_allowed',
      'gone',
      'subscription_disabled',
    ])
    harness.advance(15 * minute)
    await project.drain()
    expect([await outbox('webhooks__probe'), receiver.requests.length]).toEqual([[], 1])
  })

  test('the deletion of a subscription deletes its held deliveries', async () => {
    const hook = await degraded()
    await fire(3)
    await project.admin.delete(`/webhooks/${hook.id}`)
    harness.advance(15 * minute)
    await project.drain()
    expect([await all(), await outbox('webhooks__probe'), receiver.requests]).toEqual([[], [], []])
  })
})
