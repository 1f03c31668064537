import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type Client, startHarness, type User } from '#test/support/harness.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

let made = 0
const define = async (fields: object = {}) => {
  made += 1
  const role = await project.admin.post('/roles', {
    key: `role-${String(made).padStart(3, '0')}`,
    name: 'Role',
    permissions: ['read'],
    ...fields,
  })
  expect(role.status, role.text).toBe(201)
  return role.data as { id: string; key: string }
}
const assign = (role: { key: string }, user: User, more: object = {}) =>
  project.admin.post(`/roles/${role.key}/assignments`, { app_user_id: user.id, ...more })
const allowed = async (user: Client, permission: string, group = '') =>
  (await user.get(`/client/roles/check?permission=${permission}${group && `&group_id=${group}`}`)).data.allowed
const mine = async (user: Client) => (await user.get('/client/roles')).data
const events = (user: User) =>
  project.sql(
    `select event_name, properties from app.engagement_events where app_user_id = $1 and event_name like 'svc.role.%' order by received_at, id`,
    [user.id],
  )
const groupOf = async (user: User) => (await user.post('/client/groups', { name: 'a group' })).data.id as string
const soon = () => new Date(harness.now().getTime() + 60_000).toISOString()

test('permissions have a form and a limit, in SQL as over HTTP', async () => {
  for (const permissions of [['A'], [''], ['x'.repeat(65)], ['a b'], Array(101).fill('a'), ['a', null], 'a']) {
    const answer = await project.admin.post('/roles', { key: `bad-${made}`, name: 'Bad', permissions })
    expect([answer.status, answer.error?.code], answer.text).toEqual([400, 'VALIDATION_ERROR'])
    await expect(
      project.as('app_admin', { 'app.caller': 'developer' }, "select api.definition_create('role', $1)", [
        JSON.stringify({ key: `bad-${made}`, name: 'Bad', permissions }),
      ]),
    ).rejects.toThrow()
  }
  expect((await define({ permissions: ['a', 'b.c:d_e-9'] })).key).toBeTruthy()
})

describe('the default role', () => {
  test('is given to every user without being stored, and is one', async () => {
    const user = await project.user()
    expect(await mine(user)).toEqual({ roles: [], permissions: [] })
    const role = await define({ is_default: true, permissions: ['b', 'a', 'b'] })
    expect(await mine(user)).toEqual({
      roles: [{ key: role.key, name: 'Role', group_id: null, expires_at: null }],
      permissions: ['a', 'b'],
    })
    expect([await allowed(user, 'a'), await allowed(user, 'z')]).toEqual([true, false])
    const other = await define()
    for (const second of [
      await project.admin.post('/roles', { key: 'second', name: 'Second', is_default: true }),
      await project.admin.patch(`/roles/${other.key}`, { is_default: true }),
    ]) {
      expect([second.status, second.error?.code], second.text).toEqual([409, 'CONFLICT'])
      expect(second.error?.details).toEqual({ field: 'is_default' })
    }
    // an assignment of the default role adds nothing to it
    expect((await assign(role, user, { expires_at: soon() })).status).toBe(201)
    expect((await mine(user)).roles).toHaveLength(1)
    expect((await project.admin.delete(`/roles/${role.key}?force=true`)).status).toBe(200)
    expect(await mine(user)).toEqual({ roles: [], permissions: [] })
  })
})

