import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { readProgram } from '#fleet/load/files.ts'
import { migrateDatabase } from '#fleet/load/migrate.ts'
import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { root } from '#server/root.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const cluster = harness.running.services.control.cluster
const database = `${harness.prefix}_loader`
let base: string
let client: pg.Client

const edit = async (path: string, change: (text: string) => string) => {
  const file = join(base, path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, change(await readFile(file, 'utf8').catch(() => '')))
}
const load = async () => migrateDatabase(cluster, database, await readProgram('tenant', base))
const query = async (text: string) => (await client.query(text)).rows

/** Everything that decides who may do what, as text: two databases with the same one behave the same. */
const catalog = `
  select 'function ' || p.oid::regprocedure || ' ' || md5(pg_get_functiondef(p.oid)) as line from pg_proc p
   where p.pronamespace::regnamespace::text in ('api', 'internal')
  union all
  select 'policy ' || p.polrelid::regclass || ' ' || p.polname || ' ' || p.polcmd::text || ' ' || p.polroles::regrole[]::text || ' '
         || coalesce(pg_get_expr(p.polqual, p.polrelid), '') || ' ' || coalesce(pg_get_expr(p.polwithcheck, p.polrelid), '')
    from pg_policy p
  union all
  select 'grant ' || a.kind || ' ' || a.identity || ' ' || a.columns || ' ' || a.grantee || ' ' || a.privilege from ops.acl a
  union all
  select 'trigger ' || t.tgname || ' ' || t.tgrelid::regclass from pg_trigger t where not t.tgisinternal
   order by 1`
const snapshot = async () => (await query(catalog)).map((row) => row.line)

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'trellis-sql-'))
  for (const folder of ['sql', 'functions', 'policies', 'db'])
    await cp(join(root, folder), join(base, folder), { recursive: true })
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  await admin.query(`create database "${database}" owner trellis_owner template template0`)
  await admin.end()
  await load()
  const url = new URL(inject('dsn'))
  url.pathname = `/${database}`
  client = new pg.Client({ connectionString: url.href })
  await client.connect()
})
afterAll(async () => {
  await client.end()
  await rm(base, { recursive: true, force: true })
})

test('loading again applies nothing and changes nothing', async () => {
  const before = await snapshot()
  expect(await load()).toEqual([])
  expect(await snapshot()).toEqual(before)
})

test('all of sql/ is applied again when one of its files changed', async () => {
  const before = await snapshot()
  await edit('sql/shared/50_emails.sql', (text) => `${text}-- changed\n`)
  await load()
  expect(await snapshot()).toEqual(before)
})

test('what a policy file no longer says is gone afterwards, and back when it says it again', async () => {
  const before = await snapshot()
  const path = 'policies/tenant/outbox.sql'
  const whole = await readFile(join(base, path), 'utf8')
  await edit(path, (text) =>
    text
      .replace(/create policy "workers remove finished work".*\n/, '')
      .replace('grant select, delete,', 'grant select,'),
  )
  expect(await load()).toEqual([path])
  const reduced = await snapshot()
  expect(before.filter((line) => !reduced.includes(line)).map((line) => line.slice(0, 60))).toEqual([
    expect.stringContaining('grant table app.outbox  app_worker DELETE'),
    expect.stringContaining('policy app.outbox workers remove finished work'),
  ])
  await writeFile(join(base, path), whole)
  await load()
  expect(await snapshot()).toEqual(before)
})

test('column grants are withdrawn column by column', async () => {
  const path = 'policies/tenant/outbox.sql'
  const whole = await readFile(join(base, path), 'utf8')
  const before = await snapshot()
  await edit(path, (text) => text.replace('update (due_at, ', 'update ('))
  await load()
  expect(before.filter((line) => line.includes('app.outbox due_at app_worker UPDATE'))).toHaveLength(1)
  expect((await snapshot()).filter((line) => line.includes('app.outbox due_at app_worker UPDATE'))).toHaveLength(0)
  await writeFile(join(base, path), whole)
  await load()
  expect(await snapshot()).toEqual(before)
})

