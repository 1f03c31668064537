import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { signaturesOf } from '#fleet/checks/names.ts'
import { checkDatabase } from '#fleet/checks/program.ts'
import { neededBy } from '#fleet/checks/sql.ts'
import { readProgram } from '#fleet/load/files.ts'
import { checkFor } from '#fleet/prepare.ts'
import { reloadInstallation } from '#fleet/rollout.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import { root } from '#server/root.ts'
import { startHarness } from '#test/support/harness.ts'
import { disagreements } from '../../scripts/docs/refusal_codes.ts'

const harness = await startHarness()
const { areas, services } = harness.running
const { cluster, database: control } = services.control
let tenant: Client

beforeAll(async () => {
  tenant = await connectAdmin(cluster, (await harness.project()).database)
})
afterAll(() => tenant.end())

/** What is found after this SQL, which is then undone. */
const after = async (...statements: string[]) => {
  await tenant.query(`begin; set local search_path = ''`)
  try {
    const former = await signaturesOf(tenant)
    for (const statement of statements) await tenant.query(statement)
    return await checkDatabase(tenant, 'tenant', areas, { former })
  } finally {
    await tenant.query('rollback')
  }
}

const findingsAfter = after

/** A function with its text changed, as an edit of its file would make it. */
const edited = async (name: string, from: string, to: string) => {
  const { rows } = await tenant.query(
    `select pg_get_functiondef(p.oid) as text, p.oid::regprocedure::text as identity from pg_proc p where p.oid = to_regproc($1)`,
    [name],
  )
  const changed = rows[0].text.replaceAll(from, to)
  expect(changed).not.toBe(rows[0].text)
  return [`drop function ${rows[0].identity}`, changed, `grant execute on function ${name} to app_user, app_admin`]
}

test('nothing is wrong with this program', async () => {
  expect(await checkDatabase(tenant, 'tenant', areas)).toEqual([])
  const client = await connectAdmin(cluster, control)
  expect(await checkDatabase(client, 'control', areas).finally(() => client.end())).toEqual([])
})

