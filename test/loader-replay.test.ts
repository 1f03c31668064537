import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { readProgram, root } from '#server/database/files.ts'
import { loadBase } from '#server/database/load.ts'
import { migrateDatabase } from '#server/database/migrate.ts'
import { createLoader, type Loader, type TargetOf } from '#server/database/replay.ts'
import { fingerprintHere, fingerprintOf, stateOf } from '#server/database/state.ts'
import { managedOf, readTarget } from '#server/database/target.ts'
import { buildDraft, buildTemplate, draftOf } from '#server/database/templates.ts'
import { formerNotedIn, knownOf, witnessHere } from '#server/database/witness.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const { cluster } = harness.running.services.control
const nameOf = (n: number) => `${harness.prefix}_replay_${n}`
const count = 4
let base: string
/** The first is loaded file by file and stands for the template, the others follow it by one loader, the last with a DBA's hand. */
const clients: Client[] = []

const onMaintenance = async (text: string) => {
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  await admin.query(text).finally(() => admin.end())
}
const connect = async (n: number) => {
  clients[n] = await connectAdmin(cluster, nameOf(n))
}

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'trellis-replay-'))
  for (const folder of ['sql', 'functions', 'policies', 'db'])
    await cp(join(root, folder), join(base, folder), { recursive: true })
  await onMaintenance(`create database "${nameOf(0)}" owner trellis_owner template template0`)
  await migrateDatabase(cluster, nameOf(0), await readProgram('tenant', base))
  for (let n = 1; n < count; n += 1)
    await onMaintenance(`create database "${nameOf(n)}" owner trellis_owner template "${nameOf(0)}"`)
  for (let n = 0; n < count; n += 1) await connect(n)
})
afterAll(async () => {
  for (const client of clients) await client.end()
  for (let n = 0; n < count; n += 1) await onMaintenance(`drop database if exists "${nameOf(n)}" with (force)`)
  await rm(base, { recursive: true, force: true })
})

const edit = async (path: string, change: (text: string) => string) => {
  const file = join(base, path)
  const text = await readFile(file, 'utf8')
  expect(change(text), path).not.toBe(text)
  await writeFile(file, change(text))
}
/** Makes database n a copy of database 0. */
const cloneOf = async (n: number) => {
  for (const one of [0, n]) await clients[one]?.end()
  await onMaintenance(`drop database "${nameOf(n)}" with (force)`)
  await onMaintenance(`create database "${nameOf(n)}" owner trellis_owner template "${nameOf(0)}"`)
  for (const one of [0, n]) await connect(one)
}
/** Everything that the loader manages, as text. */
const snapshot = async (n: number) => {
  const lines = [...(await stateOf(clients[n]!)).values()].map((item) => Object.values(item).join(' | '))
  return lines.sort()
}
const migrate = async (n: number, loader?: Loader, target?: TargetOf) => {
  const log = { warn: () => undefined }
  const program = await readProgram('tenant', base)
  return migrateDatabase(cluster, nameOf(n), program, {
    log,
    ...(loader ? { loader, target } : {}),
  })
}

/** Brings database 0 to the files of `base` one by one, and 1 and 2 to what it is then; all must end the same. */
const upgradeAll = async (): Promise<{ replayed: boolean[] }> => {
  const former = await fingerprintOf(clients[1]!)
  const before = managedOf(clients[1]!)
  await migrate(0)
  const target = await readTarget(clients[0]!, before)
  const templates: TargetOf = async (fingerprint) => (fingerprint === former ? target : null)
  const loader = createLoader()
  const began = [await transactionsOf(clients[1]!), await transactionsOf(clients[2]!)]
  const applied = await migrate(1, loader, templates)
  expect(applied.length).toBeGreaterThan(0)
  expect(await migrate(2, loader, templates)).toEqual(applied)
  const [first, second, third] = [await snapshot(0), await snapshot(1), await snapshot(2)]
  expect(second).toEqual(first)
  expect(third).toEqual(first)
  expect(await fingerprintOf(clients[2]!)).toBe(await fingerprintOf(clients[0]!))
  const ended = [await transactionsOf(clients[1]!), await transactionsOf(clients[2]!)]
  return { replayed: ended.map((transactions, n) => transactions <= began[n]! + 1) }
}

