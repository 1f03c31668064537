import pg from 'pg'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
let project: Project
beforeAll(async () => {
  project = await harness.project()
  await project.sql(`
    create table internal.things (id uuid primary key default gen_random_uuid(), box uuid, is_hidden boolean not null default false);
    create function internal.is_thing_shown(t internal.things) returns boolean language sql immutable as $$ select not (t).is_hidden $$;
    select internal.count_declare('things', 'internal.things');
    select internal.count_declare('things_in_boxes', 'internal.things', key => 'box');
    select internal.count_declare('things_shown', 'internal.things', key => 'box', condition => 'is_thing_shown', condition_reads => '{is_hidden}');
    insert into internal.things (box) values (null);
    insert into app.row_counters values ('things'), ('things_in_boxes'), ('things_shown')`)
})

const connect = async (): Promise<pg.Client> => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  return client
}

const box = (n: number) => `00000000-0000-4000-8000-00000000000${n}`

/** What the counters say and what there is, in one snapshot. */
const compared = `
  select (internal.counted('things') - (select count(*) from internal.things))::int as all,
         (select coalesce(sum(abs(internal.counted('things_in_boxes', b.id) - (select count(*) from internal.things t where t.box = b.id))), 0)::int
            from (select distinct c.key as id from app.row_counts c where c.name = 'things_in_boxes') b) as boxes,
         (select coalesce(sum(abs(internal.counted('things_shown', b.id) - (select count(*) from internal.things t where t.box = b.id and not t.is_hidden))), 0)::int
            from (select distinct c.key as id from app.row_counts c where c.name = 'things_shown') b) as shown`
const exact = { all: 0, boxes: 0, shown: 0 }

describe('a counter', () => {
  test('is exact in every snapshot while fifty write, roll back, move, hide, delete and fold', async () => {
    const clients = await Promise.all(Array.from({ length: 50 }, connect))
    const watcher = await connect()
    const statements = [
      (n: number) => `insert into internal.things (box) values ('${box(n % 7)}')`,
      (n: number) =>
        `insert into internal.things (box, is_hidden) select '${box(n % 7)}', k % 3 = 0 from generate_series(1, 40) k`,
      (n: number) =>
        `update internal.things set box = '${box((n + 1) % 7)}' where id in (select id from internal.things where box = '${box(n % 7)}' limit 3 for update skip locked)`,
      () =>
        `update internal.things set is_hidden = not is_hidden where id in (select id from internal.things limit 3 for update skip locked)`,
      () => `delete from internal.things where id in (select id from internal.things limit 9 for update skip locked)`,
      () => 'select internal.purge__row_counts()',
    ]
    let isOver = false
    const write = async (client: pg.Client, n: number) => {
      for (let turn = 0; turn < 6; turn += 1) {
        await client.query(n % 10 === 9 ? 'begin isolation level repeatable read' : 'begin')
        // under repeatable read rows that others change are an error: such a one inserts
        const first = n % 10 === 9 ? turn % 2 : (n + turn) % statements.length
        await client.query(statements[first]?.(n + turn) ?? '')
        await client.query(statements[turn % 2]?.(n) ?? '')
        if (turn % 3 === 2) {
          await client.query('savepoint s')
          await client.query(statements[1]?.(n) ?? '')
          await client.query('rollback to s')
        }
        await client.query((n + turn) % 4 === 0 ? 'rollback' : 'commit')
      }
    }
    const watch = async () => {
      let seen = 0
      while (!isOver) {
        expect((await watcher.query(compared)).rows[0]).toEqual(exact)
        seen += 1
      }
      return seen
    }
    const watching = watch()
    await Promise.all(clients.map(write))
    isOver = true
    expect(await watching).toBeGreaterThan(0)
    expect((await watcher.query(compared)).rows[0]).toEqual(exact)
    expect((await watcher.query('select count(*)::int as n from internal.things')).rows[0].n).toBeGreaterThan(100)
    await watcher.query('select internal.purge__row_counts()')
    const { rows } = await watcher.query(
      `select max(n)::int as most from (select count(*) as n from app.row_counts where name ~ '^things' group by name, key) s`,
    )
    expect(rows[0].most).toBe(1)
    expect((await watcher.query(compared)).rows[0]).toEqual(exact)
    await Promise.all([watcher, ...clients].map((client) => client.end()))
  })

  test('makes nobody wait for a writer that has not committed, and leaves few slots', async () => {
    const [holder, other] = await Promise.all([connect(), connect()])
    await holder.query(`begin; insert into internal.things (box) values ('${box(8)}')`)
    await other.query(`set lock_timeout = '1ms'`)
    for (let n = 0; n < 20; n += 1) await other.query(`insert into internal.things (box) values ('${box(8)}')`)
    expect((await other.query(`select internal.counted('things_in_boxes', '${box(8)}')::int as n`)).rows[0].n).toBe(20)
    await holder.query('commit')
    const { rows } = await other.query(
      `select sum(n)::int as n, count(*)::int as slots from app.row_counts where name = 'things_in_boxes' and key = '${box(8)}'`,
    )
    expect(rows[0]).toEqual({ n: 21, slots: 2 })
    await Promise.all([holder.end(), other.end()])
  })

  test('begins again when its table is emptied, and is what is there when it is declared again', async () => {
    const client = await connect()
    await client.query('truncate internal.things')
    expect((await client.query(compared)).rows[0]).toEqual(exact)
    await client.query(`insert into internal.things (box) select '${box(1)}' from generate_series(1, 5)`)
    await client.query(`set session_replication_role = 'replica'; insert into internal.things (box) select '${box(2)}' from generate_series(1, 5);
                        set session_replication_role = 'origin'`)
    expect((await client.query(compared)).rows[0].all).toBe(-5)
    await client.query(`delete from app.row_counters where name ~ '^things'`)
    expect((await client.query(`select internal.counted('things') as n`)).rows[0].n).toBeNull()
    await client.query('select internal.counters_begin()')
    expect((await client.query(compared)).rows[0]).toEqual(exact)
    await client.end()
  })

  test('is never declared with a condition whose columns are not known', async () => {
    await expect(
      project.sql(`select internal.count_declare('odd', 'internal.things', condition => 'is_thing_shown')`),
    ).rejects.toThrow('a condition comes with the columns')
  })
})

