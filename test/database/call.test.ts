import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { type Claims, prepareConnection, runOneSync, type Statement } from '#server/database/call.ts'
import { targetOf, tenantRoles } from '#server/database/cluster.ts'
import type { DatabaseError } from '#server/database/failures.ts'
import { createSecrets } from '#server/secrets.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const secrets = createSecrets(inject('secretsKey'))
const cluster = harness.running.services.control.cluster
const [alice, bob] = [await project.user(), await project.user()]

const connect = async (role: (typeof tenantRoles)[number]): Promise<pg.Client> => {
  const { host, port, database, user, password } = targetOf(cluster, project.database, role, secrets)
  const client = new pg.Client({ host, port, database, user, password })
  client.on('error', () => undefined)
  await client.connect()
  await prepareConnection(client)
  return client
}

const options = { timeoutMs: 5000, clock: null }
const as = (userId: string | null, role = 'app_user'): Claims => ({ role, userId, caller: 'user' })
let counter = 0
const unique = (beginning: string) => {
  counter += 1
  return `${beginning}${counter}`
}
const statement = (text: string, values: (string | null)[] = [], name = unique('s')): Statement => ({
  name,
  text,
  values,
})

let client: pg.Client
beforeAll(async () => {
  client = await connect('app_user')
  await project.sql(`
    create table app.call_rows (id int primary key, app_user_id uuid not null, note text,
      twin int, constraint call_rows_twin foreign key (twin) references app.call_rows on delete cascade deferrable initially deferred);
    alter table app.call_rows enable row level security;
    create policy "own" on app.call_rows for all to app_user using (app_user_id = (select internal.user_id()))
      with check (app_user_id = (select internal.user_id()));
    grant select, insert, update, delete on app.call_rows to app_user;
    create function api.call_inlined() returns setof app.call_rows language sql stable as 'select * from app.call_rows';
    create function api.call_plpgsql() returns setof app.call_rows language plpgsql stable as 'begin return query select * from app.call_rows; end';
    create function api.call_leaves_behind() returns text language plpgsql volatile as $$ begin
      perform set_config('app.user_id', '${bob.id}', false);
      perform set_config('role', 'app_user', false);
      perform set_config('app.actor', 'left behind', false);
      perform set_config('search_path', 'app', false);
      return 'left'; end $$;
    grant execute on function api.call_inlined, api.call_plpgsql, api.call_leaves_behind to app_user`)
})
beforeEach(async () => {
  await project.sql('delete from app.call_rows')
  await project.sql(`insert into app.call_rows values (1, $1, 'a'), (2, $1, 'a'), (3, $2, 'b')`, [alice.id, bob.id])
})
afterAll(() => client.end())

/** What the connection itself is, outside of any call. */
const bare = async () => {
  const { rows } = await client.query(
    `select current_user::text as user, current_setting('app.user_id', true) as user_id, current_setting('app.actor', true) as actor,
            current_setting('transaction_read_only') as read_only, current_setting('app.clock', true) as clock`,
  )
  return rows[0]
}
const nothing = { user: 'login_app_user', read_only: 'off' }

