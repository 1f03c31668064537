import { expect, test } from 'vitest'
import { escaped, plain } from '#server/plain.ts'

test.for([
  ['a\u001b[31mb\u009b2J', 'a [31mb 2J', 'a\\u001b[31mb\\u009b2J'],
  ['a\r\nb\u2028c\u2029d', 'a b c d', 'a\\u000d\\u000ab\\u2028c\\u2029d'],
  ['a\u202eb\ufeffc', 'a b c', 'a\\u202eb\\ufeffc'],
  ['a\u{e0041}b', 'a b', 'a\\udb40\\udc41b'],
  ['é 😀 „x“', 'é 😀 „x“', 'é 😀 „x“'],
] as const)('%j is shown without what a terminal would interpret', ([text, onOneLine, withEscapes]) => {
  expect(plain(text)).toBe(onOneLine)
  expect(escaped(text)).toBe(withEscapes)
})

test('what is not there is nothing', () => {
  expect([plain(null), plain(undefined), plain(5)]).toEqual(['', '', '5'])
})
