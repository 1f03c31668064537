import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { startFilters } from '#test/support/filter_calls.ts'
import { caseArbitrary, type Filter, type Json, leaf, type Truth, truthOf } from '#test/support/filters.ts'
import { sized } from '#test/support/sized.ts'

/** Evaluation of valid filters, compared with an evaluator in TypeScript. */
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const { project, truths, onTexts } = await startFilters()

test('random filters on random rows are what the grammar says', async () => {
  const seen = new Map<Truth, number>()
  await fc.assert(
    fc.asyncProperty(fc.array(caseArbitrary, { minLength: 200, maxLength: 200 }), async (cases) => {
      const answers = await truths(cases)
      const expected = cases.map(({ filter, row }) => truthOf(filter, row))
      for (const truth of expected) seen.set(truth, (seen.get(truth) ?? 0) + 1)
      const wrong = cases
        .map((item, index) => ({ ...item, expected: expected[index]!, got: answers[index]! }))
        .filter(
          ({ expected: truth, got }) => got.truth !== truth || got.matches !== (truth ?? false) || got.problem !== null,
        )
      if (wrong.length > 0) throw new Error(JSON.stringify(wrong.slice(0, 3), null, 1))
    }),
    { numRuns: sized(12, 40), endOnFailure: true },
  )
  for (const truth of [true, false, null]) expect(seen.get(truth)).toBeGreaterThan(sized(150, 500))
})