/** Transactions that wrote which files are applied: file by file there is one for each. */
const transactionsOf = async (client: Client) => {
  const { rows } = await client.query<{ n: string }>('select count(distinct xmin::text)::int as n from ops.files')
  return Number(rows[0]?.n)
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
      await cp(join(root, path), join(base, path))
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
      (await clients[1]!.query(`select oid from pg_policy where polname = 'replay''s own; comment on policy'`)).rows
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
    await edit('policies/tenant/xp.sql', (text) => text.replace("'{key}', 200", "'{key}', 199"))
  },
  async 'a definition less'() {
    await edit('policies/tenant/roles.sql', (text) =>
      text
        .replace(/^insert into internal\.definitions[^;]*;$/m, '')
        .replace("select internal.definition_declare('role');", ''),
    )
  },
  async 'a file that moved, and one that is gone'() {
    const path = join(base, 'functions/tenant/idempotency.sql')
    await writeFile(join(base, 'functions/tenant/aa_idempotency.sql'), await readFile(path, 'utf8'))
    await rm(path)
  },
  async 'a seed'() {
    await edit('sql/seeds/tenant/timezones.sql', (text) => `${text}\n-- again\n`)
  },
  async 'a migration with its functions and policies'() {
    await writeFile(
      join(base, 'db/tenant/migrations/20991231000000_push_tokens.sql'),
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
    const program = await readProgram('tenant', base)
    for (const file of [...program.functions, ...program.policies])
      await edit(file.path, (text) => `${text.replaceAll(/as \$\$\n/g, 'as $$$$\n-- changed\n')}\n-- changed\n`)
  },
}

test('an empty database is loaded in one transaction, and ends as one that is loaded file by file', {
  timeout: 120_000,
}, async () => {
  const times = async (n: number) => {
    const { rows } = await clients[n]!.query<{ n: number }>(
      `select count(distinct applied_at)::int as n from ops.files where path !~ '^sql/(shared|tenant)/'`,
    )
    return rows[0]?.n
  }
  expect(await times(0)).toBe(1)
  const name = `${harness.prefix}_replay_slow`
  await onMaintenance(`create database "${name}" owner trellis_owner template template0`)
  const program = await readProgram('tenant', base)
  const slow = await connectAdmin(cluster, name)
  try {
    await loadBase(slow, program)
    // a file that is known keeps the loader from taking the database for an empty one
    await slow.query(`insert into ops.files (path, hash) values ('policies/tenant/former.sql', '')`)
    await migrateDatabase(cluster, name, program)
    const lines = [...(await stateOf(slow)).values()].map((item) => Object.values(item).join(' | '))
    expect(lines.sort()).toEqual(await snapshot(0))
  } finally {
    await slow.end()
    await onMaintenance(`drop database "${name}" with (force)`)
  }
})

test.each(Object.keys(kinds))('one by one or replayed, the end is the same: %s', { timeout: 120_000 }, async (kind) => {
  await kinds[kind]?.()
  expect(await upgradeAll()).toEqual({ replayed: [true, true] })
})

test('a database that was upgraded is as one that is made of the same files', { timeout: 120_000 }, async () => {
  // compiles every definition again, and the file that does so must not take them from the files that declare them
  await edit('functions/tenant/definitions/compile.sql', (text) => `${text}\n-- changed\n`)
  expect(await upgradeAll()).toEqual({ replayed: [true, true] })
  const name = `${harness.prefix}_replay_fresh`
  await onMaintenance(`create database "${name}" owner trellis_owner template template0`)
  const program = await readProgram('tenant', base)
  const fresh = await connectAdmin(cluster, name)
  try {
    await migrateDatabase(cluster, name, program)
    const lines = [...(await stateOf(fresh)).values()].map((item) => Object.values(item).join(' | ')).sort()
    for (const n of [0, 1, 2]) expect(await snapshot(n)).toEqual(lines)
    expect(await fingerprintOf(clients[0]!)).toBe(await fingerprintOf(fresh))
  } finally {
    await fresh.end()
    await onMaintenance(`drop database "${name}" with (force)`)
  }
})

test('the plans of events are computed anew where their functions changed, also by a replay', {
  timeout: 120_000,
}, async () => {
  for (const n of [0, 1, 2]) await clients[n]?.query(`insert into app.event_plans (event_name) values ('outdated')`)
  await edit('functions/tenant/leaderboards/score.sql', (text) =>
    text.replace('where b.is_active\n   group by 1', 'where b.is_active and true\n   group by 1'),
  )
  expect(await upgradeAll()).toEqual({ replayed: [true, true] })
  // areas whose plan has no definitions have theirs in an empty project too
  for (const n of [0, 1, 2]) {
    const kept = await clients[n]?.query(`select p.event_name from app.event_plans p where p.event_name = 'outdated'`)
    expect(kept?.rows).toEqual([])
  }
})

