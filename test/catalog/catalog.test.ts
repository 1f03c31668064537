import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { openTransaction } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const user = await project.user()
for (const code of ['GOLD', 'GEMS']) await project.admin.post('/currencies', { code, name: code })

let count = 0
const define = (more: Record<string, unknown> = {}) => {
  count += 1
  return project.admin.post('/catalog', {
    key: `item_${count}`,
    name: `Item ${count}`,
    item_type: 'consumable',
    ...more,
  })
}
const made = async (more: Record<string, unknown> = {}) => {
  const answer = await define(more)
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const bundle = (keys: string[], more: Record<string, unknown> = {}) => ({
  item_type: 'bundle',
  bundle_contents: keys.map((content_item_key) => ({ content_item_key, quantity: 2 })),
  ...more,
})
const holds = (keys: string[]) => ({ bundle_contents: bundle(keys).bundle_contents })

describe('an item', () => {
  test('has these defaults, and the same shape for all', async () => {
    const item = await made()
    expect(item).toEqual({
      id: expect.any(String),
      key: item.key,
      name: item.name,
      item_type: 'consumable',
      tags: [],
      category: null,
      description: null,
      icon_url: null,
      metadata: {},
      is_active: true,
      max_owned: null,
      duration_seconds: null,
      use_effect: null,
      catalog_item_prices: [],
      bundle_contents: [],
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    for (const name of [item.id, item.key]) {
      expect((await user.get(`/client/catalog/${name}`)).data).toEqual(item)
      expect((await project.admin.get(`/catalog/${name}`)).data).toEqual(item)
    }
    expect((await made({ item_type: 'durable' })).max_owned).toBe(1)
  })

  test('that is missing or inactive is 404 FETCH_FAILED for users; administrators see it', async () => {
    const item = await made({ is_active: false })
    for (const name of [item.id, item.key, randomUUID(), 'nothing'])
      expectRefusal(await user.get(`/client/catalog/${name}`), 404, 'FETCH_FAILED')
    expect((await project.admin.get(`/catalog/${item.key}`)).data.is_active).toBe(false)
    expectRefusal(await project.admin.get('/catalog/nothing'), 404, 'NOT_FOUND')
  })

  test('is found by its id if the path is a uuid, else by its key, each through its index', async () => {
    const uuid = '5b2c5ae4-5c1f-4b0e-9d8e-0a5c2f4d7e11'
    const means = `select internal.is_id_or_key($1::uuid, $2::text, $3::text) is true as means`
    for (const [id, key, path, expected] of [
      [uuid, 'sword', uuid, true],
      [uuid, 'sword', uuid.toUpperCase(), true],
      [uuid, 'sword', 'sword', true],
      [uuid, 'sword', 'swords', false],
      // a key that looks like an id is never read as a key
      ['00000000-0000-4000-8000-000000000000', uuid, uuid, false],
      [uuid, 'sword', null, false],
    ])
      expect(await project.as('app_user', { 'app.caller': 'user' }, means, [id, key, path]), `${path}`).toEqual([
        { means: expected },
      ])
    const session = await openTransaction(project, 'app_user', { 'app.user_id': user.id, 'app.caller': 'user' })
    await session.query('set local enable_seqscan = off')
    await session.query('set local plan_cache_mode = force_generic_plan')
    await session.query(
      'prepare found(text) as select i.id from app.catalog_items i where internal.is_id_or_key(i.id, i.key, $1)',
    )
    const plan = await session.query(`explain (costs off) execute found('sword')`)
    await session.commit()
    const text = plan.map((line: any) => line['QUERY PLAN']).join('\n')
    expect(text).toContain('Bitmap Index Scan on catalog_items_pkey')
    expect(text).toContain('Bitmap Index Scan on catalog_items_key_unique')
  })

  test('has prices by currency and contents in their order', async () => {
    const [a, b] = [await made({ icon_url: 'https://x/a.png' }), await made()]
    const prices = [
      { currency_code: 'GOLD', price: 5 },
      { currency_code: 'GEMS', price: 0 },
    ]
    const item = await made(bundle([b.key, a.key], { prices }))
    expect(item.catalog_item_prices).toEqual([prices[1], prices[0]])
    expect(item.bundle_contents).toEqual([
      { content_item_id: b.id, quantity: 2, catalog_items: { key: b.key, name: b.name, icon_url: null } },
      { content_item_id: a.id, quantity: 2, catalog_items: { key: a.key, name: a.name, icon_url: 'https://x/a.png' } },
    ])
    const path = `/catalog/${item.key}`
    const repriced = await project.admin.put(`${path}/prices`, { prices: [{ currency_code: 'GOLD', price: 7 }] })
    expect(repriced.data.catalog_item_prices).toEqual([{ currency_code: 'GOLD', price: 7 }])
    const refilled = await project.admin.put(`${path}/contents`, holds([a.key]))
    expect(refilled.data.bundle_contents).toHaveLength(1)
    expect((await project.admin.put(`${path}/contents`, holds([]))).data.bundle_contents).toEqual([])
    expect((await project.admin.put(`${path}/prices`, { prices: [] })).data.catalog_item_prices).toEqual([])
  })

  test.each([
    ['key', 'Bad'],
    ['key', 'x'.repeat(129)],
    ['name', ''],
    ['name', 'x'.repeat(201)],
    ['item_type', 'potion'],
    ['description', 'x'.repeat(2001)],
    ['icon_url', 'x'.repeat(2001)],
    ['category', 'x'.repeat(101)],
    ['tags.0', ['']],
    ['tags', Array(51).fill('x')],
    ['metadata', { note: 'x'.repeat(8192) }],
    ['max_owned', 0],
    ['duration_seconds', 0],
    ['use_effect', []],
    ['is_active', 'yes'],
    ['prices.0.currency_code', [{ currency_code: 'NOPE', price: 1 }]],
    ['prices.0.price', [{ currency_code: 'GOLD', price: -1 }]],
    ['prices.0.price', [{ currency_code: 'GOLD', price: 2_000_000_001 }]],
    ['prices', Array(2).fill({ currency_code: 'GOLD', price: 1 })],
    ['bundle_contents', [{ content_item_key: 'item_1', quantity: 1 }]],
    ['bundle_contents.0.quantity', [{ content_item_key: 'item_1', quantity: 0 }]],
  ])('with a bad %s is refused, and nothing is made', async (field, value) => {
    const key = `bad_${count}`
    const answer = await define({ key, [field.split('.')[0] ?? '']: value })
    expectRefusal(answer, 400, 'VALIDATION_ERROR', { field })
    expect(await project.sql('select from app.catalog_items where key = $1', [key])).toEqual([])
  })

  test('names in bundles must be known, once; a durable is owned once', async () => {
    const { key } = await made()
    expectRefusal(await define(bundle(['nothing'])), 400, 'VALIDATION_ERROR', {
      field: 'bundle_contents.0.content_item_key',
    })
    expectRefusal(await define(bundle([key, key])), 400, 'VALIDATION_ERROR', { field: 'bundle_contents' })
    expectRefusal(await define({ item_type: 'durable', max_owned: 2 }), 400, 'VALIDATION_ERROR', { field: 'max_owned' })
    for (const path of ['/prices', '/contents']) {
      expectRefusal(await project.admin.put(`/catalog/${key}${path}`, {}), 400, 'VALIDATION_ERROR')
      expectRefusal(await project.admin.put(`/catalog/${key}${path}`, '[]'), 400, 'INVALID_BODY')
      const body = { prices: [], bundle_contents: [] }
      expectRefusal(await project.admin.put(`/catalog/nothing${path}`, body), 404, 'NOT_FOUND')
    }
    expectRefusal(await define({ name: 5 }), 400, 'VALIDATION_ERROR')
    expectRefusal(await project.admin.post('/catalog', '[]'), 400, 'INVALID_BODY')
  })

  test('whose key is taken is refused, also when ten make it at once', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => define({ key: 'twice' })))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 201))
      expectRefusal(answer, 409, 'CONFLICT', { field: 'key' })
  })

  test('is changed but for key and type, and an empty change changes nothing', async () => {
    const item = await made()
    const path = `/catalog/${item.key}`
    const use_effect = { currencies: [{ currency_code: 'GOLD', amount: 5 }] }
    const changed = await project.admin.patch(path, {
      key: 'other',
      item_type: 'durable',
      category: 'c',
      use_effect,
      tags: ['x'],
    })
    expect(changed.data).toMatchObject({
      key: item.key,
      item_type: 'consumable',
      category: 'c',
      use_effect,
      tags: ['x'],
    })
    expect((await project.admin.patch(path, {})).data).toEqual(changed.data)
    expect((await project.admin.patch(path, { category: null, use_effect: null })).data).toMatchObject({
      category: null,
      use_effect: null,
    })
    expectRefusal(await project.admin.patch(path, { name: null }), 400, 'VALIDATION_ERROR', { field: 'name' })
    expectRefusal(await project.admin.patch(path, '5'), 400, 'INVALID_BODY')
    expectRefusal(await project.admin.patch('/catalog/nothing', {}), 404, 'NOT_FOUND')
  })

  test('is deleted, unless a bundle holds it; a currency that prices use stays', async () => {
    const inner = await made({ prices: [{ currency_code: 'GEMS', price: 1 }] })
    const outer = await made(bundle([inner.key]))
    expectRefusal(await project.admin.delete(`/catalog/${inner.key}`), 409, 'ITEM_IN_USE')
    expectRefusal(await project.admin.delete('/currencies/GEMS'), 409, 'CURRENCY_IN_USE')
    expect((await project.admin.delete(`/catalog/${outer.id}`)).data).toEqual({ deleted: true })
    expect((await project.admin.delete(`/catalog/${inner.key}`)).status).toBe(200)
    expectRefusal(await project.admin.delete(`/catalog/${inner.key}`), 404, 'NOT_FOUND')
  })

  test('is one of at most 5,000', async () => {
    const other = await harness.project()
    await other.sql(
      `insert into app.catalog_items (key, name, item_type) select 'k' || n, 'x', 'consumable' from generate_series(1, 4999) n`,
    )
    const body = (key: string) => ({ key, name: 'x', item_type: 'consumable' })
    const answers = await Promise.all(['a', 'b', 'c'].map((key) => other.admin.post('/catalog', body(key))))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    expectRefusal(await other.admin.post('/catalog', body('d')), 409, 'LIMIT_REACHED', { limit: 5000 })
  })
})

