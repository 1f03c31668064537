import { expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { configure, define, exportOf, registeredIn } from '#test/support/promotion.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { meetingBehind, openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
// the dates of the examples are in the future at this time
harness.setTime('2026-11-21T12:00:00Z')
const owner = await harness.developer()
const project = () => harness.project({ developer: owner })

const planOf = async (from: Project, to: Project, body: object = {}) =>
  (await from.admin.post('/promotion/plan', { target_project_id: to.id, ...body })).data
const apply = (from: Project, plan_hash: string, more: object = {}) =>
  from.admin.post('/promotion/apply', { plan_hash, ...more })
const promote = async (from: Project, to: Project, body: object = {}) => {
  const { plan_hash, blocked } = await planOf(from, to, body)
  expect(blocked).toEqual([])
  return apply(from, plan_hash, { confirm: plan_hash })
}

test('every registered kind round-trips: the copy is planned empty, and its export is the same', async () => {
  const [from, to, imported] = [await project(), await project(), await project()]
  for (const one of await registeredIn(from)) await define(harness, from, one)
  await configure(from)
  const answer = await promote(from, to)
  expect(answer.status, answer.text).toBe(202)
  expect(answer.data).toMatchObject({ status: 'succeeded', confirm_required: false })
  expect(await planOf(from, to, { prune: true })).toMatchObject({ clean: true, ops: [], blocked: [] })
  const { text } = await from.admin.get('/promotion/export')
  expect((await to.admin.get('/promotion/export')).text).toBe(text)

  // the same by the document
  const document = await exportOf(from)
  const { data: dry } = await imported.admin.post('/promotion/import', { document })
  expect(dry.blocked).toEqual([])
  expect((await exportOf(imported)).definitions).toEqual({})
  const done = await imported.admin.post('/promotion/import?dry_run=false', { document, plan_hash: dry.plan_hash })
  expect(done.status, done.text).toBe(202)
  expect((await imported.admin.get('/promotion/export')).text).toBe(text)
  expect((await imported.admin.post('/promotion/import?dry_run=true', { document, prune: true })).data.clean).toBe(true)
  const operation = await imported.admin.get(`/operations/${done.data.operation_id}`)
  expect(operation.data).toMatchObject({ type: 'promotion.import', status: 'succeeded', plan_hash: dry.plan_hash })
  expect(operation.data.result).toEqual({ ops: dry.ops.length })
})

test('changes and, with a confirmation, deletions; ids of the target stay; both projects have it in their audit trail', async () => {
  const [from, to] = [await project(), await project()]
  await configure(from)
  const prosThere = await configure(to)
  await from.admin.patch('/segments/pros', { name: 'Professionals' })
  await from.admin.patch('/catalog/chest', { name: 'Box' })
  await from.admin.put('/catalog/chest/contents', { bundle_contents: [] })
  await from.admin.post('/config', { key: 'greeting', value: 'bye', conditions: [] })
  await to.admin.post('/segments', { key: 'inner', name: 'Inner', rules: { and: [] } })
  const { data: inner } = await to.admin.get('/segments/inner')
  const rules = { and: [{ source: 'segment', op: 'in', segment_id: inner.id }] }
  await to.admin.post('/segments', { key: 'a_outer', name: 'Outer', rules })

  const { plan_hash, ops } = await planOf(from, to, { prune: true })
  expect(ops.filter(({ op }: { op: string }) => op === 'delete').map(({ key }: { key: string }) => key)).toEqual([
    'a_outer',
    'inner',
  ])
  const waiting = await apply(from, plan_hash)
  expect(waiting.status).toBe(202)
  expect(waiting.data).toMatchObject({ status: 'waiting', plan_hash, confirm_required: true })
  expect((await to.admin.get('/segments/inner')).status).toBe(200)
  expectRefusal(await apply(from, plan_hash, { confirm: '0'.repeat(64) }), 409, 'CONFIRM_MISMATCH')
  const done = await apply(from, plan_hash, { confirm: plan_hash })
  expect(done.data).toEqual({
    operation_id: waiting.data.operation_id,
    status: 'succeeded',
    plan_hash,
    confirm_required: false,
  })
  expect((await to.admin.get('/promotion/export')).text).toBe((await from.admin.get('/promotion/export')).text)
  expect((await to.admin.get('/segments/pros')).data.id).toBe(prosThere)
  const nested = (await to.admin.get('/segments/nested')).data
  expect(nested.rules.and[0].or[0].segment_id).toBe(prosThere)
  const trail = async (of: Project, action: string) =>
    (await of.admin.get(`/audit-events?action=${action}`)).data.map((row: { action: string }) => row.action)
  expect(await trail(to, 'promotion.apply')).toEqual(['promotion.apply'])
  expect((await trail(to, 'segments.delete')).length).toBe(2)
  expect((await trail(from, 'promotion.apply')).length).toBe(2)
  expectRefusal(await apply(from, plan_hash, { confirm: plan_hash }), 409, 'PLAN_CHANGED')
})

test('a plan that is unknown, changed on either side, or blocked applies nothing', async () => {
  const [from, to] = [await project(), await project()]
  await configure(from)
  expectRefusal(await apply(from, 'a'.repeat(64)), 409, 'PLAN_CHANGED')
  const first = await planOf(from, to)
  await from.admin.patch('/segments/pros', { name: 'Changed' })
  expectRefusal(await apply(from, first.plan_hash), 409, 'PLAN_CHANGED')
  const second = await planOf(from, to)
  await to.admin.post('/segments', { key: 'pros', name: 'Elsewhere', rules: { and: [] } })
  expectRefusal(await apply(from, second.plan_hash), 409, 'PLAN_CHANGED')
  expect(Object.keys((await exportOf(to)).definitions)).toEqual(['segments'])

  await to.admin.post('/catalog', { key: 'ring', name: 'Ring', item_type: 'consumable' })
  const blocked = await planOf(from, to)
  expect(blocked.blocked).toHaveLength(1)
  const refused = await apply(from, blocked.plan_hash)
  expectRefusal(refused, 409, 'PLAN_BLOCKED')
  expect(refused.error?.details).toMatchObject({ kind: 'catalog', key: 'ring', code: 'FIELD_FIXED' })
  expect((await to.admin.get('/config')).data).toEqual([])
  await harness.control(`update app.promotion_plans set planned_at = planned_at - interval '25 hours'`)
  expectRefusal(await apply(from, blocked.plan_hash), 409, 'PLAN_CHANGED')
})

test('what a row itself refuses at the end undoes everything before it', async () => {
  const [from, to] = [await project(), await project()]
  await configure(from)
  await to.admin.post('/roles', { key: 'editor', name: 'Editor' })
  const user = await to.user()
  await to.admin.post('/roles/editor/assignments', { app_user_id: user.id })
  const planned = await planOf(from, to, { prune: true })
  expect(planned.blocked).toMatchObject([{ kind: 'roles', key: 'editor', code: 'ROLE_IN_USE' }])
  expectRefusal(await apply(from, planned.plan_hash), 409, 'PLAN_BLOCKED')
  // what is refused since the plan
  await to.admin.delete(`/roles/editor/assignments/${user.id}`)
  const { plan_hash, blocked } = await planOf(from, to, { prune: true })
  expect(blocked).toEqual([])
  await to.admin.post('/roles/editor/assignments', { app_user_id: user.id })
  const refused = await apply(from, plan_hash, { confirm: plan_hash })
  expectRefusal(refused, 409, 'PLAN_BLOCKED')
  expect(refused.error?.details).toMatchObject({ kind: 'roles', key: 'editor', code: 'ROLE_IN_USE' })
  expect(Object.keys((await exportOf(to)).definitions)).toEqual(['roles'])
})

test('of two applies at once one is refused, and an edit that is under way changes the plan', async () => {
  const [from, to] = [await project(), await project()]
  await configure(from)
  await configure(to)
  await from.admin.patch('/segments/pros', { name: 'Professionals' })
  const { plan_hash } = await planOf(from, to)
  const answers = await meetingBehind(to.database, `select from app.segments where key = 'pros' for update`, () => [
    apply(from, plan_hash),
    apply(from, plan_hash),
  ])
  expect(answers.map(({ status }) => status).sort()).toEqual([202, 409])
  expectRefusal(answers.find(({ status }) => status === 409) as never, 409, 'ALREADY_RUNNING')
  expect((await to.admin.get('/segments/pros')).data.name).toBe('Professionals')

  await from.admin.patch('/segments/pros', { name: 'Again' })
  const next = await planOf(from, to)
  const edit = await openTransaction(to, 'app_admin', {})
  await edit.query(`update app.segments set name = 'Edited' where key = 'pros'`)
  const applying = apply(from, next.plan_hash)
  await untilBlocked(to)
  await edit.commit()
  expectRefusal(await applying, 409, 'PLAN_CHANGED')
  expect((await to.admin.get('/segments/pros')).data.name).toBe('Edited')
})

test('a project that has grown beyond what a document holds cannot be applied any more', async () => {
  const [from, to] = [await project(), await project()]
  await from.admin.post('/segments', { key: 'pros', name: 'Pros', rules: { and: [] } })
  const { plan_hash } = await planOf(from, to)
  await from.sql(
    `insert into app.catalog_items (key, name, item_type, metadata)
     select 'item_' || n, 'Item', 'consumable', jsonb_build_object('text', repeat('x', 4000)) from generate_series(1, 2500) n`,
  )
  expectRefusal(await apply(from, plan_hash), 409, 'LIMIT_REACHED')
  expect((await exportOf(to)).definitions).toEqual({})
})

test('the plans of events are computed once for each kind of a plan, not for each of its rows; a chain of segments is none the slower', async () => {
  const target = await project()
  const leaf = (key: string) => ({ source: 'segment', op: 'in', segment_id: key })
  const first = { source: 'event', event_name: 'practised', measure: 'count', within_days: 7, op: 'gte', value: 1 }
  const segments = Object.fromEntries(
    Array.from({ length: 30 }, (_, n) => [
      `s${n}`,
      { name: `S${n}`, rules: { and: [n === 29 ? first : leaf(`s${n + 1}`)] } },
    ]),
  )
  const rules = Object.fromEntries(
    ['a', 'b', 'c'].map((key) => [key, { name: key, event_name: 'practised', amount: 5 }]),
  )
  const definitions = { segments, xp_rules: rules }
  await target.sql(`
    create table app.counted (at timestamptz default now());
    create function app.count_plans() returns trigger language plpgsql security definer as $$ begin insert into app.counted default values; return null; end $$;
    create trigger count_plans after insert on app.event_plans for each statement execute function app.count_plans()`)
  const answer = await target.admin.post('/promotion/import?dry_run=false', { document: { version: 1, definitions } })
  expect(answer.status, answer.text).toBe(202)
  const [{ count }] = await target.sql('select count(*)::int as count from app.counted')
  expect(count).toBeLessThanOrEqual(4)
  await target.sql('drop trigger count_plans on app.event_plans; drop function app.count_plans; drop table app.counted')

  // and they are right: the events of these definitions find them
  const [plan] = await target.sql(
    `select (select count(*)::int from unnest(p.segments)) as segments, p.xp is not null as xp from app.event_plans p where p.event_name = 'practised'`,
  )
  expect(plan).toEqual({ segments: 30, xp: true })
  // a write of its own is computed at once
  await target.admin.post('/segments', {
    key: 'own',
    name: 'Own',
    rules: { and: [{ ...first, event_name: 'played' }] },
  })
  expect(
    await target.sql(`select from app.event_plans where event_name = 'played' and segments is not null`),
  ).toHaveLength(1)
})