describe('a function that would fail is named', () => {
  const made = async (text: string) => {
    const found = await findingsAfter('set local check_function_bodies = off', text)
    return found
      .filter(({ severity, problem }) => severity === 'error' && problem.includes('would fail'))
      .map(({ problem }) => problem.replace(/^.* would fail: /, ''))
  }
  const plpgsql = (body: string, head = 'internal.tried(given int, user_row app.users) returns int') =>
    made(`create function ${head} language plpgsql as $$ ${body} $$`)

  test('syntax, and what SQL names', async () => {
    expect(await plpgsql('begin if true then return 1; end')).toEqual([expect.stringContaining('syntax error')])
    expect(await plpgsql('begin retrun 1; end')).toEqual([expect.stringContaining('syntax error')])
    expect(
      await made(
        'create function internal.nowhere() returns int language sql as $$ select n.not_there from app.users n $$',
      ),
    ).toEqual(['column n.not_there does not exist.'])
  })

  test.each([
    ['perform from app.users u where u.not_there = given;', 'column u.not_there does not exist.'],
    [
      'update app.users u set time_zone = null where u.id = (user_row).id;',
      'column "time_zone" of relation "users" does not exist.',
    ],
    ['insert into app.not_there (id) values (given);', 'relation "app.not_there" does not exist.'],
    [
      'delete from app.users u where u.id = user_row.id and internal.not_there(given);',
      'function internal.not_there(integer) does not exist.',
    ],
    ['given := internal.now(1);', 'function internal.now(integer) does not exist.'],
    [
      'if user_row.not_there then return 1; elsif given > 1 then return 2; end if;',
      'record "user_row" has no field "not_there".',
    ],
    ['for i in 1..given loop perform i + not_there; end loop;', 'column "not_there" does not exist.'],
    [
      'declare r record; begin select u.id into r from app.users u; perform r.id; return r.not_there; end;',
      'record "r" has no field "not_there"',
    ],
    ["for user_row in select u.* from app.users u loop raise notice '%', user_row.not_there; end loop;", 'not_there'],
    [
      'begin perform 1 / 0; exception when division_by_zero then perform sqlerrm, not_there; end;',
      'column "not_there" does not exist.',
    ],
    [
      'return query select not_there;',
      'column "not_there" does not exist.',
      'internal.tried(given int) returns setof int',
    ],
    [
      'case given when 1 then perform 1; else given := case when true then not_there end; end case;',
      'column "not_there" does not exist.',
    ],
    ["execute format('x') into given using not_there;", 'column "not_there" does not exist.'],
    ['raise exception using message = not_there;', 'column "not_there" does not exist.'],
    ["perform 'x'::app.not_there;", 'type "app.not_there" does not exist.'],
    ['user_row.not_there := given;', 'record "user_row" has no field "not_there"'],
    ['select u.id into user_row.not_there from app.users u;', 'record "user_row" has no field "not_there"'],
    ['declare c cursor for select not_there from app.users; begin open c; end;', 'column "not_there" does not exist.'],
    [
      'declare c no scroll cursor (most int, least int) is select from app.users u where u.not_there < most; begin end;',
      'column u.not_there does not exist.',
    ],
    ['declare c refcursor; begin open c for select not_there; end;', 'column "not_there" does not exist.'],
    [
      'declare c cursor for select u.id from app.users u; begin for r in c loop perform not_there; end loop; end;',
      'column "not_there" does not exist.',
    ],
  ])('%s', async (statements, problem, head?: string) => {
    const body = statements.startsWith('declare') ? statements : `begin ${statements} end;`
    expect(await (head ? plpgsql(body, head) : plpgsql(body))).toEqual([
      expect.stringContaining(problem.replace(/\.$/, '')),
    ])
  })

  test.each([
    "begin execute 'select nothing from nowhere'; return given; end",
    'begin create temporary table passing (id int); insert into passing values (1); return given; end',
    "begin if to_regclass('app.not_there') is not null then perform from app.not_there; end if; return 1; end",
    'declare r record; begin select 1 as a into r; select 2 as b into r; return r.b; end',
    "declare r record; begin for r in execute 'select 1 as a' loop return r.a; end loop; return 1; end",
    'declare c scroll cursor (most int) for select u.id from app.users u limit most; r record; begin open c (most := 2); fetch c into r; close c; for r in c(given) loop given := r.some; end loop; return given; end',
    "declare c refcursor; begin open c scroll for execute 'select 1 from nowhere' using given; return given; end",
    'declare r record; begin user_row.id := given; tried.given := 1; select 1 as a into r; r.a := 2; return r.a; end',
    'declare given int = 3; begin <<around>> loop exit around when given > tried.given; end loop; return given; end',
    '#variable_conflict use_column\n declare id uuid; begin select id into id from app.users; return 1; end',
  ])('what cannot be known, or is right, is not: %s', async (body) => {
    expect(await plpgsql(body)).toEqual([])
  })

  test('a trigger reads the rows of its table', async () => {
    const trigger = (body: string) =>
      findingsAfter(
        'set local check_function_bodies = off',
        `create function internal.tg_tried() returns trigger language plpgsql as $$ begin ${body} return new; end $$;
         create trigger tried before update on app.users for each row execute function internal.tg_tried()`,
      )
    const problems = (await trigger('new.id := old.not_there;')).map(({ problem }) => problem)
    expect(problems).toContainEqual(expect.stringContaining('internal.tg_tried() would fail'))
    const right = await trigger(
      "if tg_op = 'UPDATE' and new.id <> old.id then raise exception '%', tg_table_name; end if;",
    )
    expect(right.filter(({ problem }) => problem.includes('would fail'))).toEqual([])
  })
})

