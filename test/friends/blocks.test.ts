import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { meetingBehind } from '#test/support/transaction.ts'

/** Blocks: what they end, and that the two hide from each other without losing what they did. */
const harness = await startHarness()
const project = await harness.project()
const pair = async () => (await Promise.all([project.user(), project.user()])) as [User, User]
const ask = (one: User, two: User) => one.post('/client/friends/requests', { user_id: two.id })
const block = (one: User, two: User) => one.post(`/client/friends/${two.id}/block`)
const unblock = (one: User, two: User) => one.delete(`/client/friends/${two.id}/block`)
const befriend = async (one: User, two: User) => {
  await ask(one, two)
  expect((await ask(two, one)).data.status).toBe('accepted')
}
const total = async (user: User, path: string) => (await user.get(`/client/friends${path}`)).body.total

test('a block ends a friendship, and unblocking does not bring it back', async () => {
  const [ada, bea] = await pair()
  await befriend(ada, bea)
  const blocked = await block(ada, bea)
  expect(blocked.status).toBe(201)
  expect(blocked.data).toEqual({
    user: { id: bea.id, display_name: bea.data.display_name, avatar_url: null },
    created_at: expect.any(String),
  })
  const again = await block(ada, bea)
  expect([again.status, again.data]).toEqual([200, blocked.data])
  expect([await total(ada, ''), await total(bea, '')]).toEqual([0, 0])
  const list = await ada.get('/client/friends/blocked')
  expect([list.body.total, list.data]).toEqual([1, [blocked.data]])
  // the other is not told
  expect(await total(bea, '/blocked')).toBe(0)
  const told = await project.sql(
    `select app_user_id, properties from app.engagement_events where event_name = 'svc.friend.removed' and app_user_id in ($1, $2)`,
    [ada.id, bea.id],
  )
  expect(told).toHaveLength(2)
  expect((await unblock(ada, bea)).data).toEqual({ deleted: true })
  expectRefusal(await unblock(ada, bea), 404, 'NOT_FOUND')
  expect([await total(ada, ''), await total(ada, '/blocked')]).toEqual([0, 0])
  expect((await ask(bea, ada)).status).toBe(201)
})

test('a block ends requests of both sides, and refuses new ones as if there were nobody', async () => {
  const [ada, bea] = await pair()
  await ask(bea, ada)
  await block(ada, bea)
  expect([await total(ada, '/requests'), await total(bea, '/requests?direction=outgoing')]).toEqual([0, 0])
  const absent = await ada.post('/client/friends/requests', { user_id: randomUUID() })
  for (const [one, two] of [
    [ada, bea],
    [bea, ada],
  ] as const) {
    const refused = await ask(one, two)
    expectRefusal(refused, 404, 'USER_NOT_FOUND')
    expect(refused.body).toEqual(absent.body)
    expectRefusal(await one.get(`/client/users/${two.id}`), 404, 'USER_NOT_FOUND')
    expectRefusal(await one.post(`/client/friends/requests/${two.id}/accept`), 404, 'REQUEST_NOT_FOUND')
  }
  const { code } = (await ada.get('/client/friends/code')).data
  expectRefusal(await bea.post('/client/friends/requests', { friend_code: code }), 404, 'USER_NOT_FOUND')
  // who is blocked may block too; then one unblocking is not enough
  expect((await block(bea, ada)).status).toBe(201)
  await unblock(ada, bea)
  expectRefusal(await ask(ada, bea), 404, 'USER_NOT_FOUND')
  await unblock(bea, ada)
  expect((await ask(ada, bea)).status).toBe(201)
})

test('a block at the time of an acceptance: never both', async () => {
  for (let round = 0; round < 4; round += 1) {
    const [ada, bea] = await pair()
    await ask(ada, bea)
    const [accepted, blocked] = await meetingBehind(
      project.database,
      `select from app.users where id in ('${ada.id}', '${bea.id}') order by id for update`,
      () => [bea.post(`/client/friends/requests/${ada.id}/accept`), block(ada, bea)],
    )
    expect([blocked?.status, [200, 404].includes(accepted?.status as number)]).toEqual([201, true])
    expect([await total(ada, ''), await total(bea, ''), await total(ada, '/blocked')]).toEqual([0, 0, 1])
  }
})

test('boards keep the places of both, without names for each other', async () => {
  const [ada, bea] = await pair()
  const third = await project.user()
  await project.admin.post('/leaderboards', { key: 'points', name: 'Points' })
  const { data: group } = await third.post('/client/groups', { name: 'all' })
  for (const [n, user] of [ada, bea, third].entries()) {
    await user.post(`/client/groups/${group.id}/join`)
    await project.onBehalfOf(user.id).post('/client/leaderboards/points/scores', { score: 10 * (n + 1) })
  }
  const now = Date.now()
  const challenge = await project.admin.post('/challenges', {
    ...{ name: 'Run', event_name: 'run', goal_type: 'event_count', goal_value: 5 },
    ...{ start_at: new Date(now - 60_000).toISOString(), end_at: new Date(now + 3_600_000).toISOString() },
  })
  expect(challenge.status, challenge.text).toBe(201)
  for (const user of [ada, bea, third]) await user.post(`/client/challenges/${challenge.data.id}/join`)
  await block(ada, bea)
  const names = async (viewer: User, path: string) => {
    const { data } = await viewer.get(path)
    return Object.fromEntries(data.map(({ user }: any) => [user.id, user.display_name]))
  }
  const all = { [ada.id]: ada.data.display_name, [bea.id]: bea.data.display_name, [third.id]: third.data.display_name }
  for (const path of [
    '/client/leaderboards/points',
    '/client/leaderboards/points?around=me',
    `/client/leaderboards/points?scope=group:${group.id}`,
    `/client/challenges/${challenge.data.id}/leaderboard`,
  ]) {
    expect(await names(ada, path)).toEqual({ ...all, [bea.id]: null })
    expect(await names(bea, path)).toEqual({ ...all, [ada.id]: null })
    expect(await names(third, path)).toEqual(all)
  }
  const entries = await project.admin.get('/leaderboards/points/entries')
  expect(entries.data.map((row: any) => row.user.display_name)).not.toContain(null)
})

test('blocks are bounded, and refused to oneself and nobody', async () => {
  const [ada, bea] = await pair()
  expectRefusal(await block(ada, ada), 400, 'SELF_FRIEND')
  expectRefusal(await ada.post(`/client/friends/${randomUUID()}/block`), 404, 'USER_NOT_FOUND')
  expectRefusal(await ada.post('/client/friends/x/block'), 400, 'INVALID_ID')
  await project.sql(
    `with crowd as (insert into app.users (display_name) select 'One of many' from generate_series(1, 9999) returning id)
     insert into app.blocks (blocker, blocked, created_at) select $1, id, now() - interval '1 day' from crowd`,
    [ada.id],
  )
  expect((await block(ada, bea)).status).toBe(201)
  expectRefusal(await block(ada, await project.user()), 409, 'FRIEND_LIMIT_REACHED', { limit: 10_000 })
  const page = await ada.get('/client/friends/blocked?limit=1')
  expect([page.body.total, page.data[0].user.id]).toEqual([10_000, bea.id])
})
