import { expect, test } from 'vitest'
import { define, group, inGroup } from '#test/support/collection_rows.ts'
import { type Answer, type Client, startHarness, type User } from '#test/support/harness.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project({ environment: 'development' })
const asDeveloper = () =>
  openTransaction(project, 'app_admin', {
    'app.caller': 'developer',
    'app.developer_id': project.developer.id,
    'app.project_id': project.id,
  })

const notes = await define(project, {
  name: 'notes',
  columns: [
    { name: 'a', type: 'text' },
    { name: 'k', type: 'text', unique: true },
  ],
})
const shared = await define(project, {
  name: 'shared',
  owner_scope: 'group',
  read_policy: 'member',
  write_policy: 'member:member',
  columns: [{ name: 'a', type: 'text' }],
})

type Standing = { user: User; row: string; team: string; open: string; session: string; other: User }

const stand = async (): Promise<Standing> => {
  const [user, other] = [await project.user(), await project.user()]
  const { data: row } = await user.post(notes, { a: 'x' })
  const team = await group(project, [
    [user, 'owner'],
    [other, 'member'],
  ])
  const open = await group(project, [[other, 'owner']], true)
  await user.post('/client/users/me/push-token', { token: `t${user.id}`, platform: 'ios' })
  const session = await user.post('/client/sessions/start', { platform: 'ios' })
  return { user, row: row.id, team, open, session: session.data?.id, other }
}

const gone = [400, 401, 403, 404]

/** What a user does while they are being deleted: nothing breaks, and nothing of theirs stays. */
test.each<[string, (standing: Standing) => Promise<Answer>, number[]]>([
  ['a row', ({ user }) => user.post(notes, { a: 'y' }), [404]],
  ['a row with a key', ({ user }) => user.post(notes, { a: 'y' }, { 'idempotency-key': 'k' }), [404]],
  ['rows', ({ user }) => user.post(`${notes}/batch`, { rows: [{ a: 'y' }] }), [404]],
  [
    'an upsert',
    ({ user }) => user.post(`${notes}?on_conflict=update&conflict_target=k`, { a: 'y', k: user.id }),
    [404],
  ],
  ['a patch', ({ user, row }) => user.patch(`${notes}/${row}`, { a: 'y' }), gone],
  ['a deletion', ({ user, row }) => user.delete(`${notes}/${row}`), gone],
  [
    'a transaction',
    ({ user, row }) =>
      user.post('/client/collections/transaction', {
        operations: [
          { op: 'update', collection: 'notes', id: row, data: { a: 'z' } },
          { op: 'insert', collection: 'notes', data: { a: 'y' } },
        ],
      }),
    gone,
  ],
  ["a group's row", ({ user, team }) => inGroup(user, team).post(shared, { a: 'y' }), gone],
  ["a server's row", ({ user }) => project.server.post(notes, { a: 'y', user_id: user.id }), gone],
  ['a group', ({ user }) => user.post('/client/groups', { name: 'g' }), [404]],
  ['joining', ({ user, open }) => user.post(`/client/groups/${open}/join`), [404]],
  ['leaving', ({ user, team }) => user.post(`/client/groups/${team}/leave`), [404]],
  [
    'being added to a group',
    ({ user, open }) => project.admin.post(`/groups/${open}/members`, { app_user_id: user.id }),
    [404],
  ],
  [
    'a push token',
    ({ user }) => user.post('/client/users/me/push-token', { token: `n${user.id}`, platform: 'ios' }),
    [404],
  ],
  ['an app session', ({ user }) => user.post('/client/sessions/start', { platform: 'ios' }), [404]],
  ['a heartbeat', ({ user, session }) => user.post(`/client/sessions/${session}/heartbeat`), [404]],
  ['the end of a session', ({ user, session }) => user.post(`/client/sessions/${session}/end`), [404]],
  ['an event', ({ user }) => user.post('/client/events', { event_name: 'e' }), gone],
  ['a profile', ({ user }) => user.patch('/client/users/me', { display_name: 'N' }), [404]],
  ['the deletion of oneself', ({ user }) => user.delete('/client/users/me', { confirm: 'DELETE' }), gone],
  ['another deletion', ({ user }) => project.admin.delete(`/users/${user.id}`), [404]],
  ['a reset', ({ user }) => project.admin.delete(`/users/${user.id}/reset`), [404]],
  ['a ban', ({ user }) => project.admin.patch(`/users/${user.id}`, { is_banned: true }), [404]],
  ['a refresh', ({ user }) => project.app.post('/client/auth/refresh', { refresh_token: user.refreshToken }), [401]],
  ['a session for testing', ({ user }) => project.admin.post(`/users/${user.id}/session`), [404]],
  [
    'being merged',
    ({ user, other }) => other.post('/client/auth/merge', { from_session_token: user.sessionToken }),
    [401],
  ],
  ['merging', ({ user, other }) => user.post('/client/auth/merge', { from_session_token: other.sessionToken }), [401]],
  [
    'an address',
    ({ user }) => user.post('/client/auth/link', { provider: 'password', password: 'a long passphrase' }),
    gone,
  ],
])('%s, while the user is deleted', async (_name, ask, expected) => {
  const standing = await stand()
  const { id } = standing.user
  const deleting = await asDeveloper()
  await deleting.query('select api.user_delete($1)', [id])
  const asking = ask(standing)
  await untilBlocked(project)
  await deleting.commit()
  const answer = await asking
  expect(expected, answer.text).toContain(answer.status)
  const left = []
  for (const { table_name, user_column } of await project.sql(
    `select table_name, user_column from internal.user_data where to_regclass(table_name) is not null`,
  )) {
    const [{ n }] = await project.sql(`select count(*)::int as n from ${table_name} where ${user_column} = $1`, [id])
    if (n > 0) left.push(table_name)
  }
  expect(left).toEqual([])
  const [counted] = await project.sql(
    `select count(*)::int as n from app.groups g
      where g.member_count <> (select count(*) from app.group_members m where m.group_id = g.id)`,
  )
  expect(counted).toEqual({ n: 0 })
})