describe('assignments', () => {
  test('are made once, say who granted them, and count at once', async () => {
    const [role, user] = [await define({ permissions: ['posts:delete'] }), await project.user()]
    const first = await assign(role, user)
    expect([first.status, first.data]).toEqual([
      201,
      {
        role_key: role.key,
        app_user_id: user.id,
        group_id: null,
        granted_by: project.developer.id,
        expires_at: null,
        created_at: expect.any(String),
      },
    ])
    expect(await allowed(user, 'posts:delete')).toBe(true)
    expect((await assign(role, user)).status).toBe(200)
    await project.admin.patch(`/roles/${role.key}`, { permissions: [] })
    expect(await allowed(user, 'posts:delete')).toBe(false)
    const listed = await project.admin.get(`/roles/${role.id}/assignments`)
    expect(listed.body).toEqual({ data: [first.data], total: 1, offset: 0, limit: 50 })
    expect(await events(user)).toEqual([
      { event_name: 'svc.role.assigned', properties: { role_key: role.key, group_id: null, expires_at: null } },
    ])
    const { data } = await project.admin.get(`/audit-events?target_id=${user.id}`)
    expect(data.map(({ action }: { action: string }) => action)).toEqual(['roles.assign'])
  })

  test('end at expires_at, which a second assignment changes when it is sent', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const [role, user] = [await define(), await project.user()]
    // a server key outlives the session of a user
    const them = project.onBehalfOf(user.id)
    expect((await assign(role, user, { expires_at: '2026-11-21T13:00:00Z' })).status).toBe(201)
    expect((await assign(role, user)).data.expires_at).toBe('2026-11-21T13:00:00.000Z')
    expect((await assign(role, user, { expires_at: '2026-11-21T14:00:00Z' })).status).toBe(200)
    harness.setTime('2026-11-21T13:59:59Z')
    expect(await allowed(them, 'read')).toBe(true)
    harness.setTime('2026-11-21T14:00:00Z')
    expect(await allowed(them, 'read')).toBe(false)
    expect((await mine(them)).roles).toEqual([])
    expect((await project.admin.get(`/roles/${role.key}/assignments`)).body.total).toBe(0)
    expect((await project.admin.delete(`/roles/${role.key}/assignments/${user.id}`)).status).toBe(404)
    // what has expired is assigned anew, and keeps no role from being deleted
    expect((await assign(role, user, { expires_at: '2026-11-21T15:00:00Z' })).status).toBe(201)
    expect((await assign(role, user, { expires_at: null })).data.expires_at).toBeNull()
    expect((await assign(role, user, { expires_at: '2026-11-21T15:00:00Z' })).status).toBe(200)
    harness.setTime('2026-11-21T15:00:00Z')
    expect((await project.admin.delete(`/roles/${role.key}`)).data).toEqual({ deleted: true })
  })

  test('hold in a group alone where they name one', async () => {
    const [role, user] = [await define({ permissions: ['kick'] }), await project.user()]
    const [group, other] = [await groupOf(user), await groupOf(user)]
    expect((await assign(role, user, { group_id: group })).data.group_id).toBe(group)
    expect(await allowed(user, 'kick')).toBe(false)
    expect([await allowed(user, 'kick', group), await allowed(user, 'kick', other)]).toEqual([true, false])
    expect((await mine(user)).permissions).toEqual(['kick'])
    expect((await assign(role, user, { group_id: other })).status).toBe(201)
    const revoke = `/roles/${role.key}/assignments/${user.id}`
    expect((await project.admin.delete(`${revoke}?group_id=${other}`)).status).toBe(200)
    expect([await allowed(user, 'kick', group), await allowed(user, 'kick', other)]).toEqual([true, false])
    await assign(role, user)
    expect(await allowed(user, 'kick', other)).toBe(true)
    // without a group: everywhere
    expect((await project.admin.delete(revoke)).data).toEqual({ deleted: true })
    expect([await allowed(user, 'kick'), await allowed(user, 'kick', group)]).toEqual([false, false])
    expect((await events(user)).map(({ event_name }) => event_name.split('.').at(-1))).toEqual([
      'assigned',
      'assigned',
      'revoked',
      'assigned',
      'revoked',
      'revoked',
    ])
    await project.sql('delete from app.groups where id = $1', [group])
  })

  test('of a role or to a user that is not there, or out of bounds, are refused by name', async () => {
    const [role, user] = [await define(), await project.user()]
    const refused = async (answer: Promise<any>, status: number, code: string, field?: string) => {
      const { status: was, error, text } = await answer
      expect([was, error?.code, error?.details?.field], text).toEqual([status, code, field])
    }
    await refused(assign({ key: 'nothing' }, user), 404, 'NOT_FOUND')
    await refused(assign(role, { id: randomUUID() } as User), 404, 'USER_NOT_FOUND')
    await refused(assign(role, user, { group_id: randomUUID() }), 400, 'VALIDATION_ERROR', 'group_id')
    await refused(assign(role, user, { expires_at: '2020-01-01T00:00:00Z' }), 400, 'VALIDATION_ERROR', 'expires_at')
    await refused(assign(role, user, { expires_at: 'soon' }), 400, 'VALIDATION_ERROR', 'expires_at')
    await refused(project.admin.get('/roles/nothing/assignments'), 404, 'NOT_FOUND')
    await refused(project.admin.delete(`/roles/${role.key}/assignments/${user.id}`), 404, 'NOT_FOUND')
    await refused(project.admin.delete(`/roles/nothing/assignments/${user.id}`), 404, 'NOT_FOUND')
    await refused(project.admin.delete('/roles/nothing?force=true'), 404, 'NOT_FOUND')
    const nowhere = `/roles/${role.key}/assignments/${user.id}?group_id=nowhere`
    await refused(project.admin.delete(nowhere), 400, 'INVALID_INPUT', 'group_id')
    expect((await user.get('/client/roles/check')).status).toBe(400)
    expect((await user.get('/client/roles/check?permission=NO')).status).toBe(400)
    expect(await events(user)).toEqual([])
  })

  test('are 20 roles for a user at most, also when many come at once', async () => {
    const user = await project.user()
    const [all] = await project.sql(
      `with made as (insert into app.roles (key, name) select 'many-' || n, 'Many' from generate_series(1, 22) n returning id, key)
       select json_agg(made) as roles from made`,
    )
    for (const role of all.roles.slice(0, 17)) expect((await assign(role, user)).status).toBe(201)
    const answers = await Promise.all(all.roles.slice(17).map((role: { key: string }) => assign(role, user)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 201, 409, 409])
    const over = answers.find(({ status }) => status === 409)
    expect(over.error).toMatchObject({ code: 'LIMIT_REACHED', details: { limit: 20 } })
    // in another group it is no further role
    expect((await assign(all.roles[0], user, { group_id: await groupOf(user) })).status).toBe(201)
    await project.sql('delete from app.role_assignments where app_user_id = $1', [user.id])
    await project.sql("delete from app.roles where key like 'many-%'")
  })
})