describe('each operator', () => {
  const row = {
    n: 10,
    s: 'Hello',
    empty: '',
    yes: true,
    none: null,
    at: '2026-10-03T10:00:00.000Z',
    tags: ['a', 'b'],
    nulls: ['a', null],
    items: [{ sku: 'A', n: 1 }, { sku: 'B' }],
    cart: { total: 25, 'a.b': 1 },
    'cart.total': 99,
    'cart.none': null,
  }
  const onN = (op: string, value?: Json) => leaf(op, value, 'n')
  const onS = (op: string, value?: Json) => leaf(op, value, 's')
  const onTags = (op: string, value?: Json) => leaf(op, value, 'tags')
  const onNone = (op: string, value?: Json) => leaf(op, value, 'none')
  const missing = (op: string, value?: Json) => leaf(op, value, 'missing.deeper')

  const table: [Filter, Truth][] = [
    [onN('eq', 10), true],
    [onN('eq', '10'), false],
    [onN('ne', '10'), true],
    [onN('ne', 10), false],
    [onN('gt', 9.99), true],
    [onN('gt', 10), false],
    [onN('gte', 10), true],
    [onN('lt', 10), false],
    [onN('lte', 10), true],
    [onN('gt', '9'), null],
    [leaf('gt', 'false', 'yes'), null],
    [leaf('eq', true, 'yes'), true],
    [leaf('ne', false, 'yes'), true],
    [leaf('eq', '', 'empty'), true],
    [leaf('is_null', undefined, 'empty'), false],
    [leaf('gte', '2026-10-03', 'at'), true],
    [leaf('lt', '2026-10-03T10:00:00.001Z', 'at'), true],
    [onS('gt', 'Z'), false],
    [onS('lt', 'a'), true],
    [onS('eq', 'hello'), false],

    [onN('in', [1, 10]), true],
    [onN('in', ['10']), false],
    [onN('in', [1, null]), null],
    [onN('in', [10, null]), true],
    [onN('in', []), false],
    [onN('not_in', [1, 2]), true],
    [onN('not_in', [10]), false],
    [onN('not_in', [1, null]), null],
    [onN('not_in', []), true],
    [onTags('in', [['a', 'b'], 1]), true],
    [onTags('in', ['a']), false],

    [onS('like', 'He%'), true],
    [onS('like', 'he%'), false],
    [onS('like', 'H_llo'), true],
    [onS('like', 'Hell'), false],
    [onS('ilike', 'HEL%'), true],
    [onS('like', 'Hello\\'), false],
    [leaf('like', '%', 'empty'), true],
    [onN('like', '10'), null],

    [onTags('contains', ['b', 'a']), true],
    [onTags('contains', ['a', 'c']), false],
    [onTags('contains', 'a'), true],
    [onTags('contains', 'c'), false],
    [onTags('contains', []), true],
    [onTags('contains', [null]), false],
    [leaf('contains', [null], 'nulls'), false],
    [leaf('contains', ['a'], 'nulls'), true],
    [leaf('contains', [{ sku: 'A' }], 'items'), true],
    [leaf('contains', [{ sku: 'A', n: 2 }], 'items'), false],
    [leaf('contains', { total: 25 }, 'cart'), true],
    [leaf('contains', { total: 26 }, 'cart'), false],
    [onS('contains', 'ell'), null],
    [onTags('contained_by', ['a', 'b', 'c']), true],
    [onTags('containedBy', ['a', 'b', 'c']), true],
    [onTags('contained_by', ['a']), false],
    [onTags('contained_by', []), false],
    [leaf('contained_by', ['a', null], 'nulls'), false],
    [onS('contained_by', ['Hello']), null],
    [onTags('overlaps', ['x', 'b']), true],
    [onTags('overlaps', ['x']), false],
    [onTags('overlaps', []), false],
    [leaf('overlaps', [null], 'nulls'), false],
    [onS('overlaps', ['Hello']), null],

    [onNone('is_null'), true],
    [onNone('is_null', null), true],
    [onNone('is_not_null'), false],
    [missing('is_null'), true],
    [missing('is_not_null'), false],
    [onN('is_not_null'), true],
    [onNone('eq', null), true],
    [onN('eq', null), false],
    [onN('ne', null), true],
    [onNone('ne', null), false],
    [missing('eq', null), true],
    ...['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'like', 'ilike', 'contains'].map((op): [Filter, Truth] => [
      onNone(op, 'x'),
      null,
    ]),
    ...['in', 'not_in', 'contained_by', 'overlaps'].map((op): [Filter, Truth] => [missing(op, ['x']), null]),
    [onNone('in', []), false],
    [onNone('not_in', []), true],
    [{ not: onNone('eq', 1) }, null],
    [{ not: onNone('not_in', []) }, false],
    [{ not: onN('eq', 1) }, true],

    [{ and: [] }, true],
    [{ or: [] }, false],
    [{ and: [onN('eq', 10), onNone('eq', 1)] }, null],
    [{ and: [onNone('eq', 1), onN('eq', 1)] }, false],
    [{ or: [onNone('eq', 1), onN('eq', 10)] }, true],
    [{ or: [onN('eq', 1), onNone('eq', 1)] }, null],
    [{ not: { or: [onN('eq', 1), onNone('eq', 1)] } }, null],

    [leaf('eq', 99, 'cart.total'), true],
    [leaf('is_null', undefined, 'cart.none'), true],
    [leaf('eq', 'B', 'items.1.sku'), true],
    [leaf('eq', 'B', 'items.-1.sku'), true],
    [leaf('is_null', undefined, 'items.2.sku'), true],
    [leaf('is_null', undefined, 'items.sku'), true],
    [leaf('is_null', undefined, 'cart.a.b'), true],
    [leaf('is_null', undefined, 'n.x'), true],
  ]

  test.for(table)('%j is %j', async ([filter, truth]) => {
    expect(await truths([{ filter, row }])).toEqual([{ truth, matches: truth ?? false, problem: null }])
    expect(truthOf(filter, row)).toBe(truth)
  })

  const onText: [string, string, string][] = [
    ['numbers are never floats', '{"column":"a","op":"gt","value":9007199254740992}', '{"a":9007199254740993}'],
    ['tenths are exact', '{"column":"a","op":"eq","value":0.30}', '{"a":0.3}'],
    ['exponents are numbers', '{"column":"a","op":"lt","value":1e400}', '{"a":9e399}'],
    ['code points, not UTF-16 units', '{"column":"a","op":"gt","value":"\\ufb01"}', '{"a":"😀"}'],
    ['an escaped % is a %', '{"column":"a","op":"like","value":"1\\\\%"}', '{"a":"1%"}'],
    ['a last backslash is a backslash', '{"column":"a","op":"like","value":"1%\\\\"}', '{"a":"1 2\\\\"}'],
    ['two last backslashes are one', '{"column":"a","op":"like","value":"1\\\\\\\\"}', '{"a":"1\\\\"}'],
  ]

  test.for(onText)('%s', async ([, filter, text]) => {
    expect(await onTexts([{ filter, row: text }])).toMatchObject([{ matches: true, problem: null }])
  })
})

test.for(['app_user', 'app_server', 'app_admin', 'app_auth', 'app_worker'] as const)(
  '%s may evaluate',
  async (role) => {
    const [answer] = await project.as(
      role,
      {},
      `select internal.filter_matches('{"or":[{"column":"a","op":"in","value":[1]}]}', '{"a":1}') as matches`,
    )
    expect(answer).toEqual({ matches: true })
  },
)
