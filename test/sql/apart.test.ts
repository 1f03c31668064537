import { describe, expect, test } from 'vitest'
import { connectAdmin } from '#server/database/cluster.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { sessionsOf, untilSleeping } from '#test/support/sql.ts'

/** What a query cannot do: write, leave anything behind, be more than the role of dashboards, or reach another project. */
const harness = await startHarness()
const [project, other] = [await harness.project(), await harness.project()]
const { cluster } = harness.running.services.control

const ask = (sql: string, more: Record<string, unknown> = {}, of: Project = project) =>
  of.developer.post(`/admin/projects/${of.id}/sql`, { sql, ...more })
const rowsOf = async (sql: string, of: Project = project) => {
  const { status, data, text } = await ask(sql, {}, of)
  expect(status, `${sql} ${text}`).toBe(200)
  return data.rows
}

describe('a text that is no query', () => {
  test.each([
    'insert into users (id) values (gen_random_uuid())',
    'insert into users default values returning id',
    'update users set email = null',
    'delete from users returning *',
    'with gone as (delete from users returning *) select * from gone',
    'truncate users',
    'select * into copied from users',
    'create table copied as select 1',
    'create temporary table mine (i int)',
    'drop table users',
    'copy users to stdout',
    "copy users to program 'true'",
    'do $$ begin perform 1; end $$',
    'call nothing()',
    'set role none',
    'reset role',
    'set session authorization default',
    "set statement_timeout = '0'",
    'show all',
    'prepare mine as select 1',
    'execute mine',
    'deallocate all',
    'declare mine cursor for select 1',
    'listen anything',
    "notify anything, 'x'",
    'lock table users',
    'begin',
    'commit',
    'rollback',
    'savepoint mine',
    'explain select 1',
    'explain analyze delete from users',
    'vacuum',
    'discard all',
    "load 'x'",
    'alter role login_app_dashboard set work_mem to default',
    'refresh materialized view nothing',
  ])('%s', async (sql) => {
    for (const explain of [undefined, 'plan', 'analyze']) {
      const answer = await ask(sql, explain ? { explain } : {})
      // where Postgres looks for a name first, it says that there is none
      if (answer.error?.code !== 'INVALID_SQL') expectRefusal(answer, 400, 'SQL_READ_ONLY')
      expect(answer.status).toBe(400)
    }
  })

  test.each([
    'select 1; select 2',
    'select 1; commit; delete from users',
    'select 1;;select 2',
    'begin; select 1',
    'select 1 /* ; */; drop table users --',
  ])('several statements: %s', async (sql) => {
    const answer = await ask(sql)
    expectRefusal(answer, 400, 'INVALID_SQL')
    expect(answer.error?.message).toBe('One statement at a time.')
  })

  test.each([
    ['select 1) as q; commit; select (1', 'Syntax error at or near ")".'],
    ['select 1) as q(c1) limit 1; --', 'Syntax error at or near ")".'],
    ['', undefined],
    [' -- nothing\n ; /* at all */', 'There is no statement.'],
    ['select * from nothing', 'Relation "nothing" does not exist.'],
    ['select $1::int', 'A statement here has no parameters ($1): write the values into it.'],
    ['select 1 / 0', 'Division by zero.'],
    ["select 'abc", `Unterminated quoted string at or near "'abc".`],
  ])('no SQL: %s', async (sql, message) => {
    if (message === undefined) return expectRefusal(await ask(sql), 400, 'VALIDATION_ERROR')
    const answer = await ask(sql)
    expectRefusal(answer, 400, 'INVALID_SQL')
    expect(answer.error?.message).toBe(message)
  })

  test('is told where Postgres stumbled, in characters of the text', async () => {
    expectRefusal(await ask("select '😀', wrong from users"), 400, 'INVALID_SQL', { position: 13, sqlstate: '42703' })
    expectRefusal(await ask('select emial from users'), 400, 'INVALID_SQL', {
      position: 8,
      hint: expect.stringContaining('email'),
    })
    expectRefusal(await ask('selct 1'), 400, 'INVALID_SQL', { position: 1, sqlstate: '42601' })
    expectRefusal(
      await ask('select 1 / (i - 1) from generate_series(1, 2) i', { explain: 'analyze' }),
      400,
      'INVALID_SQL',
      {
        position: null,
        sqlstate: '22012',
      },
    )
  })
})