test("a DBA's own function, policy and grant are left alone", async () => {
  await query(`
    set role trellis_owner;
    create function api.dba_report() returns int language sql as 'select 1';
    create policy "the DBA reads settings too" on app.settings for select to app_dashboard using (true);
    grant select on app.settings to app_dashboard`)
  await edit('policies/tenant/settings.sql', (text) => `${text}\n-- changed\n`)
  await edit('functions/tenant/settings.sql', (text) => `${text}\n-- changed\n`)
  await load()
  expect(await query(`select from pg_proc where proname = 'dba_report'`)).toHaveLength(1)
  expect(await query(`select from pg_policy where polname = 'the DBA reads settings too'`)).toHaveLength(1)
  expect(await query(`select from ops.acl where identity = 'app.settings' and grantee = 'app_dashboard'`)).toHaveLength(
    1,
  )
})

test('a function that changes its arguments or its result is made anew, with its grants and the policies that use it', async () => {
  await edit('functions/tenant/loader_probe.sql', () => probe('int', 'select 1'))
  await edit('policies/tenant/loader_probe.sql', () => 'grant execute on function internal.loader_probe to app_user;\n')
  await load()
  await query(`
    set role trellis_owner;
    create policy "leans on it" on app.settings for select to app_user using ((select internal.loader_probe(1)) = 1);
    comment on policy "leans on it" on app.settings is 'by hand'`)

  await edit('functions/tenant/loader_probe.sql', () => probe('bigint', 'select 1::bigint'))
  await load()
  expect(await query(`select prorettype::regtype::text as type from pg_proc where proname = 'loader_probe'`)).toEqual([
    { type: 'bigint' },
  ])
  expect(
    await query(`select from ops.acl where identity like 'internal.loader_probe%' and grantee = 'app_user'`),
  ).toHaveLength(1)
  expect(
    await query(`select obj_description(oid, 'pg_policy') as comment from pg_policy where polname = 'leans on it'`),
  ).toEqual([{ comment: 'by hand' }])

  await query('set role trellis_owner; drop policy "leans on it" on app.settings')
  await edit('functions/tenant/loader_probe.sql', () =>
    probe('bigint', 'select 1::bigint')
      .replace('(a int)', '(a int, b int default 0)')
      .replace('loader_probe(int)', 'loader_probe'),
  )
  await load()
  expect(await query(`select pronargs from pg_proc where proname = 'loader_probe'`)).toEqual([{ pronargs: 2 }])
  expect(
    await query(`select from ops.acl where identity like 'internal.loader_probe%' and grantee = 'app_user'`),
  ).toHaveLength(1)
})

test('policies may name functions of files to come, of the area or of another, when one before changes its result', async () => {
  const made = (name: string, type: string) =>
    `create or replace function internal.${name}(a int) returns ${type} language sql stable as 'select 1::${type}';\n`
  const first = 'functions/tenant/loader_parts/1.sql'
  await edit(first, () => made('loader_part_1', 'int'))
  await edit(
    'policies/tenant/loader_parts.sql',
    () => 'grant execute on function internal.loader_part_1 to app_user;\n',
  )
  await load()
  for (const [type, second] of [
    ['bigint', 'functions/tenant/loader_parts/2.sql'],
    ['text', 'functions/tenant/zz_loader_other.sql'],
  ] as const) {
    const name = second.includes('other') ? 'loader_other' : 'loader_part_2'
    await edit(first, () => made('loader_part_1', type))
    await edit(second, () => made(name, 'int'))
    await edit(
      'policies/tenant/loader_parts.sql',
      (text) => `${text}grant execute on function internal.${name} to app_user;\n`,
    )
    const applied = await load()
    expect(applied).toEqual(expect.arrayContaining([first, second]))
    for (const each of ['loader_part_1', name])
      expect(
        await query(`select from ops.acl where identity like 'internal.${each}(%' and grantee = 'app_user'`),
      ).toHaveLength(1)
    expect(await load()).toEqual([])
  }
  for (const path of [
    first,
    'functions/tenant/loader_parts/2.sql',
    'functions/tenant/zz_loader_other.sql',
    'policies/tenant/loader_parts.sql',
  ])
    await rm(join(base, path))
  await load()
  expect(await query(`select from pg_proc where proname like 'loader_part%' or proname = 'loader_other'`)).toEqual([])
})