describe('row-level security holds for every kind of statement', () => {
  const own = [
    'select id::text from app.call_rows order by id',
    'with rows as (select * from app.call_rows) select id::text from rows order by id',
    'with rows as materialized (select * from app.call_rows) select id::text from rows order by id',
    'select id::text from (select * from app.call_rows) rows order by id',
    'select id::text from api.call_inlined() order by id',
    'select id::text from api.call_plpgsql() order by id',
    'select r.id::text from app.call_rows r join app.call_rows s using (id) order by r.id',
    'select unnest((select array_agg(id order by id) from app.call_rows))::text',
    'update app.call_rows set note = note returning id::text',
    'select id::text from app.call_rows where exists (select from app.call_rows) order by id for update',
    'delete from app.call_rows returning id::text',
  ]
  test.each(own)('%s', async (text) => {
    const name = unique('own')
    expect((await runOneSync(client, as(alice.id), statement(text, [], name), options)).map(([id]) => id)).toEqual([
      '1',
      '2',
    ])
    expect((await runOneSync(client, as(bob.id), statement(text, [], name), options)).map(([id]) => id)).toEqual(['3'])
    expect(await runOneSync(client, as(null), statement(text, [], name), options)).toEqual([])
  })

  test('an insert for another user is refused, and upserts do not reach their rows', async () => {
    const insert = statement(`insert into app.call_rows values ($1, $2, 'x') returning id::text`, ['9', bob.id])
    await expect(runOneSync(client, as(alice.id), insert, options)).rejects.toMatchObject({ code: '42501' })
    const upsert = statement(
      `insert into app.call_rows values (3, $1, 'mine now') on conflict (id) do update set note = excluded.note returning id::text`,
      [alice.id],
    )
    await expect(runOneSync(client, as(alice.id), upsert, options)).rejects.toMatchObject({ code: '42501' })
    expect(await project.sql('select note from app.call_rows where id = 3')).toEqual([{ note: 'b' }])
  })
})

describe('nothing of a call is left afterwards', () => {
  test('after success', async () => {
    await runOneSync(client, { ...as(alice.id), actor: '{"id":1}' }, statement('select 1::text'), {
      ...options,
      clock: '2030-01-01T00:00:00Z',
    })
    expect(await bare()).toMatchObject({ ...nothing, user_id: '', actor: '', clock: '' })
  })
  test('after an error in the statement, and in the settings', async () => {
    await expect(runOneSync(client, as(alice.id), statement('select 1/0'), options)).rejects.toMatchObject({
      code: '22012',
    })
    expect(await bare()).toMatchObject(nothing)
    await expect(runOneSync(client, { role: 'no_such_role' }, statement('select 1'), options)).rejects.toMatchObject({
      code: '22023',
    })
    expect(await bare()).toMatchObject(nothing)
  })
  test('after a timeout', async () => {
    const slow = runOneSync(client, as(alice.id), statement('select pg_sleep(5)::text'), { ...options, timeoutMs: 100 })
    await expect(slow).rejects.toMatchObject({ code: '57014' })
    expect(await bare()).toMatchObject(nothing)
  })
  test('after a hang-up: the connection is not usable and says so', async () => {
    const other = await connect('app_user')
    const sleeping = expect(
      runOneSync(other, as(alice.id), statement('select pg_sleep(5)::text'), options),
    ).rejects.toThrow()
    await project.sql('select 1')
    await harness.endConnection(other)
    await sleeping
    await expect(runOneSync(other, as(alice.id), statement('select 1'), options)).rejects.toThrow()
  })
  test('a session-wide setting that a function made does not reach the next caller', async () => {
    await runOneSync(client, as(alice.id), statement('select api.call_leaves_behind()'), options)
    const ids = statement('select id::text from app.call_rows order by id')
    expect(await runOneSync(client, as(alice.id), ids, options)).toEqual([['1'], ['2']])
    expect(await runOneSync(client, as(null), ids, options)).toEqual([])
    const actor = await runOneSync(
      client,
      as(null),
      statement(`select current_setting('app.actor'), current_setting('search_path')`),
      options,
    )
    expect(actor).toEqual([['', '']])
    await client.query('reset all; reset role')
  })
})

test('a deferred constraint that fails at the end is a failure, and nothing is stored', async () => {
  const insert = statement(`insert into app.call_rows values (7, $1, 'x', 999) returning id::text`, [alice.id])
  await expect(runOneSync(client, as(alice.id), insert, options)).rejects.toMatchObject({ code: '23503' })
  expect(await project.sql('select from app.call_rows where id = 7')).toEqual([])
})

