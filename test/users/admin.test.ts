import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type Answer, type Project, startHarness } from '#test/support/harness.ts'
import { openSocket } from '#test/support/realtime.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startSecond } from '#test/support/second.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
afterEach(() => harness.setTime(null))

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const unique = () => randomUUID().slice(0, 8)
const rowOf = async (id: string) => (await project.sql('select * from app.users where id = $1', [id]))[0]

describe('creating a user', () => {
  test('with nothing makes an anonymous one with a friendly name', async () => {
    const { status, data } = await admin.post('/users')
    expect(status).toBe(201)
    expect(data).toEqual({
      id: expect.any(String),
      email: null,
      phone: null,
      display_name: expect.stringMatching(/^\w+ \w+$/),
      avatar_url: null,
      external_id: null,
      anonymous_id: expect.stringMatching(/^anon_[0-9a-f]{64}$/),
      auth_providers: [],
      properties: {},
      timezone: null,
      email_verified: false,
      phone_verified: false,
      first_seen_at: expect.stringMatching(iso),
      last_seen_at: expect.stringMatching(iso),
      is_banned: false,
      muted_until: null,
      created_at: expect.stringMatching(iso),
      updated_at: expect.stringMatching(iso),
    })
    expect((await project.app.post('/client/auth/anonymous', { anonymous_id: data.anonymous_id })).data.user.id).toBe(
      data.id,
    )
    const events = await project.sql('select event_name, source from app.engagement_events where app_user_id = $1', [
      data.id,
    ])
    expect(events[0]).toEqual({ event_name: 'svc.user.created', source: 'system' })
  })

  test('takes every field, normalises the address, and gives no anonymous id beside an identity', async () => {
    const fields = {
      external_id: `e-${unique()}`,
      email: ` Ada-${unique()}@Example.ORG `,
      phone: `+49${Math.floor(1e9 + Math.random() * 8e9)}`,
      display_name: 'Ada',
      avatar_url: 'https://example.org/a.png',
      properties: { plan: 'pro', n: 1.5 },
    }
    const { status, data } = await admin.post('/users', { ...fields, is_banned: true, timezone: 'UTC', unknown: 1 })
    expect(status).toBe(201)
    expect(data).toMatchObject({
      ...fields,
      email: fields.email.trim().toLowerCase(),
      anonymous_id: null,
      is_banned: false,
      email_verified: false,
    })
    const named = await admin.post('/users', { anonymous_id: 'anon_mine' })
    expect(named.data.anonymous_id).toBe('anon_mine')
    expect(
      (await admin.post('/users', { external_id: null, display_name: null, properties: null })).data.anonymous_id,
    ).toMatch(/^anon_/)
  })

  test.each(['external_id', 'anonymous_id', 'email', 'phone'])(
    'refuses a second user with the same %s',
    async (field) => {
      const value = {
        external_id: unique(),
        anonymous_id: `anon_${unique()}`,
        email: `${unique()}@example.org`,
        phone: '+4930555000',
      }[field]
      expect((await admin.post('/users', { [field]: value })).status).toBe(201)
      expectRefusal(await admin.post('/users', { [field]: value }), 409, 'USER_ALREADY_EXISTS', field)
    },
  )

  test('of many at once with one address makes one', async () => {
    const email = `${unique()}@example.org`
    const answers = await Promise.all(Array.from({ length: 12 }, () => admin.post('/users', { email })))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.code === 'USER_ALREADY_EXISTS')).toHaveLength(11)
  })

  test.each([
    ['email', 'nonsense'],
    ['email', 5],
    ['phone', '030 123'],
    ['phone', '+0123456789'],
    ['anonymous_id', 'mine'],
    ['anonymous_id', 'anon_'],
    ['external_id', ''],
    ['external_id', 'x'.repeat(256)],
    ['display_name', ''],
    ['display_name', '  '],
    ['display_name', 'x'.repeat(101)],
    ['avatar_url', 'x'.repeat(2049)],
    ['properties', []],
    ['properties', 'x'],
    ['properties', { x: 'x'.repeat(65_536) }],
  ])('refuses %s: %j', async (field, value) => {
    const [before] = await project.sql('select count(*)::int as n from app.users')
    expectRefusal(await admin.post('/users', { [field]: value }), 400, 'INVALID_BODY', field)
    expect(await project.sql('select count(*)::int as n from app.users')).toEqual([before])
  })

  test('refuses what is no JSON object', async () => {
    for (const body of ['[]', '{', '"x"', 'null']) {
      expectRefusal(await admin.request('POST', '/users', body), 400, 'INVALID_BODY')
    }
  })

  test('is audited, without what the user is called', async () => {
    const { data } = await admin.post('/users', { email: `${unique()}@example.org`, display_name: 'Secret Name' })
    const [row] = await project.sql('select action, changes from app.audit_events where target_id = $1', [data.id])
    expect(row.action).toBe('users.create')
    expect(row.changes).toMatchObject({ email: ['[redacted]', '[redacted]'], is_banned: [null, false] })
    expect(JSON.stringify(row)).not.toContain('Secret Name')
  })
})

