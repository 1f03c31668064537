import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { define, inGroup } from '#test/support/collection_rows.ts'
import { type Answer, startHarness, type User } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { meetingBehind } from '#test/support/transaction.ts'

/** What owners and admins do with a group, ranks, and what administrators of the project do. */
const harness = await startHarness()
const project = await harness.project()
const stranger = await project.user()

const roles = ['owner', 'admin', 'member', 'viewer'] as const
type Role = (typeof roles)[number]
type Team = { id: string; at: string } & Record<Role, User>
/** A group with a member in each role. */
const team = async (fields: object = {}): Promise<Team> => {
  const [owner, admin, member, viewer] = (await Promise.all(roles.map(() => project.user()))) as [
    User,
    User,
    User,
    User,
  ]
  const { data } = await owner.post('/client/groups', { name: 'a team', ...fields })
  for (const [role, user] of [
    ['admin', admin],
    ['member', member],
    ['viewer', viewer],
  ] as const)
    await project.admin.post(`/groups/${data.id}/members`, { app_user_id: user.id, role })
  return { id: data.id, at: `/client/groups/${data.id}`, owner, admin, member, viewer }
}
const rolesOf = async (id: string) =>
  Object.fromEntries(
    (await project.sql('select app_user_id, role from app.group_members where group_id = $1', [id])).map((row) => [
      row.app_user_id,
      row.role,
    ]),
  )
const outcome = ({ status, error }: Answer) => [status, error?.code]
const forbidden = [403, 'GROUP_ROLE_FORBIDDEN']
const absent = [404, 'NOT_FOUND']
const events = (user: User, group: string) =>
  project.sql(
    `select event_name, properties from app.engagement_events
      where app_user_id = $1 and properties ->> 'group_id' = $2 and event_name <> 'svc.group.joined' order by received_at, id`,
    [user.id, group],
  )