describe('a list with filters', () => {
  test('counts the rows of a filter too, whatever happens to them, and reads the counter alone', async () => {
    const own = await harness.project()
    await own.sql(`
      create table internal.jars (id uuid primary key default gen_random_uuid(), kind text, shelf uuid, is_hidden boolean not null default false);
      create function internal.is_jar_shown(j internal.jars) returns boolean language sql immutable as $$ select not (j).is_hidden $$;
      create function internal.jar_json(j internal.jars) returns json language sql stable as $$ select to_json((j).id) $$;
      insert into internal.jars (kind) values ('jam');
      select internal.list_declare('jars_page', null::internal.jars, 'jar_json', '{id}', filters => '{shelf,kind}', condition => 'is_jar_shown',
                                   is_counted => true, condition_reads => '{is_hidden}', counted_filters => '{kind}');
      select internal.list_declare('jars_of_page', null::internal.jars, 'jar_json', '{id}', required => '{kind}', is_counted => true);
      delete from app.row_counters;
      select internal.counters_begin()`)
    const total = async (list: string) =>
      (await own.sql<{ n: number }>(`select (((internal.${list}).body) ->> 'total')::int as n`))[0]?.n
    const totals = async () =>
      Promise.all(
        [
          'jars_page(null, null, 0, 9)',
          `jars_page(null, 'jam', 0, 9)`,
          `jars_page(null, 'tea', 0, 9)`,
          `jars_page('${box(1)}', null, 0, 9)`,
          `jars_page('${box(1)}', 'jam', 0, 9)`,
          `jars_of_page('jam', 0, 9)`,
        ].map(total),
      )
    expect(await totals()).toEqual([1, 1, 0, 0, 0, 1])
    await own.sql(
      `insert into internal.jars (kind, shelf) values ('jam', '${box(1)}'), ('tea', '${box(1)}'), (null, '${box(1)}'), ('''jam', null)`,
    )
    expect(await totals()).toEqual([5, 2, 1, 3, 1, 2])
    await own.sql(`update internal.jars set kind = 'tea' where shelf is null and kind = 'jam'`)
    expect(await totals()).toEqual([5, 1, 2, 3, 1, 1])
    await own.sql(`update internal.jars set is_hidden = true where kind = 'tea'`)
    expect(await totals()).toEqual([3, 1, 0, 2, 1, 1])
    await own.sql(`delete from internal.jars where kind is null`)
    expect(await totals()).toEqual([2, 1, 0, 1, 1, 1])
    const add = (name: string) => own.sql(`update app.row_counts set n = n + 100 where name = $1 and n > 0`, [name])
    await add('jars_page_by_kind')
    expect(await totals()).toEqual([2, 101, 0, 1, 1, 1])
    await add('jars_of_page')
    expect((await totals())[5]).toBe(101)
  })

  test.each([
    [`filters => '{kind}', counted_filters => '{kind}'`],
    [`filters => '{kind}', is_counted => true, counted_filters => '{box}'`],
    [`required => '{box}', filters => '{kind}', is_counted => true, counted_filters => '{kind}'`],
  ])('cannot be declared with %s', async (rest) => {
    await expect(
      project.sql(`select internal.list_declare('things_page', null::internal.things, 'to_json', '{id}', ${rest})`),
    ).rejects.toThrow(/counted filters are filters|has not all of the columns/)
  })
})

