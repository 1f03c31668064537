import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { configure, exportOf } from '#test/support/promotion.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
const owner = await harness.developer()
const target = await harness.project({ developer: owner })

const imported = (definitions: unknown, more: object = {}, path = '/promotion/import?dry_run=false') =>
  target.admin.post(path, { document: { version: 1, definitions }, ...more })

test('a document that is none is refused by name, and nothing of it is applied', async () => {
  const bad: [string, unknown][] = [
    ['an unknown kind', { webhooks: {} }],
    ['a kind in the singular', { segment: {} }],
    ['an unknown field', { roles: { a: { name: 'A', colour: 'red' } } }],
    ['the id of a row', { roles: { a: { id: crypto.randomUUID(), name: 'A' } } }],
    ['a number for a text', { roles: { a: { name: 7 } } }],
    ['a text for a list', { roles: { a: { name: 'A', permissions: 'all' } } }],
    ['a required field that is null', { roles: { a: { name: null } } }],
    ['a required field that is absent', { segments: { a: {} } }],
    ['a key that is none', { roles: { 'No Key!': { name: 'A' } } }],
    ['a key of 10,000 letters', { roles: { ['a'.repeat(10_000)]: { name: 'A' } } }],
    ['a value that is too long', { roles: { a: { name: 'x'.repeat(100_000) } } }],
    ['rules that are none', { segments: { a: { name: 'A', rules: { xor: [] } } } }],
    ['a condition that is none', { config: { a: { value: 1, value_type: 'number', conditions: [1] } } }],
    ['a key of prices that is none', { catalog: { a: { name: 'A', item_type: 'durable', prices: 'many' } } }],
  ]
  for (const [what, definitions] of bad) {
    const sound = typeof definitions === 'object' ? { event_definitions: { first: {} }, ...definitions } : definitions
    const answer = await imported(sound)
    expect([answer.status, answer.error?.code], `${what}: ${answer.text}`).toEqual([400, 'INVALID_BODY'])
  }
  // what is no document at all, as in every body
  for (const definitions of [{ roles: [] }, { roles: { a: 'A' } }])
    expectRefusal(await imported(definitions), 400, 'VALIDATION_ERROR')
  for (const document of [null, [], {}, { version: 2, definitions: {} }, { version: 1, definitions: [] }])
    expectRefusal(await target.admin.post('/promotion/import?dry_run=false', { document }), 400, 'VALIDATION_ERROR')
  expectRefusal(await imported({}, {}, '/promotion/import?dry_run=perhaps'), 400, 'INVALID_INPUT')
  expect((await exportOf(target)).definitions).toEqual({})
})

test('numbers that no column holds, missing references and circles are refused by name', async () => {
  // a number that JSON.stringify would not write
  const huge = await target.admin.post(
    '/promotion/import?dry_run=false',
    '{"document": {"version": 1, "definitions": {"xp_rules": {"a": {"name": "A", "event_name": "b", "amount": 1e999}}}}}',
  )
  expect([huge.status, huge.error?.code], huge.text).toEqual([400, 'INVALID_BODY'])

  const leaf = (key: unknown) => ({ source: 'segment', op: 'in', segment_id: key })
  const missing = { segments: { a: { name: 'A', rules: { and: [leaf('none')] } } } }
  const refused = await imported(missing)
  expectRefusal(refused, 409, 'PLAN_BLOCKED')
  expect(refused.error?.details).toMatchObject({ kind: 'segments', key: 'a', code: 'REFERENCE_MISSING' })
  for (const key of [7, { a: 1 }, ['a'], true])
    expectRefusal(await imported({ segments: { a: { name: 'A', rules: { and: [leaf(key)] } } } }), 409, 'PLAN_BLOCKED')

  const circle = Object.fromEntries(
    ['a', 'b', 'c'].map((key, n, all) => [key, { name: key, rules: { and: [leaf(all[(n + 1) % 3])] } }]),
  )
  const { data } = await imported({ segments: circle }, {}, '/promotion/import')
  expect(data.blocked.map(({ code }: { code: string }) => code)).toEqual(Array(3).fill('REFERENCE_CYCLE'))
  expectRefusal(await imported({ segments: circle }), 409, 'PLAN_BLOCKED')
  expect((await exportOf(target)).definitions).toEqual({})

  // the same without the circle is created in the order of the references
  const chain = Object.fromEntries(
    ['a', 'b', 'c'].map((key, n, all) => [key, { name: key, rules: { and: n < 2 ? [leaf(all[n + 1])] : [] } }]),
  )
  expect((await imported({ segments: chain })).status).toBe(202)
  // and turned round
  const turned = Object.fromEntries(
    ['a', 'b', 'c'].map((key, n, all) => [key, { name: key, rules: { and: n > 0 ? [leaf(all[n - 1])] : [] } }]),
  )
  expect((await imported({ segments: turned })).status).toBe(202)
  expect((await imported({ segments: turned }, {}, '/promotion/import')).data.clean).toBe(true)
})