describe('a role that users have', () => {
  test('is deleted with force alone, which revokes it', async () => {
    const [role, one, two] = [await define(), await project.user(), await project.user()]
    await assign(role, one)
    await assign(role, two)
    const kept = await project.admin.delete(`/roles/${role.key}`)
    expect([kept.status, kept.error?.code]).toEqual([409, 'ROLE_IN_USE'])
    expect(await allowed(one, 'read')).toBe(true)
    expect((await project.admin.delete(`/roles/${role.key}?force=true`)).data).toEqual({ deleted: true })
    expect([await allowed(one, 'read'), await allowed(two, 'read')]).toEqual([false, false])
    expect((await events(two)).at(-1)).toEqual({
      event_name: 'svc.role.revoked',
      properties: { role_key: role.key, group_id: null },
    })
  })

  test('is not assigned by one who waited for its deletion', async () => {
    const [role, user] = [await define(), await project.user()]
    const deletion = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
    await deletion.query('select api.role_delete($1, true)', [role.key])
    const assigning = assign(role, user)
    await untilBlocked(project)
    await deletion.commit()
    expect([(await assigning).status, (await assigning).error?.code]).toEqual([404, 'NOT_FOUND'])
    expect(await events(user)).toEqual([])
  })

  test('waits for one who assigns it anew after it expired', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const [role, another, user] = [await define(), await define(), await project.user()]
    await assign(role, user, { expires_at: '2026-11-21T13:00:00Z' })
    harness.setTime('2026-11-21T14:00:00Z')
    // holds the user, so that the assignment has locked the role and not yet written
    const holder = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
    await holder.query("select api.role_assign($1, $2, '{}')", [another.key, user.id])
    const assigning = assign(role, user)
    await untilBlocked(project)
    const deletion = project.admin.delete(`/roles/${role.key}`)
    await untilBlocked(project, 2)
    await holder.commit()
    expect((await assigning).status).toBe(201)
    expect((await deletion).error?.code).toBe('ROLE_IN_USE')
  })
})

