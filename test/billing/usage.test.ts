import pg from 'pg'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { createTraffic } from '#server/traffic.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { device, message } from '#test/support/push.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { newEmail } from '#test/support/sign_in.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

/** What a project uses, by day. */
const harness = await startHarness()
afterEach(() => harness.setTime(null))

/** As a developer who has signed in again, for the clock moves by days. */
const read = async (project: Project, path = '') =>
  (await harness.signIn(project.developer)).get(`/admin/projects/${project.id}/billing${path}`)
const usage = async (project: Project, from: string, to: string) => {
  const { data, status, text } = await read(project, `/usage?from=${from}&to=${to}&interval=day`)
  expect(status, text).toBe(200)
  return Object.fromEntries(
    Object.entries(data.series as Record<string, { date: string; value: number }[]>).map(([meter, days]) => [
      meter,
      days.map(({ value }) => value),
    ]),
  )
}
/** What the daily maintenance does. */
const close = (project: Project) =>
  project.as('app_worker', { 'app.clock': harness.now().toISOString() }, 'select internal.purge__billing(null)')
/** A transaction of the functions that count: no role of a server may call them. */
const openAsOwner = async (project: Project) => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  await client.query('begin')
  return client
}
const events = (count: number) => ({ events: Array.from({ length: count }, () => ({ event_name: 'practised' })) })

