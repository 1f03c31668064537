import { PostgrestClient } from '@supabase/postgrest-js'
import { expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'

/** The REST access through the client of PostgREST alone, which sets no header of its own for keys. */
const { harness, project, define } = await startCollections()
await project.admin.patch('', { rest_enabled: true })
await define({
  name: 'books',
  columns: [
    { name: 'title', type: 'text', nullable: false },
    { name: 'pages', type: 'integer' },
  ],
})
const user = await project.user()
const other = await project.user()
const clientOf = (session: string, key = project.clientKey) =>
  new PostgrestClient(`${harness.url}/rest/v1`, { headers: { apikey: key, authorization: `Bearer ${session}` } })
const mine = clientOf(user.sessionToken)

test('writes, filters, orders, counts and deletes the rows of its user', async () => {
  const made = await mine
    .from('books')
    .insert([
      { title: 'a', pages: 100 },
      { title: 'b', pages: 200 },
      { title: 'c', pages: 300 },
    ])
    .select('title')
  expect([made.status, made.error, made.data]).toEqual([201, null, [{ title: 'a' }, { title: 'b' }, { title: 'c' }]])
  const read = await mine.from('books').select('title', { count: 'exact' }).gte('pages', 200).order('title').limit(1)
  expect([read.error, read.data, read.count]).toEqual([null, [{ title: 'b' }], 2])
  const changed = await mine.from('books').update({ pages: 150 }).eq('title', 'a').select('pages').single()
  expect(changed.data).toEqual({ pages: 150 })
  expect((await clientOf(other.sessionToken).from('books').delete().eq('title', 'a').select()).data).toEqual([])
  expect((await mine.from('books').delete().eq('title', 'a').select('title')).data).toEqual([{ title: 'a' }])
})

test('an error is one of PostgREST, and the server key reads what everybody wrote', async () => {
  const unknown = await mine.from('books').select('nothing')
  expect(unknown).toMatchObject({ status: 400, data: null, error: { code: '42703' } })
  expect((await mine.from('books').select('title').eq('title', 'none').single()).error?.code).toBe('PGRST116')
  const all = await clientOf(project.serverKey, project.serverKey).from('books').select('title').order('title')
  expect(all.data).toEqual([{ title: 'b' }, { title: 'c' }])
})
