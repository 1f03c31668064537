import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

/*
 * A batch that asks for effects has many: each area collects its own and notes them once, for what notes one copies all that are noted.
 * Here 400 users are on ten boards and begin a streak with a milestone, which is told user by user.
 */
const harness = await startHarness()
const project = await harness.project()
const boards = 10

await project.sql(`
  insert into app.leaderboards (key, name, source, scoring)
  select 'board-' || n, 'Board', '{"type": "event", "event_name": "moved"}', 'count' from generate_series(1, ${boards}) n`)
await project.sql(`
  insert into app.streak_definitions (key, name, qualifying_event, milestones)
  values ('daily', 'Daily', 'moved', '[{"count": 1, "reward": {}}]')`)

const people = async (count: number): Promise<string[]> =>
  (
    await project.sql(
      `with made as (insert into app.users (display_name) select 'user ' || n from generate_series(1, $1) n returning id)
       select m.id from made m order by m.id`,
      [count],
    )
  ).map(({ id }) => id)
const eventsOf = (users: readonly string[]) => users.map((id) => ({ event_name: 'moved', app_user_id: id }))
const keysByRun = async (): Promise<string[]> =>
  (
    await project.sql(
      'select b.key from app.leaderboard_runs r join app.leaderboards b on b.id = r.leaderboard_id order by r.id',
    )
  ).map(({ key }) => key)

test('of 400 users on ten boards all effects are answered, in the order of users and boards', async () => {
  const users = await people(400)
  const post = async () => {
    const events = eventsOf(users.toReversed())
    const { status, data, text } = await project.server.post('/client/events', { events, include_effects: true })
    expect(status, text).toBe(201)
    return data.effects
  }
  const first = await post()
  const keys = await keysByRun()
  const entries = (previous: (rank: number) => number | null, score: number) =>
    users.flatMap((id, n) =>
      keys.map((key) => ({ app_user_id: id, key, score, rank: n + 1, previous_rank: previous(n + 1) })),
    )
  expect(first.leaderboards).toEqual(entries(() => null, 1))
  expect(first.streaks).toEqual(
    users.map((id) => ({ app_user_id: id, key: 'daily', status: 'active', current_count: 1, change: 'started' })),
  )
  // now everybody moves at once: among the others, who have moved, the former score was the last
  const second = await post()
  expect(second.leaderboards).toEqual(entries(() => 400, 2))
  expect(second.streaks).toBeUndefined()
})

test('a batch notes the effects of an area once, however many they are', async () => {
  const users = await people(100)
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  try {
    await client.query(`begin; set local track_functions = 'pl'`)
    await client.query(`select set_config('app.caller', 'server_key', true)`)
    const { rows: answers } = await client.query('select r.status, r.body from api.events_post($1::json) r', [
      JSON.stringify({ events: eventsOf(users), include_effects: true }),
    ])
    expect(answers[0].status).toBe(201)
    expect(answers[0].body.data.effects.leaderboards).toHaveLength(100 * boards)
    expect(answers[0].body.data.effects.streaks).toHaveLength(100)
    const { rows } = await client.query(
      `select f.funcname as name, f.calls::int from pg_stat_xact_user_functions f where f.funcname in ('add_effect', 'add_effects', 'leaderboards_ranks') order by 1`,
    )
    // streaks and boards, once each; and the ranks of all in one statement
    expect(rows).toEqual([
      { name: 'add_effects', calls: 2 },
      { name: 'leaderboards_ranks', calls: 1 },
    ])
  } finally {
    await client.query('rollback')
    await client.end()
  }
})
