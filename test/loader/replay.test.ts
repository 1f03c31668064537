// A difference that is worked out once and replayed ends as loading file by file does. With few areas: nothing here is about a certain one.
import { cp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formerNotedIn } from '#fleet/load/checksum.ts'
import { migrateDatabase } from '#fleet/load/migrate.ts'
import { createLoader } from '#fleet/load/replay.ts'
import { fingerprintOf } from '#fleet/load/state.ts'
import { buildDraft, buildTemplate, draftOf } from '#fleet/templates.ts'
import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { root } from '#server/root.ts'
import { startHarness } from '#test/support/harness.ts'
import { linesOf, startReplay } from '#test/support/replay.ts'

const harness = await startHarness()
const { cluster } = harness.running.services.control
const { base, client, edit, migrate, program, snapshot, upgradeAll, withDatabase } = startReplay(harness, {
  count: 3,
  areas: 'few',
})

/** A function that makes functions, and a file that calls it. */
const writeDeclaration = async (parameters: string, body: string, call: string) => {
  const isLonger = parameters.includes('b boolean')
  await writeFile(
    join(base(), 'functions/tenant/replay_declare.sql'),
    `drop function if exists internal.replay_declare(${isLonger ? 'text' : 'text, boolean'});
create or replace function internal.replay_declare(${parameters}) returns void language plpgsql as $$
begin
  execute format('create or replace function internal.replay_%s() returns text language sql return %L', replay_declare.a, '${body}');
end $$;
comment on function internal.replay_declare is 'For the test.';
`,
  )
  await writeFile(join(base(), 'functions/tenant/replay_sources.sql'), `select internal.replay_declare(${call});\n`)
}