describe('changing a group', () => {
  test('is for owner and admin; a private group is not revealed to strangers', async () => {
    for (const is_public of [true, false]) {
      const { at, owner, admin, member, viewer } = await team({ is_public })
      const changed = await admin.patch(at, { name: 'renamed', description: 'd', metadata: { a: 1 }, id: randomUUID() })
      expect(changed.status).toBe(200)
      expect(changed.data).toMatchObject({ name: 'renamed', description: 'd', metadata: { a: 1 }, my_role: 'admin' })
      expect((await owner.patch(at, { description: null })).data).toMatchObject({ description: null, my_role: 'owner' })
      const same = await owner.patch(at, {})
      expect([same.status, same.data]).toEqual([200, (await owner.get(at)).data])
      for (const one of [member, viewer]) expect(outcome(await one.patch(at, { name: 'x' }))).toEqual(forbidden)
      expect(outcome(await stranger.patch(at, { name: 'x' }))).toEqual(is_public ? forbidden : absent)
      expect((await owner.get(at)).data.name).toBe('renamed')
    }
  })

  test('refuses wrong fields, and codes of its own', async () => {
    const { at, id, owner } = await team()
    for (const [body, field] of [
      [{ name: '' }, 'name'],
      [{ name: null }, 'name'],
      [{ name: 'x'.repeat(101) }, 'name'],
      [{ description: 'x'.repeat(2001) }, 'description'],
      [{ avatar_url: 'x'.repeat(2001) }, 'avatar_url'],
      [{ max_members: 100_001 }, 'max_members'],
      [{ metadata: { x: 'x'.repeat(8192) } }, 'metadata'],
      [{ is_public: null }, 'is_public'],
    ] as const) {
      expectInvalid(await owner.patch(at, body), field)
      expectInvalid(await project.admin.patch(`/groups/${id}`, body), field)
    }
    expectRefusal(await owner.patch(at, '[]'), 400, 'INVALID_BODY')
    expectRefusal(await owner.patch('/client/groups/x', {}), 400, 'INVALID_ID')
    expectRefusal(await owner.patch(`/client/groups/${randomUUID()}`, {}), 404, 'NOT_FOUND')
  })

  test('keeps its members within max_members, and the rows that it owns private', async () => {
    const { at, id, owner } = await team({ is_public: false })
    expectRefusal(await owner.patch(at, { max_members: 3 }), 409, 'GROUP_FULL')
    expect((await owner.patch(at, { max_members: 4 })).data.max_members).toBe(4)
    const rows = await define(project, {
      name: 'kept',
      owner_scope: 'group',
      columns: [{ name: 'a', type: 'text' }],
    })
    const row = await inGroup(owner, id).post(rows, { a: 'x' })
    expect(row.status).toBe(201)
    expectRefusal(await owner.patch(at, { is_public: true }), 409, 'GROUP_OWNS_ROWS')
    expectRefusal(await project.admin.patch(`/groups/${id}`, { is_public: true }), 409, 'GROUP_OWNS_ROWS')
    expect((await stranger.get(at)).status).toBe(404)
    await project.sql('delete from collections.kept where group_id = $1', [id])
    expect((await owner.patch(at, { is_public: true })).data.is_public).toBe(true)
    expect((await stranger.post(`${at}/join`)).error?.code).toBe('GROUP_FULL')
  })

  test('ends in deletion by the owner alone, with members, invites and rows', async () => {
    const { at, id, owner, admin, member } = await team({ is_public: false })
    await owner.post(`${at}/invites`, {})
    const rows = await define(project, { name: 'ended', owner_scope: 'group', columns: [{ name: 'a', type: 'text' }] })
    expect((await inGroup(owner, id).post(rows, { a: 'x' })).status).toBe(201)
    for (const one of [admin, member]) expect(outcome(await one.delete(at))).toEqual(forbidden)
    expect(outcome(await stranger.delete(at))).toEqual(absent)
    const deleted = await owner.delete(at)
    expect([deleted.status, deleted.data]).toEqual([200, { deleted: true }])
    expect(outcome(await owner.delete(at))).toEqual(absent)
    for (const table of ['group_members', 'group_invites'])
      expect(await project.sql(`select from app.${table} where group_id = $1`, [id])).toEqual([])
    expect(await project.sql('select from collections.ended')).toEqual([])
    expect(await events(owner, id)).toEqual([
      { event_name: 'svc.group.deleted', properties: { group_id: id, member_count: 4 } },
    ])
  })
})

