import { expect, test } from 'vitest'
import { createQueue } from '#server/rest/queue.ts'

test('so many have their turn at once, the others wait in order, and too many are refused', async () => {
  const take = createQueue(2, 2)
  const [first, second] = [await take(), await take()]
  const order: number[] = []
  const begin = async (n: number) => {
    const end = await take()
    order.push(n)
    return end
  }
  const [third, fourth] = [begin(3), begin(4)]
  await expect(take()).rejects.toMatchObject({ status: 429, code: 'RATE_LIMITED' })
  expect(order).toEqual([])
  first()
  // once, however often it is said
  first()
  const endThird = await third
  expect(order).toEqual([3])
  second()
  const endFourth = await fourth
  expect(order).toEqual([3, 4])
  endThird()
  endFourth()
  const again = [await take(), await take()]
  let isThere = false
  const later = take().then((end) => {
    isThere = true
    return end
  })
  await new Promise(setImmediate)
  expect(isThere).toBe(false)
  for (const end of again) end()
  ;(await later)()
})