test('a read-only call cannot write', async () => {
  const write = statement('update app.call_rows set note = $1 returning id::text', ['x'])
  await expect(runOneSync(client, as(alice.id), write, { ...options, readOnly: true })).rejects.toMatchObject({
    code: '25006',
  })
})

test.each(tenantRoles)('whatever a statement sets as %s, it reaches only its own single role', async (role) => {
  const login = await connect(role)
  try {
    // PostgREST has one login for users, server keys and callers without a session; what app_rest has of app_user it has without becoming that
    const own: string[] = role === 'app_rest' ? ['app_rest', 'app_server', 'app_anon'] : [role]
    for (const other of [...tenantRoles, 'trellis_owner', 'control_auth', 'postgres'].filter(
      (name) => !own.includes(name),
    )) {
      const attempts = [
        `select set_config('role', '${other}', true)`,
        `select set_config('session_authorization', '${other}', true)`,
      ]
      for (const text of attempts) {
        await expect(runOneSync(login, { role }, statement(text), options)).rejects.toMatchObject({
          code: expect.stringMatching(/^(42501|22023)$/),
        })
      }
    }
    // by itself the login may do nothing at all
    await expect(login.query('select * from app.users')).rejects.toMatchObject({ code: '42501' })
    await expect(login.query(`select api.me_get()`)).rejects.toMatchObject({ code: '42501' })
  } finally {
    await login.end()
  }
})

test('no login of tenants reaches control, nor the other way round, nor makes temporary tables', async () => {
  const { host, port } = targetOf(cluster, project.database, 'app_user', secrets)
  const into = (role: Parameters<typeof targetOf>[2], database: string) => {
    const { user, password } = targetOf(cluster, database, role, secrets)
    const login = new pg.Client({ host, port, database, user, password })
    return login.connect().finally(() => login.end())
  }
  await expect(into('app_user', harness.running.services.control.database)).rejects.toMatchObject({ code: '42501' })
  await expect(into('control_auth', project.database)).rejects.toMatchObject({ code: '42501' })
  await expect(
    runOneSync(client, as(alice.id), statement('create temporary table t (a int)'), options),
  ).rejects.toMatchObject({ code: '42501' })
})

test('errors at first use of a statement, of every kind, and then 3000 mixed calls at once', async () => {
  const login = await connect('app_user')
  const kinds = [
    { text: 'select no_such_column from app.call_rows', code: '42703' },
    { text: 'selec 1', code: '42601' },
    { text: 'select $1::int::text', values: ['x'], code: '22P02' },
    { text: 'select 1/(select count(*) from app.call_rows where false)', code: '22012' },
    { text: 'select id::text from app.user_passwords', code: '42703' },
    { text: 'select app_user_id::text from app.user_passwords', code: '42501' },
  ]
  for (const [index, { text, values = [], code }] of kinds.entries()) {
    for (let times = 0; times < 2; times += 1) {
      await expect(
        runOneSync(login, as(alice.id), statement(text, values, `first${index}`), options),
      ).rejects.toMatchObject({ code })
    }
  }
  const calls = Array.from({ length: 3000 }, (_, index) => {
    const me = index % 2 ? alice.id : bob.id
    const broken = index % 7 === 0
    const text = broken ? 'select 1/0' : 'select $1 || id::text from app.call_rows order by id'
    return runOneSync(
      login,
      as(me),
      statement(text, broken ? [] : [`${index}:`], broken ? 'broken' : 'mixed'),
      options,
    ).then(
      (rows) => rows.map(([value]) => value),
      (error: DatabaseError) => error.code,
    )
  })
  const expected = calls.map((_, index) => {
    if (index % 7 === 0) return '22012'
    return index % 2 ? [`${index}:1`, `${index}:2`] : [`${index}:3`]
  })
  expect(await Promise.all(calls)).toEqual(expected)
  await login.end()
})

