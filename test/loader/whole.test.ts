// The program as it is: loaded from nothing and file by file, upgraded as a whole, as a template.

import { expect, test } from 'vitest'

import { loadBase } from '#fleet/load/load.ts'
import { migrateDatabase } from '#fleet/load/migrate.ts'
import { createLoader } from '#fleet/load/replay.ts'
import { fingerprintOf } from '#fleet/load/state.ts'

import { startHarness } from '#test/support/harness.ts'
import { linesOf, startReplay } from '#test/support/replay.ts'

const harness = await startHarness()
const { cluster } = harness.running.services.control
const { client, cloneOf, edit, migrate, program, snapshot, upgradeAll, withDatabase } = startReplay(harness, {
  count: 3,
  areas: 'all',
})

test('an empty database is loaded in one transaction, and ends as one that is loaded file by file', {
  timeout: 120_000,
}, async () => {
  const times = async (n: number) => {
    const { rows } = await client(n).query<{ n: number }>(
      `select count(distinct applied_at)::int as n from ops.files where path !~ '^sql/(shared|tenant)/'`,
    )
    return rows[0]?.n
  }
  expect(await times(0)).toBe(1)
  const files = await program()
  await withDatabase('slow', async (slow, name) => {
    await loadBase(slow, files)
    // a file that is known keeps the loader from taking the database for an empty one
    await slow.query(`insert into ops.files (path, hash) values ('policies/tenant/former.sql', '')`)
    await migrateDatabase(cluster, name, files)
    expect(await linesOf(slow)).toEqual(await snapshot(0))
  })
})

test('every file of the program changes at once: each upgrade ends as a database that is made of the same files', {
  timeout: 120_000,
}, async () => {
  const { functions, policies } = await program()
  for (const file of [...functions, ...policies])
    await edit(file.path, (text) => `${text.replaceAll(/as \$\$\n/g, 'as $$$$\n-- changed\n')}\n-- changed\n`)
  expect(await upgradeAll()).toEqual({ replayed: [true, true] })
  const files = await program()
  await withDatabase('fresh', async (fresh, name) => {
    await migrateDatabase(cluster, name, files)
    const lines = await linesOf(fresh)
    for (const n of [0, 1, 2]) expect(await snapshot(n)).toEqual(lines)
    expect(await fingerprintOf(client(0))).toBe(await fingerprintOf(fresh))
  })
})

test('the plans of events are computed anew where their functions changed, also by a replay', {
  timeout: 120_000,
}, async () => {
  for (const n of [0, 1, 2]) await client(n).query(`insert into app.event_plans (event_name) values ('outdated')`)
  await edit('functions/tenant/leaderboards/score.sql', (text) =>
    text.replace('where b.is_active\n   group by 1', 'where b.is_active and true\n   group by 1'),
  )
  expect(await upgradeAll()).toEqual({ replayed: [true, true] })
  // areas whose plan has no definitions have theirs in an empty project too
  for (const n of [0, 1, 2]) {
    const kept = await client(n).query(`select p.event_name from app.event_plans p where p.event_name = 'outdated'`)
    expect(kept?.rows).toEqual([])
  }
})

test('replaced again and again, functions and policies use the space that their former versions left', {
  timeout: 120_000,
}, async () => {
  for (const n of [1, 2]) {
    await cloneOf(n)
    // autovacuum may have been there: without space of former versions the first round has to grow
    await client(n).query('set role none')
    await client(n).query('vacuum (full) pg_catalog.pg_proc')
    await client(n).query('set role trellis_owner')
  }
  const size = async () =>
    Number((await client(2).query<{ size: string }>(`select pg_table_size('pg_proc') as size`)).rows[0]?.size)
  const sizes = [await size()]
  for (const round of ['one', 'two', 'three']) {
    const { functions } = await program()
    for (const file of functions.filter(({ path }) => path.includes('/collections/')))
      await edit(file.path, (text) => `${text.replaceAll(/as \$\$\n/g, `as $$$$\n-- ${round}\n`)}\n`)
    const loader = createLoader()
    for (const n of [1, 2]) await migrate(n, loader)
    sizes.push(await size())
  }
  const [before = 0, one = 0, , three = 0] = sizes
  expect(one).toBeGreaterThan(before)
  expect(three - one).toBeLessThan(one - before)
})
