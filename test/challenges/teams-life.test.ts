import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Someone, startTeams } from '#test/support/challenge_teams.ts'
import { runOperationJob } from '#test/support/jobs.ts'

const {
  harness,
  project,
  admin,
  emitted,
  me,
  from,
  define,
  defineTeams,
  send,
  group,
  enter,
  some,
  mine,
  runTeamTasks,
} = await startTeams()

test('only who is of the segment counts', async () => {
  const [a, b, outsider] = (await some(3)) as [Someone, Someone, Someone]
  await group(a, b, outsider)
  const segment = (await admin.post('/segments', { key: 'team-few', name: 'Few', kind: 'static' })).data
  await admin.post(`/segments/${segment.id}/members`, { user_ids: [a.id, b.id] })
  const c = await defineTeams({ goal_value: 3, segment_id: segment.id })
  await send(a, c.event_name)
  await send(b, c.event_name)
  expect(await send(outsider, c.event_name)).toBeUndefined()
  await runTeamTasks()
  expect(await mine(a, c.id)).toMatchObject({ status: 'in_progress', team: { progress: 2, members: 2 } })
  await send(b, c.event_name)
  await runTeamTasks()
  expect((await me(a)).total).toBe(10)
  expect((await me(outsider)).total).toBe(0)
})

test('XP is summed as well', async () => {
  const [a, b] = (await some(2)) as [Someone, Someone]
  await group(a, b)
  const xp = await defineTeams({ goal_type: 'xp_earned', goal_value: 50, reward_xp: 0 })
  for (const who of [a, b])
    expect((await admin.post('/xp/grant', { app_user_id: who.id, amount: 25 })).status).toBe(201)
  await runTeamTasks()
  for (const who of [a, b]) expect(await mine(who, xp.id)).toMatchObject({ status: 'completed', progress: 25 })
  await admin.delete(`/challenges/${xp.id}`)
  expect(await project.sql('select from app.challenge_teams where challenge_id = $1', [xp.id])).toEqual([])
})

test('a lower goal, another mode, a count anew and a replay complete who is there, and pay nobody twice', async () => {
  const [a, b] = (await some(2)) as [Someone, Someone]
  const team = await group(a, b)
  const c = await defineTeams({ goal_value: 10 })
  for (const who of [a, b]) await send(who, c.event_name)
  await runTeamTasks()
  await admin.patch(`/challenges/${c.id}`, { goal_value: 2 })
  await runTeamTasks()
  await runTeamTasks()
  for (const who of [a, b]) expect(await mine(who, c.id)).toMatchObject({ status: 'completed' })
  // found by a count in the background, it is history
  expect((await emitted(a.id, 'svc.challenge.completed'))[0]?.is_historical).toBe(true)
  const turned = await define({ goal_value: 2, reward_xp: 10, event_name: c.event_name })
  await runTeamTasks()
  expect(await mine(a, turned.id)).toMatchObject({ status: 'in_progress', progress: 1 })
  expect((await admin.patch(`/challenges/${turned.id}`, { team_mode: 'group' })).data.team_mode).toBe('group')
  await runTeamTasks()
  await runTeamTasks()
  for (const who of [a, b]) expect(await mine(who, turned.id)).toMatchObject({ status: 'completed' })
  await admin.patch(`/challenges/${turned.id}`, { team_mode: 'none' })
  await runTeamTasks()
  expect(await mine(a, turned.id)).toEqual({
    status: 'completed',
    progress: 1,
    ratio: 0.5,
    completed_at: expect.any(String),
  })
  for (const who of [a, b]) expect((await me(who)).total).toBe(20)

  // as if nothing had been counted
  const lost = await defineTeams({ goal_value: 2 })
  await runTeamTasks()
  for (const who of [a, b]) await send(who, lost.event_name)
  await project.sql(`delete from app.outbox where task = 'challenges__team'`)
  await project.sql('update app.challenge_participants set progress = 0, group_id = null where challenge_id = $1', [
    lost.id,
  ])
  const replay = async (dry_run: boolean) => {
    const { data } = await admin.post('/events/replay', {
      since: from(-3_600_000),
      until: from(3_600_000),
      targets: ['challenges'],
      user_ids: [a.id, b.id],
      dry_run,
    })
    const run = await runOperationJob(harness, project, 'events__replay', data.operation_id)
    return run.result.targets.challenges.differences.filter((d: any) => d.challenge_id === lost.id)
  }
  expect(await replay(true)).toHaveLength(2)
  await runTeamTasks()
  expect(await mine(a, lost.id)).toMatchObject({ status: 'in_progress', progress: 0, team: null })
  expect(await replay(false)).toHaveLength(2)
  await runTeamTasks()
  expect(await mine(a, lost.id)).toMatchObject({ status: 'completed', progress: 1, team: { group_id: team } })
  const recompute = async () => {
    const { data } = await admin.post(`/challenges/${lost.id}/recompute`)
    const run = await runOperationJob(harness, project, 'challenges__recompute', data.operation_id)
    await runTeamTasks()
    return run.result.changed
  }
  await project.sql(`update app.challenge_participants set group_id = null where challenge_id = $1`, [lost.id])
  expect(await recompute()).toBe(2)
  expect(await recompute()).toBe(0)
  for (const who of [a, b]) expect((await me(who)).total).toBe(30)
})

