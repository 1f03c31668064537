import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readProgram } from '#fleet/load/files.ts'
import { migrateDatabase } from '#fleet/load/migrate.ts'
import { root } from '#server/root.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()

test('an area whose functions change their arguments is loaded although triggers of generated tables use its functions', async () => {
  const project = await harness.project()
  const policies = { read_policy: 'owner', write_policy: 'owner' }
  expect(
    (
      await project.admin.post('/collections', {
        name: 'posts',
        columns: [{ name: 'title', type: 'text' }],
        ...policies,
      })
    ).status,
  ).toBe(201)
  const triggers = () =>
    project.sql(
      `select tgname, tgfoid::regprocedure::text from pg_trigger where tgrelid = 'collections.posts'::regclass order by 1`,
    )
  const before = await triggers()

  const base = await mkdtemp(join(tmpdir(), 'trellis-sql-'))
  try {
    for (const folder of ['sql', 'functions', 'policies', 'db'])
      await cp(join(root, folder), join(base, folder), { recursive: true })
    const file = join(base, 'functions/tenant/collections/row_triggers.sql')
    const text = await readFile(file, 'utf8')
    // another name of an argument: create or replace refuses it, so the area's functions are dropped first
    const renamed = text
      .replace('collection_reference_refusal(col text', 'collection_reference_refusal(name text')
      .replaceAll('collection_reference_refusal.col', 'collection_reference_refusal.name')
    expect(renamed).not.toBe(text)
    await writeFile(file, renamed)
    const place = { cluster: harness.running.services.control.cluster, database: project.database }
    await migrateDatabase(place.cluster, place.database, await readProgram('tenant', base))
  } finally {
    await rm(base, { recursive: true, force: true })
  }
  expect(before).toContainEqual({ tgname: 'collection_stamp', tgfoid: 'internal.tg_collection_rows__stamp()' })
  expect(await triggers()).toEqual(before)
  const [found] = await project.sql(
    `select pg_get_function_arguments(oid) as names from pg_proc where proname = 'collection_reference_refusal'`,
  )
  expect(found).toEqual({ names: 'name text, target text' })
})
