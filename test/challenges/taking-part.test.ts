import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { day, startChallenges } from '#test/support/challenges.ts'
import type { Client } from '#test/support/harness.ts'
import { runOperationJob } from '#test/support/jobs.ts'

const { harness, project, admin, someone, emitted, me, from, define, send, see } = await startChallenges()

describe('taking part', () => {
  test('joining, leaving, joining again', async () => {
    const c = await define()
    const user = await someone()
    const none = await user.post(`/client/challenges/${c.id}/leave`)
    expect([none.status, none.error?.code]).toEqual([404, 'NOT_FOUND'])
    const joined = await user.post(`/client/challenges/${c.id}/join`)
    expect([joined.status, joined.data]).toEqual([
      201,
      {
        challenge_id: c.id,
        app_user_id: user.id,
        joined_at: expect.any(String),
        progress: 0,
        goal_value: 3,
        status: 'in_progress',
        completed_at: null,
        rank: 1,
      },
    ])
    expect((await user.post(`/client/challenges/${c.id}/join`)).status).toBe(200)
    await send(user, c.event_name)
    expect((await user.post(`/client/challenges/${c.id}/leave`)).data).toMatchObject({ status: 'left', progress: 1 })
    expect((await user.post(`/client/challenges/${c.id}/leave`)).status).toBe(200)
    expect((await see(user, c.id)).participants_count).toBe(0)
    for (let n = 0; n < 2; n += 1) expect(await send(user, c.event_name)).toBeUndefined()
    // what was done meanwhile counts: progress does not depend on when somebody joined
    expect((await user.post(`/client/challenges/${c.id}/join`)).data).toMatchObject({
      status: 'completed',
      progress: 3,
    })
    expect((await user.post(`/client/challenges/${c.id}/leave`)).data.status).toBe('completed')
    expect(await emitted(user.id, 'svc.challenge.joined')).toHaveLength(1)
    const early = await define({ start_at: from(day) })
    expect((await user.post(`/client/challenges/${early.id}/join`)).status).toBe(201)
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/join'],
      ['POST', '/leave'],
      ['GET', '/leaderboard'],
    ]) {
      expect((await user.request(method ?? '', `/client/challenges/${randomUUID()}${path}`)).error?.code).toBe(
        'NOT_FOUND',
      )
      expect((await user.request(method ?? '', `/client/challenges/x${path}`)).error?.code).toBe('INVALID_ID')
    }
  })

  test('lists and boards: by progress, then who was first', async () => {
    const other = await harness.project()
    const c = await define({ goal_value: 10 }, other)
    await define({ start_at: from(day) }, other)
    const users = await Promise.all([1, 2, 3, 4].map(() => other.user()))
    const whos = users.map(({ id }) => other.onBehalfOf(id))
    const post = (n: number) => whos[n]?.post('/client/events', { event_name: c.event_name })
    for (const n of [0, 1, 2, 1, 0, 3]) await post(n)
    await whos[3]?.post(`/client/challenges/${c.id}/leave`)
    const order = [users[1]?.id, users[0]?.id, users[2]?.id]
    const board = await whos[0]?.get(`/client/challenges/${c.id}/leaderboard?limit=3`)
    expect(board?.data.map(({ rank, progress, user }: any) => [rank, progress, user.id])).toEqual(
      order.map((id, n) => [n + 1, n < 2 ? 2 : 1, id]),
    )
    // friends are accepted ones, and the caller is on their own board; ranks are those of this board
    for (const [friend, status] of [
      [2, 'accepted'],
      [1, 'pending'],
    ] as const) {
      const [a, b] = [users[0]?.id ?? '', users[friend]?.id ?? ''].sort()
      await other.sql(
        `insert into app.friendships (user_a, user_b, status, requested_by, responded_at)
         values ($1, $2, $3, $1, case when $3 = 'accepted' then now() end)`,
        [a, b, status],
      )
    }
    const friends = (await whos[0]?.get(`/client/challenges/${c.id}/leaderboard?scope=friends`))?.data
    expect(friends.map(({ rank, progress, user }: any) => [rank, progress, user.id])).toEqual([
      [1, 2, users[0]?.id],
      [2, 1, users[2]?.id],
    ])
    expect((await whos[1]?.get(`/client/challenges/${c.id}/leaderboard?scope=friends`))?.data).toMatchObject([
      { rank: 1, user: { id: users[1]?.id } },
    ])
    expect((await whos[0]?.get(`/client/challenges/${c.id}/leaderboard?scope=foes`))?.error?.code).toBe('INVALID_INPUT')
    const participants = await other.admin.get(`/challenges/${c.id}/participants`)
    expect(participants.body).toMatchObject({ total: 4, offset: 0, limit: 50 })
    expect(participants.data.map(({ progress, status }: any) => [progress, status])).toEqual([
      [2, 'in_progress'],
      [2, 'in_progress'],
      [1, 'in_progress'],
      [1, 'left'],
    ])
    expect((await other.admin.get(`/challenges/${c.id}/participants?limit=1&offset=2`)).data[0]).toMatchObject({
      app_user_id: order[2],
      rank: 3,
    })
    const listed = await whos[0]?.get('/client/challenges')
    expect(listed?.body).toMatchObject({
      total: 1,
      data: [{ id: c.id, participants_count: 3, my: { status: 'in_progress', progress: 2, ratio: 0.2 } }],
    })
    expect((await whos[0]?.get('/client/challenges?status=upcoming'))?.body.total).toBe(1)
    expect((await whos[0]?.get('/client/challenges?status=all'))?.error?.code).toBe('INVALID_INPUT')
  })

  test('of a segment: others neither see it, nor join, nor are joined by an event', async () => {
    const member = await someone()
    const stranger = await someone()
    const c = await define()
    const { id: segment_id } = (await admin.post('/segments', { key: 'few', name: 'Few', kind: 'static' })).data
    await admin.post(`/segments/${segment_id}/members`, { user_ids: [member.id] })
    try {
      expect((await admin.patch(`/challenges/${c.id}`, { segment_id })).status).toBe(200)
      expect((await admin.delete(`/segments/${segment_id}`)).error).toMatchObject({
        code: 'SEGMENT_IN_USE',
        details: { used_by: [`challenge ${c.name}`] },
      })
      expect((await stranger.get(`/client/challenges/${c.id}`)).error?.code).toBe('NOT_FOUND')
      const answer = await stranger.post(`/client/challenges/${c.id}/join`)
      expect([answer.status, answer.error?.code]).toEqual([403, 'NOT_ELIGIBLE'])
      expect(await send(stranger, c.event_name)).toBeUndefined()
      expect(await send(member, c.event_name)).toHaveLength(1)
      expect((await member.post(`/client/challenges/${c.id}/join`)).status).toBe(200)
    } finally {
      await admin.delete(`/challenges/${c.id}`)
    }
    expect((await admin.delete(`/segments/${segment_id}`)).status).toBe(200)
  })

  test('is written by nobody through SQL', async () => {
    const c = await define()
    const user = await project.user()
    const claims = { 'app.user_id': user.id, 'app.caller': 'user' }
    for (const role of ['app_user', 'app_server'] as const)
      for (const statement of [
        `insert into app.challenge_participants (challenge_id, app_user_id, progress) values ('${c.id}', '${user.id}', 99)`,
        'update app.challenge_participants set progress = 99',
        'delete from app.challenge_participants',
        'update app.challenges set reward_xp = 1000',
        `select internal.challenges_measure(array['${user.id}'::uuid], array['${c.id}'::uuid])`,
      ])
        await expect(project.as(role, claims, statement), `${role} ${statement}`).rejects.toThrow(/permission denied/)
    await expect(project.as('app_admin', {}, 'update app.challenge_participants set progress = 1')).rejects.toThrow(
      /permission denied/,
    )
  })
})