describe('the list of users', () => {
  let own: Project
  const make = async (fields: object) => (await own.admin.post('/users', fields)).data.id as string
  const ids = ({ data }: Answer) => data.map((user: { id: string }) => user.id)

  test('is newest-active first, paged, with an exact total', async () => {
    own = await harness.project()
    const made: string[] = []
    for (let n = 0; n < 5; n += 1) {
      harness.setTime(new Date(Date.UTC(2026, 10, 21, 10, n)))
      made.push(await make({ external_id: `u${n}` }))
    }
    harness.setTime(null)
    await own.sql(`update app.users set last_seen_at = '2026-11-22' where id = $1`, [made[1]])
    const order = [made[1], made[4], made[3], made[2], made[0]]
    const whole = await own.admin.get('/users')
    expect(ids(whole)).toEqual(order)
    expect(whole.body).toMatchObject({ total: 5, offset: 0, limit: 50 })
    const page = await own.admin.get('/users?limit=2&offset=1')
    expect(ids(page)).toEqual(order.slice(1, 3))
    expect(page.body).toMatchObject({ total: 5, offset: 1, limit: 2 })
    expect((await own.admin.get('/users?offset=9')).body).toMatchObject({ data: [], total: 5, offset: 9 })
    expect((await own.admin.get('/users?limit=1000')).body.limit).toBe(200)
  })

  test.each([
    ['a part of an address', 'ada@exa', ['email']],
    ['whatever the case', 'ADA', ['email', 'name']],
    ['a part of an external id', 'tomer-1', ['external']],
    ['a part of a name', 'lovelace', ['name']],
    ['a percent sign as it is', '100%', ['percent']],
    ['an underscore as it is', 'a_c', ['underscore']],
    ['a backslash as it is', 'b\\d', ['backslash']],
    ['nothing that matches', 'zzz', []],
    ['a lone percent sign', '%', ['percent']],
    ['three letters within', 'xyz', ['percent']],
    ['two letters at the beginning of a name', 'aD', ['email', 'name']],
    ['two letters within, of no beginning', 'yz', []],
    ['two letters at the beginning of an external id', 'cU', ['external']],
    ['one letter', 'N', ['name']],
    ['one digit', '1', ['percent']],
    ['two letters of another script within', '晓明', ['chinese']],
    ['every field of one user, who counts once', 'kim', ['every']],
    ['the beginning of every field of one user, who counts once', 'KI', ['every']],
  ])('searches: %s', async (_what, search, wanted) => {
    own = await harness.project()
    const made: Record<string, string> = {
      email: await make({ email: 'ada@example.org', display_name: 'one' }),
      external: await make({ external_id: 'customer-17', display_name: 'two' }),
      name: await make({ external_id: 'n', display_name: 'Ada Lovelace' }),
      percent: await make({ external_id: 'p', display_name: '100% xyz' }),
      underscore: await make({ external_id: 'q', display_name: 'a_c' }),
      decoy: await make({ external_id: 'r', display_name: 'abc 1000' }),
      backslash: await make({ external_id: 's', display_name: 'b\\d' }),
      chinese: await make({ external_id: 't', display_name: '王晓明' }),
      every: await make({ email: 'kim@kim.example', external_id: 'kim', display_name: 'Kim' }),
    }
    const answer = await own.admin.get(`/users?search=${encodeURIComponent(search)}`)
    expect(ids(answer).sort()).toEqual(wanted.map((name) => made[name]).sort())
    expect(answer.body.total).toBe(wanted.length)
    // a page that the newest-active users fill, whose total is counted apart
    expect((await own.admin.get(`/users?search=${encodeURIComponent(search)}&limit=1`)).body.total).toBe(wanted.length)
  })

  test('with an empty search is the whole list; the search is paged, too', async () => {
    own = await harness.project()
    for (let n = 0; n < 3; n += 1) await make({ display_name: `same ${n}` })
    expect((await own.admin.get('/users?search=')).body.total).toBe(3)
    const page = await own.admin.get('/users?search=same&limit=1&offset=1')
    expect([page.data.length, page.body.total]).toEqual([1, 3])
  })

  test('is sorted and filtered', async () => {
    own = await harness.project()
    const rows = [
      ['b', '2026-01-01', '2026-03-03', false],
      ['A', '2026-01-03', '2026-03-01', true],
      ['a', '2026-01-02', '2026-03-02', false],
    ] as const
    for (const [name, created, seen, banned] of rows)
      await own.sql(
        'insert into app.users (display_name, created_at, last_seen_at, is_banned) values ($1, $2, $3, $4)',
        [name, created, seen, banned],
      )
    const names = async (query: string) => {
      const { body } = await own.admin.get(`/users?${query}`)
      const found = (body.data as { display_name: string }[]).map(({ display_name }) => display_name)
      expect(body.total).toBe(found.length)
      return found.join('')
    }
    expect(await names('')).toBe('baA')
    expect(await names('sort=-last_seen_at')).toBe('baA')
    expect(await names('sort=last_seen_at')).toBe('Aab')
    expect(await names('sort=created_at')).toBe('baA')
    expect(await names('sort=-created_at')).toBe('Aab')
    expect((await names('sort=display_name')).toLowerCase()).toBe('aab')
    expect((await names('sort=-display_name')).toLowerCase()).toBe('baa')
    expect(await names('is_banned=true')).toBe('A')
    expect(await names('is_banned=false')).toBe('ba')
    expect(await names('last_seen_since=2026-03-02T00:00:00Z')).toBe('ba')
    expect(await names('last_seen_since=2026-03-02T00:00:00Z&sort=created_at&is_banned=false')).toBe('ba')
    expect((await names('search=a&sort=-created_at')).toLowerCase()).toBe('aa')
    const page = await own.admin.get('/users?sort=created_at&limit=1&offset=1')
    expect([page.data[0].display_name, page.body.total]).toEqual(['a', 3])
    const segment = (await own.admin.post('/segments', { key: 'some', name: 'Some', kind: 'static' })).data
    const [one] = await own.sql(`select id from app.users where display_name = 'A'`)
    await own.admin.post(`/segments/${segment.id}/members`, { user_ids: [one.id] })
    expect(await names(`segment_id=${segment.id}&sort=created_at`)).toBe('A')
    expect(await names(`segment_id=${segment.id}&is_banned=false`)).toBe('')
    expect(await names(`segment_id=${segment.id}&search=a&is_banned=true`)).toBe('A')
    expect(await names(`segment_id=${randomUUID()}&sort=created_at`)).toBe('')
  })

  test('finds an exact id and an exact phone number', async () => {
    own = await harness.project()
    const { data: one } = await own.admin.post('/users', { phone: '+491701234567', display_name: 'Ada' })
    const { data: other } = await own.admin.post('/users', { display_name: `friend of ${one.id}` })
    const ids = async (search: string, more = '') =>
      (await own.admin.get(`/users?search=${encodeURIComponent(search)}${more}`)).data.map(
        ({ id }: { id: string }) => id,
      )
    for (const phone of ['+491701234567', '491701234567', ' 491701234567'])
      for (const more of ['', '&sort=created_at']) expect(await ids(phone, more)).toEqual([one.id])
    expect(await ids('+49170123456')).toEqual([])
    // whom it names comes first
    expect(await ids(one.id)).toEqual([one.id, other.id])
    expect((await ids(one.id, '&sort=-created_at')).sort()).toEqual([one.id, other.id].sort())
    expect(await ids(one.id.toUpperCase(), '&limit=1')).toEqual([one.id])
  })

  test('of an unknown segment is empty', async () => {
    expect((await admin.get(`/users?segment_id=${randomUUID()}`)).body).toEqual({
      data: [],
      total: 0,
      offset: 0,
      limit: 50,
    })
    expect((await admin.get(`/users?segment_id=${randomUUID()}&search=a`)).body.total).toBe(0)
  })

  test.each([
    'limit=0',
    'sort=name',
    'is_banned=perhaps',
    'last_seen_since=yesterday',
    'last_seen_since=0000-01-01T00:00:00Z',
    'last_seen_since=2026-03-02T00:00:00%2B23:00',
    'limit=x',
    'offset=-1',
    'segment_id=x',
    `search=${'x'.repeat(201)}`,
    'search=a%00b',
  ])('refuses %s', async (query) => {
    expectRefusal(await admin.get(`/users?${query}`), 400, 'INVALID_BODY', query.split('=')[0])
  })

  test('is found by its index among many', async () => {
    own = await harness.project()
    await own.sql(`insert into app.users (display_name, email, external_id)
                   select 'User ' || n, 'user' || n || '@example.org', 'id-' || n from generate_series(1, 5000) n`)
    await own.sql('analyze app.users')
    // as the role that asks, for whom row-level security must not stand in the way of the index
    const plan = await own.as(
      'app_admin',
      { enable_seqscan: 'off' },
      `explain select id from app.users where email like '%user1234%' or external_id ilike '%user1234%' or display_name ilike '%user1234%'`,
    )
    expect(JSON.stringify(plan)).toContain('users_searched')
    const listed = await own.sql('explain select * from app.users order by last_seen_at desc, id desc limit 50')
    expect(JSON.stringify(listed)).toContain('users_last_seen')
    for (const [order, index] of [
      ['created_at desc, id desc', 'users_created'],
      ['lower(display_name) using operator(pg_catalog.~<~), id', 'users_named'],
      ['lower(display_name) using operator(pg_catalog.~>~), id desc', 'users_named'],
    ])
      expect(JSON.stringify(await own.sql(`explain select * from app.users order by ${order} limit 50`))).toContain(
        index,
      )
    expect(JSON.stringify(await own.sql('explain select count(*) from app.users where is_banned'))).toContain(
      'users_banned',
    )
    expect((await own.admin.get('/users?search=user1234')).body).toMatchObject({ total: 1 })
    expect((await own.admin.get('/users')).body.total).toBe(5000)
  })
})

