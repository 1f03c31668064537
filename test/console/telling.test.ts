import { Fragment, createElement as h, type ReactNode } from 'react'
import { expect, test } from 'vitest'
import { textOf, untold, untoldWords } from '../../console/src/parts/telling.ts'

/** Which columns of a table are left out, since they tell nothing. */

const Word = ({ value }: { value: string }) => h('span', null, value)
Word.words = ({ value }: { value: string }) => value
const When = ({ at }: { at: string | null }) => h('time', null, at ?? 'never')
When.words = ({ at }: { at: string | null }) => (at ? undefined : 'never')
const Silent = ({ value }: { value: string }) => h('span', null, value)

test.for<readonly [string, ReactNode, string | undefined]>([
  ['nothing', null, ''],
  ['a dash', '—', ''],
  ['false', false, ''],
  ['a text', 'weekly', 'weekly'],
  ['zero', 0, '0'],
  ['texts', ['a', null, 'b'], 'a b'],
  ['an element of the document', h('span', { className: 'mono' }, 'points'), 'points'],
  ['an element without content', h('span', null, null, '—'), ''],
  ['a fragment', h(Fragment, null, 'a', h('b', null, 'c')), 'a c'],
  ['a component that has words', h(Word, { value: 'active' }), 'active'],
  ['a time that never was', h(When, { at: null }), 'never'],
  ['a time', h(When, { at: '2026-11-28' }), undefined],
  ['a component that has no words', h(Silent, { value: 'active' }), undefined],
  ['a component beside a text', ['ends ', h(Silent, { value: 'soon' })], undefined],
  ['a link', h('a', { href: '/' }, 'all'), undefined],
  ['a button', h('div', null, h('button', { type: 'button' }, 'Rotate')), undefined],
  ['something to press', h('span', { onClick: () => {} }, 'more'), undefined],
])('the text of a cell: %s', ([, node, text]) => {
  expect(textOf(node)).toBe(text)
})

type Row = { readonly name: string; readonly [field: string]: ReactNode }
const column = (title: string) => ({ title, show: (row: Row) => row[title] })
const columns = ['name', 'status', 'note', 'at', 'more', 'Actions'].map(column)
const row = (name: string, fields: Partial<Row> = {}): Row => ({
  name,
  status: h(Word, { value: 'active' }),
  at: h(When, { at: '2026-11-28' }),
  more: h('button', { type: 'button' }, 'More'),
  ...fields,
})
const left = (...rows: readonly Row[]) => Object.fromEntries(untold(columns, rows))

test('one row shows every column', () => {
  expect(left(row('a'))).toEqual({})
})

test('two rows leave out what is empty, and three what is the same', () => {
  expect(left(row('a'), row('b'))).toEqual({ note: '', Actions: '' })
  expect(left(row('a'), row('b'), row('c'))).toEqual({ status: 'active', note: '', Actions: '' })
})

test('what differs in a single row, what is pressed, and the first column stay', () => {
  expect(left(row('a'), row('a'), row('a', { note: 'late', status: 'off' }))).toEqual({ Actions: '' })
})

test('the foot says what the columns would have said', () => {
  expect(untoldWords(untold(columns, [row('a'), row('b'), row('c')]))).toBe(
    'The same in all: status active. Empty: note.',
  )
  expect(untoldWords(new Map([['Actions', '']]))).toBe('')
})
