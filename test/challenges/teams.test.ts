import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Someone, startTeams } from '#test/support/challenge_teams.ts'
import { day } from '#test/support/challenges.ts'
import { openTransaction } from '#test/support/transaction.ts'

const {
  harness,
  project,
  admin,
  emitted,
  me,
  ledger,
  from,
  define,
  defineTeams,
  send,
  see,
  group,
  enter,
  some,
  mine,
  join,
  runTeamTasks,
} = await startTeams()

describe('a team', () => {
  test('comes to the goal together: who did anything is completed and paid, who did nothing is not', async () => {
    const [a, b, idle, stranger] = (await some(4)) as [Someone, Someone, Someone, Someone]
    const team = await group(a, b, idle)
    const c = await defineTeams({ goal_value: 3, reward: { xp: 5 } })
    expect((await admin.get(`/challenges/${c.id}`)).data.team_mode).toBe('group')
    expect((await join(idle, c.id)).data).toMatchObject({ status: 'in_progress', progress: 0, group_id: team })
    expect(await send(a, c.event_name)).toEqual([
      { id: c.id, name: c.name, progress: 1, goal_value: 3, completed: false },
    ])
    await send(b, c.event_name)
    await runTeamTasks()
    expect(await mine(a, c.id)).toEqual({
      status: 'in_progress',
      progress: 1,
      ratio: 0.6667,
      completed_at: null,
      team: { group_id: team, progress: 2, members: 3, reached_at: null },
    })
    // one who is in no group counts for nobody, and completes nothing, however much it is
    for (let n = 0; n < 3; n += 1) await send(stranger, c.event_name)
    await runTeamTasks()
    expect(await mine(stranger, c.id)).toMatchObject({ status: 'in_progress', progress: 3, ratio: 0, team: null })
    await send(a, c.event_name)
    await runTeamTasks()
    for (const [who, progress] of [
      [a, 2],
      [b, 1],
    ] as const) {
      expect(await mine(who, c.id)).toMatchObject({
        status: 'completed',
        progress,
        ratio: 1,
        completed_at: expect.any(String),
        team: { group_id: team, progress: 3, members: 3, reached_at: expect.any(String) },
      })
      expect((await ledger(who.id)).map(({ amount, source }) => [amount, source])).toEqual([[15, 'challenge']])
      const emittedEvents = await emitted(who.id, 'svc.challenge.%')
      expect(emittedEvents.map(({ event_name, is_historical }) => [event_name, is_historical])).toEqual([
        ['svc.challenge.joined', false],
        ['svc.challenge.completed', false],
      ])
    }
    expect(await mine(idle, c.id)).toMatchObject({ status: 'in_progress', completed_at: null, team: { progress: 3 } })
    expect((await me(idle)).total).toBe(0)
    expect((await me(stranger)).total).toBe(0)
    // the first thing that the idle one does completes at once
    expect(await send(idle, c.event_name)).toMatchObject([{ progress: 1, completed: true }])
    expect((await me(idle)).total).toBe(15)
    await runTeamTasks()
    expect((await me(a)).total).toBe(15)
    // the board ranks people; administrators see whose team they are
    const board = (await a.get(`/client/challenges/${c.id}/leaderboard`)).data
    expect(board.map(({ progress, user }: any) => [user.id, progress])).toEqual([
      [stranger.id, 3],
      [a.id, 2],
      [b.id, 1],
      [idle.id, 1],
    ])
    expect(board[0]).not.toHaveProperty('group_id')
    const listed = (await admin.get(`/challenges/${c.id}/participants`)).data
    expect(listed.map(({ group_id }: any) => group_id)).toEqual([null, team, team, team])
    // of other challenges nothing of it is said
    const alone = await define()
    await send(a, alone.event_name)
    expect(await mine(a, alone.id)).not.toHaveProperty('team')
  })

  test('is paid once each when all post at once around the goal, and nobody waits in a circle', async () => {
    const members = await some(12)
    const team = await group(...members)
    const c = await defineTeams({ goal_value: 30 })
    let isOver = false
    const background = (async () => {
      while (!isOver) await runTeamTasks()
    })()
    await Promise.all(members.flatMap((who) => Array.from({ length: 4 }, () => send(who, c.event_name))))
    isOver = true
    await background
    await runTeamTasks()
    const rows = await project.sql(
      `select p.status, p.progress::int, p.group_id, (select count(*)::int from app.xp_transactions t where t.app_user_id = p.app_user_id) as paid
         from app.challenge_participants p where p.challenge_id = $1`,
      [c.id],
    )
    expect(rows).toEqual(members.map(() => ({ status: 'completed', progress: 4, group_id: team, paid: 1 })))
    for (const { id } of members) expect(await emitted(id, 'svc.challenge.completed')).toHaveLength(1)
    expect(await project.sql(`select task, last_error from app.outbox where task = 'challenges__team'`)).toEqual([])
  })

  test('lets nobody wait for another member’s event, and misses none that ends later', async () => {
    const [slow, quick] = (await some(2)) as [Someone, Someone]
    await group(slow, quick)
    const c = await defineTeams({ goal_value: 2 })
    await runTeamTasks()
    const open = await openTransaction(project, 'app_user', { 'app.caller': 'user', 'app.user_id': slow.id })
    await open.query('select api.events_post($1, null, null)', [JSON.stringify({ event_name: c.event_name })])
    await send(quick, c.event_name)
    await runTeamTasks()
    expect(await mine(quick, c.id)).toMatchObject({ status: 'in_progress', team: { progress: 1 } })
    await open.commit()
    await runTeamTasks()
    for (const who of [slow, quick]) expect(await mine(who, c.id)).toMatchObject({ status: 'completed' })
  })

  test('is counted right while its members come and go and post', async () => {
    const members = await some(8)
    const [owner] = members as [Someone]
    const open = (await owner.post('/client/groups', { name: 'Open' })).data.id as string
    for (const { id } of members.slice(1)) await enter(open, id)
    const c = await defineTeams({ goal_value: 1000 })
    let isOver = false
    const background = (async () => {
      while (!isOver) await runTeamTasks()
    })()
    const answers = await Promise.all(
      members.slice(1).map(async (who) => {
        const all = []
        for (let n = 0; n < 3; n += 1) {
          const both = await Promise.all([
            who.post(`/client/groups/${open}/leave`),
            who.post('/client/events', { event_name: c.event_name }),
          ])
          all.push(...both, await who.post(`/client/groups/${open}/join`))
        }
        return all.map(({ status }) => status)
      }),
    )
    isOver = true
    await background
    expect(answers.flat().filter((status) => status >= 300)).toEqual([])
    await send(owner, c.event_name)
    expect((await mine(owner, c.id)).team).toMatchObject({ progress: 22, members: 8, reached_at: null })
  })

  test('of many is completed in several steps', async () => {
    const [owner] = (await some(1)) as [Someone]
    const made = await owner.post('/client/groups', { name: 'Crowd', max_members: 1000 })
    const c = await defineTeams({ goal_value: 301 })
    await runTeamTasks()
    await project.sql(
      `with crowd as (insert into app.users (anonymous_id, display_name) select 'crowd ' || n, 'One of many' from generate_series(1, 300) n returning id),
            entered as (insert into app.group_members (group_id, app_user_id) select $1::uuid, id from crowd)
       insert into app.challenge_participants (challenge_id, app_user_id, progress, group_id) select $2, id, 1, $1::uuid from crowd`,
      [made.data.id, c.id],
    )
    await send(owner, c.event_name)
    await runTeamTasks()
    expect(
      await project.sql(
        `select p.status, count(*)::int, sum(t.total)::int as xp from app.challenge_participants p join app.xp_totals t using (app_user_id)
          where p.challenge_id = $1 group by p.status`,
        [c.id],
      ),
    ).toEqual([{ status: 'completed', count: 301, xp: 3010 }])
    // a group that goes leaves its members to their next one
    const other = await group(owner)
    await project.sql('delete from app.groups where id = $1', [made.data.id])
    expect((await mine(owner, c.id)).team).toMatchObject({ group_id: other, progress: 1, members: 1 })
    await admin.delete(`/challenges/${c.id}`)
  })

  test('is looked at by two at once, and a second look does nothing', async () => {
    const members = await some(3)
    const team = await group(...members)
    const c = await defineTeams({ goal_value: 3 })
    for (const who of members) await send(who, c.event_name)
    const look = () =>
      project.as(
        'app_worker',
        { 'app.caller': 'worker' },
        `select ((api.challenge_team_complete('${c.id}', '${team}', false, 2)).body -> 'data' ->> 'completed')::int as n`,
      )
    const looks = await Promise.all([look(), look(), look(), look()])
    expect(looks.flat().reduce((sum: number, { n }: any) => sum + n, 0)).toBe(3)
    expect((await look())[0]).toEqual({ n: 0 })
    for (const who of members) expect((await me(who)).total).toBe(10)
    await expect(project.sql(`select api.challenge_team_complete('${c.id}', '${team}', false, 2)`)).rejects.toThrow(
      /by a worker/,
    )
    for (const role of ['app_user', 'app_server', 'app_admin'] as const)
      for (const statement of [
        `select api.challenge_team_complete('${c.id}', '${team}', false, 2)`,
        `select internal.challenge_team_json(c, '${team}') from app.challenges c`,
        'delete from app.challenge_teams',
        `insert into app.challenge_teams (challenge_id, group_id) values ('${c.id}', '${team}')`,
      ])
        await expect(project.as(role, { 'app.caller': 'worker' }, statement), `${role} ${statement}`).rejects.toThrow(
          /permission denied/,
        )
  })

  test('does not count who left the challenge, and has them again when they join again', async () => {
    const [a, b] = (await some(2)) as [Someone, Someone]
    await group(a, b)
    const c = await defineTeams({ goal_value: 3 })
    await send(a, c.event_name)
    await send(a, c.event_name)
    await a.post(`/client/challenges/${c.id}/leave`)
    await send(b, c.event_name)
    await runTeamTasks()
    expect(await mine(b, c.id)).toMatchObject({ status: 'in_progress', team: { progress: 1, members: 1 } })
    expect((await join(a, c.id)).status).toBe(201)
    await runTeamTasks()
    for (const who of [a, b]) expect(await mine(who, c.id)).toMatchObject({ status: 'completed' })
  })
})