describe('one user', () => {
  test('comes with streaks, their definitions, and entitlements', async () => {
    const user = await project.user()
    const key = `k${unique()}`
    const definition = await admin.post('/streaks', { key, name: 'Daily', qualifying_event: key })
    await user.post('/client/events', { event_name: key })
    const { status, data } = await admin.get(`/users/${user.id}`)
    expect(status).toBe(200)
    expect(data).toMatchObject({
      id: user.id,
      display_name: user.data.display_name,
      is_banned: false,
      entitlements: [],
    })
    expect(data.streaks).toHaveLength(1)
    expect(data.streaks[0]).toMatchObject({
      key,
      current_count: 1,
      streak_definition_id: definition.data.id,
      streak_definitions: { name: 'Daily', qualifying_event: key },
    })
  })

  test('has the sections that areas add, without a change to this one', async () => {
    const own = await harness.project()
    const user = await own.user()
    for (const [name, answer] of [
      ['passes', '[{"pass": "gold"}]'],
      ['wallets', '{"GOLD": 3}'],
    ]) {
      await own.sql(`create function internal.user_section__${name}(user_id uuid) returns json language sql stable as $$ select '${answer}'::json $$;
                     grant execute on function internal.user_section__${name} to app_admin`)
    }
    expect((await own.admin.get(`/users/${user.id}`)).data).toMatchObject({
      streaks: [],
      entitlements: [],
      passes: [{ pass: 'gold' }],
      wallets: { GOLD: 3 },
    })
  })

  test('is refused by name where there is none', async () => {
    for (const path of ['', '/events', '/events/export', '/export']) {
      expectRefusal(await admin.get(`/users/${randomUUID()}${path}`), 404, 'NOT_FOUND')
      for (const id of ['x', '%00', `${randomUUID()}%00`])
        expectRefusal(await admin.get(`/users/${id}${path}`), 400, 'INVALID_USER_ID', 'userId')
    }
  })
})

