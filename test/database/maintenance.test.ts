import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()

test('expired rows go in steps, each its own transaction, and a purge that was broken off goes on', async () => {
  const project = await harness.project()
  const user = await project.user()
  await project.sql(
    `insert into app.idempotency_keys (caller, route, key, body_hash, created_at)
     select 'developer x', 'POST x', 'key-' || n, 'hash', now() - (case when n <= 12 then interval '2 days' else interval '1 hour' end) from generate_series(1, 15) n`,
  )
  await project.sql(
    `insert into app.event_ids (id, app_user_id, received_at)
     select gen_random_uuid(), $1, now() - (case when n <= 11 then interval '91 days' else interval '89 days' end) from generate_series(1, 14) n`,
    [user.id],
  )
  await project.sql(
    `insert into app.user_sessions (app_user_id, refresh_hash, expires_at, ended_at)
     select $1, 'hash', now() + interval '1 day', now() - interval '31 days' from generate_series(1, 6)`,
    [user.id],
  )
  const left = async () =>
    (
      await project.sql(`select (select count(*)::int from app.idempotency_keys where caller = 'developer x') as keys,
                                (select count(*)::int from app.event_ids where received_at < now() - interval '1 day') as ids,
                                (select count(*)::int from app.user_sessions where ended_at is not null) as sessions`)
    )[0]
  type Step = { purge: string; deleted: string; next: string | null }
  const step = async (purge: string | null): Promise<Step> => {
    const [row] = await project.as(
      'app_worker',
      { 'app.caller': 'worker' },
      `select (api.tenant_purge_step($1, 5)).body -> 'data' as data`,
      [purge],
    )
    return row.data
  }
  const steps: Step[] = []
  for (let purge: string | null = ''; purge !== null; ) {
    const taken = await step(purge)
    steps.push(taken)
    purge = taken.next
    // what a killed worker leaves: everything before it is done, and the next day begins again
    if (steps.length === 3) purge = ''
  }
  expect(Math.max(...steps.map(({ deleted }) => Number(deleted)))).toBe(5)
  expect(await left()).toEqual({ keys: 3, ids: 3, sessions: 0 })
  const deleted = (name: string) =>
    steps.filter(({ purge }) => purge === `purge__${name}`).reduce((sum, taken) => sum + Number(taken.deleted), 0)
  expect([deleted('requests'), deleted('events'), deleted('client_auth')]).toEqual([12, 11, 6])
  const areas = await project.sql(`select p from internal.purges() p`)
  expect(areas.length).toBeGreaterThan(6)
  // an area without work is one step; the run that was broken off took three more
  expect(new Set(steps.map(({ purge }) => purge)).size).toBe(areas.length)
})
