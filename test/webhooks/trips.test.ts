import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'
import { answering, startWebhooks } from '#test/support/webhooks.ts'

const webhooks = await startWebhooks()
const { harness, project, receiver, watch, fire, say, all } = webhooks
const { services } = harness.running

/** Every round trip to a database: the database, and the function that is called. */
let trips: { readonly database: string; readonly what: string }[] = []
const { query } = pg.Client.prototype

beforeEach(() => {
  const counted = function (this: pg.Client, ...args: unknown[]) {
    const [first] = args as [string | { text?: string }]
    const text = typeof first === 'string' ? first : (first.text ?? '')
    trips.push({ database: String(this.database), what: /(?:api\."?|graphile_worker\.)(\w+)/.exec(text)?.[1] ?? text })
    return Reflect.apply(query, this, args)
  }
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(counted as never)
})
afterEach(() => void vi.restoreAllMocks())

const during = async (work: () => Promise<unknown>) => {
  trips = []
  await work()
  const made = trips
  trips = []
  const isControl = ({ database }: { database: string }) => database === services.control.database
  return {
    tenant: made.filter((trip) => !isControl(trip)).map(({ what }) => what),
    // reports of traffic are made every few seconds, whatever else happens
    control: made.filter((trip) => isControl(trip) && trip.what !== 'traffic_report').map(({ what }) => what),
  }
}

const drainedOnce = async () => {
  await watch()
  await fire()
  await project.drain()
  receiver.requests.splice(0)
}

describe('a lone delivery', () => {
  test('is woken in one round trip and made in two; graphile-worker starts and ends its job in two more', async () => {
    await drainedOnce()
    await fire()
    expect(await during(() => services.waker.flush())).toEqual({ tenant: [], control: ['add_job'] })
    expect(await during(() => project.drain())).toEqual({
      tenant: ['outbox_lease', 'webhook_attempt_finish'],
      control: [],
    })
    expect(receiver.requests).toHaveLength(1)
    expect((await all()).map(({ status }) => status)).toEqual(['delivered', 'delivered'])
    expect(await project.sql('select from app.outbox')).toEqual([])
  })

  test('that fails is rescheduled in the same two, and retried at that time', async () => {
    await drainedOnce()
    say(answering(500))
    await fire()
    expect((await during(() => project.drain())).tenant).toEqual(['outbox_lease', 'webhook_attempt_finish'])
    const [, failed] = await all()
    const [queued] = await project.sql('select due_at, locked_until, attempts from app.outbox')
    expect(queued).toEqual({ due_at: failed.next_attempt_at, locked_until: null, attempts: 0 })
    say(answering(200))
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
    harness.setTime(failed.next_attempt_at.toISOString())
    await project.drain()
    expect(receiver.requests).toHaveLength(2)
  })

  test('of many: the result of the last one says when the next row is due, if any', async () => {
    await drainedOnce()
    await fire(5)
    const { tenant } = await during(() => project.drain())
    expect(receiver.requests).toHaveLength(5)
    expect(tenant.filter((what) => what === 'webhook_attempt_finish')).toHaveLength(5)
    expect(tenant).not.toContain('webhook_delivery_begin')
    expect(tenant).not.toContain('outbox_finish')
  })

  test('an event that comes while the last row is being finished is delivered by the same drain or by the following wake-up', async () => {
    await drainedOnce()
    say(async (response, request) => {
      if (receiver.requests.length === 1) await fire()
      return answering(200)(response, request)
    })
    await fire()
    await project.drain()
    expect(receiver.requests).toHaveLength(2)
  })

  test('an event that comes while the result of the last row waits for a lock is delivered in the meantime', async () => {
    await drainedOnce()
    let holder: Awaited<ReturnType<typeof openTransaction>> | undefined
    say(async (response, request) => {
      if (receiver.requests.length === 1) {
        holder = await openTransaction(project, 'app_worker', {})
        await holder.query('select from app.outbox for update')
      }
      return answering(200)(response, request)
    })
    await fire()
    const drained = project.drain()
    await untilBlocked(project)
    await fire()
    await expect.poll(() => receiver.requests.length).toBe(2)
    await holder?.commit()
    await drained
    expect(await project.sql('select from app.outbox')).toEqual([])
  })
})

describe('the outbox row holds the schedule and is updated with the attempt', () => {
  test('a worker that dies after the attempt is recorded causes no early retry', async () => {
    await watch()
    await fire()
    const worker = (call: string, values: unknown[] = []) =>
      project.as('app_worker', { 'app.clock': harness.now().toISOString() }, `select r.body from api.${call} r`, values)
    const [leased] = await worker('outbox_lease(1, 15, 10)')
    const [{ id: row, lease, begun }] = leased.body.data
    await worker(`webhook_attempt_finish($1, $2, null, true, $3, 500, null, 1, '', 600)`, [row, lease, begun.id])
    harness.advance(20)
    await project.drain()
    expect(receiver.requests).toEqual([])
    harness.advance(600)
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
  })

  test('an error after a result whose response was lost changes nothing', async () => {
    await watch()
    await fire()
    const worker = (call: string, values: unknown[] = []) =>
      project.as('app_worker', { 'app.clock': harness.now().toISOString() }, `select r.body from api.${call} r`, values)
    const [leased] = await worker('outbox_lease(1, 15, 10)')
    const [{ id: row, lease, begun }] = leased.body.data
    await worker(`webhook_attempt_finish($1, $2, null, true, $3, 500, null, 1, '', 600)`, [row, lease, begun.id])
    const before = await project.sql('select * from app.outbox')
    const soon = new Date(harness.now().getTime() + 1000).toISOString()
    await worker(`outbox_finish($1, $2, $3, 'lost')`, [row, lease, soon])
    expect(await project.sql('select * from app.outbox')).toEqual(before)
  })

  test('a row whose delivery does not exist blocks no other', async () => {
    await watch()
    await fire()
    await project.sql(`insert into app.outbox (task, key, due_at) values ('webhooks__deliver', 'none', $1)`, [
      webhooks.start,
    ])
    await project.drain()
    expect(receiver.requests).toHaveLength(1)
  })
})

describe('the place of a project', () => {
  test('is looked up once, and again after a change of the project', async () => {
    // a job of the test before may still be queued
    const lookups = async () => (await during(() => project.drain())).control.filter((what) => what.startsWith('edge_'))
    await project.drain()
    expect(await lookups()).toEqual([])
    await project.admin.patch('', { name: 'Renamed' })
    expect(await lookups()).toEqual(['edge_project'])
  })

  test('is unknown as soon as the project is deleted', async () => {
    const other = await harness.project()
    await other.drain()
    expect(await services.fleet.placeOf(other.id)).not.toBeNull()
    expect((await other.admin.delete('')).status).toBe(200)
    expect(await services.fleet.placeOf(other.id)).toBeNull()
  })
})