describe('a query that calls what writes', () => {
  test.each([
    "select set_config('transaction_read_only', 'off', false)",
    "select set_config('transaction_read_only', 'off', true), nextval('app.nothing')",
    'select txid_current(), (select 1 from users for update limit 1)',
    "select query_to_xml('delete from app.users returning 1', true, true, '')",
    "select query_to_xml('create table app.mine (i int)', true, true, '')",
    "select query_to_xml('commit', true, true, '')",
    "select * from ts_stat('delete from app.users returning null::tsvector')",
  ])('%s', async (sql) => {
    await project.user()
    const before = await project.sql('select count(*)::int as n from app.users')
    for (const explain of [undefined, 'plan', 'analyze']) {
      const { status } = await ask(sql, explain ? { explain } : {})
      if (explain !== 'plan') expect(status).toBeGreaterThanOrEqual(400)
    }
    expect(await project.sql('select count(*)::int as n from app.users')).toEqual(before)
  })

  test('a function of the project that writes is refused, also to who explains it', async () => {
    await project.sql(`
      create table app.written (i int); grant all on app.written to app_dashboard;
      create function app.write_it() returns int language sql volatile as 'insert into app.written values (1) returning i';
      create function app.write_it_as_owner() returns int language sql volatile security definer as 'insert into app.written values (1) returning i';
      grant execute on function app.write_it, app.write_it_as_owner to app_dashboard`)
    for (const name of ['write_it', 'write_it_as_owner'])
      for (const explain of [undefined, 'analyze'])
        expectRefusal(await ask(`select app.${name}()`, explain ? { explain } : {}), 400, 'SQL_READ_ONLY', {
          sqlstate: '25006',
        })
    expect((await ask('select app.write_it()', { explain: 'plan' })).status).toBe(200)
    expect(await project.sql('select * from app.written')).toEqual([])
  })

  test('a notification is never sent', async () => {
    const listener = await connectAdmin(cluster, project.database)
    const heard: string[] = []
    listener.on('notification', ({ payload }) => heard.push(payload ?? ''))
    try {
      await listener.query('listen anything')
      expect(await rowsOf("select pg_notify('anything', 'from SQL')")).toEqual([['']])
      await listener.query("notify anything, 'from elsewhere'")
      await listener.query('select 1')
      expect(heard).toEqual(['from elsewhere'])
    } finally {
      await listener.end()
    }
  })
})

