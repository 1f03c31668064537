import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { configure, define, exportOf, registeredIn } from '#test/support/promotion.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { isNightly } from '#test/support/sized.ts'

/** What is copied and is no row of one table: collections, levels, prompts. */
const harness = await startHarness()
harness.setTime('2026-11-21T12:00:00Z')
const owner = await harness.developer()
const project = () => harness.project({ developer: owner })

const planOf = async (from: Project, to: Project, body: object = {}) =>
  (await from.admin.post('/promotion/plan', { target_project_id: to.id, ...body })).data
const promote = async (from: Project, to: Project, body: object = {}) => {
  const plan = await planOf(from, to, body)
  expect(plan.blocked).toEqual([])
  const done = await from.admin.post('/promotion/apply', { plan_hash: plan.plan_hash, confirm: plan.plan_hash })
  expect(done.status, done.text).toBe(202)
  return plan
}
const must = async (answer: Promise<{ status: number; text: string; data: any }>) => {
  const { status, text, data } = await answer
  expect(status, text).toBeLessThan(300)
  return data
}
const collection = (of: Project, name: string, more: object = {}) =>
  must(of.admin.post('/collections', { name, columns: [{ name: 'title', type: 'text' }], ...more }))
const openai = (of: Project) => must(of.admin.post('/ai/providers', { name: 'openai', api_key: 'sk-0123456789abcdef' }))
const prompt = (of: Project, name: string, more: object = {}) =>
  must(
    of.admin.post('/ai/prompts', {
      name,
      provider: 'openai',
      model: 'gpt-4o-mini',
      system_prompt: 'Be kind.',
      ...more,
    }),
  )

test('collections are created with columns, references and indexes, and work', async () => {
  const [from, to] = [await project(), await project()]
  await collection(from, 'zines', { description: 'Made by users', read_policy: 'public' })
  await collection(from, 'articles', {
    columns: [
      { name: 'zine_id', type: 'uuid', references: { collection: 'zines', on_delete: 'cascade' } },
      { name: 'title', type: 'text', nullable: false, max_length: 80 },
      { name: 'stars', type: 'integer', min: 0, max: 5, default: 0 },
    ],
    indexes: [{ name: 'by_title', columns: ['title'] }],
  })
  const plan = await planOf(from, to)
  expect(plan.ops.map(({ op, kind, key }: any) => `${op} ${kind} ${key}`)).toEqual([
    'create collections zines',
    'create collections articles',
  ])
  // a change of a collection waits for a confirmation
  const waiting = await from.admin.post('/promotion/apply', { plan_hash: plan.plan_hash })
  expect(waiting.data).toMatchObject({ status: 'waiting', confirm_required: true })
  expect((await to.admin.get('/collections')).data).toEqual([])
  await promote(from, to)
  expect(await exportOf(to)).toEqual(await exportOf(from))
  const user = await to.user()
  const zine = await user.post('/client/collections/zines', { title: 'One' })
  const article = await user.post('/client/collections/articles', { zine_id: zine.data.id, title: 'Two' })
  expect([article.status, article.data.stars], article.text).toEqual([201, 0])
  expectRefusal(
    await user.post('/client/collections/articles', { zine_id: zine.data.id, title: 'x', stars: 9 }),
    400,
    'INVALID_BODY',
  )
})

test('what is added to a collection is added there; what the target has beyond it stays, also with prune', async () => {
  const [from, to] = [await project(), await project()]
  await collection(from, 'notes')
  await promote(from, to)
  await must(to.admin.post('/collections/notes/columns', { name: 'own', type: 'integer' }))
  await collection(to, 'extra')
  await must(from.admin.post('/collections/notes/columns', { name: 'body', type: 'text' }))
  await must(from.admin.post('/collections/notes/indexes', { name: 'by_body', columns: ['body'] }))
  await must(
    from.admin.patch('/collections/notes', { description: 'Notes', write_policy: 'owner', read_policy: 'public' }),
  )
  const plan = await promote(from, to, { prune: true })
  expect(plan.ops).toMatchObject([{ op: 'update', kind: 'collections', key: 'notes' }])
  expect(Object.keys(plan.ops[0].diff).sort()).toEqual(['columns', 'description', 'indexes', 'read_policy'])
  const { data } = await to.admin.get('/collections/notes')
  expect(data.columns.map(({ name }: any) => name)).toEqual(['title', 'own', 'body'])
  expect(data).toMatchObject({ description: 'Notes', read_policy: 'public', indexes: [{ name: 'by_body' }] })
  expect((await planOf(from, to, { prune: true })).clean).toBe(true)
  expect((await to.admin.get('/collections/extra')).status).toBe(200)
})

