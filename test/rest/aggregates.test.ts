import { createClient } from '@supabase/supabase-js'
import { expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'

/** Aggregates of supabase-js over the collections. */
const { harness, project, define } = await startCollections()
await project.admin.patch('', { rest_enabled: true, anonymous_reads: true })
const [user, other] = [await project.user(), await project.user()]
const clientOf = (session: string) => createClient(harness.url, project.clientKey, { accessToken: async () => session })
const client = clientOf(user.sessionToken)
const stranger = createClient(harness.url, project.clientKey)
const shops = await define({ read_policy: 'public', columns: [{ name: 'name', type: 'text' }] })
const sales = await define({
  read_policy: 'public',
  columns: [
    { name: 'shop_id', type: 'uuid', references: { collection: shops, on_delete: 'cascade' } },
    { name: 'kind', type: 'text' },
    { name: 'pieces', type: 'integer' },
    { name: 'price', type: 'double' },
  ],
})
const notes = await define({ read_policy: 'owner', columns: [{ name: 'n', type: 'integer' }] })

const made = await client
  .from(shops)
  .insert([{ name: 'a' }, { name: 'b' }])
  .select('id')
const [a] = made.data as unknown as [{ id: string }]
await client.from(sales).insert([
  { shop_id: a.id, kind: 'x', pieces: 1, price: 0.1 },
  { shop_id: a.id, kind: 'x', pieces: 2, price: 0.2 },
  { shop_id: a.id, kind: 'y', pieces: 5, price: null },
])
const { data: gone } = await client.from(sales).insert({ kind: 'x', pieces: 100, price: 100 }).select('id').single()
await client.from(sales).delete().eq('id', gone?.id)

test('are of the rows that are there, in groups of the columns beside them', async () => {
  const all = await client.from(sales).select('count(), pieces.sum(), pieces.avg(), pieces.min(), pieces.max()')
  expect(all.error).toBeNull()
  expect(all.data).toEqual([{ count: 3, sum: 8, avg: 8 / 3, min: 1, max: 5 }])
  const grouped = await client.from(sales).select('kind, n:count(), of:price.sum(), mean:price.avg()').order('kind')
  expect(grouped.data).toEqual([
    { kind: 'x', n: 2, of: 0.1 + 0.2, mean: (0.1 + 0.2) / 2 },
    { kind: 'y', n: 1, of: null, mean: null },
  ])
  const none = await client.from(sales).select('price.sum(), price.avg(), count()').eq('kind', 'z')
  expect(none.data).toEqual([{ sum: null, avg: null, count: 0 }])
  const cast = await client.from(sales).select('pieces::text.max(), pieces.sum()::text')
  expect(cast.data).toEqual([{ max: '5', sum: '8' }])
})

test('are of what is embedded', async () => {
  const { data, error } = await client.from(shops).select(`name, ${sales}(pieces.sum())`).order('name')
  expect(error).toBeNull()
  expect(data).toEqual([
    { name: 'a', [sales]: [{ sum: 8 }] },
    { name: 'b', [sales]: [{ sum: null }] },
  ])
})

test('count no row that the caller may not read', async () => {
  await client.from(notes).insert([{ n: 1 }, { n: 2 }])
  await clientOf(other.sessionToken).from(notes).insert({ n: 40 })
  const sum = async (of: typeof client) => (await of.from(notes).select('n.sum(), count()')).data
  expect(await sum(client)).toEqual([{ sum: 3, count: 2 }])
  expect(await sum(clientOf(other.sessionToken))).toEqual([{ sum: 40, count: 1 }])
  expect(await sum(createClient(harness.url, project.serverKey))).toEqual([{ sum: 43, count: 3 }])
  expect(await stranger.from(notes).select('n.sum()')).toMatchObject({ status: 401, error: { code: '42501' } })
  expect((await stranger.from(sales).select('pieces.sum()')).data).toEqual([{ sum: 8 }])
})

test('of doubles do not fail for what one user has written', async () => {
  await client.from(sales).insert([
    { kind: 'large', price: 1.7e308 },
    { kind: 'large', price: 1.7e308 },
    { kind: 'tiny', price: 5e-200 },
    { kind: 'tiny', price: 5e-200 },
  ])
  const of = async (kind: string) =>
    (await client.from(sales).select('price.sum(), price.avg()').eq('kind', kind)).data?.[0]
  expect(await of('large')).toEqual({ sum: 'Infinity', avg: 1.7e308 })
  expect(await of('tiny')).toEqual({ sum: 1e-199, avg: 5e-200 })
})

test('are at most ten, wherever they stand', async () => {
  const ten = Array.from({ length: 10 }, (_, i) => `s${i}:${['price', 'pieces'][i % 2]}.sum()`).join()
  expect((await client.from(sales).select(ten)).error).toBeNull()
  const refused = { status: 400, error: { code: 'INVALID_INPUT', details: { field: 'select' } } }
  expect(await client.from(sales).select(`${ten},count()`)).toMatchObject(refused)
  expect(await client.from(shops).select(`id.max(), ${sales}(${ten})`)).toMatchObject(refused)
  const { url, headers } = { url: `${harness.url}/rest/v1/${sales}`, headers: { apikey: project.clientKey } }
  const written = await fetch(`${url}?select=${ten.replaceAll('()', '%28%29')},%22price%22.max(),count()`, { headers })
  expect([written.status, ((await written.json()) as { code: string }).code]).toEqual([400, 'INVALID_INPUT'])
})

test('have at most 1,000 groups, and 8 MB', async () => {
  await project.sql(
    `insert into collections.${sales} (user_id, kind, pieces) select $1, 'k' || n, n from generate_series(1, 1100) n`,
    [user.id],
  )
  expect((await client.from(sales).select('pieces, count()')).data).toHaveLength(1000)
  // ten numbers of a hundred thousand digits each
  const digits = Array.from({ length: 10 }, (_, i) => `s${i}:kind->>${i}::numeric.sum()`).join()
  const long = await define({
    columns: [
      { name: 'body', type: 'jsonb' },
      { name: 'n', type: 'integer' },
    ],
  })
  await client.from(long).insert(Array.from({ length: 20 }, (_, n) => ({ n, body: Array(10).fill('1e99999') })))
  const asked = await client.from(long).select(`n, ${digits.replaceAll('kind', 'body')}`)
  expect(asked).toMatchObject({
    status: 400,
    error: { code: 'RESPONSE_TOO_LARGE', message: expect.stringMatching('8 MB') },
  })
})