test('a database changed by hand is loaded with care: what its DBA made stays, and is not taken for ours', {
  timeout: 120_000,
}, async () => {
  await migrate(3)
  const byHand = `
    create policy "the DBA's own" on app.settings for select to app_dashboard using (true);
    grant delete on app.settings to app_dashboard;
    create or replace function internal.now() returns timestamptz language sql stable as 'select now()'`
  for (const n of [0, 3]) await clients[n]?.query(byHand)
  await edit('policies/tenant/settings.sql', (text) => `${text}\ngrant delete on app.settings to app_dashboard;\n`)
  const careful = await migrate(0)
  const loader = createLoader()
  expect(await migrate(1, loader)).toEqual(careful)
  expect(await migrate(2, loader)).toEqual(careful)
  expect(await migrate(3, loader)).toEqual(careful)
  expect(await snapshot(3)).toEqual(await snapshot(0))
  expect(await snapshot(2)).toEqual(await snapshot(1))
  const recorded = async (n: number) =>
    (
      await clients[n]!.query(
        `select from ops.grants where identity = 'app.settings' and privilege = 'DELETE' and grantee = 'app_dashboard'`,
      )
    ).rowCount
  expect([await recorded(3), await recorded(1)]).toEqual([0, 1])
})

test('whatever a fingerprint does not show stands against a replay, and nothing of it is left', {
  timeout: 120_000,
}, async () => {
  for (const n of [1, 2]) await migrate(n)
  // a view of the DBA's in a schema of their own depends on a function whose result changes
  await edit(
    'functions/tenant/settings.sql',
    (text) => `${text}
create or replace function internal.replay_leaned_on() returns int language sql stable as 'select 1';`,
  )
  for (const n of [1, 2]) await migrate(n)
  await clients[2]?.query(
    'create schema reports; create view reports.leaning as select internal.replay_leaned_on() as n',
  )
  expect(await fingerprintOf(clients[2]!)).toBe(await fingerprintOf(clients[1]!))
  await edit('functions/tenant/settings.sql', (text) =>
    text.replace('internal.replay_leaned_on() returns int', 'internal.replay_leaned_on() returns bigint'),
  )
  const before = await snapshot(2)
  const loader = createLoader()
  await migrate(1, loader)
  await expect(migrate(2, loader)).rejects.toThrow('internal.replay_leaned_on')
  expect(await snapshot(2)).toEqual(before)
  await clients[2]?.query('drop schema reports cascade')
  await migrate(2, loader)
  expect(await snapshot(2)).toEqual(await snapshot(1))
})

test('each difference in what is managed shows in the fingerprint', async () => {
  const client = clients[1]!
  const before = await fingerprintOf(client)
  const witness = async () => (await witnessHere(client)).witness
  const witnessBefore = await witness()
  for (const statement of [
    `comment on function internal.now() is 'another'`,
    'alter function internal.now() parallel unsafe',
    'grant execute on function internal.now() to public',
    'alter table app.settings disable row level security',
    'alter table app.settings force row level security',
    'alter table app.settings add column by_hand text',
    'grant select on app.settings to app_dashboard with grant option',
    'grant select (key) on app.settings to app_dashboard',
    'revoke usage on schema app from app_user',
    'create policy other on app.settings for select using (true)',
    'create view internal.other as select 1 as one',
    `create type internal.other as enum ('a')`,
    'alter default privileges grant execute on functions to app_user',
    'update internal.user_data set section = section || 1 where declared_in in (select path from ops.files)',
    `update ops.files set hash = 'x' where path = 'functions/shared/rate_limits.sql'`,
    'delete from ops.objects where identity = (select min(identity) from ops.objects)',
    'delete from ops.grants where identity = (select min(identity) from ops.grants)',
    'delete from ops.schema_migrations where version = (select max(version) from ops.schema_migrations)',
    `do $$ begin execute format('alter table %s disable trigger %I', (select tgrelid::regclass from pg_trigger where not tgisinternal and tgrelid::regclass::text like 'app.%' and tgparentid = 0 order by oid limit 1), (select tgname from pg_trigger where not tgisinternal and tgrelid::regclass::text like 'app.%' and tgparentid = 0 order by oid limit 1)); end $$`,
  ]) {
    await client.query(`begin; ${statement}`)
    await client.query(`set local search_path = ''`)
    const changed = await fingerprintHere(client)
    const witnessChanged = await witness()
    await client.query('rollback')
    expect(changed, statement).not.toBe(before)
    expect(witnessChanged, statement).not.toBe(witnessBefore)
  }
  expect(await fingerprintOf(client)).toBe(before)
  expect(await witness()).toBe(witnessBefore)
})

/** Of each database: whether what was noted when it was loaded still counts. */
const isNoted = async (client: Client) => {
  const { rows } = await client.query<{ witness: string }>('select witness from ops.loaded')
  return rows[0]?.witness === (await witnessHere(client)).witness
}

