import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { startFilters } from '#test/support/filter_calls.ts'
import { type Filter, leaf, valueArbitrary } from '#test/support/filters.ts'
import { sized } from '#test/support/sized.ts'

/** Filters that are refused, and input that must not raise an error. */
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const { client, onTexts, problems } = await startFilters()

describe('what is refused', () => {
  const fine = leaf('eq', 1)
  const nested = (levels: number): Filter => (levels === 0 ? fine : { not: nested(levels - 1) })
  const many = (count: number) => Array.from({ length: count }, () => fine)
  const shapes = 'must be {column, op, value}, {and: [..]}, {or: [..]} or {not: ..}'
  const operators =
    'must be one of eq, ne, gt, gte, lt, lte, in, not_in, like, ilike, is_null, is_not_null, contains, contained_by, overlaps'

  const table: [string, unknown, string | null][] = [
    ['null', null, 'must be an object'],
    ['a text', 'and', 'must be an object'],
    ['an array', [fine], 'must be an object'],
    ['an empty object', {}, shapes],
    ['unknown keys only', { nor: [] }, shapes],
    ['two shapes', { and: [], or: [] }, 'must have no key beside and'],
    ['a node with a key of a leaf', { not: fine, column: 'a' }, 'must have no key beside not'],
    ['a leaf with another key', { ...fine, label: 'x' }, 'must have no keys but column, op and value'],
    ['and without an array', { and: fine }, 'and: must be an array'],
    ['or with null', { or: null }, 'or: must be an array'],
    ['not with an array', { not: [fine] }, 'not: must be an object'],
    ['no column', { op: 'eq', value: 1 }, 'column: must be a string'],
    ['a column that is no text', { ...fine, column: 1 }, 'column: must be a string'],
    ['an empty column', { ...fine, column: '' }, 'column: must have 1 to 255 characters'],
    ['a column of 256 characters', { ...fine, column: '😀'.repeat(256) }, 'column: must have 1 to 255 characters'],
    ['a column of 255 characters', { ...fine, column: '😀'.repeat(255) }, null],
    ['no op', { column: 'a', value: 1 }, `op: ${operators}`],
    ['an op that does not exist', leaf('regex', 'x'), `op: ${operators}`],
    ['an op in capitals', leaf('EQ', 1), `op: ${operators}`],
    ['an op that is no text', { column: 'a', op: ['eq'], value: 1 }, `op: ${operators}`],
    ['eq of nothing', leaf('eq'), 'value: is required'],
    ['in of nothing', leaf('in'), 'value: is required'],
    ['is_null of something', leaf('is_null', true), 'value: must be left out'],
    ['is_not_null of something', leaf('is_not_null', ''), 'value: must be left out'],
    ['is_null of null', leaf('is_null', null), null],
    ...['in', 'not_in', 'contained_by', 'containedBy', 'overlaps'].flatMap((op): [string, unknown, string][] => [
      [`${op} of a text`, leaf(op, 'a,b'), 'value: must be an array'],
      [`${op} of null`, leaf(op, null), 'value: must be an array'],
      [`${op} of an object`, leaf(op, {}), 'value: must be an array'],
    ]),
    ...['gt', 'gte', 'lt', 'lte'].flatMap((op): [string, unknown, string | null][] => [
      [`${op} of a boolean`, leaf(op, true), 'value: must be a string or a number'],
      [`${op} of null`, leaf(op, null), 'value: must be a string or a number'],
      [`${op} of a text`, leaf(op, 'a'), null],
    ]),
    ...['like', 'ilike'].flatMap((op): [string, unknown, string | null][] => [
      [`${op} of a number`, leaf(op, 1), 'value: must be a string'],
      [`${op} of 100 %`, leaf(op, '%a'.repeat(100)), null],
      [`${op} of 101 %`, leaf(op, '%a'.repeat(101)), 'value: must have at most 100 %'],
    ]),
    ...['in', 'not_in', 'contains', 'contained_by', 'containedBy', 'overlaps', 'eq'].flatMap(
      (op): [string, unknown, string | null][] => [
        [`${op} of 1000 elements`, leaf(op, Array(1000).fill('a')), null],
        [
          `${op} of 1001 elements`,
          leaf(op, Array(1001).fill('a')),
          'value: must have at most 1000 elements, those of nested lists and objects included',
        ],
      ],
    ),
    [
      'contains of 1001 elements in an object in a list',
      leaf('contains', { a: [{ b: Array(998).fill(1) }, 2] }),
      'value: must have at most 1000 elements, those of nested lists and objects included',
    ],
    ['four lists of 1000', { and: Array.from({ length: 4 }, () => leaf('in', Array(1000).fill('a'))) }, null],
    [
      'five lists of 1000',
      { and: Array.from({ length: 5 }, () => leaf('in', Array(1000).fill('a'))) },
      'must have at most 5000 elements in all, those of its values included',
    ],
    ['like of 1000 characters', leaf('like', '🌱'.repeat(1000)), null],
    ['ilike of 1001 characters', leaf('ilike', 'x'.repeat(1001)), 'value: must have at most 1000 characters'],
    ['contains of null', leaf('contains', null), 'value: must not be null'],
    [
      'the place, deep inside',
      { or: [fine, { not: { and: [fine, leaf('in', 3)] } }] },
      'or[1].not.and[1].value: must be an array',
    ],
    ['the first of two problems', { and: [leaf('in', 3), {}] }, 'and[0].value: must be an array'],
    ['8 levels', nested(8), null],
    ['9 levels', nested(9), `${'not.'.repeat(8).slice(0, -1)}: nests too deeply, at most 8 levels are allowed`],
    ['50 conditions', { and: many(50) }, null],
    ['51 conditions', { and: many(51) }, 'and[50]: is the 51st condition, at most 50 are allowed'],
    [
      '51 conditions in several nodes',
      { or: [{ and: many(25) }, { and: many(25) }, fine] },
      'or[2]: is the 51st condition, at most 50 are allowed',
    ],
  ]

  test.for(table)('%s', async ([, filter, problem]) => {
    expect(await problems([filter])).toEqual([problem])
  })

  test('filter_check returns path and reason separately, with an empty path for the filter itself', async () => {
    const { rows } = await client.query(
      `select c.* from unnest($1::text[]) as f (text) cross join lateral internal.filter_check(f.text::json) c`,
      [['{"and": [{"column": "a", "op": "in", "value": 1}]}', '7', '{"and": []}']],
    )
    expect(rows).toEqual([
      { path: 'and[0].value', reason: 'must be an array' },
      { path: '', reason: 'must be an object' },
      { path: null, reason: null },
    ])
  })

  test('no filter is not a filter, and matches nothing', async () => {
    const { rows } = await client.query(
      `select internal.filter_problem(null) as problem, internal.filter_matches(null, '{}') as matches,
              internal.filter_matches('{"column": "a", "op": "is_null"}', null) as of_no_row`,
    )
    expect(rows).toEqual([{ problem: 'must be an object', matches: false, of_no_row: true }])
  })
})

