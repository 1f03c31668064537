import { expect, test } from 'vitest'
import { define, group, inGroup } from '#test/support/collection_rows.ts'
import { type Answer, startHarness, type User } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const day = 86_400_000
const from = (offset: number) => new Date(harness.now().getTime() + offset).toISOString()

/** Everything that moves members, at once: who is deleted takes nothing with them that others need, and every count is true. */
test('a storm of joins, leaves, rows, events, resets and deletions', async () => {
  const path = await define(project, {
    name: 'shared',
    owner_scope: 'group',
    read_policy: 'member',
    write_policy: 'member:member',
    columns: [{ name: 'a', type: 'text' }],
  })
  const challenge = await project.admin.post('/challenges', {
    ...{ name: 'Team', event_name: 'run', goal_type: 'event_count', goal_value: 5, team_mode: 'group' },
    ...{ start_at: from(-day), end_at: from(day) },
  })
  expect(challenge.status, challenge.text).toBe(201)
  const users: User[] = []
  for (let n = 0; n < 12; n += 1) users.push(await project.user())
  const [one, two, three] = users as [User, User, User]
  // private ones own rows, public ones are joined
  const team = await group(
    project,
    users.map((user, n) => [user, n === 0 ? 'owner' : 'member'] as const),
  )
  const small = await group(project, [
    [one, 'owner'],
    [two, 'member'],
  ])
  const open: string[] = []
  for (const user of users.slice(0, 3)) {
    const { data } = await user.post('/client/groups', { name: 'open', max_members: 6 })
    open.push(data.id)
  }
  const asked: Promise<Answer>[] = []
  for (const user of users) {
    asked.push(
      ...open.map((id) => user.post(`/client/groups/${id}/join`)),
      inGroup(user, team).post(path, { a: 'x' }),
      user.post('/client/events', { event_name: 'run' }),
      user.post(`/client/groups/${team}/leave`),
      ...open.map((id) => project.admin.post(`/groups/${id}/members`, { app_user_id: user.id })),
      project.server.post('/client/events', {
        events: users.map(({ id }) => ({ event_name: 'run', app_user_id: id })),
      }),
    )
  }
  asked.push(
    ...[one, two, three].map(({ id }) => project.admin.delete(`/users/${id}`)),
    project.admin.delete(`/users/${users[4]?.id}/reset?sections=groups`),
    project.admin.delete(`/users/${users[5]?.id}/reset`),
    inGroup(project.server, team).post(path, { a: 'y', user_id: users[6]?.id }),
    project.server.post('/client/collections/transaction', {
      operations: users.map(({ id }) => ({
        op: 'insert',
        collection: 'shared',
        data: { a: 'z', user_id: id, group_id: small },
      })),
    }),
  )
  const answers = await Promise.all(asked)
  expect(answers.filter(({ status }) => status >= 500).map(({ text }) => text)).toEqual([])
  const wrong = await project.sql(
    `select g.id from app.groups g
      where g.member_count <> (select count(*) from app.group_members m where m.group_id = g.id)
         or g.member_count > g.max_members or g.member_count = 0
         or (select count(*) from app.group_members m where m.group_id = g.id and m.role = 'owner') <> 1`,
  )
  expect(wrong).toEqual([])
  expect(await project.sql('select from app.groups where id = $1', [small])).toEqual([])
  const orphans = await project.sql(
    `select r.id from collections.shared r where r.group_id not in (select g.id from app.groups g)
        or r.user_id not in (select u.id from app.users u)`,
  )
  expect(orphans).toEqual([])
})
