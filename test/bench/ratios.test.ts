import { expect, test } from 'vitest'
import { regressions, toKeep } from '../../bench/support/ratios.ts'

/** The bound of the nightly benches: what was kept, and a fifth. */
const higher = (value: number) => ({ name: 'to PostgREST', value, better: 'higher' }) as const
const lower = (value: number) => ({ name: 'to the bare call', value, better: 'lower' }) as const

test('a ratio may be a fifth worse than the kept one, in its own direction', () => {
  const kept = { 'to PostgREST': 1.8, 'to the bare call': 2 }
  expect(regressions(kept, [higher(1.5), lower(2.4)])).toEqual([])
  expect(regressions(kept, [higher(1.49)])).toEqual(['to PostgREST: 1.49, was 1.80 (higher is better)'])
  expect(regressions(kept, [lower(2.41)])).toEqual(['to the bare call: 2.41, was 2.00 (lower is better)'])
  expect(regressions(kept, [higher(9), lower(0.5)])).toEqual([])
})

test('what one of the two runs did not measure says nothing', () => {
  expect(regressions({}, [higher(0.1)])).toEqual([])
  expect(regressions({ 'to PostgREST': 1.8 }, [higher(Number.NaN)])).toEqual([])
  expect(toKeep([higher(1.23456), lower(Number.NaN)])).toEqual({ 'to PostgREST': 1.23 })
})
