import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { meetingBehind } from '#test/support/transaction.ts'

/** Invites into groups: who makes them, whom they let in and how many, and when they end. */
const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

const users = (many: number) => Promise.all(Array.from({ length: many }, () => project.user()))
const team = async (fields: object = {}) => {
  const [owner, admin, member] = (await users(3)) as [User, User, User]
  const { data } = await owner.post('/client/groups', { name: 'a team', is_public: false, ...fields })
  for (const [role, user] of [
    ['admin', admin],
    ['member', member],
  ] as const)
    await project.admin.post(`/groups/${data.id}/members`, { app_user_id: user.id, role })
  return { id: data.id as string, at: `/client/groups/${data.id}`, owner, admin, member }
}
const invite = (by: User, at: string, body: object = {}) => by.post(`${at}/invites`, body)
const codeOf = async (by: User, at: string, body: object = {}) => {
  const made = await invite(by, at, body)
  expect(made.status, made.text).toBe(201)
  return made.data.code as string
}
const join = (user: User, code: string) => user.post('/client/groups/join', { code })

describe('an invite', () => {
  test('lets one user into a private group as member, for a week', async () => {
    const of = await team()
    const made = await invite(of.owner, of.at)
    expect(made.status).toBe(201)
    expect(made.data).toEqual({
      id: expect.any(String),
      group_id: of.id,
      code: expect.stringMatching(/^[A-HJKMNP-Z2-9]{12}$/),
      url: null,
      role: 'member',
      max_uses: 1,
      uses: 0,
      created_by: of.owner.id,
      expires_at: expect.any(String),
      created_at: expect.any(String),
    })
    expect(Date.parse(made.data.expires_at) - Date.parse(made.data.created_at)).toBe(168 * 3_600_000)
    const [one, two] = (await users(2)) as [User, User]
    const { code } = made.data
    const joined = await join(one, `${code.slice(0, 4).toLowerCase()}-${code.slice(4)} `)
    expect([joined.status, joined.data.role, joined.data.app_user_id, joined.data.group_id]).toEqual([
      ...[201, 'member'],
      ...[one.id, of.id],
    ])
    expect((await one.get(of.at)).data).toMatchObject({ my_role: 'member', member_count: 4 })
    const again = await join(one, code)
    expect([again.status, again.data]).toEqual([200, joined.data])
    expectRefusal(await join(two, code), 404, 'NOT_FOUND')
    expect((await of.owner.get(`${of.at}/invites`)).body.total).toBe(0)
    const [event] = await project.sql(
      `select properties from app.engagement_events where app_user_id = $1 and event_name = 'svc.group.joined'`,
      [one.id],
    )
    expect(event.properties).toEqual({ group_id: of.id, role: 'member' })
  })

  test('lets in exactly as many as it says, of fifty at once', async () => {
    const of = await team()
    const code = await codeOf(of.admin, of.at, { max_uses: 7, role: 'viewer' })
    const callers = await users(50)
    const answers = await meetingBehind(
      project.database,
      `select from app.groups where id = '${of.id}' for update`,
      () => callers.map((user) => join(user, code)),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(7)
    expect(answers.filter(({ status, error }) => status === 404 && error?.code === 'NOT_FOUND')).toHaveLength(43)
    const [kept] = await project.sql(
      `select (select count(*)::int from app.group_members where group_id = $1 and role = 'viewer') as viewers,
              (select uses from app.group_invites where group_id = $1) as uses`,
      [of.id],
    )
    expect(kept).toEqual({ viewers: 7, uses: 7 })
  }, 60_000)

  test('is not used up by who finds no room, in the group or among fifty groups', async () => {
    const of = await team({ max_members: 4 })
    const code = await codeOf(of.owner, of.at, { max_uses: 2 })
    const [one, two, many] = (await users(3)) as [User, User, User]
    await project.sql(
      `with made as (insert into app.groups (name) select 'many' from generate_series(1, 50) returning id)
       insert into app.group_members (group_id, app_user_id) select id, $1 from made`,
      [many.id],
    )
    expectRefusal(await join(many, code), 409, 'GROUP_LIMIT_REACHED')
    expect((await join(one, code)).status).toBe(201)
    expectRefusal(await join(two, code), 409, 'GROUP_FULL')
    expect((await of.owner.get(`${of.at}/invites`)).data[0].uses).toBe(1)
    await of.owner.patch(of.at, { max_members: 5 })
    expect((await join(two, code)).status).toBe(201)
  })

  test('expires', async () => {
    const of = await team()
    const code = await codeOf(of.owner, of.at, { expires_in_hours: 2 })
    const [one, two] = (await users(2)) as [User, User]
    harness.advance(7199)
    const early = project.onBehalfOf(one.id)
    expect((await early.post('/client/groups/join', { code })).status).toBe(201)
    await project.sql('update app.group_invites set uses = 0 where code = $1', [code])
    harness.advance(2)
    expectRefusal(await project.onBehalfOf(two.id).post('/client/groups/join', { code }), 404, 'NOT_FOUND')
    expect((await project.onBehalfOf(of.owner.id).get(`${of.at}/invites`)).body.total).toBe(0)
  })

  test('has bounds', async () => {
    const of = await team()
    for (const [body, field] of [
      [{ max_uses: 0 }, 'max_uses'],
      [{ max_uses: 10_001 }, 'max_uses'],
      [{ expires_in_hours: 0 }, 'expires_in_hours'],
      [{ expires_in_hours: 8761 }, 'expires_in_hours'],
      [{ role: 'king' }, 'role'],
    ] as const)
      expectInvalid(await invite(of.owner, of.at, body), field)
    expectRefusal(await of.owner.post(`${of.at}/invites`, '[]'), 400, 'INVALID_BODY')
    expectRefusal(await invite(of.owner, '/client/groups/x'), 400, 'INVALID_ID')
    expectRefusal(await of.owner.get('/client/groups/x/invites'), 400, 'INVALID_ID')
    expectRefusal(await of.owner.get(`${of.at}/invites?limit=x`), 400, 'INVALID_INPUT')
    expectRefusal(await of.owner.delete(`${of.at}/invites/x`), 400, 'INVALID_ID')
    const one = await project.user()
    for (const code of ['', 'x'.repeat(65)]) expectInvalid(await join(one, code), 'code')
    expectRefusal(await join(one, 'AAAAAAAAAAAA'), 404, 'NOT_FOUND')
    expectRefusal(await one.post('/client/groups/join', '[]'), 400, 'INVALID_BODY')
  })

  test('is one of a hundred open ones; those that are used up or expired make room', async () => {
    const of = await team()
    await project.sql(
      `insert into app.group_invites (group_id, code, created_by, expires_at)
       select $1, 'AAAAAAAAA' || translate(lpad(n::text, 3, '0'), '01', 'AB'), $2, now() + interval '1 day' from generate_series(1, 98) n`,
      [of.id, of.owner.id],
    )
    const answers = await Promise.all(Array.from({ length: 4 }, () => invite(of.owner, of.at)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409])
    expectRefusal(await invite(of.owner, of.at), 409, 'LIMIT_REACHED', { limit: 100 })
    const page = await of.owner.get(`${of.at}/invites?limit=1`)
    expect([page.body.total, page.data.length]).toEqual([100, 1])
    await project.sql(
      `update app.group_invites set uses = max_uses where code = (select min(code) from app.group_invites where group_id = $1)`,
      [of.id],
    )
    expect((await invite(of.owner, of.at)).status).toBe(201)
  })
})

describe('who leads', () => {
  test('invites below the own rank, sees and ends such invites', async () => {
    const of = await team()
    const stranger = await project.user()
    expectRefusal(await invite(of.member, of.at), 403, 'GROUP_ROLE_FORBIDDEN')
    expectRefusal(await of.member.get(`${of.at}/invites`), 403, 'GROUP_ROLE_FORBIDDEN')
    expectRefusal(await of.member.delete(`${of.at}/invites/${randomUUID()}`), 403, 'GROUP_ROLE_FORBIDDEN')
    expectRefusal(await invite(stranger, of.at), 404, 'NOT_FOUND')
    expectRefusal(await stranger.get(`${of.at}/invites`), 404, 'NOT_FOUND')
    expectRefusal(await stranger.delete(`${of.at}/invites/${randomUUID()}`), 404, 'NOT_FOUND')
    for (const role of ['admin', 'owner'])
      expectRefusal(await invite(of.admin, of.at, { role }), 403, 'GROUP_ROLE_FORBIDDEN')
    expectRefusal(await invite(of.owner, of.at, { role: 'owner' }), 403, 'GROUP_ROLE_FORBIDDEN')
    const high = (await invite(of.owner, of.at, { role: 'admin' })).data
    const low = (await invite(of.admin, of.at, { role: 'viewer' })).data
    expect((await of.owner.get(`${of.at}/invites`)).data).toEqual([low, high])
    const seen = await of.admin.get(`${of.at}/invites`)
    expect([seen.data, seen.body.total]).toEqual([[low], 1])
    expectRefusal(await of.admin.delete(`${of.at}/invites/${high.id}`), 404, 'NOT_FOUND')
    expect((await of.admin.delete(`${of.at}/invites/${low.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await of.admin.delete(`${of.at}/invites/${low.id}`), 404, 'NOT_FOUND')
    const other = await team()
    expectRefusal(await other.owner.delete(`${other.at}/invites/${high.id}`), 404, 'NOT_FOUND')
    const one = await project.user()
    expectRefusal(await join(one, low.code), 404, 'NOT_FOUND')
    expect((await join(one, high.code)).data.role).toBe('admin')
  })

  test('takes the invites along: leaving, a kick, a lower rank, a transfer', async () => {
    const of = await team()
    const one = await project.user()
    const ofAdmin = await codeOf(of.admin, of.at)
    await of.owner.patch(`${of.at}/members/${of.admin.id}`, { role: 'member' })
    expectRefusal(await join(one, ofAdmin), 404, 'NOT_FOUND')
    await of.owner.patch(`${of.at}/members/${of.admin.id}`, { role: 'admin' })
    const second = await codeOf(of.admin, of.at)
    await of.owner.delete(`${of.at}/members/${of.admin.id}`)
    expectRefusal(await join(one, second), 404, 'NOT_FOUND')
    const [high, low] = [await codeOf(of.owner, of.at, { role: 'admin' }), await codeOf(of.owner, of.at)]
    await of.owner.post(`${of.at}/transfer`, { user_id: of.member.id })
    expectRefusal(await join(one, high), 404, 'NOT_FOUND')
    expect((await join(one, low)).status).toBe(201)
    const last = await codeOf(of.owner, of.at)
    await of.owner.post(`${of.at}/leave`)
    expectRefusal(await join(await project.user(), last), 404, 'NOT_FOUND')
  })

  test('keeps them when the account becomes another', async () => {
    const [survivor, guest] = (await users(2)) as [User, User]
    const { data } = await guest.post('/client/groups', { name: 'own', is_public: false })
    const code = await codeOf(guest, `/client/groups/${data.id}`)
    expect((await project.admin.get(`/users/${guest.id}/export`)).text).toContain(code)
    const merged = await survivor.post('/client/auth/merge', { from_session_token: guest.sessionToken })
    expect(merged.status, merged.text).toBe(200)
    expect((await survivor.get(`/client/groups/${data.id}/invites`)).data[0]).toMatchObject({
      code,
      created_by: survivor.id,
    })
    expect((await join(await project.user(), code)).status).toBe(201)
  })
})

test('a code of another project opens nothing', async () => {
  const of = await team()
  const code = await codeOf(of.owner, of.at)
  const other = await (await harness.project()).user()
  expectRefusal(await join(other, code), 404, 'NOT_FOUND')
})
