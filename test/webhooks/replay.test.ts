import { describe, expect, test } from 'vitest'
import { expectRefusal } from '#test/support/refusals.ts'
import { answering, isSigned, startWebhooks } from '#test/support/webhooks.ts'
import { webhooksReplay } from '#workers/tasks/webhooks__replay.ts'

const webhooks = await startWebhooks()
const { harness, project, receiver, watch, fire, all, say, giveUp, outbox } = webhooks
const { services } = harness.running

const detail = (id: string) => project.admin.get(`/webhooks/deliveries/${id}`)
const replay = (id: string) => project.admin.post(`/webhooks/deliveries/${id}/replay`)

describe('a replay', () => {
  test('sends the same body with the same idempotency key and a new signature, and its attempt numbers continue', async () => {
    const hook = await watch()
    await giveUp(1)
    const { secret } = (await project.admin.post(`/webhooks/${hook.id}/rotate-secret`)).data
    harness.advance(3600)
    const [row] = await all()
    const answer = await replay(row.id)
    expect([answer.status, answer.data]).toMatchObject([
      202,
      {
        id: row.id,
        status: 'pending',
        attempt_count: 1,
        settled_at: null,
        next_attempt_at: '2026-12-01T11:00:00.000Z',
      },
    ])
    say(answering(503))
    await project.drain()
    harness.advance(6)
    say(answering(200))
    await project.drain()
    const [first, second, third] = receiver.requests
    expect(receiver.requests.map(({ headers }) => headers['x-service-attempt'])).toEqual(['1', '2', '3'])
    expect(new Set(receiver.requests.map(({ body }) => body)).size).toBe(1)
    expect(new Set(receiver.requests.map(({ headers }) => headers['x-service-idempotency-key'])).size).toBe(1)
    // a replay is signed with the current secret
    expect([isSigned(first!, hook.secret), isSigned(second!, secret), isSigned(third!, secret)]).toEqual([
      true,
      true,
      true,
    ])
    const { data } = await detail(row.id)
    expect(data).toMatchObject({ status: 'delivered', failed_reason: null, attempt_count: 3 })
    expect(data.attempts.map(({ n }: { n: number }) => n)).toEqual([1, 2, 3])
  })

  test('starts a whole new series of attempts', async () => {
    await watch()
    await giveUp(1)
    const [{ id }] = await all()
    await replay(id)
    for (let times = 0; times < 8; times += 1) {
      await project.drain()
      expect((await all())[0]).toMatchObject({ status: 'pending', attempts: times + 2 })
      harness.advance(50_000)
    }
    await project.drain()
    expect((await all())[0]).toMatchObject({ status: 'dlq', failed_reason: 'attempts_exhausted', attempts: 10 })
  })

  test('of what failed: an address that was not allowed and is again, a receiver that was gone and is back', async () => {
    const hook = await watch()
    await fire()
    await project.sql(`update app.webhooks set target_url = 'https://10.0.0.1/'`)
    await project.drain()
    await project.sql('update app.webhooks set target_url = $1', [receiver.url])
    await fire()
    say(answering(410))
    await project.drain()
    const rows = await all()
    expect(rows.map(({ status, failed_reason }) => [status, failed_reason])).toEqual([
      ['failed', 'target_not_allowed'],
      ['failed', 'gone'],
    ])
    say(answering(200))
    // the subscription is still disabled: the replay is accepted, and fails with that reason
    expect((await replay(rows[1].id)).status).toBe(202)
    await project.drain()
    expect((await all())[1]).toMatchObject({ status: 'failed', failed_reason: 'subscription_disabled', attempts: 1 })
    await project.admin.patch(`/webhooks/${hook.id}`, { status: 'active' })
    for (const { id } of rows) expect((await replay(id)).status).toBe(202)
    await project.drain()
    expect((await all()).map(({ status }) => status)).toEqual(['delivered', 'delivered'])
  })

  test('is refused for what is pending or delivered, and changes nothing', async () => {
    await watch()
    await fire()
    const [row] = await all()
    expectRefusal(await replay(row.id), 409, 'DELIVERY_NOT_REPLAYABLE')
    expect(await all()).toEqual([row])
    await project.drain()
    expectRefusal(await replay(row.id), 409, 'DELIVERY_NOT_REPLAYABLE')
    expect(receiver.requests).toHaveLength(1)
  })

  test('twenty at once queue it once', async () => {
    await watch()
    await giveUp(1)
    const [{ id }] = await all()
    receiver.requests.splice(0)
    const answers = await Promise.all(Array.from({ length: 20 }, () => replay(id)))
    expect(answers.map(({ status }) => status).sort()).toEqual([202, ...Array(19).fill(409)])
    expect(await outbox()).toHaveLength(1)
    say(answering(200))
    await Promise.all([project.drain(), project.drain()])
    expect(receiver.requests).toHaveLength(1)
  })

  test('while its last attempt is still being recorded is not lost', async () => {
    await watch()
    await fire()
    await webhooks.lastTry()
    const [{ id }] = await all()
    const worker = (call: string, values: unknown[]) =>
      project.as('app_worker', { 'app.clock': harness.now().toISOString() }, `select r.body from api.${call} r`, values)
    const [leased] = await worker('outbox_lease(1, 30, 10)', [])
    const [{ id: row, lease }] = leased.body.data
    await worker(`webhook_attempt_record($1, 500, null, 1, '')`, [id])
    expect((await replay(id)).status).toBe(202)
    await worker('outbox_finish($1, $2)', [row, lease])
    await project.drain()
    expect((await all())[0]).toMatchObject({ status: 'delivered', attempts: 2 })
  })
})

