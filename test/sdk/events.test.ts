import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { appOf, device, network, type Setting } from '#test/support/sdk.ts'
import { type App, createEvents, type EventsOptions } from '../../sdk/src/index.ts'

/** The queue of events: what happened is sent once, for whom it happened to, however often the network and the program end. */
const harness = await startHarness()
const project = await harness.project()
const post = 'POST /v1/client/events'

const queueOf = (app: App, options: EventsOptions = {}) => {
  // nothing is sent by itself while a test looks
  const events = createEvents(app, { delay: 3_600_000, ...options })
  onTestFinished(() => events.close())
  return events
}
const start = (setting: Setting = {}, options: EventsOptions = {}) => {
  const made = appOf(harness, project, setting)
  return { ...made, events: queueOf(made.app, options) }
}
const stored = (name: string): Promise<any[]> =>
  project.sql(
    'select id, app_user_id, properties, occurred_at from app.engagement_events where event_name = $1 order by id',
    [name],
  )
const freshName = () => `e_${randomUUID().replaceAll('-', '').slice(0, 12)}`

test('events are sent together, with their ids and their effects', async () => {
  const effects: any[] = []
  const name = freshName()
  await project.admin.post('/streaks', { key: name, name, qualifying_event: name })
  const { app, net, events } = start({}, { onSent: (sent) => effects.push(sent) })
  const ids = [await events.track(name, { n: 1 }), await events.track(name, { n: 2 })]
  expect(await events.size()).toBe(2)
  expect(await events.flush()).toEqual({ accepted: 2, left: 0 })
  const session = await app.session()
  expect((await stored(name)).map(({ id, app_user_id }) => [id, app_user_id])).toEqual(
    ids.sort().map((id) => [id, session?.userId]),
  )
  expect(net.count(post)).toBe(1)
  expect(effects).toMatchObject([{ accepted: 2, effects: { streaks: [{ key: name, change: 'started' }] } }])
  expect(await events.flush()).toEqual({ accepted: 0, left: 0 })
})

test('events outlive the lack of a network and a restart', async () => {
  const name = freshName()
  const store = device()
  const net = network()
  net.isOffline = true
  const before = start({ store, net, retries: 0 })
  const id = await before.events.track(name, { n: 1 })
  await expect(before.events.flush()).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  before.events.close()
  const after = start({ store })
  expect(await after.events.size()).toBe(1)
  expect(await after.events.flush()).toEqual({ accepted: 1, left: 0 })
  expect((await stored(name)).map((row) => row.id)).toEqual([id])
})

test('an event whose answer is lost is sent again, and counts once', async () => {
  const name = freshName()
  const store = device()
  const lossy = start({ store, retries: 0 })
  await lossy.events.track(name)
  lossy.net.losing.push(post)
  await expect(lossy.events.flush()).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  expect(await stored(name)).toHaveLength(1)
  // the program ends here, and the next one sends the event again
  lossy.events.close()
  const after = start({ store })
  expect(await after.events.flush()).toEqual({ accepted: 0, left: 0 })
  expect(after.net.count(post)).toBe(1)
  expect(await stored(name)).toHaveLength(1)
  const [counter] = await project.sql(
    'select sum(count)::int as n from app.user_event_counters where event_name = $1',
    [name],
  )
  expect(counter).toEqual({ n: 1 })
})

test('two tabs lose no event and send none twice', async () => {
  const name = freshName()
  const store = device()
  const a = start({ store })
  const b = start({ store })
  await a.app.ensureSignedIn()
  const tracking = Array.from({ length: 30 }, (_, n) => (n % 2 ? a : b).events.track(name, { n }))
  const flushing = [a.events.flush(), b.events.flush()]
  const ids = await Promise.all(tracking)
  await Promise.all([...flushing, a.events.flush(), b.events.flush()])
  await a.events.flush()
  expect((await stored(name)).map(({ id }) => id)).toEqual([...ids].sort())
  const sent = await project.sql('select count(*)::int as n from app.engagement_events where event_name = $1', [name])
  expect(sent).toEqual([{ n: 30 }])
})

test('an event belongs to the user who was signed in', async () => {
  const name = freshName()
  const store = device()
  const { app, events } = start({ store })
  const first = await app.ensureSignedIn()
  await events.track(name, { of: 'first' })
  await app.signOut()
  await events.track(name, { of: 'second' })
  const second = await app.ensureSignedIn()
  expect(await events.flush()).toEqual({ accepted: 1, left: 1 })
  expect((await stored(name)).map(({ app_user_id, properties }) => [app_user_id, properties.of])).toEqual([
    [second.userId, 'second'],
  ])
  expect(first.userId).not.toBe(second.userId)
})

test('the time of an event is the server’s, however wrong the clock is', async () => {
  const name = freshName()
  const { app, events } = start({ now: () => Date.now() - 40 * 86_400_000 })
  // before anything is known of the server's clock, and after
  await events.track(name)
  await app.ensureSignedIn()
  await events.track(name)
  expect(await events.flush()).toEqual({ accepted: 2, left: 0 })
  for (const { occurred_at: at } of await stored(name)) {
    expect(Math.abs(at.getTime() - Date.now())).toBeLessThan(60_000)
  }
})

test('what the server refuses is dropped and told, and holds up nothing', async () => {
  const name = freshName()
  const rejected: any[] = []
  const { events, net } = start({}, { onRejected: (event) => rejected.push([event.event_name, event.code]), most: 5 })
  await events.track('svc.mine')
  await events.track('x'.repeat(300))
  await events.track(name, { text: 'x'.repeat(40_000) })
  await events.track(name, { n: 1 })
  expect((await events.flush()).accepted).toBe(1)
  expect(rejected.map(([, code]) => code)).toHaveLength(3)
  expect(rejected).toContainEqual(['svc.mine', 'RESERVED_EVENT_NAME'])
  expect(await stored(name)).toHaveLength(1)
  net.isOffline = true
  for (let n = 0; n < 7; n += 1) await events.track(name, { n })
  expect(await events.size()).toBe(5)
  expect(rejected.slice(3)).toEqual([
    [name, 'QUEUE_FULL'],
    [name, 'QUEUE_FULL'],
  ])
})

test('without being told to, it sends soon, and again when the network is back', async () => {
  const name = freshName()
  const net = network()
  net.isOffline = true
  const { events } = start({ net, retries: 0 }, { delay: 5 })
  await events.track(name)
  await expect(events.flush()).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  net.isOffline = false
  await expect.poll(() => events.size()).toBe(0)
  expect(await stored(name)).toHaveLength(1)
})
