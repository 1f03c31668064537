import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Client } from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type Program, readProgram, type SqlFile } from '#fleet/load/files.ts'
import { loadBase } from '#fleet/load/load.ts'
import { parseMigration, pendingMigrations, runMigrations } from '#fleet/load/migrations.ts'
import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { root } from '#server/root.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const { cluster } = harness.running.services.control
const names = ['ours', 'theirs'].map((name) => `${harness.prefix}_migrations_${name}`)
const [ours = '', theirs = ''] = names
const clients = new Map<string, Client>()
const clientOf = (name: string) => clients.get(name)!

beforeAll(async () => {
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  const program = await readProgram('tenant')
  for (const name of names) {
    await admin.query(`create database "${name}" owner trellis_owner template template0`)
    const client = await connectAdmin(cluster, name)
    clients.set(name, client)
    await loadBase(client, program)
  }
  await admin.end()
})
afterAll(async () => {
  for (const client of clients.values()) await client.end()
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  for (const name of names) await admin.query(`drop database "${name}" with (force)`)
  await admin.end()
})

const dbmate = async (database: string, ...command: string[]) => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${database}`
  // as npm run db:url has it
  url.searchParams.set('options', '-c role=trellis_owner')
  url.searchParams.set('sslmode', 'disable')
  const binary = createRequire(import.meta.url).resolve(`@dbmate/${process.platform}-${process.arch}/bin/dbmate`)
  const folder = join(root, 'db/tenant/migrations')
  const args = ['--no-dump-schema', '--migrations-dir', folder, '--migrations-table', 'ops.schema_migrations']
  const { stdout } = await promisify(execFile)(binary, [...args, ...command], {
    env: { DATABASE_URL: url.href.replaceAll('+', '%20') },
  })
  return stdout
}

/** Tables, columns, indexes, constraints and what dbmate knows. */
const schema = async (database: string) => {
  const { rows } = await clientOf(database).query<{ line: string }>(`
    select format('%s.%s %s %s %s', n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull) as line
      from pg_class c join pg_namespace n on n.oid = c.relnamespace and n.nspname in ('app', 'internal', 'ops')
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    union all
    select conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) from pg_constraint
    union all
    select 'version ' || version from ops.schema_migrations
     order by 1`)
  return rows.map(({ line }) => line)
}

test('our runner and dbmate make the same of the same files, and each knows what the other applied', {
  timeout: 120_000,
}, async () => {
  const program = await readProgram('tenant')
  const pending = await pendingMigrations(clientOf(ours), program)
  expect(pending).toEqual(program.migrations)
  await runMigrations(clientOf(ours), program, pending)
  await dbmate(theirs, 'migrate', '--strict')
  expect(await schema(ours)).toEqual(await schema(theirs))

  expect(await dbmate(ours, 'status')).toContain('Pending: 0')
  expect(await pendingMigrations(clientOf(theirs), program)).toEqual([])
  // what an operator takes back by dbmate, we apply again
  await dbmate(ours, 'rollback')
  expect(await pendingMigrations(clientOf(ours), program)).toEqual([program.schemaVersion])
  await runMigrations(clientOf(ours), program, [program.schemaVersion])
  expect(await schema(ours)).toEqual(await schema(theirs))
})

const file = (text: string, name = '20991231000000_probe.sql'): SqlFile => ({
  path: `db/tenant/migrations/${name}`,
  hash: '',
  text,
})
const programOf = (text: string, name?: string): Program => ({
  kind: 'tenant',
  base: [],
  functions: [],
  policies: [],
  seeds: [],
  migrations: [(name ?? '20991231000000').slice(0, 14)],
  migrationFiles: [file(text, name)],
  schemaVersion: '',
  contentHash: '',
  newestOf: () => undefined,
})
const migrate = async (text: string, name?: string) => {
  const program = programOf(text, name)
  await runMigrations(clientOf(ours), program, await pendingMigrations(clientOf(ours), program))
}

test('a migration that fails is named with its line, and leaves nothing behind', async () => {
  const before = await schema(ours)
  await expect(
    migrate('-- about it\n-- migrate:up\ncreate table app.probe (id int);\nselec 1;\n-- migrate:down\nselect 1;\n'),
  ).rejects.toThrow('db/tenant/migrations/20991231000000_probe.sql:4: syntax error at or near "selec"')
  await expect(
    migrate('-- migrate:up\ncreate table app.probe (id int); select 1 / 0;\n-- migrate:down\n'),
  ).rejects.toThrow('division by zero')
  expect(await schema(ours)).toEqual(before)
})

test('transaction:false runs outside of a transaction', async () => {
  await migrate(
    '-- migrate:up transaction:false\ncreate index concurrently probe_concurrently on app.settings (key);\n-- migrate:down transaction:false\ndrop index app.probe_concurrently;\n',
  )
  const { rows } = await clientOf(ours).query(`select from pg_class where relname = 'probe_concurrently'`)
  expect(rows).toHaveLength(1)
})

/** Migrations of these texts, which follow each other. */
const migrateAll = async (client: Client, texts: readonly string[]) => {
  const files = texts.map((text, n) => file(text, `2098010100000${n}_probe.sql`))
  const migrations = files.map(({ path }) => path.split('/').at(-1)?.slice(0, 14) ?? '')
  await runMigrations(client, { ...programOf(''), migrations, migrationFiles: files }, migrations)
}
const up = (text: string) => `-- migrate:up\n${text}\n-- migrate:down\n`

test.each([
  ['a mistake', 'create table app.probe_2 (id int); select 1 / 0;', 'division by zero'],
  ['a comment that it leaves open', 'create table app.probe_2 (id int); /* open', 'unterminated'],
])(
  'of many migrations each is a transaction of its own; those before one with %s stay, and it is named',
  async (_what, wrong, message) => {
    const client = clientOf(ours)
    const before = await schema(ours)
    const good = (n: number) => up(`create table app.probe_${n} (id int); -- no newline, no semicolon after it`)
    await expect(migrateAll(client, [good(0), good(1), up(wrong), up('/* a */ select 1')])).rejects.toThrow(message)
    const { rows } = await client.query<{ versions: number; transactions: number }>(
      `select count(*)::int as versions, count(distinct xmin::text)::int as transactions from ops.schema_migrations where version like '2098%'`,
    )
    expect(rows).toEqual([{ versions: 2, transactions: 2 }])
    await client.query(
      `drop table app.probe_0, app.probe_1; delete from ops.schema_migrations where version like '2098%'`,
    )
    expect(await schema(ours)).toEqual(before)
  },
)

test('many migrations run although one must not be in a transaction, and one waits for a lock', async () => {
  const client = clientOf(ours)
  const holder = await connectAdmin(cluster, ours)
  await holder.query('begin; lock table app.settings in access share mode')
  const waiting = migrateAll(client, [
    up('create table app.probe_0 (id int);'),
    up('alter table app.settings add column probe_many int;'),
    up('create table app.probe_2 (id int);'),
  ])
  // the first is not held up by what the second waits for
  await expect
    .poll(async () => (await holder.query(`select from ops.schema_migrations where version like '2098%'`)).rowCount)
    .toBe(1)
  await holder.query('commit')
  await waiting
  await holder.end()
  await client.query(
    `drop table app.probe_0, app.probe_2; alter table app.settings drop column probe_many; delete from ops.schema_migrations where version like '2098%'`,
  )
  await migrateAll(client, [
    up('create table app.probe_0 (id int);'),
    '-- migrate:up transaction:false\ncreate index concurrently probe_many on app.probe_0 (id);\n-- migrate:down\n',
    up('create table app.probe_2 (id int);'),
  ])
  const { rows } = await client.query(
    `select relname from pg_class where relname in ('probe_0', 'probe_many', 'probe_2')`,
  )
  expect(rows).toHaveLength(3)
  await client.query(
    `drop table app.probe_0, app.probe_2; delete from ops.schema_migrations where version like '2098%'`,
  )
})

test('a migration older than one that was applied is refused', async () => {
  await expect(migrate('-- migrate:up\nselect 1;\n-- migrate:down\n', '20200101000000_old.sql')).rejects.toThrow(
    /Migration 20200101000000 is older than \d{14}/,
  )
})

test.each([
  ['create table app.a ();\n-- migrate:up\n-- migrate:down\n', 'has a statement before'],
  ['-- migrate:down\n-- migrate:up\n', 'must come before'],
  ['-- migrate:up\n', 'no line "-- migrate:down"'],
  ['-- migrate:down\n', 'no line "-- migrate:up"'],
  ['-- migrate:up\n-- migrate:down\n-- migrate:up\n-- migrate:down\n', 'more than one'],
])('what dbmate would not read is refused: %j', (text, message) => {
  expect(() => parseMigration(file(text))).toThrow(message)
})

test('a migration waits for a lock without holding up what queues behind it', { timeout: 60_000 }, async () => {
  const holder = await connectAdmin(cluster, ours)
  await holder.query('begin; lock table app.settings in access share mode')
  let isDone = false
  const migrating = migrate(
    '-- migrate:up\nalter table app.settings add column probe int;\n-- migrate:down\n',
    '20991231000001_probe.sql',
  ).then(() => {
    isDone = true
  })
  const reader = await connectAdmin(cluster, ours)
  for (let n = 0; n < 20; n += 1) await reader.query('select count(*) from app.settings')
  expect(isDone).toBe(false)
  await holder.query('commit')
  await migrating
  await holder.end()
  await reader.end()
})
