import { afterAll, describe, expect, test } from 'vitest'
import { startMailServer } from '#test/support/smtp.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'
import { answering, startWebhooks } from '#test/support/webhooks.ts'

const mail = await startMailServer()
afterAll(() => mail.stop())
// a mail server that refuses is logged
const webhooks = await startWebhooks({ SMTP_URL: mail.url, LOG_LEVEL: 'silent' })
const { harness, project, receiver, watch, fire, all, say, giveUp, outbox, hookStatus, switchOn, breaker, degraded } =
  webhooks

const minute = 60
const hour = 3600
const states = async () => (await all()).map(({ status, attempts }) => [status, attempts])

describe('a degraded subscription that is activated again', () => {
  test('releases held deliveries, resets its counts and is no longer probed', { timeout: 180_000 }, async () => {
    const hook = await degraded()
    await fire(500)
    await fire(100)
    say(answering(200))
    harness.advance(hour)
    await switchOn(hook.id)
    expect(await breaker(hook.id)).toMatchObject({
      dlq_in_row: 0,
      failed_in_row: 0,
      failing_since: null,
      degraded_at: null,
    })
    await project.drain()
    expect(receiver.requests).toHaveLength(600)
    expect(await project.sql(`select from app.webhook_deliveries where status = 'delivered'`)).toHaveLength(600)
    expect(await project.sql('select task from app.outbox')).toEqual([])
    await giveUp(4)
    expect(await hookStatus(hook.id)).toBe('active')
    await giveUp(1)
    expect(await hookStatus(hook.id)).toBe('degraded')
  })

  test('or is disabled instead: its held deliveries fail and can be replayed', async () => {
    const hook = await degraded()
    await fire(2)
    expect((await project.admin.patch(`/webhooks/${hook.id}`, { status: 'disabled' })).data.status).toBe('disabled')
    await project.drain()
    expect(await all()).toMatchObject(
      Array(2).fill({ status: 'failed', failed_reason: 'subscription_disabled', held_until: null }),
    )
    expect(receiver.requests).toEqual([])
    say(answering(200))
    await switchOn(hook.id)
    for (const { id } of await all()) await project.admin.post(`/webhooks/deliveries/${id}/replay`)
    await project.drain()
    expect(await states()).toEqual(Array(2).fill(['delivered', 1]))
  })

  test('waits for events in progress and misses none of their deliveries', async () => {
    const hook = await degraded()
    const claims = { 'app.caller': 'server_key', 'app.clock': harness.now().toISOString() }
    const [{ id: userId }] = await project.sql('select id from app.users limit 1')
    const open = await openTransaction(project, 'app_server', claims)
    await open.query('select api.events_post($1)', [JSON.stringify({ event_name: 'paid', app_user_id: userId })])
    const patched = project.admin.patch(`/webhooks/${hook.id}`, { status: 'active' })
    await untilBlocked(project)
    await open.commit()
    expect((await patched).status).toBe(200)
    say(answering(200))
    await project.drain()
    expect(await states()).toEqual([['delivered', 1]])
  })

  test('waits for a delivery that is being held, and finds it', async () => {
    const hook = await watch()
    await fire(1)
    await project.sql(`update app.webhooks set status = 'degraded'`)
    const [{ id }] = await all()
    const open = await openTransaction(project, 'app_worker', { 'app.clock': harness.now().toISOString() })
    await open.query('select api.webhook_delivery_begin($1)', [id])
    const patched = project.admin.patch(`/webhooks/${hook.id}`, { status: 'active' })
    await untilBlocked(project)
    await open.commit()
    await patched
    await project.drain()
    expect(await states()).toEqual([['delivered', 1]])
  })

  test('repeatedly during a stream of events: each event is delivered once', { timeout: 180_000 }, async () => {
    const hook = await watch()
    const ids = new Set<string>()
    const post = async () => {
      for (const id of await fire(2)) ids.add(id)
    }
    for (let times = 0; times < 5; times += 1) {
      // set by the tests' clock: with the real one a probe would be due at once and send a delivery that is being released
      await project.sql(
        `update app.webhooks set status = 'degraded' from (select set_config('app.clock', $1, true)) clock`,
        [harness.now().toISOString()],
      )
      const draining = project.drain()
      await Promise.all([
        ...Array.from({ length: 10 }, post),
        project.admin.patch(`/webhooks/${hook.id}`, { status: 'active' }),
        ...Array.from({ length: 10 }, post),
      ])
      await draining
    }
    await project.drain()
    expect(receiver.requests).toHaveLength(200)
    expect(new Set(receiver.requests.map(({ headers }) => headers['x-service-event-id']))).toEqual(ids)
    expect(await project.sql(`select from app.webhook_deliveries where status <> 'delivered'`)).toEqual([])
  })
})