describe('nothing that a caller sends raises', () => {
  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
  const nasty: [string, string][] = [
    ['U+0000', '"\\u0000"'],
    ['U+0000 in a key', '{"\\u0000": 1}'],
    ['a first half of a pair', '"\\ud800"'],
    ['a second half of a pair', '"\\udc00"'],
    ['the halves the wrong way round', '"\\udc00\\ud800"'],
    ['a backslash between the halves', '"\\ud83d\\\\\\ude00"'],
    ['a number too large', '1e131072'],
    ['a number too exact', '-1e-16384'],
    ['an exponent beyond integers', '1e99999999999999999999'],
    ['too many digits after the point', `0.${'1'.repeat(16384)}`],
    ['too many digits', '1'.repeat(131073)],
  ]
  const odd: [string, string][] = [
    ['a whole pair', '"\\ud83d\\ude00"'],
    ['an escaped backslash', '"\\\\u0000"'],
    ['two escaped backslashes', '"\\\\\\\\ud800"'],
    ['a number in a string', '"1e99999999"'],
    ['the largest power', '1e131071'],
    ['the smallest power', '1e-16383'],
    ['many digits', '1'.repeat(300)],
    ['deep enough', deep(999)],
    ['broad', `[${Array.from({ length: 1000 }, () => '[]').join(',')}]`],
    ['brackets in a string', `"${'['.repeat(5000)}"`],
  ]

  test.for([...nasty.map((item) => [...item, false] as const), ...odd.map((item) => [...item, true] as const)])(
    '%s',
    async ([, text, isStorable]) => {
      const { rows } = await client.query('select internal.is_storable_json($1::text::json) as answer', [text])
      expect(rows).toEqual([{ answer: isStorable }])
      const cast = client.query('select $1::text::json::jsonb is not null', [text])
      expect((await Promise.allSettled([cast]))[0].status).toBe(isStorable ? 'fulfilled' : 'rejected')

      const filter = `{"column": "a", "op": "eq", "value": ${text}}`
      const answers = await onTexts([
        { filter, row: `{"a": ${text}}` },
        { filter: text, row: '{}' },
        { filter: '{"column": "a", "op": "is_not_null"}', row: `{"a": ${text}}` },
      ])
      expect(answers.map((answer) => answer.matches)).toEqual([isStorable, false, isStorable])
      expect(answers[0]!.problem === null).toBe(isStorable)
      expect(answers[1]!.problem).not.toBeNull()
    },
  )

  test('garbage', async () => {
    const raw = fc.oneof(
      fc.json(),
      fc.json({ stringUnit: 'binary' }),
      valueArbitrary.map((value) => JSON.stringify(value)),
      fc.constantFrom(...[...nasty, ...odd].map(([, text]) => text).filter((text) => text.length < 1000)),
    )
    const operator = fc.oneof(
      raw,
      fc
        .constantFrom(
          'eq',
          'ne',
          'gt',
          'lte',
          'in',
          'not_in',
          'like',
          'ilike',
          'is_null',
          'contains',
          'contained_by',
          'overlaps',
        )
        .map((op) => `"${op}"`),
    )
    const { node } = fc.letrec<{ node: string }>((tie) => ({
      node: fc.oneof(
        { maxDepth: 12 },
        raw,
        fc
          .tuple(fc.oneof(raw, fc.constant('"a"')), operator, raw)
          .map(([a, b, c]) => `{"column":${a},"op":${b},"value":${c}}`),
        fc.array(tie('node'), { maxLength: 3 }).map((parts) => `{"and":[${parts.join(',')}]}`),
        fc.array(tie('node'), { maxLength: 3 }).map((parts) => `{"or":[${parts.join(',')}]}`),
        tie('node').map((part) => `{"not":${part}}`),
        tie('node').map((part) => `{"and":${part},"or":${part}}`),
      ),
    }))
    const row = fc.oneof(
      raw,
      raw.map((text) => `{"a":${text}}`),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ filter: node, row }), { minLength: 200, maxLength: 200 }),
        async (cases) => {
          const answers = await onTexts(cases)
          expect(answers.every((answer) => typeof answer.matches === 'boolean')).toBe(true)
          expect(answers.every((answer) => (answer.problem === null) === (answer.path === null))).toBe(true)
        },
      ),
      { numRuns: sized(8, 20), endOnFailure: true },
    )
  })

  test('1001 levels are too deep, which a cast might bear', async () => {
    const answers = await onTexts([{ filter: deep(1001), row: '{}' }])
    expect(answers[0]).toMatchObject({ matches: false, path: '' })
  })

  test('patterns and nesting that would exhaust the stack', async () => {
    const pattern = '%a'.repeat(20_000)
    const chain = `${'{"not":'.repeat(5000)}{"and":[]}${'}'.repeat(5000)}`
    const twoHundred = `${'{"not":'.repeat(200)}{"and":[]}${'}'.repeat(200)}`
    const answers = await onTexts([
      { filter: JSON.stringify(leaf('like', pattern)), row: JSON.stringify({ a: 'a'.repeat(40_000) }) },
      { filter: chain, row: '{}' },
      { filter: twoHundred, row: '{}' },
    ])
    expect(answers.map((answer) => answer.matches)).toEqual([false, false, false])
    expect(answers.map((answer) => answer.problem)).toEqual([
      'value: must have at most 100 %',
      'holds a character or a number that cannot be stored, or nests too deeply',
      'not.not.not.not.not.not.not.not: nests too deeply, at most 8 levels are allowed',
    ])
  })
})
