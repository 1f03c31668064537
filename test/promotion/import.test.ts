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
    ['an unknown field of a column', { collections: { a: { columns: [{ name: 'a', type: 'text', colour: 'red' }] } } }],
    ['an unknown field of an index', { collections: { a: { indexes: [{ columns: ['id'], is_ready: true }] } } }],
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
  // all that is wrong is told at once, the first of it as the field
  const several = await imported({
    collections: { a: { colour: 1, columns: [{ name: 'a', type: 'text', size: 1 }] } },
    nothing: {},
    roles: { a: { name: 7 } },
  })
  expect(several.error?.details).toEqual({
    field: 'document.definitions',
    reason: 'nothing is not a kind that is copied',
    problems: [
      { kind: 'nothing', key: null, field: null, reason: 'is not a kind that is copied' },
      { kind: 'collections', key: 'a', field: 'colour', reason: 'is not a field of this kind' },
      { kind: 'collections', key: 'a', field: 'columns.0.size', reason: 'is not a field of this kind' },
      { kind: 'roles', key: 'a', field: 'name', reason: 'has a value of the wrong type' },
    ],
  })
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

test('a kind of keys that does not exist, or is not among kinds, is refused: it would not be limited, and prune would delete it', async () => {
  const [from, to] = [await harness.project({ developer: owner }), await harness.project({ developer: owner })]
  await to.admin.post('/config', { key: 'greeting', value: 'hello' })
  const document = { version: 1, definitions: {} }
  const refused: [object, string, RegExp][] = [
    [{ kinds: ['config'], keys: { Config: ['x'] } }, 'keys', /Config is not a kind/],
    [{ keys: { nosuch: [] } }, 'keys', /nosuch is not a kind/],
    [{ keys: { webhooks: ['x'] } }, 'keys', /webhooks is not a kind/],
    [{ kinds: ['config'], keys: { flags: ['x'] } }, 'keys.flags', /not among kinds/],
  ]
  for (const [selection, field, reason] of refused) {
    const body = { ...selection, prune: true }
    const answers = [
      await from.admin.post('/promotion/plan', { target_project_id: to.id, ...body }),
      await to.admin.post('/promotion/import?dry_run=true', { document, ...body }),
      await to.admin.post('/promotion/import?dry_run=false', { document, ...body }),
    ]
    for (const answer of answers) {
      expectRefusal(answer, 400, 'INVALID_BODY', field)
      expect(answer.error?.details.reason).toMatch(reason)
    }
  }
  const named = await from.admin.post('/promotion/plan', {
    target_project_id: to.id,
    kinds: ['config'],
    keys: { config: ['x'] },
    prune: true,
  })
  expect(named.data.clean).toBe(true)
  expect((await exportOf(to)).definitions.config).toMatchObject({ greeting: { value: 'hello' } })
  // of a plan that an earlier version made, the apply refuses it
  const planned = await from.admin.post('/promotion/plan', { target_project_id: to.id, kinds: ['config'], prune: true })
  await harness.control(
    `update app.promotion_plans set options = options || '{"keys": {"Config": ["x"]}}' where plan_hash = $1`,
    [planned.data.plan_hash],
  )
  const { plan_hash } = planned.data
  expectRefusal(
    await from.admin.post('/promotion/apply', { plan_hash, confirm: plan_hash }),
    400,
    'INVALID_BODY',
    'keys',
  )
})

/** Segments of which each names the next one, and has a condition of its own where there is room for it. */
const chain = (count: number, tier = 'pro') =>
  Object.fromEntries(
    Array.from({ length: count }, (_, n) => {
      const own = { source: 'property', column: 'plan.tier', op: 'eq', value: `${tier} ${n}` }
      const next = { source: 'segment', op: 'in', segment_id: `s${n + 1}` }
      const rules = n + 1 === count ? own : count > 200 ? next : { and: [own, next] }
      return [`s${n}`, { name: 'S', rules }]
    }),
  )

