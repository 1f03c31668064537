import { afterAll, describe, expect, test } from 'vitest'
import { path, startControlWebhooks } from '#test/support/control_webhooks.ts'
import { organizationOf } from '#test/support/organizations.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startMailServer } from '#test/support/smtp.ts'
import { answering, isSigned } from '#test/support/webhooks.ts'
import { outboundSlotsOf } from '#workers/runner.ts'

const mail = await startMailServer()
afterAll(() => mail.stop())
const hooks = await startControlWebhooks({ SMTP_URL: mail.url })
const { harness, receiver, watch, work, say } = hooks
const owner = await harness.developer()

const create = async (name = 'a project', organization_id?: string) => {
  const { status, data } = await owner.post('/admin/projects', {
    name,
    ...(organization_id ? { organization_id } : {}),
  })
  expect(status).toBe(201)
  return data.project
}
const watchCreations = (fields: object = {}) => watch(owner, { event_types: ['project.created'], ...fields })
const list = async (id: string, query = '') => (await signedIn()).get(`${path}/${id}/deliveries${query}`)
/** Developer tokens live for 24 hours: a fresh one, by the clock as it stands. */
const signedIn = () => harness.signIn(owner)
const only = async () => (await hooks.deliveries())[0]
/** Seconds from now until the next attempt. */
const wait = async () => ((await only()).next_attempt_at.getTime() - harness.now().getTime()) / 1000
/** Projects whose deliveries end in dlq, now. */
const giveUp = async (times: number) => {
  say(answering(500))
  for (let n = 0; n < times; n++) await create()
  await hooks.lastTry()
  await work()
}

