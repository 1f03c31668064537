import { expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { configure, define, exportOf, registeredIn } from '#test/support/promotion.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
// the dates of the examples are in the future at this time
harness.setTime('2026-11-21T12:00:00Z')
const owner = await harness.developer()
const source = await harness.project({ developer: owner })
const target = await harness.project({ developer: owner })

const registered = await registeredIn(source)
const copied = registered.map(({ name }) => name)

const planOf = (to: Project, body: object = {}) =>
  source.admin.post('/promotion/plan', { target_project_id: to.id, ...body })

test('every registered definition is in the export, without ids, and an empty project lacks all of them', async () => {
  for (const one of registered) await define(harness, source, one)
  const answer = await source.admin.get('/promotion/export')
  expect(Object.keys(answer.data.definitions).sort()).toEqual([...copied].sort())
  expect(answer.data.left_out).toEqual([])
  expect(answer.text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-|created_at|updated_at/)
  expect((await source.admin.get('/promotion/export')).text).toBe(answer.text)

  const { data: plan } = await planOf(target)
  expect(plan.blocked).toEqual([])
  expect([...new Set(plan.ops.map(({ kind }: { kind: string }) => kind))].sort()).toEqual([...copied].sort())
  expect(plan.ops.every(({ op }: { op: string }) => op === 'create')).toBe(true)
  // nothing was written
  expect((await exportOf(target)).definitions).toEqual({})
  expect((await planOf(source)).data).toMatchObject({ clean: true, ops: [], blocked: [] })
})

test('projects that differ in ids alone are equal; a change is shown by field, and deletions only with prune', async () => {
  const [from, to] = [await harness.project({ developer: owner }), await harness.project({ developer: owner })]
  await configure(from)
  const prosThere = await configure(to)
  const plan = async (body: object = {}) =>
    (await from.admin.post('/promotion/plan', { target_project_id: to.id, ...body })).data
  expect(await exportOf(from)).toEqual(await exportOf(to))
  expect((await exportOf(from)).definitions.segments.nested.rules.and[0].or[0].segment_id).toBe('pros')
  const same = await plan({ prune: true })
  expect(same).toMatchObject({ clean: true, ops: [], blocked: [] })

  await to.admin.patch(`/segments/${prosThere}`, { name: 'Professionals' })
  await to.admin.post('/config', { key: 'only_here', value: 1, value_type: 'number' })
  await to.admin.patch('/catalog/chest', { name: 'Box' })
  const changed = await plan()
  expect(changed.ops).toEqual([
    { op: 'update', kind: 'segments', key: 'pros', diff: { name: ['Professionals', 'Pros'] } },
    { op: 'update', kind: 'catalog', key: 'chest', diff: { name: ['Box', 'Chest'] } },
  ])
  expect(changed.plan_hash).not.toBe(same.plan_hash)
  expect((await plan()).plan_hash).toBe(changed.plan_hash)
  const pruned = await plan({ prune: true })
  expect(pruned.ops.at(-1)).toMatchObject({
    op: 'delete',
    kind: 'config',
    key: 'only_here',
    diff: { value: [1, null] },
  })
  expect((await plan({ kinds: ['segments'] })).ops.map(({ key }: { key: string }) => key)).toEqual(['pros'])
  expect((await plan({ keys: { segments: ['nested'] } })).ops.map(({ key }: { key: string }) => key)).toEqual(['chest'])
})

test('what cannot be copied is blocked, with the reason', async () => {
  const [from, to] = [await harness.project({ developer: owner }), await harness.project({ developer: owner })]
  await configure(from)
  for (let n = 0; n < 2; n += 1)
    await from.sql(`insert into app.onboarding_flows (name, steps) values ('Same name', '[]')`)
  await to.admin.post('/catalog', { key: 'ring', name: 'Ring', item_type: 'consumable' })
  await from.sql(
    `insert into app.config_keys (key, value, conditions) values ('dangling', '1', '[{"segment_id": "${crypto.randomUUID()}", "value": 2}]')`,
  )
  await to.sql(`insert into app.roles (key, name) select 'role_' || n, 'Role' from generate_series(1, 50) n`)
  await from.sql(`insert into app.roles (key, name) values ('one_more', 'Role')`)
  const { data } = await from.admin.post('/promotion/plan', {
    target_project_id: to.id,
    keys: { segments: ['nested'] },
  })
  const codes = Object.fromEntries(
    data.blocked.map(({ kind, key, code }: Record<string, string>) => [`${kind} ${key}`, code]),
  )
  expect(codes).toMatchObject({
    'onboarding_flows Same name': 'AMBIGUOUS_NAME',
    'config dangling': 'REFERENCE_MISSING',
    'config greeting': 'REFERENCE_MISSING',
    'segments nested': 'REFERENCE_MISSING',
    'catalog ring': 'FIELD_FIXED',
    'roles one_more': 'LIMIT_REACHED',
  })
  expect(data.clean).toBe(false)
})

test('the target is a project of the same organization that the token includes; kinds are known ones', async () => {
  const elsewhere = await harness.project()
  expectRefusal(await planOf(elsewhere), 403, 'PROJECT_FORBIDDEN')
  expectRefusal(await planOf({ ...elsewhere, id: crypto.randomUUID() }), 403, 'PROJECT_FORBIDDEN')
  expectRefusal(await planOf(target, { kinds: ['webhooks'] }), 400, 'INVALID_BODY')
  const { data: token } = await owner.post('/admin/tokens', {
    name: 'source alone',
    scopes: ['promotion:read'],
    project_ids: [source.id],
  })
  const limited = harness.anyone.with({ authorization: `Bearer ${token.token}` })
  const at = `/admin/projects/${source.id}/promotion/plan`
  expect((await limited.post(at, { target_project_id: source.id })).status).toBe(200)
  expectRefusal(await limited.post(at, { target_project_id: target.id }), 403, 'PROJECT_FORBIDDEN')
})

test('a document of more than 8 MB is refused, and one of fewer kinds is not', async () => {
  const from = await harness.project({ developer: owner })
  await from.sql(
    `insert into app.catalog_items (key, name, item_type, metadata)
     select 'item_' || n, 'Item', 'consumable', jsonb_build_object('text', repeat('x', 4000)) from generate_series(1, 2500) n`,
  )
  expectRefusal(await from.admin.get('/promotion/export'), 409, 'LIMIT_REACHED')
  expectRefusal(await from.admin.post('/promotion/plan', { target_project_id: target.id }), 409, 'LIMIT_REACHED')
  const fewer = await from.admin.post('/promotion/plan', { target_project_id: target.id, kinds: ['segments'] })
  expect(fewer.status).toBe(200)
})
