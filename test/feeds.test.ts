import fc from 'fast-check'
import pg from 'pg'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const stranger = await harness.project()
afterEach(() => harness.setTime(null))

/** A time shortly after now, so that sessions last. */
const soon = (seconds: number) => new Date(Math.ceil(Date.now() / 60_000) * 60_000 + seconds * 1000)
const unknown = '00000000-0000-4000-8000-000000000000'
const people = (count: number) => Promise.all(Array.from({ length: count }, () => project.user()))
const befriend = (one: User, other: User) => {
  const [a, b] = [one.id, other.id].sort()
  return project.sql(
    `insert into app.friendships (user_a, user_b, status, requested_by, responded_at) values ($1, $2, 'accepted', $1, now())`,
    [a, b],
  )
}
const post = async (user: User, action: string, more: object = {}) => {
  const answer = await user.post('/client/feeds', { action, ...more })
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const actions = async (user: User, path = '') => {
  const answer = await user.get(`/client/feeds${path}`)
  expect(answer.status, answer.text).toBe(200)
  expect(answer.body.total).toBeGreaterThanOrEqual(answer.data.length)
  return answer.data.map(({ action }: any) => action) as string[]
}
const group = async (owner: User, fields: object = {}) =>
  (await owner.post('/client/groups', { name: 'a group', ...fields })).data.id as string
/** The totals of actors as they are kept, and as entries say. */
const totals = () =>
  Promise.all([
    project.sql('select actor_key, entries::int, last_at, has_groups from app.feed_totals order by 1'),
    project.sql(
      `select actor_id as actor_key, (count(*) filter (where group_id is null))::int as entries,
              max(created_at) filter (where group_id is null) as last_at, bool_or(group_id is not null) as has_groups
         from app.feed_entries where is_home and actor_id is not null group by 1 order by 1`,
    ),
  ])
const expectExactTotals = async () => {
  const [kept, counted] = await totals()
  expect(kept).toEqual(counted)
}
const silence = () => project.admin.put('/feeds/settings', { events: [] })
const allEvents = ['achievement.unlocked', 'challenge.completed', 'group.joined', 'level.reached', 'streak.milestone']

describe('posting', () => {
  test('answers the entry with its actor, and what was left out as defaults', async () => {
    const [user] = (await people(1)) as [User]
    const entry = await post(user, 'run.finished', { target_id: '5k', metadata: { minutes: 27 } })
    expect(entry).toEqual({
      id: expect.any(String),
      actor_id: user.id,
      action: 'run.finished',
      target_id: '5k',
      group_id: null,
      metadata: { minutes: 27 },
      created_at: expect.any(String),
      actor: { id: user.id, display_name: expect.any(String), avatar_url: null },
    })
    expect(await post(user, 'a')).toMatchObject({ target_id: null, group_id: null, metadata: {} })
    expect((await user.get('/client/feeds/me')).data.map(({ id }: any) => id)).toContain(entry.id)
  })

  test('is refused to a muted user, who may delete', async () => {
    const [user] = (await people(1)) as [User]
    const entry = await post(user, 'a')
    const muted_until = new Date(harness.now().getTime() + 60_000).toISOString()
    await project.sql('update app.users set muted_until = $2 where id = $1', [user.id, muted_until])
    expectRefusal(await user.post('/client/feeds', { action: 'a' }), 403, 'USER_MUTED')
    expect((await user.delete(`/client/feeds/${entry.id}`)).status).toBe(200)
    harness.setTime(muted_until)
    await post(project.onBehalfOf(user.id) as User, 'b')
    harness.setTime(null)
  })

  test('refuses each field out of its bounds, and actions that events make', async () => {
    const [user] = (await people(1)) as [User]
    const bad: [string, object][] = [
      ['action', {}],
      ...['', 'A', '1a', 'a'.repeat(65), 'a-b', 'a b'].map((action): [string, object] => ['action', { action }]),
      ['target_id', { action: 'a', target_id: '' }],
      ['target_id', { action: 'a', target_id: 'x'.repeat(256) }],
      ['group_id', { action: 'a', group_id: 'x' }],
      ['metadata', { action: 'a', metadata: [] }],
      ['metadata', { action: 'a', metadata: { text: 'x'.repeat(4096) } }],
      ...allEvents.map((action): [string, object] => ['action', { action }]),
    ]
    for (const [field, body] of bad) expectInvalid(await user.post('/client/feeds', body), field)
    expect(await actions(user, '/me')).toEqual([])
    await post(user, `a${'.'.repeat(63)}`, { target_id: 'x'.repeat(255), metadata: { text: 'x'.repeat(4000) } })
  })

  test('thirty an hour, also by many callers at once', async () => {
    const [user, other] = (await people(2)) as [User, User]
    const answers = await Promise.all(
      Array.from({ length: 2 }, async () => {
        const statuses = []
        for (let n = 0; n < 16; n += 1) statuses.push(await user.post('/client/feeds', { action: 'a' }))
        return statuses
      }),
    )
    const refused = answers.flat().filter(({ status }) => status !== 201)
    expect(refused).toHaveLength(2)
    for (const answer of refused) expectRefusal(answer, 429, 'RATE_LIMITED')
    expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThan(0)
    await post(other, 'a')
    expect((await user.get('/client/feeds/me')).body.total).toBe(30)
    harness.setTime(new Date(Date.now() + 3_601_000))
    // the session is over by then
    expect((await project.onBehalfOf(user.id).post('/client/feeds', { action: 'a' })).status).toBe(201)
  })

  test('to a group: members do, viewers and strangers do not, and a private group is not revealed', async () => {
    const [owner, member, viewer, outsider] = (await people(4)) as [User, User, User, User]
    const open = await group(owner)
    const secret = await group(owner, { is_public: false })
    for (const id of [open, secret]) {
      await project.admin.post(`/groups/${id}/members`, { app_user_id: member.id })
      await project.admin.post(`/groups/${id}/members`, { app_user_id: viewer.id, role: 'viewer' })
      expect(await post(member, 'cheer', { group_id: id })).toMatchObject({ group_id: id })
      expectRefusal(await viewer.post('/client/feeds', { action: 'a', group_id: id }), 403, 'GROUP_ROLE_FORBIDDEN')
    }
    expectRefusal(await outsider.post('/client/feeds', { action: 'a', group_id: open }), 403, 'NOT_A_MEMBER')
    expectRefusal(await outsider.post('/client/feeds', { action: 'a', group_id: secret }), 404, 'NOT_FOUND')
    expectRefusal(await outsider.post('/client/feeds', { action: 'a', group_id: unknown }), 404, 'NOT_FOUND')
  })
})

describe('the home feed', () => {
  test('has own entries and those of accepted friends, newest first, with an exact total, in pages', async () => {
    await silence()
    const [me, friend, asked, nobody] = (await people(4)) as [User, User, User, User]
    await befriend(me, friend)
    await project.sql(
      `insert into app.friendships (user_a, user_b, status, requested_by) values (least($1, $2::uuid), greatest($1, $2::uuid), 'pending', $1)`,
      [me.id, asked.id],
    )
    const order = ['one', 'two', 'three', 'four', 'five', 'six']
    for (const [n, action] of order.entries()) await post([me, friend][n % 2] as User, action)
    await post(asked, 'unseen')
    await post(nobody, 'unseen')
    expect(await actions(me)).toEqual(order.toReversed())
    expect(await actions(friend)).toEqual(order.toReversed())
    expect(await actions(me, '/me')).toEqual(['five', 'three', 'one'])
    const pages = [0, 2, 4, 6].map((offset) => me.get(`/client/feeds?limit=2&offset=${offset}`))
    const read = (await Promise.all(pages)).map(({ body }) => body)
    expect(read.flatMap(({ data }) => data.map(({ action }: any) => action))).toEqual(order.toReversed())
    expect(read.map(({ total }) => total)).toEqual([6, 6, 6, 6])
    expect((await me.get('/client/feeds')).body).toMatchObject({ limit: 20, offset: 0 })
    for (const bad of ['limit=0', 'offset=-1', 'since=yesterday'])
      expectRefusal(await me.get(`/client/feeds?${bad}`), 400, 'INVALID_INPUT')
  })

  test('since: from that time on, in page and total', async () => {
    const [me, friend] = (await people(2)) as [User, User]
    await befriend(me, friend)
    const times = [0, 1, 2, 3, 4].map(soon)
    for (const [n, who] of [me, friend, me, friend].entries()) {
      harness.setTime(times[n] as Date)
      await post(who, `at.${n}`)
    }
    const { data, body } = await me.get(`/client/feeds?since=${times[2]?.toISOString()}&limit=1`)
    expect([data.map(({ action }: any) => action), body.total]).toEqual([['at.3'], 2])
    expect(await actions(me, `?since=${times[4]?.toISOString()}`)).toEqual([])
  })

  test('a private group never reaches it, nor what was posted while the group was private', async () => {
    await silence()
    const [me, friend] = (await people(2)) as [User, User]
    await befriend(me, friend)
    const open = await group(me)
    const secret = await group(me, { is_public: false })
    await post(me, 'in.open', { group_id: open })
    await post(me, 'in.secret', { group_id: secret })
    for (const user of [me, friend]) expect(await actions(user)).toEqual(['in.open'])
    expect((await friend.get('/client/feeds')).body.total).toBe(1)
    expect(await actions(me, '/me')).toEqual(['in.secret', 'in.open'])
    await project.sql(`update app.groups set is_public = not is_public where id in ($1, $2)`, [open, secret])
    for (const user of [me, friend])
      expect((await user.get('/client/feeds')).body).toMatchObject({ data: [], total: 0 })
    await project.sql(`update app.groups set is_public = true where id = $1`, [open])
    expect(await actions(friend)).toEqual(['in.open'])
  })

  test('hidden actions are left out of it, and of the total', async () => {
    await silence()
    const [me, friend] = (await people(2)) as [User, User]
    await befriend(me, friend)
    const club = await group(friend)
    await me.post(`/client/groups/${club}/join`)
    for (const action of ['loud', 'quiet', 'loud']) await post(friend, action, { group_id: club })
    await me.patch('/client/users/me', { properties: { feed_hidden_actions: ['loud', 7] } })
    for (const path of ['', `/group/${club}`]) {
      expect(await actions(me, path)).toEqual(['quiet'])
      expect((await me.get(`/client/feeds${path}`)).body.total).toBe(1)
    }
    await me.patch('/client/users/me', { properties: { feed_hidden_actions: 'loud' } })
    expect(await actions(me)).toEqual(['loud', 'quiet', 'loud'])
  })

  test('banned friends, and friends who are deleted, are gone from it', async () => {
    const [me, banned, deleted] = (await people(3)) as [User, User, User]
    for (const friend of [banned, deleted]) {
      await befriend(me, friend)
      await post(friend, 'hello')
    }
    expect(await actions(me)).toEqual(['hello', 'hello'])
    await project.admin.patch(`/users/${banned.id}`, { is_banned: true })
    expect((await me.get('/client/feeds')).body).toMatchObject({ total: 1, data: [{ actor_id: deleted.id }] })
    await project.sql('delete from app.users where id = $1', [deleted.id])
    expect((await me.get('/client/feeds')).body).toMatchObject({ total: 0, data: [] })
    const left = await project.sql('select from app.feed_counts where actor_key = $1', [deleted.id])
    expect(left).toEqual([])
  })

  test('is what a plain query says, for random friends, actions, groups, hidden actions and deletions', async () => {
    await silence()
    const users = await people(5)
    const me = users[0] as User
    for (const friend of users.slice(1, 4)) await befriend(me, friend)
    const groups = await Promise.all([group(me), group(me, { is_public: false })])
    const entry = fc.record({
      actor: fc.constantFrom(...users.map(({ id }) => id), null),
      action: fc.constantFrom('a', 'b', 'c'),
      group: fc.constantFrom(null, null, ...groups),
      at: fc.integer({ min: 0, max: 5 }),
      isHome: fc.boolean(),
    })
    const history = fc.record({
      entries: fc.array(entry, { maxLength: 40 }),
      doomed: fc.array(fc.nat(40), { maxLength: 5 }),
      // entries that are older than the totals
      unsummed: fc.subarray(users.map(({ id }) => id)),
      hidden: fc.subarray(['a', 'b', 'c']),
      since: fc.constantFrom('', '&since=2026-01-01T00:00:02Z'),
      limit: fc.integer({ min: 1, max: 9 }),
      offset: fc.integer({ min: 0, max: 9 }),
    })
    await fc.assert(
      fc.asyncProperty(history, async ({ entries, doomed, unsummed, hidden, since, limit, offset }) => {
        await project.sql('delete from app.feed_entries')
        expect(await project.sql('select from app.feed_counts')).toEqual([])
        await project.sql(
          `insert into app.feed_entries (actor_id, action, group_id, is_home, created_at)
           select e.actor, e.action, e.group, e."isHome", '2026-01-01'::timestamptz at time zone 'UTC' + e.at * interval '1 s'
             from jsonb_to_recordset($1) e (actor uuid, action text, "group" uuid, "isHome" boolean, at int)`,
          [JSON.stringify(entries)],
        )
        await project.sql(
          `delete from app.feed_entries where id in (select id from (select id, row_number() over (order by id) n from app.feed_entries) x where n = any ($1))`,
          [doomed],
        )
        await expectExactTotals()
        await project.sql('delete from app.feed_totals where actor_key = any ($1)', [unsummed])
        await me.patch('/client/users/me', { properties: { feed_hidden_actions: hidden } })
        const expected = await project.sql(
          `select e.id from app.feed_entries e left join app.groups g on g.id = e.group_id
            where (e.actor_id = any ($1) or e.actor_id is null) and e.is_home and (g.id is null or g.is_public) and e.action <> all ($2)
              and e.created_at >= coalesce($3, '-infinity'::timestamptz)
            order by e.created_at desc, e.id desc`,
          [users.slice(0, 4).map(({ id }) => id), hidden, since ? '2026-01-01T00:00:02Z' : null],
        )
        const { data, body } = await me.get(`/client/feeds?limit=${limit}&offset=${offset}${since}`)
        expect([data.map(({ id }: any) => id), body.total]).toEqual([
          expected.slice(offset, offset + limit).map(({ id }) => id),
          expected.length,
        ])
        const kept = await project.sql(
          'select actor_key, is_home, group_key, action, entries::int, last_at from app.feed_counts order by 1, 2, 3, 4',
        )
        const counted = await project.sql(
          `select internal.feed_key(actor_id) as actor_key, is_home, internal.feed_key(group_id) as group_key, action, count(*)::int as entries, max(created_at) as last_at
             from app.feed_entries group by 1, 2, 3, 4 order by 1, 2, 3, 4`,
        )
        expect(kept).toEqual(counted)
        await project.sql('select internal.feed_totals_begin()')
        await expectExactTotals()
      }),
      { numRuns: 40 },
    )
  })
})

describe('the totals of actors', () => {
  test('are exact after random writers at once', async () => {
    await silence()
    const users = await people(3)
    const groups = await Promise.all([group(users[0] as User), group(users[1] as User)])
    await project.sql('delete from app.feed_entries')
    const ids = users.map(({ id }) => id).sort()
    const one = `select id from app.feed_entries where actor_id = $1 order by created_at desc, md5(id::text || $2) limit 1`
    const operations: readonly ((who: number, n: number) => Promise<unknown>)[] = [
      (who, n) =>
        project.sql(
          `insert into app.feed_entries (actor_id, action, group_id, is_home, created_at)
           select $1, 'a' || (k + $2) % 4, case when (k + $2) % 5 < 2 then ($3::uuid[])[1 + (k + $2) % 2] end, (k + $2) % 7 > 0,
                  timestamptz '2026-01-01 00:00:00Z' + ($2 + k) % 9 * interval '1 s'
             from generate_series(1, 1 + $2 % 3) k`,
          [ids[who], n, groups],
        ),
      (who, n) => project.sql(`delete from app.feed_entries where id = (${one})`, [ids[who], String(n)]),
      (who, n) => project.sql(`update app.feed_entries set metadata = '{}' where id = (${one})`, [ids[who], String(n)]),
      // from the first to the last only: the users are not locked here, as they are for a merge
      (who, n) =>
        project.sql(`update app.feed_entries set actor_id = $3 where id = (${one})`, [
          ids[Math.min(who, 1)],
          String(n),
          ids[2],
        ]),
    ]
    const operation = fc.tuple(fc.constantFrom(0, 0, 1, 1, 2, 3), fc.nat(2), fc.nat(1000))
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 8, maxLength: 40 }), async (drawn) => {
        const waiting = [...drawn]
        const writer = async () => {
          for (let next = waiting.pop(); next; next = waiting.pop()) await operations[next[0]]?.(next[1], next[2])
        }
        await Promise.all([writer(), writer(), writer(), writer()])
        await expectExactTotals()
      }),
      { numRuns: 25 },
    )
    const [kept] = await totals()
    expect(kept.length).toBeGreaterThan(0)
    await project.sql('delete from app.groups where id = any ($1)', [groups])
    await expectExactTotals()
    expect((await totals())[0].some(({ has_groups }: any) => has_groups)).toBe(false)
    await project.sql('delete from app.users where id = any ($1)', [ids])
    expect(await totals()).toEqual([[], []])
  })

  test('count what a writer of another action had not committed yet, also where it took the last entry', async () => {
    await silence()
    const [user] = (await people(1)) as [User]
    const insert = (action: string) =>
      `insert into app.feed_entries (actor_id, action) values ('${user.id}', '${action}')`
    for (const first of [insert('a'), `delete from app.feed_entries where actor_id = '${user.id}'`]) {
      // past the functions, which lock the user first
      const open = new pg.Client({
        connectionString: inject('dsn').replace(/\/[^/?]*(\?|$)/, `/${project.database}$1`),
      })
      await open.connect()
      await open.query('begin')
      await open.query(first)
      const second = project.sql(insert('b'))
      await untilBlocked(project)
      await open.query('commit')
      await open.end()
      await second
      await expectExactTotals()
    }
    expect((await user.get('/client/feeds')).body.total).toBe(1)
  })
})