test('a forgotten grant on the function of a route is named, with what to write where', async () => {
  expect(await after('revoke execute on function api.push_token_register from app_user')).toContainEqual({
    place: expect.stringMatching(/^server\/routes\/push_tokens\.ts:\d+$/),
    severity: 'error',
    problem: 'POST /client/users/me/push-token calls api.push_token_register as app_user, which may not execute it.',
    remedy: 'Write in policies/tenant/push_tokens.sql: grant execute on function api.push_token_register to app_user;',
  })
})

test('a misspelt argument is named on both of its sides', async () => {
  const findings = await after(...(await edited('api.push_token_register', 'platform', 'plattform')))
  expect(findings.map(({ problem }) => problem)).toEqual([
    expect.stringMatching(
      /^POST \/client\/users\/me\/push-token sends "platform"; api\.push_token_register \(functions\/tenant\/push_tokens\.sql:\d+\) has token, plattform\.$/,
    ),
    expect.stringContaining('never sends "plattform"'),
  ])
})

test('an argument of another type, and one that may be left out, are named', async () => {
  expect(await after(...(await edited('api.push_token_register', 'platform text', 'platform boolean')))).toMatchObject([
    { problem: expect.stringMatching(/sends "platform" as string, and .* takes boolean\.$/) },
    { problem: expect.stringContaining('function internal.push_token_claim(text, boolean) does not exist') },
  ])
  const page = await after(
    ...(await edited('api.definition_list', 'page_limit bigint DEFAULT 50', 'page_limit uuid DEFAULT NULL::uuid')),
  )
  expect(page.map(({ problem }) => problem)).toContainEqual(
    expect.stringMatching(/sends "page_limit" as integer, and .* takes uuid\.$/),
  )
})

test('a function that is not there is named', async () => {
  expect(await after('alter function api.push_token_register rename to push_token_add')).toContainEqual(
    expect.objectContaining({
      problem: 'POST /client/users/me/push-token calls api.push_token_register, which does not exist.',
    }),
  )
})

test('forgotten rows of the registries are named', async () => {
  expect(await after(`delete from internal.user_data where table_name = 'app.push_tokens'`)).toMatchObject([
    {
      place: expect.stringMatching(/^db\/tenant\/migrations\/\d+_push_tokens\.sql:\d+$/),
      severity: 'error',
      problem: expect.stringContaining('app.push_tokens.app_user_id refers to a user'),
      remedy: expect.stringContaining('Write in policies/tenant/push_tokens.sql: insert into internal.user_data'),
    },
  ])
  const findings = await after(`delete from internal.definitions where kind = 'xp_rule'`)
  expect(findings.length).toBeGreaterThan(3)
  for (const finding of findings)
    expect(finding).toMatchObject({
      place: expect.stringMatching(/^server\/routes\/xp\.ts:\d+$/),
      problem: expect.stringContaining('"xp_rule"'),
      remedy: expect.stringContaining('Write in policies/tenant/xp.sql: insert into internal.definitions'),
    })
})

test('a table without row security, and a grant without a policy, are named', async () => {
  expect(await after('alter table app.push_tokens disable row level security')).toMatchObject([
    {
      severity: 'error',
      remedy: 'Write in policies/tenant/push_tokens.sql: alter table app.push_tokens enable row level security;',
    },
  ])
  expect(await after('grant update (platform) on app.push_tokens to app_dashboard')).toMatchObject([
    {
      severity: 'warning',
      problem: 'app_dashboard has the privilege update on app.push_tokens, and no policy lets it reach a row.',
    },
  ])
})