describe('a replay of a range', () => {
  const start = (id: string, body: object = {}) => project.admin.post(`/webhooks/${id}/replay`, body)
  const run = (operation_id: string) => webhooksReplay.run(services, { operation_id })
  const operation = async (id: string) => (await project.admin.get(`/operations/${id}`)).data
  const replayed = async () =>
    (
      await project.sql(`select event_id from app.webhook_deliveries where status = 'pending'
    order by created_at, id`)
    ).map(({ event_id }) => event_id)

  test('is an operation: queued with its job, then done with all of the range, ends included', async () => {
    const hook = await watch()
    const ids: string[] = []
    for (let times = 0; times < 4; times += 1) {
      ids.push(...(await giveUp(1)))
      harness.advance(60)
    }
    const answer = await start(hook.id, { since: '2026-12-01T10:01:00Z', until: '2026-12-01T10:02:00.000Z' })
    expect([answer.status, answer.data]).toEqual([
      202,
      { operation_id: expect.any(String), type: 'webhooks.replay', status: 'queued', progress: null },
    ])
    const { operation_id } = answer.data
    expect(
      await harness.control(
        `select from graphile_worker.jobs where task_identifier = 'webhooks__replay' and key = $1`,
        [`operation ${operation_id}`],
      ),
    ).toHaveLength(1)
    expect(await replayed()).toEqual([])
    await run(operation_id)
    expect(await operation(operation_id)).toMatchObject({
      status: 'succeeded',
      progress: { done: 2, total: 2 },
      result: { replayed: 2 },
    })
    expect(await replayed()).toEqual([ids[1], ids[2]])
    const keys = receiver.requests.map(({ headers }) => headers['x-service-idempotency-key'])
    receiver.requests.splice(0)
    say(answering(200))
    await project.drain()
    expect(receiver.requests.map(({ headers }) => headers['x-service-attempt'])).toEqual(['2', '2'])
    expect(new Set(receiver.requests.map(({ headers }) => headers['x-service-idempotency-key']))).toEqual(
      new Set([keys[1], keys[2]]),
    )
  })

  test('takes dlq and failed unless it names one, and never what is pending or delivered', async () => {
    const hook = await watch()
    const other = await watch({ event_name: 'other' })
    const [lost, failed] = await giveUp(2)
    await project.sql(`update app.webhook_deliveries set status = 'failed' where event_id = $1`, [failed])
    say(answering(200))
    await fire()
    await project.drain()
    say(answering(500))
    await fire(1, 'other')
    await webhooks.lastTry()
    await project.drain()
    for (const [body, expected] of [
      [{ statuses: ['dlq'] }, [lost]],
      [{ statuses: ['failed', 'failed'] }, [failed]],
    ] as const) {
      await run((await start(hook.id, body)).data.operation_id)
      expect(await replayed()).toEqual(expected)
      await project.sql(
        `update app.webhook_deliveries set status = case event_id when $1 then 'dlq' else 'failed' end,
        next_attempt_at = null, settled_at = $2 where status = 'pending'`,
        [lost, harness.now()],
      )
    }
    await run((await start(hook.id)).data.operation_id)
    expect((await replayed()).sort()).toEqual([lost, failed].sort())
    expect((await all()).filter(({ webhook_id }) => webhook_id === other.id)).toMatchObject([{ status: 'dlq' }])
  })

  test('of many deliveries runs in steps with progress; another worker continues when one dies', async () => {
    const hook = await watch()
    await project.sql(
      `insert into app.webhook_deliveries (id, webhook_id, secret_id, event_id, event_name, payload, status, attempts, created_at, settled_at)
       select gen_random_uuid(), w.id, w.secret_id, gen_random_uuid(), 'paid', '{}', 'dlq', 9, $1, $1
         from app.webhooks w, generate_series(1, 1200)`,
      [webhooks.start],
    )
    const { operation_id } = (await start(hook.id)).data
    const seen: unknown[] = []
    const database = services.database
    const dying = {
      ...services,
      database: {
        ...database,
        call: async (...args: Parameters<typeof database.call>) => {
          const reply = await database.call(...args)
          if (args[3] === 'operation_progress') seen.push((await operation(operation_id)).progress)
          if (seen.length === 2) throw new Error('killed')
          return reply
        },
      },
    }
    await expect(webhooksReplay.run(dying, { operation_id })).rejects.toThrow('killed')
    expect(seen).toEqual([
      { done: 0, total: 1200 },
      { done: 500, total: 1200 },
    ])
    expect(await operation(operation_id)).toMatchObject({ status: 'running', progress: { done: 500, total: 1200 } })
    await Promise.all([run(operation_id), run(operation_id)])
    expect(await operation(operation_id)).toMatchObject({ status: 'succeeded', result: { replayed: 1200 } })
    const [{ count }] = await project.sql(
      `select count(*)::int as count from app.outbox where task = 'webhooks__deliver'`,
    )
    expect(count).toBe(1200)
    expect(await replayed()).toHaveLength(1200)
  })

  test('does not queue again deliveries that fail again while it runs', async () => {
    const hook = await watch()
    await giveUp(3)
    const { operation_id } = (await start(hook.id)).data
    harness.advance(1)
    await run(operation_id)
    await project.drain()
    await project.sql(`update app.webhook_deliveries set status = 'failed', next_attempt_at = null, settled_at = $1`, [
      harness.now(),
    ])
    await harness.control(`update app.operations set status = 'running' where id = $1`, [operation_id])
    await run(operation_id)
    expect(await replayed()).toEqual([])
  })

  test('of a subscription that is deleted in the meantime fails with a reason', async () => {
    const hook = await watch()
    await giveUp(1)
    const { operation_id } = (await start(hook.id)).data
    await project.admin.delete(`/webhooks/${hook.id}`)
    await run(operation_id)
    expect(await operation(operation_id)).toMatchObject({
      status: 'failed',
      failed_reason: 'The subscription was deleted.',
    })
  })

  test('that was cancelled does nothing', async () => {
    const hook = await watch()
    await giveUp(1)
    const { operation_id } = (await start(hook.id)).data
    await harness.control(`update app.operations set status = 'cancelled' where id = $1`, [operation_id])
    await run(operation_id)
    expect(await replayed()).toEqual([])
  })

  test.each([
    [{ since: 'yesterday' }, 'since'],
    [{ since: 1 }, 'since'],
    [{ until: '2026-02-30' }, 'until'],
    [{ since: '2026-12-02', until: '2026-12-01' }, 'until'],
    [{ statuses: [] }, 'statuses'],
    [{ statuses: ['delivered'] }, 'statuses.0'],
    [{ statuses: 'dlq' }, 'statuses'],
  ])('refuses %o', async (body, field) => {
    const hook = await watch()
    const before = await harness.control('select count(*) from app.operations')
    expectRefusal(await start(hook.id, body), 400, 'VALIDATION_ERROR', field)
    expect(await harness.control('select count(*) from app.operations')).toEqual(before)
  })

  test('refuses an invalid body', async () => {
    expectRefusal(await project.admin.post(`/webhooks/${(await watch()).id}/replay`, '['), 400, 'INVALID_BODY')
  })

  test('is not started for a project of somebody else, whatever route asks', async () => {
    const stranger = await harness.developer()
    const { database, control } = services
    const claims = { caller: 'developer', developerId: stranger.id }
    await expect(
      database.call(control, 'control_developer', claims, 'webhook_replay_start', {
        project_id: project.id,
        input: {},
      }),
    ).rejects.toMatchObject({ status: 404, code: 'NOT_FOUND' })
  })
})