describe('a delivery', () => {
  test('is signed, and tells of one event under one key', async () => {
    const hook = await watchCreations()
    const project = await create('shop')
    await work()
    expect(receiver.requests).toHaveLength(1)
    const [request] = receiver.requests
    const delivery = await only()
    expect(isSigned(request!, hook.secret)).toBe(true)
    expect(JSON.parse(String(request?.body))).toEqual({
      id: delivery.event_id,
      type: 'project.created',
      created_at: hooks.start,
      organization_id: hook.organization_id,
      project_id: project.id,
      data: project,
    })
    expect(request?.headers).toMatchObject({
      'content-type': expect.stringContaining('application/json'),
      'x-service-event-name': 'project.created',
      'x-service-event-id': delivery.event_id,
      'x-service-attempt': '1',
    })
    const shown = (await list(hook.id)).data
    expect(shown).toEqual([
      {
        id: delivery.id,
        webhook_id: hook.id,
        event_id: delivery.event_id,
        event_name: 'project.created',
        idempotency_key: request?.headers['x-service-idempotency-key'],
        status: 'delivered',
        failed_reason: null,
        attempt_count: 1,
        next_attempt_at: null,
        held_until: null,
        created_at: hooks.start,
        settled_at: hooks.start,
        attempts: [
          {
            n: 1,
            at: hooks.start,
            status_code: 200,
            error: null,
            duration_ms: expect.any(Number),
            response_excerpt: 'ok',
          },
        ],
      },
    ])
    expect(await hooks.queued('webhooks__deliver')).toEqual([])
  })

  test('that fails is attempted nine times on the schedule of project webhooks, with the same body, and can be replayed', async () => {
    const hook = await watchCreations()
    await create()
    say(answering(500, {}, 'broken'))
    for (const [index, seconds] of [5, 30, 120, 600, 1800, 7200, 21_600, 43_200].entries()) {
      await work()
      expect(receiver.requests).toHaveLength(index + 1)
      const next = await wait()
      expect(next).toBeGreaterThanOrEqual(seconds * 0.9)
      expect(next).toBeLessThanOrEqual(seconds * 1.1)
      // not a millisecond too early
      harness.advance(next - 0.001)
      await work()
      expect(receiver.requests).toHaveLength(index + 1)
      harness.advance(0.001)
    }
    await work()
    expect(await only()).toMatchObject({ status: 'dlq', failed_reason: 'attempts_exhausted', attempts: 9 })
    expect(await hooks.queued('webhooks__deliver')).toEqual([])
    expect(new Set(receiver.requests.map(({ body }) => body)).size).toBe(1)
    expect(new Set(receiver.requests.map(({ headers }) => headers['x-service-idempotency-key'])).size).toBe(1)
    expect(new Set(receiver.requests.map(({ headers }) => headers['x-service-signature'])).size).toBe(9)

    const admin = await signedIn()
    const { id } = await only()
    const [listed] = (await list(hook.id)).data
    expect(listed.attempts.map((one: { response_excerpt: string }) => one.response_excerpt)).toEqual(
      Array(9).fill('broken'),
    )
    say(answering(204))
    const replayed = await admin.post(`${path}/deliveries/${id}/replay`)
    expect([replayed.status, replayed.data.status, replayed.data.attempt_count]).toEqual([202, 'pending', 9])
    // while it is pending there is nothing to replay
    expectRefusal(await admin.post(`${path}/deliveries/${id}/replay`), 409, 'DELIVERY_NOT_REPLAYABLE')
    await work()
    expect(receiver.requests).toHaveLength(10)
    expect(receiver.requests[9]?.headers['x-service-attempt']).toBe('10')
    expect(receiver.requests[9]?.body).toBe(receiver.requests[0]?.body)
    expect(await only()).toMatchObject({ status: 'delivered', attempts: 10, failed_reason: null })
    expect((await list(hook.id, '?status=dlq')).data).toEqual([])
    expect((await list(hook.id, '?status=delivered')).data).toHaveLength(1)
    expect((await list(hook.id, `?since=${encodeURIComponent(harness.now().toISOString())}`)).data).toEqual([])
    const { data: trail } = await admin.get(`/admin/organizations/${hook.organization_id}/audit-events`)
    expect(trail[0]).toMatchObject({ action: 'control_webhooks.replay', target: { type: 'webhook_deliveries', id } })
  })

  test('is listed by cursor, newest first', async () => {
    const hook = await watchCreations()
    for (const name of ['1', '2', '3']) {
      await create(name)
      harness.advance(1)
    }
    const first = await list(hook.id, '?limit=2')
    expect(first.data).toHaveLength(2)
    const rest = await list(hook.id, `?limit=2&cursor=${encodeURIComponent(first.body.pagination.next_cursor)}`)
    const ids = [...first.data, ...rest.data].map(({ id }: { id: string }) => id)
    expect(ids).toEqual((await hooks.deliveries()).map(({ id }) => id).reverse())
    expect(rest.body.pagination.next_cursor).toBeNull()
  })

  test('to a receiver that is gone disables the webhook; an address that is no longer public is not tried', async () => {
    const hook = await watchCreations()
    await create()
    say(answering(410))
    await work()
    expect(await only()).toMatchObject({ status: 'failed', failed_reason: 'gone' })
    expect(await hooks.hookStatus(hook.id)).toBe('disabled')
    await create()
    expect(await hooks.deliveries()).toHaveLength(1)

    await harness.control('delete from app.webhook_deliveries')
    await harness.control(`update app.webhooks set status = 'active', target_url = 'https://10.0.0.1/hook'`)
    receiver.requests.splice(0)
    await create()
    await work()
    expect(await only()).toMatchObject({ status: 'failed', failed_reason: 'target_not_allowed' })
    expect(receiver.requests).toEqual([])
  })

  test('of a webhook that was disabled meanwhile fails, and can be replayed after', async () => {
    const hook = await watchCreations()
    await create()
    await owner.patch(`${path}/${hook.id}`, { status: 'disabled' })
    await work()
    expect(await only()).toMatchObject({ status: 'failed', failed_reason: 'subscription_disabled' })
    expect(receiver.requests).toEqual([])
    await owner.patch(`${path}/${hook.id}`, { status: 'active' })
    expect((await owner.post(`${path}/deliveries/${(await only()).id}/replay`)).status).toBe(202)
    await work()
    expect((await only()).status).toBe('delivered')
  })

  test('waits for nobody: a worker that died before it recorded an attempt is followed by another with the same key', async () => {
    await watchCreations()
    await create()
    const { id } = await only()
    const begin = () =>
      harness.running.services.database.call(
        harness.running.services.control,
        'control_worker',
        { caller: 'worker' },
        'webhook_delivery_begin',
        { delivery_id: id },
      )
    const lost = await begin()
    await work()
    expect(receiver.requests).toHaveLength(1)
    expect(JSON.parse(lost.body).data.delivery.idempotency_key).toBe(
      receiver.requests[0]?.headers['x-service-idempotency-key'],
    )
    // the job of the dead worker runs again: there is nothing left to send
    expect(JSON.parse((await begin()).body).data).toBeNull()
  })

  test('is forgotten after 30 days, and a secret 31 days after it was replaced', async () => {
    const hook = await watchCreations()
    await create()
    await owner.post(`${path}/${hook.id}/rotate-secret`)
    const { services } = harness.running
    const maintain = () =>
      services.database.call(services.control, 'control_worker', { caller: 'worker' }, 'control_maintain', {})
    const count = async () => [
      (await hooks.deliveries()).length,
      (await harness.control('select from app.webhook_secrets')).length,
    ]
    harness.advance(30 * 86_400)
    await maintain()
    expect(await count()).toEqual([1, 2])
    harness.advance(1)
    await maintain()
    expect(await count()).toEqual([0, 2])
    harness.advance(86_400)
    await maintain()
    expect(await count()).toEqual([0, 1])
  })
})

