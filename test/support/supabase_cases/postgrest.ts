import type { Case, Client, Outcome } from '#test/support/supabase_cases/case.ts'

// The client is of a signed-in user, over a collection `books` with three rows of theirs (a, b, c) and `chapters` that refer to them.

const titles = (...wanted: string[]) => wanted.map((title) => ({ title }))
const byTitle = (client: Client) => client.from('books').select('title').order('title')

const filters: [string, (client: Client) => PromiseLike<Outcome>, string[]][] = [
  [".eq('title', 'a')", (c) => byTitle(c).eq('title', 'a'), ['a']],
  [".neq('title', 'a')", (c) => byTitle(c).neq('title', 'a'), ['b', 'c']],
  [".gt('pages', 100)", (c) => byTitle(c).gt('pages', 100), ['b', 'c']],
  [".gte('pages', 200)", (c) => byTitle(c).gte('pages', 200), ['b', 'c']],
  [".lt('pages', 200)", (c) => byTitle(c).lt('pages', 200), ['a']],
  [".lte('pages', 200)", (c) => byTitle(c).lte('pages', 200), ['a', 'b']],
  [".like('title', 'a%')", (c) => byTitle(c).like('title', 'a%'), ['a']],
  [".ilike('title', 'A%')", (c) => byTitle(c).ilike('title', 'A%'), ['a']],
  [".is('note', null)", (c) => byTitle(c).is('note', null), ['a', 'b']],
  [".in('title', ['a', 'c'])", (c) => byTitle(c).in('title', ['a', 'c']), ['a', 'c']],
  [".contains('tags', ['x'])", (c) => byTitle(c).contains('tags', ['x']), ['a', 'b']],
  [".containedBy('tags', ['x', 'z'])", (c) => byTitle(c).containedBy('tags', ['x', 'z']), ['a', 'c']],
  [".overlaps('tags', ['y', 'z'])", (c) => byTitle(c).overlaps('tags', ['y', 'z']), ['b', 'c']],
  [".contains('meta', { lang: 'de' })", (c) => byTitle(c).contains('meta', { lang: 'de' }), ['b']],
  [".eq('meta->>lang', 'en')", (c) => byTitle(c).eq('meta->>lang', 'en'), ['a']],
  [".textSearch('note', 'long')", (c) => byTitle(c).textSearch('note', 'long'), ['c']],
  [".match({ title: 'a', pages: 100 })", (c) => byTitle(c).match({ title: 'a', pages: 100 }), ['a']],
  [".not('title', 'eq', 'a')", (c) => byTitle(c).not('title', 'eq', 'a'), ['b', 'c']],
  [".or('title.eq.a,pages.gt.200')", (c) => byTitle(c).or('title.eq.a,pages.gt.200'), ['a', 'c']],
  [".filter('pages', 'gte', 300)", (c) => byTitle(c).filter('pages', 'gte', 300), ['c']],
]