test('what a function reaches without a grant is named', async () => {
  const name = 'api.probe'
  const made = (body: string) => [
    `create function ${name}() returns int language plpgsql as $$ begin ${body} end $$`,
    `grant execute on function ${name} to app_user`,
  ]
  expect(await after(...made('return (select count(*) from app.webhooks);'))).toMatchObject([
    {
      severity: 'warning',
      problem:
        'api.probe runs with the rights of its caller, and uses SELECT on app.webhooks, which none of its callers (app_user) may.',
      remedy: expect.stringContaining('grant select on app.webhooks to app_user;'),
    },
  ])
  expect(await after(...made(`-- from app.webhooks\n perform 'from app.webhooks'; return 1;`))).toEqual([])
  expect(
    await after(
      'create function internal.probe_helper() returns int language sql return 1',
      ...made('return internal.probe_helper();'),
    ),
  ).toMatchObject([{ problem: expect.stringContaining('calls internal.probe_helper') }])
})

test('a definer function that anybody may call and that does not read who calls is named with its place', async () => {
  const made = (body: string) => [
    `create function api.probe(id uuid) returns uuid language plpgsql security definer set search_path = '' as $$ begin ${body} end $$`,
    'revoke execute on function api.probe from public; grant execute on function api.probe to app_user',
  ]
  expect(await after(...made('return id;'))).toMatchObject([
    {
      place: 'functions/tenant/',
      severity: 'warning',
      problem: 'api.probe(uuid) is security definer, and does not read who calls before anything else.',
    },
  ])
  expect(await after(...made('return internal.user_id();'))).toEqual([])
})

describe('refusals of a body', () => {
  const compared = (comment: string, body: string, name = 'api.probe') =>
    disagreements(new Map([[name, comment]]), [{ name, body }]).map(({ refusal }) => refusal)

  test('are those that the comment names, with their status', () => {
    const body = `perform internal.fail(404, 'NOT_FOUND', 'No.'); -- internal.fail(409, 'CONFLICT')
      return internal.refuse(409, 'LIMIT_REACHED', 'No.'); /* internal.fail(400, 'INVALID_INPUT') */`
    expect(compared('Does it. Refuses 404 NOT_FOUND, 409 LIMIT_REACHED.', body)).toEqual([])
    expect(compared('Does it: 404 NOT_FOUND, or 409 CONFLICT and LIMIT_REACHED.', body)).toEqual([])
    expect(compared('Does it. Refuses 404 NOT_FOUND, 403 LIMIT_REACHED.', body)).toEqual(['409 LIMIT_REACHED'])
    expect(compared('Does it. Refuses 404 GROUP_NOT_FOUND.', body)).toEqual(['404 NOT_FOUND', '409 LIMIT_REACHED'])
    expect(compared('Does it.', body)).toEqual(['404 NOT_FOUND', '409 LIMIT_REACHED'])
  })

  test('of a helper are asked where its comment names some', () => {
    const body = `perform internal.fail(404, 'NOT_FOUND', 'No.');`
    expect(compared('Helps.', body, 'internal.probe')).toEqual([])
    expect(compared('Helps. Refuses 409 CONFLICT.', body, 'internal.probe')).toEqual(['404 NOT_FOUND'])
  })
})

test('every step of a check runs, and those that failed are named', async () => {
  const child = spawn(process.execPath, ['scripts/check.ts', 'one', 'two'], { cwd: root })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said += chunk
  })
  const [code] = await once(child, 'exit')
  expect([code, said.trim().split('\n').at(-1)]).toEqual([1, 'Failed: unknown: one; unknown: two'])
})

test('words of SQL are read as what they reach', () => {
  const read = (text: string) => neededBy(text).map(({ privilege, on }) => `${privilege} ${on}`)
  expect(read('select 1 from app.a x join only app.b on true left join lateral internal.f(1) g on true')).toEqual([
    'SELECT app.a',
    'SELECT app.b',
    'EXECUTE internal.f',
  ])
  expect(read('INSERT INTO app.a (x) select 1; update app.b set x = 1; delete from app.c')).toEqual([
    'INSERT app.a',
    'UPDATE app.b',
    'DELETE app.c',
  ])
  expect(read(`select 'from app.a' -- from app.b\n /* from app.c */`)).toEqual([])
})