describe('the owner is notified', () => {
  const mailsToOwner = () => mail.to(project.developer.email)

  test('once for each time it degrades', async () => {
    mail.received.splice(0)
    const hook = await watch({ target_url: `${receiver.url}hook?token=hidden` })
    await giveUp(9)
    await Promise.all([project.drain(), project.drain()])
    expect(mailsToOwner()).toHaveLength(1)
    const [first] = mailsToOwner()
    expect(first?.headers.subject).toBe('Webhook degraded: paid in test')
    expect(first?.text).toContain(`${receiver.url}hook\n`)
    expect(first?.text).not.toContain('hidden')
    expect(first?.text).toContain('The last 5 deliveries were given up')
    expect(first?.text).toContain(`/v1/admin/projects/${project.id}/webhooks/${hook.id} {"status": "active"}`)
    harness.advance(hour)
    await project.drain()
    expect(mailsToOwner()).toHaveLength(1)
    await switchOn(hook.id)
    await giveUp(5)
    await project.drain()
    expect(mailsToOwner()).toHaveLength(2)
    expect(mailsToOwner()[1]?.headers['message-id']).not.toBe(first?.headers['message-id'])
  })

  test('also when attempts have failed for long, with that reason', async () => {
    mail.received.splice(0)
    await watch()
    say(answering(500))
    await fire(50)
    await project.drain()
    await project.sql('delete from app.webhook_deliveries')
    harness.advance(30 * minute)
    await fire(1)
    await project.drain()
    await project.drain()
    expect(mailsToOwner()).toHaveLength(1)
    expect(mailsToOwner()[0]?.text).toContain(
      'The last 51 attempts failed, the first of them at 2026-12-01T10:00:00.000Z.',
    )
  })

  test('later when the mail server refuses, without delaying anything else', async () => {
    mail.received.splice(0)
    const hook = await watch()
    await watch({ event_name: 'other' })
    mail.refuse(451)
    await giveUp(5)
    say(answering(200))
    receiver.requests.splice(0)
    await fire(1, 'other')
    await fire(1)
    await project.drain()
    expect(mailsToOwner()).toEqual([])
    expect(receiver.requests).toHaveLength(1)
    expect(await outbox('webhooks__notify')).toMatchObject([{ last_error: expect.stringContaining('451') }])
    mail.refuse(null)
    harness.advance(15 * minute)
    await project.drain()
    expect(mailsToOwner()).toHaveLength(1)
    // the probe was sent in the meantime
    expect(receiver.requests).toHaveLength(2)
    expect(await hookStatus(hook.id)).toBe('degraded')
  })

  test('and only workers may read the address', async () => {
    const { database, control } = harness.running.services
    const ask = (role: 'control_worker' | 'control_developer', caller: string) =>
      database.call(control, role, { caller, developerId: project.developer.id }, 'webhook_owner', {
        project_id: project.id,
      })
    expect(JSON.parse((await ask('control_worker', 'worker')).body).data).toEqual({
      email: project.developer.email,
      project_name: 'test',
    })
    await expect(ask('control_developer', 'developer')).rejects.toThrow()
    await expect(ask('control_worker', 'developer')).rejects.toThrow()
  })
})