test('a challenge that recurs has its next turn when it is over, once', async () => {
  harness.setTime('2026-11-21T12:00:00Z')
  const other = await harness.project()
  const c = await define(
    { start_at: '2026-11-16T00:00:00Z', end_at: '2026-11-23T00:00:00Z', recurrence: 'weekly' },
    other,
  )
  await other.drain()
  expect(await other.sql('select from app.challenges')).toHaveLength(1)
  for (const at of ['2026-11-23T00:00:00Z', '2026-11-23T00:00:01Z']) {
    harness.setTime(at)
    await other.drain()
  }
  await other.as(
    'app_worker',
    { 'app.caller': 'worker', 'app.clock': '2026-11-23T00:00:01Z' },
    `select api.challenge_recur('${c.id}')`,
  )
  const turns = await other.sql(`select parent_id, start_at, end_at from app.challenges where parent_id is not null`)
  expect(turns).toEqual([
    { parent_id: c.id, start_at: new Date('2026-11-23T00:00:00Z'), end_at: new Date('2026-11-30T00:00:00Z') },
  ])
})

test('months count from the first turn: the day comes back after a short month, and the end of a month stays one', async () => {
  harness.setTime('2027-01-15T12:00:00Z')
  const other = await harness.project()
  const monthly = (start_at: string, end_at: string, name: string) =>
    define({ name, start_at, end_at, recurrence: 'monthly' }, other)
  await monthly('2027-01-01T00:00:00Z', '2027-01-31T23:59:59Z', 'whole')
  await monthly('2027-02-01T00:00:00Z', '2027-02-28T23:59:59.999Z', 'whole, from a short one')
  await monthly('2027-01-31T06:00:00Z', '2027-02-28T12:00:00Z', 'from the last day')
  await monthly('2027-01-28T00:00:00Z', '2027-01-30T12:00:00Z', 'days that most months have')
  await monthly('2027-01-30T18:00:00Z', '2027-01-31T06:00:00Z', 'over a night')
  await monthly('2027-01-10T00:00:00Z', '2027-01-31T23:59:59Z', 'moved')
  const turns = async (name: string) =>
    (await other.sql('select start_at, end_at from app.challenges where name = $1 order by start_at', [name])).map(
      ({ start_at, end_at }) => [start_at, end_at].map((at: Date) => at.toISOString().slice(5, 16)),
    )
  const until = async (times: readonly string[]) => {
    for (const at of times) {
      harness.setTime(at)
      await other.drain()
    }
  }
  await until(['2027-02-01T00:00:00Z', '2027-03-01T00:00:00Z'])
  // somebody moves a turn to another day: that one comes again
  await other.sql(
    `update app.challenges set end_at = '2027-03-20T12:00:00Z' where name = 'moved' and start_at = '2027-03-10T00:00:00Z'`,
  )
  await until(['2027-04-01T00:00:00Z', '2027-05-01T00:00:00Z'])
  expect(await turns('whole')).toEqual([
    ['01-01T00:00', '01-31T23:59'],
    ['02-01T00:00', '02-28T23:59'],
    ['03-01T00:00', '03-31T23:59'],
    ['04-01T00:00', '04-30T23:59'],
    ['05-01T00:00', '05-31T23:59'],
  ])
  expect((await turns('whole, from a short one')).map(([, end]) => end)).toEqual([
    ...['02-28T23:59', '03-31T23:59', '04-30T23:59', '05-31T23:59'],
  ])
  expect(await turns('from the last day')).toEqual([
    ['01-31T06:00', '02-28T12:00'],
    ['02-28T06:00', '03-28T12:00'],
    ['03-31T06:00', '04-28T12:00'],
    ['04-30T06:00', '05-28T12:00'],
  ])
  expect((await turns('days that most months have')).map(([, end]) => end)).toEqual([
    ...['01-30T12:00', '02-28T12:00', '03-30T12:00', '04-30T12:00', '05-30T12:00'],
  ])
  expect((await turns('over a night')).slice(0, 3)).toEqual([
    ['01-30T18:00', '01-31T06:00'],
    ['02-28T18:00', '03-01T06:00'],
    // that of March was over before a worker ran
    ['04-30T18:00', '05-01T06:00'],
  ])
  expect((await turns('moved')).map(([, end]) => end)).toEqual([
    ...['01-31T23:59', '02-28T23:59', '03-20T12:00', '04-20T12:00', '05-20T12:00'],
  ])
  // a turn of a former version, which February had shortened for good
  await other.sql(
    `update app.challenges set first_start_at = null, first_end_at = null, turn = null, end_at = '2027-05-28T23:59:59Z' where name = 'whole' and end_at > '2027-05-02T00:00:00Z'`,
  )
  await until(['2027-05-29T00:00:00Z'])
  expect((await turns('whole')).at(-1)).toEqual(['06-01T00:00', '06-30T23:59'])
})