const kinds: Readonly<Record<string, () => Promise<void>>> = {
  async 'the body of a function'() {
    await edit('functions/tenant/settings.sql', (text) => text.replace(/as \$\$\n/, 'as $$$$\n-- another body\n'))
  },
  async 'a new function, granted'() {
    await edit(
      'functions/tenant/settings.sql',
      (text) => `${text}
create or replace function internal.replay_probe(a int) returns int language sql stable return replay_probe.a;
comment on function internal.replay_probe is 'For the test, it''s "quoted".';
create or replace function internal.replay_probe_caller(a int) returns int language sql stable return internal.replay_probe(replay_probe_caller.a);`,
    )
    await edit(
      'policies/tenant/settings.sql',
      (text) => `${text}
grant execute on function internal.replay_probe, internal.replay_probe_caller to app_user, app_admin;
create policy "probe's own" on app.settings for select to app_user using ((select internal.replay_probe(1)) = 2);`,
    )
  },
  async 'a function with another result, under a policy and another function'() {
    await edit('functions/tenant/settings.sql', (text) =>
      text
        .replace('internal.replay_probe(a int) returns int', 'internal.replay_probe(a int) returns bigint')
        .replace(
          'internal.replay_probe_caller(a int) returns int',
          'internal.replay_probe_caller(a int) returns bigint',
        ),
    )
  },
  async 'an argument more'() {
    await edit('functions/tenant/settings.sql', (text) =>
      text.replace('internal.replay_probe(a int)', 'internal.replay_probe(a int, b int default 0)'),
    )
  },
  async 'a trigger'() {
    await edit(
      'functions/tenant/settings.sql',
      (text) => `${text}
create or replace function internal.tg_replay() returns trigger language plpgsql as 'begin return null; end';
create or replace trigger tg_replay after insert on app.settings for each row execute function internal.tg_replay();`,
    )
  },
  async 'all of that gone'() {
    for (const path of ['functions/tenant/settings.sql', 'policies/tenant/settings.sql'])
      await cp(join(root, path), join(base(), path))
  },
  async 'column grants, a privilege on a table, and row security'() {
    await edit('policies/tenant/outbox.sql', (text) => text.replace('update (due_at, ', 'update ('))
    await edit(
      'policies/tenant/push_tokens.sql',
      (text) => `${text}
alter table app.push_tokens force row level security;
grant select (id) on app.push_tokens to app_dashboard;
grant references on app.push_tokens to app_dashboard;`,
    )
  },
  async 'a privilege on a table less, beside one on a column'() {
    await edit('policies/tenant/push_tokens.sql', (text) =>
      text.replace('grant references on app.push_tokens to app_dashboard;', ''),
    )
  },
  async 'expressions, roles and commands of policies'() {
    const own = (roles: string, command: string, expression: string) =>
      `\ncreate policy "replay's own; comment on policy" on app.push_tokens for ${command} to ${roles} ${expression};`
    await edit('policies/tenant/push_tokens.sql', (text) => text + own('app_dashboard', 'select', 'using (true)'))
    await upgradeAll()
    const oid = async () =>
      (await client(1).query(`select oid from pg_policy where polname = 'replay''s own; comment on policy'`)).rows
    const before = await oid()
    expect(before).toHaveLength(1)
    await edit('policies/tenant/push_tokens.sql', (text) =>
      text.replace(
        own('app_dashboard', 'select', 'using (true)'),
        own('app_dashboard, app_anon', 'select', "using (platform <> ' as x for y to z ')"),
      ),
    )
    await upgradeAll()
    // altered where it is, which writes a third of the rows
    expect(await oid()).toEqual(before)
    await edit('policies/tenant/push_tokens.sql', (text) =>
      text.replace(
        own('app_dashboard, app_anon', 'select', "using (platform <> ' as x for y to z ')"),
        own('app_dashboard', 'update', 'using (true) with check (false)'),
      ),
    )
  },
  async 'rows of the registries'() {
    await edit('policies/tenant/push_tokens.sql', (text) => text.replace("'move'", "'keep survivor'"))
    await edit('policies/tenant/roles.sql', (text) => text.replace("'{key}', 50", "'{key}', 49"))
  },
  async 'a definition less'() {
    await edit('policies/tenant/roles.sql', (text) =>
      text
        .replace(/^insert into internal\.definitions[^;]*;$/m, '')
        .replace("select internal.definition_declare('role');", ''),
    )
  },
  async 'a declaration that other files call while they are loaded'() {
    await writeDeclaration('a text', 'declare', "'one'")
  },
  async 'that declaration with an argument more, whose former version it drops, as realtime has done'() {
    await writeDeclaration('a text, b boolean default false', 'declare_more', "'one', true")
    expect(await upgradeAll()).toEqual({ replayed: [true, true] })
    for (const n of [0, 1, 2]) {
      const { rows } = await client(n).query(
        `select p.oid::regprocedure::text as signature from pg_proc p where p.proname in ('replay_declare', 'replay_one') order by 1`,
      )
      expect(rows).toEqual([
        { signature: 'internal.replay_declare(text,boolean)' },
        { signature: 'internal.replay_one()' },
      ])
    }
    // and back again
    await writeDeclaration('a text', 'declare', "'one'")
  },
  async 'a file that moved, and one that is gone'() {
    const path = join(base(), 'functions/tenant/idempotency.sql')
    await writeFile(join(base(), 'functions/tenant/aa_idempotency.sql'), await readFile(path, 'utf8'))
    await rm(path)
  },
  async 'a seed'() {
    await edit('sql/seeds/tenant/timezones.sql', (text) => `${text}\n-- again\n`)
  },
  async 'a migration with its functions and policies'() {
    await writeFile(
      join(base(), 'db/tenant/migrations/20991231000000_push_tokens.sql'),
      '-- migrate:up\ncreate table app.replay (id int primary key);\nalter table app.push_tokens add column replay text;\n\n-- migrate:down\ndrop table app.replay;\n',
    )
    await edit(
      'policies/tenant/push_tokens.sql',
      (text) => `${text}
alter table app.replay enable row level security;
create policy "everybody reads replays" on app.replay for select to app_user using (true);
grant select on app.replay to app_user;`,
    )
  },
  async 'every file'() {
    const { functions, policies } = await program()
    for (const file of [...functions, ...policies])
      await edit(file.path, (text) => `${text.replaceAll(/as \$\$\n/g, 'as $$$$\n-- changed\n')}\n-- changed\n`)
  },
}

test.each(Object.keys(kinds))('one by one or replayed, the end is the same: %s', { timeout: 120_000 }, async (kind) => {
  await kinds[kind]?.()
  expect(await upgradeAll()).toEqual({ replayed: [true, true] })
})