describe('bundles', () => {
  test('hold bundles three deep, and never themselves', async () => {
    const leaf = await made()
    const [one, two, three] = [await made(bundle([leaf.key])), await made(bundle([])), await made(bundle([]))]
    const fill = (item: { key: string }, keys: string[]) =>
      project.admin.put(`/catalog/${item.key}/contents`, holds(keys))
    expect((await fill(two, [one.key])).status).toBe(200)
    expect((await fill(three, [two.key])).status).toBe(200)
    expectRefusal(await fill(one, [one.key]), 400, 'BUNDLE_CYCLE')
    expectRefusal(await fill(one, [leaf.key, three.key]), 400, 'BUNDLE_CYCLE')
    expectRefusal(await define(bundle([three.key])), 400, 'BUNDLE_CYCLE')
    const empty = await made(bundle([]))
    expectRefusal(await fill(one, [empty.key]), 400, 'BUNDLE_CYCLE')
    expect((await project.admin.get(`/catalog/${one.key}`)).data.bundle_contents).toMatchObject([
      { content_item_id: leaf.id },
    ])
  })

  test('of two that take each other in at the same moment one is refused', async () => {
    const [a, b] = [await made(bundle([])), await made(bundle([]))]
    const answers = await Promise.all([
      project.admin.put(`/catalog/${a.key}/contents`, holds([b.key])),
      project.admin.put(`/catalog/${b.key}/contents`, holds([a.key])),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
  })
})

describe('lists', () => {
  test('are filtered and paged, newest first; users see what is active', async () => {
    const category = `c ${randomUUID()}`
    const [a, b, c] = [
      await made({ category, tags: ['red', 'big'], name: 'Süße_Äpfel 100%' }),
      await made({ category, tags: ['red'], item_type: 'durable' }),
      await made({ category, tags: ['big'], is_active: false }),
    ]
    const list = async (client: 'app' | 'admin', query: Record<string, string>) => {
      const path = `${client === 'app' ? '/client' : ''}/catalog?${new URLSearchParams({ category, ...query })}`
      const answer = await (client === 'app' ? user : project.admin).get(path)
      expect(answer.status, answer.text).toBe(200)
      return { keys: answer.data.map(({ key }: { key: string }) => key), ...answer.body }
    }
    expect((await list('app', {})).keys).toEqual([b.key, a.key])
    expect((await list('app', { tag: 'big' })).keys).toEqual([a.key])
    expect(await list('app', { limit: '1', offset: '1' })).toMatchObject({
      keys: [a.key],
      total: 2,
      offset: 1,
      limit: 1,
    })
    expect(await list('app', {})).toMatchObject({ limit: 50, offset: 0 })
    expect((await list('app', { include_inactive: 'true' })).keys).toHaveLength(2)
    expect((await list('admin', { include_inactive: 'true' })).keys).toEqual([c.key, b.key, a.key])
    expect((await list('admin', { item_type: 'durable' })).keys).toEqual([b.key])
    for (const [search, found] of [
      ['süße_ä', [a.key]],
      ['100%', [a.key]],
      ['_', [b.key, a.key]],
      ['zzz', []],
      ['%', [a.key]],
    ] as const)
      expect((await list('admin', { search })).keys, search).toEqual(found)
    for (const bad of ['limit=0', 'offset=-1', 'item_type=x', 'include_inactive=x'])
      expectRefusal(await project.admin.get(`/catalog?${bad}`), 400, 'INVALID_INPUT')
    expectRefusal(await user.get('/client/catalog?limit=x'), 400, 'INVALID_INPUT')
  })
})

describe('an import', () => {
  const send = (items: unknown, query = '') => project.admin.post(`/catalog/import${query}`, JSON.stringify(items))
  const file = (prefix: string) => [
    { key: `${prefix}_box`, name: 'Box', ...bundle([`${prefix}_a`]) },
    { key: `${prefix}_a`, name: 'A', item_type: 'consumable', prices: [{ currency_code: 'GOLD', price: 3 }] },
  ]

  test('only says what would happen, unless dry_run is false; again it changes nothing', async () => {
    const items = file('import')
    const would = { created: 2, updated: 0, unchanged: 0, errors: [] }
    expect((await send(items)).data).toEqual(would)
    expectRefusal(await project.admin.get('/catalog/import_a'), 404, 'NOT_FOUND')
    expect((await send(items, '?dry_run=false')).data).toEqual(would)
    expect((await project.admin.get('/catalog/import_box')).data.bundle_contents).toHaveLength(1)
    expect((await send(items, '?dry_run=false')).data).toEqual({ created: 0, updated: 0, unchanged: 2, errors: [] })
    const [box, a] = items
    const changed = [
      { ...box, bundle_contents: [] },
      { ...a, prices: [] },
    ]
    expect((await send(changed, '?dry_run=false')).data).toEqual({ created: 0, updated: 2, unchanged: 0, errors: [] })
    expect((await project.admin.get('/catalog/import_a')).data.catalog_item_prices).toEqual([])
  })

  test('with an error writes nothing, and names each', async () => {
    const items = [
      ...file('wrong'),
      { key: 'wrong_b', name: 'B', item_type: 'consumable', prices: [{ currency_code: 'NOPE', price: 3 }] },
      { key: 'wrong_c', name: 'C', ...bundle(['wrong_c']) },
      { key: 'wrong_d', name: '', item_type: 'consumable' },
      { key: 'wrong_e', name: 'E', item_type: 'durable', max_owned: 5 },
      { key: 'wrong_a', name: 'A', item_type: 'durable' },
      5,
    ]
    const { data } = await send(items, '?dry_run=false')
    expect(data.errors).toEqual([
      { index: 2, key: 'wrong_b', message: 'prices.0.currency_code: is not a currency of this project' },
      { index: 3, key: 'wrong_c', message: expect.stringContaining('may not contain themselves') },
      { index: 4, key: 'wrong_d', message: expect.stringContaining('name: ') },
      { index: 5, key: 'wrong_e', message: 'max_owned: must be 1 for a durable.' },
      { index: 6, key: 'wrong_a', message: 'item_type: cannot change' },
      { index: 7, key: null, message: expect.any(String) },
    ])
    expect(await project.sql(`select from app.catalog_items where key like 'wrong%'`)).toEqual([])
  })

  test('is a JSON array of 1 to 5000', async () => {
    for (const body of ['{}', '5', '{', ''])
      expectRefusal(await project.admin.post('/catalog/import', body), 400, 'INVALID_BODY')
    expectRefusal(await send([]), 400, 'VALIDATION_ERROR')
    expectRefusal(await send(Array(5001).fill(5)), 400, 'VALIDATION_ERROR')
    expectRefusal(await send([], '?dry_run=maybe'), 400, 'INVALID_INPUT')
  })
})

test('the catalog is changed by administrators alone, and each change is in the audit trail', async () => {
  const item = await made({ prices: [{ currency_code: 'GOLD', price: 1 }] })
  await project.admin.put(`/catalog/${item.key}/prices`, { prices: [{ currency_code: 'GOLD', price: 2 }] })
  const claims = { 'app.user_id': user.id, 'app.caller': 'user' }
  for (const attack of [
    `update app.catalog_item_prices set price = 0`,
    `insert into app.catalog_items (key, name, item_type) values ('x', 'x', 'durable')`,
    `delete from app.bundle_contents`,
    `select api.definition_delete('catalog_item', '${item.key}')`,
  ])
    await expect(project.as('app_user', claims, attack)).rejects.toThrow(/permission denied/)
  const rows = await project.sql(
    `select action, changes -> 'price' as price from app.audit_events where action like 'catalog.%' order by position desc limit 2`,
  )
  expect(rows).toEqual(expect.arrayContaining([{ action: 'catalog.update', price: [1, 2] }]))
})
