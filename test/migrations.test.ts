import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Client } from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { type Program, readProgram, root, type SqlFile } from '#server/database/files.ts'
import { loadBase } from '#server/database/load.ts'
import { parseMigration, pendingMigrations, runMigrations } from '#server/database/migrations.ts'
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
  url.searchParams.set('role', 'trellis_owner')
  url.searchParams.set('sslmode', 'disable')
  const binary = createRequire(import.meta.url).resolve(`@dbmate/${process.platform}-${process.arch}/bin/dbmate`)
  const folder = join(root, 'db/tenant/migrations')
  const args = ['--no-dump-schema', '--migrations-dir', folder, '--migrations-table', 'ops.schema_migrations']
  const { stdout } = await promisify(execFile)(binary, [...args, ...command], { env: { DATABASE_URL: url.href } })
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