test('a new counter counts what is there in each database, and is forgotten with its declaration', {
  timeout: 120_000,
}, async () => {
  for (const n of [0, 1, 2])
    await client(n).query(
      `insert into app.settings (key, value) select 'replay ' || g, '1' from generate_series(1, $1::int) g`,
      [5 + n],
    )
  const declared = "\nselect internal.count_declare('replay_settings', 'app.settings');\n"
  await edit('functions/tenant/settings.sql', (text) => text + declared)
  expect(await upgradeAll()).toEqual({ replayed: [true, true] })
  const counted = async (n: number) =>
    (
      await client(n).query(
        `select internal.counted('replay_settings')::int as counted, (select count(*)::int from app.settings) as there`,
      )
    ).rows[0]
  // databases 1 and 2 begin as copies of 0
  for (const n of [0, 1, 2]) {
    const { counted: found, there } = await counted(n)
    expect(there).toBeGreaterThanOrEqual(5)
    expect(found).toBe(there)
  }
  await edit('functions/tenant/settings.sql', (text) => text.replace(declared, ''))
  expect(await upgradeAll()).toEqual({ replayed: [true, true] })
  for (const n of [0, 1, 2]) {
    const { rows } = await client(n).query(`select name from app.row_counters where name = 'replay_settings'`)
    expect([rows, (await counted(n)).counted]).toEqual([[], null])
  }
})

test('a database that was upgraded is as one that is made of the same files', { timeout: 120_000 }, async () => {
  // compiles every definition again, and the file that does so must not take them from the files that declare them
  await edit('functions/tenant/definitions/compile.sql', (text) => `${text}\n-- changed\n`)
  expect(await upgradeAll()).toEqual({ replayed: [true, true] })
  const files = await program()
  await withDatabase('fresh', async (fresh, name) => {
    await migrateDatabase(cluster, name, files)
    const lines = await linesOf(fresh)
    for (const n of [0, 1, 2]) expect(await snapshot(n)).toEqual(lines)
    expect(await fingerprintOf(client(0))).toBe(await fingerprintOf(fresh))
  })
})

test('many databases at once: one is loaded file by file, and the others follow it', { timeout: 120_000 }, async () => {
  await edit('functions/tenant/settings.sql', (text) => `${text}\n-- once more\n`)
  const loader = createLoader()
  const applied = await Promise.all([1, 2].map((n) => migrate(n, loader)))
  expect(applied[0]).toEqual(applied[1])
  expect(await snapshot(1)).toEqual(await snapshot(2))
})

test('the template of a few files and migrations more is a copy of the former one, and the same as one that is built from nothing', {
  timeout: 120_000,
}, async () => {
  const name = `${harness.prefix}_replay_template`
  const reports: Record<string, { lines: string[]; fingerprint: string | null; former: string | null; old: number }> =
    {}
  // without the lock of the server, since nobody else uses this name
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  try {
    await buildTemplate(cluster, admin, name, await program())
    const { rows } = await admin.query<{ now: string }>('select now()::text as now')
    await writeFile(
      join(base(), 'db/tenant/migrations/20991231000001_settings.sql'),
      '-- migrate:up\ncreate table app.replay_copied (id int primary key);\n\n-- migrate:down\ndrop table app.replay_copied;\n',
    )
    await edit(
      'policies/tenant/settings.sql',
      (text) => `${text}
alter table app.replay_copied enable row level security;
grant select on app.replay_copied to app_user;`,
    )
    const changed = await program()
    for (const template of [name, `${name}_other`]) {
      await buildDraft(cluster, admin, template, changed)
      const client = await connectAdmin(cluster, draftOf(template))
      const old = await client.query<{ old: number }>(
        'select count(*)::int as old from ops.files where applied_at < $1',
        [rows[0]?.now],
      )
      reports[template] = {
        lines: await linesOf(client),
        fingerprint: await fingerprintOf(client),
        former: await formerNotedIn(client),
        old: Number(old.rows[0]?.old),
      }
      await client.end()
    }
  } finally {
    for (const made of [name, draftOf(name), draftOf(`${name}_other`)])
      await admin.query(`drop database if exists "${made}" with (force)`)
    await admin.end()
  }
  const [copied, built] = Object.values(reports)
  expect(copied?.old).toBeGreaterThan(30)
  expect(built?.old).toBe(0)
  expect(copied?.lines).toEqual(built?.lines)
  expect(copied?.fingerprint).toBe(built?.fingerprint)
  expect([copied?.former, built?.former]).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), null])
})