describe('what the role of dashboards may not', () => {
  test.each([
    'select * from app.user_passwords',
    'select password_hash from app.user_passwords',
    "select pg_read_file('/etc/passwd')",
    "select pg_ls_dir('/')",
    "select lo_import('/etc/passwd')",
    'select lo_create(0)',
    'select pg_terminate_backend(1)',
    'select pg_cancel_backend(1)',
    'select pg_advisory_lock(1)',
    'select pg_try_advisory_lock(1)',
    // of many numbers they would fill the table of locks, which all projects of a server share
    'select count(pg_advisory_xact_lock(g)) from generate_series(1, 1000000) g',
    'select pg_advisory_xact_lock_shared(1, 2)',
    'select pg_try_advisory_xact_lock(1)',
    'select pg_try_advisory_xact_lock_shared(1)',
    'select internal.advisory_lock_value(1)',
    "select internal.try_advisory_lock('restore', '1')",
    'select pg_export_snapshot()',
    'select pg_reload_conf()',
    'select pg_stat_reset()',
    'select * from pg_authid',
    'select * from pg_largeobject',
    'select * from pg_hba_file_rules',
    "select set_config('session_authorization', 'trellis_owner', false)",
    "select set_config('role', 'app_admin', false)",
    "select set_config('role', 'app_user', true)",
    "select set_config('role', 'trellis_owner', true)",
    "select set_config('track_activities', 'on', false)",
    "select set_config('temp_file_limit', '-1', false)",
    "select set_config('session_replication_role', 'replica', true)",
    "select set_config('log_statement', 'none', true)",
    'select internal.user_json(null::app.users)',
    "select query_to_xml('select * from app.user_passwords', true, true, '')",
  ])('%s', async (sql) => {
    expectRefusal(await ask(sql), 403, 'SQL_FORBIDDEN', { sqlstate: '42501' })
  })

  test('there is no way out to another server', async () => {
    for (const sql of [
      "select dblink('host=127.0.0.1', 'select 1')",
      "select extensions.dblink('host=127.0.0.1', 'select 1')",
    ])
      expectRefusal(await ask(sql), 400, 'INVALID_SQL', { sqlstate: '42883' })
    expect(
      await rowsOf("select extname from pg_extension where extname in ('dblink', 'postgres_fdw', 'file_fdw')"),
    ).toEqual([])
    expect(await rowsOf('select count(*) from pg_foreign_server')).toEqual([['0']])
  })

  test('its own login is nothing by itself, and may become nothing else', async () => {
    expect(
      await rowsOf(`
        select rolname from pg_roles
         where pg_has_role('login_app_dashboard', oid, 'member') order by 1`),
    ).toEqual([['app_dashboard'], ['login_app_dashboard']])
    expect(await rowsOf("select rolname from pg_roles where pg_has_role('app_dashboard', oid, 'member')")).toEqual([
      ['app_dashboard'],
    ])
    // as in a statement that leaves its role before it reads
    const left = "select set_config('role', 'none', true) is not null as done"
    expectRefusal(
      await ask(
        `select query_to_xml('select * from app.users', true, true, '') from (${left} offset 0) l where l.done`,
      ),
      403,
      'SQL_FORBIDDEN',
    )
    expect(
      await rowsOf(`
        select r.is_one from (${left} offset 0) l
         cross join lateral (select has_schema_privilege('app', 'usage') or has_schema_privilege('internal', 'usage')
                                    or has_schema_privilege('collections', 'usage') or has_schema_privilege('api', 'usage') as is_one
                              where l.done) r`),
    ).toEqual([[false]])
  })

  test('it reads all rows already, and writes none: settings that other policies read open nothing', async () => {
    // every policy that holds for it is one that shows every row
    expect(
      await project.sql(`
        select schemaname, tablename, policyname from pg_policies
         where ('app_dashboard' = any (roles) or 'public' = any (roles))
           and (cmd <> 'SELECT' or qual <> 'true' or with_check is not null)`),
    ).toEqual([])
    expect(
      await project.sql(`
        select g.identity, g.privilege from ops.acl g
         where g.grantee in ('app_dashboard', 'login_app_dashboard', 'public')
           and g.kind in ('table', 'column', 'sequence') and g.privilege <> 'SELECT' and g.identity not like '%written%'`),
    ).toEqual([])
    // and of the program's functions that are more than an expression it calls these, as every role does, and one of its own
    const functions = await project.sql<{ name: string; definer: boolean }>(`
      select p.proname || '(' || oidvectortypes(p.proargtypes) || ')' as name, p.prosecdef as definer
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where has_function_privilege('app_dashboard', p.oid, 'execute')
         and n.nspname not in ('pg_catalog', 'information_schema', 'extensions')
         and p.proname not like 'write_it%'
         and has_schema_privilege('app_dashboard', n.oid, 'usage')
         and (p.provolatile = 'v' or p.prosecdef)
       order by p.proname, name`)
    expect(functions.filter(({ definer }) => definer).map(({ name }) => name)).toEqual(['graphql_tables()'])
    expect(functions.filter(({ definer }) => !definer).map(({ name }) => name)).toEqual([
      // locks that end with the transaction
      ...['advisory_lock(text)', 'advisory_lock(text, text)', 'advisory_lock_value(bigint)'],
      // notes for an answer that nobody reads here, and refusals
      ...['changed(text)', 'check_found(boolean, text, text)', 'check_limit(bigint, integer, text, text)'],
      ...[
        'fail(integer, text, text, json, json)',
        'invalid(text, text, text)',
        'new_id()',
        'return_setting(text, text)',
      ],
      ...['try_advisory_lock(text)', 'try_advisory_lock(text, text)'],
    ])
    const user = await project.user()
    const claimed = `select set_config('app.user_id', '${user.id}', true), set_config('app.caller', 'worker', true)`
    expectRefusal(
      await ask(`select (select count(*) from app.user_passwords) from (${claimed} offset 0) c`),
      403,
      'SQL_FORBIDDEN',
    )
  })
})

describe('nothing is left', () => {
  test('of settings, statements, cursors, locks and tables: each query has a connection of its own', async () => {
    const asks = `select pg_backend_pid(), current_setting('app.user_id', true), current_setting('work_mem'), current_setting('search_path'),
                         current_user, (select count(*) from pg_prepared_statements where name <> 'trellis_sql'), (select count(*) from pg_cursors where name <> ''),
                         (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid())`
    const [[pid, ...fresh]] = await rowsOf(asks)
    await rowsOf(`select set_config('app.user_id', 'me', false), set_config('work_mem', '1GB', false), set_config('search_path', 'pg_temp', false),
                         set_config('role', 'none', false)`)
    const [[next, ...after]] = await rowsOf(asks)
    expect(after).toEqual(fresh)
    expect(fresh).toEqual([null, '16MB', 'app,collections,extensions', 'app_dashboard', '0', '0', '0'])
    expect(next).not.toBe(pid)
    expect(await sessionsOf(harness)).toEqual([])
  })

  test('after an error and after a query that is cut, either', async () => {
    await ask('select 1 / 0')
    await ask("select repeat('x', 40000) from generate_series(1, 100000)", { limit: 1000 })
    await ask('select 1; select 2')
    expect(await sessionsOf(harness)).toEqual([])
    expect(await rowsOf('select 1')).toEqual([[1]])
  })

  test('of the server: a query under way ends with it', async () => {
    const stopping = await startHarness()
    const one = await stopping.project()
    const answer = ask('select pg_sleep(9)', {}, one).catch(() => null)
    await untilSleeping(stopping, 1)
    await stopping.running.services.sqlQueries.close()
    expect((await answer)?.status).toBeGreaterThanOrEqual(400)
    expectRefusal(await ask('select 1', {}, one), 503, 'SQL_UNAVAILABLE')
  })
})

