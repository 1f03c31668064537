import { afterEach, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const start = Date.parse('2030-05-01T00:00:00Z')
const minutes = (n: number) => new Date(start + n * 60_000).toISOString()
afterEach(() => harness.setTime(null))

const world = async () => {
  harness.setTime(minutes(0))
  const project = await harness.project()
  for (const key of ['potion', 'torch'])
    await project.admin.post('/catalog', { key, name: key, item_type: 'consumable' })
  const give = async (app_user_id: string, catalog_item_key: string, quantity: number, end: number | null) => {
    const ends = end === null ? {} : { expires_at: minutes(end) }
    const body = { app_user_id, catalog_item_key, quantity, reason: 'test', ...ends }
    const answer = await project.admin.post('/inventory/grant', body)
    expect(answer.status, answer.text).toBe(201)
  }
  const eventsOf = async () =>
    (
      await project.sql(
        `select app_user_id, occurred_at, properties, source from app.engagement_events
          where event_name = 'svc.inventory.expired' order by occurred_at, properties ->> 'catalog_item_key', app_user_id`,
      )
    ).map(({ app_user_id, occurred_at, properties, source }) => {
      expect(source).toBe('system')
      expect(properties.expires_at).toBe(occurred_at.toISOString())
      return [app_user_id, properties.catalog_item_key, properties.quantity, occurred_at.toISOString()]
    })
  return { project, give, eventsOf }
}

test('the rest of a stack that expires is reported in one event, at that time', async () => {
  const { project, give, eventsOf } = await world()
  const [a, b] = [await project.user(), await project.user()]
  await give(a.id, 'potion', 3, 10)
  await give(a.id, 'torch', 1, null)
  await give(b.id, 'potion', 2, 20)
  await give(b.id, 'torch', 4, 10)
  // used up before: nothing of it expires
  expect((await b.post('/client/inventory/torch/consume', { quantity: 4 })).status).toBe(200)
  expect((await a.post('/client/inventory/potion/consume', { quantity: 1 })).status).toBe(200)
  harness.setTime(minutes(9.99))
  await project.drain()
  expect(await eventsOf()).toEqual([])
  harness.setTime(minutes(10))
  await project.drain()
  const first = [a.id, 'potion', 2, minutes(10)]
  expect(await eventsOf()).toEqual([first])
  await project.drain()
  harness.setTime(minutes(20))
  await project.drain()
  expect(await eventsOf()).toEqual([first, [b.id, 'potion', 2, minutes(20)]])
  const [{ count }] = await project.sql(`select count(*)::int from app.outbox where task = 'inventory__expire'`)
  expect(count).toBe(0)
  // what expired stays as a record
  expect((await project.admin.get(`/inventory?user_id=${a.id}`)).body.total).toBe(2)
})

test('a late worker emits every event once, with its own time, also when ten workers run at once', async () => {
  const { project, give, eventsOf } = await world()
  const users = await Promise.all(Array.from({ length: 6 }, () => project.user()))
  for (const [n, user] of users.entries()) {
    await give(user.id, 'potion', n + 1, 5 + n)
    await give(user.id, 'torch', 1, 30)
  }
  // exact all the while, though nobody looked
  harness.setTime(minutes(8))
  const list = await project.onBehalfOf(users[0]?.id ?? '').get('/client/inventory')
  expect(list.data.map(({ item }: { item: { key: string } }) => item.key)).toEqual(['torch'])
  harness.setTime(minutes(10_000))
  const claims = { 'app.caller': 'worker', 'app.clock': minutes(10_000) }
  await Promise.all(
    Array.from({ length: 10 }, () => project.as('app_worker', claims, 'select api.inventory_expire(3)')),
  )
  await project.drain()
  const expected = [
    ...users.map((user, n) => [user.id, 'potion', n + 1, minutes(5 + n)]),
    ...users
      .map(({ id }) => id)
      .sort()
      .map((id) => [id, 'torch', 1, minutes(30)]),
  ]
  expect(await eventsOf()).toEqual(expected)
})

test('an event of an expiry is one like any other: a streak counts it at its own time', async () => {
  const { project, give } = await world()
  const user = await project.user()
  await project.admin.post('/streaks', { key: 'losing', name: 'Losing', qualifying_event: 'svc.inventory.expired' })
  await give(user.id, 'potion', 1, 10)
  harness.setTime(minutes(30))
  await project.drain()
  const { data } = await project.onBehalfOf(user.id).get('/client/streaks/losing')
  expect(data).toMatchObject({ current_count: 1 })
})

test('only a worker may run the expiry', async () => {
  const { project } = await world()
  for (const [role, caller] of [
    ['app_user', 'user'],
    ['app_server', 'server_key'],
    ['app_admin', 'developer'],
  ] as const)
    await expect(project.as(role, { 'app.caller': caller }, 'select api.inventory_expire(1)')).rejects.toMatchObject({
      code: '42501',
    })
  await expect(
    project.as('app_worker', { 'app.caller': 'developer' }, 'select api.inventory_expire(1)'),
  ).rejects.toThrow('workers')
})