test('a file that became a folder takes its functions along, also with other arguments', async () => {
  const made = (parameters: string) =>
    `create or replace function internal.loader_split(${parameters}) returns int language sql stable as 'select 1';
     comment on function internal.loader_split is 'named without arguments';\n`
  await edit('functions/tenant/loader_split.sql', () => made('a int'))
  await edit('policies/tenant/loader_split.sql', () => 'grant execute on function internal.loader_split to app_user;\n')
  await load()
  await rm(join(base, 'functions/tenant/loader_split.sql'))
  await edit('functions/tenant/loader_split/part.sql', () => made('a int, b int default 0'))
  await load()
  expect(await query(`select pronargs from pg_proc where proname = 'loader_split'`)).toEqual([{ pronargs: 2 }])
  expect(
    await query(`select from ops.acl where identity like 'internal.loader_split(%' and grantee = 'app_user'`),
  ).toHaveLength(1)
  for (const path of ['functions/tenant/loader_split/part.sql', 'policies/tenant/loader_split.sql'])
    await rm(join(base, path))
  await load()
})

const probe = (type: string, body: string) =>
  `create or replace function internal.loader_probe(a int) returns ${type} language sql stable as '${body}';\n`

test('a function and a trigger that a file no longer says are dropped, and a file that is gone takes everything with it', async () => {
  await edit(
    'functions/tenant/loader_gone.sql',
    () => `
    create or replace function api.loader_gone() returns int language sql as 'select 1';
    create or replace function internal.tg_settings__probe() returns trigger language plpgsql as 'begin return null; end';
    create or replace trigger tg_settings__probe after insert on app.settings for each row execute function internal.tg_settings__probe();`,
  )
  await load()
  expect(await query(`select from pg_trigger where tgname = 'tg_settings__probe'`)).toHaveLength(1)
  await edit(
    'functions/tenant/loader_gone.sql',
    () => `create or replace function api.loader_gone() returns int language sql as 'select 2';`,
  )
  await load()
  expect(await query(`select from pg_trigger where tgname = 'tg_settings__probe'`)).toHaveLength(0)
  expect(await query(`select from pg_proc where proname = 'tg_settings__probe'`)).toHaveLength(0)
  await rm(join(base, 'functions/tenant/loader_gone.sql'))
  await rm(join(base, 'functions/tenant/loader_probe.sql'))
  await rm(join(base, 'policies/tenant/loader_probe.sql'))
  await load()
  expect(await query(`select from pg_proc where proname like 'loader%'`)).toHaveLength(0)
  expect(await query(`select from ops.files where path like '%loader%'`)).toHaveLength(0)
})

test('a function that moves from one file to another stays, whichever comes first in the alphabet', async () => {
  const text = `create or replace function internal.loader_moved() returns int language sql as 'select 1';`
  await edit('functions/tenant/zz_loader.sql', () => text)
  await load()
  await edit('functions/tenant/aa_loader.sql', () => text)
  await edit('functions/tenant/zz_loader.sql', () => '-- moved\n')
  await load()
  expect(await query(`select from pg_proc where proname = 'loader_moved'`)).toHaveLength(1)
  await edit('functions/tenant/zz_loader.sql', () => text)
  await rm(join(base, 'functions/tenant/aa_loader.sql'))
  await load()
  expect(await query(`select from pg_proc where proname = 'loader_moved'`)).toHaveLength(1)
})

test('a function that moves to the files that are there for all areas stays', async () => {
  const text = `create or replace function internal.loader_moved() returns int language sql as 'select 1';`
  await edit('functions/tenant/zz_loader.sql', () => text)
  await load()
  await rm(join(base, 'functions/tenant/zz_loader.sql'))
  await edit('sql/tenant/90_loader.sql', () => text)
  await load()
  expect(await query(`select from pg_proc where proname = 'loader_moved'`)).toHaveLength(1)
  await rm(join(base, 'sql/tenant/90_loader.sql'))
  await query('drop function internal.loader_moved')
})