describe('whose team somebody is', () => {
  test('the group named, else the one they are in longest; only their own', async () => {
    const [user, other] = (await some(2)) as [Someone, Someone]
    const first = await group(user)
    harness.advance(1)
    const second = await group(user)
    const theirs = await group(other)
    const c = await defineTeams({ goal_value: 5 })
    // a private group of others and one that is not there look the same
    for (const wrong of [theirs, randomUUID()]) {
      const answer = await join(user, c.id, wrong)
      expect([answer.status, answer.error?.code, answer.error?.details]).toEqual([
        400,
        'VALIDATION_ERROR',
        { field: 'group_id', reason: 'must be the id of a group that you are in' },
      ])
    }
    expect((await user.post(`/client/challenges/${c.id}/join`, { group_id: 'x' })).error?.code).toBe('VALIDATION_ERROR')
    const alone = await define()
    expect((await join(user, alone.id, first)).error).toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { field: 'group_id' },
    })
    expect((await see(user, c.id)).my).toBeNull()
    await send(user, c.event_name)
    expect((await mine(user, c.id)).team.group_id).toBe(first)
    const changed = await join(user, c.id, second)
    expect([changed.status, changed.data.group_id]).toEqual([200, second])
    expect((await join(user, c.id)).data.group_id).toBe(second)
    const named = await defineTeams()
    const joined = await join(user, named.id, second)
    expect([joined.status, joined.data.group_id]).toEqual([201, second])
    // before the start too
    const early = await defineTeams({ start_at: from(day) })
    expect((await join(user, early.id)).data.group_id).toBe(first)
    expect((await join(user, early.id, second)).data.group_id).toBe(second)
    // completed is final: the team stays
    const done = await defineTeams({ goal_value: 1 })
    await send(user, done.event_name)
    await runTeamTasks()
    expect((await join(user, done.id, second)).data).toMatchObject({ status: 'completed', group_id: first })
  })

  test('follows the memberships: progress is taken along, what is completed stays', async () => {
    const [a, b, late] = (await some(3)) as [Someone, Someone, Someone]
    const red = await group(a, b, late)
    harness.advance(1)
    const blue = await group(a)
    await enter(blue, b.id)
    const c = await defineTeams({ goal_value: 4 })
    await send(b, c.event_name)
    await send(b, c.event_name)
    await send(a, c.event_name)
    await b.post(`/client/groups/${red}/leave`)
    await runTeamTasks()
    expect((await mine(a, c.id)).team).toMatchObject({ group_id: red, progress: 1, members: 1 })
    expect((await mine(b, c.id)).team).toMatchObject({ group_id: blue, progress: 2, members: 1 })
    await b.post(`/client/groups/${blue}/leave`)
    expect(await mine(b, c.id)).toMatchObject({ progress: 2, ratio: 0, team: null })
    await send(a, c.event_name)
    await runTeamTasks()
    expect(await mine(a, c.id)).toMatchObject({ status: 'in_progress' })
    // who comes in brings what they have: that may be the goal
    await enter(red, b.id)
    await runTeamTasks()
    for (const who of [a, b]) expect(await mine(who, c.id)).toMatchObject({ status: 'completed', progress: 2 })
    // the goal was reached, whoever goes: the next who does anything is completed as well
    await b.post(`/client/groups/${red}/leave`)
    expect(await mine(b, c.id)).toMatchObject({ status: 'completed', team: null })
    expect((await mine(a, c.id)).team).toMatchObject({ progress: 2 })
    expect(await send(late, c.event_name)).toMatchObject([{ completed: true }])
    await runTeamTasks()
    for (const who of [a, b, late]) expect((await me(who)).total).toBe(10)
  })

  test('stays as it was at the end; what comes late for a day still counts for it', async () => {
    const began = Date.now() - 3 * day
    const at = (hours: number) => new Date(began + hours * 3_600_000).toISOString()
    harness.setTime(at(0))
    const [a, b, rich] = (await some(3)) as [Someone, Someone, Someone]
    const team = await group(a, b)
    const c = await defineTeams({ start_at: at(-1), end_at: at(6), goal_value: 4 })
    await send(a, c.event_name)
    await send(b, c.event_name)
    for (let n = 0; n < 3; n += 1) await send(rich, c.event_name)
    harness.setTime(at(6))
    // too late for both: neither is help of others let in, nor is help taken away
    await enter(team, rich.id)
    await b.post(`/client/groups/${team}/leave`)
    await runTeamTasks()
    expect((await mine(rich, c.id)).team).toBeNull()
    expect(await mine(a, c.id)).toMatchObject({ status: 'expired', team: { progress: 2, members: 2 } })
    expect((await join(a, c.id, team)).status).toBe(200)
    await send(a, c.event_name, { occurred_at: at(1) })
    await runTeamTasks()
    expect(await mine(a, c.id)).toMatchObject({ status: 'expired', progress: 2 })
    await send(a, c.event_name, { occurred_at: at(2) })
    await runTeamTasks()
    for (const who of [a, b]) expect(await mine(who, c.id)).toMatchObject({ status: 'completed' })
    expect(await mine(rich, c.id)).toMatchObject({ status: 'expired' })
  })
})
