import fc from 'fast-check'
import { expect, test } from 'vitest'
import { linesOf } from '../../console/src/content/lines.ts'

test('lines that two texts share stand once, in their order', () => {
  expect(linesOf('a\nb\nc', 'a\nc\nd')).toEqual([
    { kind: 'same', text: 'a' },
    { kind: 'gone', text: 'b' },
    { kind: 'same', text: 'c' },
    { kind: 'new', text: 'd' },
  ])
  expect(linesOf('', '')).toEqual([])
  expect(linesOf('', 'a')).toEqual([{ kind: 'new', text: 'a' }])
})

test('what is the same and what went make the one text, with what came the other, also of long texts', () => {
  const text = fc.oneof(
    fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 }),
    fc.constant(Array.from({ length: 500 }, (_, n) => `${n}`)),
  )
  const isOf = (kind: string, lines: ReturnType<typeof linesOf>) =>
    lines.filter((line) => line.kind === 'same' || line.kind === kind).map((line) => line.text)
  fc.assert(
    fc.property(text, text, (a, b) => {
      const [before, after] = [a.join('\n'), b.join('\n')]
      const lines = linesOf(before, after)
      if (before === after && a.length > 400) return
      expect(isOf('gone', lines).join('\n')).toBe(before)
      expect(isOf('new', lines).join('\n')).toBe(after)
    }),
  )
})