describe('usage', () => {
  test('has both dates, the last 30 days by default, and at most 400', async () => {
    harness.setTime('2027-01-31T12:00:00Z')
    const project = await harness.project()
    const { data } = await project.admin.get('/billing/usage')
    expect(data).toMatchObject({ from: '2027-01-02', to: '2027-01-31', interval: 'day' })
    expect(Object.keys(data.series)).toEqual([
      ...['mau', 'events', 'api_requests', 'storage_bytes', 'egress_bytes', 'push_sent', 'emails_sent'],
      ...['ai_spend_usd', 'function_ms', 'failed_requests'],
    ])
    expect(data.series.events.map(({ date }: any) => date)).toHaveLength(30)
    const whole = await project.admin.get('/billing/usage?from=2026-01-01&to=2027-02-04')
    expect(whole.data.series.mau).toHaveLength(400)
    for (const [query, parameter] of [
      ['from=2026-01-01&to=2027-02-05', 'from'],
      ['from=2027-02-02&to=2027-02-01', 'from'],
      ['to=2027-02-30', 'to'],
      ['from=0000-01-01', 'from'],
      ['interval=hour', 'interval'],
    ] as const)
      expectRefusal(await project.admin.get(`/billing/usage?${query}`), 400, 'INVALID_INPUT', parameter)
  })

  test('counts users once a month, on the day on which they are first seen', async () => {
    harness.setTime('2027-03-30T10:00:00Z')
    const project = await harness.project()
    const [one, two] = [await project.user(), await project.user()]
    const seen = async (at: string, who: typeof one) => {
      harness.setTime(at)
      await project.onBehalfOf(who.id).post('/client/events', { event_name: 'practised' })
    }
    await seen('2027-03-31T10:00:00Z', one)
    await seen('2027-04-02T10:00:00Z', one)
    await seen('2027-04-03T10:00:00Z', one)
    await seen('2027-04-04T23:59:00Z', two)
    const { mau } = await usage(project, '2027-03-29', '2027-04-05')
    expect(mau).toEqual([0, 2, 2, 0, 1, 1, 2, 2])
    // a range within a month counts from the beginning of the month
    expect((await usage(project, '2027-04-03', '2027-04-04'))['mau']).toEqual([1, 2])
    expect((await read(project)).data.usage.mau.used).toBe(2)
  })

  test('counts events of apps and servers, whether their day is closed or not, and whether they are deleted', async () => {
    harness.setTime('2027-05-10T22:00:00Z')
    const project = await harness.project()
    const [user, other] = [await project.user(), await project.user()]
    await project.onBehalfOf(user.id).post('/client/events', events(5))
    await project.onBehalfOf(other.id).post('/client/events', events(2))
    // of what the platform itself records nothing is counted
    await project.sql(
      `insert into app.engagement_events (id, app_user_id, event_name, occurred_at, received_at, source)
       values (internal.new_id(), $1, 'svc.test.done', $2, $2, 'system')`,
      [user.id, harness.now()],
    )
    expect((await usage(project, '2027-05-10', '2027-05-11'))['events']).toEqual([7, 0])
    await project.admin.delete(`/users/${other.id}`)
    await project.drain()
    expect((await usage(project, '2027-05-10', '2027-05-11'))['events']).toEqual([7, 0])
    // a transaction that began before midnight may still run
    harness.setTime('2027-05-11T00:30:00Z')
    await close(project)
    await project.onBehalfOf(user.id).post('/client/events', { event_name: 'practised' })
    const [{ closed_until }] = await project.sql('select closed_until::text from app.usage_closings')
    expect(closed_until).toBe('2027-05-09')
    harness.setTime('2027-05-11T03:00:00Z')
    await close(project)
    await close(project)
    expect((await usage(project, '2027-05-10', '2027-05-11'))['events']).toEqual([7, 1])
    // events of a day that is closed are counted, and stay so
    await (await harness.signIn(project.developer)).delete(`/admin/projects/${project.id}/users/${user.id}`)
    await project.drain()
    expect((await usage(project, '2027-05-10', '2027-05-11'))['events']).toEqual([7, 1])
    expect((await read(project)).data.usage.events.used).toBe(8)
  })

  test('counts no event twice when one is deleted while its day is closed', async () => {
    harness.setTime('2027-06-01T12:00:00Z')
    const project = await harness.project()
    const user = await project.user()
    await project.onBehalfOf(user.id).post('/client/events', events(3))
    harness.setTime('2027-06-02T12:00:00Z')
    await close(project)
    await project.sql(`update app.usage_closings set closed_until = '2027-05-31'`)
    await project.sql(`delete from app.usage_days where day = '2027-06-01' and meter in ('events', 'storage_bytes')`)
    const deletion = await openTransaction(project, 'app_worker', { 'app.caller': 'worker' })
    await deletion.query(`select api.events_delete_step('practised', $1, '2028-01-01', 100)`, [user.id])
    const closed = close(project)
    await untilBlocked(project)
    await deletion.commit()
    await closed
    expect((await usage(project, '2027-06-01', '2027-06-01'))['events']).toEqual([3])
  })

  test('counts mail and messages that were sent, once', async () => {
    harness.setTime('2027-07-01T12:00:00Z')
    const project = await harness.project({ environment: 'development' })
    const user = await project.user()
    await device(user)
    await project.admin.post('/email/send', { to: newEmail(), subject: 'Hello', text: 'Hello' })
    await project.admin.post('/push/send', { user_ids: [user.id], message })
    expect(await usage(project, '2027-07-01', '2027-07-01')).toMatchObject({ emails_sent: [0], push_sent: [0] })
    await project.drain()
    await project.drain()
    expect(await usage(project, '2027-07-01', '2027-07-01')).toMatchObject({ emails_sent: [1], push_sent: [1] })
  })

  test('shows the files that are stored, of past days those at their end', async () => {
    harness.setTime('2027-08-10T12:00:00Z')
    const project = await harness.project()
    const store = (bytes: number) =>
      project.sql(`insert into app.media_totals (registered_bytes, stored_bytes, objects) values ($1, $1, 1)`, [bytes])
    await store(700)
    harness.setTime('2027-08-11T03:00:00Z')
    await close(project)
    await store(50)
    expect((await usage(project, '2027-08-10', '2027-08-12'))['storage_bytes']).toEqual([700, 750, 0])
    expect((await read(project)).data.usage).toMatchObject({
      storage_bytes: { used: 750 },
      media_storage: { used: 750 },
    })
  })

  test('is exact for writers at once, of whom none waits for another', async () => {
    harness.setTime('2027-09-01T12:00:00Z')
    const project = await harness.project()
    const writers = await Promise.all(Array.from({ length: 7 }, () => openAsOwner(project)))
    const [undone, ...others] = writers
    await undone!.query(`select internal.usage_add('2027-09-01', 'ai_spend_usd', 5)`)
    // all of them are open: the second would hang if it waited for the first
    for (let turn = 0; turn < 3; turn += 1)
      for (const writer of others) await writer.query(`select internal.usage_add('2027-09-01', 'ai_spend_usd', 0.1)`)
    await undone!.query('rollback')
    await Promise.all(others.map((writer) => writer.query('commit')))
    await Promise.all(writers.map((writer) => writer.end()))
    expect((await usage(project, '2027-09-01', '2027-09-01'))['ai_spend_usd']).toEqual([1.8])
    const slots = async () =>
      (await project.sql(`select count(*)::int as n from app.usage_days where meter = 'ai_spend_usd'`))[0].n
    expect(await slots()).toBe(6)
    harness.setTime('2027-09-02T03:00:00Z')
    await close(project)
    await close(project)
    expect(await slots()).toBe(1)
    expect((await usage(project, '2027-09-01', '2027-09-01'))['ai_spend_usd']).toEqual([1.8])
    // and are forgotten after 400 days
    harness.setTime('2028-10-08T03:00:00Z')
    await close(project)
    await close(project)
    expect(await slots()).toBe(0)
  })
})