test('what a project does at run time leaves its witness as it was, and a hand on what is managed does not', async () => {
  const project = await harness.project()
  const client = await connectAdmin(cluster, project.database)
  try {
    expect(await isNoted(client)).toBe(true)
    const made = await project.admin.post('/collections', {
      name: 'notes',
      columns: [{ name: 'text', type: 'text' }],
    })
    expect(made.status).toBe(201)
    const user = await project.user()
    expect((await user.post('/client/events', { event_name: 'noted' })).status).toBe(201)
    await client.query('analyze')
    expect(await isNoted(client)).toBe(true)
    // undone, but by hand: only the fingerprint can tell that nothing differs
    await client.query('grant select on app.settings to app_dashboard with grant option')
    await client.query('revoke grant option for select on app.settings from app_dashboard')
    expect(await isNoted(client)).toBe(false)
    const fingerprint = await fingerprintOf(client)
    expect((await knownOf(client))?.fingerprint).toBe(fingerprint)
  } finally {
    await client.end()
  }
})

test.each([
  ['makes a policy', `create policy "in between" on app.settings for select to app_dashboard using (true)`],
  [
    'drops a policy',
    `do $$ begin execute (select format('drop policy %I on app.push_tokens', polname) from pg_policy where polrelid = 'app.push_tokens'::regclass order by polname limit 1); end $$`,
  ],
  [
    'replaces a function',
    `create or replace function internal.now() returns timestamptz language sql stable as 'select statement_timestamp()'`,
  ],
])('a DBA who %s while a proven difference is replayed is seen', { timeout: 120_000 }, async (_what, statement) => {
  for (const n of [1, 2]) await cloneOf(n)
  await edit('functions/tenant/settings.sql', (text) => `${text}\n-- ${statement.length}\n`)
  const program = await readProgram('tenant', base)
  const loader = createLoader()
  const path = 'test'
  for (const n of [1, 2]) {
    const known = await knownOf(clients[n]!)
    await loader.load(clients[n]!, program, { ...known!, path })
  }
  // the second followed the first, and nobody has computed its fingerprint
  expect(await isNoted(clients[2]!)).toBe(true)
  expect((await knownOf(clients[2]!))?.fingerprint).toBe(await fingerprintOf(clients[1]!))
  await cloneOf(3)
  const known = await knownOf(clients[3]!)
  await clients[3]!.query(statement)
  await loader.load(clients[3]!, program, { ...known!, path })
  const after = await fingerprintOf(clients[3]!)
  expect(after).not.toBe(await fingerprintOf(clients[2]!))
  expect((await knownOf(clients[3]!))?.fingerprint).toBe(after)
})

test('replaced again and again, functions and policies use the space that their former versions left', {
  timeout: 120_000,
}, async () => {
  for (const n of [1, 2]) {
    await cloneOf(n)
    // autovacuum may have been there: without space of former versions the first round has to grow
    await clients[n]!.query('set role none')
    await clients[n]!.query('vacuum (full) pg_catalog.pg_proc')
    await clients[n]!.query('set role trellis_owner')
  }
  const size = async () =>
    Number((await clients[2]!.query<{ size: string }>(`select pg_table_size('pg_proc') as size`)).rows[0]?.size)
  const sizes = [await size()]
  for (const round of ['one', 'two', 'three']) {
    const program = await readProgram('tenant', base)
    for (const file of program.functions.filter(({ path }) => path.includes('/collections/')))
      await edit(file.path, (text) => `${text.replaceAll(/as \$\$\n/g, `as $$$$\n-- ${round}\n`)}\n`)
    const loader = createLoader()
    for (const n of [1, 2]) await migrate(n, loader)
    sizes.push(await size())
  }
  const [before = 0, one = 0, , three = 0] = sizes
  expect(one).toBeGreaterThan(before)
  expect(three - one).toBeLessThan(one - before)
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
    await buildTemplate(cluster, admin, name, await readProgram('tenant', base))
    const { rows } = await admin.query<{ now: string }>('select now()::text as now')
    await writeFile(
      join(base, 'db/tenant/migrations/20991231000001_settings.sql'),
      '-- migrate:up\ncreate table app.replay_copied (id int primary key);\n\n-- migrate:down\ndrop table app.replay_copied;\n',
    )
    await edit(
      'policies/tenant/settings.sql',
      (text) => `${text}
alter table app.replay_copied enable row level security;
grant select on app.replay_copied to app_user;`,
    )
    const program = await readProgram('tenant', base)
    for (const template of [name, `${name}_other`]) {
      await buildDraft(cluster, admin, template, program)
      const client = await connectAdmin(cluster, draftOf(template))
      const old = await client.query<{ old: number }>(
        'select count(*)::int as old from ops.files where applied_at < $1',
        [rows[0]?.now],
      )
      reports[template] = {
        lines: [...(await stateOf(client)).values()].map((item) => Object.values(item).join(' | ')).sort(),
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
  expect(copied?.old).toBeGreaterThan(100)
  expect(built?.old).toBe(0)
  expect(copied?.lines).toEqual(built?.lines)
  expect(copied?.fingerprint).toBe(built?.fingerprint)
  expect([copied?.former, built?.former]).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), null])
})