describe('the circuit breaker', () => {
  test('holds deliveries after five that were given up, tells the owner once, probes, and releases what it held', async () => {
    const team = await organizationOf(owner, 'Shops Ltd')
    const hook = await watchCreations({ organization_id: team.id, target_url: `${receiver.url}?key=hidden` })
    say(answering(500))
    for (let n = 0; n < 5; n++) await create('a', team.id)
    await hooks.lastTry()
    await work()
    expect(await hooks.hookStatus(hook.id)).toBe('degraded')
    const mails = mail.to(owner.email).filter(({ headers }) => headers['subject'] === 'Webhook degraded: Shops Ltd')
    expect(mails).toHaveLength(1)
    expect(mails[0]?.text).toContain(`/v1${path}/${hook.id} {"status": "active"}`)
    expect(mails[0]?.text).toContain('The last 5 deliveries were given up')
    expect(mails[0]?.text).not.toContain('hidden')

    receiver.requests.splice(0)
    await create('held', team.id)
    await work()
    expect(receiver.requests).toEqual([])
    const held = () => harness.control(`select status from app.webhook_deliveries where held_until is not null`)
    expect(await held()).toEqual([{ status: 'pending' }])

    // a probe that fails leaves it held
    harness.advance(900)
    await work()
    expect(receiver.requests).toHaveLength(1)
    expect(await held()).toHaveLength(1)
    say(answering(200))
    harness.advance(900)
    await work()
    expect(receiver.requests).toHaveLength(2)
    expect(await held()).toEqual([])
    expect(await hooks.hookStatus(hook.id)).toBe('degraded')

    await create('second', team.id)
    expect(await held()).toHaveLength(1)
    expect((await owner.patch(`${path}/${hook.id}`, { status: 'active' })).data.status).toBe('active')
    await work()
    expect(receiver.requests).toHaveLength(3)
    expect(hooks.bodies().at(2)?.data.name).toBe('second')
    // no probe is left
    harness.advance(900)
    await work()
    expect(await hooks.queued('webhooks__probe')).toEqual([])
    expect(receiver.requests).toHaveLength(3)
  })

  test('gives up what it has held for 72 hours', async () => {
    const hook = await watchCreations()
    await giveUp(5)
    expect(await hooks.hookStatus(hook.id)).toBe('degraded')
    await create('held')
    for (let hours = 0; hours < 73; hours++) {
      harness.advance(3600)
      await work()
    }
    expect(
      await harness.control(
        `select failed_reason from app.webhook_deliveries where failed_reason <> 'attempts_exhausted'`,
      ),
    ).toEqual([{ failed_reason: 'held_too_long' }])
  })

  test('releases nothing of a webhook that is disabled, and fails what was held', async () => {
    const hook = await watchCreations()
    await giveUp(5)
    await create('held')
    receiver.requests.splice(0)
    await owner.patch(`${path}/${hook.id}`, { status: 'disabled' })
    await work()
    expect(receiver.requests).toEqual([])
    expect(
      await harness.control(`select status from app.webhook_deliveries where failed_reason = 'subscription_disabled'`),
    ).toEqual([{ status: 'failed' }])
  })
})