describe('two projects', () => {
  test('see nothing of each other: neither rows, nor texts of queries, nor can one end or hold up those of the other', async () => {
    const user = await other.user()
    expect(await rowsOf(`select count(*) from users where id = '${user.id}'`)).toEqual([['0']])
    const secret = "select 'the secret of the other', pg_sleep(3)"
    const running = ask(secret, {}, other)
    await untilSleeping(harness, 1)
    const [victim] = await sessionsOf(harness)
    // not even a superuser sees the text, so that no role which a query could become does
    expect(victim?.query).toBe('')
    const activity = `
      select a.pid, a.query, (select pg_stat_get_backend_activity(b) from pg_stat_get_backend_idset() b
                               where pg_stat_get_backend_pid(b) = a.pid) as text
        from (select set_config('role', 'none', true) is not null as done offset 0) l
       cross join lateral (select * from pg_stat_activity where l.done) a`
    const seen = await rowsOf(activity)
    expect(seen.map(([pid]: [number]) => pid)).toContain(victim?.pid)
    expect(JSON.stringify(seen)).not.toContain('secret of the other')
    for (const name of ['pg_cancel_backend', 'pg_terminate_backend', 'pg_advisory_xact_lock'])
      for (const role of ['app_dashboard', 'none'])
        expectRefusal(
          await ask(
            `select ${name}(${victim?.pid}) from (select set_config('role', '${role}', true) is not null as done offset 0) l where l.done`,
          ),
          403,
          'SQL_FORBIDDEN',
        )
    expect((await running).status).toBe(200)
  })

  test('are closed where Postgres cannot keep them apart, unless the operator trusts all', async () => {
    const admin = await connectAdmin(cluster, other.database, false)
    try {
      await admin.query('grant execute on function pg_cancel_backend(int) to public')
      expectRefusal(await ask('select 1', {}, other), 403, 'SQL_DISABLED')
      expect((await ask('select 1')).status).toBe(200)
      const trusting = await startHarness({ env: { SQL_QUERIES: 'trusted' } })
      const trusted = await trusting.project()
      const there = await connectAdmin(cluster, trusted.database, false)
      await there.query('grant execute on function pg_cancel_backend(int) to public').finally(() => there.end())
      expect((await ask('select 1', {}, trusted)).status).toBe(200)
    } finally {
      await admin.query('revoke execute on function pg_cancel_backend(int) from public')
      await admin.end()
    }
  })

  test('503 TENANT_UNAVAILABLE while the database is shut', async () => {
    const shut = await harness.project()
    const admin = await connectAdmin(cluster, 'postgres', false)
    try {
      await admin.query(`alter database "${shut.database}" with allow_connections false`)
      expectRefusal(await ask('select 1', {}, shut), 503, 'TENANT_UNAVAILABLE')
    } finally {
      await admin.query(`alter database "${shut.database}" with allow_connections true`)
      await admin.end()
    }
  })
})

describe('a plan', () => {
  test('of a query that does not run, and of one that has run', async () => {
    const planned = await ask('select pg_sleep(20), u.id from users u', { explain: 'plan' })
    expect(planned.status, planned.text).toBe(200)
    expect(planned.data).toMatchObject({
      rows: [],
      row_count: 0,
      is_cut: false,
      columns: [
        { name: 'pg_sleep', type: 'void' },
        { name: 'id', type: 'uuid' },
      ],
    })
    expect(planned.data.plan.Plan['Relation Name']).toBe('users')
    const { data } = await ask('select i from generate_series(1, 3) i;', { explain: 'analyze' })
    expect(data.rows).toEqual([[1], [2], [3]])
    expect(data.plan).toMatchObject({ Plan: { 'Actual Rows': 3 }, 'Execution Time': expect.any(Number) })
    expectRefusal(await ask('select * from app.user_passwords', { explain: 'plan' }), 403, 'SQL_FORBIDDEN')
  })
})
