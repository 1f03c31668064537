import type { Case, Client } from '#test/support/supabase_cases/case.ts'

export const titles = (...wanted: string[]) => wanted.map((title) => ({ title }))
export const byTitle = (client: Client) => client.from('books').select('title').order('title')

const filters: [string, Required<Case<Client>>['run'], string[]][] = [
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
  [".likeAllOf('title', ['a%', '%a'])", (c) => byTitle(c).likeAllOf('title', ['a%', '%a']), ['a']],
  [".likeAnyOf('title', ['a%', 'b%'])", (c) => byTitle(c).likeAnyOf('title', ['a%', 'b%']), ['a', 'b']],
  [".ilikeAllOf('title', ['A%'])", (c) => byTitle(c).ilikeAllOf('title', ['A%']), ['a']],
  [".ilikeAnyOf('title', ['A%', 'B%'])", (c) => byTitle(c).ilikeAnyOf('title', ['A%', 'B%']), ['a', 'b']],
  [".regexMatch('title', '^[ab]$')", (c) => byTitle(c).regexMatch('title', '^[ab]$'), ['a', 'b']],
  [".regexIMatch('title', '^A')", (c) => byTitle(c).regexIMatch('title', '^A'), ['a']],
  [".isDistinct('pages', 100)", (c) => byTitle(c).isDistinct('pages', 100), ['b', 'c']],
  [".notIn('title', ['a', 'c'])", (c) => byTitle(c).notIn('title', ['a', 'c']), ['b']],
]

export const filterCases: readonly Case<Client>[] = [
  ...filters.map(([call, run, wanted]): Case<Client> => ({ part: 'Filters', call, run, gives: titles(...wanted) })),
  {
    part: 'Filters',
    call: ".rangeGt('pages', '[1,2)'), .rangeGte(), .rangeLt(), .rangeLte(), .rangeAdjacent()",
    run: (c) => c.from('books').select('title').rangeGt('pages', '[1,2)'),
    verdict: 'not offered',
    refuses: '42804',
    note: 'collections have no columns of ranges',
  },
]