const reads: Case[] = [
  {
    part: 'Reads',
    call: ".order('pages', { ascending: false })",
    run: (c) => c.from('books').select('title').order('pages', { ascending: false }),
    gives: titles('c', 'b', 'a'),
  },
  { part: 'Reads', call: '.limit(1)', run: (c) => byTitle(c).limit(1), gives: titles('a') },
  { part: 'Reads', call: '.range(1, 2)', run: (c) => byTitle(c).range(1, 2), gives: titles('b', 'c') },
  { part: 'Reads', call: '.single()', run: (c) => byTitle(c).eq('title', 'b').single(), gives: { title: 'b' } },
  { part: 'Reads', call: '.single() of no row', run: (c) => byTitle(c).eq('title', 'q').single(), refuses: 'PGRST116' },
  {
    part: 'Reads',
    call: '.maybeSingle() of no row',
    run: (c) => byTitle(c).eq('title', 'q').maybeSingle(),
    gives: null,
  },
  {
    part: 'Reads',
    call: ".select('*', { count: 'exact', head: true })",
    run: async (c) => ({ data: (await c.from('books').select('*', { count: 'exact', head: true })).count }),
    gives: 3,
  },
  { part: 'Reads', call: '.csv()', run: (c) => byTitle(c).csv(), gives: 'title\na\nb\nc' },
  {
    part: 'Reads',
    call: ".select('name:title, meta->lang')",
    run: (c) => c.from('books').select('name:title, meta->lang').eq('title', 'a'),
    gives: [{ name: 'a', lang: 'en' }],
  },
  {
    part: 'Reads',
    call: ".select('pages::text')",
    run: (c) => c.from('books').select('pages::text').eq('title', 'a'),
    gives: [{ pages: '100' }],
  },
  {
    part: 'Embedding',
    call: "from('chapters').select('name, books(title)')",
    run: (c) => c.from('chapters').select('name, books(title)').eq('name', 'one'),
    gives: [{ name: 'one', books: { title: 'a' } }],
  },
  {
    part: 'Embedding',
    call: "from('books').select('title, chapters(name)')",
    run: (c) => c.from('books').select('title, chapters(name)').eq('title', 'a'),
    gives: [{ title: 'a', chapters: [{ name: 'one' }] }],
  },
  {
    part: 'Embedding',
    call: "from('books').select('title, chapters!inner(name)')",
    run: (c) => c.from('books').select('title, chapters!inner(name)'),
    gives: [{ title: 'a', chapters: [{ name: 'one' }] }],
  },
  {
    part: 'Not served',
    call: ".select('pages.sum()')",
    run: (c) => c.from('books').select('pages.sum()'),
    refuses: 'PGRST123',
    note: 'aggregates have their own route: see collections-queries.md',
  },
  {
    part: 'Not served',
    call: ".rpc('anything')",
    run: (c) => c.rpc('anything'),
    refuses: 'PGRST202',
    note: 'a function that nobody has [made](#functions-and-computed-columns)',
  },
  {
    part: 'Not served',
    call: '.explain()',
    run: (c) => c.from('books').select().explain(),
    refuses: 'PGRST107',
    note: 'plans show what policies hide',
  },
  {
    part: 'Not served',
    call: ".schema('app').from('users')",
    run: (c) => c.schema('app').from('users').select(),
    refuses: 'PGRST106',
    note: 'collections alone are served, as schema public',
  },
  {
    part: 'Not served',
    call: '.update(values), .delete() without a filter',
    run: (c) => c.from('books').update({ pages: 1 }),
    refuses: '21000',
    note: "as Supabase does; whoever means every row says `.not('id', 'is', null)`",
  },
  {
    part: 'Not served',
    call: '.maxAffected(1)',
    // its type says that PostgREST 12 has none
    run: (c) => (c.from('books').update({ pages: 1 }).eq('title', 'q') as any).maxAffected(1),
    refuses: 'PGRST122',
    note: 'PostgREST 13 has it',
  },
  {
    part: 'Not served',
    call: "computed columns: .select('full_title')",
    run: (c) => c.from('books').select('full_title'),
    refuses: '42703',
    note: 'a column that no [function](#functions-and-computed-columns) computes',
  },
  { part: 'Not served', call: "from('nothing')", run: (c) => c.from('nothing').select(), refuses: 'PGRST205' },
]