describe("a user's events", () => {
  test('are most recent first, without our own unless asked for', async () => {
    const user = await project.user()
    for (const [n, day] of [
      [1, 3],
      [2, 1],
      [3, 2],
    ]) {
      await project
        .onBehalfOf(user.id)
        .post('/client/events', { event_name: `e${n}`, occurred_at: `2026-11-0${day}T10:00:00Z`, properties: { n } })
    }
    const { body } = await admin.get(`/users/${user.id}/events`)
    expect(body.data.map((event: any) => event.event_name)).toEqual(['e1', 'e3', 'e2'])
    expect(body).toMatchObject({ total: 3, offset: 0, limit: 50 })
    expect(body.data[0]).toEqual({
      id: expect.any(String),
      app_user_id: user.id,
      event_name: 'e1',
      properties: { n: 1 },
      occurred_at: '2026-11-03T10:00:00.000Z',
      source: 'server',
      session_id: null,
    })
    const page = await admin.get(`/users/${user.id}/events?limit=1&offset=1`)
    expect([page.data[0].event_name, page.body.total, page.data.length]).toEqual(['e3', 3, 1])
    const all = await admin.get(`/users/${user.id}/events?include_system=true`)
    expect(all.body.total).toBe(5)
    expect(all.data.map((event: any) => event.event_name)).toContain('svc.user.created')
    expectRefusal(await admin.get(`/users/${user.id}/events?limit=0`), 400, 'INVALID_BODY')
  })
})