describe('ranks', () => {
  test('each role gives roles below its own, to members below it', async () => {
    for (const actor of roles) {
      for (const target of roles) {
        if (actor === target) continue
        for (const role of roles) {
          if (role === target) continue
          const of = await team()
          const rank = (of: Role) => 4 - roles.indexOf(of)
          const may = rank(actor) >= 3 && rank(target) < rank(actor) && rank(role) < rank(actor)
          const answer = await of[actor].patch(`${of.at}/members/${of[target].id}`, { role })
          expect([actor, target, role, ...outcome(answer)]).toEqual(
            may ? [actor, target, role, 200, undefined] : [actor, target, role, ...forbidden],
          )
          expect((await rolesOf(of.id))[of[target].id]).toBe(may ? role : target)
          if (!may) continue
          expect(answer.data).toMatchObject({ role, app_user_id: of[target].id, app_users: { id: of[target].id } })
          expect(await events(of[target], of.id)).toEqual([
            { event_name: 'svc.group.role_changed', properties: { group_id: of.id, role, previous_role: target } },
          ])
        }
      }
    }
  }, 120_000)

  test('each role removes members below it, who lose what they had there', async () => {
    for (const actor of roles) {
      const of = await team({ is_public: false })
      for (const target of ['viewer', 'member', 'admin', 'owner'] as const) {
        const may = (actor === 'owner' && target !== 'owner') || (actor === 'admin' && roles.indexOf(target) > 1)
        const answer = await of[actor].delete(`${of.at}/members/${of[target].id}`)
        expect([actor, target, ...outcome(answer)]).toEqual(
          may ? [actor, target, 200, undefined] : [actor, target, ...forbidden],
        )
        expect((await of[target].get(of.at)).status).toBe(may ? 404 : 200)
        if (!may) continue
        expect(await events(of[target], of.id)).toEqual([
          { event_name: 'svc.group.left', properties: { group_id: of.id, role: target, kicked: true } },
        ])
      }
    }
  }, 60_000)

  test('of who is no member, or of a group that is not seen', async () => {
    const of = await team({ is_public: false })
    const path = `${of.at}/members/${stranger.id}`
    expect(outcome(await of.owner.patch(path, { role: 'viewer' }))).toEqual(absent)
    expect(outcome(await of.owner.delete(path))).toEqual(absent)
    expect(outcome(await of.owner.delete(`${of.at}/members/${randomUUID()}`))).toEqual(absent)
    expect(outcome(await stranger.delete(`${of.at}/members/${of.viewer.id}`))).toEqual(absent)
    expect(outcome(await stranger.patch(`${of.at}/members/${of.viewer.id}`, {}))).toEqual(absent)
    expect(outcome(await stranger.post(`${of.at}/transfer`, { user_id: stranger.id }))).toEqual(absent)
    expectRefusal(await of.owner.delete(`${of.at}/members/x`), 400, 'INVALID_ID')
    expectInvalid(await of.owner.patch(`${of.at}/members/${of.viewer.id}`, { role: 'king' }), 'role')
    expectInvalid(await of.owner.patch(`${of.at}/members/${of.viewer.id}`, { metadata: [] }), 'metadata')
    expectRefusal(await of.owner.patch(`${of.at}/members/${of.viewer.id}`, '[]'), 400, 'INVALID_BODY')
  })

  test('metadata of a member is set from above, that of leaders by themselves too', async () => {
    const of = await team()
    const set = (by: User, user: User) => by.patch(`${of.at}/members/${user.id}`, { metadata: { by: by.id } })
    expect((await set(of.admin, of.member)).data).toMatchObject({ metadata: { by: of.admin.id }, role: 'member' })
    for (const leader of [of.owner, of.admin])
      expect((await set(leader, leader)).data.metadata).toEqual({ by: leader.id })
    expect(outcome(await set(of.admin, of.owner))).toEqual(forbidden)
    expect(outcome(await set(of.member, of.member))).toEqual(forbidden)
    expect(outcome(await of.admin.patch(`${of.at}/members/${of.admin.id}`, { role: 'viewer' }))).toEqual(forbidden)
    expect(await events(of.member, of.id)).toEqual([])
  })
})

describe('a transfer', () => {
  test('makes the owner an admin, and is the owner’s', async () => {
    const of = await team({ is_public: false })
    const to = (by: User, user: User) => by.post(`${of.at}/transfer`, { user_id: user.id })
    for (const one of [of.admin, of.member, of.viewer]) expect(outcome(await to(one, one))).toEqual(forbidden)
    expect(outcome(await to(of.owner, stranger))).toEqual(absent)
    const moved = await to(of.owner, of.viewer)
    expect([moved.status, moved.data.my_role]).toEqual([200, 'admin'])
    expect(await rolesOf(of.id)).toMatchObject({ [of.owner.id]: 'admin', [of.viewer.id]: 'owner' })
    expect((await to(of.viewer, of.viewer)).data.my_role).toBe('owner')
    expect(outcome(await to(of.owner, of.owner))).toEqual(forbidden)
    expect((await of.owner.post(`${of.at}/leave`)).status).toBe(200)
    expectInvalid(await of.viewer.post(`${of.at}/transfer`, {}), 'user_id')
    expectRefusal(await of.viewer.post(`${of.at}/transfer`, '[]'), 400, 'INVALID_BODY')
  })

  test('to many at once: one owner, each former one an admin', async () => {
    const of = await team()
    const answers = await meetingBehind(
      project.database,
      `select from app.groups where id = '${of.id}' for update`,
      () => [of.admin, of.member, of.viewer].map((user) => of.owner.post(`${of.at}/transfer`, { user_id: user.id })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403, 403])
    const held = Object.values(await rolesOf(of.id))
    expect(held.filter((role) => role === 'owner')).toHaveLength(1)
    expect((await rolesOf(of.id))[of.owner.id]).toBe('admin')
  })

  test('and a removal of the heir at once: never a group without owner', async () => {
    for (let round = 0; round < 3; round += 1) {
      const of = await team()
      const answers = await meetingBehind(
        project.database,
        `select from app.groups where id = '${of.id}' for update`,
        () => [
          of.owner.post(`${of.at}/transfer`, { user_id: of.member.id }),
          of.admin.delete(`${of.at}/members/${of.member.id}`),
        ],
      )
      const statuses = answers.map(({ status }) => status)
      expect([
        [200, 403],
        [404, 200],
      ]).toContainEqual(statuses)
      expect(Object.values(await rolesOf(of.id)).filter((role) => role === 'owner')).toHaveLength(1)
    }
  })
})