test('rules of segments ask for a role', async () => {
  harness.setTime('2026-11-21T12:00:00Z')
  const [role, user, other] = [await define(), await project.user(), await project.user()]
  const rules = { source: 'role', key: role.key, op: 'eq', value: true }
  const made = await project.admin.post('/segments', { key: 'role-holders', name: 'Holders', rules })
  expect(made.status, made.text).toBe(201)
  const member = async (of: User) =>
    (await project.admin.get(`/segments/role-holders/members/${of.id}/explain`)).data.member
  await assign(role, user, { group_id: await groupOf(user), expires_at: '2026-11-21T13:00:00Z' })
  expect([await member(user), await member(other)]).toEqual([true, false])
  await project.admin.patch(`/roles/${role.key}`, { is_default: true })
  expect([await member(user), await member(other)]).toEqual([true, true])
  await project.admin.patch(`/roles/${role.key}`, { is_default: false })
  harness.setTime('2026-11-21T13:00:00Z')
  expect([await member(user), await member(other)]).toEqual([false, false])
  const unknown = await project.admin.post('/segments', { key: 'x', name: 'X', rules: { ...rules, key: 'nothing' } })
  expect([unknown.error?.code, unknown.error?.details.field]).toEqual(['VALIDATION_ERROR', 'rules.key'])
})

test('a role goes with its user into a merge, with the later end, and ends with its user', async () => {
  const [shared, moved] = [await define(), await define({ permissions: ['moved'] })]
  const [survivor, other] = [await project.user(), await project.user()]
  await project.sql('update app.users set external_id = $2 where id = $1', [survivor.id, survivor.id])
  await assign(shared, survivor, { expires_at: soon() })
  await assign(shared, other)
  await assign(moved, other)
  const merged = await survivor.post('/client/auth/merge', { from_session_token: other.sessionToken })
  expect(merged.data?.merged, merged.text).toMatchObject({ role_assignments: 1 })
  expect((await mine(survivor)).roles.map((role: object) => ({ ...role, name: undefined }))).toEqual(
    [shared, moved].map(({ key }) => ({ key, name: undefined, group_id: null, expires_at: null })),
  )
  await project.admin.delete(`/users/${survivor.id}`)
  expect(await project.sql('select from app.role_assignments where app_user_id = $1', [survivor.id])).toEqual([])
})

test('a merge gives a user no more than 20 roles, also where one of the survivor had expired', async () => {
  const [survivor, other] = [await project.user(), await project.user()]
  await project.sql('update app.users set external_id = $2 where id = $1', [survivor.id, survivor.id])
  await project.sql("insert into app.roles (key, name) select 'held-' || n, 'Held' from generate_series(1, 21) n")
  await project.sql(
    `insert into app.role_assignments (role_id, app_user_id, expires_at)
     select id, $1, case key when 'held-21' then internal.now() - interval '1 day' end from app.roles where key like 'held-%'`,
    [survivor.id],
  )
  expect((await assign({ key: 'held-21' }, other)).status).toBe(201)
  const merged = await survivor.post('/client/auth/merge', { from_session_token: other.sessionToken })
  expect(merged.status, merged.text).toBe(200)
  expect((await mine(survivor)).roles).toHaveLength(20)
  await project.sql('delete from app.role_assignments where app_user_id = $1', [survivor.id])
  await project.sql("delete from app.roles where key like 'held-%'")
})

test('users read their own roles, without who granted them; nobody but administrators assigns', async () => {
  const [role, user, other] = [await define(), await project.user(), await project.user()]
  await assign(role, user)
  const as = (who: User, text: string) => project.as('app_user', { 'app.caller': 'user', 'app.user_id': who.id }, text)
  expect(await as(user, `select key from app.roles where id = '${role.id}'`)).toEqual([{ key: role.key }])
  expect(await as(other, `select key from app.roles where id = '${role.id}'`)).toEqual([])
  expect(await as(other, 'select id from app.role_assignments')).toEqual([])
  await expect(as(user, 'select granted_by from app.role_assignments')).rejects.toThrow(/permission denied/)
  await expect(as(user, `select internal.role_assign('${role.id}', '${other.id}', null, '{}')`)).rejects.toThrow(
    /permission denied/,
  )
  for (const client of [user, project.app, project.server, harness.anyone]) {
    const answer = await client.post(`/admin/projects/${project.id}/roles/${role.key}/assignments`, {
      app_user_id: other.id,
    })
    expect([401, 403]).toContain(answer.status)
  }
})