test('a table that dashboards see moves with its declaration to another file, and shows a column that any migration adds', async () => {
  const before = await snapshot()
  const declared =
    "select internal.graphql_declare('app.integrations', hidden => '{config_sealed,key_id,webhook_path}');\n"
  const from = 'policies/tenant/integrations.sql'
  expect(await readFile(join(base, from), 'utf8')).toContain(declared)
  for (const to of ['policies/tenant/aa_moved.sql', 'policies/tenant/zz_moved.sql']) {
    await edit(from, (text) => text.replace(declared, ''))
    await edit(to, () => declared)
    await load()
    expect(await snapshot()).toEqual(before)
    await edit(from, (text) => text + declared)
    await rm(join(base, to))
    await load()
    expect(await snapshot()).toEqual(before)
  }
  const migration = (version: number, column: string) =>
    edit(
      `db/tenant/migrations/${version}_loader.sql`,
      () =>
        `-- migrate:up\nalter table app.integrations add column ${column} text;\n\n-- migrate:down\nalter table app.integrations drop column ${column};\n`,
    )
  await migration(20991231000000, 'remark')
  expect(await load()).toContain(from)
  expect(
    await query(
      `select from ops.acl where (identity, columns, grantee) = ('app.integrations', 'remark', 'app_dashboard')`,
    ),
  ).toHaveLength(1)
  await migration(20991231000001, 'another_token')
  await expect(load()).rejects.toThrow('another_token looks like a secret')
  await rm(join(base, 'db/tenant/migrations/20991231000001_loader.sql'))
  await query('alter table app.integrations drop column another_token, drop column remark')
  await query(`delete from ops.schema_migrations where version >= '20991231000000'`)
  await rm(join(base, 'db/tenant/migrations/20991231000000_loader.sql'))
  await load()
  expect(await snapshot()).toEqual(before)
})

test('a grant and a policy that move to another policy file stay, whichever of the two is applied first', async () => {
  const before = await snapshot()
  const from = 'policies/tenant/outbox.sql'
  const whole = await readFile(join(base, from), 'utf8')
  const policy = /create policy "workers remove finished work"[^;]*;/.exec(whole)?.[0] ?? ''
  const grant = 'grant execute on function api.outbox_next to app_worker;'
  for (const to of ['policies/tenant/aa_moved.sql', 'policies/tenant/zz_moved.sql']) {
    const less = whole.replace(policy, '').replace('grant select, delete,', 'grant select,')
    await writeFile(
      join(base, from),
      less.replace(/api\.outbox_next,?/, (name) => (name.endsWith(',') ? '' : 'api.outbox_lease')),
    )
    await writeFile(join(base, to), `grant delete on app.outbox to app_worker;\n${grant}\n${policy}\n`)
    await load()
    expect(await snapshot()).toEqual(before)
    const noted = `select path from ops.grants where identity like 'api.outbox_next(%' or (identity, privilege) = ('app.outbox', 'DELETE')`
    expect(await query(noted)).toEqual([{ path: to }, { path: to }])
    // and back: what the file gave, another one gives that is applied before or after it, and it is gone itself
    await writeFile(join(base, from), whole)
    await rm(join(base, to))
    await load()
    expect(await snapshot()).toEqual(before)
  }
})

test('a policy file that is renamed takes nothing with it', async () => {
  const before = await snapshot()
  const [from, to] = ['policies/tenant/outbox.sql', 'policies/tenant/aa_outbox.sql']
  await rename(join(base, from), join(base, to))
  await load()
  expect(await snapshot()).toEqual(before)
  await rename(join(base, to), join(base, from))
  await load()
  expect(await snapshot()).toEqual(before)
})

test('a function that is made anew takes along one of another file whose body names it, and brings it back', async () => {
  const [area, other] = ['functions/tenant/aa_needed.sql', 'functions/tenant/zz_needs.sql']
  await edit(area, () =>
    `create function internal.aa_needed() returns int language sql as 'select 1';
    create function internal.aa_changed() returns int language sql as 'select 1';`.replaceAll(
      'create f',
      'create or replace f',
    ),
  )
  await edit(
    other,
    () => 'create or replace function internal.zz_needs() returns int language sql return internal.aa_needed();',
  )
  await edit('policies/tenant/zz_needs.sql', () => 'grant execute on function internal.zz_needs to app_user;')
  await load()
  const before = await snapshot()
  // another result: the whole file is made anew
  await edit(area, (text) =>
    text.replace(
      "internal.aa_changed() returns int language sql as 'select 1'",
      "internal.aa_changed() returns text language sql as 'select 1::text'",
    ),
  )
  await load()
  expect((await snapshot()).filter((line) => !line.includes('aa_changed'))).toEqual(
    before.filter((line) => !line.includes('aa_changed')),
  )
  for (const path of [other, 'policies/tenant/zz_needs.sql', area]) await rm(join(base, path))
  await load()
})

