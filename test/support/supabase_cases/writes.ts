import type { Case, Client } from '#test/support/supabase_cases/case.ts'
import { titles } from '#test/support/supabase_cases/filters.ts'

export const writes: Case<Client>[] = [
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
    part: 'Rules',
    call: ".upsert(row, { onConflict: 'title' })",
    run: (c) => c.from('books').upsert({ title: 'a' }, { onConflict: 'title' }),
    verdict: 'differs',
    refuses: '42P10',
    note: 'a unique value is unique among live rows, which ON CONFLICT cannot name: PUT our own upsert',
  },
  {
    part: 'Rules',
    call: '.update({ id })',
    run: (c) => c.from('books').update({ id: '22222222-2222-4222-8222-222222222222' }).eq('title', 'a'),
    verdict: 'differs',
    refuses: 'VALIDATION_ERROR',
    note: 'an id stays',
  },
  {
    part: 'Rules',
    call: '.update({ user_id })',
    run: (c) => c.from('books').update({ user_id: '22222222-2222-4222-8222-222222222222' }).eq('title', 'a'),
    verdict: 'differs',
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
    verdict: 'differs',
    run: (c) => c.from('chapters').insert({ name: 'q', book_id: '22222222-2222-4222-8222-222222222222' }),
    refuses: 'INVALID_BODY',
    note: 'a row that is missing, deleted or hidden from the writer, all alike',
  },
]