describe('the lists of a project', () => {
  test('have all their counters from the beginning', async () => {
    const own = await harness.project()
    const rows = await own.sql(`
      select substr(p.proname, 12) as name, exists (select from app.row_counters r where r.name = substr(p.proname, 12)) as begun
        from pg_proc p where p.proname like 'count\\_now\\_\\_%' order by 1`)
    expect(rows.length).toBeGreaterThan(5)
    expect(rows.filter(({ begun }) => !begun)).toEqual([])
    expect((await own.admin.get('/users')).body.total).toBe(0)
  })

  test('show totals that are counted, by whatever way users come and go', async () => {
    const own = await harness.project()
    const total = async () => (await own.admin.get('/users?limit=1')).body.total
    const user = await own.user()
    const made = await own.admin.post('/users', { email: 'a@example.org' })
    await own.admin.post('/users/cohort', { count: 30 })
    await own.admin.post('/users', { email: 'a@example.org' })
    expect(await total()).toBe(32)
    await own.admin.delete(`/users/${made.data.id}`)
    await own.sql(`delete from app.users where id in (select id from app.users where id <> $1 limit 7)`, [user.id])
    expect(await total()).toBe(24)
    // the page asks the counter, and nothing else
    await own.sql(
      `update app.row_counts set n = n + 1000 where slot = (select min(slot) from app.row_counts where name = 'users_page')`,
    )
    expect(await total()).toBe(1024)
    expect((await own.admin.get('/users?search=%40example')).body.total).toBe(0)
  })

  test('show totals by a filter that are counted', async () => {
    const own = await harness.project()
    const user = await own.user()
    await own.sql(`
      insert into app.feed_entries (action) select case when n <= 3 then 'a.b' else 'c.d' end from generate_series(1, 5) n;
      insert into app.email_suppressions (address, reason) select n || '@mail.example', case when n <= 2 then 'bounce' else 'manual' end from generate_series(1, 5) n;
      insert into app.moderation_items (subject_type, subject_id, subject_user_id, source, reasons, status)
      select 'user', gen_random_uuid(), '${user.id}', 'report', '{"spam": 1}', case when n <= 4 then 'approved' else 'rejected' end from generate_series(1, 5) n;
      insert into app.subscriptions (app_user_id, source_ref, product_id, store, environment, period_type, purchase_date, last_event_at)
      select '${user.id}', n::text, 'monthly', 'app_store', 'production', 'normal', now(), now() from generate_series(1, 5) n;
      with a as (insert into app.media_assets (key, filename, mime_type, status, source, size_bytes, object_version)
                 select n || '.png', n || '.png', case when n <= 2 then 'image/png' else 'image/gif' end, 'committed', 'upload', 9, 'v' from generate_series(1, 5) n returning id)
      insert into app.media_jobs (asset_id, version, operations, status) select a.id, 'v', '[{}]', 'failed' from a`)
    const paths: readonly (readonly [string, number, string])[] = [
      ['/feeds?action=a.b', 3, 'feed_entries_page_by_action'],
      ['/email/suppressions', 5, 'email_suppressions_page'],
      ['/email/suppressions?reason=bounce', 2, 'email_suppressions_page_by_reason'],
      ['/moderation/queue?status=approved', 4, 'moderation_items_page'],
      ['/subscriptions', 5, 'subscriptions_page'],
      ['/media?mime_type=image/png', 2, 'media_assets_page_by_mime_type'],
      // a thumbnail of each is queued
      ['/media/jobs', 10, 'media_jobs_page'],
      ['/media/jobs?status=failed', 5, 'media_jobs_page_by_status'],
    ]
    for (const [path, total, counter] of paths) {
      expect([path, (await own.admin.get(`${path}${path.includes('?') ? '&' : '?'}limit=1`)).body.total]).toEqual([
        path,
        total,
      ])
      await own.sql(`update app.row_counts set n = n + 1000 where name = $1`, [counter])
      expect([path, (await own.admin.get(path)).body.total]).toEqual([path, total + 1000])
    }
    // a filter that is not counted reads rows
    expect((await own.admin.get('/subscriptions?product_id=monthly')).body.total).toBe(5)
    expect((await own.admin.get('/subscriptions?product_id=yearly')).body.total).toBe(0)
    expect((await own.admin.get('/subscriptions?status=active')).body.total).toBe(5)
  })

  test('count what their caller may see, when a policy hides rows', async () => {
    const own = await harness.project()
    await own.admin.post('/users/cohort', { count: 3 })
    expect((await own.admin.get('/users')).body.total).toBe(3)
    await own.sql(
      `create policy "some users are hidden" on app.users as restrictive for select to app_admin using (display_name = 'nobody')`,
    )
    expect((await own.admin.get('/users')).body).toMatchObject({ total: 0, data: [] })
    await own.sql(`drop policy "some users are hidden" on app.users`)
    expect((await own.admin.get('/users')).body.total).toBe(3)
  })

  test('show participants of challenges, who left or not, claims of codes, and users of streaks', async () => {
    const own = await harness.project()
    const challenge = (
      await own.admin.post('/challenges', {
        name: 'Ten',
        start_at: '2020-01-01T00:00:00Z',
        end_at: '2100-01-01T00:00:00Z',
        goal_type: 'event_count',
        event_name: 'played',
        goal_value: 10,
      })
    ).data
    await own.admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'played' })
    const code = (await own.admin.post('/referrals', { code: 'SPRING-24', reward_referrer: {}, reward_referee: {} }))
      .data
    const users = await Promise.all(Array.from({ length: 4 }, () => own.user()))
    await Promise.all(users.map((user) => user.post(`/client/challenges/${challenge.id}/join`)))
    await Promise.all(users.slice(0, 3).map((user) => user.post('/client/referrals/claim', { code: 'SPRING-24' })))
    await Promise.all(users.slice(0, 2).map((user) => user.post('/client/events', { event_name: 'played' })))
    await users[0]?.post(`/client/challenges/${challenge.id}/leave`)
    const totals = async () => [
      (await own.admin.get(`/challenges/${challenge.id}/participants`)).body.total,
      (await users[1]?.get(`/client/challenges/${challenge.id}`))?.data.participants_count,
      (await own.admin.get(`/referrals/${code.id}/stats`)).data.total_claims,
      (await own.admin.get('/streaks/daily/users')).body.total,
    ]
    expect(await totals()).toEqual([4, 3, 3, 2])
    for (const user of users.slice(2)) await own.admin.delete(`/users/${user.id}`)
    expect(await totals()).toEqual([2, 1, 2, 2])
    const counters = await own.sql(
      `select name, sum(n)::int as n from app.row_counts where name ~ 'challenge|claims|streak' group by 1 order by 1`,
    )
    expect(counters).toEqual([
      { name: 'challenge_participants', n: 2 },
      { name: 'challenge_participants_active', n: 1 },
      { name: 'referral_claims', n: 2 },
      { name: 'streak_users', n: 2 },
    ])
  })
})
