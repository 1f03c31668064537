import { expect, test } from 'vitest'
import { columns } from '#server/columns.ts'

test('cells stand below each other, and nothing follows the last of a row', () => {
  const rows = [
    ['', 'version', 'state'],
    ['control', '20261127', ''],
    ['🔑🔑', 'a', 'b'],
    ['failed', 'a reason that is longer than every version'],
  ]
  expect(columns(rows)).toEqual([
    '         version   state',
    'control  20261127',
    '🔑🔑       a         b',
    'failed   a reason that is longer than every version',
  ])
  expect(columns([])).toEqual([])
})
