import { randomUUID } from 'node:crypto'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Project, startHarness, type User } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

const rowOf = async (id: string) => (await project.sql('select * from app.users where id = $1', [id]))[0]
const change = (user: User, body: unknown) => user.patch('/client/users/me', body)

describe('changing the own profile', () => {
  test('sets the four fields, answers the user, and says when', async () => {
    const user = await project.user()
    harness.advance(60)
    const fields = {
      display_name: 'Ada 🚀',
      avatar_url: 'https://example.org/a.png',
      properties: { level: 3 },
      timezone: 'Europe/Berlin',
    }
    const { status, data } = await change(user, fields)
    expect([status, data]).toEqual([200, { ...user.data, ...fields }])
    expect((await user.get('/client/users/me')).data).toEqual(data)
    const row = await rowOf(user.id)
    expect(row.updated_at > row.created_at).toBe(true)
  })

  test('ignores every other field', async () => {
    const user = await project.user()
    const before = await rowOf(user.id)
    const sent = {
      email: 'a@b.de',
      phone: '+4930123456',
      is_banned: true,
      email_verified: true,
      external_id: 'x',
      anonymous_id: 'anon_x',
      id: randomUUID(),
      muted_until: null,
    }
    expect((await change(user, { ...sent, display_name: 'Ada' })).status).toBe(200)
    expect(await rowOf(user.id)).toEqual({ ...before, display_name: 'Ada', updated_at: expect.any(Date) })
  })

  test.each([{}, { email: 'a@b.de' }, { unknown: 1, Display_Name: 'x' }])(
    'of none of the four is refused: %j',
    async (body) => {
      const user = await project.user()
      const before = await rowOf(user.id)
      expectRefusal(await change(user, body), 400, 'INVALID_INPUT')
      expect(await rowOf(user.id)).toEqual(before)
    },
  )

  test('merges properties at the top level, and a null removes its key', async () => {
    const user = await project.user()
    await change(user, { properties: { a: 1, b: { c: 1, d: 2 }, e: 'x' } })
    expect(
      (await change(user, { properties: { b: { c: 5 }, e: null, f: [null], never: null } })).data.properties,
    ).toEqual({ a: 1, b: { c: 5 }, f: [null] })
    expect((await change(user, { properties: {} })).data.properties).toEqual({ a: 1, b: { c: 5 }, f: [null] })
  })

  test('of many at once loses none of their properties', async () => {
    const user = await project.user()
    await Promise.all(Array.from({ length: 20 }, (_, n) => change(user, { properties: { [`k${n}`]: n } })))
    expect(Object.keys((await rowOf(user.id)).properties)).toHaveLength(20)
  })

  test('holds 64 KB of properties in all', async () => {
    const user = await project.user()
    const half = 'x'.repeat(32_000)
    expect((await change(user, { properties: { a: half } })).status).toBe(200)
    expect((await change(user, { properties: { b: half } })).status).toBe(200)
    expectRefusal(await change(user, { properties: { c: half } }), 400, 'INVALID_INPUT', 'properties')
    expect(Object.keys((await rowOf(user.id)).properties)).toEqual(['a', 'b'])
    expect((await change(user, { properties: { a: null, c: half } })).status).toBe(200)
  })

  test('overwrites a time zone, which reading never does', async () => {
    const user = await project.user()
    await change(user, { timezone: 'Europe/Berlin' })
    expect((await user.get('/client/users/me', { 'time-zone': 'Asia/Tokyo' })).data.timezone).toBe('Europe/Berlin')
    expect((await change(user, { timezone: 'America/New_York' })).data.timezone).toBe('America/New_York')
  })

  test.each([null, '', 'Mars/Olympus', 'europe/berlin', '+02:00', 5, {}, []])(
    'refuses the time zone %j and changes nothing',
    async (timezone) => {
      const user = await project.user()
      await change(user, { timezone: 'UTC' })
      const before = await rowOf(user.id)
      expectRefusal(await change(user, { timezone, display_name: 'x' }), 400, 'INVALID_TIMEZONE', 'timezone')
      expect(await rowOf(user.id)).toEqual(before)
    },
  )

  test.each([
    ['display_name', null],
    ['display_name', ''],
    ['display_name', ' '],
    ['display_name', '\t\n'],
    ['display_name', '\u00a0\u200b\u3000\u2060'],
    ['display_name', 'x'.repeat(101)],
    ['display_name', 5],
    ['avatar_url', 5],
    ['avatar_url', 'x'.repeat(2049)],
    ['properties', null],
    ['properties', []],
    ['properties', 'x'],
  ])('refuses %s: %j and changes nothing', async (field, value) => {
    const user = await project.user()
    const before = await rowOf(user.id)
    expectRefusal(await change(user, { [field]: value, timezone: 'UTC' }), 400, 'INVALID_INPUT', field)
    expect(await rowOf(user.id)).toEqual(before)
  })

  test('takes 100 characters of a name, an avatar of 2048, and null for no avatar', async () => {
    const user = await project.user()
    expect((await change(user, { display_name: '🚀'.repeat(100), avatar_url: 'x'.repeat(2048) })).status).toBe(200)
    expect((await change(user, { avatar_url: null })).data.avatar_url).toBeNull()
  })

  test('refuses what is no JSON object', async () => {
    const user = await project.user()
    for (const body of ['[]', '{', 'null'])
      expectRefusal(await user.request('PATCH', '/client/users/me', body), 400, 'INVALID_INPUT')
  })

  test('of a user who has just gone is 404', async () => {
    const user = await project.user()
    await user.get('/client/users/me')
    await project.sql('delete from app.users where id = $1', [user.id])
    expectRefusal(await change(user, { display_name: 'x' }), 404, 'NOT_FOUND')
  })

  test('as a role in SQL reaches these four columns of the own row, and no other', async () => {
    const user = await project.user()
    const claims = { 'app.user_id': user.id, 'app.caller': 'user' }
    const columns = await project.sql(
      `select attname as name from pg_attribute where attrelid = 'app.users'::regclass and attnum > 0 and not attisdropped`,
    )
    for (const { name } of columns) {
      const update = project.as('app_user', claims, `update app.users set ${name} = ${name}`)
      if (['display_name', 'avatar_url', 'properties', 'timezone'].includes(name)) await update
      else await expect(update, name).rejects.toThrow(/permission denied/)
    }
    await expect(project.as('app_user', claims, `insert into app.users (display_name) values ('x')`)).rejects.toThrow(
      /permission denied/,
    )
  })
})

