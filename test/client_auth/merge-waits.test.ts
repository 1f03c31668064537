import pg from 'pg'
import { afterEach, expect, inject, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'

const harness = await startHarness()

const open: pg.Client[] = []
afterEach(async () => {
  for (const client of open.splice(0)) await client.end()
})

/** A transaction of our own, which stays open. */
const begin = async (project: Project, caller: string, user: string): Promise<pg.Client> => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  open.push(client)
  await client.query('begin')
  await client.query(`select set_config('app.caller', $1, true), set_config('app.user_id', $2, true)`, [caller, user])
  return client
}

test.each([
  ['a merge', 'user', 'select internal.users_merge($1, $2)'],
  ['a deletion', 'developer', 'select internal.user_delete($1) where $2::uuid is not null'],
])('nobody else waits while %s of users who have much is not committed', async (_, caller, statement) => {
  const project = await harness.project()
  const { admin } = project
  await admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'played' })
  await admin.post('/xp/rules', { key: 'played', name: 'Played', event_name: 'played', amount: 5 })
  await admin.post('/leaderboards', { key: 'best', name: 'Best', source: { type: 'manual' }, client_writable: true })
  await admin.post('/currencies', { code: 'GOLD', name: 'Gold', earn_rules: [] })
  const challenge = (
    await admin.post('/challenges', {
      name: 'Ten',
      start_at: '2020-01-01T00:00:00Z',
      end_at: '2100-01-01T00:00:00Z',
      goal_type: 'event_count',
      event_name: 'played',
      goal_value: 10,
    })
  ).data
  const segment = (
    await admin.post('/segments', {
      key: 'players',
      name: 'Players',
      kind: 'dynamic',
      rules: { source: 'event', event_name: 'played', measure: 'count', op: 'gte', value: 1 },
    })
  ).data
  const [survivor, other, friend, stranger] = await Promise.all(Array.from({ length: 4 }, () => project.user()))
  if (!survivor || !other || !friend || !stranger) throw new Error('no users')
  const group = (await friend.post('/client/groups', { name: 'Together', is_public: true })).data
  const act = async (user: typeof survivor) => {
    const answers = [
      await user.post('/client/events', { event_name: 'played' }),
      await user.post('/client/leaderboards/best/scores', { score: 3 }),
      await user.post('/client/feeds', { action: 'lesson.shared' }),
      await user.post('/client/sessions/start', {}),
      await user.patch('/client/users/me', { properties: { mood: 'calm' } }),
      await user.get('/client/leaderboards/best'),
      await user.get('/client/streaks'),
    ]
    return answers.map(({ status }) => status).filter((status) => status >= 300)
  }
  for (const user of [survivor, other, friend]) {
    await user.post(`/client/challenges/${challenge.id}/join`)
    await user.post(`/client/groups/${group.id}/join`)
    expect(await act(user)).toEqual([])
  }
  const client = await begin(project, caller, survivor.id)
  await client.query(statement, [survivor.id, other.id])
  // who joins or leaves the group would wait, as for everybody who joins or leaves it: a group counts its members.
  // one who shares group, board and challenge with them, and one who comes now; a request that waits would end in 503
  expect(await act(friend)).toEqual([])
  expect((await stranger.post(`/client/challenges/${challenge.id}/join`)).status).toBeLessThan(300)
  expect(await act(stranger)).toEqual([])
  for (const path of ['/users', '/events', '/feeds', '/sessions', `/segments/${segment.id}/members`, '/xp/stats'])
    expect([path, (await admin.get(path)).status]).toEqual([path, 200])
  // only the two themselves
  const blocked = await client.query(
    `select count(*)::int as n from pg_stat_activity a where a.datname = current_database() and cardinality(pg_blocking_pids(a.pid)) > 0`,
  )
  expect(blocked.rows).toEqual([{ n: 0 }])
  await client.query('commit')
  expect((await admin.get(`/users/${caller === 'user' ? other.id : survivor.id}`)).status).toBe(404)
})