describe('changing a user', () => {
  test('sets the listed fields, replaces properties whole, and ignores the rest', async () => {
    const user = await project.user()
    await user.patch('/client/users/me', { properties: { old: 1 } })
    const fields = {
      display_name: 'Grace',
      avatar_url: 'https://example.org/g.png',
      external_id: unique(),
      email: `${unique()}@example.org`,
      phone: '+4930777111',
      timezone: 'Asia/Tokyo',
      properties: { fresh: true },
      is_banned: false,
      muted_until: '2027-01-01T00:00:00.000Z',
    }
    const { status, data } = await admin.patch(`/users/${user.id}`, {
      ...fields,
      anonymous_id: 'anon_x',
      email_verified: true,
    })
    expect(status).toBe(200)
    expect(data).toMatchObject({ ...fields, anonymous_id: user.data.anonymous_id, email_verified: false })
    expect((await admin.get(`/users/${user.id}`)).data).toMatchObject(fields)
    const cleared = await admin.patch(`/users/${user.id}`, {
      avatar_url: null,
      external_id: null,
      email: null,
      phone: null,
      timezone: null,
      muted_until: null,
    })
    expect(cleared.data).toMatchObject({
      avatar_url: null,
      external_id: null,
      email: null,
      phone: null,
      timezone: null,
      muted_until: null,
      display_name: 'Grace',
    })
  })

  test('with nothing answers the row, unchanged', async () => {
    const user = await project.user()
    const before = await rowOf(user.id)
    harness.advance(60)
    for (const body of [{}, { unknown: 1 }]) {
      expect(await admin.patch(`/users/${user.id}`, body)).toMatchObject({ status: 200, data: { id: user.id } })
    }
    expect(await rowOf(user.id)).toEqual(before)
  })

  test('an address or number that changes is not verified any more; one that stays is', async () => {
    const user = await project.user()
    const email = `${unique()}@example.org`
    await project.sql(
      `update app.users set email = $2, phone = '+4930123999', email_verified = true, phone_verified = true where id = $1`,
      [user.id, email],
    )
    expect(
      (await admin.patch(`/users/${user.id}`, { email: email.toUpperCase(), display_name: 'x' })).data,
    ).toMatchObject({ email_verified: true, phone_verified: true })
    expect((await admin.patch(`/users/${user.id}`, { email: `new-${email}` })).data).toMatchObject({
      email_verified: false,
      phone_verified: true,
    })
    expect((await admin.patch(`/users/${user.id}`, { phone: '+4930123998' })).data).toMatchObject({
      phone_verified: false,
    })
  })

  test('a ban ends what tokens can do at once, and its end lets them work again', async () => {
    const user = await project.user()
    expect((await user.get('/client/users/me')).status).toBe(200)
    expect((await admin.patch(`/users/${user.id}`, { is_banned: true })).data.is_banned).toBe(true)
    expectRefusal(await user.get('/client/users/me'), 401, 'UNAUTHORIZED')
    expectRefusal(
      await project.app.post('/client/auth/anonymous', { anonymous_id: user.data.anonymous_id }),
      403,
      'USER_BANNED',
    )
    await admin.patch(`/users/${user.id}`, { is_banned: false })
    expect((await user.get('/client/users/me')).status).toBe(200)
  })

  test.each(['external_id', 'email', 'phone'])('refuses the %s of another user and changes nothing', async (field) => {
    const value = { external_id: unique(), email: `${unique()}@example.org`, phone: '+4930888222' }[field]
    await admin.post('/users', { [field]: value })
    const user = await project.user()
    const before = await rowOf(user.id)
    expectRefusal(
      await admin.patch(`/users/${user.id}`, { [field]: value, display_name: 'x' }),
      409,
      'USER_ALREADY_EXISTS',
      field,
    )
    expect(await rowOf(user.id)).toEqual(before)
  })

  test.each([
    ['display_name', null],
    ['display_name', ''],
    ['email', 'x'],
    ['phone', '123'],
    ['timezone', 'Mars/Olympus'],
    ['properties', null],
    ['properties', { x: 'x'.repeat(65_536) }],
    ['is_banned', 'yes'],
    ['is_banned', null],
    ['muted_until', 'tomorrow'],
    ['muted_until', '2026-02-30'],
  ])('refuses %s: %j', async (field, value) => {
    const user = await project.user()
    const before = await rowOf(user.id)
    expectRefusal(await admin.patch(`/users/${user.id}`, { [field]: value }), 400, 'VALIDATION_ERROR', field)
    expect(await rowOf(user.id)).toEqual(before)
  })

  test('refuses what it cannot read, and who is not there', async () => {
    const user = await project.user()
    for (const body of ['[]', '{'])
      expectRefusal(await admin.request('PATCH', `/users/${user.id}`, body), 400, 'INVALID_BODY')
    expectRefusal(await admin.patch(`/users/${randomUUID()}`, {}), 404, 'NOT_FOUND')
    expectRefusal(await admin.patch('/users/x', {}), 400, 'INVALID_ID')
  })

  test('is audited by field, values of personal ones left out', async () => {
    const user = await project.user()
    await admin.patch(`/users/${user.id}`, { is_banned: true, display_name: 'Hidden Name' })
    const [row] = await project.sql('select action, actor, changes from app.audit_events where target_id = $1', [
      user.id,
    ])
    expect(row).toMatchObject({ action: 'users.update', actor: { type: 'developer', id: project.developer.id } })
    expect(row.changes).toEqual({ is_banned: [false, true], display_name: ['[redacted]', '[redacted]'] })
  })
})