describe('a public profile', () => {
  test('is name, picture and the keys of properties.public', async () => {
    const [user, other] = [await project.user(), await project.user()]
    await change(other, {
      display_name: 'Grace',
      avatar_url: 'https://example.org/g',
      properties: { secret: 1, public: { bio: 'hi', level: 4 } },
    })
    expect(await user.get(`/client/users/${other.id}`)).toMatchObject({ status: 200 })
    expect((await user.get(`/client/users/${other.id}`)).data).toEqual({
      id: other.id,
      display_name: 'Grace',
      avatar_url: 'https://example.org/g',
      bio: 'hi',
      level: 4,
    })
    expect((await user.get(`/client/users/${user.id}`)).data).toEqual({
      id: user.id,
      display_name: user.data.display_name,
      avatar_url: null,
    })
  })

  test.each([[5], ['x'], [[1]], [null]])('is without them where properties.public is %j', async (value) => {
    const [user, other] = [await project.user(), await project.user()]
    await project.sql('update app.users set properties = $2 where id = $1', [
      other.id,
      JSON.stringify({ public: value }),
    ])
    expect(Object.keys((await user.get(`/client/users/${other.id}`)).data)).toEqual([
      'id',
      'display_name',
      'avatar_url',
    ])
  })

  test('never passes for another', async () => {
    const [user, other] = [await project.user(), await project.user()]
    await change(other, {
      display_name: 'Real',
      properties: { public: { id: user.id, display_name: 'Fake', avatar_url: 'x' } },
    })
    expect((await user.get(`/client/users/${other.id}`)).data).toEqual({
      id: other.id,
      display_name: 'Real',
      avatar_url: null,
    })
  })

  test('of nobody is refused', async () => {
    const user = await project.user()
    expectRefusal(await user.get(`/client/users/${randomUUID()}`), 404, 'USER_NOT_FOUND')
    expectRefusal(await user.get('/client/users/x'), 400, 'INVALID_ID')
  })
})

