import { expect, test } from 'vitest'
import { createWatch } from '../../sdk/src/sync_watch.ts'

test('a listener is shown what is written at whatever moment after its last look', async () => {
  for (let ticks = 0; ticks < 12; ticks += 1) {
    let rows = [{ id: 'before' }]
    const shown: string[] = []
    const watch = createWatch(
      'place',
      async () => rows,
      (error) => expect.fail(String(error)),
    )
    const first = Promise.withResolvers<void>()
    const stop = watch.subscribe('notes', ([row]) => {
      shown.push(row?.id ?? '')
      first.resolve()
    })
    await first.promise
    for (let tick = 0; tick < ticks; tick += 1) await undefined
    rows = [{ id: 'after' }]
    await watch.tell(['notes'])
    expect(shown, `after ${ticks}`).toEqual(['before', 'after'])
    stop()
    watch.close()
  }
})

test('a listener that fails while it is told of more is shown that, and fails no more than it is called', async () => {
  const errors: unknown[] = []
  const watch = createWatch(
    'place',
    async () => [],
    (error) => errors.push(error),
  )
  let calls = 0
  watch.subscribe('notes', () => {
    calls += 1
    if (calls === 1) void watch.tell()
    throw new Error(`${calls}`)
  })
  await watch.tell()
  await watch.tell()
  expect(errors.map(String)).toEqual(Array.from({ length: calls }, (_, n) => `Error: ${n + 1}`))
  expect(calls).toBeGreaterThan(1)
})
