import type { SupabaseClient } from '@supabase/supabase-js'

/** The collections that the calls of the table are made on. */
export const collections = [
  {
    name: 'books',
    realtime: true,
    columns: [
      { name: 'title', type: 'text', nullable: false, unique: true },
      { name: 'pages', type: 'integer', default: 10, min: 0 },
      { name: 'note', type: 'text' },
      { name: 'tags', type: 'text[]' },
      { name: 'meta', type: 'jsonb' },
    ],
  },
  {
    name: 'chapters',
    columns: [
      { name: 'name', type: 'text' },
      { name: 'book_id', type: 'uuid', references: { collection: 'books', on_delete: 'cascade' } },
    ],
  },
]

/** A function and a computed column, as a DBA makes them. */
export const functions = `
  create function rest.longer_than(at_least int) returns setof rest.books language sql stable
    begin atomic select b.* from rest.books b where b.pages >= at_least order by b.title; end;
  create function rest.full_title(book rest.books) returns text language sql stable
    begin atomic select book.title || ', ' || book.pages; end;
  grant execute on function rest.longer_than, rest.full_title to app_rest;
  notify pgrst, 'reload schema'`

/** Three rows of the user who has signed in, of which one is referred to. Makes the views of schema rest, too. */
export const fill = async (client: SupabaseClient<any, any, any>): Promise<void> => {
  const made = await client
    .from('books')
    .insert([
      { title: 'a', pages: 100, tags: ['x'], meta: { lang: 'en' }, note: null },
      { title: 'b', pages: 200, tags: ['x', 'y'], meta: { lang: 'de' }, note: null },
      { title: 'c', pages: 300, tags: ['z'], meta: {}, note: 'a long one' },
    ])
    .select('id, title')
  if (made.error) throw made.error
  const { error } = await client.from('chapters').insert({ name: 'one', book_id: made.data[0]?.id })
  if (error) throw error
}

/** PostgREST reads a function that was made by hand some moments later. */
export const untilCallable = async (client: SupabaseClient<any, any, any>): Promise<void> => {
  for (let tries = 0; tries < 200; tries += 1) {
    if (!(await client.rpc('longer_than', { at_least: 1 })).error) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('PostgREST does not read the functions')
}