test('a version that failed half-way takes nothing from the one before, when that is loaded again', async () => {
  const [first, second, wrong] = ['aa_one', 'bb_two', 'zz_wrong'].map((name) => `functions/tenant/${name}.sql`) as [
    string,
    string,
    string,
  ]
  const text = `create or replace function internal.half_way() returns int language sql as 'select 1';`
  await edit(first, () => text)
  await load()
  await rm(join(base, first))
  await edit(second, () => text)
  await edit(wrong, () => 'selec;')
  await expect(load()).rejects.toThrow(wrong)
  for (const path of [second, wrong]) await rm(join(base, path))
  await edit(first, () => text)
  await load()
  expect(await query(`select from pg_proc where proname = 'half_way'`)).toHaveLength(1)
  await rm(join(base, first))
  await load()
})

test('a policy that names what is not there is named with its line, which Postgres does not tell', async () => {
  const path = 'policies/tenant/zz_missing.sql'
  const policy = 'create policy "zz" on app.user_streaks for select to app_user using'
  for (const [condition, missing] of [
    ['(app_user_id = (select internal.usr_id()))', 'function internal.usr_id() does not exist'],
    ['(owner_id = (select internal.user_id()))', 'column "owner_id" does not exist'],
    ['(exists (select from app.streak))', 'relation "app.streak" does not exist'],
  ]) {
    await edit(path, () => `-- for the test\n${policy}\n  ${condition};\n`)
    await expect(load()).rejects.toThrow(`${path}:3: ${missing}`)
  }
  await rm(join(base, path))
  await load()
})

test('a file with a mistake changes nothing, and is named with its line', async () => {
  const before = await snapshot()
  await edit(
    'functions/tenant/zz_loader.sql',
    (text) =>
      `${text}\ncreate or replace function internal.loader_new() returns int language sql as 'select 1';\nselec 1;\n`,
  )
  await expect(load()).rejects.toThrow(/functions\/tenant\/zz_loader\.sql:3: syntax error/)
  expect(await snapshot()).toEqual(before)
})

test('a policy file that comments on a policy is refused with its line: the comment is where the loader notes whose the policy is', async () => {
  await rm(join(base, 'functions/tenant/zz_loader.sql'), { force: true })
  await load()
  const before = await snapshot()
  const path = 'policies/tenant/outbox.sql'
  const whole = await readFile(join(base, path), 'utf8')
  const lines = whole.split('\n').length
  const policies = (comment: string) => `${whole}
create policy "loader's" on app.outbox for select to app_dashboard using (true);
create policy other on app.outbox for select to app_dashboard using (true);
${comment}
`
  const others = await policyOf('policies/tenant/settings.sql')
  for (const [comment, line] of [
    [`comment on policy "loader's" on app.outbox is 'Why.';`, 3],
    [`comment on policy other on app.outbox is null;\ncomment on policy\n"loader's" on app.outbox is 'Why.';`, 4],
    [`\ndo $$ begin execute 'comment on policy other on app.outbox is ''Why.'''; end $$;`, 4],
    [`comment on policy ${others} is 'Why.';`, 3],
  ] as const) {
    await writeFile(join(base, path), policies(comment))
    await expect(load(), comment).rejects.toThrow(`${path}:${lines + line}: comment on policy`)
    expect(await snapshot()).toEqual(before)
  }
  // applied again without it, and again
  await writeFile(join(base, path), policies(''))
  await load()
  await writeFile(join(base, path), policies('-- changed'))
  expect(await load()).toEqual([path])
  await writeFile(join(base, path), whole)
  await load()
  expect(await snapshot()).toEqual(before)
})

/** One policy that this file made, as a comment names it. */
const policyOf = async (path: string): Promise<string | undefined> => {
  const rows = await query(
    `select format('%I on %s', polname, polrelid::regclass) as name from pg_policy where obj_description(oid, 'pg_policy') = 'Made by ${path}' limit 1`,
  )
  return rows[0]?.name
}

test('an empty database refuses such a file too', async () => {
  const path = 'policies/tenant/outbox.sql'
  const whole = await readFile(join(base, path), 'utf8')
  const name = `${database}_fresh`
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  try {
    await admin.query(`create database "${name}" owner trellis_owner template template0`)
    const policy = await policyOf(path)
    await edit(path, (text) => `${text}\ncomment on policy ${policy} is 'Why.';\n`)
    await expect(migrateDatabase(cluster, name, await readProgram('tenant', base))).rejects.toThrow(
      `${path}:${whole.split('\n').length + 1}: comment on policy`,
    )
  } finally {
    await writeFile(join(base, path), whole)
    await admin.query(`drop database "${name}" with (force)`)
    await admin.end()
  }
})
