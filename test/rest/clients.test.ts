import { createClient } from '@supabase/supabase-js'
import { expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'
import { cases } from '#test/support/supabase_cases/postgrest.ts'

const { harness, project, define } = await startCollections()
await project.admin.patch('', { rest_enabled: true })
const user = await project.user()
const client = createClient(harness.url, project.clientKey, { accessToken: async () => user.sessionToken })

await define({
  name: 'books',
  columns: [
    { name: 'title', type: 'text', nullable: false, unique: true },
    { name: 'pages', type: 'integer', default: 10, min: 0 },
    { name: 'note', type: 'text' },
    { name: 'tags', type: 'text[]' },
    { name: 'meta', type: 'jsonb' },
  ],
})
await define({
  name: 'chapters',
  columns: [
    { name: 'name', type: 'text' },
    { name: 'book_id', type: 'uuid', references: { collection: 'books', on_delete: 'cascade' } },
  ],
})
const rows = await client
  .from('books')
  .insert([
    { title: 'a', pages: 100, tags: ['x'], meta: { lang: 'en' }, note: null },
    { title: 'b', pages: 200, tags: ['x', 'y'], meta: { lang: 'de' }, note: null },
    { title: 'c', pages: 300, tags: ['z'], meta: {}, note: 'a long one' },
  ])
  .select('id, title')
await client.from('chapters').insert({ name: 'one', book_id: rows.data?.[0]?.id })

test.each(cases.map((one) => [one.part, one.call, one] as const))('%s: %s', async (_part, _call, one) => {
  const { data, error } = await one.run(client)
  if (one.refuses) return expect(error?.code).toMatch(new RegExp(`^(${one.refuses})$`))
  expect(error ?? null).toBeNull()
  expect(data).toEqual(one.gives)
})
