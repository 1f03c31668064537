// What fingerprints and checksums show, and what they do not.
import { expect, test } from 'vitest'
import { checksumHere, knownOf } from '#fleet/load/checksum.ts'
import { fingerprintHere, fingerprintOf } from '#fleet/load/state.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import { startHarness } from '#test/support/harness.ts'
import { isNoted, startReplay } from '#test/support/replay.ts'

const harness = await startHarness()
const { cluster } = harness.running.services.control
const { client: clientOf } = startReplay(harness, { count: 1, areas: 'all' })

test('each difference in what is managed shows in the fingerprint', async () => {
  const client = clientOf(0)
  const before = await fingerprintOf(client)
  const checksum = async () => (await checksumHere(client)).checksum
  const checksumBefore = await checksum()
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
    const checksumChanged = await checksum()
    await client.query('rollback')
    expect(changed, statement).not.toBe(before)
    expect(checksumChanged, statement).not.toBe(checksumBefore)
  }
  expect(await fingerprintOf(client)).toBe(before)
  expect(await checksum()).toBe(checksumBefore)
})

test('what a project does at run time leaves its checksum as it was, and a hand on what is managed does not', async () => {
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