test('a column that differs is blocked, and so are another owner_scope and a reference to nothing', async () => {
  const [from, to] = [await project(), await project()]
  await collection(from, 'a', { columns: [{ name: 'n', type: 'integer' }] })
  await collection(to, 'a', { columns: [{ name: 'n', type: 'text' }] })
  await collection(from, 'b', { owner_scope: 'group' })
  await collection(to, 'b')
  const plan = await planOf(from, to)
  expect(plan.ops).toEqual([])
  expect(plan.blocked).toMatchObject([
    { kind: 'collections', key: 'a', code: 'CHANGE_NOT_ADDITIVE', reason: expect.stringContaining('column n differs') },
    { kind: 'collections', key: 'b', code: 'FIELD_FIXED' },
  ])
  const applied = await from.admin.post('/promotion/apply', { plan_hash: plan.plan_hash, confirm: plan.plan_hash })
  expectRefusal(applied, 409, 'PLAN_BLOCKED')
  const document = {
    version: 1,
    definitions: {
      collections: {
        e: {
          columns: [{ name: 'x_id', type: 'uuid', references: { collection: 'nowhere', on_delete: 'cascade' } }],
        },
      },
    },
  }
  const { data } = await to.admin.post('/promotion/import', { document })
  expect(data.blocked).toMatchObject([{ key: 'e', code: 'REFERENCE_MISSING' }])
})

test('a row that the target refuses undoes the collections before it', async () => {
  const [from, to] = [await project(), await project()]
  await collection(from, 'first')
  await collection(from, 'second')
  await collection(to, 'second')
  await (await to.user()).post('/client/collections/second', { title: 'a row' })
  await must(from.admin.post('/collections/second/columns', { name: 'needed', type: 'text', nullable: false }))
  const { plan_hash } = await planOf(from, to)
  const refused = await from.admin.post('/promotion/apply', { plan_hash, confirm: plan_hash })
  expectRefusal(refused, 409, 'PLAN_BLOCKED')
  expect(refused.body.error.details).toMatchObject({ kind: 'collections', key: 'second', code: 'DEFAULT_REQUIRED' })
  expect((await to.admin.get('/collections/first')).status).toBe(404)
})

test('the table of levels is copied whole; prompts become versions, and need their provider', async () => {
  const [from, to] = [await project(), await project()]
  const levels = [
    { level: 1, xp_required: 0, name: 'New' },
    { level: 2, xp_required: 50, name: 'Known' },
  ]
  await must(from.admin.put('/xp/levels', { levels }))
  await openai(from)
  await must(from.admin.post('/currencies', { code: 'GEMS', name: 'Gems' }))
  await prompt(from, 'hello', { cost: { currency_code: 'GEMS', amount: 2 }, max_tokens: 100 })
  const blocked = await planOf(from, to)
  expect(blocked.blocked).toMatchObject([{ kind: 'prompts', key: 'hello', code: 'PROVIDER_NOT_REGISTERED' }])
  await openai(to)
  const plan = await promote(from, to)
  expect(plan.ops.map(({ kind }: any) => kind)).toEqual(['currencies', 'levels', 'prompts'])
  expect((await to.admin.get('/xp/levels')).data).toMatchObject(levels)
  expect((await to.admin.get('/ai/prompts/hello')).data).toMatchObject({
    version: 1,
    max_tokens: 100,
    cost: { currency_code: 'GEMS', amount: 2 },
  })
  await prompt(from, 'hello', { system_prompt: 'Be short.' })
  expect((await promote(from, to)).ops).toMatchObject([{ op: 'update', key: 'hello' }])
  expect((await to.admin.get('/ai/prompts/hello')).data).toMatchObject({
    version: 2,
    system_prompt: 'Be short.',
    cost: null,
  })
  await must(from.admin.delete('/ai/prompts/hello'))
  expect((await planOf(from, to)).clean).toBe(true)
  expect((await promote(from, to, { prune: true, kinds: ['prompts'] })).ops).toMatchObject([
    { op: 'delete', kind: 'prompts', key: 'hello' },
  ])
  expect((await to.admin.get('/ai/prompts/hello')).status).toBe(404)
})