test('kinds, keys and prune limit an import as they limit a plan; fields that are absent stay', async () => {
  const project = await harness.project({ developer: owner })
  await configure(project)
  const send = (definitions: object, more: object) =>
    project.admin.post('/promotion/import?dry_run=false', { document: { version: 1, definitions }, ...more })
  const roles = { a: { name: 'A' }, b: { name: 'B' } }
  expect((await send({ roles, segments: {} }, { kinds: ['roles'], keys: { roles: ['b'] } })).status).toBe(202)
  expect(Object.keys((await exportOf(project)).definitions.roles)).toEqual(['b'])

  expect(
    (await send({ segments: { pros: { name: 'Better' } }, config: { greeting: { value: 'hi' } } }, {})).status,
  ).toBe(202)
  const { segments, config } = (await exportOf(project)).definitions
  expect(segments.pros).toMatchObject({ name: 'Better', rules: { and: [] } })
  expect(config.greeting).toMatchObject({ value: 'hi', conditions: [{ segment_id: 'pros', value: 'hello, pro' }] })

  const { plan_hash } = (
    await project.admin.post('/promotion/import', {
      document: { version: 1, definitions: {} },
      kinds: ['roles'],
      prune: true,
    })
  ).data
  expectRefusal(await send({}, { kinds: ['roles'], prune: true, plan_hash: 'b'.repeat(64) }), 409, 'PLAN_CHANGED')
  const waiting = await send({}, { kinds: ['roles'], prune: true })
  expect(waiting.data).toMatchObject({ status: 'waiting', confirm_required: true, plan_hash })
  expectRefusal(await send({}, { kinds: ['roles'], prune: true, confirm: 'b'.repeat(64) }), 409, 'CONFIRM_MISMATCH')
  expect((await send({}, { kinds: ['roles'], prune: true, confirm: plan_hash })).data.status).toBe('succeeded')
  expect(Object.keys((await exportOf(project)).definitions).includes('roles')).toBe(false)
})

test('a plan of more than 8 MB is refused', async () => {
  const project = await harness.project({ developer: owner })
  await project.sql(
    `insert into app.catalog_items (key, name, item_type, metadata)
     select 'item_' || n, 'Item', 'consumable', jsonb_build_object('text', repeat('x', 4000)) from generate_series(1, 2500) n`,
  )
  const empty = { document: { version: 1, definitions: {} }, prune: true }
  expectRefusal(await project.admin.post('/promotion/import', empty), 409, 'LIMIT_REACHED')
})

test('applying needs the scope of writing, in both projects', async () => {
  const [from, to] = [await harness.project({ developer: owner }), await harness.project({ developer: owner })]
  await configure(from)
  const { plan_hash } = (await from.admin.post('/promotion/plan', { target_project_id: to.id })).data
  const with_ = async (scopes: string[], project_ids: string[]) => {
    const { data } = await owner.post('/admin/tokens', { name: 'ci', scopes, project_ids })
    return harness.anyone.with({ authorization: `Bearer ${data.token}` })
  }
  const at = `/admin/projects/${from.id}/promotion/apply`
  expectRefusal(
    await (await with_(['promotion:read'], [from.id, to.id])).post(at, { plan_hash }),
    403,
    'SCOPE_REQUIRED',
  )
  expectRefusal(await (await with_(['promotion:write'], [from.id])).post(at, { plan_hash }), 403, 'PROJECT_FORBIDDEN')
  expectRefusal(await (await with_(['promotion:write'], [to.id])).post(at, { plan_hash }), 403, 'PROJECT_FORBIDDEN')
  expect((await exportOf(to)).definitions).toEqual({})
  // a target that has moved to another organization since the plan
  const elsewhere = await harness.project()
  await harness.control('update app.promotion_plans set target_project_id = $1 where plan_hash = $2', [
    elsewhere.id,
    plan_hash,
  ])
  expectRefusal(await from.admin.post('/promotion/apply', { plan_hash }), 403, 'PROJECT_FORBIDDEN')
  await harness.control('update app.promotion_plans set target_project_id = $1 where plan_hash = $2', [
    to.id,
    plan_hash,
  ])
  const done = await (await with_(['promotion:write'], [from.id, to.id])).post(at, { plan_hash })
  expect(done.status, done.text).toBe(202)
})

test('of two imports at once the second one is refused', async () => {
  const on = await harness.project({ developer: owner })
  await on.admin.post('/segments', { key: 'pros', name: 'Pros', rules: { and: [] } })
  const document = await exportOf(on)
  document.definitions.segments.pros.name = 'Professionals'
  const send = () => on.admin.post('/promotion/import?dry_run=false', { document })
  const answers = await meetingBehind(on.database, `select from app.segments where key = 'pros' for update`, () => [
    send(),
    send(),
  ])
  expect(answers.map(({ status }) => status).sort()).toEqual([202, 409])
  expectRefusal(answers.find(({ status }) => status === 409) as never, 409, 'ALREADY_RUNNING')
  expect((await on.admin.get('/segments/pros')).data.name).toBe('Professionals')
})