test('switched off it completes nobody; switched on again it does', async () => {
  const [a, b] = (await some(2)) as [Someone, Someone]
  await group(a, b)
  const c = await defineTeams({ goal_value: 2 })
  for (const who of [a, b]) await send(who, c.event_name)
  await admin.patch(`/challenges/${c.id}`, { is_active: false })
  await runTeamTasks()
  expect(await mine(a, c.id)).toMatchObject({ status: 'expired', team: { reached_at: null } })
  await admin.patch(`/challenges/${c.id}`, { is_active: true })
  await runTeamTasks()
  await runTeamTasks()
  expect(await mine(a, c.id)).toMatchObject({ status: 'completed' })
})

test('a simulation sums today’s groups', async () => {
  harness.setTime('2026-11-21T12:00:00Z')
  const [a, b, alone] = (await some(3)) as [Someone, Someone, Someone]
  await group(a, b)
  const rules = { start_at: '2026-11-21T00:00:00Z', end_at: '2026-11-23T00:00:00Z', goal_value: 3 }
  const c = await defineTeams(rules)
  const before = { occurred_at: '2026-11-19T12:00:00Z' }
  await send(a, c.event_name, before)
  for (let n = 0; n < 2; n += 1) await send(b, c.event_name, before)
  for (let n = 0; n < 3; n += 1) await send(alone, c.event_name, before)
  const simulate = async (id: string) => (await admin.post(`/challenges/${id}/simulate`)).data
  expect(await simulate(c.id)).toEqual({ expected_completions: 2, is_estimate: false, margin: 0, rate: 0.6667 })
  const single = await define({ ...rules, event_name: c.event_name })
  expect(await simulate(single.id)).toEqual({ expected_completions: 1, is_estimate: false, margin: 0, rate: 0.3333 })
})

test('the next turn is one of teams', async () => {
  harness.setTime('2026-11-21T12:00:00Z')
  const other = await harness.project()
  await defineTeams({ start_at: '2026-11-20T00:00:00Z', end_at: '2026-11-22T00:00:00Z', recurrence: 'daily' }, other)
  harness.setTime('2026-11-22T00:00:00Z')
  await other.drain()
  const turns = await other.sql('select team_mode from app.challenges where parent_id is not null')
  expect(turns).toEqual([{ team_mode: 'group' }])
})

test('users who become one, are reset, or go', async () => {
  const account = await project.app.post('/client/auth/email/signup', {
    email: `${randomUUID()}@example.org`,
    password: 'a long passphrase',
  })
  const survivor = {
    id: account.data.user.id as string,
    ...project.app.with({ authorization: `Bearer ${account.data.session_token}` }),
  }
  const guest = await project.user()
  const [friend, gone] = (await some(2)) as [Someone, Someone]
  const team = await group(friend, gone)
  await enter(team, guest.id)
  const c = await defineTeams({ goal_value: 4 })
  await send(survivor, c.event_name)
  await send(guest, c.event_name)
  await send(friend, c.event_name)
  await send(gone, c.event_name)
  await runTeamTasks()
  expect((await mine(friend, c.id)).team).toMatchObject({ progress: 3, members: 3 })
  // who is deleted takes their part along
  expect((await admin.delete(`/users/${gone.id}`)).status).toBe(200)
  expect((await mine(friend, c.id)).team).toMatchObject({ progress: 2, members: 2 })
  // the survivor comes into the guest's team, with the counts of both
  expect((await survivor.post('/client/auth/merge', { from_session_token: guest.sessionToken })).status).toBe(200)
  await runTeamTasks()
  expect(await mine(survivor, c.id)).toMatchObject({
    status: 'in_progress',
    progress: 2,
    team: { group_id: team, progress: 3, members: 2 },
  })
  await send(friend, c.event_name)
  await runTeamTasks()
  for (const who of [survivor, friend]) expect((await me(who)).total).toBe(10)
  // the group goes from who is reset; then all of the challenge, which can be earned again
  expect((await admin.delete(`/users/${friend.id}/reset?sections=groups`)).status).toBe(200)
  expect(await mine(friend, c.id)).toMatchObject({ status: 'completed', team: null })
  await admin.delete(`/users/${survivor.id}/reset?sections=challenges`)
  expect(await mine(survivor, c.id)).toBeNull()
  expect(await send(survivor, c.event_name)).toMatchObject([{ completed: true }])
  expect((await me(survivor)).total).toBe(20)
})