describe('the feed of a group', () => {
  test('is for members: 403 for who could join, 404 for a private group and one that is not there', async () => {
    const [owner, outsider] = (await people(2)) as [User, User]
    const [open, secret] = [await group(owner), await group(owner, { is_public: false })]
    expectRefusal(await outsider.get(`/client/feeds/group/${open}`), 403, 'NOT_A_MEMBER')
    expectRefusal(await outsider.get(`/client/feeds/group/${secret}`), 404, 'NOT_FOUND')
    expectRefusal(await outsider.get(`/client/feeds/group/${unknown}`), 404, 'NOT_FOUND')
    expectRefusal(await outsider.get('/client/feeds/group/x'), 404, 'NOT_FOUND')
    expect((await owner.get(`/client/feeds/group/${secret}`)).status).toBe(200)
  })

  test('shows what was posted to it, without banned members and blocked pairs, in page and total', async () => {
    const [me, one, two, three] = (await people(4)) as [User, User, User, User]
    const club = await group(me, { is_public: false })
    for (const who of [one, two, three]) {
      await project.admin.post(`/groups/${club}/members`, { app_user_id: who.id })
      await post(who, 'hello', { group_id: club })
      await post(who, 'elsewhere')
    }
    const actors = async () => {
      const { data, body } = await me.get(`/client/feeds/group/${club}`)
      expect(body.total).toBe(data.length)
      return data.map(({ actor_id }: any) => actor_id)
    }
    expect(await actors()).toEqual([three.id, two.id, one.id])
    await project.admin.patch(`/users/${one.id}`, { is_banned: true })
    await project.sql('insert into app.blocks (blocker, blocked) values ($1, $2)', [two.id, me.id])
    expect(await actors()).toEqual([three.id])
    await project.sql('delete from app.blocks')
    await project.sql('insert into app.blocks (blocker, blocked) values ($1, $2)', [me.id, three.id])
    expect(await actors()).toEqual([two.id])
    await project.sql('delete from app.blocks')
    await project.sql('delete from app.groups where id = $1', [club])
    expect(await actions(three, '/me')).toEqual(['elsewhere'])
  })
})