describe('traffic', () => {
  test('is what apps ask for, with the bytes that they get', async () => {
    harness.setTime('2027-10-01T12:00:00Z')
    const project = await harness.project()
    const day = () => usage(project, '2027-10-01', '2027-10-01')
    expect(await day()).toMatchObject({ api_requests: [0], failed_requests: [0], egress_bytes: [0] })
    const user = await project.user()
    const { text } = await user.get('/client/currencies')
    // one that is refused is one as well, if its key is good
    expect((await user.get('/client/groups/00000000-0000-4000-8000-000000000000')).status).toBe(404)
    expect((await harness.anyone.with({ 'x-api-key': 'svc_test' }).get('/client/currencies')).status).toBe(401)
    await expect.poll(async () => (await day())['api_requests']).toEqual([3])
    expect((await day())['failed_requests']).toEqual([1])
    const [bytes = 0] = (await day())['egress_bytes']!
    expect(bytes).toBeGreaterThan(text.length + 3 * 200)
    expect(bytes).toBeLessThan(20_000)
    expect((await read(project)).data.usage).toMatchObject({
      api_requests: { used: 3 },
      egress_bytes: { used: bytes },
    })
  })

  test('is reported again when a report was lost, and never counted twice', async () => {
    harness.setTime('2027-10-02T12:00:00Z')
    const project = await harness.project()
    const { services } = harness.running
    const { database } = services
    let fails = 'before'
    const flaky = new Proxy(database, {
      get: (target, name) =>
        name !== 'call'
          ? Reflect.get(target, name)
          : async (...args: Parameters<typeof database.call>) => {
              if (fails === 'before') throw new Error('never sent')
              const reply = await target.call(...args)
              if (fails === 'after') throw new Error('the answer was lost')
              return reply
            },
    })
    const traffic = createTraffic({ database: flaky, control: services.control, now: harness.now, log: services.log })
    const socket = { bytesWritten: 0 } as { bytesWritten: number } & Parameters<typeof traffic.count>[1]
    const answer = (bytes: number, status = 200) => {
      socket.bytesWritten += bytes
      traffic.count(project.id, socket, status)
    }
    const day = async () => {
      const { api_requests, failed_requests, egress_bytes } = await usage(project, '2027-10-02', '2027-10-02')
      return [api_requests, failed_requests, egress_bytes]
    }
    answer(100)
    await traffic.flush()
    expect(await day()).toEqual([[0], [0], [0]])
    fails = 'after'
    answer(20, 503)
    await traffic.flush()
    expect(await day()).toEqual([[2], [1], [120]])
    await traffic.flush()
    fails = ''
    socket.bytesWritten += 1000
    traffic.pass(socket)
    answer(3, 399)
    await traffic.flush()
    await traffic.flush()
    expect(await day()).toEqual([[3], [1], [123]])
    // a day that is over is reported, and then joined with what other servers counted
    const other = createTraffic({ database, control: services.control, now: harness.now, log: services.log })
    other.count(project.id, { bytesWritten: 7 } as typeof socket, 400)
    answer(1)
    harness.setTime('2027-10-03T00:00:01Z')
    await Promise.all([traffic.close(), other.close()])
    expect(await day()).toEqual([[5], [2], [131]])
    harness.setTime('2027-10-07T03:00:00Z')
    const maintain = () =>
      database.call(services.control, 'control_worker', { caller: 'worker' }, 'control_maintain', {})
    await maintain()
    await maintain()
    expect(await day()).toEqual([[5], [2], [131]])
    expect(
      await harness.control('select reporter from app.traffic_reports where project_id = $1', [project.id]),
    ).toEqual([{ reporter: '00000000-0000-0000-0000-000000000000' }])
  })
})
