import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { readProgram } from '#fleet/load/files.ts'
import { migrateDatabase } from '#fleet/load/migrate.ts'
import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { root } from '#server/root.ts'
import { startHarness } from '#test/support/harness.ts'

/** Functions that move from the files of one kind of database to those of both kinds, over a database that has them already. */
const harness = await startHarness()
const cluster = harness.running.services.control.cluster
const [former, fresh] = [`${harness.prefix}_former`, `${harness.prefix}_fresh`]
const clients = new Map<string, pg.Client>()
let base: string

const clientOf = async (database: string) => {
  const known = clients.get(database)
  if (known) return known
  const url = new URL(inject('dsn'))
  url.pathname = `/${database}`
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  clients.set(database, client)
  return client
}

/** Functions, triggers, policies and privileges: two databases with the same ones behave the same. */
const catalog = `
  select 'function ' || p.oid::regprocedure || ' ' || md5(pg_get_functiondef(p.oid)) as line from pg_proc p
   where p.pronamespace::regnamespace::text in ('api', 'internal')
  union all
  select 'policy ' || p.polrelid::regclass || ' ' || p.polname from pg_policy p
  union all
  select 'grant ' || a.kind || ' ' || a.identity || ' ' || a.columns || ' ' || a.grantee || ' ' || a.privilege from ops.acl a
  union all
  select 'trigger ' || t.tgname || ' ' || t.tgrelid::regclass from pg_trigger t where not t.tgisinternal
  union all
  select 'object ' || o.path || ' ' || o.identity from ops.objects o
   order by 1`
const snapshot = async (database: string) =>
  (await (await clientOf(database)).query(catalog)).rows.map(({ line }) => line)

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'trellis-sql-'))
  for (const folder of ['sql', 'functions', 'policies', 'db'])
    await cp(join(root, folder), join(base, folder), { recursive: true })
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  for (const name of [former, fresh])
    await admin.query(`create database "${name}" owner trellis_owner template template0`)
  await admin.end()
})
afterAll(async () => {
  for (const client of clients.values()) await client.end()
  await rm(base, { recursive: true, force: true })
})

test('are loaded over an installation where they are of a project alone, and every object is of its new file', async () => {
  const [shared, own] = [join(base, 'functions/shared/webhooks'), join(base, 'functions/tenant/webhooks')]
  const names = await readdir(shared)
  expect(names.length).toBeGreaterThan(2)
  // as they were: in files of the project, one of which has the text of several
  await mkdir(own, { recursive: true })
  const texts = await Promise.all(names.map((name) => readFile(join(shared, name), 'utf8')))
  await writeFile(join(own, 'deliver.sql'), texts.join('\n'))
  await rename(shared, join(base, 'kept'))
  await migrateDatabase(cluster, former, await readProgram('tenant', base))
  expect((await snapshot(former)).filter((line) => line.includes('object functions/shared/webhooks'))).toEqual([])

  await migrateDatabase(cluster, former, await readProgram('tenant'))
  await migrateDatabase(cluster, fresh, await readProgram('tenant'))
  expect(await snapshot(former)).toEqual(await snapshot(fresh))
  // and nothing is left to do
  expect(await migrateDatabase(cluster, former, await readProgram('tenant'))).toEqual([])
})
