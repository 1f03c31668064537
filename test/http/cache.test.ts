import { describe, expect, test, vi } from 'vitest'
import { createCache } from '#server/http/cache.ts'

/** A load that answers when it is told to. */
const slowly = <T>() => {
  let answer: (value: T | null) => void = () => undefined
  const load = vi.fn(() => new Promise<T | null>((resolve) => (answer = resolve)))
  return { load, answer: (value: T | null) => answer(value) }
}

describe('what was looked up', () => {
  test('is looked up once for all who ask meanwhile, and kept', async () => {
    const cache = createCache<string>(10, 1000)
    const { load, answer } = slowly<string>()
    const asked = [cache.get('a', load), cache.get('a', load)]
    answer('x')
    expect(await Promise.all(asked)).toEqual(['x', 'x'])
    expect(await cache.get('a', load)).toBe('x')
    expect(load).toHaveBeenCalledTimes(1)
  })

  test('is not kept when it is null, refused by the caller, or failed', async () => {
    const cache = createCache<string>(10, 1000)
    await cache.get('null', async () => null)
    await cache.get(
      'refused',
      async () => 'x',
      () => false,
    )
    await expect(cache.get('failed', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    for (const key of ['null', 'refused', 'failed']) expect(await cache.get(key, async () => 'y')).toBe('y')
  })

  test('expires, and the least recently used is evicted when there are too many', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout'] })
    try {
      vi.advanceTimersByTime(1)
      const cache = createCache<number>(2, 1000)
      cache.set('a', 0)
      cache.set('b', 1)
      expect(cache.peek('a')).toBe(0)
      cache.set('c', 2)
      expect(['a', 'b', 'c'].map(cache.peek)).toEqual([0, undefined, 2])
      vi.advanceTimersByTime(1000)
      expect(['a', 'c'].map(cache.peek)).toEqual([0, 2])
      vi.advanceTimersByTime(1)
      expect(['a', 'c'].map(cache.peek)).toEqual([undefined, undefined])
    } finally {
      vi.useRealTimers()
    }
  })

  test.each([
    ['drop', (cache: ReturnType<typeof createCache<string>>) => cache.drop('a')],
    ['dropWhere', (cache: ReturnType<typeof createCache<string>>) => cache.dropWhere(() => true)],
    ['clear', (cache: ReturnType<typeof createCache<string>>) => cache.clear()],
  ])('%s wins over a load under way: it is not kept, and whoever asks afterwards looks again', async (_name, drop) => {
    const cache = createCache<string>(10, 1000)
    cache.set('b', 'cached before')
    const before = slowly<string>()
    const early = cache.get('a', before.load)
    drop(cache)
    const after = slowly<string>()
    const late = cache.get('a', after.load)
    before.answer('live')
    after.answer('ended')
    expect(await early).toBe('live')
    expect(await late).toBe('ended')
    expect(cache.peek('a')).not.toBe('live')
  })
})