describe('a role held in a group', () => {
  const define = async (key: string) => {
    expect((await project.admin.post('/roles', { key, name: key, permissions: ['kick'] })).status).toBe(201)
    return (user: User, group_id: string) =>
      project.admin.post(`/roles/${key}/assignments`, { app_user_id: user.id, group_id })
  }
  const allowed = async (user: User, group: string) =>
    (await user.get(`/client/roles/check?permission=kick&group_id=${group}`)).data.allowed

  test('is for members, and ends with the membership, however that ends', async () => {
    const assign = await define('bouncer')
    expectInvalid(await assign(stranger, (await team()).id), 'group_id')
    const ends: Record<string, (of: Team) => Promise<Answer>> = {
      leaving: (of) => of.member.post(`${of.at}/leave`),
      kick: (of) => of.admin.delete(`${of.at}/members/${of.member.id}`),
      removal: (of) => project.admin.delete(`/groups/${of.id}/members/${of.member.id}`),
      reset: (of) => project.admin.delete(`/users/${of.member.id}/reset?sections=groups`),
    }
    for (const [name, end] of Object.entries(ends)) {
      const [of, other] = [await team(), await team()]
      await of.member.post(`${other.at}/join`)
      expect((await assign(of.member, of.id)).status).toBe(201)
      await assign(of.member, other.id)
      expect(await allowed(of.member, of.id)).toBe(true)
      expect((await end(of)).status, name).toBe(200)
      expect(await allowed(of.member, of.id), name).toBe(false)
      expect(await allowed(of.member, other.id), name).toBe(name !== 'reset')
      const [revoked] = await project.sql(
        `select properties from app.engagement_events where app_user_id = $1 and event_name = 'svc.role.revoked' and properties ->> 'group_id' = $2`,
        [of.member.id, of.id],
      )
      expect(revoked.properties, name).toEqual({ role_key: 'bouncer', group_id: of.id })
      // coming back does not bring it back
      await of.member.post(`${of.at}/join`)
      expect(await allowed(of.member, of.id), name).toBe(false)
    }
  }, 60_000)

  test('goes without a word with the group or the user', async () => {
    const assign = await define('janitor')
    const of = await team()
    await assign(of.member, of.id)
    await assign(of.viewer, of.id)
    await project.admin.delete(`/users/${of.viewer.id}`)
    expect((await of.owner.delete(of.at)).status).toBe(200)
    expect((await project.admin.get('/roles/janitor/assignments')).body.total).toBe(0)
    expect((await project.admin.delete('/roles/janitor')).status).toBe(200)
    const told = await project.sql(
      `select from app.engagement_events where event_name = 'svc.role.revoked' and app_user_id = $1`,
      [of.member.id],
    )
    expect(told).toEqual([])
  })

  test('an assignment at the time of leaving: no role without membership', async () => {
    const assign = await define('guard')
    const of = await team()
    const [assigned, left] = await meetingBehind(
      project.database,
      `select from app.users where id = '${of.member.id}' for update`,
      () => [assign(of.member, of.id), of.member.post(`${of.at}/leave`)],
    )
    expect([left?.status, [201, 400].includes(assigned?.status as number)]).toEqual([200, true])
    expect(await allowed(of.member, of.id)).toBe(false)
    expect((await project.admin.get('/roles/guard/assignments')).body.total).toBe(0)
  })
})

