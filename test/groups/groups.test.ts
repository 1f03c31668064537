import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const owner = await project.user()
const stranger = await project.user()

afterEach(() => harness.setTime(null))

const make = async (by: User, fields: Record<string, unknown> = {}) => {
  const made = await by.post('/client/groups', { name: 'a group', ...fields })
  expect(made.status).toBe(201)
  return made.data
}
const add = (groupId: string, user: User, role = 'member') =>
  project.admin.post(`/groups/${groupId}/members`, { app_user_id: user.id, role })
const roles = async (groupId: string) =>
  Object.fromEntries(
    (await project.sql('select app_user_id, role from app.group_members where group_id = $1', [groupId])).map((row) => [
      row.app_user_id,
      row.role,
    ]),
  )

describe('making', () => {
  test('the caller becomes the owner; what is left out has its default', async () => {
    const group = await make(owner, { name: 'Early birds' })
    expect(group).toEqual({
      id: expect.any(String),
      name: 'Early birds',
      description: null,
      avatar_url: null,
      is_public: true,
      max_members: 100,
      metadata: {},
      member_count: 1,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    expect(await roles(group.id)).toEqual({ [owner.id]: 'owner' })
    const whole = await make(owner, {
      name: 'x',
      description: 'd',
      avatar_url: 'https://a.example/b.png',
      is_public: false,
      max_members: 3,
      metadata: { a: [1] },
    })
    expect(whole).toMatchObject({ description: 'd', is_public: false, max_members: 3, metadata: { a: [1] } })
  })

  test.each([
    [{}, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ name: 'x', max_members: 0 }, 'max_members'],
    [{ name: 'x', max_members: 100_001 }, 'max_members'],
    [{ name: 'x', max_members: 1.5 }, 'max_members'],
    [{ name: 'x', metadata: [] }, 'metadata'],
    [{ name: 'x', description: 'x'.repeat(2001) }, 'description'],
    [{ name: 'x', is_public: 'yes' }, 'is_public'],
  ])('refuses %j', async (body, field) => {
    const refused = await stranger.post('/client/groups', body)
    expect(refused.status).toBe(400)
    expect(refused.error).toMatchObject({ code: 'INVALID_INPUT', details: { field } })
    expect(refused.error?.details.reason === 'is required').toBe(!(field in body))
  })

  test('ten a day: the eleventh waits', async () => {
    const user = await project.user()
    const made = await Promise.all(Array.from({ length: 14 }, () => user.post('/client/groups', { name: 'x' })))
    expect(made.filter(({ status }) => status === 201)).toHaveLength(10)
    const refused = made.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(4)
    expect(refused[0]?.error?.code).toBe('RATE_LIMITED')
    expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThan(86_000)
    harness.advance(86_401)
    expect((await project.onBehalfOf(user.id).post('/client/groups', { name: 'x' })).status).toBe(201)
  })

  test('fifty groups for one user, made or joined', async () => {
    const user = await project.user()
    await project.sql(
      `with made as (insert into app.groups (name) select 'many' from generate_series(1, 49) returning id)
       insert into app.group_members (group_id, app_user_id) select id, $1 from made`,
      [user.id],
    )
    const [one, two] = [await make(owner), await make(owner)]
    const both = await Promise.all([
      user.post(`/client/groups/${one.id}/join`),
      user.post(`/client/groups/${two.id}/join`),
    ])
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
    expect(both.find(({ status }) => status === 409)?.error).toMatchObject({
      code: 'GROUP_LIMIT_REACHED',
      details: { limit: 50 },
    })
    expect((await user.post('/client/groups', { name: 'x' })).error?.code).toBe('GROUP_LIMIT_REACHED')
    expect((await add((await make(owner)).id, user)).error?.code).toBe('GROUP_LIMIT_REACHED')
  })
})

describe('joining and leaving', () => {
  test('a member row with the user inlined; twice is the same row', async () => {
    const group = await make(owner)
    const joined = await stranger.post(`/client/groups/${group.id}/join`)
    expect(joined.status).toBe(201)
    expect(joined.data).toEqual({
      group_id: group.id,
      app_user_id: stranger.id,
      role: 'member',
      metadata: {},
      joined_at: expect.any(String),
      app_users: { id: stranger.id, display_name: stranger.data.display_name, avatar_url: null },
    })
    const again = await stranger.post(`/client/groups/${group.id}/join`)
    expect(again.status).toBe(200)
    expect(again.data).toEqual(joined.data)
    expect((await owner.post(`/client/groups/${group.id}/join`)).data.role).toBe('owner')

    const left = await stranger.post(`/client/groups/${group.id}/leave`)
    expect([left.status, left.data]).toEqual([200, { left: true }])
    expect((await stranger.post(`/client/groups/${group.id}/leave`)).error?.code).toBe('NOT_FOUND')
    expect((await owner.post(`/client/groups/${group.id}/leave`)).error?.code).toBe('OWNER_CANNOT_LEAVE')
    expect(await roles(group.id)).toEqual({ [owner.id]: 'owner' })
    const events = await project.sql(
      `select event_name, properties from app.engagement_events
        where app_user_id = $1 and properties ->> 'group_id' = $2 order by id`,
      [stranger.id, group.id],
    )
    expect(events).toEqual([
      { event_name: 'svc.group.joined', properties: { group_id: group.id, role: 'member' } },
      { event_name: 'svc.group.left', properties: { group_id: group.id, role: 'member' } },
    ])
  })

  test('exactly as many as fit', async () => {
    const maker = await project.user()
    const group = await make(maker, { max_members: 5 })
    const users = await Promise.all(Array.from({ length: 20 }, () => project.user()))
    const answers = await Promise.all(users.map((user) => user.post(`/client/groups/${group.id}/join`)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(4)
    const full = answers.filter(({ status }) => status === 409)
    expect(full).toHaveLength(16)
    expect(full[0]?.error?.code).toBe('GROUP_FULL')
    expect(Object.keys(await roles(group.id))).toHaveLength(5)
    // who is in it already is told so, however full it is
    const inside = users[answers.findIndex(({ status }) => status === 201)] as User
    expect((await inside.post(`/client/groups/${group.id}/join`)).status).toBe(200)
    expect((await add(group.id, stranger)).error?.code).toBe('GROUP_FULL')
    await inside.post(`/client/groups/${group.id}/leave`)
    expect((await stranger.post(`/client/groups/${group.id}/join`)).status).toBe(201)
  })

  test('one user twenty times at once: one row, one event', async () => {
    const group = await make(await project.user())
    const user = await project.user()
    const answers = await Promise.all(Array.from({ length: 20 }, () => user.post(`/client/groups/${group.id}/join`)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(19)
    const [events] = await project.sql(
      `select count(*)::int from app.engagement_events where app_user_id = $1 and event_name = 'svc.group.joined'`,
      [user.id],
    )
    expect(events.count).toBe(1)
  })

  test('a private group is not revealed', async () => {
    const group = await make(await project.user(), { is_public: false })
    const absent = randomUUID()
    for (const path of ['', '/members']) {
      const hidden = await stranger.get(`/client/groups/${group.id}${path}`)
      const missing = await stranger.get(`/client/groups/${absent}${path}`)
      expect(hidden.status).toBe(404)
      expect(hidden.body).toEqual(missing.body)
    }
    for (const act of ['join', 'leave']) {
      const hidden = await stranger.post(`/client/groups/${group.id}/${act}`)
      expect(hidden.status).toBe(404)
      expect(hidden.body).toEqual((await stranger.post(`/client/groups/${absent}/${act}`)).body)
      expect((await stranger.post(`/client/groups/nonsense/${act}`)).error?.code).toBe('NOT_FOUND')
    }
  })
})

describe('reading', () => {
  test('one group, with my role; the roster, longest first', async () => {
    const maker = await project.user()
    const group = await make(maker)
    expect((await stranger.get(`/client/groups/${group.id}`)).data).toEqual({ ...group, my_role: null })
    const members = [maker]
    for (let n = 0; n < 3; n += 1) {
      const user = await project.user()
      await user.post(`/client/groups/${group.id}/join`)
      members.push(user)
    }
    expect((await members[1]?.get(`/client/groups/${group.id}`))?.data).toMatchObject({
      my_role: 'member',
      member_count: 4,
    })
    const roster = await stranger.get(`/client/groups/${group.id}/members`)
    expect(roster.body).toMatchObject({ total: 4, offset: 0, limit: 100 })
    expect(roster.data.map((row: { app_user_id: string }) => row.app_user_id)).toEqual(members.map(({ id }) => id))
    const second = await stranger.get(`/client/groups/${group.id}/members?limit=1&offset=1`)
    expect(second.data).toEqual([roster.data[1]])
    expect((await stranger.get(`/client/groups/${group.id}/members?limit=0`)).error?.code).toBe('INVALID_INPUT')
    expect((await stranger.get('/client/groups/nonsense')).error?.code).toBe('NOT_FOUND')
  })

  test('a private roster for its members, viewers too', async () => {
    const maker = await project.user()
    const group = await make(maker, { is_public: false })
    const viewer = await project.user()
    expect((await add(group.id, viewer, 'viewer')).data.role).toBe('viewer')
    expect((await viewer.get(`/client/groups/${group.id}/members`)).body.total).toBe(2)
    expect((await viewer.get(`/client/groups/${group.id}`)).data.my_role).toBe('viewer')
  })

  test('the policies show the groups and rosters that the routes show, by one rule', async () => {
    const own = await harness.project()
    const [maker, member, other] = await Promise.all([own.user(), own.user(), own.user()])
    const groups = await Promise.all(
      [true, false].map(async (is_public) => {
        const { data } = await maker.post('/client/groups', { name: 'a group', is_public })
        await own.admin.post(`/groups/${data.id}/members`, { app_user_id: member.id, role: 'member' })
        return data.id as string
      }),
    )
    for (const user of [maker, member, other]) {
      const claims = { 'app.user_id': user.id, 'app.caller': 'user' }
      const rows = (text: string, id: string) => own.as('app_user', claims, text, [id])
      for (const id of groups) {
        const { status, body } = await user.get(`/client/groups/${id}/members`)
        expect((await user.get(`/client/groups/${id}`)).status).toBe(status)
        expect(await rows('select from app.groups where id = $1', id)).toHaveLength(status === 200 ? 1 : 0)
        const roster = await rows('select from app.group_members where group_id = $1', id)
        expect(roster).toHaveLength(status === 200 ? body.total : 0)
      }
    }
    expect((await other.get(`/client/groups/${groups[1]}`)).status).toBe(404)
  })

  test('a policy asks for the groups of the caller once in a statement', async () => {
    const plan = await project.as('app_user', { 'app.user_id': owner.id }, 'explain (verbose) select * from app.groups')
    const lines = plan.map((row) => row['QUERY PLAN']).join('\n')
    expect(lines).toContain('InitPlan')
    expect(lines).not.toContain('group_is_visible')
    expect(lines.match(/my_group_ids/g)).toHaveLength(1)
  })

  test('mine: newest membership first', async () => {
    const user = await project.user()
    expect((await user.get('/client/groups/mine')).data).toEqual([])
    const own = await make(user, { name: 'own', is_public: false })
    const other = await make(await project.user(), { name: 'other' })
    await user.post(`/client/groups/${other.id}/join`)
    expect((await user.get('/client/groups/mine')).data).toEqual([
      { role: 'member', groups: { ...other, member_count: 2 } },
      { role: 'owner', groups: own },
    ])
  })

  test('search: public groups by a part of the name, newest first, signs taken as they are', async () => {
    const own = await harness.project()
    const user = await own.user()
    for (const name of ['100% Chess', 'Chess_Club', 'chess\\fans', 'Go players'])
      await user.post('/client/groups', { name })
    await user.post('/client/groups', { name: 'Chess in secret', is_public: false })
    const found = async (query: string) => {
      const answer = await user.get(`/client/groups/search?${query}`)
      expect(answer.status).toBe(200)
      return [answer.body.total, answer.data.map((group: { name: string }) => group.name)]
    }
    expect(await found('')).toEqual([4, ['Go players', 'chess\\fans', 'Chess_Club', '100% Chess']])
    expect(await found('q=CHESS')).toEqual([3, ['chess\\fans', 'Chess_Club', '100% Chess']])
    expect(await found('q=%25')).toEqual([1, ['100% Chess']])
    expect(await found('q=_')).toEqual([1, ['Chess_Club']])
    expect(await found('q=%5C')).toEqual([1, ['chess\\fans']])
    expect(await found("q=' or true --")).toEqual([0, []])
    expect(await found('q=chess&limit=1&offset=1')).toEqual([3, ['Chess_Club']])
    expect((await user.get('/client/groups/search')).body).toMatchObject({ limit: 20, offset: 0 })
    expect((await user.get('/client/groups/search?limit=x')).error?.code).toBe('INVALID_INPUT')
  })

  test('another project knows nothing of it', async () => {
    const group = await make(await project.user())
    const other = await (await harness.project()).user()
    expect((await other.get(`/client/groups/${group.id}`)).status).toBe(404)
    expect((await other.post(`/client/groups/${group.id}/join`)).status).toBe(404)
  })
})

describe('the developer adds members', () => {
  test('once, in a role below the owner, to a private group too', async () => {
    const group = await make(await project.user(), { is_public: false })
    const user = await project.user()
    const added = await add(group.id, user, 'admin')
    expect([added.status, added.data.role]).toEqual([201, 'admin'])
    const again = await add(group.id, user, 'viewer')
    expect([again.status, again.data.role]).toEqual([200, 'admin'])
    expect((await project.admin.post(`/groups/${group.id}/members`, { app_user_id: stranger.id })).data.role).toBe(
      'member',
    )
    const [audited] = await project.sql(
      `select target_id, changes, status from app.audit_events where action = 'groups.member_add'
      and changes -> 'app_user_id' ->> 1 = $1`,
      [user.id],
    )
    expect(audited).toMatchObject({ target_id: group.id, changes: { role: [null, 'admin'] }, status: 201 })
  })

  test('refusals', async () => {
    const group = await make(await project.user())
    const post = (id: string, body: unknown) => project.admin.post(`/groups/${id}/members`, body)
    expect((await post(group.id, { app_user_id: randomUUID() })).error?.code).toBe('USER_NOT_FOUND')
    expect((await post(randomUUID(), { app_user_id: stranger.id })).error?.code).toBe('NOT_FOUND')
    expect((await post('x', { app_user_id: stranger.id })).error?.code).toBe('INVALID_ID')
    expect((await post(group.id, { app_user_id: 'x' })).error?.code).toBe('VALIDATION_ERROR')
    expect((await post(group.id, { app_user_id: stranger.id, role: 'owner' })).error?.code).toBe('VALIDATION_ERROR')
    expect((await post(group.id, '[]')).error?.code).toBe('INVALID_BODY')
  })
})

describe('when a user goes', () => {
  const gone = (user: User) => project.sql('delete from app.users where id = $1', [user.id])

  test('the oldest admin inherits, else the oldest member, else the group goes', async () => {
    const maker = await project.user()
    const [member, first, second] = [await project.user(), await project.user(), await project.user()]
    const group = await make(maker, { is_public: false })
    await add(group.id, member, 'member')
    await add(group.id, first, 'admin')
    await add(group.id, second, 'admin')
    await gone(maker)
    expect(await roles(group.id)).toEqual({ [member.id]: 'member', [first.id]: 'owner', [second.id]: 'admin' })
    await gone(second)
    await gone(first)
    expect(await roles(group.id)).toEqual({ [member.id]: 'owner' })
    await gone(member)
    expect(await project.sql('select from app.groups where id = $1', [group.id])).toEqual([])
  })

  test('a banned user inherits only where all are banned', async () => {
    const [maker, admin, member] = [await project.user(), await project.user(), await project.user()]
    const group = await make(maker)
    await add(group.id, admin, 'admin')
    await add(group.id, member, 'viewer')
    await project.sql('update app.users set is_banned = true where id = $1', [admin.id])
    await gone(maker)
    expect(await roles(group.id)).toEqual({ [admin.id]: 'admin', [member.id]: 'owner' })
    await gone(member)
    expect(await roles(group.id)).toEqual({ [admin.id]: 'owner' })
  })

  test('who inherits is told, once, after the change', async () => {
    const maker = await project.user()
    const [heir, other] = [await project.user(), await project.user()]
    const group = await make(maker)
    await add(group.id, heir, 'viewer')
    await gone(maker)
    await project.drain()
    const told = () =>
      project.sql(
        `select properties from app.engagement_events where app_user_id = $1 and event_name = 'svc.group.role_changed'`,
        [heir.id],
      )
    const inherited = {
      properties: { group_id: group.id, role: 'owner', previous_role: 'viewer', inherited: true },
    }
    expect(await told()).toEqual([inherited])
    await project.drain()
    // who is gone before the worker comes is told nothing, and stops nobody
    await add(group.id, other, 'member')
    await gone(heir)
    await gone(other)
    await project.drain()
    expect(await project.sql(`select from app.outbox where task = 'groups__notify'`)).toEqual([])
  })

  test('a member who goes makes room', async () => {
    const group = await make(await project.user(), { max_members: 2 })
    const member = await project.user()
    await member.post(`/client/groups/${group.id}/join`)
    await gone(member)
    expect((await stranger.post(`/client/groups/${group.id}/join`)).status).toBe(201)
  })

  test('owner and heirs at once: one of those who stay inherits', async () => {
    for (let round = 0; round < 5; round += 1) {
      const maker = await project.user()
      const group = await make(maker)
      const heirs = await Promise.all(Array.from({ length: 4 }, () => project.user()))
      for (const heir of heirs) await add(group.id, heir, 'admin')
      const [staying, ...leaving] = heirs as [User, User, User, User]
      await Promise.all([gone(maker), ...leaving.map(gone)])
      expect(await roles(group.id)).toEqual({ [staying.id]: 'owner' })
    }
  })

  test('two users become one: the higher role of the two, one owner', async () => {
    const [survivor, other] = [await project.user(), await project.user()]
    const [theirs, both, mine] = [await make(other), await make(other), await make(survivor)]
    await survivor.post(`/client/groups/${both.id}/join`)
    await other.post(`/client/groups/${mine.id}/join`)
    const [moved] = await project.sql('select internal.merge__group_members($1, $2) as n', [survivor.id, other.id])
    expect(moved.n).toBe(1)
    await gone(other)
    for (const group of [theirs, both, mine]) expect(await roles(group.id)).toEqual({ [survivor.id]: 'owner' })
  })

  test('two users become one: in 50 groups at most, and with no role in a group that is left', async () => {
    const [survivor, other, host] = [await project.user(), await project.user(), await project.user()]
    await project.sql('update app.users set external_id = $2 where id = $1', [survivor.id, survivor.id])
    await project.sql(
      `with made as (insert into app.groups (name) select 'one of many' from generate_series(1, 48) returning id)
       insert into app.group_members (group_id, app_user_id) select id, $1 from made`,
      [survivor.id],
    )
    const [both, older, newer] = [await make(host), await make(host), await make(host)]
    for (const user of [survivor, other]) await add(both.id, user, 'member')
    for (const group of [older, newer]) await add(group.id, other, 'member')
    const led = await make(other)
    await project.admin.post('/roles', { key: 'judge', name: 'Judge', permissions: ['judge'] })
    for (const group_id of [older.id, led.id])
      await project.admin.post('/roles/judge/assignments', { app_user_id: other.id, group_id })
    const { status, text } = await survivor.post('/client/auth/merge', { from_session_token: other.sessionToken })
    expect(status, text).toBe(200)
    expect((await survivor.get('/client/groups/mine')).data).toHaveLength(50)
    expect(await roles(led.id)).toEqual({ [survivor.id]: 'owner' })
    for (const group of [older, newer]) expect(await roles(group.id)).toEqual({ [host.id]: 'owner' })
    expect((await survivor.get('/client/roles')).data.roles).toMatchObject([{ key: 'judge', group_id: led.id }])
    expect((await project.admin.get('/roles/judge/assignments')).body.total).toBe(1)
  })
})

describe('what a database role may do', () => {
  const tried = (role: 'app_user' | 'app_anon' | 'app_server' | 'app_admin', sql: string, values: unknown[] = []) =>
    project.as(role, { 'app.user_id': stranger.id }, sql, values).catch((error) => (error as { code: string }).code)

  test('users see public groups and their own, and write nothing', async () => {
    const hidden = await make(await project.user(), { is_public: false })
    const open = await make(await project.user())
    const see = 'select id from app.groups where id = any($1)'
    expect(await tried('app_user', see, [[hidden.id, open.id]])).toEqual([{ id: open.id }])
    expect(await tried('app_user', 'select from app.group_members where group_id = $1', [hidden.id])).toEqual([])
    expect(await tried('app_server', see, [[hidden.id, open.id]])).toHaveLength(2)
    expect(await tried('app_admin', see, [[hidden.id, open.id]])).toHaveLength(2)
    expect(await tried('app_anon', see, [[open.id]])).toBe('42501')
    const join = 'insert into app.group_members (group_id, app_user_id, role) values ($1, $2, $3)'
    for (const role of ['app_user', 'app_server', 'app_admin'] as const) {
      expect(await tried(role, join, [hidden.id, stranger.id, 'owner'])).toBe('42501')
      expect(await tried(role, 'update app.groups set is_public = true where id = $1', [hidden.id])).toBe('42501')
      expect(await tried(role, 'delete from app.group_members where group_id = $1', [open.id])).toBe('42501')
    }
    for (const inner of [
      'group_enter($1, $2, $3)',
      'group_limit_check($2)',
      'group_succeed($1)',
      'merge__group_members($1, $2)',
    ])
      expect(await tried('app_user', `select internal.${inner}`.replaceAll(/\$\d/g, 'null'))).toBe('42501')
  })
})