describe('the search of users for each other', () => {
  let own: Project
  let user: User
  const named: Record<string, string> = {}
  const search = (q: string, more = '') => user.get(`/client/users/search?q=${encodeURIComponent(q)}${more}`)
  const found = async (q: string, more = '') => (await search(q, more)).data.map((profile: any) => profile.display_name)

  beforeAll(async () => {
    own = await harness.project()
    user = await own.user()
    for (const name of [
      'Adam',
      'ada',
      'Adabel',
      'Zoë',
      'Zoe',
      '100% Ada',
      'a_b',
      'axb',
      'banned ada',
      'adaBanned',
      'Über',
    ]) {
      const { data } = await own.admin.post('/users', { display_name: name })
      named[name] = data.id
    }
    await own.admin.patch(`/users/${named['adaBanned']}`, { is_banned: true })
  })

  test('is off until the project allows it', async () => {
    expectRefusal(await search('ada'), 403, 'FORBIDDEN')
    for (const user_search_enabled of [true, false, true]) {
      expect((await own.admin.patch('', { user_search_enabled })).status).toBe(200)
      expect((await own.developer.get(`/admin/projects/${own.id}`)).data).toMatchObject({ user_search_enabled })
      const answer = await search('ada')
      if (user_search_enabled) expect(answer.status).toBe(200)
      else expectRefusal(answer, 403, 'FORBIDDEN')
    }
  })

  test.each([
    ['ada', ['ada', 'Adabel', 'Adam']],
    ['ADA', ['ada', 'Adabel', 'Adam']],
    ['adab', ['Adabel']],
    ['  adab ', ['Adabel']],
    ['zo', ['Zoe', 'Zoë']],
    ['a_', ['a_b']],
    ['100%', ['100% Ada']],
    ['a%', []],
    ['über', ['Über']],
    ['nobody', []],
  ])('finds by the beginning of the name: %s', async (q, wanted) => {
    expect(await found(q)).toEqual(wanted)
  })

  test('shows public profiles only', async () => {
    await own.sql(
      `update app.users set properties = '{"public": {"bio": "x"}, "secret": 1}', email = 'ada@example.org' where id = $1`,
      [named['Adabel']],
    )
    expect((await search('adabel')).data).toEqual([
      { id: named['Adabel'], display_name: 'Adabel', avatar_url: null, bio: 'x' },
    ])
  })

  test('returns 20 by default, 50 at most', async () => {
    await own.sql(`insert into app.users (display_name) select 'many ' || n from generate_series(1, 60) n`)
    expect(
      [await found('many'), await found('many', '&limit=3'), await found('many', '&limit=999')].map(
        (list) => list.length,
      ),
    ).toEqual([20, 3, 50])
  })

  test.each(['', 'a', ' a ', 'x'.repeat(101), 'ab\0'])('refuses %j', async (q) => {
    expectRefusal(await search(q), 400, 'INVALID_INPUT', 'q')
  })

  test('refuses to guess', async () => {
    expectRefusal(await user.get('/client/users/search'), 400, 'INVALID_INPUT', 'q')
    expectRefusal(await search('ada', '&limit=0'), 400, 'INVALID_INPUT', 'limit')
  })

  test('asks an index', async () => {
    const plan = await own.as(
      'app_auth',
      { enable_seqscan: 'off' },
      `explain select id from app.users n where lower(n.display_name) operator(pg_catalog.~>=~) 'ada'
          and lower(n.display_name) operator(pg_catalog.~<=~) 'adb' order by lower(n.display_name) using operator(pg_catalog.~<~), n.id limit 20`,
    )
    expect(JSON.stringify(plan)).toContain('users_named')
    expect(JSON.stringify(plan)).not.toContain('Sort')
  })
})
