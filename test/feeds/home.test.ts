import fc from 'fast-check'
import pg from 'pg'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { feedsOf, soon } from '#test/support/feeds.ts'
import { startHarness, type User } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const { people, befriend, post, actions, group, totals, expectExactTotals, silence } = feedsOf(project)
afterEach(() => harness.setTime(null))

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