describe('a session for testing', () => {
  test('signs in as the user, in a project of environment development, and is audited', async () => {
    const own = await harness.project({ environment: 'development' })
    const { data: made } = await own.admin.post('/users', { email: `${unique()}@example.org` })
    const { status, data } = await own.admin.post(`/users/${made.id}/session`)
    expect(status).toBe(201)
    expect(data).toMatchObject({ is_new_user: false, user: { id: made.id } })
    const user = own.app.with({ authorization: `Bearer ${data.session_token}` })
    expect((await user.get('/client/users/me')).data.id).toBe(made.id)
    expect((await own.app.post('/client/auth/refresh', { refresh_token: data.refresh_token })).status).toBe(200)
    const rows = await own.sql(`select actor from app.audit_events where action = 'users.session' and target_id = $1`, [
      made.id,
    ])
    expect(rows).toMatchObject([{ actor: { id: own.developer.id } }])
    await own.admin.patch(`/users/${made.id}`, { is_banned: true })
    expectRefusal(await own.admin.post(`/users/${made.id}/session`), 403, 'USER_BANNED')
    expectRefusal(await own.admin.post(`/users/${randomUUID()}/session`), 404, 'NOT_FOUND')
    expectRefusal(await own.admin.post('/users/x/session'), 400, 'INVALID_ID')
  })

  test('ends when its project leaves development, everywhere, and does not come back with it', async () => {
    harness.setTime('2026-12-01T10:00:00Z')
    const own = await harness.project({ environment: 'development' })
    const second = await startSecond(harness)
    const { id } = await own.user()
    const other = await own.user()
    const { data } = await own.admin.post(`/users/${id}/session`)
    const user = own.app.with({ authorization: `Bearer ${data.session_token}` })
    const far = second.as(user.headers)
    const socket = await openSocket(harness.url, user.headers)
    for (const by of [user, far]) expect((await by.get('/client/users/me')).status).toBe(200)
    const { data: renewed } = await own.app.post('/client/auth/refresh', { refresh_token: data.refresh_token })
    const again = own.app.with({ authorization: `Bearer ${renewed.session_token}` })

    expect((await own.admin.patch('', { environment: 'production' })).status).toBe(200)
    for (const by of [user, again]) {
      expectRefusal(await by.get('/client/users/me'), 401, 'UNAUTHORIZED')
      expectRefusal(await by.patch('/client/users/me', { display_name: 'not me' }), 401, 'UNAUTHORIZED')
    }
    await expect.poll(async () => (await far.get('/client/users/me')).status, { timeout: 10_000 }).toBe(401)
    expect(await socket.closed).toBe(4401)
    const refresh = () => own.app.post('/client/auth/refresh', { refresh_token: renewed.refresh_token })
    expectRefusal(await refresh(), 401, 'INVALID_TOKEN')
    expect((await other.get('/client/users/me')).status).toBe(200)

    harness.advance(60)
    expect((await own.admin.patch('', { environment: 'development' })).status).toBe(200)
    expectRefusal(await user.get('/client/users/me'), 401, 'UNAUTHORIZED')
    expectRefusal(await refresh(), 401, 'INVALID_TOKEN')
    const later = (await own.admin.post(`/users/${id}/session`)).data
    const back = own.app.with({ authorization: `Bearer ${later.session_token}` })
    expect((await back.get('/client/users/me')).status).toBe(200)
    expect((await own.app.post('/client/auth/refresh', { refresh_token: later.refresh_token })).status).toBe(200)
  })

  test('is refused in production', async () => {
    const user = await project.user()
    const [before] = await project.sql('select count(*)::int as n from app.user_sessions')
    expectRefusal(await admin.post(`/users/${user.id}/session`), 403, 'FORBIDDEN')
    expect(await project.sql('select count(*)::int as n from app.user_sessions')).toEqual([before])
  })
})