test('a chain of 190 segments is planned and applied in the time of a request, and one of 9,000 refused in it', {
  timeout: 120_000,
}, async () => {
  const to = await harness.project({ developer: owner })
  const importing = async (segments: object, dry_run = false) => {
    const started = performance.now()
    const document = { version: 1, definitions: { segments } }
    const answer = await to.admin.post(`/promotion/import?dry_run=${dry_run}`, { document })
    return { answer, seconds: (performance.now() - started) / 1000 }
  }
  const long = await importing(chain(9000), true)
  expect(long.answer.status, long.answer.text.slice(0, 200)).toBe(200)
  expect(long.answer.data.ops).toEqual([])
  expect(new Set(long.answer.data.blocked.map(({ code }: { code: string }) => code))).toEqual(
    new Set(['LIMIT_REACHED']),
  )
  const refused = await importing(chain(9000))
  expectRefusal(refused.answer, 409, 'PLAN_BLOCKED')
  const planned = await importing(chain(190), true)
  expect([planned.answer.data.ops.length, planned.answer.data.blocked]).toEqual([190, []])
  const made = await importing(chain(190))
  expect(made.answer.status, made.answer.text).toBe(202)
  const changed = await importing(chain(190, 'free'))
  expect(changed.answer.status, changed.answer.text).toBe(202)
  // minutes, where each segment compiles all others, and each of these all that it names
  for (const { seconds } of [long, refused, planned, made, changed]) expect(seconds).toBeLessThan(55)
  // what is put together of compiled parts is what a compilation of the whole makes
  const [whole] = await to.sql(
    `select t.condition = c.condition and t.query = c.ranged and t.parameters = c.state -> 'values' as is_same, jsonb_array_length(t.parameters) as leaves
       from app.segments s join app.segment_states t on t.segment_id = s.id cross join lateral internal.segment_compile(s.rules, s.id, false) c
      where s.key = 's150'`,
  )
  expect(whole).toEqual({ is_same: true, leaves: 79 })
  expect((await importing(chain(190, 'free'), true)).answer.data.clean).toBe(true)
  const circle = await importing(
    { s188: { rules: { and: [{ source: 'segment', op: 'in', segment_id: 's0' }] } } },
    true,
  )
  expect(circle.answer.data.blocked).toMatchObject([{ kind: 'segments', key: 's188', code: 'SEGMENT_CYCLE' }])
})

test('a plan tells every row that an apply would be refused, and writes nothing', async () => {
  const to = await harness.project({ developer: owner })
  await to.admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'practised' })
  const user = await to.user()
  await user.post('/client/streaks/daily/qualify', {})
  const { data: pros } = await to.admin.post('/segments', { key: 'pros', name: 'Pros', rules: { and: [] } })
  await to.admin.post('/config', {
    key: 'greeting',
    value: 'hello',
    conditions: [{ segment_id: pros.id, value: 'hi' }],
  })
  await to.admin.post('/collections', { name: 'notes', columns: [{ name: 'title', type: 'text' }] })
  await to.sql(`insert into collections.notes (user_id, title) values ($1, 'a'), ($1, 'a')`, [user.id])
  const before = await exportOf(to)
  const count = async () => (await to.sql('select count(*)::int as n from app.audit_events'))[0]?.['n']
  const audited = await count()
  const document = {
    version: 1,
    definitions: {
      streaks: { daily: { period: 'week' } },
      roles: { a: { name: 'x'.repeat(300) }, fine: { name: 'Fine' } },
      flags: { lonely: { name: 'Lonely' } },
      levels: { levels: { levels: [{ level: 2, xp_required: 1 }] } },
      collections: {
        notes: {
          columns: [{ name: 'must', type: 'text', nullable: false }],
          indexes: [{ columns: ['title'], unique: true }],
        },
        fresh: { columns: [{ name: 'note', type: 'uuid', references: { collection: 'notes' } }] },
        bad: { columns: [{ name: 'x', type: 'nosuch' }] },
      },
      config: before.definitions.config,
    },
  }
  const planned = await to.admin.post('/promotion/import?dry_run=true', { document, prune: true })
  expect(planned.status, planned.text).toBe(200)
  const told = planned.data.blocked
    .map(({ kind, key, code }: Record<string, string>) => `${kind}/${key} ${code}`)
    .sort()
  expect(told).toEqual([
    'collections/bad VALIDATION_ERROR',
    'collections/notes DEFAULT_REQUIRED',
    'levels/levels VALIDATION_ERROR',
    'roles/a VALIDATION_ERROR',
    'segments/pros SEGMENT_IN_USE',
    'streaks/daily PERIOD_IMMUTABLE',
  ])
  expect(planned.data.ops.map(({ kind, key }: Record<string, string>) => `${kind}/${key}`)).toContain('roles/fine')
  expect(await exportOf(to)).toEqual(before)
  expect(await count()).toBe(audited)
  const applied = await to.admin.post('/promotion/import?dry_run=false', {
    document,
    prune: true,
    plan_hash: planned.data.plan_hash,
  })
  expectRefusal(applied, 409, 'PLAN_BLOCKED')
  // the plan of this moment has no such rows any more: it is another one
  await to.sql('delete from app.user_streaks')
  const again = await to.admin.post('/promotion/import?dry_run=true', { document, prune: true })
  expect(again.data.blocked.map(({ kind }: Record<string, string>) => kind)).not.toContain('streaks')
  expect(again.data.plan_hash).not.toBe(planned.data.plan_hash)
})
