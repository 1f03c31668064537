import { afterEach, describe, expect, test } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'

/** What the pipeline of events and streaks owe each other. */
const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

const batch = (client: Client, events: unknown, more: object = {}) => client.post('/client/events', { events, ...more })

describe('effects', () => {
  test('of one event, and of a batch when asked for, say what moved, summed to the last word', async () => {
    await project.admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'practised' })
    const user = await project.user()
    const server = project.onBehalfOf(user.id)
    const days = ['2026-11-19', '2026-11-20', '2026-11-21']
    harness.setTime('2026-11-21T12:00:00Z')
    const single = await server.post('/client/events', { event_name: 'practised', occurred_at: days[0] })
    expect(single.data.effects).toEqual({})
    const silent = await batch(server, [{ event_name: 'practised', occurred_at: days[1] }])
    expect(silent.data).not.toHaveProperty('effects')
    const loud = await batch(server, [{ event_name: 'practised' }, { event_name: 'other' }], { include_effects: true })
    expect(loud.data.effects).toEqual({
      streaks: [{ key: 'daily', status: 'active', current_count: 3, change: 'extended' }],
    })
    const again = await server.post('/client/events', { event_name: 'practised' })
    expect(again.data.effects).toEqual({})
  })

  test('of a batch over several users name the user of each entry', async () => {
    await project.admin.post('/streaks', { key: 'many', name: 'Many', qualifying_event: 'ran' })
    const users = [await project.user(), await project.user()]
    const events = users.map(({ id }) => ({ event_name: 'ran', app_user_id: id }))
    const { data } = await batch(project.server, events, { include_effects: true })
    expect(data.effects.streaks).toHaveLength(2)
    expect(data.effects.streaks).toEqual(
      expect.arrayContaining(
        users.map(({ id }) => ({
          app_user_id: id,
          key: 'many',
          status: 'active',
          current_count: 1,
          change: 'started',
        })),
      ),
    )
  })
})

test('four writers whose batches move the same streaks in no order: no deadlock, and one period each', {
  timeout: 180_000,
}, async () => {
  await project.admin.post('/streaks', { key: 'busy', name: 'Busy', qualifying_event: 'n0' })
  const users = (await Promise.all(Array.from({ length: 12 }, () => project.user()))).map(({ id }) => id)
  const pick = (most: number) => Math.floor(Math.random() * most)
  const events = () =>
    Array.from({ length: 40 }, () => ({ app_user_id: users[pick(users.length)], event_name: `n${pick(2)}` }))
  const writer = async () => {
    for (let times = 0; times < 25; times += 1) {
      const { status, text } = await batch(project.server, events())
      expect(status, text).toBe(201)
    }
  }
  await Promise.all([writer(), writer(), writer(), writer()])
  const periods = await project.sql('select app_user_id, count(*)::int as count from app.streak_periods group by 1')
  expect(periods.filter(({ app_user_id }) => users.includes(app_user_id)).every(({ count }) => count === 1)).toBe(true)
})