const writes: Case[] = [
  {
    part: 'Writes',
    call: '.insert(row).select().rollback()',
    run: (c) => c.from('books').insert({ title: 'dry' }).select('title').rollback(),
    gives: titles('dry'),
    note: 'answers as if it were done, and undoes it',
  },
  {
    part: 'Writes',
    call: '.insert(row).select()',
    run: (c) => c.from('books').insert({ title: 'd', pages: 1 }).select('title, pages'),
    gives: [{ title: 'd', pages: 1 }],
  },
  {
    part: 'Writes',
    call: '.insert([row, row])',
    run: (c) =>
      c
        .from('books')
        .insert([{ title: 'e' }, { title: 'f' }])
        .select('title'),
    gives: titles('e', 'f'),
  },
  {
    part: 'Writes',
    call: '.insert([...], { defaultToNull: false })',
    run: (c) =>
      c
        .from('books')
        .insert([{ title: 'g', pages: 2 }, { title: 'h' }], { defaultToNull: false })
        .select('title, pages'),
    gives: [
      { title: 'g', pages: 2 },
      { title: 'h', pages: 10 },
    ],
  },
  {
    part: 'Writes',
    call: ".update({ pages: 5 }).eq('title', 'd')",
    run: (c) => c.from('books').update({ pages: 5 }).eq('title', 'd').select('pages'),
    gives: [{ pages: 5 }],
  },
  {
    part: 'Writes',
    call: '.upsert(row with its id)',
    run: (c) => c.from('books').upsert({ id: '11111111-1111-4111-8111-111111111111', title: 'u' }).select('title'),
    gives: titles('u'),
  },
  {
    part: 'Writes',
    call: '.upsert(row with its id) again',
    run: (c) => c.from('books').upsert({ id: '11111111-1111-4111-8111-111111111111', title: 'v' }).select('title'),
    gives: titles('v'),
  },
  {
    part: 'Writes',
    call: '.upsert(row, { ignoreDuplicates: true })',
    run: (c) =>
      c
        .from('books')
        .upsert({ id: '11111111-1111-4111-8111-111111111111', title: 'w' }, { ignoreDuplicates: true })
        .select('title'),
    gives: [],
  },
  {
    part: 'Writes',
    call: ".delete().in('title', [...])",
    run: (c) => c.from('books').delete().in('title', ['d', 'e', 'f', 'g', 'h', 'v']).select('title'),
    gives: titles('d', 'e', 'f', 'g', 'h', 'v'),
    note: 'a row is marked as deleted, as our own routes do',
  },
  {
    part: 'Not served',
    call: ".upsert(row, { onConflict: 'title' })",
    run: (c) => c.from('books').upsert({ title: 'a' }, { onConflict: 'title' }),
    refuses: '42P10',
    note: 'a unique value is unique among live rows, which ON CONFLICT cannot name: PUT our own upsert',
  },
  {
    part: 'Not served',
    call: '.update({ id })',
    run: (c) => c.from('books').update({ id: '22222222-2222-4222-8222-222222222222' }).eq('title', 'a'),
    refuses: 'VALIDATION_ERROR',
    note: 'an id stays',
  },
  {
    part: 'Not served',
    call: '.update({ user_id })',
    run: (c) => c.from('books').update({ user_id: '22222222-2222-4222-8222-222222222222' }).eq('title', 'a'),
    refuses: '42501',
    note: 'an owner stays',
  },
  {
    part: 'Rules',
    call: '.insert(row of somebody else)',
    run: (c) => c.from('books').insert({ title: 'x', user_id: '22222222-2222-4222-8222-222222222222' }),
    refuses: '42501',
  },
  {
    part: 'Rules',
    call: '.insert(row that breaks a unique value)',
    run: (c) => c.from('books').insert({ title: 'a' }),
    refuses: '23505',
  },
  {
    part: 'Rules',
    call: '.insert(row that breaks a bound)',
    run: (c) => c.from('books').insert({ title: 'y', pages: -1 }),
    refuses: '23514',
  },
  {
    part: 'Rules',
    call: '.insert(row that refers to no row)',
    run: (c) => c.from('chapters').insert({ name: 'q', book_id: '22222222-2222-4222-8222-222222222222' }),
    refuses: 'INVALID_BODY',
    note: 'a row that is missing, deleted or hidden from the writer, all alike',
  },
]

export const cases: readonly Case[] = [
  ...filters.map(([call, run, wanted]): Case => ({ part: 'Filters', call, run, gives: titles(...wanted) })),
  ...reads,
  ...writes,
]