describe('the tasks of webhooks', () => {
  const queuesOf = async () =>
    (
      await harness.control(
        `select distinct q.queue_name as name from graphile_worker._private_jobs j
           join graphile_worker._private_job_queues q on q.id = j.job_queue_id
          where q.queue_name like 'webhooks %' order by 1`,
      )
    ).map(({ name }) => name as string)
  /** A task of each webhook, in the queue that it has now. */
  const enqueueProbes = async () => {
    await harness.control('delete from graphile_worker._private_jobs')
    await harness.control(`select internal.enqueue('webhooks__probe', w.id::text) from app.webhooks w`)
  }
  const verify = () => harness.control('update app.developers set email_verified = true')

  test('of all accounts whose address is not verified have one queue, and one for those that fail', async () => {
    await harness.control('update app.developers set email_verified = false')
    for (let n = 0; n < 3; n += 1) {
      const stranger = await harness.developer()
      for (let hook = 0; hook < 3; hook += 1)
        expect((await stranger.post(path, { event_types: ['*'], target_url: receiver.url })).status).toBe(201)
      await stranger.post('/admin/projects', { name: 'of a stranger' })
    }
    expect(await queuesOf()).toEqual(['webhooks unproven sandbox'])
    await work()
    await enqueueProbes()
    expect(await queuesOf()).toEqual(['webhooks sandbox'])
    await harness.control(
      `insert into app.webhook_breakers (webhook_id, dlq_in_row, failed_in_row, failing_since)
       select w.id, 0, 1, internal.now() from app.webhooks w`,
    )
    await enqueueProbes()
    expect(await queuesOf()).toEqual(['webhooks unproven sandbox'])
    await verify()
    await enqueueProbes()
    const failing = await queuesOf()
    expect(failing.length).toBeLessThanOrEqual(3)
    for (const queue of failing) expect(queue).toMatch(/^webhooks unproven [0-3]$/)
  })

  test('of one owner have two queues, however many they are, and a third for those that fail', async () => {
    await verify()
    for (let n = 0; n < 8; n += 1) await watchCreations()
    await create('first')
    await work()
    await create('many')
    const healthy = await queuesOf()
    expect(healthy).toHaveLength(2)
    const owners = new Set(healthy.map((name) => name.split(' ')[1]))
    expect(owners.size).toBe(1)
    await harness.control(
      `insert into app.webhook_breakers (webhook_id, dlq_in_row, failed_in_row, failing_since)
       select w.id, 0, 1, internal.now() from app.webhooks w`,
    )
    await harness.control('delete from graphile_worker._private_jobs')
    await create('more')
    expect(await queuesOf()).toEqual([expect.stringMatching(/^webhooks unproven [0-3]$/)])
    // another owner waits for none of them
    const other = await harness.developer()
    await verify()
    const watched = await other.post(path, { event_types: ['*'], target_url: receiver.url })
    expect(watched.status).toBe(201)
    await other.post('/admin/projects', { name: 'of another' })
    await work()
    await other.post('/admin/projects', { name: 'another of theirs' })
    const theirs = (await queuesOf()).filter((name) => !name.startsWith('webhooks unproven'))
    expect(theirs).toHaveLength(1)
    expect(theirs[0]).not.toContain([...owners][0])
  })

  test('that fail leave slots to those that are well, whoever they belong to', async () => {
    for (let n = 0; n < 24; n += 1) {
      const stranger = await harness.developer()
      expect((await stranger.post(path, { event_types: ['*'], target_url: receiver.url })).status).toBe(201)
    }
    await verify()
    await harness.control(
      `insert into app.webhook_breakers (webhook_id, dlq_in_row, failed_in_row, failing_since)
       select w.id, 0, 1, internal.now() from app.webhooks w`,
    )
    await enqueueProbes()
    const held = (await queuesOf()).length
    expect(held).toBeGreaterThan(2)
    expect(held).toBeLessThanOrEqual(4)
    // and one of those that are not verified
    expect(outboundSlotsOf(8) - held - 1).toBeGreaterThanOrEqual(7)
  })

  test('that wait for a receiver go to the queue of those that fail with its first failure', async () => {
    await verify()
    const hook = await watchCreations()
    const well = await watchCreations()
    await create('0')
    await work()
    for (const name of ['1', '2', '3']) await create(name)
    await harness.control(
      `insert into app.webhook_breakers (webhook_id, dlq_in_row, failed_in_row, failing_since) values ($1, 0, 1, internal.now())`,
      [hook.id],
    )
    const queues = await harness.control(
      `select d.webhook_id as hook, q.queue_name like 'webhooks unproven %' as "isFailing", count(*)::int as jobs
         from graphile_worker._private_jobs j
         join graphile_worker._private_job_queues q on q.id = j.job_queue_id
         join app.webhook_deliveries d on j.key = 'webhooks__deliver ' || d.id
        group by 1, 2`,
    )
    expect(queues).toHaveLength(2)
    expect(queues).toContainEqual({ hook: hook.id, isFailing: true, jobs: 3 })
    expect(queues).toContainEqual({ hook: well.id, isFailing: false, jobs: 3 })
  })

  test('whose receivers are new go before those of receivers that fail, which share their queue', async () => {
    await verify()
    const failing = await watchCreations()
    await harness.control(
      `insert into app.webhook_breakers (webhook_id, dlq_in_row, failed_in_row, failing_since) values ($1, 0, 2, internal.now())`,
      [failing.id],
    )
    for (const name of ['1', '2', '3']) await create(name)
    const young = await watchCreations()
    await create('4')
    const order = async () =>
      (
        await harness.control(
          `select d.webhook_id as hook, j.priority, q.queue_name as queue
             from graphile_worker._private_jobs j
             join graphile_worker._private_job_queues q on q.id = j.job_queue_id
             join app.webhook_deliveries d on j.key = 'webhooks__deliver ' || d.id
            order by j.priority, j.run_at, j.id`,
        )
      ).map(({ hook, queue }) => ({ hook, queue }))
    const [first, ...others] = await order()
    expect(first?.hook).toBe(young.id)
    expect(others.map(({ hook }) => hook)).toEqual(Array(4).fill(failing.id))
    expect(new Set([first, ...others].map((one) => one?.queue)).size).toBe(1)
    // with its first failure it loses that place
    await harness.control(
      `insert into app.webhook_breakers (webhook_id, dlq_in_row, failed_in_row, failing_since) values ($1, 0, 1, internal.now())`,
      [young.id],
    )
    expect((await order()).map(({ hook }) => hook)[0]).toBe(failing.id)
  })

  test('share a queue: a slow receiver has one slot of the workers', async () => {
    await verify()
    await watchCreations()
    await watchCreations()
    await create('0')
    await work()
    await create('1')
    await create('2')
    const queues = await harness.control(
      `select q.queue_name, count(*)::int as n from graphile_worker._private_jobs j
         join graphile_worker._private_job_queues q on q.id = j.job_queue_id
        where q.queue_name like 'webhooks %' group by 1 order by 1`,
    )
    const lanes = queues.map(({ queue_name }) => queue_name)
    expect(queues.reduce((sum, { n }) => sum + n, 0)).toBe(4)
    for (const lane of lanes) expect(lane).toMatch(/^webhooks [0-9a-f-]{36} [01]$/)
    expect(lanes.length).toBeLessThanOrEqual(2)
  })
})