test('a simulation says what the window before would have come to', async () => {
  harness.setTime('2026-11-21T12:00:00Z')
  const c = await define({ start_at: '2026-11-21T00:00:00Z', end_at: '2026-11-23T00:00:00Z', goal_value: 2 })
  const users = [await someone(), await someone()]
  for (const user of users) await send(user, c.event_name, { occurred_at: '2026-11-19T12:00:00Z' })
  await send(users[0] as Client, c.event_name, { occurred_at: '2026-11-20T12:00:00Z' })
  expect((await admin.post(`/challenges/${c.id}/simulate`)).data).toEqual({
    expected_completions: 1,
    is_estimate: false,
    margin: 0,
    rate: 0.5,
  })
  const empty = await define()
  expect((await admin.post(`/challenges/${empty.id}/simulate`)).data).toEqual({
    expected_completions: 0,
    is_estimate: false,
    margin: 0,
    rate: null,
  })
})

test('replay counts; two users who become one have both counts, and one reward; a reset user is paid again', async () => {
  const c = await define({ goal_value: 4, reward_xp: 10 })
  const done = await define({ goal_value: 1, reward_xp: 100 })
  const account = await project.app.post('/client/auth/email/signup', {
    email: `${randomUUID()}@example.org`,
    password: 'a long passphrase',
  })
  const survivor = project.app.with({ authorization: `Bearer ${account.data.session_token}` })
  const other = await project.user()
  for (const who of [survivor, other]) {
    for (let n = 0; n < 2; n += 1) await send(who, c.event_name)
    await send(who, done.event_name)
  }
  await project.sql('update app.challenge_participants set progress = 1 where app_user_id = $1 and challenge_id = $2', [
    other.id,
    c.id,
  ])
  const { data } = await admin.post('/events/replay', {
    since: from(-3_600_000),
    until: from(3_600_000),
    targets: ['challenges'],
    user_ids: [other.id],
    dry_run: false,
  })
  const replayed = await runOperationJob(harness, project, 'events__replay', data.operation_id)
  expect(replayed.result.targets.challenges.differences).toEqual([
    { app_user_id: other.id, challenge_id: c.id, before: 1, after: 2 },
  ])
  expect((await survivor.post('/client/auth/merge', { from_session_token: other.sessionToken })).status).toBe(200)
  expect((await see(survivor, c.id)).my).toMatchObject({ status: 'completed', progress: 4 })
  expect((await see(survivor, done.id)).my).toMatchObject({ status: 'completed', progress: 2 })
  expect((await me(survivor)).total).toBe(110)
  await project.sql('delete from app.challenge_participants where app_user_id = $1', [account.data.user.id])
  await send(survivor, done.event_name)
  expect((await me(survivor)).total).toBe(210)
})