const copy = async () => {
  const base = await mkdtemp(join(tmpdir(), 'trellis-check-'))
  for (const folder of ['sql', 'functions', 'policies', 'db'])
    await cp(join(root, folder), join(base, folder), { recursive: true })
  const edit = async (path: string, from: string | RegExp, to: string) => {
    const text = await readFile(join(base, path), 'utf8')
    expect(text.replace(from, to)).not.toBe(text)
    await writeFile(join(base, path), text.replace(from, to))
  }
  return { base, edit }
}

test('a reload refuses a program whose routes do not fit, and changes no project', { timeout: 180_000 }, async () => {
  const { base, edit } = await copy()
  await edit('policies/tenant/push_tokens.sql', 'api.push_token_register', 'api.push_token_unregister')
  const programs = { control: await readProgram('control', base), tenant: await readProgram('tenant', base) }
  const before = await harness.control('select content_hash from app.templates')
  await expect(reloadInstallation(cluster, harness.prefix, programs, { check: checkFor(base) })).rejects.toThrow(
    'grant execute on function api.push_token_register to app_user;',
  )
  expect(await harness.control('select content_hash from app.templates')).toEqual(before)
  await rm(base, { recursive: true })
})

test('a reload warns of a policy that works and is slow, with its line', { timeout: 180_000 }, async () => {
  const policy = 'create policy "for the test" on app.users for update to app_dashboard'
  await tenant.query(`begin; ${policy} using (id = internal.user_id())`)
  const { base, edit } = await copy()
  await edit('policies/tenant/settings.sql', /$/, `\n${policy} using (id = internal.user_id());\n`)
  const warnings: string[] = []
  try {
    await checkFor(base, (line) => warnings.push(line))(tenant, 'tenant', null, false)
    expect(warnings).toEqual([
      expect.stringMatching(
        /^policies\/tenant\/settings\.sql:\d+: for the test on app\.users: .* Write \(select internal\.user_id\(\)\)/,
      ),
    ])
  } finally {
    await tenant.query('rollback')
    await rm(base, { recursive: true })
  }
})

test("a newcomer's five mistakes are named by the command, which ends with 1", { timeout: 300_000 }, async () => {
  const { base, edit } = await copy()
  await edit('policies/tenant/push_tokens.sql', 'api.push_token_register', 'api.push_token_unregister')
  await edit('policies/tenant/app_sessions.sql', /insert into internal\.user_data[\s\S]*?;\n/, '')
  await edit('functions/tenant/xp/queries.sql', /(api\.xp_history\([^)]*)page_limit/, '$1page_limits')
  await edit('functions/tenant/groups/admin.sql', 'A group. Refuses 404 NOT_FOUND', 'A group. Refuses 404 NO_GROUP')
  await edit(
    'functions/tenant/app_sessions.sql',
    'who is locked. Refuses 404 NOT_FOUND',
    'who is locked. Refuses 404 SESSION_NOT_FOUND',
  )
  const child = spawn(process.execPath, ['scripts/check_sql.ts', base], { cwd: root })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      said += chunk
    })
  const [code] = await once(child, 'exit')
  expect(said).toContain('grant execute on function api.push_token_register to app_user;')
  expect(said).toContain('insert into internal.user_data')
  expect(said).toMatch(
    /server\/routes\/\S+\.ts:\d+: GET \/client\/\S+ sends "page_limit"; api\.\w+ \(functions\/tenant\/xp\/queries\.sql:\d+\) has/,
  )
  expect(said).toMatch(
    /server\/interface\.json: the SQL says something else of what it refuses, answers and takes: .*tenant refusals of group_show\b.* Run npm run docs\./,
  )
  expect(said).toMatch(
    /functions\/tenant\/app_sessions\.sql:\d+: internal\.app_session_mine refuses 404 NOT_FOUND, and its comment does not say so\. Write in its comment: Refuses 404 NOT_FOUND\./,
  )
  expect(code).toBe(1)
  await rm(base, { recursive: true })
})
