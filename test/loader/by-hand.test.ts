// Databases that somebody changed by hand, before a version is loaded or meanwhile.
import { expect, test } from 'vitest'
import { knownOf } from '#fleet/load/checksum.ts'
import { createLoader } from '#fleet/load/replay.ts'
import { fingerprintOf } from '#fleet/load/state.ts'
import { startHarness } from '#test/support/harness.ts'
import { isNoted, startReplay } from '#test/support/replay.ts'

const harness = await startHarness()
const { client, cloneOf, edit, migrate, program, snapshot } = startReplay(harness, { count: 4, areas: 'few' })

test('a database changed by hand is loaded with care: what its DBA made stays, and is not taken for ours', {
  timeout: 120_000,
}, async () => {
  await migrate(3)
  const byHand = `
    create policy "the DBA's own" on app.settings for select to app_dashboard using (true);
    grant delete on app.settings to app_dashboard;
    create or replace function internal.now() returns timestamptz language sql stable as 'select now()'`
  for (const n of [0, 3]) await client(n).query(byHand)
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
      await client(n).query(
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
  await client(2).query('create schema reports; create view reports.leaning as select internal.replay_leaned_on() as n')
  expect(await fingerprintOf(client(2))).toBe(await fingerprintOf(client(1)))
  await edit('functions/tenant/settings.sql', (text) =>
    text.replace('internal.replay_leaned_on() returns int', 'internal.replay_leaned_on() returns bigint'),
  )
  const before = await snapshot(2)
  const loader = createLoader()
  await migrate(1, loader)
  await expect(migrate(2, loader)).rejects.toThrow('internal.replay_leaned_on')
  expect(await snapshot(2)).toEqual(before)
  await client(2).query('drop schema reports cascade')
  await migrate(2, loader)
  expect(await snapshot(2)).toEqual(await snapshot(1))
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
  const changed = await program()
  const loader = createLoader()
  const path = 'test'
  for (const n of [1, 2]) {
    const known = await knownOf(client(n))
    await loader.load(client(n), changed, { ...known!, path })
  }
  // the second followed the first, and nobody has computed its fingerprint
  expect(await isNoted(client(2))).toBe(true)
  expect((await knownOf(client(2)))?.fingerprint).toBe(await fingerprintOf(client(1)))
  await cloneOf(3)
  const known = await knownOf(client(3))
  await client(3).query(statement)
  await loader.load(client(3), changed, { ...known!, path })
  const after = await fingerprintOf(client(3))
  expect(after).not.toBe(await fingerprintOf(client(2)))
  expect((await knownOf(client(3)))?.fingerprint).toBe(after)
})