/** A deletion locks the user, then their rows: whoever moves rows and adds others does, too. */
test.each<[string, (user: User) => { client: Client; data: object }]>([
  ['the user', (user) => ({ client: user, data: { a: 'new' } })],
  ['a server', ({ id }) => ({ client: project.server, data: { a: 'new', user_id: id } })],
])('no deadlock of a deletion with a transaction of %s', async (_name, by) => {
  const user = await project.user()
  const { client, data } = by(user)
  const [first, second] = [(await user.post(notes, { a: '1' })).data.id, (await user.post(notes, { a: '2' })).data.id]
  const holding = await openTransaction(project, 'app_admin', {})
  await holding.query(`select from collections.notes where id = $1 for update`, [second])
  const writing = client.post('/client/collections/transaction', {
    operations: [
      { op: 'update', collection: 'notes', id: first, data: { a: 'moved' } },
      { op: 'update', collection: 'notes', id: second, data: { a: 'moved' } },
      { op: 'insert', collection: 'notes', data },
    ],
  })
  await untilBlocked(project)
  const deleting = project.admin.delete(`/users/${user.id}`)
  await untilBlocked(project, 2)
  await holding.commit()
  expect([(await writing).status, (await deleting).status]).toEqual([200, 200])
  expect(await project.sql('select from collections.notes where user_id = $1', [user.id])).toEqual([])
})

test('no deadlock of the deletion of an owner with the reset of the heir', async () => {
  const [owner, heir, third] = [await project.user(), await project.user(), await project.user()]
  const team = await group(project, [
    [owner, 'owner'],
    [heir, 'member'],
  ])
  const holding = await asDeveloper()
  await holding.query('select api.group_member_add($1, $2)', [team, third.id])
  const deleting = project.admin.delete(`/users/${owner.id}`)
  await untilBlocked(project)
  const resetting = project.admin.delete(`/users/${heir.id}/reset?sections=groups`)
  await untilBlocked(project, 2)
  await holding.commit()
  expect([(await deleting).status, (await resetting).status]).toEqual([200, 200])
  const roster = await project.sql('select app_user_id, role from app.group_members where group_id = $1', [team])
  expect(roster).toEqual([{ app_user_id: third.id, role: 'owner' }])
})

/** What a user does while another takes over all that is theirs: nothing of it is left with nobody. */
test.each<[string, (standing: Standing) => Promise<Answer>]>([
  ['a row', ({ user }) => user.post(notes, { a: 'y' })],
  ['a patch', ({ user, row }) => user.patch(`${notes}/${row}`, { a: 'y' })],
  ["a group's row", ({ user, team }) => inGroup(user, team).post(shared, { a: 'y' })],
  ['joining', ({ user, open }) => user.post(`/client/groups/${open}/join`)],
  ['leaving', ({ user, team }) => user.post(`/client/groups/${team}/leave`)],
  ['an event', ({ user }) => user.post('/client/events', { event_name: 'e' })],
  ['a push token', ({ user }) => user.post('/client/users/me/push-token', { token: `m${user.id}`, platform: 'ios' })],
  ['an app session', ({ user }) => user.post('/client/sessions/start', { platform: 'ios' })],
  ['the deletion of oneself', ({ user }) => user.delete('/client/users/me', { confirm: 'DELETE' })],
])('%s, while the user is merged', async (_name, ask) => {
  const standing = await stand()
  const { user, other } = standing
  const sessions = await project.sql('select id, app_user_id from app.user_sessions where app_user_id = any ($1)', [
    [user.id, other.id],
  ])
  const sessionOf = ({ id }: User) => sessions.find(({ app_user_id }) => app_user_id === id)?.id
  const merging = await openTransaction(project, 'app_auth', {
    'app.caller': 'user',
    'app.user_id': other.id,
    'app.session_id': sessionOf(other),
    'app.project_id': project.id,
  })
  await merging.query('select api.auth_merge($1, $2)', [user.id, sessionOf(user)])
  const asking = ask(standing)
  await untilBlocked(project)
  await merging.commit()
  const answer = await asking
  expect([401, 403, 404], answer.text).toContain(answer.status)
  const [kept] = await project.sql(
    `select (select count(*)::int from collections.notes where user_id = $1) as rows,
            (select array_agg(role) from app.group_members where group_id = $2) as roles`,
    [other.id, standing.team],
  )
  expect(kept).toEqual({ rows: 1, roles: ['owner'] })
})