describe('administrators', () => {
  test('list all groups, private ones too, and search their names', async () => {
    const own = await harness.project()
    const user = await own.user()
    const made = []
    for (const [name, is_public] of [
      ['Chess', true],
      ['100% chess', false],
      ['Go', true],
    ] as const)
      made.unshift((await user.post('/client/groups', { name, is_public })).data)
    const all = await own.admin.get('/groups')
    expect(all.body).toMatchObject({ total: 3, offset: 0, limit: 50 })
    expect(all.data).toEqual(made)
    const found = async (query: string) => (await own.admin.get(`/groups?${query}`)).data.map(({ name }: any) => name)
    expect(await found('search=CHESS')).toEqual(['100% chess', 'Chess'])
    expect(await found('search=%25')).toEqual(['100% chess'])
    expect(await found('search=chess&limit=1&offset=1')).toEqual(['Chess'])
    expect(await found('limit=1&offset=1')).toEqual(['100% chess'])
    expectRefusal(await own.admin.get(`/groups?search=${'x'.repeat(201)}`), 400, 'INVALID_INPUT', 'search')
    expect((await own.admin.get(`/groups/${made[1].id}`)).data).toEqual(made[1])
    const members = await own.admin.get(`/groups/${made[1].id}/members`)
    expect([members.body.total, members.data[0].app_user_id, members.data[0].role]).toEqual([1, user.id, 'owner'])
    for (const path of ['', '/members']) {
      expectRefusal(await own.admin.get(`/groups/${randomUUID()}${path}`), 404, 'NOT_FOUND')
      expectRefusal(await own.admin.get(`/groups/x${path}`), 400, 'INVALID_ID')
    }
    expectRefusal(await own.admin.patch('/groups/x', { name: 'X' }), 400, 'INVALID_ID')
  })

  test('change and delete a group, in the trail', async () => {
    const of = await team({ is_public: false })
    const at = `/groups/${of.id}`
    const changed = await project.admin.patch(at, { name: 'moved', max_members: 5 })
    expect([changed.status, changed.data.name, changed.data.max_members]).toEqual([200, 'moved', 5])
    expect((await project.admin.patch(at, {})).data).toEqual(changed.data)
    expectRefusal(await project.admin.patch(at, { max_members: 2 }), 409, 'GROUP_FULL')
    expect((await project.admin.delete(at)).data).toEqual({ deleted: true })
    for (const answer of [await project.admin.delete(at), await project.admin.patch(at, { name: 'x' })])
      expectRefusal(answer, 404, 'NOT_FOUND')
    expect((await events(of.owner, of.id)).map(({ event_name }) => event_name)).toEqual(['svc.group.deleted'])
    const trail = await project.sql(
      `select action, changes from app.audit_events where target_id = $1 and action <> 'groups.member_add' order by occurred_at`,
      [of.id],
    )
    expect(trail.map(({ action }) => action)).toEqual(['groups.update', 'groups.delete'])
    expect(trail[0].changes).toEqual({ name: ['a team', 'moved'], max_members: [100, 5] })
  })

  test('change members and the owner, and remove them', async () => {
    const of = await team()
    const member = (user: User) => `/groups/${of.id}/members/${user.id}`
    const changed = await project.admin.patch(member(of.viewer), { role: 'admin', metadata: { a: 1 } })
    expect([changed.status, changed.data.role, changed.data.metadata]).toEqual([200, 'admin', { a: 1 }])
    expectRefusal(await project.admin.patch(member(of.owner), { role: 'viewer' }), 409, 'CONFLICT')
    expect((await project.admin.patch(member(of.owner), { role: 'owner', metadata: { b: 2 } })).data.role).toBe('owner')
    expect((await project.admin.patch(member(of.member), { role: 'owner' })).data.role).toBe('owner')
    expect(await rolesOf(of.id)).toMatchObject({ [of.owner.id]: 'admin', [of.member.id]: 'owner' })
    expect((await project.admin.delete(member(of.member))).data).toEqual({ deleted: true })
    expect(Object.values(await rolesOf(of.id)).filter((role) => role === 'owner')).toHaveLength(1)
    expect(await events(of.member, of.id)).toEqual([
      { event_name: 'svc.group.role_changed', properties: { group_id: of.id, role: 'owner', previous_role: 'member' } },
      { event_name: 'svc.group.left', properties: { group_id: of.id, role: 'owner', kicked: true } },
    ])
    const refusals = async (path: string, code: [number, string]) => {
      expect(outcome(await project.admin.patch(path, { role: 'viewer' }))).toEqual(code)
      expect(outcome(await project.admin.delete(path))).toEqual(code)
    }
    await refusals(member(of.member), [404, 'NOT_FOUND'])
    await refusals(`/groups/${randomUUID()}/members/${of.owner.id}`, [404, 'NOT_FOUND'])
    await refusals(`/groups/${of.id}/members/x`, [400, 'INVALID_ID'])
    expectInvalid(await project.admin.patch(member(of.admin), { role: 'king' }), 'role')
    expectRefusal(await project.admin.patch(member(of.admin), '[]'), 400, 'INVALID_BODY')
    const actions = await project.sql(
      `select action from app.audit_events where target_id = $1 and action <> 'groups.member_add' order by occurred_at`,
      [of.id],
    )
    expect(actions.map(({ action }) => action)).toEqual([
      'groups.member_update',
      'groups.member_update',
      'groups.member_update',
      'groups.member_remove',
    ])
  })

  test('and a transfer at once: one owner', async () => {
    for (let round = 0; round < 3; round += 1) {
      const of = await team()
      const answers = await meetingBehind(
        project.database,
        `select from app.groups where id = '${of.id}' for update`,
        () => [
          of.owner.post(`${of.at}/transfer`, { user_id: of.member.id }),
          project.admin.patch(`/groups/${of.id}/members/${of.admin.id}`, { role: 'owner' }),
          project.admin.delete(`/groups/${of.id}/members/${of.viewer.id}`),
        ],
      )
      expect([200, 403]).toContain(answers[0]?.status)
      for (const { status, text } of answers.slice(1)) expect(status, text).toBe(200)
      expect(Object.values(await rolesOf(of.id)).filter((role) => role === 'owner')).toHaveLength(1)
    }
  })
})