describe('deleting', () => {
  test('own entries only; the total follows', async () => {
    const [user, other] = (await people(2)) as [User, User]
    const entry = await post(user, 'a')
    expectRefusal(await other.delete(`/client/feeds/${entry.id}`), 404, 'NOT_FOUND')
    expectRefusal(await user.delete('/client/feeds/x'), 400, 'INVALID_ID')
    expect((await user.delete(`/client/feeds/${entry.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await user.delete(`/client/feeds/${entry.id}`), 404, 'NOT_FOUND')
    expect((await user.get('/client/feeds/me')).body).toMatchObject({ data: [], total: 0 })
  })

  test('two at once keep the time of the newest entry that is left', async () => {
    const [user] = (await people(1)) as [User]
    const made: any[] = []
    const times = [0, 1, 2].map(soon)
    for (const n of [0, 1, 2]) {
      harness.setTime(times[n] as Date)
      made.push(await post(user, 'a'))
    }
    harness.setTime(null)
    const open = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
    await open.query('select api.feed_remove($1)', [made[2].id])
    const second = user.delete(`/client/feeds/${made[1].id}`)
    await untilBlocked(project)
    await open.commit()
    expect((await second).status).toBe(200)
    expect(
      await project.sql('select entries::int, last_at from app.feed_counts where actor_key = $1', [user.id]),
    ).toEqual([{ entries: 1, last_at: times[0] }])
  })
})

describe('system events', () => {
  test('make entries of the actions that are switched on, once each, and none of imports', async () => {
    const { admin } = project
    expect((await admin.put('/feeds/settings', { events: allEvents })).data).toEqual({ events: allEvents })
    const [user] = (await people(1)) as [User]
    const unlocked = await admin.post('/achievements', {
      key: 'first',
      name: 'First',
      criteria: { type: 'event_count', event_name: 'ran', target_value: 1 },
    })
    expect(unlocked.status, unlocked.text).toBe(201)
    await user.post('/client/events', { event_name: 'ran' })
    await user.post('/client/events', { event_name: 'ran' })
    const { data } = await user.get('/client/feeds')
    expect(data).toMatchObject([
      {
        action: 'achievement.unlocked',
        target_id: unlocked.data.id,
        metadata: { key: 'first', name: 'First' },
        actor_id: user.id,
      },
    ])
    // a group that is private keeps who came to itself
    const secret = await group(user, { is_public: false })
    expect(await actions(user)).toEqual(['achievement.unlocked'])
    expect((await user.get(`/client/feeds/group/${secret}`)).data).toMatchObject([
      { action: 'group.joined', group_id: secret, target_id: secret },
    ])
    const open = await group(user)
    expect((await user.get('/client/feeds')).data[0]).toMatchObject({ action: 'group.joined', group_id: open })

    expect((await admin.put('/feeds/settings', { events: ['achievement.unlocked'] })).data.events).toEqual([
      'achievement.unlocked',
    ])
    await group(user)
    expect((await user.get('/client/feeds/me')).body.total).toBe(3)
    const plans = await project.sql(`select event_name from app.event_plans where feeds`)
    expect(plans).toEqual([{ event_name: 'svc.achievement.unlocked' }])

    const [old] = (await people(1)) as [User]
    const imported = await project.admin.post('/events', {
      app_user_id: old.id,
      event_name: 'ran',
      occurred_at: '2024-01-01T00:00:00Z',
      historical: true,
    })
    expect(imported.status, imported.text).toBe(201)
    expect(await actions(old)).toEqual([])
  })

  test('refuse settings that name no event', async () => {
    expectInvalid(await project.admin.put('/feeds/settings', { events: ['nonsense'] }), 'events', /nonsense/)
    expectInvalid(await project.admin.put('/feeds/settings', {}), 'events')
    expectInvalid(await project.admin.put('/feeds/settings', { events: Array(101).fill('group.joined') }), 'events')
  })

  test('of every registered kind name events that exist, and properties that their event has', async () => {
    const rows = await project.sql('select action, event_name from internal.feed_events order by action')
    expect(rows.map(({ action }) => action)).toEqual(allEvents)
    expect(rows.every(({ action, event_name }) => event_name === `svc.${action}`)).toBe(true)
  })
})

describe('administrators', () => {
  test('post as a user or as the system, whose entries everybody sees', async () => {
    await silence()
    const { admin } = project
    const [user, other] = (await people(2)) as [User, User]
    expect((await admin.post('/feeds', { as_user_id: user.id, action: 'greeted' })).data.actor.id).toBe(user.id)
    const said = await admin.post('/feeds', { system: true, action: 'season.started' })
    expect([said.status, said.data.actor_id, said.data.actor]).toEqual([201, null, null])
    expect(await actions(user)).toEqual(['season.started', 'greeted'])
    expect(await actions(other)).toEqual(['season.started'])
    const club = await group(user)
    await admin.post('/feeds', { system: true, action: 'club.news', group_id: club })
    expect(await actions(user)).toEqual(['season.started', 'greeted'])
    expect(await actions(user, `/group/${club}`)).toEqual(['club.news'])
    // what events make, an administrator may post by hand
    expect((await admin.post('/feeds', { as_user_id: user.id, action: 'level.reached' })).status).toBe(201)
    expectRefusal(await admin.post('/feeds', { as_user_id: unknown, action: 'a' }), 404, 'USER_NOT_FOUND')
    expectRefusal(await admin.post('/feeds', { system: true, action: 'a', group_id: unknown }), 404, 'NOT_FOUND')
    for (const author of [{}, { system: false }, { as_user_id: user.id, system: true }, { as_user_id: 'system' }])
      expectInvalid(await admin.post('/feeds', { action: 'a', ...author }), 'as_user_id')
    expect((await admin.delete(`/feeds/${said.data.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await admin.delete(`/feeds/${said.data.id}`), 404, 'NOT_FOUND')
    expect(await actions(other)).toEqual([])
  })

  test('list by actor, group and action; entries of other projects do not exist', async () => {
    const { admin } = project
    const [user] = (await people(1)) as [User]
    const club = await group(user)
    await post(user, 'a')
    await post(user, 'b', { group_id: club })
    const listed = async (query: string) =>
      (await admin.get(`/feeds?user_id=${user.id}${query}`)).data.map(({ action }: any) => action)
    expect(await listed('')).toEqual(['b', 'a'])
    expect(await listed('&action=a')).toEqual(['a'])
    expect(await listed(`&group_id=${club}`)).toEqual(['b'])
    expect((await admin.get(`/feeds?user_id=${user.id}&limit=1&offset=1`)).body).toMatchObject({
      total: 2,
      data: [{ action: 'a' }],
    })
    const { data } = await admin.get('/feeds')
    expect((await stranger.admin.get('/feeds')).body).toMatchObject({ data: [], total: 0 })
    expectRefusal(await stranger.admin.delete(`/feeds/${data[0].id}`), 404, 'NOT_FOUND')
  })
})

test('a merge gives the entries to the survivor, and their counts', async () => {
  await silence()
  const [survivor, guest] = (await people(2)) as [User, User]
  await post(survivor, 'a')
  await post(guest, 'a')
  await post(guest, 'b')
  const merged = await survivor.post('/client/auth/merge', { from_session_token: guest.sessionToken })
  expect(merged.status, merged.text).toBe(200)
  expect((await survivor.get('/client/feeds/me')).body.total).toBe(3)
  expect(await project.sql('select from app.feed_counts where actor_key = $1', [guest.id])).toEqual([])
  expect(await project.sql('select from app.feed_totals where actor_key = $1', [guest.id])).toEqual([])
  await expectExactTotals()
})

test('a first page and its total cost the same with long histories as with short ones', async () => {
  await silence()
  const costs: number[] = []
  for (const length of [10, 400]) {
    const own = await harness.project()
    const me = await own.user()
    await own.sql(`insert into app.users (display_name) select 'friend ' || n from generate_series(1, 50) n`)
    await own.sql(
      `insert into app.friendships (user_a, user_b, status, requested_by, responded_at)
       select least(u.id, $1::uuid), greatest(u.id, $1::uuid), 'accepted', u.id, now() from app.users u where u.id <> $1`,
      [me.id],
    )
    await own.sql(
      `insert into app.feed_entries (actor_id, action, metadata, created_at)
       select u.id, 'said', '{"n": 1}', now() - make_interval(mins => n, secs => ascii(right(u.id::text, 1)))
         from app.users u cross join generate_series(1, $2::int) n where u.id <> $1`,
      [me.id, length],
    )
    await own.sql('vacuum analyze app.feed_entries')
    const claims = { 'app.caller': 'user', 'app.user_id': me.id }
    const explain = 'explain (analyze, buffers, format json) select api.feed_home()'
    // the second call in a session: the first also reads the catalog
    await own.as('app_user', claims, explain)
    const [row] = await own.as('app_user', claims, explain)
    const [{ Plan: plan }] = Object.values(row)[0] as any
    costs.push(plan['Shared Hit Blocks'] + plan['Shared Read Blocks'])
    expect((await me.get('/client/feeds')).body.total).toBe(50 * length)
  }
  const [short, long] = costs as [number, number]
  expect(long, `${short} ${long}`).toBeLessThan(short * 1.5 + 20)
})