test('a statement survives DDL in between', async () => {
  const me = statement('select r.status, r.body::text from api.me_get() r')
  expect((await runOneSync(client, as(alice.id), me, options))[0]?.[0]).toBe('200')
  await project.sql('alter table app.users add column call_test text; alter table app.users drop column call_test')
  expect((await runOneSync(client, as(alice.id), me, options))[0]?.[0]).toBe('200')
})

test('without named statements, for a transaction pooler, it behaves the same', async () => {
  const { host, port, database, user, password } = targetOf(cluster, project.database, 'app_user', secrets)
  const login = new pg.Client({ host, port, database, user, password })
  await login.connect()
  const ids = statement('select id::text from app.call_rows where note = $1 order by id', ['a'])
  expect(await runOneSync(login, as(alice.id), ids, options, false)).toEqual([['1'], ['2']])
  expect(await runOneSync(login, as(bob.id), ids, options, false)).toEqual([])
  await expect(runOneSync(login, as(bob.id), statement('select 1/0'), options, false)).rejects.toMatchObject({
    code: '22012',
  })
  expect((await login.query('select count(*)::int as n from pg_prepared_statements')).rows).toEqual([{ n: 0 }])
  await login.end()
})

test('values are values: no text that a caller sends becomes SQL', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'grapheme', maxLength: 200 }).filter((text) => !text.includes('\0')),
      async (text) => {
        const [row] = await runOneSync(
          client,
          as(alice.id),
          statement('select $1::text', [text.toWellFormed()], 'echo'),
          options,
        )
        expect(row?.[0]).toBe(text.toWellFormed())
      },
    ),
    { numRuns: 300 },
  )
  expect((await project.sql('select count(*)::int as n from app.call_rows'))[0]).toEqual({ n: 3 })
})

describe.each([
  ['named', true],
  ['unnamed', false],
] as const)('rows taken by their bytes, %s', (_name, named) => {
  const own = 'select id, note from app.call_rows order by id'
  const run = (userId: string, take: Statement['take']) =>
    runOneSync(
      client,
      as(userId),
      { ...statement(own), formats: [1, 0], ...(take ? { take } : {}) },
      { ...options, readOnly: true },
      named,
    )

  test('of which enough have come end the statement, and the connection goes on', async () => {
    for (let round = 0; round < 5; round += 1) {
      let taken = 0
      const endless = {
        // in the select list it sends each row as it makes it; behind from it would make all of them first
        ...statement(`select repeat('x', 1000), generate_series(1, 1000000000)::text`),
        formats: [0, 0],
        take: () => {
          taken += 1
        },
        isEnough: () => taken >= 10,
      }
      await runOneSync(client, as(alice.id), endless, { ...options, readOnly: true, timeoutMs: 0 }, named)
      expect(taken).toBeGreaterThanOrEqual(10)
      for (let next = 0; next < 20; next += 1)
        expect(
          await runOneSync(client, as(alice.id), statement('select pg_sleep(0.001)::text'), options, named),
        ).toEqual([['']])
    }
  })

  test('are those of the caller, in their formats, and go to nobody else', async () => {
    const taken: string[] = []
    const take: Statement['take'] = (bytes, start, end) => void taken.push(bytes.toString('hex', start, end))
    expect(await run(alice.id, take)).toEqual([])
    const row = (id: string) => `0002${'00000004'}${id}${'00000001'}61`
    expect(taken).toEqual([row('00000001'), row('00000002')])
    // the next call on this connection takes its rows as ever
    expect(
      await runOneSync(client, as(bob.id), statement('select id::text from app.call_rows'), options, named),
    ).toEqual([['3']])
    expect(taken).toHaveLength(2)
  })

  test('an error while one is taken fails the call alone', async () => {
    const failing = run(alice.id, () => {
      throw new Error('cannot be read')
    })
    await expect(failing).rejects.toThrow('cannot be read')
    await expect(run(alice.id, undefined)).resolves.toHaveLength(2)
  })
})