test('what users may do, roles of the database and other users may not', async () => {
  const of = await team({ is_public: false })
  const asUser = (call: string, caller = 'user') =>
    project
      .as('app_user', { 'app.user_id': stranger.id, 'app.caller': caller }, `select ${call}`)
      .catch((error) => (error as { code: string }).code)
  for (const call of [
    `internal.group_end('${of.id}')`,
    `internal.group_change(null, '{}')`,
    `internal.group_exit(null)`,
    `internal.group_hand_over(null, null)`,
    `internal.group_member_change(null, '{}')`,
    `internal.group_led('${of.id}', 'viewer')`,
    `api.group_delete_any('${of.id}')`,
    `api.group_member_remove('${of.id}', '${of.member.id}')`,
  ])
    expect(await asUser(call), call).toBe('42501')
  expect(await asUser(`api.group_delete('${of.id}')`)).toBe('TR000')
  expect(await asUser('code from app.group_invites')).toBe('42501')
  await expect(
    project.as('app_admin', { 'app.caller': 'none' }, `select api.group_delete_any('${of.id}')`),
  ).rejects.toThrow(/administered by administrators/)
  const other = await harness.project()
  expect((await other.admin.delete(`/groups/${of.id}`)).status).toBe(404)
  expect((await of.owner.get(of.at)).status).toBe(200)
})