test('documents with what these kinds do not have are refused by name', async () => {
  const to = await project()
  for (const [definitions, place] of [
    [{ collections: { a: { colour: 'red' } } }, 'collections.a.colour'],
    [{ collections: { a: { columns: 'many' } } }, 'collections.a.columns'],
    [{ prompts: { a: { provider: 7 } } }, 'prompts.a.provider'],
    [{ levels: { levels: { levels: {} } } }, 'levels.levels.levels'],
  ] as const) {
    const refused = await to.admin.post('/promotion/import', { document: { version: 1, definitions } })
    expectRefusal(refused, 400, 'INVALID_BODY')
    expect(refused.text).toContain(place)
  }
  for (const definitions of [
    { levels: { other: { levels: [{ level: 1, xp_required: 0 }] } } },
    { levels: { levels: { levels: [] } } },
    { levels: { levels: { levels: [{ level: 1, xp_required: 5 }] } } },
    { collections: { a: { columns: [7] } } },
    { collections: { a: { columns: [{ name: 'n', type: 'integer', min: '1e999' }] } } },
    { collections: { 'No Name': { columns: [] } } },
    { collections: { a: { indexes: [{ name: 'i', columns: ['none'] }] } } },
    { prompts: { 'No Name': { provider: 'echo', model: 'echo' } } },
    { prompts: { a: { provider: 'echo', model: 'echo', max_tokens: -1 } } },
    { prompts: { a: { provider: 'echo', model: '../..' } } },
    { prompts: { a: { provider: 'echo', model: 'x'.repeat(201) } } },
    { prompts: { a: { provider: 'echo', model: 'echo', rate_limit: { max: 1 } } } },
    { prompts: { a: { provider: 'echo', model: 'echo', rate_limit: { window: 1, max: 1e9, key: 'user' } } } },
    { prompts: { a: { provider: 'echo', model: 'echo', cost: { currency_code: 'NONE', amount: 1 } } } },
    { prompts: { a: { provider: 'echo', model: 'echo', description: 'x'.repeat(2001) } } },
    { prompts: { a: { model: 'echo' } } },
    { levels: { levels: { levels: [{ level: 1, xp_required: 0, name: '' }] } } },
    { levels: { levels: { levels: [{ level: 1, xp_required: 0, reward: 7 }] } } },
    { levels: { levels: { levels: ['one'] } } },
  ]) {
    const document = { version: 1, definitions }
    const dry = await to.admin.post('/promotion/import', { document })
    const confirm = dry.data?.plan_hash
    const refused = await to.admin.post('/promotion/import?dry_run=false', {
      document,
      ...(confirm ? { confirm } : {}),
    })
    expect([400, 409], `${JSON.stringify(definitions)}: ${refused.text}`).toContain(refused.status)
    expect(refused.text).not.toContain('INTERNAL')
  }
  expect((await to.admin.get('/collections')).data).toEqual([])
})

const columnType = fc.constantFrom('text', 'integer', 'numeric', 'boolean', 'timestamptz', 'jsonb')
const columnsOf = fc.uniqueArray(fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd', 'e'), type: columnType }), {
  selector: ({ name }) => name,
  minLength: 1,
})
const configuration = fc.record({
  kinds: fc.array(fc.nat(30), { maxLength: 8 }),
  isConfigured: fc.boolean(),
  collections: fc.uniqueArray(
    fc.record({ name: fc.constantFrom('one', 'two', 'three'), columns: columnsOf, realtime: fc.boolean() }),
    {
      selector: ({ name }) => name,
    },
  ),
  levels: fc.array(fc.integer({ min: 1, max: 1000 }), { maxLength: 5 }),
  prompts: fc.uniqueArray(fc.constantFrom('greet', 'part', 'ask')),
})
type Configuration = typeof configuration extends fc.Arbitrary<infer T> ? T : never

const make = async (wanted: Configuration): Promise<Project> => {
  const made = await project()
  await openai(made)
  const registered = await registeredIn(made)
  const chosen = new Set(wanted.kinds.map((n) => registered[n % registered.length]?.kind))
  for (const one of registered) if (chosen.has(one.kind)) await define(harness, made, one)
  if (wanted.isConfigured) await configure(made)
  for (const { name, ...more } of wanted.collections) await collection(made, name, more)
  let required = 0
  const levels = [0, ...wanted.levels].map((step, n) => {
    required += step
    return { level: n + 1, xp_required: required }
  })
  if (levels.length > 1) await must(made.admin.put('/xp/levels', { levels }))
  for (const name of wanted.prompts) await prompt(made, name)
  return made
}

test('random projects: what is not blocked is copied, and planned again it is clean', {
  timeout: 240_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(configuration, configuration, async (source, target) => {
      const [from, to] = [await make(source), await make(target)]
      const first = await planOf(from, to, { prune: true })
      // rows that collide are left to people; everything else of the plan is applied
      const keys: Record<string, string[]> = {}
      for (const { kind, key } of first.ops) keys[kind] = [...(keys[kind] ?? []), key]
      for (const { kind } of first.blocked) keys[kind] ??= []
      const plan = await planOf(from, to, { prune: true, keys })
      expect(plan.blocked).toEqual([])
      if (plan.ops.length > 0) {
        const done = await from.admin.post('/promotion/apply', { plan_hash: plan.plan_hash, confirm: plan.plan_hash })
        expect(done.status, done.text).toBe(202)
      }
      const again = await planOf(from, to, { prune: true })
      expect(again.ops).toEqual([])
      expect(again.blocked).toEqual(first.blocked)
    }),
    { numRuns: isNightly ? 60 : 6 },
  )
})
