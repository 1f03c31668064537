import { expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
// the dates of the examples are in the future at this time
harness.setTime('2026-11-21T12:00:00Z')
const owner = await harness.developer()
const source = await harness.project({ developer: owner })
const target = await harness.project({ developer: owner })

const routes = harness.running.areas.flatMap((area) => area.routes)
const registered: { kind: string; key_column: string | null }[] = await source.sql(
  'select kind, key_column from internal.definitions order by create_order, kind',
)
const keptBack = ['media_catalog', 'media_folder', 'referral_code', 'webhook']

const planOf = (to: Project, body: object = {}) =>
  source.admin.post('/promotion/plan', { target_project_id: to.id, ...body })
const exportOf = async (of: Project) => (await of.admin.get('/promotion/export')).data

/** Creates the example of a kind, by the route that creates or replaces it. */
const define = async (project: Project, kind: string, key: string | null) => {
  const path = routes.find((one) => one.definition?.kind === kind)?.path.replace(/\/:[A-Za-z]+$/, '') ?? ''
  const creation = routes.find((one) => one.method === 'POST' && one.path === path)
  const replacement = routes.find((one) => one.method === 'PUT' && one.path.replace(/\/:[A-Za-z]+$/, '') === path)
  const at = path.replace('/admin/projects/:projectId', '')
  const example = (creation ?? replacement)?.example as Record<string, unknown>
  const answer = creation
    ? await project.admin.post(at, example)
    : await project.admin.put(`${at}/${example[key ?? ''] ?? 'example_1'}`, example)
  expect(answer.status, `${kind}: ${answer.text}`).toBeLessThan(300)
}

/** A segment, and definitions that refer to it by its id, which differs between projects. */
const configure = async (project: Project) => {
  const { admin } = project
  const { data: pros } = await admin.post('/segments', { key: 'pros', name: 'Pros', rules: { and: [] } })
  const leaf = { source: 'segment', op: 'in', segment_id: pros.id }
  await admin.post('/segments', { key: 'nested', name: 'Nested', rules: { and: [{ or: [leaf] }] } })
  await admin.post('/config', {
    key: 'greeting',
    value: 'hello',
    conditions: [{ segment_id: pros.id, value: 'hello, pro' }],
  })
  await admin.post('/catalog', { key: 'ring', name: 'Ring', item_type: 'durable' })
  await admin.post('/catalog', {
    key: 'chest',
    name: 'Chest',
    item_type: 'bundle',
    bundle_contents: [{ content_item_key: 'ring', quantity: 2 }],
  })
  return pros.id as string
}

test('every registered definition is in the export, without ids, and an empty project lacks all of them', async () => {
  for (const { kind, key_column } of registered) if (!keptBack.includes(kind)) await define(source, kind, key_column)
  const copied = registered.map(({ kind }) => kind).filter((kind) => !keptBack.includes(kind))
  const answer = await source.admin.get('/promotion/export')
  expect(Object.keys(answer.data.definitions).sort()).toEqual(copied.sort())
  expect(answer.data.left_out).toEqual([])
  expect(answer.text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-|created_at|updated_at/)
  expect((await source.admin.get('/promotion/export')).text).toBe(answer.text)

  const { data: plan } = await planOf(target)
  expect(plan.blocked).toEqual([])
  expect([...new Set(plan.ops.map(({ kind }: { kind: string }) => kind))].sort()).toEqual(copied.sort())
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
  expect((await exportOf(from)).definitions.segment.nested.rules.and[0].or[0].segment_id).toBe('pros')
  const same = await plan({ prune: true })
  expect(same).toMatchObject({ clean: true, ops: [], blocked: [] })

  await to.admin.patch(`/segments/${prosThere}`, { name: 'Professionals' })
  await to.admin.post('/config', { key: 'only_here', value: 1, value_type: 'number' })
  await to.admin.patch('/catalog/chest', { name: 'Box' })
  const changed = await plan()
  expect(changed.ops).toEqual([
    { op: 'update', kind: 'segment', key: 'pros', diff: { name: ['Professionals', 'Pros'] } },
    { op: 'update', kind: 'catalog_item', key: 'chest', diff: { name: ['Box', 'Chest'] } },
  ])
  expect(changed.plan_hash).not.toBe(same.plan_hash)
  expect((await plan()).plan_hash).toBe(changed.plan_hash)
  const pruned = await plan({ prune: true })
  expect(pruned.ops.at(-1)).toMatchObject({
    op: 'delete',
    kind: 'config_key',
    key: 'only_here',
    diff: { value: [1, null] },
  })
  expect((await plan({ kinds: ['segment'] })).ops.map(({ key }: { key: string }) => key)).toEqual(['pros'])
  expect((await plan({ keys: { segment: ['nested'] } })).ops.map(({ key }: { key: string }) => key)).toEqual(['chest'])
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
    keys: { segment: ['nested'] },
  })
  const codes = Object.fromEntries(
    data.blocked.map(({ kind, key, code }: Record<string, string>) => [`${kind} ${key}`, code]),
  )
  expect(codes).toMatchObject({
    'onboarding_flow Same name': 'AMBIGUOUS_NAME',
    'config_key dangling': 'REFERENCE_MISSING',
    'config_key greeting': 'REFERENCE_MISSING',
    'segment nested': 'REFERENCE_MISSING',
    'catalog_item ring': 'FIELD_FIXED',
    'role one_more': 'LIMIT_REACHED',
  })
  expect(data.clean).toBe(false)
})

test('the target is a project of the same organization that the token includes; kinds are known ones', async () => {
  const elsewhere = await harness.project()
  expectRefusal(await planOf(elsewhere), 403, 'PROJECT_FORBIDDEN')
  expectRefusal(await planOf({ ...elsewhere, id: crypto.randomUUID() }), 403, 'PROJECT_FORBIDDEN')
  expectRefusal(await planOf(target, { kinds: ['webhook'] }), 400, 'INVALID_BODY')
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
  const fewer = await from.admin.post('/promotion/plan', { target_project_id: target.id, kinds: ['segment'] })
  expect(fewer.status).toBe(200)
})
