import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { loadTasks } from '#workers/task.ts'

/** What servers and workers of the former version call while both versions run: each name does what its successor does, for the same role. */
const harness = await startHarness()
const project = await harness.project()
const nobody = '00000000-0000-4000-8000-000000000000'

const administrator = {
  'app.caller': 'developer',
  'app.developer_id': project.developer.id,
  'app.project_id': project.id,
}
const bodyOf = async (role: 'app_admin' | 'app_worker', call: string, values: unknown[] = []) => {
  const claims = role === 'app_admin' ? administrator : { 'app.caller': 'worker' }
  const [row] = await project.as(role, claims, `select r.* from ${call} r`, values)
  return row
}

test('administration by the former names', async () => {
  const item = { key: 'sword', name: 'Sword', item_type: 'consumable' }
  expect(await bodyOf('app_admin', 'api.catalog_define($1)', [JSON.stringify(item)])).toMatchObject({
    status: 201,
    body: { data: { key: 'sword' } },
  })
  expect(await bodyOf('app_admin', `api.catalog_update('sword', '{"name": "Blade"}')`)).toMatchObject({
    status: 200,
    body: { data: { key: 'sword', name: 'Blade' } },
  })
  expect((await bodyOf('app_admin', 'api.catalog_items()')).body).toMatchObject({ data: [{ name: 'Blade' }], total: 1 })

  expect(await bodyOf('app_admin', `api.config_set('theme', '"dark"')`)).toMatchObject({
    body: { data: { value: 'dark' } },
  })
  expect(await bodyOf('app_admin', `api.config_update('theme', '{"value": "light"}')`)).toMatchObject({ status: 200 })
  expect((await bodyOf('app_admin', 'api.config_list()')).body.data).toMatchObject([{ key: 'theme', value: 'light' }])

  expect((await bodyOf('app_admin', `api.event_define('ran', 'A run')`)).body.data).toMatchObject({
    description: 'A run',
  })
  await project.admin.post('/onboarding/flows', { name: 'First steps', steps: [] })
  expect((await bodyOf('app_admin', 'api.onboarding_flows()')).body).toEqual(
    (await bodyOf('app_admin', 'api.onboarding_flow_list()')).body,
  )
})

test('work by the former names', async () => {
  expect((await bodyOf('app_worker', 'api.leaderboard_turn($1, 10)', [nobody])).body.data).toEqual({ state: 'done' })
  expect((await bodyOf('app_worker', `api.leaderboard_tell($1, $1, '[]')`, [nobody])).body.data).toBe(0)
  expect((await bodyOf('app_worker', 'api.tenant_forget()')).body.data).toBe(true)
  const [row] = await project.sql(
    `insert into app.outbox (task, key, lease, locked_until) values ('nothing__at_all', '', 7, now() + interval '1 minute') returning id`,
  )
  await bodyOf('app_worker', 'api.outbox_settle($1, 7)', [row.id])
  expect(await project.sql('select from app.outbox where id = $1', [row.id])).toEqual([])
})

test('rows that the former version queued run, under the names of their tasks then', async () => {
  const { outbox } = await loadTasks()
  for (const [former, name] of [
    ['flags__tell', 'flags__notify'],
    ['leaderboards__tell', 'leaderboards__notify'],
    ['leaderboards__turn', 'leaderboards__rollover'],
    ['webhooks__tell', 'webhooks__notify'],
  ] as const) {
    expect(outbox.get(name)?.name, name).toBe(name)
    expect(outbox.get(former), former).toBe(outbox.get(name))
  }
  await project.sql(`select internal.enqueue('leaderboards__turn', $1)`, [nobody])
  await project.drain()
  expect(await project.sql(`select task, last_error from app.outbox where task like 'leaderboards__t%'`)).toEqual([])
})
